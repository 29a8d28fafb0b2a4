//! `download.file()`: one or many URLs to files.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::PRAGMA};
use trunkline_proto::{cran::rds::Object, digest::Digest};
use trunkline_transfer::{Class, Engine, ErrorKind, IN_FLIGHT_DEFAULT, Job, LaneChoice, Observer};
use url::Url;

use crate::{
    job::Progress,
    message::{Request, RequestError, counts, integers, list, strings},
};

/// How one URL ended.
struct Outcome {
    bytes: u64,
    failure: Option<Failure>,
}

/// A failure in the terms of R's messages.
struct Failure {
    /// `status`, `timeout`, `length`, `checksum`, `file` or `connection`.
    kind: &'static str,
    http_status: Option<StatusCode>,
    /// The words R has for it, or ours.
    message: String,
}

/// Brings every URL to its path; one reply element for each.
pub(crate) async fn perform(
    engine: &Engine,
    request: &Request,
    progress: Arc<Progress>,
) -> Result<Object, RequestError> {
    let urls = request.texts("urls")?;
    let paths = request.texts("paths")?;
    if urls.len() != paths.len() {
        return Err(RequestError::Field("paths"));
    }
    let append = request.flag("append")?;
    let headers = headers(request)?;
    let md5 = request.strings("md5").ok();
    let lane = if urls.len() == 1 { LaneChoice::Range } else { LaneChoice::Object };
    let observer: Arc<dyn Observer> = progress;
    let one = |(number, (url, path)): (usize, (String, String))| {
        let check = md5.and_then(|md5| md5.get(number));
        let check = check.and_then(|hex| format!("md5:{hex}").parse::<Digest>().ok());
        let (headers, observer) = (headers.clone(), Arc::clone(&observer));
        async move {
            let bring = Bring { engine, id: number as u64, headers, check, lane, observer };
            (number, bring.to(&url, Path::new(&path), append).await)
        }
    };
    let count = urls.len();
    let jobs = urls.into_iter().zip(paths).enumerate();
    let mut outcomes: Vec<_> =
        stream::iter(jobs).map(one).buffer_unordered(IN_FLIGHT_DEFAULT).collect().await;
    debug_assert_eq!(outcomes.len(), count);
    outcomes.sort_by_key(|(number, _)| *number);
    let outcomes: Vec<Outcome> = outcomes.into_iter().map(|(_, outcome)| outcome).collect();
    Ok(reply(&outcomes))
}

fn headers(request: &Request) -> Result<HeaderMap, RequestError> {
    let mut headers = HeaderMap::new();
    for (name, value) in request.pairs("headers") {
        let name = HeaderName::try_from(name).map_err(|_| RequestError::Field("headers"))?;
        let mut value = HeaderValue::try_from(value).map_err(|_| RequestError::Field("headers"))?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    if !request.flag("cache_ok")? {
        headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
    }
    Ok(headers)
}

struct Bring<'a> {
    engine: &'a Engine,
    id: u64,
    headers: HeaderMap,
    check: Option<Digest>,
    lane: LaneChoice,
    observer: Arc<dyn Observer>,
}

impl Bring<'_> {
    async fn to(self, url: &str, path: &Path, append: bool) -> Outcome {
        let parsed = match Url::parse(url) {
            Ok(parsed) => parsed,
            Err(error) => return Outcome::failed("connection", error.to_string()),
        };
        let destination = if append { beside(path) } else { path.to_owned() };
        let job = Job {
            headers: self.headers,
            check: self.check,
            lane: self.lane,
            ..Job::new(parsed, destination.clone())
        };
        match self.engine.fetch(self.id, &job, &self.observer).await {
            Err(error) => Outcome { bytes: 0, failure: Some(Failure::of(&error.kind)) },
            Ok(receipt) if append => match append_file(&destination, path) {
                Ok(()) => Outcome { bytes: receipt.bytes, failure: None },
                Err(error) => Outcome::failed("file", error.to_string()),
            },
            Ok(receipt) => Outcome { bytes: receipt.bytes, failure: None },
        }
    }
}

/// A name for a file that is to be appended to another one once it is complete.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.append", std::process::id()));
    path.with_file_name(name)
}

fn append_file(from: &Path, to: &Path) -> io::Result<()> {
    let append = || {
        let mut to = fs::OpenOptions::new().create(true).append(true).open(to)?;
        io::copy(&mut fs::File::open(from)?, &mut to)?;
        to.flush()
    };
    let appended = append();
    // What was appended, or cannot be, is of no use beside it either.
    fs::remove_file(from)?;
    appended
}

impl Outcome {
    fn failed(kind: &'static str, message: String) -> Self {
        Self { bytes: 0, failure: Some(Failure { kind, http_status: None, message }) }
    }
}

impl Failure {
    fn of(error: &ErrorKind) -> Self {
        let http_status = error.status();
        let kind = match (http_status, error, error.class()) {
            (Some(_), ..) => "status",
            (_, ErrorKind::Length { .. }, _) => "length",
            (_, ErrorKind::Checksum { .. } | ErrorKind::WebPage, _) => "checksum",
            (.., Class::Timeout) => "timeout",
            (.., Class::File) => "file",
            _ => "connection",
        };
        Self { kind, http_status, message: error.to_string() }
    }
}

fn reply(outcomes: &[Outcome]) -> Object {
    let failures = || outcomes.iter().map(|outcome| outcome.failure.as_ref());
    let status = |failure: &Failure| failure.http_status.map(|status| i32::from(status.as_u16()));
    let reason = |failure: &Failure| {
        failure.http_status.map(|status| status.canonical_reason().unwrap_or("unknown"))
    };
    list([
        ("bytes", counts(outcomes.iter().map(|outcome| outcome.bytes))),
        ("kind", strings(failures().map(|failure| failure.map(|failure| failure.kind)))),
        ("status", integers(failures().map(|failure| failure.and_then(status)))),
        ("reason", strings(failures().map(|failure| failure.and_then(reason)))),
        ("message", strings(failures().map(|failure| failure.map(|f| f.message.as_str())))),
    ])
}
