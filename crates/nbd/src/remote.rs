//! An image on an HTTP(S) server, read by ranges that the transfer layer checks.

use std::sync::Arc;

use http::HeaderMap;
use trunkline_transfer::{Engine, RemoteFile};
use url::Url;

use crate::buffers::Buffers;
use crate::content::{Content, Piece};
use crate::error::Error;
use crate::export::{Export, Verb};

/// A remote image. Each read is one range request of exactly its length.
#[derive(Debug)]
pub struct RemoteExport {
    file: RemoteFile,
    url: String,
    buffers: Buffers,
}

impl RemoteExport {
    /// Opens `url`; `headers` go with every request.
    ///
    /// # Errors
    /// [`Error::Remote`] when the server cannot be reached, does not tell the size, or does not
    /// serve ranges.
    pub async fn open(engine: &Engine, url: &Url, headers: HeaderMap) -> Result<Self, Error> {
        let file = RemoteFile::open(engine, url, headers).await?;
        // Signatures in a query change between runs; what they sign does not.
        let mut address = url.clone();
        address.set_query(None);
        let _ = address.set_password(None);
        let _ = address.set_username("");
        Ok(Self { file, url: address.into(), buffers: Buffers::default() })
    }
}

impl Export for RemoteExport {
    fn size(&self) -> u64 {
        self.file.size()
    }

    fn read(&self, offset: u64, length: u32) -> Verb<'_, Content> {
        Box::pin(async move {
            let mut buffer = self.buffers.take(length as usize);
            self.file.read_at(offset, buffer.as_mut()).await?;
            Ok(Piece::Bytes(buffer.freeze()).into())
        })
    }

    fn identity(&self) -> Option<String> {
        let validator = self.file.validator()?;
        Some(format!("{} {validator} {}", self.url, self.size()))
    }
}

impl From<trunkline_transfer::Error> for Error {
    fn from(error: trunkline_transfer::Error) -> Self {
        Self::Remote(Arc::new(error))
    }
}
