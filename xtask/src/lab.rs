//! Two hosts on one machine, joined by a link with a real round-trip time.
//!
//! Each lab has two network namespaces of its own, named after the process that made them, so
//! labs of several runs do not meet. A [`Lab`] that is dropped takes everything away again; one
//! that was [kept](Lab::keep) is taken away by `cargo xtask lab down`.

mod access_log;
mod certificate;
mod link;
mod nginx;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand, ValueEnum};

pub(crate) use self::access_log::Traffic;
pub(crate) use self::certificate::Certificates;
use self::link::Link;
pub(crate) use self::nginx::Nginx;
use crate::command;

/// The server host's name, for URLs and its certificate.
pub(crate) const SERVER_NAME: &str = "web.test";
/// Its address.
pub(crate) const SERVER_ADDRESS: &str = "10.77.9.1";
const CLIENT_ADDRESS: &str = "10.77.9.2";

/// How long a process of the lab may take to be ready.
const READY_WAIT_MAX: Duration = Duration::from_secs(5);

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Set up two hosts and nginx on one of them, and leave them up
    Up {
        /// Round-trip time in milliseconds
        #[arg(long, default_value_t = 20.0, value_name = "MS")]
        rtt_ms: f64,
        /// Rate limit in Mbit/s; none without it
        #[arg(long, value_name = "N")]
        mbit: Option<f64>,
        /// The folder that nginx serves
        #[arg(long, value_name = "DIR", default_value = ".")]
        root: PathBuf,
    },
    /// Take down all labs that were left up
    Down,
    /// Run a command on a host of the lab that is up
    Run {
        #[arg(long, value_enum)]
        host: Host,
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
}

/// One of the two machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Host {
    Client,
    Server,
}

/// What the link between the hosts is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LinkSpec {
    /// Round-trip time; each direction takes half of it.
    pub(crate) rtt: Duration,
    /// Rate limit of each direction; none when absent.
    pub(crate) mbit: Option<f64>,
}

/// `cargo xtask lab …`
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.verb {
        Verb::Up { rtt_ms, mbit, root } => {
            let rtt = Duration::try_from_secs_f64(rtt_ms / 1000.0).context("--rtt-ms")?;
            let mut lab = Lab::up(LinkSpec { rtt, mbit: *mbit }, &root.canonicalize()?)?;
            lab.keep();
            println!("lab {} is up: https://{SERVER_NAME}:{} (h2, h1),", lab.name, Nginx::H2_PORT);
            println!("  https://{SERVER_NAME}:{} (h1 only),", Nginx::H1_PORT);
            println!("  http://{SERVER_NAME}:{}", Nginx::PLAIN_PORT);
            println!("CA: {}", lab.certificates.authority.display());
            println!("log: {}", lab.nginx.log.display());
            println!("try: cargo xtask lab run --host client -- curl --cacert CA URL");
            Ok(())
        }
        Verb::Down => down_all(),
        Verb::Run { host, command } => run_in_lab(*host, command),
    }
}

/// A pair of hosts that exists.
#[derive(Debug)]
pub(crate) struct Lab {
    name: String,
    directory: PathBuf,
    pub(crate) certificates: Certificates,
    pub(crate) nginx: Nginx,
    is_kept: bool,
}

impl Lab {
    /// Sets both hosts up, with nginx serving `root` on the server.
    ///
    /// # Errors
    /// Not root, a missing program, or the kernel refuses; what was made so far is taken away.
    pub(crate) fn up(spec: LinkSpec, root: &Path) -> Result<Self> {
        Self::up_with_uploads(spec, root, None)
    }

    /// As [`up`](Self::up); nginx keeps the bodies that it is sent in the folder `uploads`.
    ///
    /// # Errors
    /// As [`up`](Self::up).
    pub(crate) fn up_with_uploads(
        spec: LinkSpec,
        root: &Path,
        uploads: Option<&Path>,
    ) -> Result<Self> {
        if !command::is_root() {
            bail!("the lab makes network namespaces, which needs root");
        }
        sweep()?;
        let name = free_name()?;
        let directory = labs_directory().join(&name);
        std::fs::create_dir_all(&directory)?;
        // From here on each step leaves a trace in `directory`, which the guard follows back.
        let guard = Remains { name: &name, directory: &directory };
        std::fs::write(directory.join(OWNER), std::process::id().to_string())?;
        let certificates = Certificates::make(&tls_directory(), SERVER_NAME)?;
        make_namespaces(&name)?;
        Link::up(&name, &directory, spec)?;
        let server = namespace_command(&name, Host::Server);
        let own_uploads = directory.join("body");
        let uploads = uploads.unwrap_or(&own_uploads);
        let nginx = Nginx::start(server, &directory, (root, uploads), &certificates)?;
        std::mem::forget(guard);
        Ok(Self { name, directory, certificates, nginx, is_kept: false })
    }

    /// A command that will run on `host`; the program is its first argument.
    pub(crate) fn command(&self, host: Host) -> Command {
        namespace_command(&self.name, host)
    }

    /// The lab outlives this process, until `lab down`.
    fn keep(&mut self) {
        self.is_kept = true;
        // A lab without an owner is not swept away as an orphan.
        let _ = std::fs::remove_file(self.directory.join(OWNER));
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if !self.is_kept {
            take_down(&self.name, &self.directory);
        }
    }
}

/// Takes down what [`Lab::up`] made before it failed.
struct Remains<'a> {
    name: &'a str,
    directory: &'a Path,
}

impl Drop for Remains<'_> {
    fn drop(&mut self) {
        take_down(self.name, self.directory);
    }
}

/// The file that holds the pid of a lab's maker, as long as the lab must not outlive it.
const OWNER: &str = "owner";
/// Files with the pids of a lab's processes.
const PIDS: [&str; 2] = [nginx::PID, link::PID];

fn labs_directory() -> PathBuf {
    command::workspace_root().join("target/bench/lab")
}

fn tls_directory() -> PathBuf {
    command::workspace_root().join("target/bench/tls")
}

/// Namespaces are the machine's, not this work tree's: take a name that nobody has.
fn free_name() -> Result<String> {
    const TRIES_MAX: u32 = 100;
    let pid = std::process::id();
    (0..TRIES_MAX)
        .map(|index| format!("trunk{pid}x{index}"))
        .find(|name| !namespace_exists(name))
        .context("all names for a lab are taken")
}

fn namespace_exists(name: &str) -> bool {
    [Host::Client, Host::Server]
        .iter()
        .any(|host| Path::new("/var/run/netns").join(namespace(name, *host)).exists())
}

fn namespace(name: &str, host: Host) -> String {
    match host {
        Host::Client => format!("{name}c"),
        Host::Server => format!("{name}s"),
    }
}

fn namespace_command(name: &str, host: Host) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &namespace(name, host)]);
    command
}

fn make_namespaces(name: &str) -> Result<()> {
    for (host, server_address) in [(Host::Client, SERVER_ADDRESS), (Host::Server, "127.0.0.1")] {
        let space = namespace(name, host);
        command::run(Command::new("ip").args(["netns", "add", &space]))?;
        command::run(Command::new("ip").args(["-n", &space, "link", "set", "lo", "up"]))?;
        // `ip netns exec` lays this over /etc/hosts for the commands it runs.
        let etc = hosts_directory(&space);
        std::fs::create_dir_all(&etc)?;
        let hosts = format!("127.0.0.1 localhost\n{server_address} {SERVER_NAME}\n");
        std::fs::write(etc.join("hosts"), hosts)?;
        // Else the kernel remembers windows from one run and the next peer profits.
        let forget = "echo 1 > /proc/sys/net/ipv4/tcp_no_metrics_save";
        command::run(namespace_command(name, host).args(["sh", "-c", forget]))?;
    }
    Ok(())
}

fn hosts_directory(space: &str) -> PathBuf {
    Path::new("/etc/netns").join(space)
}

/// Ends the lab's processes and takes its namespaces away; goes on past what is gone already.
fn take_down(name: &str, directory: &Path) {
    for file in PIDS {
        if let Some(pid) = read_pid(&directory.join(file))
            && is_of_lab(pid, directory)
        {
            terminate(pid);
        }
    }
    for host in [Host::Client, Host::Server] {
        let space = namespace(name, host);
        let mut delete = Command::new("ip");
        delete.args(["netns", "delete", &space]).stderr(Stdio::null());
        // Fails when `up` never came this far.
        let _ = delete.status();
        let _ = std::fs::remove_dir_all(hosts_directory(&space));
    }
    let _ = std::fs::remove_dir_all(directory);
}

fn read_pid(path: &Path) -> Option<i32> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// A pid on file may be a stranger's by now; a process of the lab has its folder in its arguments.
fn is_of_lab(pid: i32, directory: &Path) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|arguments| {
        String::from_utf8_lossy(&arguments).contains(&*directory.to_string_lossy())
    })
}

/// Asks a process to end and waits until it has, so that its namespace is free.
fn terminate(pid: i32) {
    use nix::sys::signal::{Signal, kill};
    use nix::sys::wait::{WaitPidFlag, waitpid};
    let pid = nix::unistd::Pid::from_raw(pid);
    if kill(pid, Signal::SIGTERM).is_err() {
        return;
    }
    let deadline = Instant::now() + READY_WAIT_MAX;
    while Instant::now() < deadline {
        // Ours becomes a zombie that must be collected; another's simply vanishes.
        let _ = waitpid(pid, Some(WaitPidFlag::WNOHANG));
        if kill(pid, None).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = kill(pid, Signal::SIGKILL);
    let _ = waitpid(pid, None);
}

/// The labs of this work tree: name and folder.
fn existing() -> Result<Vec<(String, PathBuf)>> {
    let Ok(entries) = std::fs::read_dir(labs_directory()) else { return Ok(Vec::new()) };
    let mut labs = Vec::new();
    for entry in entries {
        let entry = entry?;
        labs.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
    }
    labs.sort();
    Ok(labs)
}

/// Takes away labs whose maker was killed before it could.
fn sweep() -> Result<()> {
    for (name, directory) in existing()? {
        let owner = read_pid(&directory.join(OWNER));
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            println!("lab: taking {name} away, whose maker is gone");
            take_down(&name, &directory);
        }
    }
    Ok(())
}

fn down_all() -> Result<()> {
    sweep()?;
    for (name, directory) in existing()? {
        if directory.join(OWNER).exists() {
            println!("lab: {name} is in use by a bench, left alone");
            continue;
        }
        take_down(&name, &directory);
        println!("lab: {name} is down");
    }
    Ok(())
}

fn run_in_lab(host: Host, words: &[String]) -> Result<()> {
    let kept: Vec<(String, PathBuf)> =
        existing()?.into_iter().filter(|(_, directory)| !directory.join(OWNER).exists()).collect();
    let [(name, _)] = kept.as_slice() else {
        bail!("{} labs are up, `lab run` needs exactly one", kept.len());
    };
    command::run(namespace_command(name, host).args(words))
}

/// Waits for `ready` to say yes, for a process that has no other way to tell us.
pub(crate) fn wait_until(what: &str, mut ready: impl FnMut() -> bool) -> Result<()> {
    let deadline = Instant::now() + READY_WAIT_MAX;
    while !ready() {
        if Instant::now() > deadline {
            bail!("{what} was not ready within {} s", READY_WAIT_MAX.as_secs());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
