//! From what was typed and what the environment says to what the engine needs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use thiserror::Error;
use trunkline_proto::netrc::Netrc;
use trunkline_proto::no_proxy::NoProxy;
use trunkline_proto::secret::Secret;
use trunkline_transfer::{
    Auth, EngineSettings, Identity, Network, ProxyRoute, ProxyRules, ProxyUrlError, TokenSource,
};
use trunkline_transport::settings::{AddressFamily, AddressOverride, AddressPolicy, HttpVersion};
use trunkline_transport::{
    Identity as ClientCertificate, Roots, TlsClient, TlsOptions, TlsSetupError, TlsVersion,
};

use crate::environment::Environment;
use crate::flags::NetworkArgs;
use crate::secret_input::{self, SecretError};

/// A setting that makes no sense.
#[derive(Debug, Error)]
pub(crate) enum SettingsError {
    #[error(transparent)]
    Tls(#[from] TlsSetupError),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("`{}` is no header; write `Name: value`", shown_header(text))]
    Header { text: String },
    #[error("cannot read `{}`: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("cannot understand the netrc file `{}`: {source}", path.display())]
    Netrc { path: PathBuf, source: trunkline_proto::netrc::NetrcError },
    #[error("--resolve `{text}`: write HOST:PORT:ADDRESS[,ADDRESS]")]
    Resolve { text: String },
    #[error("{variable}: {source}")]
    Proxy { variable: &'static str, source: ProxyUrlError },
    #[error("--{flag}: `{value}` is no number of seconds")]
    Seconds { flag: &'static str, value: f64 },
}

/// Builds the engine's settings.
pub(crate) fn engine(
    args: &NetworkArgs,
    environment: &Environment,
) -> Result<EngineSettings, SettingsError> {
    let mut settings = EngineSettings::new(tls(args, environment)?);
    settings.network = network(args, environment, settings.network)?;
    settings.identity = identity(args, environment)?;
    if let Some(connections) = args.max_connections {
        settings.limits.connections_per_origin = usize::from(connections);
        settings.limits.connections_in_all =
            settings.limits.connections_in_all.max(usize::from(connections));
    }
    if let Some(timeout) = args.timeout {
        settings.patience.stall_timeout = seconds("timeout", timeout)?;
    }
    if let Some(retries) = args.retry {
        settings.patience.retry.retries = retries;
    }
    if let Some(redirects) = args.max_redirs {
        settings.patience.redirects_max = redirects;
    }
    settings.patience.redirect_downgrade = args.allow_downgrade;
    settings.rate_bytes_per_second = args.limit_rate;
    Ok(settings)
}

/// A positive number of seconds.
pub(crate) fn seconds(flag: &'static str, value: f64) -> Result<Duration, SettingsError> {
    Duration::try_from_secs_f64(value)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or(SettingsError::Seconds { flag, value })
}

fn tls(args: &NetworkArgs, environment: &Environment) -> Result<TlsClient, SettingsError> {
    let only = |files: &Option<PathBuf>, folder: &Option<PathBuf>| {
        Roots::Only(files.iter().chain(folder).cloned().collect())
    };
    let roots = if args.cacert.is_some() || args.capath.is_some() {
        only(&args.cacert, &args.capath)
    } else if environment.curl_ca_bundle.is_some() {
        only(&environment.curl_ca_bundle, &None)
    } else if environment.ssl_cert_file.is_some() || environment.ssl_cert_dir.is_some() {
        only(&environment.ssl_cert_file, &environment.ssl_cert_dir)
    } else {
        Roots::System
    };
    let identity = match &args.cert {
        Some(path) => Some(client_certificate(path, args)?),
        None => None,
    };
    let min_version = match args.tls_min.as_deref() {
        Some("1.3") => TlsVersion::Tls13,
        _ => TlsVersion::Tls12,
    };
    let verify = !args.insecure;
    Ok(TlsClient::new(TlsOptions {
        roots,
        identity,
        verify,
        min_version,
        ..TlsOptions::default()
    })?)
}

fn client_certificate(path: &Path, args: &NetworkArgs) -> Result<ClientCertificate, SettingsError> {
    let is_pkcs12 = path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("p12") || end.eq_ignore_ascii_case("pfx"));
    if !is_pkcs12 {
        return Ok(ClientCertificate::from_pem_files(path, args.key.as_deref())?);
    }
    let password = match &args.pass {
        Some(source) => secret_input::read(source, "Password of the client certificate")?,
        None => Secret::new(String::new()),
    };
    Ok(ClientCertificate::from_pkcs12_file(path, &password)?)
}

fn network(
    args: &NetworkArgs,
    environment: &Environment,
    mut network: Network,
) -> Result<Network, SettingsError> {
    network.proxies = proxies(args, environment)?;
    network.unix_socket.clone_from(&args.unix_socket);
    network.addresses = addresses(args)?;
    network.version = if args.http1 {
        HttpVersion::Http1
    } else if args.http2_prior_knowledge {
        HttpVersion::Http2
    } else {
        HttpVersion::Auto
    };
    if let Some(timeout) = args.connect_timeout {
        network.connect_timeout = seconds("connect-timeout", timeout)?;
    }
    Ok(network)
}

fn proxies(args: &NetworkArgs, environment: &Environment) -> Result<ProxyRules, SettingsError> {
    let no_proxy = args.noproxy.as_ref().or(environment.no_proxy.as_ref());
    let no_proxy = no_proxy.map(|list| NoProxy::parse(list)).unwrap_or_default();
    if let Some(proxy) = &args.proxy {
        let parsed = proxy.parse::<ProxyRoute>();
        let proxy =
            parsed.map_err(|source| SettingsError::Proxy { variable: "--proxy", source })?;
        return Ok(ProxyRules { http: Some(proxy.clone()), https: Some(proxy), no_proxy });
    }
    let parse = |variable: &'static str, value: &Option<String>| {
        let value = value.as_ref().or(environment.all_proxy.as_ref());
        let parsed = value.map(|value| value.parse::<ProxyRoute>()).transpose();
        parsed.map_err(|source| SettingsError::Proxy { variable, source })
    };
    Ok(ProxyRules {
        http: parse("http_proxy", &environment.http_proxy)?,
        https: parse("https_proxy", &environment.https_proxy)?,
        no_proxy,
    })
}

fn addresses(args: &NetworkArgs) -> Result<AddressPolicy, SettingsError> {
    let family = match (args.ipv4, args.ipv6) {
        (true, _) => AddressFamily::V4,
        (_, true) => AddressFamily::V6,
        _ => AddressFamily::Any,
    };
    let overrides = args.resolve.iter().map(|text| address_override(text));
    Ok(AddressPolicy { family, overrides: overrides.collect::<Result<_, _>>()? })
}

fn address_override(text: &str) -> Result<AddressOverride, SettingsError> {
    let wrong = || SettingsError::Resolve { text: text.to_owned() };
    let mut parts = text.splitn(3, ':');
    let (host, port, list) = (parts.next(), parts.next(), parts.next());
    let (Some(host), Some(port), Some(list)) = (host, port, list) else { return Err(wrong()) };
    let addresses = list
        .split(',')
        .map(|address| address.trim_matches(['[', ']']).parse().map_err(|_| wrong()))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(AddressOverride {
        host: host.to_ascii_lowercase(),
        port: port.parse().map_err(|_| wrong())?,
        addresses,
    })
}

fn identity(args: &NetworkArgs, environment: &Environment) -> Result<Identity, SettingsError> {
    let mut identity = Identity::default();
    if let Some(name) = &args.user_agent {
        let wrong = || SettingsError::Header { text: format!("User-Agent: {name}") };
        identity.user_agent = HeaderValue::try_from(name).map_err(|_| wrong())?;
    }
    for text in &args.headers {
        match text.strip_prefix('@') {
            None => add_header(&mut identity.headers, text)?,
            Some(path) => {
                let path = PathBuf::from(path);
                let lines = std::fs::read_to_string(&path)
                    .map_err(|source| SettingsError::Read { path, source })?;
                for line in lines.lines().filter(|line| !line.trim().is_empty()) {
                    add_header(&mut identity.headers, line)?;
                }
            }
        }
    }
    identity.auth = auth(args)?;
    identity.netrc = netrc(args, environment)?.map(Arc::new);
    Ok(identity)
}

/// A header that cannot be used, without what may be a secret.
fn shown_header(text: &str) -> String {
    let name: String = text.chars().take_while(|c| !c.is_whitespace() && *c != ':').collect();
    if name.len() == text.len() { name } else { format!("{name} ***") }
}

/// Adds one `Name: value`; `Name;` is an empty value, as in curl.
pub(crate) fn add_header(headers: &mut HeaderMap, text: &str) -> Result<(), SettingsError> {
    let wrong = || SettingsError::Header { text: text.to_owned() };
    let (name, value) = text
        .split_once(':')
        .or_else(|| text.strip_suffix(';').map(|name| (name, "")))
        .ok_or_else(wrong)?;
    let name = HeaderName::try_from(name.trim()).map_err(|_| wrong())?;
    let mut value = HeaderValue::try_from(value.trim()).map_err(|_| wrong())?;
    if name == http::header::AUTHORIZATION || name == http::header::COOKIE {
        value.set_sensitive(true);
    }
    headers.append(name, value);
    Ok(())
}

fn auth(args: &NetworkArgs) -> Result<Auth, SettingsError> {
    if let Some(source) = &args.token {
        return Ok(Auth::Bearer(secret_input::read(source, "Token")?));
    }
    if let (Some(endpoint), Some(id), Some(source)) =
        (&args.oauth2, &args.client_id, &args.client_secret)
    {
        let secret = secret_input::read(source, "Client secret")?;
        let source = TokenSource::new(endpoint.clone(), id.clone(), secret, args.scope.clone());
        return Ok(Auth::OAuth2(Arc::new(source)));
    }
    let Some(user) = &args.user else { return Ok(Auth::None) };
    let (user, password) = match (&args.password, user.split_once(':')) {
        (Some(source), _) => (user.clone(), secret_input::read(source, "Password")?),
        (None, Some((user, password))) => (user.to_owned(), Secret::new(password)),
        (None, None) => (user.clone(), secret_input::read("-", "Password")?),
    };
    Ok(Auth::Basic { user, password })
}

fn netrc(args: &NetworkArgs, environment: &Environment) -> Result<Option<Netrc>, SettingsError> {
    let path = match &args.netrc_file {
        Some(path) => path.clone(),
        None if !args.netrc => return Ok(None),
        None => match (&environment.netrc, &environment.home) {
            (Some(path), _) => path.clone(),
            (None, Some(home)) => home.join(".netrc"),
            (None, None) => return Ok(None),
        },
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        // --netrc without a file is no error, as in curl; a file that was named must be there.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && args.netrc_file.is_none() => {
            return Ok(None);
        }
        Err(source) => return Err(SettingsError::Read { path, source }),
    };
    let parsed = Netrc::parse(&text);
    parsed.map(Some).map_err(|source| SettingsError::Netrc { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_curls() {
        let mut headers = HeaderMap::new();
        add_header(&mut headers, "X-A:  b ").unwrap();
        add_header(&mut headers, "X-Empty;").unwrap();
        assert_eq!(headers["x-a"], "b");
        assert_eq!(headers["x-empty"], "");
        assert!(add_header(&mut headers, "no colon").is_err());
        assert!(add_header(&mut headers, "X: a\nb").is_err());
    }

    #[test]
    fn resolve_takes_both_families() {
        let found = address_override("Host.example:443:127.0.0.1,[::1]").unwrap();
        assert_eq!(found.host, "host.example");
        assert_eq!(found.addresses.len(), 2);
        assert!(address_override("host:443").is_err());
        assert!(address_override("host:443:name").is_err());
    }
}
