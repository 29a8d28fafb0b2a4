//! The tour as a whole, small enough for a test.

use super::*;
use serde_json::Value;

fn options(http2: bool, style: Style) -> TourOptions {
    TourOptions {
        files: 10,
        median_bytes: 4 << 10,
        round_trip: Duration::from_millis(2),
        http2,
        style,
    }
}

async fn rows(http2: bool) -> Vec<Value> {
    let mut out = Vec::new();
    run(options(http2, Style::Json), &mut out).await.unwrap();
    let object: Value = serde_json::from_slice(&out).unwrap();
    object["jobs"][0]["rows"].as_array().unwrap().clone()
}

fn count(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap()
}

fn assert_counts(rows: &[Value]) {
    let [cold, warm, ours] = rows else { panic!("{rows:?}") };
    for row in rows {
        assert_eq!(count(row, "items_done"), 10, "{row}");
        assert_eq!(count(row, "requests"), 10, "{row}");
    }
    let handshakes =
        |row: &Value| (count(row, "handshakes_full"), count(row, "handshakes_resumed"));
    assert_eq!(count(cold, "connections"), 10);
    assert_eq!(handshakes(cold), (10, 0));
    assert_eq!(count(warm, "connections"), 1);
    assert_eq!(handshakes(warm), (1, 0));
    assert!((1..=6).contains(&count(ours, "connections")), "{ours}");
    let (full, resumed) = handshakes(ours);
    assert!((1..=6).contains(&(full + resumed)), "{ours}");
}

#[tokio::test]
async fn the_counts_over_http2_are_those_the_tour_is_about() {
    let rows = rows(true).await;
    assert_counts(&rows);
    // So few streams fit on one connection.
    assert_eq!(count(&rows[2], "connections"), 1);
}

#[tokio::test]
async fn the_counts_over_http1_are_those_the_tour_is_about() {
    assert_counts(&rows(false).await);
}

#[tokio::test]
async fn the_text_has_a_line_for_each_way_and_says_what_is_next() {
    let mut out = Vec::new();
    run(options(true, Style::Text), &mut out).await.unwrap();
    let text = String::from_utf8(out).unwrap();
    for way in Way::ALL {
        let row = format!("  {} ", way.label());
        assert_eq!(text.lines().filter(|line| line.starts_with(&row)).count(), 1, "{text}");
    }
    assert!(text.ends_with("Next: trunkline get --help\n"), "{text}");
}

#[tokio::test]
async fn too_much_is_refused() {
    let options = TourOptions { files: 2000, median_bytes: 4 << 20, ..options(true, Style::Text) };
    let result = run(options, &mut Vec::new()).await;
    assert!(matches!(result, Err(TourError::TooLarge { .. })));
}
