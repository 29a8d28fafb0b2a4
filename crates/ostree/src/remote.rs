//! A server of objects as requests and answers: static files, Treehub, or Treehub with packs.

use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use serde::Deserialize;
use trunkline_proto::ostree::{Checksum, ObjectId, RefName, Storage};
use trunkline_proto::pack::{
    self, MEDIA_TYPE, PackError, Receipt, Want, decode_ids, decode_receipts, encode_ids,
    ids_frame_bytes,
};
use trunkline_transfer::{Answer, Engine, Payload, Reply, Request, SteadyAnswer};
use url::Url;

/// Longest answer to a question about a ref or to a refusal, in bytes.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// Longest list of receipts or of faults, in bytes.
const RECEIPTS_BYTES_MAX: u64 = 256 << 20;
/// How much of a refusal's text is shown, in characters.
const DETAIL_CHARACTERS_MAX: usize = 500;

const FORCE: HeaderName = HeaderName::from_static("x-ats-ostree-force");

/// A server did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// A frame of the server breaks the protocol.
    #[error("the server's answer to {what} breaks the pack protocol: {source}")]
    Frame {
        /// What was asked.
        what: &'static str,
        /// What is wrong.
        #[source]
        source: PackError,
    },
    /// An answer that cannot be read.
    #[error("the server's answer to {what} cannot be read")]
    Malformed {
        /// What was asked.
        what: &'static str,
    },
    /// A status that says no.
    #[error("{what}: the server answered {status}{}{detail}", if detail.is_empty() { "" } else { ": " })]
    Status {
        /// What was asked.
        what: String,
        /// The status.
        status: StatusCode,
        /// What the server says, or the hint that fits.
        detail: String,
    },
    /// No answer could be had.
    #[error(transparent)]
    Transfer(Box<trunkline_transfer::Error>),
    /// The base URL cannot be used.
    #[error("`{0}` cannot be the base of a repository")]
    Url(Box<str>),
}

impl From<trunkline_transfer::Error> for RemoteError {
    fn from(error: trunkline_transfer::Error) -> Self {
        Self::Transfer(Box::new(error))
    }
}

/// A repository behind a URL.
#[derive(Debug, Clone)]
pub struct Remote {
    engine: Engine,
    base: Url,
}

/// What a server with packs says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// Where the ref asked for points.
    pub commit: Option<Checksum>,
    /// How long packs should be, in bytes.
    pub pack_bytes_advised: u64,
}

#[derive(Deserialize)]
struct CapabilitiesText {
    trunkline: u8,
    #[serde(rename = "ref")]
    commit: Option<String>,
    pack_bytes_advised: u64,
}

/// What a server found in one walk of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Verdict {
    /// Objects reachable.
    pub objects: u64,
    /// How many of them are not there.
    pub missing: u64,
    /// How many are there and not what their name promises.
    pub corrupt: u64,
    /// The first ten thousand faults.
    pub faults: Vec<Fault>,
}

/// An object that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Fault {
    /// The object, as `<checksum>.<type>`.
    pub object: String,
    /// `missing`, or what is wrong with it.
    pub reason: String,
}

impl Remote {
    /// A repository at `base`, which needs no slash at its end.
    ///
    /// # Errors
    /// [`RemoteError::Url`] when nothing can be below it.
    pub fn new(engine: Engine, mut base: Url) -> Result<Self, RemoteError> {
        if base.cannot_be_a_base() {
            return Err(RemoteError::Url(base.as_str().into()));
        }
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        Ok(Self { engine, base })
    }

    /// The engine that carries its requests.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    fn url(&self, path: &str) -> Result<Url, RemoteError> {
        self.base.join(path).map_err(|_| RemoteError::Url(path.into()))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        payload: Payload,
        bytes_max: u64,
    ) -> Result<Reply, RemoteError> {
        let mut request = Request::new(method, self.url(path)?);
        if !matches!(payload, Payload::Empty) {
            request.headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        }
        request.payload = payload;
        request.reply_bytes_max = bytes_max;
        // Every POST here says the same when said twice.
        request.idempotent = true;
        Ok(self.engine.send(request).await?)
    }

    /// Asks whether the server speaks packs, and where a ref points; `None` when it does not.
    ///
    /// # Errors
    /// [`RemoteError`] when no answer could be had or access is refused.
    pub async fn capabilities(
        &self,
        name: Option<&RefName>,
    ) -> Result<Option<Capabilities>, RemoteError> {
        let mut url = self.url("trunkline")?;
        if let Some(name) = name {
            url.query_pairs_mut().append_pair("ref", name.as_str());
        }
        let mut request = Request::new(Method::GET, url);
        request.reply_bytes_max = TEXT_BYTES_MAX;
        let reply = self.engine.send(request).await?;
        if matches!(reply.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(refused("capabilities", &reply));
        }
        // Any other server answers with some error, or even a page, and is a plain one.
        let Ok(text) = serde_json::from_slice::<CapabilitiesText>(&reply.body) else {
            return Ok(None);
        };
        if !reply.status.is_success() || text.trunkline != pack::VERSION {
            return Ok(None);
        }
        let commit = text.commit.map(|text| text.parse()).transpose();
        let commit = commit.map_err(|_| RemoteError::Malformed { what: "capabilities" })?;
        Ok(Some(Capabilities { commit, pack_bytes_advised: text.pack_bytes_advised }))
    }

    /// Which of these sorted ids the server lacks.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn missing(&self, ids: &[ObjectId]) -> Result<Vec<ObjectId>, RemoteError> {
        let frame = |source| RemoteError::Frame { what: "missing", source };
        let body = encode_ids(ids).map_err(frame)?;
        let bytes_max = ids_frame_bytes(ids.len()) as u64;
        let reply = self
            .send(Method::POST, "trunkline/missing", Payload::Bytes(body.into()), bytes_max)
            .await?;
        decode_ids(&good("missing", reply)?.body).map_err(frame)
    }

    /// Stores a pack; `repair` replaces objects that are there and corrupt.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn send_pack(
        &self,
        pack: bytes::Bytes,
        repair: bool,
    ) -> Result<Vec<Receipt>, RemoteError> {
        let path = if repair { "trunkline/pack?repair=true" } else { "trunkline/pack" };
        let reply = self.send(Method::POST, path, Payload::Bytes(pack), RECEIPTS_BYTES_MAX).await?;
        decode_receipts(&good("pack", reply)?.body)
            .map_err(|source| RemoteError::Frame { what: "pack", source })
    }

    /// Opens the stream of objects that answers `want`.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn open_closure(&self, want: &Want) -> Result<Answer, RemoteError> {
        let what = "closure";
        let body = want.encode().map_err(|source| RemoteError::Frame { what, source })?;
        self.open_pack("trunkline/closure", what, body).await
    }

    /// Opens the stream of these sorted objects.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn open_fetch(&self, ids: &[ObjectId]) -> Result<Answer, RemoteError> {
        let what = "fetch";
        let body = encode_ids(ids).map_err(|source| RemoteError::Frame { what, source })?;
        self.open_pack("trunkline/fetch", what, body).await
    }

    async fn open_pack(
        &self,
        path: &str,
        what: &'static str,
        body: Vec<u8>,
    ) -> Result<Answer, RemoteError> {
        let mut request = Request::new(Method::POST, self.url(path)?);
        request.headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        request.payload = Payload::Bytes(body.into());
        request.idempotent = true;
        let answer = self.engine.open(request).await?;
        if answer.status != StatusCode::OK {
            let (status, detail) = (answer.status, String::new());
            return Err(RemoteError::Status { what: what.to_owned(), status, detail });
        }
        Ok(answer)
    }

    /// Has the server walk and hash everything a commit needs.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn check(&self, want: &Want) -> Result<Verdict, RemoteError> {
        let what = "check";
        let body = want.encode().map_err(|source| RemoteError::Frame { what, source })?;
        let payload = Payload::Bytes(body.into());
        let reply = self.send(Method::POST, "trunkline/check", payload, RECEIPTS_BYTES_MAX).await?;
        serde_json::from_slice(&good(what, reply)?.body)
            .map_err(|_| RemoteError::Malformed { what })
    }

    /// Whether an object is there, by HEAD.
    ///
    /// # Errors
    /// [`RemoteError`] for any answer but 200 and 404.
    pub async fn has(&self, id: &ObjectId) -> Result<bool, RemoteError> {
        let path = object_path(id);
        let reply = self.send(Method::HEAD, &path, Payload::Empty, TEXT_BYTES_MAX).await?;
        match reply.status {
            StatusCode::OK => Ok(true),
            StatusCode::NOT_FOUND => Ok(false),
            _ => Err(refused(&format!("HEAD {path}"), &reply)),
        }
    }

    /// Opens an object; `None` when it is not there. A body that is cut goes on.
    ///
    /// # Errors
    /// [`RemoteError`] for any answer but 200 and one that says it is not there.
    pub async fn open_object(&self, id: &ObjectId) -> Result<Option<SteadyAnswer>, RemoteError> {
        let path = object_path(id);
        let request = Request::new(Method::GET, self.url(&path)?);
        let answer = self.engine.open_steady(request).await?;
        match answer.status() {
            StatusCode::OK => Ok(Some(answer)),
            // As libostree reads them: stores without a right to list answer 403 for what is not
            // there.
            StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::FORBIDDEN => Ok(None),
            status => {
                let what = format!("GET {path}");
                Err(RemoteError::Status { what, status, detail: String::new() })
            }
        }
    }

    /// Stores one object. Returns whether it was new: another may have stored it before. With
    /// `repair`, which a server with packs understands, a corrupt one is replaced.
    ///
    /// # Errors
    /// [`RemoteError::Status`] for any answer but 2xx and 409.
    pub async fn post_object(
        &self,
        id: &ObjectId,
        payload: Payload,
        repair: bool,
    ) -> Result<bool, RemoteError> {
        let mut path = object_path(id);
        if repair {
            path.push_str("?repair=true");
        }
        let mut request = Request::new(Method::POST, self.url(&path)?);
        let octets = HeaderValue::from_static("application/octet-stream");
        request.headers.insert(CONTENT_TYPE, octets);
        request.payload = payload;
        request.idempotent = true;
        request.reply_bytes_max = TEXT_BYTES_MAX;
        let reply = self.engine.send(request).await?;
        match reply.status {
            StatusCode::CONFLICT => Ok(false),
            status if status.is_success() => Ok(true),
            _ => Err(refused(&format!("POST {path}"), &reply)),
        }
    }

    /// Where a ref points; `None` when it is not there.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn read_ref(&self, name: &RefName) -> Result<Option<Checksum>, RemoteError> {
        let path = name.path();
        let reply = self.send(Method::GET, &path, Payload::Empty, TEXT_BYTES_MAX).await?;
        match reply.status {
            StatusCode::OK => Checksum::from_hex(reply.body.trim_ascii())
                .map(Some)
                .map_err(|_| RemoteError::Malformed { what: "ref" }),
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(None),
            _ => Err(refused(&format!("GET {path}"), &reply)),
        }
    }

    /// Points a ref at a commit; with `force` even when that does not follow the present one.
    ///
    /// # Errors
    /// [`RemoteError::Status`] with what the server says.
    pub async fn set_ref(
        &self,
        name: &RefName,
        commit: &Checksum,
        force: bool,
    ) -> Result<(), RemoteError> {
        let path = name.path();
        let mut request = Request::new(Method::POST, self.url(&path)?);
        let octets = HeaderValue::from_static("application/octet-stream");
        request.headers.insert(CONTENT_TYPE, octets);
        if force {
            request.headers.insert(FORCE, HeaderValue::from_static("true"));
        }
        request.payload = Payload::Bytes(commit.to_hex().into());
        request.idempotent = true;
        request.reply_bytes_max = TEXT_BYTES_MAX;
        good(&format!("POST {path}"), self.engine.send(request).await?).map(drop)
    }

    /// Stores a file beside the objects, such as a delta's part or a manifest.
    ///
    /// # Errors
    /// [`RemoteError::Status`] with what the server says.
    pub async fn put(
        &self,
        path: &str,
        media_type: &'static str,
        payload: Payload,
    ) -> Result<(), RemoteError> {
        let mut request = Request::new(Method::PUT, self.url(path)?);
        request.headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        request.payload = payload;
        request.reply_bytes_max = TEXT_BYTES_MAX;
        good(&format!("PUT {path}"), self.engine.send(request).await?).map(drop)
    }
}

fn object_path(id: &ObjectId) -> String {
    format!("objects/{}", id.path(Storage::Archive))
}

fn good(what: &str, reply: Reply) -> Result<Reply, RemoteError> {
    if reply.status.is_success() { Ok(reply) } else { Err(refused(what, &reply)) }
}

/// What an answer that says no means to the user.
fn refused(what: &str, reply: &Reply) -> RemoteError {
    #[derive(Deserialize)]
    struct Text {
        description: String,
    }
    let text = match serde_json::from_slice::<Text>(&reply.body) {
        Ok(text) => text.description,
        Err(_) => String::from_utf8_lossy(&reply.body).trim().to_owned(),
    };
    let mut detail: String = text.chars().take(DETAIL_CHARACTERS_MAX).collect();
    let hint = match reply.status {
        StatusCode::UNAUTHORIZED => "the server does not accept these credentials",
        StatusCode::FORBIDDEN => "these credentials do not give the right to this",
        _ => "",
    };
    if detail.is_empty() {
        detail = hint.to_owned();
    }
    RemoteError::Status { what: what.to_owned(), status: reply.status, detail }
}
