//! From URLs and list entries to jobs.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderMap;
use thiserror::Error;
use tokio::sync::mpsc;
use trunkline_proto::file_name;
use trunkline_proto::list::{Entry, ListError, ListParser};
use trunkline_transfer::{Existing, Job, SafeUrl};
use url::Url;

use crate::flags::GetArgs;
use crate::settings::add_header;

/// Something in a list or on the command line that names nothing to fetch; the rest goes on.
#[derive(Debug, Error)]
pub(crate) enum ListProblem {
    #[error("list: {0}")]
    Line(#[from] ListError),
    #[error("cannot read the list `{}`: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}`{text}` is no URL: {reason}", At(*line))]
    Url { line: usize, text: String, reason: String },
    #[error("{}{url}: `{}` is the destination of an earlier URL too", At(*line), path.display())]
    Duplicate { line: usize, url: SafeUrl, path: PathBuf },
    #[error("{}cannot make the folder `{}`: {source}", At(*line), path.display())]
    Folder { line: usize, path: PathBuf, source: io::Error },
    #[error("{}`{text}` is no header; write `Name: value`", At(*line))]
    Header { line: usize, text: String },
}

/// `line 7: ` for a list, nothing for the command line.
struct At(usize);

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 == 0 { Ok(()) } else { write!(f, "line {}: ", self.0) }
    }
}

/// Makes jobs; knows which destinations are taken.
#[derive(Debug)]
pub(crate) struct Planner {
    directory: PathBuf,
    output: Option<PathBuf>,
    template: Template,
    /// Hashes of the destinations so far: eight bytes a file instead of its name.
    taken: HashSet<u64>,
    hasher: RandomState,
    /// The folder made last; most lists fill one after the other.
    made: Option<PathBuf>,
}

/// What all jobs of a command have in common.
#[derive(Clone, Copy, Debug)]
struct Template {
    existing: Existing,
    refuse_html: bool,
    time_max: Option<Duration>,
}

impl Planner {
    pub(crate) fn new(args: &GetArgs, time_max: Option<Duration>) -> Self {
        let existing = if args.keep { Existing::Keep } else { Existing::Replace };
        Self {
            directory: args.directory.clone().unwrap_or_default(),
            output: args.output.clone(),
            template: Template { existing, refuse_html: args.refuse_html, time_max },
            taken: HashSet::new(),
            hasher: RandomState::new(),
            made: None,
        }
    }

    fn job(&mut self, entry: &Entry) -> Result<Job, ListProblem> {
        let line = entry.line;
        let url = parse_url(&entry.url, line)?;
        let destination = self.destination(entry, &url);
        let is_new = self.taken.insert(self.hasher.hash_one(&destination));
        if !is_new {
            return Err(ListProblem::Duplicate {
                line,
                url: SafeUrl::new(&url),
                path: destination,
            });
        }
        self.make_folder(&destination, line)?;
        let mut job = Job::new(url, destination);
        for mirror in &entry.mirrors {
            job.mirrors.push(parse_url(mirror, line)?);
        }
        let mut headers = HeaderMap::new();
        for text in &entry.headers {
            add_header(&mut headers, text)
                .map_err(|_| ListProblem::Header { line, text: text.clone() })?;
        }
        job.headers = headers;
        job.check = entry.checksum;
        job.existing = self.template.existing;
        job.refuse_html = self.template.refuse_html;
        job.time_max = self.template.time_max;
        Ok(job)
    }

    fn destination(&self, entry: &Entry, url: &Url) -> PathBuf {
        if let Some(output) = &self.output {
            let is_stdout = output == Path::new("-");
            return if is_stdout { PathBuf::from("/dev/stdout") } else { output.clone() };
        }
        let name = match &entry.destination {
            Some(destination) => PathBuf::from(destination),
            None => PathBuf::from(file_name::from_url_path(url.path())),
        };
        let folder = entry.directory.as_ref().map(PathBuf::from).unwrap_or_default();
        // Joining keeps an absolute path as it is.
        self.directory.join(folder).join(name)
    }

    fn make_folder(&mut self, destination: &Path, line: usize) -> Result<(), ListProblem> {
        let Some(folder) = destination.parent().filter(|f| !f.as_os_str().is_empty()) else {
            return Ok(());
        };
        if self.made.as_deref() == Some(folder) {
            return Ok(());
        }
        std::fs::create_dir_all(folder).map_err(|source| ListProblem::Folder {
            line,
            path: folder.to_owned(),
            source,
        })?;
        self.made = Some(folder.to_owned());
        Ok(())
    }
}

fn parse_url(text: &str, line: usize) -> Result<Url, ListProblem> {
    let wrong = |reason: String| ListProblem::Url { line, text: shown(text), reason };
    let url = match Url::parse(text.trim()) {
        Ok(url) => url,
        Err(url::ParseError::RelativeUrlWithoutBase) => {
            return Err(wrong(format!("a scheme is missing; is it https://{}?", shown(text))));
        }
        Err(error) => return Err(wrong(error.to_string())),
    };
    match url.scheme() {
        "http" | "https" | "file" => Ok(url),
        other => Err(wrong(format!("{other}: is not supported; use http, https or file"))),
    }
}

/// A text that may hold a password is not repeated.
fn shown(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, rest)) => format!("***@{rest}"),
        None => text.chars().take(200).collect(),
    }
}

/// Sends the jobs of the command line and of the list, as they are taken. Returns the number of
/// problems; each is told as it is found.
pub(crate) fn read(
    args: &GetArgs,
    mut planner: Planner,
    jobs: &mpsc::Sender<Job>,
    tell: &mut dyn FnMut(ListProblem),
) -> u64 {
    let mut problems = 0;
    let mut send =
        |entry: &Entry, problems: &mut u64, tell: &mut dyn FnMut(ListProblem)| match planner
            .job(entry)
        {
            Ok(job) => jobs.blocking_send(job).is_ok(),
            Err(problem) => {
                *problems += 1;
                tell(problem);
                true
            }
        };
    for url in &args.urls {
        let entry = Entry { url: url.clone(), checksum: args.checksum, ..Entry::default() };
        if !send(&entry, &mut problems, tell) {
            return problems;
        }
    }
    let Some(path) = &args.input_file else { return problems };
    let read_error = |source| ListProblem::Read { path: path.clone(), source };
    let mut lines: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        match std::fs::File::open(path) {
            Ok(file) => Box::new(io::BufReader::new(file)),
            Err(source) => {
                tell(read_error(source));
                return problems + 1;
            }
        }
    };
    let mut parser = ListParser::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        match lines.read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            Err(source) => {
                tell(read_error(source));
                problems += 1;
                break;
            }
        }
        let (entries, errors) = parser.line(&String::from_utf8_lossy(&line));
        for error in errors {
            problems += 1;
            tell(error.into());
        }
        for entry in &entries {
            if !send(entry, &mut problems, tell) {
                return problems;
            }
        }
    }
    for entry in &parser.finish() {
        if !send(entry, &mut problems, tell) {
            break;
        }
    }
    problems
}
