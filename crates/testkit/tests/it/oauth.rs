use crate::client::{Raw, Response};
use trunkline_testkit::{Fault, Origin, Resource, TokenIssuer};

fn ask(origin: &Origin, fields: &str, form: &str) -> Response {
    let mut raw = Raw::connect(origin);
    let length = form.len();
    raw.send(&format!(
        "POST /token HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n{fields}\r\n{form}"
    ));
    raw.response(false).unwrap()
}

#[test]
fn tokens_are_given_for_credentials_checked_and_revoked() {
    let origin = Origin::http();
    let issuer = TokenIssuer::new("robot", "s3 cret").expires_in_s(900);
    origin.token_endpoint("/token", &issuer);
    origin.put("/private/f", Resource::new("file"));
    origin.script("/private/*").also(Fault::RequireBearer(issuer.clone()));

    let form = "grant_type=client_credentials&client_id=robot&client_secret=s3+cret";
    let answer = ask(&origin, "", form);
    let json = String::from_utf8(answer.body).unwrap();
    assert!(json.contains("\"expires_in\":900"), "{json}");
    // robot:s3 cret
    let basic = "authorization: Basic cm9ib3Q6czMgY3JldA==\r\n";
    assert_eq!(ask(&origin, basic, "grant_type=client_credentials").status, 200);
    assert_eq!(ask(&origin, "", "grant_type=client_credentials").status, 401);
    assert_eq!(ask(&origin, basic, "grant_type=password").status, 400);
    assert_eq!(issuer.issued(), 2);

    let token = json.split('"').nth(3).unwrap().to_owned();
    let get = |token: &str| {
        let fields = format!("authorization: Bearer {token}\r\n");
        Raw::connect(&origin).request("GET", "/private/f", &fields).unwrap().status
    };
    assert_eq!((get(&token), get("testkit-token-9"), get("x")), (200, 401, 401));
    issuer.revoke_all();
    assert_eq!(get(&token), 401);
}

#[test]
fn tokens_expire() {
    let origin = Origin::http();
    let issuer = TokenIssuer::new("a", "b").expires_in_s(0);
    origin.token_endpoint("/token", &issuer);
    origin.put("/f", Resource::new("file"));
    origin.script("/f").also(Fault::RequireBearer(issuer));
    ask(&origin, "", "grant_type=client_credentials&client_id=a&client_secret=b");
    let fields = "authorization: Bearer testkit-token-0\r\n";
    assert_eq!(Raw::connect(&origin).request("GET", "/f", fields).unwrap().status, 401);
}
