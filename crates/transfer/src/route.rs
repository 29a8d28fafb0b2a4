//! Which proxy serves which origin.

use std::sync::Arc;

use thiserror::Error;
use trunkline_proto::no_proxy::NoProxy;
use trunkline_proto::secret::Secret;
use trunkline_transport::settings::{Proxy, Route};
use trunkline_transport::{Origin, Scheme};
use url::Url;

/// Proxies by the scheme of the target, and what goes around them.
#[derive(Clone, Debug, Default)]
pub struct ProxyRules {
    /// For `http` targets.
    pub http: Option<ProxyRoute>,
    /// For `https` targets.
    pub https: Option<ProxyRoute>,
    /// Targets that are reached directly.
    pub no_proxy: NoProxy,
}

impl ProxyRules {
    /// The way to an origin.
    pub fn route(&self, origin: &Origin) -> Route {
        let proxy = match origin.scheme() {
            Scheme::Http => &self.http,
            Scheme::Https => &self.https,
        };
        match proxy {
            Some(proxy) if !self.no_proxy.matches(origin.host(), origin.port()) => proxy.0.clone(),
            _ => Route::Direct,
        }
    }
}

/// A proxy as a URL names it.
#[derive(Clone, Debug)]
pub struct ProxyRoute(Route);

/// A proxy URL that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "not a proxy URL; use http://, https://, socks5:// or socks5h:// with a host, \
     as http://user:password@proxy.example:3128"
)]
pub struct ProxyUrlError;

impl std::str::FromStr for ProxyRoute {
    type Err = ProxyUrlError;

    /// Reads `[scheme://][user:password@]host[:port]`; without a scheme it is an HTTP proxy, as
    /// curl takes it. The default port is 1080, curl's, but 443 for an https proxy.
    fn from_str(text: &str) -> Result<Self, ProxyUrlError> {
        let text = text.trim();
        let with_scheme =
            if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let url = Url::parse(&with_scheme).map_err(|_| ProxyUrlError)?;
        let host = match url.host().ok_or(ProxyUrlError)? {
            url::Host::Domain(name) if !name.is_empty() => name.to_owned(),
            url::Host::Domain(_) => return Err(ProxyUrlError),
            url::Host::Ipv4(address) => address.to_string(),
            url::Host::Ipv6(address) => address.to_string(),
        };
        let explicit_80 = url.port().is_none() && has_port_80(&with_scheme);
        let port = match (url.port(), url.scheme()) {
            (Some(port), _) => port,
            (None, "https") => 443,
            (None, "http") if explicit_80 => 80,
            _ => 1080,
        };
        let credentials = (!url.username().is_empty()).then(|| {
            let password = url.password().unwrap_or_default();
            (decode(url.username()), Secret::new(decode(password)))
        });
        let tls = url.scheme() == "https";
        let proxy = Arc::new(Proxy { host, port, tls, credentials });
        match url.scheme() {
            "http" | "https" => Ok(Self(Route::HttpProxy(proxy))),
            "socks5" | "socks5h" => Ok(Self(Route::Socks5(proxy))),
            _ => Err(ProxyUrlError),
        }
    }
}

/// The `url` crate drops a port that is the scheme's default; a proxy's default is another.
fn has_port_80(text: &str) -> bool {
    let authority = text.split("://").nth(1).unwrap_or_default();
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    authority.ends_with(":80")
}

pub(crate) fn decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(text: &str) -> Route {
        text.parse::<ProxyRoute>().unwrap().0
    }

    #[test]
    fn proxy_urls_in_all_forms() {
        let Route::HttpProxy(plain) = proxy("proxy.example:3128") else { panic!("http") };
        assert_eq!((plain.host.as_str(), plain.port, plain.tls), ("proxy.example", 3128, false));
        let Route::HttpProxy(bare) = proxy("http://proxy.example") else { panic!("http") };
        assert_eq!(bare.port, 1080);
        let Route::HttpProxy(eighty) = proxy("http://proxy.example:80/") else { panic!("http") };
        assert_eq!(eighty.port, 80);
        let Route::Socks5(socks) = proxy("socks5h://u%40x:p%3A@[::1]:99") else { panic!("socks") };
        let (user, password) = socks.credentials.clone().unwrap();
        assert_eq!((user.as_str(), password.expose()), ("u@x", "p:"));
        assert_eq!((socks.host.as_str(), socks.port), ("::1", 99));
        assert!("ftp://h".parse::<ProxyRoute>().is_err());
        assert!("http://".parse::<ProxyRoute>().is_err());
    }

    #[test]
    fn the_scheme_of_the_target_chooses() {
        let rules = ProxyRules {
            http: None,
            https: Some("http://p:1".parse().unwrap()),
            no_proxy: "internal.example".parse().unwrap_or_default(),
        };
        let route = |url: &str| rules.route(&Origin::from_url(&Url::parse(url).unwrap()).unwrap());
        assert_eq!(route("http://h/"), Route::Direct);
        assert!(matches!(route("https://h/"), Route::HttpProxy(_)));
        assert_eq!(route("https://internal.example/"), Route::Direct);
    }
}
