//! What an origin has and knows: resources, handlers, scripts, log. Turns a request into a reply.

use crate::effect::Terms;
use crate::fault::Fault;
use crate::log::{Log, Upload};
use crate::reply::Reply;
use crate::request::Received;
use crate::resource::Resource;
use crate::script::{Scripts, covers};
use crate::serve::serve;
use crate::upload::UploadBody;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Handler = Arc<dyn Fn(&Received, &[u8]) -> Reply + Send + Sync>;

#[derive(Default)]
struct Shelves {
    resources: HashMap<String, Resource>,
    handlers: Vec<(String, Handler)>,
}

/// Shared by the test and all connections of one origin.
#[derive(Clone, Default)]
pub(crate) struct Site {
    shelves: Arc<Mutex<Shelves>>,
    pub(crate) scripts: Scripts,
    pub(crate) log: Log,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("log", &self.log).finish_non_exhaustive()
    }
}

impl Site {
    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, path: &str, resource: Resource) {
        self.shelves().resources.insert(path.to_owned(), resource);
    }

    pub(crate) fn remove(&self, path: &str) {
        self.shelves().resources.remove(path);
    }

    pub(crate) fn handle(&self, pattern: &str, handler: Handler) {
        self.shelves().handlers.push((pattern.to_owned(), handler));
    }

    /// The refusal a request meets before its body matters.
    pub(crate) fn refusal(&self, request: &Received, faults: &[Fault]) -> Option<Reply> {
        faults.iter().find_map(|fault| fault.refuse(request))
    }

    /// The reply to a request whose body, if it has one, was read.
    pub(crate) fn answer(
        &self,
        request: &Received,
        faults: &[Fault],
        body: Option<UploadBody>,
    ) -> Reply {
        let refusal = self.refusal(request, faults);
        let mut reply = refusal.unwrap_or_else(|| self.serve(request, faults, body));
        for fault in faults {
            fault.distort(request, &mut reply);
        }
        reply
    }

    fn serve(&self, request: &Received, faults: &[Fault], body: Option<UploadBody>) -> Reply {
        let handler = {
            let shelves = self.shelves();
            let found = shelves.handlers.iter().find(|(pattern, _)| covers(pattern, &request.path));
            found.map(|(_, handler)| handler.clone())
        };
        if let Some(handler) = handler {
            return handler(request, body.as_ref().map_or(&[], |body| &body.kept));
        }
        if request.reads() {
            let mut terms = Terms::default();
            for fault in faults {
                fault.set_terms(&mut terms);
            }
            return match self.shelves().resources.get(&request.path) {
                Some(resource) => serve(request, resource, &terms),
                None => Reply::text(404, "nothing here\n"),
            };
        }
        match (request.method.as_str(), body) {
            ("PUT" | "POST", body) => {
                let body = body.unwrap_or_default();
                self.log.uploaded(Upload {
                    path: request.path.clone(),
                    method: request.method.clone(),
                    body: body.kept.into(),
                    len: body.len,
                    sha256: body.sha256,
                });
                Reply::new(201)
            }
            ("DELETE", _) => {
                let gone = self.shelves().resources.remove(&request.path);
                Reply::new(if gone.is_some() { 204 } else { 404 })
            }
            _ => Reply::text(405, "no such method here\n"),
        }
    }
}
