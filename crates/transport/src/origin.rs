//! What makes two requests share a connection: scheme, host and port (RFC 6454 §4).

use std::fmt;

use url::Url;

use crate::error::Error;

/// The two schemes that reach an HTTP origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// Clear text, default port 80.
    Http,
    /// TLS, default port 443.
    Https,
}

impl Scheme {
    /// The port used when a URL names none.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// The scheme as it stands in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// An HTTP origin: the key of the pool, compared by value.
///
/// The host is lower case; an IPv6 address stands without brackets. User information in a URL is
/// no part of an origin: credentials belong to requests, never to connections.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    scheme: Scheme,
    host: String,
    port: u16,
}

impl Origin {
    /// The origin of a URL.
    ///
    /// # Errors
    /// [`Error::UnsupportedUrl`] when the scheme is neither `http` nor `https` or the host is
    /// missing.
    pub fn from_url(url: &Url) -> Result<Self, Error> {
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(Error::UnsupportedUrl { scheme: url.scheme().to_owned() }),
        };
        let host = match url.host() {
            Some(url::Host::Domain(name)) => name.to_ascii_lowercase(),
            Some(url::Host::Ipv4(address)) => address.to_string(),
            Some(url::Host::Ipv6(address)) => address.to_string(),
            None => return Err(Error::UnsupportedUrl { scheme: url.scheme().to_owned() }),
        };
        let port = url.port().unwrap_or_else(|| scheme.default_port());
        Ok(Self { scheme, host, port })
    }

    /// The scheme.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host, lower case, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, always explicit here.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `host:port` as used in CONNECT (RFC 9110 §9.3.6): the port is always named.
    pub fn host_port(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// The `Host` header's value (RFC 9110 §7.2): the port is left out when it is the default.
    pub fn authority(&self) -> String {
        let host_port = self.host_port();
        if self.port == self.scheme.default_port() {
            let end = host_port.rfind(':').unwrap_or(host_port.len());
            host_port[..end].to_owned()
        } else {
            host_port
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.authority())
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(url: &str) -> Origin {
        Origin::from_url(&Url::parse(url).unwrap()).unwrap()
    }

    #[test]
    fn default_ports_and_case_do_not_make_two_origins() {
        assert_eq!(origin("https://Example.org/a"), origin("https://example.org:443/b?c"));
        assert_ne!(origin("https://example.org/"), origin("http://example.org/"));
        assert_eq!(origin("http://user:pw@example.org/"), origin("http://example.org/"));
    }

    #[test]
    fn authority_names_the_port_only_when_needed() {
        assert_eq!(origin("https://example.org/").authority(), "example.org");
        assert_eq!(origin("https://example.org:8443/").authority(), "example.org:8443");
        assert_eq!(origin("http://[::1]/").authority(), "[::1]");
        assert_eq!(origin("http://[::1]:81/").authority(), "[::1]:81");
        assert_eq!(origin("http://[::1]/").host_port(), "[::1]:80");
    }

    #[test]
    fn other_schemes_are_refused() {
        assert!(Origin::from_url(&Url::parse("ftp://example.org/").unwrap()).is_err());
    }
}
