//! `trunkline nbd`: remote and local images as NBD exports.

mod args;
mod listening;
mod open;
mod outcome;

use std::io::Write as _;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use trunkline_listen::{Drain, Stream};
use trunkline_nbd::Server;
use trunkline_proto::nbd::{Policy, TlsMode};
use trunkline_transfer::Engine;

pub(crate) use args::NbdArgs;
use args::TlsChoice;
use listening::Listening;
use open::Opened;
pub(crate) use outcome::NbdError;

use crate::environment::Environment;
use crate::exit::Exit;
use crate::{logging, settings, signals};

/// Threads that move bytes: several clients gain from several, up to a point.
const THREADS_MAX: usize = 4;

/// Connections to one origin unless the user says otherwise. The pool opens them only while
/// requests wait: a random reader with 16 requests in flight then pays one round trip for each.
const CONNECTIONS_PER_ORIGIN_DEFAULT: usize = 16;

/// How long clients may take to finish once the command is told to stop.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);

/// Runs the command.
pub(crate) fn main(args: NbdArgs) -> Result<Exit, NbdError> {
    logging::start_service(args.output.verbose);
    let mut settings = settings::engine(&args.network, &Environment::read())?;
    if args.network.max_connections.is_none() {
        let limits = &mut settings.limits;
        limits.connections_per_origin = CONNECTIONS_PER_ORIGIN_DEFAULT;
        limits.connections_in_all = limits.connections_in_all.max(CONNECTIONS_PER_ORIGIN_DEFAULT);
    }
    if args.running.exit_with_parent {
        let signal = Some(rustix::process::Signal::TERM);
        rustix::process::set_parent_process_death_signal(signal)
            .map_err(|error| NbdError::Start(error.into()))?;
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .map_err(NbdError::Start)?;
    let exit = runtime.block_on(async move {
        let engine = Engine::new(settings);
        serve(&args, &engine).await
    });
    runtime.shutdown_timeout(Duration::from_millis(200));
    exit
}

async fn serve(args: &NbdArgs, engine: &Engine) -> Result<Exit, NbdError> {
    let opened = Opened::all(args, engine).await?;
    let listening = Listening::start(args)?;
    let mut server = Server::new(opened.catalogue.clone());
    server.policy = Policy {
        tls: match args.tls.tls {
            TlsChoice::Off => TlsMode::Off,
            TlsChoice::On => TlsMode::On,
            TlsChoice::Require => TlsMode::Require,
        },
        list: !args.listening.no_list,
    };
    server.tls = listening.tls.clone();
    let stats = Arc::clone(&server.stats);

    let drain = Drain::new(DRAIN_TIME_MAX);
    let (session_drain, server) = (drain.clone(), Arc::new(server));
    let session = move |stream: Stream| {
        let (server, drain) = (Arc::clone(&server), session_drain.clone());
        async move {
            let peer = stream.peer();
            if let Err(error) = server.serve(stream, &drain).await {
                tracing::info!(%peer, %error, "a client's session ended early");
            }
        }
    };
    let names = listening.names;
    let clients = listening.server.serve_streams(&drain, session);
    tokio::pin!(clients);

    announce(args, &names.uri)?;
    let report = || outcome::report(&stats.counts(), &opened, engine);
    let (stop, stopped) = signals::stop();
    tokio::pin!(stop);
    let until = async {
        match &args.running.run {
            None => {
                (&mut stop).await;
                Ok(Exit::Signal(stopped.get().unwrap_or(15)))
            }
            Some(command) => {
                let mut child = names.spawn(command).map_err(NbdError::Run)?;
                tokio::select! {
                    ended = child.wait() => Ok(exit_of(ended.map_err(NbdError::Run)?)),
                    () = &mut stop => Ok(Exit::Signal(stopped.get().unwrap_or(15))),
                }
            }
        }
    };
    let mut told = signals::report_wanted();
    tokio::pin!(until);
    let exit = loop {
        tokio::select! {
            exit = &mut until => break exit,
            () = told.next() => report(),
            _ = &mut clients => break Ok(Exit::Success),
        }
    };
    drain.start();
    if exit.is_ok() {
        clients.await;
    }
    let flushed = opened.flush().await;
    if args.output.stats {
        report();
    }
    engine.close();
    flushed?;
    match exit {
        // To be told to stop is how a server ends.
        Ok(Exit::Signal(_)) if args.running.run.is_none() => Ok(Exit::Success),
        exit => exit,
    }
}

/// Tells whoever waits that clients can connect.
fn announce(args: &NbdArgs, uri: &str) -> Result<(), NbdError> {
    if let Some(path) = &args.running.pidfile {
        std::fs::write(path, format!("{}\n", std::process::id()))
            .map_err(|source| NbdError::Pidfile { path: path.clone(), source })?;
    }
    if args.running.print_uri {
        let mut out = std::io::stdout();
        // Whoever asked for it and closed the pipe has changed their mind.
        let _ = writeln!(out, "{uri}").and_then(|()| out.flush());
    }
    Ok(())
}

fn exit_of(status: ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(0), _) => Exit::Success,
        (Some(code), _) => Exit::Child(code as u8),
        (None, signal) => Exit::Signal(signal.unwrap_or(0) as u8),
    }
}
