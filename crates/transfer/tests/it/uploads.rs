//! PUT and POST: from bytes, files and streams.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use trunkline_testkit::{Fault, StreamReset, bytes, sha256_hex};
use trunkline_transfer::{ErrorKind, Payload, PayloadSource, Reply, Request};
use trunkline_transport as transport;

use crate::bench::{Bench, Way};

const LARGE: usize = 3_000_000;
const WAYS: [Way; 2] = [Way::Http1, Way::Http2];

/// A payload in pieces, which counts how often it was begun.
struct Pieces {
    body: Bytes,
    opened: AtomicU64,
}

struct Rest(Bytes);

impl transport::BodySource for Rest {
    fn poll_chunk(&mut self, _cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.0.is_empty() {
            return Poll::Ready(None);
        }
        let piece = self.0.split_to(self.0.len().min(50_000));
        Poll::Ready(Some(Ok(piece)))
    }
}

impl PayloadSource for Pieces {
    fn length(&self) -> u64 {
        self.body.len() as u64
    }

    fn open(&self) -> io::Result<Box<dyn transport::BodySource>> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Rest(self.body.clone())))
    }
}

fn stream(body: &Bytes) -> Payload {
    Payload::Stream(Arc::new(Pieces { body: body.clone(), opened: AtomicU64::new(0) }))
}

async fn send(
    bench: &Bench,
    method: Method,
    payload: Payload,
) -> Result<Reply, trunkline_transfer::Error> {
    let mut request = Request::new(method, bench.url("/upload"));
    request.payload = payload;
    let work = bench.engine.send(request);
    tokio::time::timeout(Duration::from_secs(30), work).await.expect("it hangs")
}

fn assert_uploaded(bench: &Bench, body: &Bytes) {
    let uploads = bench.origin.uploads();
    assert_eq!(uploads.len(), 1);
    assert_eq!(uploads[0].len, body.len() as u64);
    if !body.is_empty() {
        assert_eq!(uploads[0].sha256, sha256_hex(body));
    }
}

#[tokio::test]
async fn bytes_files_and_streams_arrive_as_they_are() {
    for way in WAYS {
        for method in [Method::PUT, Method::POST] {
            for length in [0, 10, 100_000, LARGE] {
                let body = bytes(1, length);
                for kind in 0..3 {
                    let bench = Bench::new(way);
                    let payload = match kind {
                        0 => Payload::Bytes(body.clone()),
                        1 => {
                            std::fs::write(bench.destination(), &body).unwrap();
                            Payload::File(bench.destination())
                        }
                        _ => stream(&body),
                    };
                    let reply = send(&bench, method.clone(), payload).await.unwrap();
                    assert_eq!(reply.status, StatusCode::CREATED);
                    assert_uploaded(&bench, &body);
                    let head = &bench.origin.requests()[0].head;
                    if length > 0 {
                        let told = head.header("content-length").unwrap();
                        assert_eq!(told, length.to_string(), "{way:?} {kind}");
                    }
                    assert!(head.header("transfer-encoding").is_none());
                }
            }
        }
    }
}

#[tokio::test]
async fn a_large_body_asks_first_and_goes_when_it_may() {
    let bench = Bench::new(Way::Http1);
    let body = bytes(2, LARGE);
    send(&bench, Method::PUT, stream(&body)).await.unwrap();
    assert_eq!(bench.origin.requests()[0].head.header("expect"), Some("100-continue"));
    assert_uploaded(&bench, &body);
}

#[tokio::test]
async fn a_body_that_was_asked_for_and_refused_is_not_sent() {
    for status in [401, 403, 413, 417] {
        let bench = Bench::new(Way::Http1);
        let _ = bench.origin.script("/upload").always(Fault::EarlyAnswer(status));
        let reply = send(&bench, Method::PUT, stream(&bytes(3, LARGE))).await.unwrap();
        assert_eq!(reply.status.as_u16(), status);
        assert!(bench.origin.uploads().is_empty());
        let sent = bench.engine.stats_total().bytes_sent;
        assert!(sent < 10_000, "{status}: {sent} bytes were sent");
    }
}

#[tokio::test]
async fn an_early_answer_on_http2_is_the_answer() {
    let bench = Bench::new(Way::Http2);
    let _ = bench.origin.script("/upload").always(Fault::EarlyAnswer(413));
    let reply = send(&bench, Method::PUT, stream(&bytes(4, LARGE))).await.unwrap();
    assert_eq!(reply.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_server_that_is_silent_about_the_question_gets_the_body_all_the_same() {
    let bench = Bench::with(Way::Http1, |settings| {
        settings.patience.stall_timeout = Duration::from_secs(5);
    });
    let body = bytes(5, LARGE);
    let _ = bench.origin.script("/upload").always(Fault::IgnoreExpect);
    send(&bench, Method::PUT, stream(&body)).await.unwrap();
    assert_uploaded(&bench, &body);
}

#[tokio::test]
async fn a_file_that_shrinks_while_it_is_sent_is_a_local_error_and_never_a_shorter_file() {
    struct Liar(Bytes);
    impl PayloadSource for Liar {
        fn length(&self) -> u64 {
            self.0.len() as u64 + 10
        }
        fn open(&self) -> io::Result<Box<dyn transport::BodySource>> {
            Ok(Box::new(Rest(self.0.clone())))
        }
    }
    for way in WAYS {
        for length in [100_000, LARGE] {
            let bench = Bench::new(way);
            let payload = Payload::Stream(Arc::new(Liar(bytes(6, length))));
            let result = send(&bench, Method::PUT, payload).await;
            let error =
                assert_kind!(result, ErrorKind::Connection(transport::Error::RequestBody(_)));
            assert_eq!(error.attempts, 1, "{way:?}");
            assert!(bench.origin.uploads().is_empty(), "{way:?}");
        }
    }
}

#[tokio::test]
async fn a_file_that_is_not_there_is_a_local_error() {
    let bench = Bench::new(Way::Http1);
    let payload = Payload::File(bench.folder().join("missing"));
    assert_kind!(send(&bench, Method::PUT, payload).await, ErrorKind::File { .. });
    assert_eq!(bench.origin.counters().requests, 0);
}

#[tokio::test]
async fn an_upload_that_is_cut_is_sent_again_from_its_start_when_that_is_safe() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(7, LARGE);
        let _ = bench.origin.script("/upload").times(2, Fault::CutUploadAfter(500_000));
        let source = Arc::new(Pieces { body: body.clone(), opened: AtomicU64::new(0) });
        let payload = Payload::Stream(Arc::clone(&source) as Arc<dyn PayloadSource>);
        send(&bench, Method::PUT, payload)
            .await
            .unwrap_or_else(|error| panic!("{way:?}: {error:?}"));
        assert_uploaded(&bench, &body);
        assert_eq!(source.opened.load(Ordering::Relaxed), 3, "{way:?}");
    }
}

#[tokio::test]
async fn a_post_that_is_cut_is_not_sent_again() {
    for way in WAYS {
        let bench = Bench::new(way);
        let _ = bench.origin.script("/upload").once(Fault::CutUploadAfter(500_000));
        let result = send(&bench, Method::POST, stream(&bytes(8, LARGE))).await;
        let error = assert_kind!(result, ErrorKind::Connection(_));
        assert_eq!(error.attempts, 1, "{way:?}");
        assert_eq!(bench.origin.requests_to("/upload").len(), 1, "{way:?}");
    }
}

#[tokio::test]
async fn a_post_that_may_be_repeated_is() {
    let bench = Bench::new(Way::Http1);
    let _ = bench.origin.script("/upload").once(Fault::CutUploadAfter(50_000));
    let body = bytes(9, 100_000);
    let mut request = Request::new(Method::POST, bench.url("/upload"));
    request.payload = Payload::Bytes(body.clone());
    request.idempotent = true;
    bench.engine.send(request).await.unwrap();
    assert_uploaded(&bench, &body);
}

#[tokio::test]
async fn a_post_that_was_answered_by_nothing_is_not_repeated() {
    for fault in [Fault::CloseBeforeHead, Fault::ResetBeforeHead, Fault::Status(500)] {
        let bench = Bench::new(Way::Http1);
        let _ = bench.origin.script("/upload").once(fault.clone());
        let result = send(&bench, Method::POST, Payload::Bytes("x".into())).await;
        let error = result.unwrap_err();
        assert_eq!(error.attempts, 1, "{fault:?}: {error:?}");
        assert_eq!(bench.origin.requests_to("/upload").len(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_post_whose_stream_was_refused_unprocessed_is_repeated() {
    let bench = Bench::new(Way::Http2);
    let refused = Fault::ResetStream(StreamReset::Refused);
    let _ = bench.origin.script("/upload").times(2, refused);
    let body = bytes(10, 1000);
    send(&bench, Method::POST, Payload::Bytes(body.clone())).await.unwrap();
    assert_eq!(bench.origin.uploads().last().unwrap().sha256, sha256_hex(&body));
}

#[tokio::test]
async fn a_busy_server_gets_the_put_later() {
    for way in WAYS {
        let bench = Bench::new(way);
        let body = bytes(11, LARGE);
        let _ = bench.origin.script("/upload").times(2, Fault::Status(503));
        send(&bench, Method::PUT, stream(&body)).await.unwrap();
        assert_eq!(bench.origin.uploads().last().unwrap().sha256, sha256_hex(&body));
    }
}

#[tokio::test]
async fn a_status_that_says_no_is_an_answer() {
    let bench = Bench::new(Way::Http1);
    let _ = bench.origin.script("/upload").always(Fault::Status(409));
    let reply = send(&bench, Method::PUT, Payload::Bytes("x".into())).await.unwrap();
    assert_eq!(reply.status, StatusCode::CONFLICT);
    assert_eq!(&reply.body[..], b"scripted status\n");
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_a_typed_error() {
    for way in WAYS {
        for fault in [Fault::None, Fault::Chunked] {
            let bench = Bench::new(way);
            bench.put(&bytes(12, 100_000));
            let _ = bench.origin.script("/file").always(fault);
            let mut request = Request::new(Method::GET, bench.url("/file"));
            request.reply_bytes_max = 99_999;
            let result = bench.engine.send(request.clone()).await;
            assert_kind!(result, ErrorKind::TooLarge { bytes_max: 99_999 });
            request.reply_bytes_max = 100_000;
            assert_eq!(bench.engine.send(request).await.unwrap().body, bytes(12, 100_000));
        }
    }
}
