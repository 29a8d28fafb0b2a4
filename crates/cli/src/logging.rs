//! `-v`: what the libraries trace, on standard error.

use tracing_subscriber::filter::LevelFilter;

/// As [`start`], for commands that serve: what goes wrong for a client is always told.
pub(crate) fn start_service(verbose: u8) {
    match verbose {
        0 => start_at(LevelFilter::WARN),
        _ => start(verbose),
    }
}

/// Starts logging at the level that the number of `-v` flags asks for.
pub(crate) fn start(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    start_at(level);
}

fn start_at(level: LevelFilter) {
    // A second start in one process (tests) changes nothing.
    let _ = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .without_time()
        .try_init();
}
