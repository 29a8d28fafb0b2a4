use trunkline_testkit::{Authority, ConnectProxy, Fault, Origin, Resource, TokenIssuer, bytes};

use crate::scene::{Invocation, Scene, body, fill};

/// `me:hush!` in Base64.
const BASIC: &str = "Basic bWU6aHVzaCE=";

/// An origin whose `/f0` wants `me` and `hush!`.
fn guarded() -> Origin {
    let origin = Origin::http();
    fill(&origin, 1);
    let _ = origin.script("/f0").always(Fault::RequireAuthorization(BASIC.to_owned()));
    origin
}

#[test]
fn a_password_comes_from_a_file_a_descriptor_or_standard_input() {
    let (origin, scene) = (guarded(), Scene::new());
    let path = scene.write("password", "hush!\nsecond line\n");
    let url = origin.url("/f0");
    let get = |flags: &[&str]| scene.get(&["-u", "me", &url]).args(flags);
    get(&["--password", &format!("+{path}")]).succeed();
    get(&["--password", "-0"]).input("hush!\n").succeed();
    get(&["--password", "-"]).input("hush!\n").succeed();
    get(&[]).input("hush!\n").succeed();
    get(&["--password", "hush!"]).succeed();
    get(&["--password", "+/no/such/file"]).fail(2);
    get(&["--password", "wrong"]).fail(6);
}

#[test]
fn a_password_may_stand_in_the_url() {
    let (origin, scene) = (guarded(), Scene::new());
    let url = origin.url("/f0").replace("http://", "http://me:hush%21@");
    scene.get(&[&url]).succeed();
    assert_eq!(scene.read("f0"), body(0));
}

#[test]
fn netrc_is_read_when_asked_for() {
    let (origin, scene) = (guarded(), Scene::new());
    let entry = "machine 127.0.0.1\n login me\n password hush!\n";
    let (home, other) = (scene.write(".netrc", entry), scene.write("other", entry));
    let wrong = scene.write("wrong", "machine 127.0.0.1 login me password no\n");
    let url = origin.url("/f0");
    let get = |flags: &[&str]| scene.get(&[&url]).args(flags);
    get(&[]).fail(6);
    get(&["--netrc"]).succeed();
    get(&["--netrc"]).env("NETRC", &wrong).fail(6);
    get(&["--netrc-file", &other]).env("NETRC", &wrong).succeed();
    std::fs::remove_file(home).unwrap();
    get(&["--netrc"]).env("NETRC", &other).succeed();
    get(&["--netrc"]).fail(6);
    get(&["--netrc-file", "no-such-file"]).fail(2);
}

#[test]
fn the_command_line_goes_before_the_url_and_the_url_before_netrc() {
    let (origin, scene) = (guarded(), Scene::new());
    scene.write(".netrc", "machine 127.0.0.1 login me password no\n");
    let (plain, with_user) =
        (origin.url("/f0"), origin.url("/f0").replace("http://", "http://me:hush%21@"));
    scene.get(&["--netrc", &with_user]).succeed();
    scene.get(&["--netrc", "-u", "me:hush!", &plain]).succeed();
    scene.get(&["-u", "me:no", &with_user]).fail(6);
}

#[test]
fn tokens_are_sent_and_fetched() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 2);
    let _ = origin.script("/f0").always(Fault::RequireAuthorization("Bearer abc".to_owned()));
    let token = scene.write("token", "abc\n");
    scene.get(&["--token", &format!("+{token}"), &origin.url("/f0")]).succeed();

    let issuer = TokenIssuer::new("the-client", "the-secret");
    origin.token_endpoint("/token", &issuer);
    let _ = origin.script("/f1").always(Fault::RequireBearer(issuer));
    let (endpoint, secret) = (origin.url("/token"), scene.write("secret", "the-secret"));
    let get = |secret: &str| {
        let flags = ["--oauth2", &endpoint, "--client-id", "the-client", "--client-secret", secret];
        scene.get(&[&origin.url("/f1")]).args(&flags)
    };
    get(&format!("+{secret}")).succeed();
    get("wrong").fail(6);
}

#[test]
fn headers_come_from_the_command_line_and_from_files() {
    let (origin, scene) = (Origin::http(), Scene::new());
    fill(&origin, 1);
    scene.write("headers", "X-From-File: one\nX-Token:two\n");
    scene.get(&["-H", "@headers", "-H", "X-Typed: three", &origin.url("/f0")]).succeed();
    let head = &origin.requests()[0].head;
    let sent = ["x-from-file", "x-token", "x-typed"].map(|name| head.header(name));
    assert_eq!(sent, [Some("one"), Some("two"), Some("three")]);
    scene.get(&["-H", "@no-such-file", &origin.url("/f0")]).fail(2);
}

#[test]
fn nothing_private_follows_a_redirect_to_another_origin() {
    let (first, second, scene) = (Origin::http(), Origin::http(), Scene::new());
    fill(&second, 1);
    first.redirect_chain("/hop", 2, &second.url("/f0"));
    scene.write(".netrc", "machine elsewhere.test login x password y\n");
    let flags = ["-u", "me:hush!", "-H", "X-Private: yes", "-H", "Cookie: a=b", "--netrc"];
    scene.get(&["-o", "f", &first.url("/hop/0")]).args(&flags).succeed();
    for request in first.requests() {
        assert_eq!(request.head.header("authorization"), Some(BASIC), "{}", request.head.path);
        assert_eq!(request.head.header("x-private"), Some("yes"));
    }
    let head = &second.requests()[0].head;
    for private in ["authorization", "x-private", "cookie"] {
        assert_eq!(head.header(private), None, "{private}");
    }
    assert!(head.header("user-agent").is_some());
}

#[test]
fn a_client_certificate_is_shown() {
    let (scene, users) = (Scene::new(), Authority::new("users"));
    let origin = Origin::builder().tls().require_client_certificate(&users).start();
    fill(&origin, 1);
    let user = users.client("me");
    let both = scene.write("both.pem", format!("{}{}", user.chain_pem, user.key_pem));
    let (chain, key) =
        (scene.write("chain.pem", user.chain_pem), scene.write("key.pem", user.key_pem));
    let (ca, url) = (scene.ca(&origin), origin.url("/f0"));
    let get = |flags: &[&str]| scene.get(&["--cacert", &ca, "--retry", "0", &url]).args(flags);
    get(&["--cert", &both]).succeed();
    get(&["--cert", &chain, "--key", &key]).succeed();
    // TLS 1.3 tells of a missing certificate only after the handshake, and the word may be lost
    // when the connection is closed on it.
    assert!(matches!(get(&[]).run().code(), 3 | 4));
    assert!(matches!(get(&[&origin.url("/other")]).run().code(), 3 | 4), "over HTTP/2");
    get(&["--cert", "no-such-file"]).fail(2);
    assert!(origin.connection_records()[0].client_certificate);
}

/// Everything that must never be shown, as it is and as it goes over the wire.
const SECRETS: [&str; 8] = [
    "hush!",
    "hush%21",
    "bWU6aHVzaCE=",
    "header-secret",
    "token-secret",
    "proxy-secret",
    "signature-secret",
    "cHJveHk6cHJveHktc2VjcmV0",
];

fn assert_silent(get: Invocation, code: i32) {
    let ran = get.args(&["-v", "-v", "--stats"]).fail(code);
    let said = ran.all_output();
    assert!(said.len() > 100, "it logs: {said}");
    for secret in SECRETS {
        assert!(!said.contains(secret), "{secret} is in {said}");
    }
}

#[test]
fn no_secret_shows_even_in_the_fullest_log() {
    let (scene, origin) = (Scene::new(), Origin::https());
    let (ca, proxy) = (scene.ca(&origin), ConnectProxy::with_credentials("proxy", "proxy-secret"));
    origin.put("/f", Resource::new(bytes(1, 100_000)));
    scene.write("headers", "X-Api-Key: header-secret\n");
    scene.write("password", "hush!");
    scene.write("token", "token-secret");
    let signed = |path: &str| origin.url(path) + "?X-Amz-Signature=signature-secret&n=1";
    for version in [&["--http1.1"][..], &[]] {
        for (path, code) in [("/f", 0), ("/gone", 5)] {
            for style in [&["--json"][..], &[]] {
                let get = |url: &str| {
                    let get = scene.get(&["--cacert", &ca, "-H", "@headers", "-d", "out", url]);
                    let proxy = proxy.url_with("proxy", "proxy-secret");
                    get.args(version).args(style).env("HTTPS_PROXY", proxy)
                };
                let with_user = signed(path).replace("https://", "https://me:hush%21@");
                assert_silent(get(&with_user), code);
                let plain = signed(path);
                assert_silent(get(&plain).args(&["-u", "me", "--password", "+password"]), code);
                assert_silent(get(&plain).args(&["--token", "+token"]), code);
            }
        }
    }
    assert!(proxy.tunnels().iter().all(|tunnel| tunnel.allowed));
}

#[test]
fn what_goes_wrong_with_a_secret_does_not_show_it() {
    let scene = Scene::new();
    let (url, port) = ("http://me:hush%21@127.0.0.1:1/f", "http://127.0.0.1:1/f");
    for (flags, code) in [
        (&["--retry", "0", url][..], 3),
        (&["me:hush!@host/f"], 2),
        (&["-H", "Authorization header-secret", port], 2),
        (&["-H", "X: header-secret\u{1}", port], 2),
        (&["--proxy", "http://proxy:proxy-secret@", port], 2),
        (&["--proxy", "nonsense://proxy:proxy-secret@h", port], 2),
        (&["--retry", "0", "--proxy", "http://proxy:proxy-secret@127.0.0.1:1", port], 3),
    ] {
        let ran = scene.get(flags).run();
        let said = ran.all_output();
        for secret in SECRETS {
            assert!(!said.contains(secret), "{secret} is in {said}");
        }
        ran.expect(code);
    }
}
