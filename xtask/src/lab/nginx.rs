//! nginx on the server host: one worker, three ports, a log that tells connections apart.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use super::{Certificates, SERVER_NAME, access_log, wait_until};
use crate::command;

pub(super) const PID: &str = "nginx.pid";

/// A running nginx.
#[derive(Debug)]
pub(crate) struct Nginx {
    /// One line a request, as [`access_log`] reads it.
    pub(crate) log: PathBuf,
    status_socket: PathBuf,
}

impl Nginx {
    /// TLS, HTTP/2 and HTTP/1.1 by ALPN.
    pub(crate) const H2_PORT: u16 = 8443;
    /// TLS, HTTP/1.1 only.
    pub(crate) const H1_PORT: u16 = 8444;
    /// No TLS.
    pub(crate) const PLAIN_PORT: u16 = 8081;

    /// Takes a POST of any length and keeps it as a file until it has answered.
    pub(crate) const UPLOADS: &str = "/uploads";

    /// `host` runs its arguments where the server shall be. `folders` are the one that is served,
    /// and where bodies are kept that are sent.
    ///
    /// # Errors
    /// nginx is missing, refuses its configuration, or is not ready in time.
    pub(super) fn start(
        mut host: Command,
        directory: &Path,
        folders: (&Path, &Path),
        certificates: &Certificates,
    ) -> Result<Self> {
        let nginx = Self {
            log: directory.join("access.log"),
            status_socket: directory.join("status.sock"),
        };
        let settings = directory.join("nginx.conf");
        let complaints = directory.join("error.log");
        std::fs::write(&settings, nginx.settings(directory, folders, certificates))?;
        let program = command::find_program("nginx")
            .context("nginx is missing; `cargo xtask setup` installs it")?;
        let mut child = host
            .arg(program)
            .arg("-e")
            .arg(&complaints)
            .arg("-c")
            .arg(&settings)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(directory.join("stderr.log"))?)
            .process_group(0)
            .spawn()?;
        std::fs::write(directory.join(PID), child.id().to_string())?;
        let mut has_ended = false;
        let ready = wait_until("nginx", || {
            has_ended = child.try_wait().is_ok_and(|status| status.is_some());
            has_ended || UnixStream::connect(&nginx.status_socket).is_ok()
        });
        if has_ended || ready.is_err() {
            let said = std::fs::read_to_string(&complaints).unwrap_or_default();
            bail!("nginx did not start: {}", said.trim());
        }
        Ok(nginx)
    }

    fn settings(
        &self,
        directory: &Path,
        (root, uploads): (&Path, &Path),
        certificates: &Certificates,
    ) -> String {
        let (directory, path) = (directory.display(), Self::UPLOADS);
        let (h2, h1, plain) = (Self::H2_PORT, Self::H1_PORT, Self::PLAIN_PORT);
        format!(
            "user root; daemon off; worker_processes 1; pid {directory}/nginx.own.pid;
error_log {directory}/error.log;
events {{ worker_connections 4096; }}
http {{
  log_format lab '{format}';
  access_log {log} lab;
  client_body_temp_path {uploads}; proxy_temp_path {directory}/proxy;
  default_type application/octet-stream;
  sendfile on; tcp_nopush on; tcp_nodelay on;
  keepalive_timeout 75s; keepalive_requests 1000000;
  ssl_certificate {certificate}; ssl_certificate_key {key};
  ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:lab:10m;
  root {root};
  server {{ listen {h2} ssl http2; server_name {SERVER_NAME}; }}
  server {{ listen {h1} ssl; server_name {SERVER_NAME};
    location {path} {{
      client_max_body_size 0; client_body_buffer_size 1m; client_body_in_file_only clean;
      proxy_pass http://127.0.0.1:{plain}{path}; proxy_pass_request_body off;
      proxy_set_header Content-Length ''; }} }}
  server {{ listen {plain}; server_name {SERVER_NAME};
    location {path} {{ access_log off; return 204; }} }}
  server {{ listen unix:{status}; access_log off; location / {{ stub_status; }} }}
}}
",
            format = access_log::FORMAT,
            log = self.log.display(),
            certificate = certificates.server.display(),
            key = certificates.server_key.display(),
            root = root.display(),
            uploads = uploads.display(),
            status = self.status_socket.display(),
        )
    }

    /// Connections accepted so far, those without a request included, which no log line shows.
    ///
    /// # Errors
    /// nginx does not answer.
    pub(crate) fn accepted(&self) -> Result<u64> {
        let mut stream = UnixStream::connect(&self.status_socket)?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        accepted(&answer).context("nginx's status page has another form")
    }
}

/// The first number below the line that names the counters.
fn accepted(page: &str) -> Option<u64> {
    let mut lines = page.lines().skip_while(|line| !line.contains("accepts"));
    lines.nth(1)?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_connections_are_read_from_the_status_page() {
        let page = "HTTP/1.1 200 OK\r\n\r\nActive connections: 1 \n\
                    server accepts handled requests\n 17 17 42 \nReading: 0 Writing: 1 Waiting: 0 \n";
        assert_eq!(accepted(page), Some(17));
    }
}
