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
    assert_eq!(*entries[0].headers, ["X-A: b"]);
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
    assert_eq!(*entries[2].headers, Vec::<String>::new());
    assert_eq!(*entries[3].headers, ["X: y"]);
}

#[test]
fn an_empty_destination_is_none() {
    let (entries, errors) = read(&format!("https://h/a\t\tmd5:{MD5}\t\nhttps://h/b\t\t\n"));
    assert_eq!(errors, []);
    assert_eq!((entries[0].destination.clone(), entries[0].checksum), (None, MD5.parse().ok()));
    assert_eq!((entries[1].destination.clone(), entries[1].checksum), (None, None));
}

#[test]
fn what_cannot_be_verified_is_not_fetched() {
    let (entries, errors) =
        read("http://h/a\n  checksum=md5=xyz\n  out=a\n  split=1\nhttp://h/b\n");
    assert_eq!(urls(&entries), ["http://h/b"]);
    assert!(matches!(&errors[..], [ListError { line: 2, problem: Problem::Checksum(_) }]));
}

#[test]
fn options_of_a_refused_line_are_passed_over() {
    let (entries, errors) = read("http://h/a\tx\tmd5:1\n  out=a\n  dir=b\nhttp://h/b\n");
    assert_eq!(urls(&entries), ["http://h/b"]);
    assert_eq!(errors.len(), 1);
    assert_eq!(read("  out=a\n").1[0].problem, Problem::OptionWithoutUrl);
}

#[test]
fn a_line_that_begins_with_any_blank_is_no_url() {
    for blank in ["\u{b}\t", "\u{a0}", "\r\t"] {
        let (entries, errors) = read(&format!("{blank}x\n"));
        assert_eq!(entries, []);
        assert_eq!(errors[0].problem, Problem::OptionWithoutUrl);
    }
}

#[test]
fn warnings_leave_the_entry() {
    let (entries, errors) = read("http://h/a\n  split=5\n");
    assert_eq!(entries.len(), 1);
    assert!(errors[0].problem.is_warning());
    assert!(!Problem::TooManyColumns.is_warning());
}

#[test]
fn an_entry_shows_no_secret() {
    let (entries, _) = read(
        "https://me:hush@h/a?signature=hush\thttps://hush@m/a#hush\n  header=Authorization: hush\n",
    );
    assert_eq!(*entries[0].headers, ["Authorization: hush"]);
    let shown = format!("{:?}", entries[0]);
    assert!(!shown.contains("hush"), "{shown}");
    assert!(shown.contains("https://h/a") && shown.contains("Authorization"), "{shown}");
}

#[test]
fn curl_headers_are_for_their_whole_group() {
    let (entries, errors) = read(
        "--url https://h/a\n-o a\nheader = \"X: y\"\nuser-agent = \"R (4.2)\"\nurl = https://h/b\n\
         output-dir = sub\nnext\nurl = https://h/c\n",
    );
    assert_eq!(errors, []);
    for entry in &entries[..2] {
        assert_eq!(*entry.headers, ["X: y", "User-Agent: R (4.2)"]);
        assert_eq!(entry.directory.as_deref(), Some("sub"));
    }
    assert_eq!((entries[2].headers.len(), entries[2].directory.clone()), (0, None));
}

#[test]
fn headers_have_a_limit() {
    let lines = |line: &str| format!("{line}\n").repeat(HEADERS_MAX + 1);
    for text in
        [format!("url = u\n{}", lines("-H a:b")), format!("http://u\n{}", lines("  header=a:b"))]
    {
        let (entries, errors) = read(&text);
        assert_eq!(entries[0].headers.len(), HEADERS_MAX);
        assert!(matches!(&errors[..], [ListError { problem: Problem::TooManyHeaders, .. }]));
    }
}

#[test]
fn a_curl_group_begins_with_its_first_url() {
    let (entries, errors) = read("-o x\nheader = A:1\nnext\nurl = u\n-:\nurl = v\n");
    assert_eq!((urls(&entries), errors), (vec!["u", "v"], vec![]));
    assert_eq!(entries[0].destination.as_deref(), Some("x"));
    assert_eq!((entries[0].headers.len(), entries[1].headers.len()), (1, 0));
}

#[test]
fn curl_options_may_be_letters() {
    let (entries, errors) = read(
        "-sSLo a\n--url https://h/a\n-ob\nurl = https://h/b\n-fO\nurl https://h/c\n-:\n-H X:1\nurl = u\n",
    );
    assert_eq!(errors, []);
    assert_eq!(urls(&entries), ["https://h/a", "https://h/b", "https://h/c", "u"]);
    let outputs: Vec<_> = entries.iter().map(|entry| entry.destination.as_deref()).collect();
    assert_eq!(outputs, [Some("a"), Some("b"), None, None]);
    assert_eq!(*entries[3].headers, ["X:1"]);
}

#[test]
fn curl_values_are_quoted_and_separated_as_curl_has_it() {
    let written = [
        ("url = \"https://h/a b\"", "https://h/a b"),
        ("url=\"a\\\\b\\\"c\\td\\ne\\rf\\vg\\xh\" trailing", "a\\b\"c\td\ne\rf\u{b}gxh"),
        ("  url := https://h/a trailing", "https://h/a"),
        ("url:https://h/a", "https://h/a"),
        ("--url \"not closed", "not closed"),
        ("--url =x", "=x"),
        ("--url \"=x\" -o y", "=x"),
    ];
    for (line, expected) in written {
        assert_eq!(urls(&read(line).0), [expected], "{line}");
    }
    let (entries, errors) = read("url\noutput = lost\n/ passed over\n* too\nurl = u\noutput = o\n");
    assert_eq!(urls(&entries), ["u"]);
    assert_eq!(entries[0].destination.as_deref(), Some("o"));
    assert_eq!(errors[0].problem, Problem::MissingValue { name: "url".to_owned() });
    assert_eq!(errors.len(), 1);
}

#[test]
fn what_a_curl_file_asks_in_vain_is_said() {
    let (entries, errors) = read(
        "url = http://h/{a,b}\nurl = http://[::1]/a\n-g\nurl = http://h/[1-9]\n\
         user = me:hush\n-ume:hush\nfrobnicate = hush\n-H @file\n",
    );
    assert_eq!(entries.len(), 3);
    let unknown = |name: &str| Problem::UnknownOption { name: name.to_owned() };
    let problems: Vec<_> = errors.iter().map(|error| error.problem.clone()).collect();
    assert_eq!(
        problems,
        [Problem::Glob, unknown("user"), unknown("u"), unknown("frobnicate"), Problem::HeaderFile]
    );
}

#[test]
fn the_first_line_tells_the_form() {
    for curl in ["url = u", "-o x", "--url u", "next", "-:", "user-agent: x", "\u{feff}silent"] {
        let (entries, _) = read(&format!("{curl}\nurl = http://h/a\n"));
        assert_eq!(entries.last().unwrap().url, "http://h/a", "{curl}");
    }
    for own in
        ["http://h/url", "file:/a", "url://h/a", "h/a", "localhost:80/a", "- a", "file:///a b"]
    {
        assert_eq!(urls(&read(own).0), [own]);
    }
}

#[test]
fn a_long_curl_group_is_let_go_pair_by_pair() {
    let mut parser = ListParser::new();
    let (mut entries, mut errors) = (Vec::new(), Vec::new());
    let mut take = |text: &str| {
        let (some, wrong) = parser.line(text);
        entries.extend(some);
        errors.extend(wrong);
        entries.len()
    };
    take("header = \"X: y\"");
    let name = "n".repeat(2000);
    let mut given = 0;
    for number in 0..10_000 {
        take(&format!("url = http://h/{number}"));
        given = take(&format!("output = {name}{number}"));
    }
    assert!((5_000..10_000).contains(&given), "{given}");
    take("header = \"Z: late\"");
    entries.extend(parser.finish());
    assert_eq!(entries.len(), 10_000);
    for (number, entry) in entries.iter().enumerate() {
        assert_eq!(entry.url, format!("http://h/{number}"));
        assert!(entry.destination.as_deref().unwrap().ends_with(&format!("n{number}")));
        assert_eq!(entry.headers.len(), if number < given { 1 } else { 2 });
    }
    let late = Problem::LateOption { name: "header".to_owned() };
    assert_eq!(errors.iter().map(|error| &error.problem).collect::<Vec<_>>(), [&late]);
}

#[test]
fn urls_that_wait_for_outputs_have_a_limit() {
    let long = "p".repeat(10_000);
    let mut text: String = (0..2_000).map(|n| format!("url = http://h/{long}/{n}\n")).collect();
    text.extend((0..2_000).map(|n| format!("output = {n}\n")));
    text.push_str("next\nurl = http://h/after\n");
    let (mut entries, errors) = read(&text);
    assert_eq!(entries.pop().unwrap().url, "http://h/after");
    assert_eq!(entries.len() + errors.len(), 2_000);
    assert!(errors.iter().all(|error| error.problem == Problem::GroupTooLong));
    for entry in &entries {
        assert!(entry.url.ends_with(&format!("/{}", entry.destination.as_deref().unwrap())));
    }
}

#[test]
fn a_hundred_thousand_lines_hold_one_entry() {
    let mut parser = ListParser::new();
    for number in 0..100_000 {
        let (entries, errors) = parser.line(&format!("https://h/{number}\t{number}"));
        assert_eq!((entries.len(), errors.len()), (usize::from(number > 0), 0));
    }
    assert_eq!(parser.finish().len(), 1);
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
    fn no_curl_file_panics(lines in prop::collection::vec("(url|output|-o|-O|-H|next|--|-)[ =:]{0,2}.{0,20}", 0..20)) {
        read(&format!("url = u\n{}", lines.join("\n")));
    }

    #[test]
    fn any_text_survives_curls_quotes(url in "[^\\p{Cc}]{1,40}", output in "[^\r\n]{1,40}") {
        let quoted = |text: &str| {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\t', "\\t");
            text.replace('\u{b}', "\\v")
        };
        let text = format!("url = \"{}\"\noutput = \"{}\"\n", quoted(&url), quoted(&output));
        let mut parser = ListParser::new();
        for line in text.split_inclusive('\n') {
            parser.line(line);
        }
        let entries = parser.finish();
        prop_assert_eq!(&entries[0].url, &url);
        prop_assert_eq!(entries[0].destination.as_deref(), Some(output.as_str()));
    }

    #[test]
    fn our_own_lines_survive(
        path in "[!-~]{1,20}( [!-~]{1,20})?", name in "[a-z][a-z /]{0,20}[a-z]",
        bytes in prop::collection::vec(any::<u8>(), 32),
    ) {
        let url = format!("file:///{path}");
        let checksum = Digest::new(crate::digest::Algorithm::Sha256, &bytes).unwrap();
        let (entries, errors) = read(&format!("{url}\t{name}\t{checksum}"));
        prop_assert!(errors.is_empty());
        prop_assert_eq!(&entries[0].url, &url);
        prop_assert_eq!(entries[0].destination.as_deref(), Some(name.as_str()));
        prop_assert_eq!(entries[0].checksum, Some(checksum));
    }

    #[test]
    fn every_plain_url_comes_out(names in prop::collection::vec("[a-z]{1,8}", 0..50)) {
        let urls_in: Vec<_> = names.iter().map(|name| format!("https://h/{name}")).collect();
        let (entries, errors) = read(&urls_in.join("\n"));
        prop_assert!(errors.is_empty());
        prop_assert_eq!(urls(&entries), urls_in);
    }
}
