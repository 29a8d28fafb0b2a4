use super::*;
use proptest::prelude::*;

fn read(text: &str) -> (Vec<Entry>, Vec<ListError>) {
    let mut parser = ListParser::new();
    let mut all = Line::default();
    for line in text.lines() {
        let (entries, errors) = parser.line(line);
        all.0.extend(entries);
        all.1.extend(errors);
    }
    all.0.extend(parser.finish());
    all
}

fn urls(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.url.as_str()).collect()
}

const MD5: &str = "d41d8cd98f00b204e9800998ecf8427e";

#[test]
fn our_own_form() {
    let (entries, errors) = read(&format!(
        "# packages\nhttps://h/a\n\nhttps://h/b\tsub/b\r\nhttps://h/c\tc\tmd5:{MD5}\n\
         file:///a b/c.img\n"
    ));
    assert_eq!(errors, []);
    assert_eq!(urls(&entries), ["https://h/a", "https://h/b", "https://h/c", "file:///a b/c.img"]);
    assert_eq!(entries[1].destination.as_deref(), Some("sub/b"));
    assert_eq!(entries[2].checksum, Some(MD5.parse().unwrap()));
    assert_eq!(entries[2].line, 5);
}

#[test]
fn a_bad_line_does_not_stop_the_rest() {
    let (entries, errors) = read("https://h/a\ta\tmd5:xyz\nhttps://h/b\nhttps://h/c\td\tmd5:1\te");
    assert_eq!(urls(&entries), ["https://h/b"]);
    assert_eq!(errors.len(), 2);
    assert_eq!(errors[0].line, 1);
}

#[test]
fn aria2_input_files() {
    let (entries, errors) = read(&format!(
        "http://h/a\thttp://mirror/a\n  dir=sub\n  out=name\n  checksum=md5={MD5}\n  \
         header=X-A: b\n  split=5\nhttp://h/b\n"
    ));
    assert_eq!(urls(&entries), ["http://h/a", "http://h/b"]);
    assert_eq!(entries[0].mirrors, ["http://mirror/a"]);
    assert_eq!(entries[0].destination.as_deref(), Some("name"));
    assert_eq!(entries[0].directory.as_deref(), Some("sub"));
    assert_eq!(entries[0].headers, ["X-A: b"]);
    assert!(entries[0].checksum.is_some());
    assert_eq!(errors[0].problem, Problem::UnknownOption { name: "split".to_owned() });
}

#[test]
fn curl_config_files() {
    let (entries, errors) = read(
        "# made by a script\nurl = \"https://h/a\"\noutput = \"a \\\"x\\\"\"\n\
         url=https://h/b\n-o b\n--url https://h/c\n-O\nnext\nheader \"X: y\"\nurl: https://h/d\n",
    );
    assert_eq!(errors, []);
    assert_eq!(urls(&entries), ["https://h/a", "https://h/b", "https://h/c", "https://h/d"]);
    assert_eq!(entries[0].destination.as_deref(), Some("a \"x\""));
    assert_eq!(entries[1].destination.as_deref(), Some("b"));
    assert_eq!(entries[2].destination, None);
    assert_eq!(entries[2].headers, Vec::<String>::new());
    assert_eq!(entries[3].headers, ["X: y"]);
}

#[test]
fn curl_pairs_may_come_in_two_blocks() {
    let (entries, _) = read("url = u1\nurl = u2\noutput = o1\noutput = o2\n");
    let outputs: Vec<_> = entries.iter().map(|e| e.destination.as_deref().unwrap()).collect();
    assert_eq!((urls(&entries), outputs), (vec!["u1", "u2"], vec!["o1", "o2"]));
}

#[test]
fn a_long_line_is_refused() {
    let (entries, errors) = read(&format!("https://h/{}\nhttps://h/b", "a".repeat(LINE_BYTES_MAX)));
    assert_eq!(urls(&entries), ["https://h/b"]);
    assert_eq!(errors[0].problem, Problem::TooLong);
}

proptest! {
    #[test]
    fn no_text_panics(text in "(?s).*") {
        read(&text);
    }

    #[test]
    fn every_plain_url_comes_out(names in prop::collection::vec("[a-z]{1,8}", 0..50)) {
        let urls_in: Vec<_> = names.iter().map(|name| format!("https://h/{name}")).collect();
        let (entries, errors) = read(&urls_in.join("\n"));
        prop_assert!(errors.is_empty());
        prop_assert_eq!(urls(&entries), urls_in);
    }
}
