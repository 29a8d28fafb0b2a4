use crate::client::{H2, h2_reason};
use ::h2::Reason;
use http_body_util::BodyExt as _;
use std::time::Duration;
use trunkline_testkit::{ConnectionFault, Fault, Gate, Origin, Resource, StreamReset, bytes};

fn origin() -> Origin {
    let origin = Origin::https();
    origin.put("/f", Resource::new("file"));
    origin.put("/big", Resource::new(bytes(6, 300_000)));
    origin
}

#[tokio::test]
async fn many_streams_share_one_connection() {
    let origin = origin();
    let gate = Gate::new();
    origin.script("/f").times(10, Fault::HoldHead(gate.clone()));
    let h2 = H2::connect(&origin).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let mut send = h2.send.clone();
        let request = h2.request("GET", "/f", b"");
        tasks.spawn(async move { send.send_request(request).await.unwrap().status() });
    }
    origin.until(|counters| counters.streams_open_max == 10).await;
    gate.open();
    while let Some(status) = tasks.join_next().await {
        assert_eq!(status.unwrap(), 200);
    }
    let counters = origin.counters();
    assert_eq!((counters.connections_accepted, counters.requests), (1, 10));
    assert_eq!(origin.requests()[0].head.protocol, "HTTP/2");
}

#[tokio::test]
async fn bodies_and_ranges_are_exact() {
    let origin = origin();
    let mut h2 = H2::connect(&origin).await.unwrap();
    assert_eq!(h2.get("/big").await.unwrap().1.unwrap(), bytes(6, 300_000));
    let mut request = h2.request("GET", "/big", b"");
    request.headers_mut().insert("range", "bytes=5-9".parse().unwrap());
    let response = h2.send.send_request(request).await.unwrap();
    assert_eq!(response.status(), 206);
    assert_eq!(response.headers()["content-range"], "bytes 5-9/300000");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, &bytes(6, 300_000)[5..10]);
}

#[tokio::test]
async fn a_preface_in_plaintext_is_understood() {
    let origin = Origin::http();
    origin.put("/f", Resource::new("file"));
    let tcp = tokio::net::TcpStream::connect(origin.address()).await.unwrap();
    let mut h2 = H2::over(tcp, &origin).await.unwrap();
    assert_eq!(h2.get("/f").await.unwrap().1.unwrap(), "file");
}

#[tokio::test]
async fn go_away_serves_the_first_streams_and_drops_the_rest_unread() {
    let origin = origin();
    origin.connections().once(ConnectionFault::GoAwayAfter(3));
    let h2 = H2::connect(&origin).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let mut send = h2.send.clone();
        let request = h2.request("GET", "/f", b"");
        tasks.spawn(async move {
            let response = send.send_request(request).await?;
            response.into_body().collect().await.map(|_| ())
        });
    }
    let mut served = 0;
    while let Some(result) = tasks.join_next().await {
        match result.unwrap() {
            Ok(()) => served += 1,
            Err(error) => assert!(
                error.is_canceled() || matches!(h2_reason(&error), Some(Reason::NO_ERROR)),
                "{error:?}"
            ),
        }
    }
    assert_eq!(served, 3);
    assert_eq!(origin.counters().requests, 3);
    origin.until(|counters| counters.connections_open == 0).await;
}

#[tokio::test]
async fn streams_are_reset_before_or_within_the_body() {
    let origin = origin();
    origin
        .script("/big")
        .times(2, Fault::ResetStream(StreamReset::Refused))
        .then(Fault::ResetStreamAfter(100_000, StreamReset::Internal))
        .then(Fault::BadChunkSize(5));
    let mut h2 = H2::connect(&origin).await.unwrap();
    for _ in 0..2 {
        let error = h2.get("/big").await.unwrap_err();
        assert_eq!(h2_reason(&error), Some(Reason::REFUSED_STREAM));
    }
    let request = h2.request("GET", "/big", b"");
    let mut body = h2.send.send_request(request).await.unwrap().into_body();
    let mut received = 0;
    let error = loop {
        match body.frame().await.unwrap() {
            Ok(frame) => received += frame.into_data().unwrap().len(),
            Err(error) => break error,
        }
    };
    assert_eq!(h2_reason(&error), Some(Reason::INTERNAL_ERROR));
    assert!(received <= 100_000);
    let error = h2.get("/big").await.unwrap().1.unwrap_err();
    assert_eq!(h2_reason(&error), Some(Reason::PROTOCOL_ERROR));
    // The connection is none the worse for it.
    assert_eq!(h2.get("/big").await.unwrap().1.unwrap().len(), 300_000);
    origin.until(|counters| counters.requests_open == 0).await;
}

#[tokio::test]
async fn a_cut_ends_the_whole_connection_at_that_byte() {
    let origin = origin();
    origin.script("/big").once(Fault::CutAfter(40_000)).then(Fault::CloseBeforeHead);
    let mut h2 = H2::connect(&origin).await.unwrap();
    assert!(h2.get("/big").await.unwrap().1.is_err());
    origin.until(|counters| counters.connections_open == 0).await;
    assert_eq!(origin.counters().body_bytes_sent, 40_000);
    let mut h2 = H2::connect(&origin).await.unwrap();
    let error = h2.get("/big").await.unwrap_err();
    // The end of the connection, not of the stream.
    assert_ne!(h2_reason(&error), Some(Reason::INTERNAL_ERROR));
    origin.until(|counters| counters.connections_open == 0).await;
}

#[tokio::test]
async fn a_connection_closes_after_its_responses_without_a_word() {
    let origin = origin();
    origin.connections().once(ConnectionFault::CloseAfterResponses(2));
    origin.script("/f").pass(2).then(Fault::CloseAfterResponse);
    for responses in [2, 1] {
        let mut h2 = H2::connect(&origin).await.unwrap();
        for _ in 0..responses {
            assert_eq!(h2.get("/f").await.unwrap().1.unwrap(), "file");
        }
        origin.until(|counters| counters.connections_open == 0).await;
    }
}

#[tokio::test]
async fn garbage_in_place_of_frames_fails_the_connection() {
    let origin = origin();
    origin.connections().always(ConnectionFault::GarbageH2);
    let failed = match H2::connect(&origin).await {
        Ok(mut h2) => h2.get("/f").await.is_err(),
        Err(_) => true,
    };
    assert!(failed);
    assert_eq!(origin.counters().requests, 0);
}

#[tokio::test]
async fn lengths_lie_and_heads_swell_over_h2_too() {
    let origin = origin();
    origin
        .script("/f")
        .once(Fault::LengthTooLong(1))
        .then(Fault::LengthTooShort(1))
        .then(Fault::NoLength)
        .then(Fault::HeaderCount(10_000))
        .then(Fault::Interim(20));
    let mut h2 = H2::connect(&origin).await.unwrap();
    for length in ["5", "3"] {
        // A client that checks refuses the stream at once or at its end.
        if let Ok((parts, body)) = h2.get("/f").await {
            assert_eq!(parts.headers["content-length"], length);
            assert!(body.is_err());
        }
    }
    let (parts, body) = h2.get("/f").await.unwrap();
    assert_eq!((parts.headers.get("content-length"), body.unwrap()), (None, "file".into()));
    let (parts, _) = h2.get("/f").await.unwrap();
    assert!(parts.headers.len() > 10_000);
    assert_eq!(h2.get("/f").await.unwrap().1.unwrap(), "file");
}

#[tokio::test]
async fn silence_ends_when_the_client_resets_the_stream() {
    let origin = origin();
    origin.script("/f").once(Fault::NeverAnswer);
    origin.script("/big").once(Fault::StallAfter(10));
    let mut h2 = H2::connect(&origin).await.unwrap();
    let answer = tokio::time::timeout(Duration::from_millis(100), h2.get("/f")).await;
    assert!(answer.is_err());
    origin.until(|counters| counters.requests_open == 0).await;
    let answer = tokio::time::timeout(Duration::from_millis(100), h2.get("/big")).await;
    assert!(answer.is_err());
    origin.until(|counters| counters.requests_open == 0).await;
}

#[tokio::test]
async fn uploads_arrive_whole_or_are_cut() {
    let origin = origin();
    origin.script("/u").pass(1).then(Fault::EarlyAnswer(403)).then(Fault::CutUploadAfter(1_000));
    let mut h2 = H2::connect(&origin).await.unwrap();
    let body = bytes(8, 2_500_000);
    let send = h2.send.send_request(h2.request("PUT", "/u", &body));
    assert_eq!(send.await.unwrap().status(), 201);
    assert_eq!(origin.uploads()[0].body, body);
    let send = h2.send.send_request(h2.request("PUT", "/u", &body));
    assert_eq!(send.await.unwrap().status(), 403);
    assert!(h2.send.send_request(h2.request("PUT", "/u", &body)).await.is_err());
    origin.until(|counters| counters.connections_open == 0).await;
}
