//! What the tour prints: a table for people that grows as the tour goes on, or one JSON object.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::error::TourError;
use super::origin::Counts;

/// How the tour is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Text, line by line as it comes to be.
    Text,
    /// One JSON object at the end.
    Json,
}

/// What all jobs of a tour run against.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Scene {
    /// Files to bring.
    pub(super) files: usize,
    /// Their bytes in all.
    pub(super) bytes: u64,
    /// The simulated round trip, in milliseconds.
    pub(super) rtt_ms: u64,
    /// The newest HTTP that the origin speaks.
    pub(super) http: &'static str,
}

/// One job of the tour, done in several ways.
#[derive(Debug)]
pub(super) struct Section {
    /// One word, for programs.
    pub(super) job: &'static str,
    /// A line, for people.
    pub(super) title: &'static str,
    /// The ways; the first one is what the others are compared with.
    pub(super) rows: Vec<Row>,
}

impl Section {
    fn to_json(&self) -> Value {
        let rows = self.rows.iter().map(|row| row.to_json(&self.rows[0]));
        json!({ "job": self.job, "title": self.title, "rows": rows.collect::<Vec<_>>() })
    }
}

/// One way to do a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// One word, for programs.
    pub(super) way: &'static str,
    /// A few words, for people.
    pub(super) label: &'static str,
    /// How many there are of what the job is about, such as files.
    pub(super) items: usize,
    /// Of these, how many were done this way.
    pub(super) items_done: usize,
    /// The time for the items done.
    pub(super) elapsed: Duration,
    /// What the origin saw of the items done.
    pub(super) counts: Counts,
}

impl Row {
    /// The time for all items, extrapolated where not all were done.
    pub(super) fn seconds(&self) -> f64 {
        self.elapsed.as_secs_f64() * self.items as f64 / self.items_done.max(1) as f64
    }

    fn is_extrapolated(&self) -> bool {
        self.items_done < self.items
    }

    /// How many times less time it takes than another way.
    pub(super) fn times_faster(&self, than: &Self) -> f64 {
        than.seconds() / self.seconds().max(1e-6)
    }

    fn to_json(self, first: &Self) -> Value {
        json!({
            "way": self.way,
            "items": self.items,
            "items_done": self.items_done,
            "seconds": self.seconds(),
            "times_faster": self.times_faster(first),
            "connections": self.counts.connections,
            "handshakes_full": self.counts.handshakes_full,
            "handshakes_resumed": self.counts.handshakes_resumed,
            "requests": self.counts.requests,
        })
    }
}

/// Prints a tour.
pub(super) struct Table<'a, W> {
    out: &'a mut W,
    style: Style,
    sections: Vec<Section>,
}

impl<'a, W: Write> Table<'a, W> {
    pub(super) fn new(out: &'a mut W, style: Style) -> Self {
        Self { out, style, sections: Vec::new() }
    }

    /// Says what the tour is about.
    pub(super) fn open(&mut self, scene: &Scene) -> Result<(), TourError> {
        let Scene { files, bytes, rtt_ms, http } = scene;
        let megabytes = *bytes as f64 / 1e6;
        self.say(&format!(
            "\
{files} files of {megabytes:.1} MB in all, from a TLS server on this machine ({http}), over a
simulated round trip of {rtt_ms} ms. Not simulated: bandwidth, loss, and TCP's slow start, which
makes new connections slower still."
        ))
    }

    /// Begins a job.
    pub(super) fn section(
        &mut self,
        job: &'static str,
        title: &'static str,
    ) -> Result<(), TourError> {
        let way = "way";
        self.say(&format!(
            "\n{title}\n  {way:<24} {:>8} {:>12} {:>17} {:>9} {:>8}",
            "seconds", "connections", "TLS full/resumed", "requests", "faster"
        ))?;
        self.sections.push(Section { job, title, rows: Vec::new() });
        Ok(())
    }

    /// Adds a way to the job begun last, and tells how it compares with the first one.
    pub(super) fn row(&mut self, row: Row) -> Result<(), TourError> {
        let section = self.sections.last_mut().expect("a section was begun");
        section.rows.push(row);
        let line = row_line(&row, &section.rows[0]);
        self.say(&line)
    }

    /// Ends the job begun last by what there was to see.
    pub(super) fn seen(&mut self, text: &str) -> Result<(), TourError> {
        let section = self.sections.last().expect("a section was begun");
        let mut notes = String::new();
        for row in section.rows.iter().filter(|row| row.is_extrapolated()) {
            notes += &format!(
                "  ~ {}: done for {} of {}; the time is extrapolated, the counts are of those {}\n",
                row.label, row.items_done, row.items, row.items_done
            );
        }
        self.say(&format!("{notes}\n{text}"))
    }

    /// Ends the tour by what to try next.
    pub(super) fn close(mut self, scene: &Scene, next: &str) -> Result<(), TourError> {
        match self.style {
            Style::Text => self.say(&format!("\nNext: {next}")),
            Style::Json => {
                let simulated = json!({
                    "round_trip": true, "slow_start": false, "bandwidth": false, "loss": false,
                });
                let jobs: Vec<Value> = self.sections.iter().map(Section::to_json).collect();
                let object = json!({ "scene": scene, "simulated": simulated, "jobs": jobs });
                self.write(&object.to_string())
            }
        }
    }

    fn say(&mut self, text: &str) -> Result<(), TourError> {
        match self.style {
            Style::Text => self.write(text),
            Style::Json => Ok(()),
        }
    }

    fn write(&mut self, text: &str) -> Result<(), TourError> {
        let written: io::Result<()> = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
        written.map_err(TourError::Output)
    }
}

fn row_line(row: &Row, first: &Row) -> String {
    let Counts { connections, handshakes_full, handshakes_resumed, requests } = row.counts;
    let mark = if row.is_extrapolated() { "~" } else { "" };
    let seconds = format!("{mark}{:.2}", row.seconds());
    let handshakes = format!("{handshakes_full}/{handshakes_resumed}");
    let faster = times(row.times_faster(first));
    format!(
        "  {:<24} {seconds:>8} {connections:>12} {handshakes:>17} {requests:>9} {faster:>8}",
        row.label
    )
}

/// A ratio with sensible precision.
pub(super) fn times(ratio: f64) -> String {
    if ratio < 9.95 { format!("{ratio:.1}x") } else { format!("{ratio:.0}x") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENE: Scene =
        Scene { files: 100, bytes: 25_000_000, rtt_ms: 20, http: "HTTP/1.1 alone" };

    fn rows() -> [Row; 2] {
        let cold = Row {
            way: "cold",
            label: "a new client per file",
            items: 100,
            items_done: 40,
            elapsed: Duration::from_secs(4),
            counts: Counts {
                connections: 40,
                handshakes_full: 40,
                handshakes_resumed: 0,
                requests: 40,
            },
        };
        let warm = Row {
            way: "trunkline",
            label: "trunkline get",
            items_done: 100,
            elapsed: Duration::from_millis(250),
            counts: Counts {
                connections: 6,
                handshakes_full: 1,
                handshakes_resumed: 5,
                requests: 100,
            },
            ..cold
        };
        [cold, warm]
    }

    fn printed(style: Style) -> String {
        let mut out = Vec::new();
        let mut table = Table::new(&mut out, style);
        table.open(&SCENE).unwrap();
        table.section("get", "Fetching").unwrap();
        for row in rows() {
            table.row(row).unwrap();
        }
        table.seen("Seen.").unwrap();
        table.close(&SCENE, "trunkline get --help").unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_text_shows_each_way_and_owns_up_to_extrapolation() {
        let text = printed(Style::Text);
        let line = |label: &str| text.lines().find(|line| line.contains(label)).unwrap();
        let columns: Vec<&str> = line("a new client per file").split_whitespace().skip(5).collect();
        assert_eq!(columns, ["~10.00", "40", "40/0", "40", "1.0x"]);
        let columns: Vec<&str> = line("trunkline get").split_whitespace().skip(2).collect();
        assert_eq!(columns, ["0.25", "6", "1/5", "100", "40x"]);
        assert!(text.contains("done for 40 of 100"));
        assert!(text.contains("slow start"));
        assert!(text.ends_with("Next: trunkline get --help\n"));
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    }

    #[test]
    fn json_is_one_object_and_nothing_else() {
        let value: Value = serde_json::from_str(&printed(Style::Json)).unwrap();
        let rows = &value["jobs"][0]["rows"];
        assert_eq!(rows[0]["seconds"], 10.0);
        assert_eq!(rows[0]["items_done"], 40);
        assert_eq!(rows[1]["handshakes_resumed"], 5);
        assert_eq!(rows[0]["times_faster"], 1.0);
        assert_eq!(rows[1]["times_faster"], 40.0);
        assert_eq!(value["scene"]["rtt_ms"], 20);
        assert_eq!(value["simulated"]["slow_start"], false);
    }

    #[test]
    fn an_output_that_is_gone_is_an_error() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let result = Table::new(&mut Gone, Style::Text).open(&SCENE);
        assert!(matches!(result, Err(TourError::Output(_))));
    }
}
