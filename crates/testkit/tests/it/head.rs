use crate::client::{Raw, get};
use std::io::{ErrorKind, Read as _};
use std::time::{Duration, Instant, SystemTime};
use trunkline_testkit::{Fault, Gate, Origin, Reply, Resource};

fn origin() -> Origin {
    let origin = Origin::http();
    origin.put("/f", Resource::new("file"));
    origin
}

#[test]
fn statuses_come_as_scripted_and_then_the_file() {
    let origin = origin();
    origin
        .script("/f")
        .once(Fault::Status(500))
        .then(Fault::RetryAfter(503, 7))
        .then(Fault::RetryAfterDate(429, 60))
        .then(Fault::Answer(Box::new(Reply::new(418).header("x-tea", "pot").body("short"))))
        .then(Fault::HtmlPage)
        .pass(1)
        .always(Fault::Status(410));
    assert_eq!(get(&origin, "/f").unwrap().status, 500);
    assert_eq!(get(&origin, "/f").unwrap().header("retry-after"), Some("7"));
    let date = get(&origin, "/f").unwrap();
    let at = httpdate_parse(date.header("retry-after").unwrap());
    let wait = at.duration_since(SystemTime::now()).unwrap();
    assert!(wait > Duration::from_secs(50) && wait <= Duration::from_secs(60));
    let tea = get(&origin, "/f").unwrap();
    assert_eq!((tea.status, tea.header("x-tea"), &tea.body[..]), (418, Some("pot"), &b"short"[..]));
    let page = get(&origin, "/f").unwrap();
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html")));
    assert_eq!(get(&origin, "/f").unwrap().body, b"file");
    for _ in 0..3 {
        assert_eq!(get(&origin, "/f").unwrap().status, 410);
    }
    assert_eq!(get(&origin, "/none").unwrap().status, 404);
}

fn httpdate_parse(text: &str) -> SystemTime {
    httpdate::parse_http_date(text).unwrap()
}

#[test]
fn what_is_required_must_be_equal_to_the_byte() {
    let origin = origin();
    origin.script("/f").also(Fault::RequireAuthorization("Basic YTpi".into()));
    origin.script("/f").also(Fault::RequireUserAgent("R (4.2.2)".into()));
    let with = |fields| Raw::connect(&origin).request("GET", "/f", fields).unwrap();
    let refused = with("user-agent: R (4.2.2)\r\n");
    assert_eq!(refused.status, 401);
    assert!(refused.header("www-authenticate").unwrap().starts_with("Basic"));
    assert_eq!(with("authorization: Basic YTpi\r\nuser-agent: R\r\n").status, 403);
    assert_eq!(with("authorization: Basic YTpi\r\nuser-agent: R (4.2.2)\r\n").status, 200);
}

#[test]
fn redirects_loop_chain_cross_and_expire() {
    let (origin, other) = (origin(), origin());
    origin.script("/loop").always(Fault::Redirect(302, "/loop".into()));
    origin.redirect_chain("/hop", 2, "/f");
    origin.script("/across").always(Fault::Redirect(307, other.url("/f")));
    origin.script("/once").once(Fault::Redirect(302, "/f".into())).always(Fault::Status(410));
    let location = |path| {
        let response = get(&origin, path).unwrap();
        response.header("location").map(ToOwned::to_owned)
    };
    assert_eq!(location("/loop").as_deref(), Some("/loop"));
    assert_eq!(location("/hop/0").as_deref(), Some("/hop/1"));
    assert_eq!(location("/hop/1").as_deref(), Some("/f"));
    assert_eq!(location("/across"), Some(other.url("/f")));
    assert_eq!(location("/once").as_deref(), Some("/f"));
    assert_eq!(get(&origin, "/once").unwrap().status, 410);
}

#[test]
fn heads_can_be_bombs_and_floods() {
    let origin = origin();
    origin
        .script("/f")
        .once(Fault::HeaderCount(10_000))
        .then(Fault::HeaderSize(1 << 20))
        .then(Fault::Interim(50))
        .then(Fault::BadStatusLine);
    let many = get(&origin, "/f").unwrap();
    assert_eq!(many.head.matches("x-filler-").count(), 10_000);
    assert_eq!(get(&origin, "/f").unwrap().header("x-filler").unwrap().len(), 1 << 20);
    let mut raw = Raw::connect(&origin);
    assert_eq!(raw.get("/f").unwrap().status, 103);
    for _ in 1..50 {
        assert_eq!(raw.response(false).unwrap().status, 103);
    }
    assert_eq!(raw.response(false).unwrap().body, b"file");
    assert!(get(&origin, "/f").unwrap().head.starts_with("HTTQ"));
}

#[test]
fn no_head_comes_when_the_script_says_so() {
    let origin = origin();
    origin
        .script("/f")
        .once(Fault::CloseBeforeHead)
        .then(Fault::ResetBeforeHead)
        .then(Fault::NeverAnswer);
    assert_eq!(get(&origin, "/f").unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(get(&origin, "/f").unwrap_err().kind(), ErrorKind::ConnectionReset);
    let mut raw = Raw::connect(&origin);
    raw.tcp.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert_eq!(raw.get("/f").unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(raw);
    origin.block_until(|counters| counters.requests_open == 0 && counters.connections_open == 0);
}

#[test]
fn heads_wait_for_time_or_for_the_gate() {
    let origin = origin();
    let gate = Gate::new();
    let delay = Duration::from_millis(80);
    origin.script("/f").once(Fault::DelayHead(delay)).then(Fault::HoldHead(gate.clone()));
    let started = Instant::now();
    assert_eq!(get(&origin, "/f").unwrap().status, 200);
    assert!(started.elapsed() >= delay);
    let mut raw = Raw::connect(&origin);
    raw.send("GET /f HTTP/1.1\r\nhost: x\r\n\r\n");
    origin.block_until(|counters| counters.requests_open == 1);
    assert!(origin.requests()[1].status.is_none());
    gate.open();
    assert_eq!(raw.response(false).unwrap().body, b"file");
}

#[test]
fn faults_combine_and_patterns_cover() {
    let origin = origin();
    origin.put("/dir/x", Resource::new("0123456789"));
    let both = Fault::Chunked.and(Fault::CutAfter(3)).and(Fault::HeaderCount(2));
    origin.script("/dir/*").once(both);
    let response = get(&origin, "/dir/x").unwrap();
    assert_eq!(response.head.matches("x-filler-").count(), 2);
    assert_eq!(response.body, b"3\r\n012\r\n");
    assert_eq!(get(&origin, "/f").unwrap().status, 200);
    origin.script("*").always(Fault::Status(503));
    assert_eq!(get(&origin, "/f").unwrap().status, 503);
    origin.script("*").clear();
    assert_eq!(get(&origin, "/f").unwrap().status, 200);
}

#[test]
fn handlers_answer_by_code_and_see_query_and_body() {
    let origin = origin();
    origin.handle("/api/*", |request, body| {
        let text = format!("{} {:?} {}", request.path, request.query, body.len());
        Reply::new(200).body(text)
    });
    let mut raw = Raw::connect(&origin);
    raw.send("POST /api/x?a=1 HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc");
    assert_eq!(raw.response(false).unwrap().body, b"/api/x Some(\"a=1\") 3");
}

#[test]
fn a_client_that_sends_no_http_is_let_go() {
    let origin = origin();
    let mut raw = Raw::connect(&origin);
    raw.send("\u{1}\u{2}nonsense\r\n\r\n");
    let mut rest = Vec::new();
    let _ = raw.tcp.read_to_end(&mut rest);
    assert!(rest.is_empty());
    assert_eq!(get(&origin, "/f").unwrap().status, 200);
}
