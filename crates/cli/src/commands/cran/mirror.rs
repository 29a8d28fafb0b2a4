//! `trunkline cran mirror` and `with-mirror`.

use std::{
    fs, io,
    io::Read as _,
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use trunkline_cran::mirror::{Mirror, MirrorOptions, Store, Token};
use trunkline_listen::{Drain, Listener, Server};
use trunkline_transfer::{Engine, Report};

use crate::{
    commands::cran::{
        args::{MirrorArgs, StoreArgs, WithMirrorArgs},
        error::CranError,
    },
    environment::Environment,
    exit::Exit,
    flags::NetworkArgs,
    render::{self, View},
    settings, signals,
};

/// How long answers under way may take after the order to stop.
const DRAIN_WAIT: Duration = Duration::from_secs(5);
/// How often `--exit-with-parent` looks.
const PARENT_INTERVAL: Duration = Duration::from_millis(500);
/// Characters of a token: 192 bits in hexadecimal.
const TOKEN_BYTES: usize = 24;

pub(crate) async fn run(args: MirrorArgs) -> Result<Exit, CranError> {
    let environment = Environment::read();
    let cache = cache_folder(&args.store, &environment);
    let token = match (&args.token_file, args.no_token) {
        (_, true) => None,
        (Some(path), _) => Some(token_in(path)?),
        (None, _) => Some(token_in(&cache.join("token"))?),
    };
    let address = args.listen.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, args.port)));
    if args.print_rprofile {
        if address.port() == 0 {
            return Err(CranError::NoPort);
        }
        print(&rprofile(&format!("http://{address}"), token.as_ref()));
        return Ok(Exit::Success);
    }
    let mirror = mirror(&args.store, &cache, &args.network, &environment, token.clone())?;
    let listener = Listener::bind_tcp(address)?;
    let bound = listener.tcp_address().unwrap_or(address);
    print(&format!("{}\n", root(&format!("http://{bound}"), token.as_ref())));
    let parent = rustix::process::getppid();
    let (stop, stopped) = signals::stop();
    let drain = Drain::new(DRAIN_WAIT);
    let serving = serve(&mirror.mirror, listener, &drain);
    let parents_end = async {
        while rustix::process::getppid() == parent {
            tokio::time::sleep(PARENT_INTERVAL).await;
        }
    };
    let ended = async {
        tokio::select! {
            () = stop => {}
            () = parents_end, if args.exit_with_parent => {}
        }
        drain.start();
    };
    tokio::join!(serving, ended);
    finish(&mirror, &args.output);
    Ok(stopped.get().map_or(Exit::Success, Exit::Signal))
}

pub(crate) async fn run_with(args: WithMirrorArgs) -> Result<Exit, CranError> {
    let environment = Environment::read();
    let cache = cache_folder(&args.store, &environment);
    let token = fresh_token().map_err(CranError::file("read", Path::new("/dev/urandom")))?;
    let mirror = mirror(&args.store, &cache, &args.network, &environment, Some(token.clone()))?;
    let listener = Listener::bind_tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let base = listener.tcp_address().map(|bound| format!("http://{bound}")).unwrap_or_default();
    let profile = tempfile::Builder::new().prefix("trunkline-").suffix(".Rprofile").tempfile();
    let profile = profile.map_err(CranError::file("make a file in", &std::env::temp_dir()))?;
    let text = format!("{OWN_PROFILE}{}", rprofile(&base, Some(&token)));
    fs::write(profile.path(), text).map_err(CranError::file("write", profile.path()))?;
    let (program, arguments) = args.command.split_first().expect("clap asks for one at least");
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).env("R_PROFILE_USER", profile.path()).kill_on_drop(true);
    if let Some(own) = &environment.r_profile_user {
        command.env("TRUNKLINE_R_PROFILE_USER", own);
    }
    let drain = Drain::new(Duration::ZERO);
    let status = tokio::select! {
        status = command.status() => status,
        _ = serve(&mirror.mirror, listener, &drain) => unreachable!("nobody drains it"),
    };
    finish(&mirror, &args.output);
    let status = status.map_err(CranError::file("run", Path::new(program)))?;
    Ok(Exit::Child(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// Reads the profile that R would have read.
const OWN_PROFILE: &str = r#"local({
    own <- Sys.getenv("TRUNKLINE_R_PROFILE_USER", NA)
    if (is.na(own)) own <- Filter(file.exists, c(".Rprofile", "~/.Rprofile"))[1L]
    if (!is.na(own) && file.exists(own)) sys.source(own, envir = globalenv())
})
"#;

/// R code that puts the mirror in front of every repository that comes over http or https.
fn rprofile(base: &str, token: Option<&Token>) -> String {
    format!(
        r#"local({{
    # Repositories through the Trunkline mirror on this machine.
    mirror <- "{root}"
    repos <- unlist(getOption("repos"))
    repos[repos == "@CRAN@"] <- "https://cloud.r-project.org"
    remote <- grepl("^https?://", repos) & !startsWith(repos, mirror)
    repos[remote] <- sub("^(https?)://", paste0(mirror, "/\\1/"), repos[remote])
    options(repos = repos)
    direct <- c(Sys.getenv("no_proxy"), "127.0.0.1")
    Sys.setenv(no_proxy = paste(direct[nzchar(direct)], collapse = ","))
}})
"#,
        root = root(base, token)
    )
}

/// The mirror's root with its token.
fn root(base: &str, token: Option<&Token>) -> String {
    token.map_or_else(|| base.to_owned(), |token| format!("{base}/{}", token.expose()))
}

struct Running {
    engine: Engine,
    mirror: Mirror,
}

fn mirror(
    args: &StoreArgs,
    cache: &Path,
    network: &NetworkArgs,
    environment: &Environment,
    token: Option<Token>,
) -> Result<Running, CranError> {
    let files = cache.join("files");
    let store =
        Store::open(&files, args.cache_size << 30).map_err(CranError::file("make", &files))?;
    let engine = Engine::new(settings::engine(network, environment)?);
    let options = MirrorOptions { token, prefetch: !args.no_prefetch };
    Ok(Running { mirror: Mirror::new(engine.clone(), store, options), engine })
}

async fn serve(mirror: &Mirror, listener: Listener, drain: &Drain) {
    let mirror = mirror.clone();
    let answer = move |request| {
        let mirror = mirror.clone();
        async move { mirror.answer(request).await }
    };
    Server::new(listener).serve_http(drain, answer).await;
}

fn finish(running: &Running, output: &crate::flags::OutputArgs) {
    let stats = running.mirror.stats();
    if !output.quiet {
        render::error(&format!(
            "{} requests, {} from the store, {} files fetched ahead, {} stale",
            stats.requests, stats.hits, stats.prefetched, stats.stale
        ));
    }
    if output.stats {
        View::new(output, None, None).finish(&Report::default(), &running.engine, Exit::Success);
    }
    running.engine.close();
}

fn cache_folder(args: &StoreArgs, environment: &Environment) -> PathBuf {
    args.cache.clone().unwrap_or_else(|| {
        let home = || environment.home.as_ref().map(|home| home.join(".cache"));
        let base = environment.xdg_cache_home.clone().or_else(home);
        base.unwrap_or_else(std::env::temp_dir).join("trunkline").join("cran")
    })
}

/// The token in a file; a file that is missing gets one, readable by its owner alone.
fn token_in(path: &Path) -> Result<Token, CranError> {
    match fs::read_to_string(path) {
        Ok(text) => {
            Token::new(text.trim()).ok_or_else(|| CranError::Token { path: path.to_owned() })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let token =
                fresh_token().map_err(CranError::file("read", Path::new("/dev/urandom")))?;
            write_token(path, &token).map_err(CranError::file("write", path))?;
            Ok(token)
        }
        Err(error) => Err(CranError::file("read", path)(error)),
    }
}

fn write_token(path: &Path, token: &Token) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, token.expose().as_bytes())
}

fn fresh_token() -> io::Result<Token> {
    let mut bytes = [0; TOKEN_BYTES];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Token::new(&text).expect("48 hexadecimal digits"))
}

fn print(text: &str) {
    use io::Write as _;
    let mut out = io::stdout().lock();
    // Without a reader there is nobody to tell that it is gone.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
