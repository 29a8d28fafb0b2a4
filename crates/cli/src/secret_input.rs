//! Secrets from elsewhere than the command line, in nbdkit's forms.

use std::fs;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use thiserror::Error;
use trunkline_proto::secret::Secret;

/// Longest secret read, in bytes.
const SECRET_BYTES_MAX: u64 = 64 * 1024;

/// A secret that cannot be read.
#[derive(Debug, Error)]
#[error("cannot read the secret from `{from}`: {source}")]
pub(crate) struct SecretError {
    from: String,
    #[source]
    source: io::Error,
}

/// Reads `-` (asked for on the terminal, or the first line of standard input), `+FILE`, `-FD`,
/// or the text itself.
pub(crate) fn read(source: &str, what: &str) -> Result<Secret, SecretError> {
    let text = if source == "-" {
        ask(what)
    } else if let Some(path) = source.strip_prefix('+') {
        fs::File::open(path).and_then(first_line)
    } else if let Some(descriptor) = source.strip_prefix('-').filter(|d| is_number(d)) {
        // The descriptor is reopened by name, so that nothing else in the process loses it.
        fs::File::open(format!("/dev/fd/{descriptor}")).and_then(first_line)
    } else {
        Ok(source.to_owned())
    };
    text.map(Secret::new).map_err(|error| SecretError { from: source.to_owned(), source: error })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn first_line(file: fs::File) -> io::Result<String> {
    let mut text = String::new();
    io::BufReader::new(file.take(SECRET_BYTES_MAX)).read_line(&mut text)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Asks without echo where a terminal is there.
fn ask(what: &str) -> io::Result<String> {
    let stdin = io::stdin();
    let is_terminal = stdin.is_terminal();
    if is_terminal {
        let mut stderr = io::stderr();
        write!(stderr, "{what}: ")?;
        stderr.flush()?;
    }
    let _silent = is_terminal.then(NoEcho::begin);
    let mut text = String::new();
    stdin.lock().take(SECRET_BYTES_MAX).read_line(&mut text)?;
    if is_terminal {
        writeln!(io::stderr())?;
    }
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// The terminal without echo, as long as it lives.
struct NoEcho {
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

#[cfg(unix)]
impl NoEcho {
    fn begin() -> Self {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin()).ok();
        if let Some(before) = &before {
            let mut silent = before.clone();
            silent.local_modes.remove(LocalModes::ECHO);
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &silent);
        }
        Self { before }
    }
}

#[cfg(unix)]
impl Drop for NoEcho {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = rustix::termios::tcsetattr(
                io::stdin(),
                rustix::termios::OptionalActions::Flush,
                before,
            );
        }
    }
}

#[cfg(not(unix))]
impl NoEcho {
    fn begin() -> Self {
        Self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gives_its_first_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "hush\r\nmore\n").unwrap();
        let secret = read(&format!("+{}", file.path().display()), "Password").unwrap();
        assert_eq!(secret.expose(), "hush");
        assert_eq!(read("plain", "Password").unwrap().expose(), "plain");
        assert!(read("+/nonexistent/file", "Password").is_err());
    }
}
