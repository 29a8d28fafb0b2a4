use crate::client::{PATIENCE, connect, h2, loopback, post};
use ::http::{Request, Response};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;
use trunkline_listen::{Drain, RequestBody, Server};

#[tokio::test]
async fn what_is_under_way_finishes_and_idle_connections_end() {
    let listener = loopback();
    let address = listener.tcp_address().unwrap();
    let drain = Drain::new(PATIENCE);
    let (asked, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (told, wait) = (asked.clone(), go_on.clone());
    let service = move |request: Request<RequestBody>| {
        let (told, wait) = (told.clone(), wait.clone());
        async move {
            if request.uri().path() == "/slow" {
                told.notify_one();
                wait.notified().await;
            }
            Response::new(Full::from(Bytes::from_static(b"done")))
        }
    };
    let watched = drain.clone();
    let serving =
        tokio::spawn(async move { Server::new(listener).serve_http(&watched, service).await });

    let mut idle = connect(address).await;
    idle.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut byte = [0; 256];
    assert!(idle.read(&mut byte).await.unwrap() > 0);
    let mut slow = connect(address).await;
    slow.write_all(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    asked.notified().await;

    drain.start();
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).await.unwrap();
    go_on.notify_one();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("done"), "{answer}");
    let drained = serving.await.unwrap();
    assert_eq!((drained.finished, drained.cut_off), (2, 0));
}

#[tokio::test]
async fn an_h2_stream_under_way_finishes_and_the_connection_ends() {
    let listener = loopback();
    let address = listener.tcp_address().unwrap();
    let drain = Drain::new(PATIENCE);
    let (asked, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (told, wait) = (asked.clone(), go_on.clone());
    let service = move |_request: Request<RequestBody>| {
        let (told, wait) = (told.clone(), wait.clone());
        async move {
            told.notify_one();
            wait.notified().await;
            Response::new(Full::from(Bytes::from_static(b"done")))
        }
    };
    let watched = drain.clone();
    let serving =
        tokio::spawn(async move { Server::new(listener).serve_http(&watched, service).await });
    let mut send = h2(connect(address).await).await;
    let answer = tokio::spawn(send.send_request(post(b"")));
    asked.notified().await;
    drain.start();
    go_on.notify_one();
    let body = answer.await.unwrap().unwrap().into_body();
    assert_eq!(body.collect().await.unwrap().to_bytes(), "done");
    // The client keeps its side: the end is ours.
    assert_eq!(serving.await.unwrap().cut_off, 0);
    assert!(send.send_request(post(b"")).await.is_err());
}

#[tokio::test]
async fn what_does_not_finish_is_cut_off_at_the_deadline() {
    let listener = loopback();
    let address = listener.tcp_address().unwrap();
    let drain = Drain::new(Duration::from_millis(50));
    let watched = drain.clone();
    let begun = Arc::new(Notify::new());
    let told = begun.clone();
    let serving = tokio::spawn(async move {
        Server::new(listener)
            .serve_streams(&watched, move |_stream| {
                told.notify_one();
                std::future::pending()
            })
            .await
    });
    let mut client = connect(address).await;
    begun.notified().await;
    drain.start();
    let drained = tokio::time::timeout(PATIENCE, serving).await.unwrap().unwrap();
    assert_eq!((drained.finished, drained.cut_off), (0, 1));
    assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_session_that_panics_does_not_take_the_others_along() {
    let listener = loopback();
    let address = listener.tcp_address().unwrap();
    let drain = Drain::new(PATIENCE);
    let watched = drain.clone();
    let serving = tokio::spawn(async move {
        Server::new(listener)
            .serve_streams(&watched, |mut stream| async move {
                let byte = stream.read_u8().await.unwrap();
                assert_ne!(byte, b'!', "asked to panic");
                stream.write_u8(byte).await.unwrap();
            })
            .await
    });
    let mut bad = connect(address).await;
    bad.write_u8(b'!').await.unwrap();
    assert!(bad.read_u8().await.is_err());
    let mut good = connect(address).await;
    good.write_u8(b'g').await.unwrap();
    assert_eq!(good.read_u8().await.unwrap(), b'g');
    drain.start();
    assert_eq!(serving.await.unwrap().finished, 2);
}
