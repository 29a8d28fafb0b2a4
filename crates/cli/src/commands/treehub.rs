//! `trunkline treehub serve`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use trunkline_listen::{ALPN_HTTP, Drain, Limits, Listener, Server, TlsIdentity};
use trunkline_treehub::store::{DirectoryStore, Durability, StoreError};
use trunkline_treehub::{Access, NamespaceError, Scope, Settings, Token, Treehub, serve};

use crate::exit::Exit;
use crate::flags::treehub::{Anonymous, ServeArgs, TreehubCommand};
use crate::render;
use crate::{logging, signals};

/// What keeps the server from starting.
#[derive(Debug, Error)]
enum ServeError {
    #[error(transparent)]
    Listen(#[from] trunkline_listen::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot read `{}`: {source}", path.display())]
    Tokens { path: PathBuf, source: std::io::Error },
    #[error("`{}`, line {line}: write `push TOKEN [NAMESPACE]` or `read TOKEN [NAMESPACE]`", path.display())]
    TokenLine { path: PathBuf, line: usize },
    #[error("`{}`, line {line}: {source}", path.display())]
    TokenNamespace { path: PathBuf, line: usize, source: NamespaceError },
    #[error("cannot start: {0}")]
    Runtime(#[source] std::io::Error),
}

/// Runs the command.
pub(crate) fn main(command: TreehubCommand) -> Exit {
    let TreehubCommand::Serve(args) = command;
    logging::start(args.verbose);
    start(&args).unwrap_or_else(|error| {
        render::error(&error.to_string());
        match error {
            ServeError::Listen(_) => Exit::Network,
            ServeError::TokenLine { .. } | ServeError::TokenNamespace { .. } => Exit::Usage,
            _ => Exit::File,
        }
    })
}

fn start(args: &ServeArgs) -> Result<Exit, ServeError> {
    let access = access(args)?;
    let durability = if args.fsync { Durability::Sync } else { Durability::Rename };
    let store = DirectoryStore::open(&args.root, durability)?;
    let hub = Treehub::new(Arc::new(store), Settings { access, ..Settings::default() });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(ServeError::Runtime)?;
    runtime.block_on(async {
        let listener = Listener::bind_tcp(args.listen)?;
        let address = listener.tcp_address();
        let limits = Limits { body_bytes_max: args.body_max, ..Limits::default() };
        let mut server = Server::new(listener).limits(limits);
        let mut scheme = "http";
        if let (Some(chain), Some(key)) = (&args.tls_cert, &args.tls_key) {
            let authority = args.client_ca.as_deref();
            server = server.tls(TlsIdentity::from_files(chain, key, authority, ALPN_HTTP)?);
            scheme = "https";
        }
        if let Some(address) = address {
            render::data(&format!("{scheme}://{address}/api/v3/"));
        }
        let drain = Drain::new(Duration::from_secs(args.drain));
        let (stop, stopped) = signals::stop();
        let started = drain.clone();
        tokio::spawn(async move {
            stop.await;
            started.start();
        });
        let drained = serve(hub, server, &drain).await;
        let (finished, cut_off) = (drained.finished, drained.cut_off);
        render::note(&format!("stopped; {finished} connections ended, {cut_off} were cut off"));
        Ok(match stopped.get() {
            // Stopped as asked: what a service manager sends is no failure.
            Some(15) | None => Exit::Success,
            Some(number) => Exit::Signal(number),
        })
    })
}

fn access(args: &ServeArgs) -> Result<Access, ServeError> {
    let tokens = match &args.tokens {
        Some(path) => read_tokens(path)?,
        None => Vec::new(),
    };
    let is_private = args.listen.ip().is_loopback() && args.tokens.is_none();
    let anonymous = match args.anonymous {
        Some(Anonymous::None) => None,
        Some(Anonymous::Read) => Some(Scope::Read),
        Some(Anonymous::Push) => Some(Scope::Push),
        None => is_private.then_some(Scope::Push),
    };
    Ok(Access { anonymous, tokens })
}

fn read_tokens(path: &Path) -> Result<Vec<Token>, ServeError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ServeError::Tokens { path: path.to_owned(), source })?;
    let mut tokens = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        let mut words = line.split_whitespace();
        let scope = match words.next() {
            None => continue,
            Some(comment) if comment.starts_with('#') => continue,
            Some("push") => Some(Scope::Push),
            Some("read") => Some(Scope::Read),
            Some(_) => None,
        };
        let (secret, namespace, rest) = (words.next(), words.next(), words.next());
        let (Some(scope), Some(secret), None) = (scope, secret, rest) else {
            return Err(ServeError::TokenLine { path: path.to_owned(), line: line_number });
        };
        let namespace = namespace.map(str::parse).transpose().map_err(|source| {
            ServeError::TokenNamespace { path: path.to_owned(), line: line_number, source }
        })?;
        tokens.push(Token::new(secret, scope, namespace));
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_files_are_strict() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            read_tokens(file.path())
        };
        assert_eq!(read("# who\n\npush secret\nread other mine\n").unwrap().len(), 2);
        assert!(matches!(read("push\n"), Err(ServeError::TokenLine { line: 1, .. })));
        assert!(matches!(read("\nadmin x\n"), Err(ServeError::TokenLine { line: 2, .. })));
        assert!(matches!(read("push x ../y\n"), Err(ServeError::TokenNamespace { .. })));
    }
}
