use crate::client::{H2, client_config, tls};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use trunkline_testkit::{Authority, Origin, Resource};

async fn get(origin: &Origin, config: std::sync::Arc<rustls::ClientConfig>) -> String {
    let mut stream = tls(origin, config).await.unwrap();
    stream.write_all(b"GET /f HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn handshakes_are_counted_as_full_and_resumed() {
    let origin = Origin::https();
    origin.put("/f", Resource::new("file"));
    let config = client_config(&origin, &["http/1.1"], None);
    for _ in 0..3 {
        assert!(get(&origin, config.clone()).await.ends_with("file"));
    }
    let counters = origin.counters();
    assert_eq!((counters.handshakes_full, counters.handshakes_resumed), (1, 2));
    let first = &origin.connection_records()[0];
    assert_eq!(first.alpn.as_deref(), Some("http/1.1"));
    assert_eq!((first.server_name.as_deref(), first.resumed), (Some("localhost"), Some(false)));
}

#[tokio::test]
async fn resumption_can_be_turned_off() {
    let origin = Origin::builder().tls().without_resumption().start();
    origin.put("/f", Resource::new("file"));
    let config = client_config(&origin, &["http/1.1"], None);
    for _ in 0..2 {
        get(&origin, config.clone()).await;
    }
    assert_eq!(origin.counters().handshakes_full, 2);
}

#[tokio::test]
async fn tls_1_2_only_is_that() {
    let origin = Origin::builder().tls().tls12_only().start();
    let stream = tls(&origin, client_config(&origin, &["h2"], None)).await.unwrap();
    assert_eq!(stream.get_ref().1.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_2));
}

#[tokio::test]
async fn alpn_chooses_the_protocol() {
    let both = Origin::https();
    let h1 = Origin::https_h1();
    let chosen = async |origin: &Origin| {
        let stream = tls(origin, client_config(origin, &["h2", "http/1.1"], None)).await.unwrap();
        stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec)
    };
    assert_eq!(chosen(&both).await.as_deref(), Some(&b"h2"[..]));
    assert_eq!(chosen(&h1).await.as_deref(), Some(&b"http/1.1"[..]));
}

#[tokio::test]
async fn only_clients_with_the_right_certificate_get_in() {
    let clients = Authority::new("clients");
    let origin = Origin::builder().tls().require_client_certificate(&clients).start();
    origin.put("/f", Resource::new("file"));
    let identity = clients.client("robot");
    let config = client_config(&origin, &["h2"], Some(&identity));
    let stream = tls(&origin, config).await.unwrap();
    let mut h2 = H2::over(stream, &origin).await.unwrap();
    assert_eq!(h2.get("/f").await.unwrap().1.unwrap(), "file");
    assert!(origin.connection_records()[0].client_certificate);

    let stranger = Authority::new("others").client("robot");
    for identity in [None, Some(&stranger)] {
        let config = client_config(&origin, &["http/1.1"], identity);
        // In TLS 1.3 the client may learn of the refusal only when it reads.
        if let Ok(mut stream) = tls(&origin, config).await {
            assert!(stream.read_u8().await.is_err());
        }
    }
    origin.until(|counters| counters.handshakes_failed == 2).await;
}

#[tokio::test]
async fn certificates_can_be_expired_or_for_another_name() {
    let authority = Authority::new("ours");
    let wrong = [authority.expired_server(), authority.server_for(&["elsewhere.test"])];
    for identity in wrong {
        let origin = Origin::builder().identity(&authority, identity).start();
        let result = tls(&origin, client_config(&origin, &["h2"], None)).await;
        assert!(result.unwrap_err().to_string().contains("certificate"));
    }
}
