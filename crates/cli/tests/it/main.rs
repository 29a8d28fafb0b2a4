//! The command as a user meets it: the real binary, against scripted origins and, where an
//! outside judge matters, against nginx.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it skips"
)]

mod nginx;
mod process;
mod scene;

mod cran; // trunkline cran
mod credentials; // where they come from, where they go, that they do not show
mod exit_codes; // one code a kind of failure, and one failure among many
mod files; // destinations, checksums, file: URLs, what is left alone
mod interrupted; // Ctrl-C, SIGTERM, kill -9, and the run after
mod json_events; // --json
mod judge; // nginx
mod lists; // the three forms, standard input, long ones
mod nbd; // nbdcopy, qemu-io and sfdisk over `trunkline nbd`
mod network; // connections, versions, proxies, names, certificates
mod ostree; // push, pull and check against our server, judged by ostree
mod ostree_process; // ostree and treehub as processes; killed at any moment
mod reports; // summary, --stats, progress, --help
mod tour; // trunkline tour
