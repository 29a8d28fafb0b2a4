//! From URLs and list entries to jobs.

use std::collections::HashSet;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use thiserror::Error;
use tokio::sync::mpsc;
use trunkline_proto::file_name;
use trunkline_proto::list::{Entry, LINE_BYTES_MAX, ListError, ListParser};
use trunkline_transfer::{Class, Existing, Job, SafeUrl};
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
    #[error("cannot write to standard output: {source}")]
    Output { source: io::Error },
    #[error("{}a header is not valid; write `Name: value`", At(*line))]
    Header { line: usize },
}

impl ListProblem {
    /// What kind of failure it is; `None` for a warning, after which nothing is missing.
    pub(crate) fn class(&self) -> Option<Class> {
        match self {
            Self::Line(error) if error.problem.is_warning() => None,
            Self::Folder { .. } | Self::Output { .. } => Some(Class::File),
            _ => Some(Class::Usage),
        }
    }
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
        if self.is_stdout() {
            let output = stdout().map_err(|source| ListProblem::Output { source })?;
            job.output = Some(Arc::new(output));
        }
        for mirror in &entry.mirrors {
            job.mirrors.push(parse_url(mirror, line)?);
        }
        let mut headers = HeaderMap::new();
        for text in entry.headers.iter() {
            add_header(&mut headers, text).map_err(|_| ListProblem::Header { line })?;
        }
        job.headers = headers;
        job.check = entry.checksum;
        job.existing = self.template.existing;
        job.refuse_html = self.template.refuse_html;
        job.time_max = self.template.time_max;
        Ok(job)
    }

    fn is_stdout(&self) -> bool {
        self.output.as_deref() == Some(Path::new("-"))
    }

    fn destination(&self, entry: &Entry, url: &Url) -> PathBuf {
        if let Some(output) = &self.output {
            let name = if self.is_stdout() { Path::new("/dev/stdout") } else { output };
            return name.to_owned();
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

/// Standard output as it was handed to the process. Opened by its name, a file would be written
/// from its start, and a socket not at all.
fn stdout() -> io::Result<File> {
    #[cfg(unix)]
    let own = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned();
    #[cfg(windows)]
    let own = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned();
    own.map(File::from)
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

/// Jobs sent at a time: waking the engine for each would cost as much as the transfer of a small
/// file.
const BATCH: usize = 32;

/// Hands jobs over in batches; the first ones go at once, so that nothing waits for a slow list.
struct Batches<'a> {
    jobs: &'a mpsc::Sender<Vec<Job>>,
    batch: Vec<Job>,
    sent: usize,
    tell: &'a mut dyn FnMut(ListProblem),
}

impl Batches<'_> {
    fn problem(&mut self, problem: ListProblem) {
        (self.tell)(problem);
    }

    /// Returns whether anybody still wants jobs.
    fn push(&mut self, job: Job) -> bool {
        self.batch.push(job);
        // The size of a batch grows from one.
        if self.batch.len() < (self.sent + 1).min(BATCH) { true } else { self.flush() }
    }

    fn flush(&mut self) -> bool {
        self.sent += self.batch.len();
        self.jobs.blocking_send(std::mem::take(&mut self.batch)).is_ok()
    }

    fn entry(&mut self, planner: &mut Planner, entry: &Entry) -> bool {
        match planner.job(entry) {
            Ok(job) => self.push(job),
            Err(problem) => {
                self.problem(problem);
                true
            }
        }
    }
}

/// Sends the jobs of the command line and of the list, as they are taken. Each problem is told
/// as it is found.
pub(crate) fn read(
    args: &GetArgs,
    mut planner: Planner,
    jobs: &mpsc::Sender<Vec<Job>>,
    tell: &mut dyn FnMut(ListProblem),
) {
    let mut batches = Batches { jobs, batch: Vec::new(), sent: 0, tell };
    for url in &args.urls {
        let entry = Entry { url: url.clone(), checksum: args.checksum, ..Entry::default() };
        if !batches.entry(&mut planner, &entry) {
            return;
        }
    }
    if let Some(path) = &args.input_file {
        read_list(path, &mut planner, &mut batches);
    }
    batches.flush();
}

fn read_list(path: &Path, planner: &mut Planner, batches: &mut Batches<'_>) {
    let read_error = |source| ListProblem::Read { path: path.to_owned(), source };
    let source: Box<dyn io::Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        match File::open(path) {
            Ok(file) => Box::new(file),
            Err(source) => return batches.problem(read_error(source)),
        }
    };
    let mut lines = io::BufReader::new(source);
    let mut parser = ListParser::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        match read_line(&mut lines, &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            Err(source) => {
                batches.problem(read_error(source));
                break;
            }
        }
        let (entries, errors) = parser.line(&String::from_utf8_lossy(&line));
        for error in errors {
            batches.problem(error.into());
        }
        for entry in &entries {
            if !batches.entry(planner, entry) {
                return;
            }
        }
        // A pipe may pause for long: what it has given so far begins.
        if lines.buffer().is_empty() && !batches.flush() {
            return;
        }
    }
    for entry in &parser.finish() {
        if !batches.entry(planner, entry) {
            return;
        }
    }
}

/// Reads one line, but no more of it than shows that it is too long.
fn read_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<usize> {
    let bytes_max = LINE_BYTES_MAX as u64 + 2;
    let read = lines.take(bytes_max).read_until(b'\n', line)?;
    if read as u64 == bytes_max && line.last() != Some(&b'\n') {
        lines.skip_until(b'\n')?;
    }
    Ok(read)
}
