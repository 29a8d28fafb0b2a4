//! stub
use std::sync::Arc;

use rustls::{ClientConfig, HandshakeKind};
use rustls_pki_types::ServerName;

use crate::error::Error;
use crate::http::Forwarding;
use crate::stream::Carrier;

#[derive(Debug)]
pub struct RangeConnection {}

impl RangeConnection {
    pub(crate) fn clear(_carrier: Carrier, _forwarding: Forwarding) -> Self { Self {} }
    pub(crate) async fn tls(_carrier: Carrier, _config: Arc<ClientConfig>, _name: ServerName<'static>, _host: &str) -> Result<(Self, HandshakeKind), Error> { Ok((Self {}, HandshakeKind::Full)) }
}
