//! The engine R's options and environment ask for.

use std::{path::PathBuf, sync::Arc, time::Duration};

use http::HeaderValue;
use trunkline_proto::{netrc::Netrc, no_proxy::NoProxy};
use trunkline_transfer::{EngineSettings, ProxyRoute, ProxyRules};
use trunkline_transport::{Roots, TlsClient, TlsOptions};

use crate::message::Request;

/// What the R side read from options and environment. An engine serves as long as these stay the
/// same.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    /// Seconds without a byte after which a transfer is given up (`getOption("timeout")`).
    timeout_s: Option<f64>,
    /// `getOption("HTTPUserAgent")`, sent verbatim.
    user_agent: Option<String>,
    netrc: Option<PathBuf>,
    ca_bundle: Option<PathBuf>,
    http_proxy: Option<String>,
    https_proxy: Option<String>,
    no_proxy: Option<String>,
    connections_max: Option<f64>,
}

/// A setting that makes no sense.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SettingsError {
    /// Certificates cannot be read.
    #[error("{0}")]
    Tls(String),
    /// A proxy URL cannot be used.
    #[error("{variable}: {source}")]
    Proxy {
        /// The environment variable.
        variable: &'static str,
        /// What is wrong with it.
        #[source]
        source: trunkline_transfer::ProxyUrlError,
    },
    /// The netrc file cannot be used.
    #[error("cannot use the netrc file '{}': {reason}", path.display())]
    Netrc {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The user agent holds characters that no header may have.
    #[error("getOption(\"HTTPUserAgent\") cannot be sent: it holds control characters")]
    UserAgent,
}

impl Settings {
    pub(crate) fn read(request: &Request) -> Self {
        Self {
            timeout_s: request.number("timeout").filter(|seconds| *seconds > 0.0),
            user_agent: request.optional_text("user_agent"),
            netrc: request.optional_text("netrc").map(PathBuf::from),
            ca_bundle: request.optional_text("ca_bundle").map(PathBuf::from),
            http_proxy: request.optional_text("http_proxy"),
            https_proxy: request.optional_text("https_proxy"),
            no_proxy: request.optional_text("no_proxy"),
            connections_max: request.number("connections_max").filter(|count| *count >= 1.0),
        }
    }

    pub(crate) fn engine(&self) -> Result<EngineSettings, SettingsError> {
        let mut settings = EngineSettings::new(self.tls()?);
        settings.network.proxies = self.proxies()?;
        // R waits for the files and does nothing else meanwhile.
        settings.files.write_in_place = true;
        settings.patience.stall_timeout = self
            .timeout_s
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            // R's NA means no time-out.
            .unwrap_or(Duration::MAX / 4);
        if let Some(agent) = &self.user_agent {
            settings.identity.user_agent =
                HeaderValue::try_from(agent).map_err(|_| SettingsError::UserAgent)?;
        }
        settings.identity.netrc = self.netrc()?.map(Arc::new);
        if let Some(connections) = self.connections_max {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = ">= 1")]
            let connections = connections.min(256.0) as usize;
            settings.limits.connections_per_origin = connections;
        }
        Ok(settings)
    }

    fn tls(&self) -> Result<TlsClient, SettingsError> {
        let roots = match &self.ca_bundle {
            Some(path) => Roots::Only(vec![path.clone()]),
            None => Roots::System,
        };
        let options = TlsOptions { roots, ..TlsOptions::default() };
        TlsClient::new(options).map_err(|error| SettingsError::Tls(error.to_string()))
    }

    fn proxies(&self) -> Result<ProxyRules, SettingsError> {
        let parse = |variable, value: &Option<String>| {
            let parsed = value.as_ref().map(|value| value.parse::<ProxyRoute>()).transpose();
            parsed.map_err(|source| SettingsError::Proxy { variable, source })
        };
        Ok(ProxyRules {
            http: parse("http_proxy", &self.http_proxy)?,
            https: parse("https_proxy", &self.https_proxy)?,
            no_proxy: self.no_proxy.as_ref().map(|list| NoProxy::parse(list)).unwrap_or_default(),
        })
    }

    fn netrc(&self) -> Result<Option<Netrc>, SettingsError> {
        let Some(path) = &self.netrc else { return Ok(None) };
        let fail = |reason: String| SettingsError::Netrc { path: path.clone(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
        Netrc::parse(&text).map(Some).map_err(|error| fail(error.to_string()))
    }
}
