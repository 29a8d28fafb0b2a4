//! stub
use std::sync::Arc;

use rustls::{ClientConfig, HandshakeKind};
use rustls_pki_types::ServerName;

use crate::error::Error;
use crate::http::Forwarding;
use crate::stream::Carrier;

#[derive(Debug)]
pub struct RangeConnection {}

#[derive(Debug, Clone, Copy)]
pub enum BodyFraming { Length(u64), Chunked, Close, Unsupported }

impl RangeConnection {
    pub(crate) fn clear(_carrier: Carrier, _forwarding: Forwarding) -> Self { Self {} }
    pub(crate) async fn tls(_carrier: Carrier, _config: Arc<ClientConfig>, _name: ServerName<'static>, _host: &str) -> Result<(Self, HandshakeKind), Error> { Ok((Self {}, HandshakeKind::Full)) }
    pub async fn send(&mut self, _request: &http::Request<()>) -> Result<http::Response<BodyFraming>, Error> { Ok(http::Response::new(BodyFraming::Unsupported)) }
    pub async fn read(&mut self, _buffer: &mut [u8]) -> Result<usize, Error> { Ok(0) }
    pub fn is_reusable(&self) -> bool { false }
    pub fn is_stale(&mut self) -> bool { false }
}
