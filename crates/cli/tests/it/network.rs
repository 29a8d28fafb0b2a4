use std::time::Duration;

use serde_json::Value;
use trunkline_testkit::{Authority, ConnectProxy, Fault, Origin, Resource, SocksProxy, bytes};

use crate::scene::{Scene, body, fill, list};

#[test]
fn no_more_connections_than_allowed() {
    for (flags, connections) in [(&["--max-connections", "2"][..], 2), (&[], 6)] {
        let (origin, scene) = (Origin::https_h1(), Scene::new());
        fill(&origin, 40);
        let _ = origin.script("*").always(Fault::DelayHead(Duration::from_millis(5)));
        let ca = scene.ca(&origin);
        let get = scene.get(&["-i", "-", "--cacert", &ca]).args(flags);
        get.input(list(&origin, 40)).succeed();
        let seen = origin.counters();
        assert_eq!(seen.connections_open_max, connections);
        assert_eq!(seen.connections_accepted, connections, "each is kept");
    }
}

#[test]
fn no_more_transfers_at_a_time_than_allowed() {
    let (origin, scene) = (Origin::https(), Scene::new());
    fill(&origin, 20);
    let ca = scene.ca(&origin);
    let get = scene.get(&["-i", "-", "--cacert", &ca, "--max-in-flight", "3"]);
    get.input(list(&origin, 20)).succeed();
    assert!(origin.counters().requests_open_max <= 3);
}

#[test]
fn many_files_share_connections_by_either_version() {
    for (flag, protocol) in [(None, "HTTP/2"), (Some("--http1.1"), "HTTP/1.1")] {
        let (origin, scene) = (Origin::https(), Scene::new());
        fill(&origin, 100);
        let ca = scene.ca(&origin);
        let get = scene.get(&["-i", "-", "--cacert", &ca]).args(flag.as_slice());
        get.input(list(&origin, 100)).succeed();
        assert!(origin.requests().iter().all(|request| request.head.protocol == protocol));
        assert_eq!(origin.counters().requests, 100);
        assert!(origin.counters().connections_accepted <= 6);
    }
}

#[test]
fn http2_works_in_clear_text_when_asked_for() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 3);
    let get = scene.get(&["-i", "-", "--http2-prior-knowledge"]);
    get.input(list(&origin, 3)).succeed();
    assert!(origin.requests().iter().all(|request| request.head.protocol == "HTTP/2"));
}

#[test]
fn the_rate_is_limited() {
    let (origin, scene) = (Origin::http(), Scene::new());
    origin.put("/f", Resource::new(bytes(1, 300_000)));
    let ran = scene.get(&["--json", "--limit-rate", "200k", &origin.url("/f")]).succeed();
    let text = ran.text();
    let summary: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let seconds = summary["seconds"].as_f64().unwrap();
    assert!(seconds > 1.0, "{seconds} s for a second and a half of bytes");
}

#[test]
fn a_private_ca_is_taken_from_flag_or_environment_in_this_order() {
    let (origin, scene) = (Origin::https(), Scene::new());
    fill(&origin, 1);
    let right = scene.ca(&origin);
    let wrong = scene.write("wrong.pem", Authority::new("another").pem());
    let folder = scene.path("certificates");
    scene.write("certificates/ca.pem", origin.ca_pem());
    let folder = folder.to_str().unwrap();
    let url = origin.url("/f0");
    let get = |flags: &[&str]| scene.get(&["--retry", "0", &url]).args(flags);
    get(&["--cacert", &right]).env("CURL_CA_BUNDLE", &wrong).env("SSL_CERT_FILE", &wrong).succeed();
    get(&["--cacert", &wrong]).env("CURL_CA_BUNDLE", &right).fail(4);
    get(&["--capath", folder]).succeed();
    get(&[]).env("CURL_CA_BUNDLE", &right).env("SSL_CERT_FILE", &wrong).succeed();
    get(&[]).env("CURL_CA_BUNDLE", &wrong).env("SSL_CERT_FILE", &right).fail(4);
    get(&[]).env("SSL_CERT_FILE", &right).succeed();
    get(&[]).env("SSL_CERT_DIR", folder).succeed();
    get(&[]).env("CURL_CA_BUNDLE", "").env("SSL_CERT_FILE", &right).succeed();
    get(&[]).fail(4);
}

#[test]
fn a_proxy_is_taken_from_flag_or_environment() {
    let (origin, scene) = (Origin::https(), Scene::new());
    fill(&origin, 1);
    let (ca, proxy) = (scene.ca(&origin), ConnectProxy::start());
    proxy.resolve("files.origin.test", origin.address());
    let url = origin.url_at("files.origin.test", "/f0");
    let get = || scene.get(&["--cacert", &ca, "--retry", "0", &url]);
    get().env("HTTPS_PROXY", proxy.url()).succeed();
    get().env("https_proxy", proxy.url()).env("HTTPS_PROXY", "http://127.0.0.1:1").succeed();
    get().env("ALL_PROXY", proxy.url()).succeed();
    get().args(&["--proxy", &proxy.url()]).env("HTTPS_PROXY", "http://127.0.0.1:1").succeed();
    let tunnels = proxy.tunnels();
    assert_eq!(tunnels.len(), 4);
    assert!(tunnels.iter().all(|tunnel| tunnel.tunnel && tunnel.by_name));
    assert_eq!(scene.read("f0"), body(0));
}

#[test]
fn the_upper_case_http_proxy_is_not_read() {
    let (origin, scene, proxy) = (Origin::http(), Scene::new(), ConnectProxy::start());
    fill(&origin, 1);
    let get = || scene.get(&[&origin.url("/f0")]);
    get().env("HTTP_PROXY", proxy.url()).succeed();
    assert_eq!(proxy.connections(), 0);
    get().env("http_proxy", proxy.url()).succeed();
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn some_hosts_need_no_proxy() {
    let (origin, scene, proxy) = (Origin::http(), Scene::new(), ConnectProxy::start());
    fill(&origin, 1);
    let url = origin.url("/f0");
    let get = |flags: &[&str]| scene.get(&[&url]).args(flags).env("http_proxy", proxy.url());
    for list in ["127.0.0.1", "other,127.0.0.0/8", "*", &origin.address().to_string()] {
        get(&[]).env("NO_PROXY", list).succeed();
        get(&[]).env("no_proxy", list).env("NO_PROXY", "other").succeed();
        get(&["--noproxy", list]).env("NO_PROXY", "other").succeed();
    }
    assert_eq!(proxy.connections(), 0);
    get(&[]).env("NO_PROXY", "other.test,10.0.0.0/8").succeed();
    get(&["--noproxy", ""]).env("NO_PROXY", "*").succeed();
    assert_eq!(proxy.connections(), 2);
}

#[test]
fn a_proxy_may_ask_for_a_password() {
    let (origin, scene) = (Origin::https(), Scene::new());
    fill(&origin, 1);
    let (ca, url) = (scene.ca(&origin), origin.url("/f0"));
    let (http, socks) =
        (ConnectProxy::with_credentials("me", "hush"), SocksProxy::with_credentials("me", "hush"));
    let get = || scene.get(&["--cacert", &ca, "--retry", "0", &url]);
    get().env("HTTPS_PROXY", http.url_with("me", "hush")).succeed();
    get().env("HTTPS_PROXY", socks.url_with("me", "hush")).succeed();
    assert_eq!((http.tunnels().len(), socks.tunnels().len()), (1, 1));
    get().env("HTTPS_PROXY", http.url()).fail(6);
}

#[test]
fn a_name_can_be_given_an_address() {
    let (origin, scene) = (Origin::https(), Scene::new());
    fill(&origin, 1);
    let (ca, port) = (scene.ca(&origin), origin.address().port());
    let rule = format!("files.origin.test:{port}:127.0.0.1");
    let url = origin.url_at("files.origin.test", "/f0");
    scene.get(&["--cacert", &ca, "--resolve", &rule, &url]).succeed();
    let record = &origin.connection_records()[0];
    assert_eq!(record.server_name.as_deref(), Some("files.origin.test"));
}

#[test]
fn a_unix_socket_stands_in_for_every_host() {
    let (origin, scene) = (Origin::builder().unix().start(), Scene::new());
    fill(&origin, 2);
    let path = origin.unix_path().unwrap().to_str().unwrap();
    let urls = ["http://localhost/f0", "http://any.host.test/f1"];
    scene.get(&["--unix-socket", path]).args(&urls).succeed();
    assert_eq!(scene.names("."), ["f0", "f1"]);
    assert_eq!(origin.requests_to("/f1")[0].head.header("host"), Some("any.host.test"));
}

#[test]
fn the_user_agent_is_sent_verbatim() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 1);
    let url = origin.url("/f0");
    scene.get(&[&url]).succeed();
    scene.get(&["-A", "R (4.5.0 x86_64)", &url]).succeed();
    let agents: Vec<_> = origin.requests().iter().map(|r| agent(&r.head)).collect();
    assert_eq!(agents, [concat!("trunkline/", env!("CARGO_PKG_VERSION")), "R (4.5.0 x86_64)"]);
}

fn agent(head: &trunkline_testkit::Received) -> String {
    head.header("user-agent").unwrap_or_default().to_owned()
}
