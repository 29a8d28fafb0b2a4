//! `trunkline ostree`: push, pull, check, deploy, repair.

use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;
use thiserror::Error;
use trunkline_ostree::beside;
use trunkline_ostree::check::{self, Check, CheckError};
use trunkline_ostree::closure::WalkError;
use trunkline_ostree::credentials::{Credentials, CredentialsError};
use trunkline_ostree::deploy::{self, Deploy, DeployError};
use trunkline_ostree::pull::{self, Pull, PullError, Pulled};
use trunkline_ostree::push::{self, Push, PushError, Pushed};
use trunkline_ostree::remote::{Remote, RemoteError, Verdict};
use trunkline_ostree::repo::{Repo, RepoError};
use trunkline_ostree::targets::TargetsError;
use trunkline_proto::ostree::{Checksum, RefName};
use trunkline_proto::secret::Secret;
use trunkline_transfer::{Engine, OriginProfile};
use trunkline_transport::{Identity, Origin, TlsSetupError};
use url::Url;

use crate::environment::Environment;
use crate::exit::Exit;
use crate::flags::OutputArgs;
use crate::flags::ostree::{CheckArgs, DeployArgs, OstreeCommand, PullArgs, PushArgs, ServerArgs};
use crate::render;
use crate::settings::{self, SettingsError};
use crate::{logging, signals};

/// Threads for files and hashes, besides the one for the network.
const FILE_THREADS_MAX: usize = 16;
/// How many faults are printed; all are counted.
const FAULTS_SHOWN_MAX: usize = 50;

/// Why a command failed.
#[derive(Debug, Error)]
pub(crate) enum OstreeError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    #[error("client_auth.p12: {0}")]
    Certificate(#[from] TlsSetupError),
    #[error("`{0}` is neither a ref nor a commit")]
    Name(String),
    #[error("the repository has no ref `{0}`")]
    NoSuchRef(String),
    #[error(transparent)]
    Repo(#[from] RepoError),
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error(transparent)]
    Push(#[from] PushError),
    #[error(transparent)]
    Pull(#[from] PullError),
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error(transparent)]
    Deploy(#[from] DeployError),
    #[error("{url} answered {status}")]
    TargetsStatus { url: Box<str>, status: u16 },
    #[error(transparent)]
    Targets(#[from] TargetsError),
    #[error("cannot start: {0}")]
    Runtime(#[source] std::io::Error),
}

/// Runs the command.
pub(crate) fn main(command: OstreeCommand) -> Exit {
    let style = match &command {
        OstreeCommand::Push(args) | OstreeCommand::Repair(args) => &args.server.output_style,
        OstreeCommand::Pull(args) => &args.server.output_style,
        OstreeCommand::Check(args) => &args.server.output_style,
        OstreeCommand::Deploy(args) => &args.server.output_style,
    };
    logging::start(style.verbose);
    let ended = match command {
        OstreeCommand::Push(args) => run(push(*args, false)),
        OstreeCommand::Repair(args) => run(push(*args, true)),
        OstreeCommand::Pull(args) => run(pull(*args)),
        OstreeCommand::Check(args) => run(check(*args)),
        OstreeCommand::Deploy(args) => run(deploy(*args)),
    };
    ended.unwrap_or_else(|error| fail(&error))
}

/// Says what went wrong, and which exit code that is.
pub(crate) fn fail(error: &OstreeError) -> Exit {
    render::error(&error.to_string());
    exit_of(error)
}

/// Runs a command's future until it ends or the user stops it.
pub(crate) fn run(
    work: impl Future<Output = Result<Exit, OstreeError>>,
) -> Result<Exit, OstreeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(FILE_THREADS_MAX)
        .build()
        .map_err(OstreeError::Runtime)?;
    let ended = runtime.block_on(async {
        let (stop, stopped) = signals::stop();
        tokio::select! {
            biased;
            () = stop => {
                render::error("stopped; run the same command again to go on");
                Ok(stopped.get().map_or(Exit::Mixed, Exit::Signal))
            }
            ended = work => ended,
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(2));
    ended
}

/// A server with its credentials, over an engine of its own.
pub(crate) fn remote(args: &ServerArgs) -> Result<Remote, OstreeError> {
    let engine = Engine::new(settings::engine(&args.network, &Environment::read())?);
    remote_on(&engine, args, args.server.as_ref(), args.credentials.as_deref())
}

/// A server with its credentials, over an engine that others may share.
fn remote_on(
    engine: &Engine,
    args: &ServerArgs,
    server: Option<&Url>,
    credentials: Option<&Path>,
) -> Result<Remote, OstreeError> {
    let Some(path) = credentials else {
        let server = server.cloned().expect("invariant: clap asks for one of the two");
        return Ok(Remote::new(engine.clone(), server)?);
    };
    let credentials = Credentials::read(path)?;
    let server: Url = server.cloned().unwrap_or(credentials.server);
    let mut profile = OriginProfile { auth: Some(credentials.auth), network: None };
    if let Some(archive) = &credentials.client_auth {
        let password = Secret::new(String::new());
        let identity = Identity::from_pkcs12(archive, Path::new("client_auth.p12"), &password)?;
        let mut network = engine.settings().network.clone();
        network.tls = settings::tls_as(&args.network, &Environment::read(), Some(identity))?;
        profile.network = Some(network);
    }
    // A URL without an origin is refused by the first request.
    if let Ok(origin) = Origin::from_url(&server) {
        engine.configure(origin, profile);
    }
    Ok(Remote::new(engine.clone(), server)?)
}

/// A ref or a commit, as people give either.
pub(crate) enum Named {
    Ref(RefName),
    Commit(Checksum),
}

impl Named {
    pub(crate) fn read(text: &str) -> Result<Self, OstreeError> {
        if let Ok(commit) = text.parse() {
            return Ok(Self::Commit(commit));
        }
        text.parse().map(Self::Ref).map_err(|_| OstreeError::Name(text.to_owned()))
    }

    /// The commit it names in a local repository.
    pub(crate) fn resolve(self, repo: &Repo) -> Result<(Checksum, Option<RefName>), OstreeError> {
        match self {
            Self::Commit(commit) => Ok((commit, None)),
            Self::Ref(name) => match repo.resolve(&name)? {
                Some(commit) => Ok((commit, Some(name))),
                None => Err(OstreeError::NoSuchRef(name.to_string())),
            },
        }
    }
}

async fn push(args: PushArgs, repair: bool) -> Result<Exit, OstreeError> {
    let started = Instant::now();
    let repo = Repo::open(&args.repo)?;
    let (commit, name) = Named::read(&args.name)?.resolve(&repo)?;
    let remote = remote(&args.server)?;
    let ask = Push {
        commit,
        name,
        jobs: args.server.jobs,
        dry_run: args.dry_run,
        verify: !args.no_verify,
        walk: args.walk,
        repair,
        force: args.force,
        plain: args.server.plain,
    };
    let pushed = push::push(&repo, &remote, &ask).await?;
    if args.deltas && !args.dry_run {
        beside::push_deltas(&repo, &remote, &commit).await?;
    }
    if let Some(file) = args.manifest.as_ref().filter(|_| !args.dry_run) {
        beside::push_manifest(&remote, &commit, file).await?;
    }
    let style = &args.server.output_style;
    finish(style, &remote, started, &pushed, || pushed_line(&pushed, args.dry_run));
    Ok(Exit::Success)
}

fn pushed_line(pushed: &Pushed, dry_run: bool) -> String {
    if dry_run {
        return format!("{} objects would be sent", pushed.objects);
    }
    let moved = if pushed.ref_set { "ref set" } else { "ref unchanged" };
    format!(
        "{} objects sent ({} were there), {}; {} HEAD requests; {moved}",
        pushed.uploads,
        pushed.present,
        render::bytes(pushed.bytes),
        pushed.heads
    )
}

async fn deploy(args: DeployArgs) -> Result<Exit, OstreeError> {
    let started = Instant::now();
    let engine = Engine::new(settings::engine(&args.server.network, &Environment::read())?);
    let to = &args.server;
    let from = (args.from.as_ref(), args.from_credentials.as_deref());
    let source = remote_on(&engine, to, from.0, from.1)?;
    let target = remote_on(&engine, to, to.server.as_ref(), to.credentials.as_deref())?;
    let ask = Deploy { commit: args.commit, name: args.name, force: args.force };
    let deployed = deploy::deploy(&source, &target, &ask).await?;
    finish(&to.output_style, &target, started, &deployed, || {
        let moved = if deployed.ref_set { "ref set" } else { "ref unchanged" };
        let bytes = render::bytes(deployed.bytes);
        format!("{} objects brought over, {bytes}; {moved}", deployed.objects)
    });
    Ok(Exit::Success)
}

async fn pull(args: PullArgs) -> Result<Exit, OstreeError> {
    let started = Instant::now();
    let repo = Repo::open_or_create(&args.repo)?;
    let remote = remote(&args.server)?;
    let ask = Pull {
        name: args.name,
        commit: args.commit,
        parents_max: args.depth,
        jobs: args.server.jobs,
        plain: args.server.plain,
    };
    let pulled = pull::pull(&repo, &remote, &ask).await?;
    finish(&args.server.output_style, &remote, started, &pulled, || pulled_line(&pulled));
    Ok(Exit::Success)
}

fn pulled_line(pulled: &Pulled) -> String {
    let bytes = render::bytes(pulled.bytes);
    format!("{}: {} objects received, {bytes}", pulled.commit, pulled.objects)
}

async fn check(args: CheckArgs) -> Result<Exit, OstreeError> {
    let started = Instant::now();
    let remote = remote(&args.server)?;
    let commit = match Named::read(&args.name)? {
        Named::Commit(commit) => commit,
        Named::Ref(name) => match remote.read_ref(&name).await? {
            Some(commit) => commit,
            None => return Err(PullError::NoSuchRef(name).into()),
        },
    };
    let walk = !args.commit_only;
    let ask = Check { commit, walk, jobs: args.server.jobs, plain: args.server.plain };
    let verdict = check::check(&remote, &ask).await?;
    let value = json!({
        "commit": commit.to_hex(),
        "objects": verdict.objects,
        "missing": verdict.missing,
        "corrupt": verdict.corrupt,
    });
    finish(&args.server.output_style, &remote, started, &value, || verdict_text(&verdict));
    Ok(verdict_exit(&verdict))
}

pub(crate) fn verdict_exit(verdict: &Verdict) -> Exit {
    if verdict.is_sound() { Exit::Success } else { Exit::Integrity }
}

pub(crate) fn verdict_text(verdict: &Verdict) -> String {
    let mut text = String::new();
    for fault in verdict.faults.iter().take(FAULTS_SHOWN_MAX) {
        text.push_str(&format!("{}: {}\n", fault.object, fault.reason));
    }
    let Verdict { objects, missing, corrupt, .. } = verdict;
    text.push_str(&format!("{objects} objects: {missing} missing, {corrupt} corrupt"));
    text
}

fn finish(
    style: &OutputArgs,
    remote: &Remote,
    started: Instant,
    result: &impl Serialize,
    line: impl Fn() -> String,
) {
    let stats = remote.engine().stats_total();
    if style.json {
        let value = json!({
            "result": result,
            "seconds": started.elapsed().as_secs_f64(),
            "connections": stats.connections,
            "handshakes_full": stats.handshakes_full,
            "handshakes_resumed": stats.handshakes_resumed,
            "requests": stats.requests,
            "bytes_sent": stats.bytes_sent,
            "bytes_received": stats.bytes_received,
        });
        render::data(&value.to_string());
    } else if !style.quiet {
        render::data(&format!("{} in {:.2} s", line(), started.elapsed().as_secs_f64()));
    }
    if style.stats {
        render::note(render::origins(remote.engine()).trim_end());
    }
}

fn exit_of(error: &OstreeError) -> Exit {
    match error {
        OstreeError::Settings(SettingsError::Tls(_)) | OstreeError::Certificate(_) => Exit::Tls,
        OstreeError::Settings(_) | OstreeError::Name(_) | OstreeError::NoSuchRef(_) => Exit::Usage,
        OstreeError::Credentials(CredentialsError::File { .. }) | OstreeError::Runtime(_) => {
            Exit::File
        }
        OstreeError::Credentials(_) => Exit::Usage,
        OstreeError::TargetsStatus { .. } => Exit::Status,
        OstreeError::Targets(_) => Exit::Integrity,
        OstreeError::Repo(error) => exit_of_repo(error),
        OstreeError::Remote(error) => exit_of_remote(error),
        OstreeError::Push(PushError::Remote(error))
        | OstreeError::Pull(PullError::Remote(error))
        | OstreeError::Check(CheckError::Remote(error))
        | OstreeError::Deploy(DeployError::Remote(error)) => exit_of_remote(error),
        OstreeError::Deploy(DeployError::Cut(error)) => error.class().into(),
        OstreeError::Deploy(DeployError::NoPacks(_)) => Exit::Usage,
        OstreeError::Deploy(DeployError::Temporary(_)) => Exit::File,
        OstreeError::Push(PushError::Local(WalkError::Repo(error)))
        | OstreeError::Pull(PullError::Local(WalkError::Repo(error))) => exit_of_repo(error),
        OstreeError::Push(_)
        | OstreeError::Pull(_)
        | OstreeError::Check(_)
        | OstreeError::Deploy(_) => Exit::Integrity,
    }
}

fn exit_of_repo(error: &RepoError) -> Exit {
    match error {
        RepoError::Corrupt { .. } | RepoError::Missing { .. } => Exit::Integrity,
        RepoError::Mode { .. }
        | RepoError::NotAnArchive { .. }
        | RepoError::NotARepository { .. } => Exit::Usage,
        _ => Exit::File,
    }
}

fn exit_of_remote(error: &RemoteError) -> Exit {
    match error {
        RemoteError::Transfer(error) => error.kind.class().into(),
        RemoteError::Status { status, .. } if matches!(status.as_u16(), 401 | 403) => {
            Exit::Authentication
        }
        RemoteError::Url(_) => Exit::Usage,
        _ => Exit::Status,
    }
}
