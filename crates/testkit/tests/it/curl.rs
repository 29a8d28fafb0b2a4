//! curl as the judge of what the kit speaks. Skipped where curl is not installed.

use std::process::{Command, Output};
use trunkline_testkit::{
    ConnectProxy, ConnectionFault, Fault, Origin, Resource, SocksProxy, bytes, temp_dir,
};

/// curl's exit codes.
const PARTIAL_FILE: i32 = 18;
const SEND_OR_RECEIVE: [i32; 2] = [52, 56];
const TOO_MANY_REDIRECTS: i32 = 47;

fn curl(arguments: &[&str]) -> Option<Output> {
    let mut command = Command::new("curl");
    command.args(["-sS", "--noproxy", "", "--max-time", "20"]).args(arguments);
    for name in ["http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "no_proxy", "NO_PROXY"] {
        command.env_remove(name);
    }
    match command.output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            trunkline_testkit::judge::absent("curl");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn curl_gets_the_file_over_each_protocol() {
    let origin = Origin::https();
    let body = bytes(9, 200_000);
    origin.put("/f", Resource::new(body.clone()));
    let directory = temp_dir();
    let ca = directory.path().join("ca.pem");
    std::fs::write(&ca, origin.ca_pem()).unwrap();
    let ca = ca.to_str().unwrap();
    for protocol in ["--http1.1", "--http2"] {
        let Some(output) = curl(&[protocol, "--cacert", ca, &origin.url("/f")]) else { return };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.stdout, body);
    }
    let protocols: Vec<_> = origin.requests().iter().map(|r| r.head.protocol).collect();
    assert_eq!(protocols, ["HTTP/1.1", "HTTP/2"]);
}

#[test]
fn curl_names_the_faults_as_we_do() {
    let origin = Origin::http();
    origin.put("/f", Resource::new(bytes(9, 50_000)));
    origin
        .script("/f")
        .once(Fault::CutAfter(10_000))
        .then(Fault::ResetBeforeHead)
        .then(Fault::LengthTooLong(5))
        .then(Fault::NoFinalChunk)
        .then(Fault::BadChunkSize(100));
    origin.script("/loop").always(Fault::Redirect(302, "/loop".into()));
    let code = |path: &str| {
        curl(&["-L", "-o", "/dev/null", &origin.url(path)]).map(|output| output.status.code())
    };
    let Some(cut) = code("/f") else { return };
    assert_eq!(cut, Some(PARTIAL_FILE));
    let reset = code("/f").unwrap().unwrap();
    assert!(SEND_OR_RECEIVE.contains(&reset), "{reset}");
    assert_eq!(code("/f"), Some(Some(PARTIAL_FILE)));
    assert_eq!(code("/f"), Some(Some(PARTIAL_FILE)));
    assert_eq!(code("/f"), Some(Some(56)));
    assert_eq!(code("/f"), Some(Some(0)));
    assert_eq!(code("/loop"), Some(Some(TOO_MANY_REDIRECTS)));
}

#[test]
fn curl_survives_go_away_and_resumes_tls() {
    let origin = Origin::https();
    origin.put("/f", Resource::new("file"));
    origin.connections().once(ConnectionFault::GoAwayAfter(2));
    let directory = temp_dir();
    let ca = directory.path().join("ca.pem");
    std::fs::write(&ca, origin.ca_pem()).unwrap();
    let url = origin.url("/f");
    let mut arguments = vec!["--http2", "--cacert", ca.to_str().unwrap()];
    arguments.extend([url.as_str(); 5]);
    let Some(output) = curl(&arguments) else { return };
    assert_eq!(output.stdout, b"filefilefilefilefile", "{output:?}");
    assert_eq!(origin.counters().connections_accepted, 2);
}

#[test]
fn curl_gets_through_the_proxies() {
    let origin = Origin::http();
    origin.put("/f", Resource::new("file"));
    let http = ConnectProxy::with_credentials("user", "pass");
    let socks = SocksProxy::with_credentials("user", "pass");
    let url = origin.url("/f");
    for proxy in [http.url_with("user", "pass"), socks.url_with("user", "pass")] {
        let Some(output) = curl(&["--proxytunnel", "--proxy", &proxy, &url]) else { return };
        assert_eq!(output.stdout, b"file", "{output:?}");
    }
    assert!(http.tunnels().iter().all(|tunnel| tunnel.tunnel));
    assert_eq!(socks.tunnels().len(), 1);
}
