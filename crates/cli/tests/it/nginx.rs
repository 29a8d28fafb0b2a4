//! nginx as the other side: a real server on a free port, killed by its own process id.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use trunkline_testkit::{Authority, temp_dir};

use crate::process::program;

/// A port that is free now may be taken a moment later.
const STARTS_MAX: usize = 5;

const START_TIME_MAX: Duration = Duration::from_secs(20);

/// A running nginx with TLS, HTTP/2 and HTTP/1.1 by ALPN.
#[derive(Debug)]
pub(crate) struct Nginx {
    folder: TempDir,
    port: u16,
    authority: Authority,
    child: Child,
}

impl Nginx {
    /// `None`, with a word about it, where nginx is not installed.
    pub(crate) fn start() -> Option<Self> {
        let program = program("nginx")?;
        let started = (0..STARTS_MAX).find_map(|_| Self::try_start(&program));
        Some(started.expect("nginx starts"))
    }

    fn try_start(program: &std::path::Path) -> Option<Self> {
        let folder = temp_dir();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let authority = Authority::new("nginx's");
        let identity = authority.server();
        fs::write(folder.path().join("chain.pem"), identity.chain_pem).unwrap();
        fs::write(folder.path().join("key.pem"), identity.key_pem).unwrap();
        fs::create_dir(folder.path().join("root")).unwrap();
        let at = folder.path().to_str().unwrap();
        let settings = format!(
            "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log;
            events {{ worker_connections 256; }}
            http {{
              log_format judge '$connection $server_protocol $status $body_bytes_sent';
              access_log {at}/access.log judge;
              client_body_temp_path {at}/t1; proxy_temp_path {at}/t2; fastcgi_temp_path {at}/t3;
              uwsgi_temp_path {at}/t4; scgi_temp_path {at}/t5;
              ssl_certificate {at}/chain.pem; ssl_certificate_key {at}/key.pem;
              server {{
                listen 127.0.0.1:{port} ssl http2; root {at}/root;
                location /slow/ {{ limit_rate 4m; }}
              }}
            }}"
        );
        let file = folder.path().join("nginx.conf");
        fs::write(&file, settings).unwrap();
        let child = Command::new(program)
            .arg("-e")
            .arg(folder.path().join("error.log"))
            .arg("-c")
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut nginx = Self { folder, port, authority, child };
        let started = Instant::now();
        loop {
            if nginx.child.try_wait().unwrap().is_some() {
                return None;
            }
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(nginx);
            }
            assert!(started.elapsed() < START_TIME_MAX, "nginx hangs");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Puts a file; returns its URL.
    pub(crate) fn put(&self, name: &str, content: &[u8]) -> String {
        let path = self.folder.path().join("root").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        format!("https://127.0.0.1:{}/{name}", self.port)
    }

    /// The certificate to trust, as PEM.
    pub(crate) fn ca_pem(&self) -> &str {
        self.authority.pem()
    }

    /// One entry a request: connection, protocol, status, body bytes. Complete once the client
    /// has ended, but for the last lines of a connection that it broke off.
    pub(crate) fn log(&self) -> Vec<Vec<String>> {
        let text = fs::read_to_string(self.folder.path().join("access.log")).unwrap();
        text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
