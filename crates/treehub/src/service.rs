//! From a request to the verb that answers it.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use percent_encoding::percent_decode_str;
use trunkline_listen::{Drain, Drained, Server};
use trunkline_proto::ostree::{ClosureLimits, VerifyLimits};
use trunkline_proto::pack::PackLimits;

use crate::access::{Access, Scope};
use crate::body::ReplyBody;
use crate::metrics::Metrics;
use crate::reply::{self, BoxError, Failure, Reply};
use crate::routes::{Call, Namespace, Route};
use crate::store::{Document, Store};
use crate::{check, documents, object, pack, refs};

const CONFIG: &str = "[core]\nrepo_version=1\nmode=archive-z2\n";

/// Rules and limits of a server.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Who may do what.
    pub access: Access,
    /// How much an object may ask.
    pub verify: VerifyLimits,
    /// How much a pack may ask.
    pub pack: PackLimits,
    /// How large a closure may grow.
    pub closure: ClosureLimits,
}

/// The server without its sockets; clones share it.
#[derive(Clone)]
pub struct Treehub {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: Settings,
    pub(crate) metrics: Metrics,
}

impl std::fmt::Debug for Treehub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Treehub").field("settings", &self.inner.settings).finish_non_exhaustive()
    }
}

/// A request after its namespace and right are known.
pub(crate) struct Ask<B> {
    pub(crate) hub: Treehub,
    pub(crate) namespace: Namespace,
    pub(crate) request: Request<B>,
}

impl<B> Ask<B> {
    /// The value of `name` in the query, undecoded: what is asked for here needs no escapes but in
    /// ref names.
    pub(crate) fn query(&self, name: &str) -> Option<String> {
        let query = self.request.uri().query()?;
        let value = query
            .split('&')
            .find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name))?
            .1;
        percent_decode_str(value).decode_utf8().ok().map(Into::into)
    }

    pub(crate) fn header(&self, name: &http::HeaderName) -> Option<&str> {
        self.request.headers().get(name)?.to_str().ok()
    }
}

impl Treehub {
    /// A server over a store.
    pub fn new(store: Arc<dyn Store>, settings: Settings) -> Self {
        Self { inner: Arc::new(Inner { store, settings, metrics: Metrics::default() }) }
    }

    /// Answers one request. Must be called within a tokio runtime.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<ReplyBody>
    where
        B: Body<Data = Bytes> + Send + Unpin,
        B::Error: Into<BoxError>,
    {
        let head = request.method() == Method::HEAD;
        let mut reply = self.route(request).await.unwrap_or_else(Reply::from);
        self.inner.metrics.count_answer(reply.status());
        if head {
            *reply.body_mut() = ReplyBody::empty();
        }
        reply
    }

    async fn route<B>(&self, request: Request<B>) -> Result<Reply, Failure>
    where
        B: Body<Data = Bytes> + Send + Unpin,
        B::Error: Into<BoxError>,
    {
        let path = percent_decode_str(request.uri().path()).decode_utf8().ok();
        let route = path.and_then(|path| Route::parse(&path));
        let Some(route) = route else { return Err(Failure::not_found("no_such_path")) };
        match route {
            Route::Health => return Ok(reply::text("ok\n")),
            Route::Metrics => return Ok(reply::text(self.inner.metrics.text())),
            _ => {}
        }
        // HEAD is answered as GET, and the body left out at the end.
        let method = match *request.method() {
            Method::HEAD => Method::GET,
            ref other => other.clone(),
        };
        let scope = scope(&method, &route);
        let namespace = self.inner.settings.access.admit(request.headers(), scope)?;
        let ask = Ask { hub: self.clone(), namespace, request };
        match (method, route) {
            (Method::GET, Route::Config) => Ok(reply::text(CONFIG)),
            (Method::GET, Route::Object(id)) => object::get(ask, id).await,
            (Method::POST, Route::Object(id)) => object::post(ask, id).await,
            // Ends an upload that went to the store directly; no store here offers that.
            (Method::PUT, Route::Object(_)) => Err(Failure::not_found("object_missing")),
            (Method::GET, Route::Ref(name)) => refs::get(ask, name).await,
            (Method::POST, Route::Ref(name)) => refs::post(ask, name).await,
            (Method::GET, Route::Summary { signature }) => documents::summary(ask, signature).await,
            (Method::GET, Route::DeltaPart { delta, part }) => {
                let document = Document::Delta(format!("{}/{part}", delta.path()));
                documents::get(ask, document).await
            }
            (Method::PUT, Route::DeltaPart { delta, part }) => {
                let document = Document::Delta(format!("{}/{part}", delta.path()));
                documents::put(ask, document).await
            }
            (Method::GET, Route::DeltaLookup) => documents::delta_lookup(&ask),
            (Method::PUT, Route::Manifest(commit)) => documents::put_manifest(ask, commit).await,
            (Method::GET, Route::Manifest(commit)) => {
                documents::get(ask, Document::Manifest(commit)).await
            }
            (Method::GET, Route::Trunkline(Call::Capabilities)) => pack::capabilities(ask).await,
            (Method::POST, Route::Trunkline(Call::Missing)) => pack::missing(ask).await,
            (Method::POST, Route::Trunkline(Call::Pack)) => pack::store(ask).await,
            (Method::POST, Route::Trunkline(Call::Fetch)) => pack::fetch(ask).await,
            (Method::POST, Route::Trunkline(Call::Closure)) => pack::closure(ask).await,
            (Method::POST, Route::Trunkline(Call::Check)) => check::check(ask).await,
            _ => Err(Failure::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "this path does not take that method",
            )),
        }
    }
}

fn scope(method: &Method, route: &Route) -> Scope {
    match route {
        Route::Trunkline(Call::Pack) => Scope::Push,
        Route::Trunkline(_) => Scope::Read,
        _ if *method == Method::GET => Scope::Read,
        _ => Scope::Push,
    }
}

/// Runs a server until it is drained.
pub async fn serve(hub: Treehub, server: Server, drain: &Drain) -> Drained {
    server
        .serve_http(drain, move |request| {
            let hub = hub.clone();
            async move { hub.handle(request).await }
        })
        .await
}
