//! A throw-away certificate authority and a server certificate, made once and reused.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::command;

/// Files in PEM.
#[derive(Clone, Debug)]
pub(crate) struct Certificates {
    /// What clients are told to trust.
    pub(crate) authority: PathBuf,
    pub(crate) server: PathBuf,
    pub(crate) server_key: PathBuf,
}

impl Certificates {
    /// # Errors
    /// openssl fails or the folder cannot be written.
    pub(super) fn make(directory: &Path, server_name: &str) -> Result<Self> {
        let at = |name: &str| directory.join(name);
        let made = Self {
            authority: at("ca.pem"),
            server: at("server.pem"),
            server_key: at("server.key"),
        };
        if made.server.exists() {
            return Ok(made);
        }
        std::fs::create_dir_all(directory)?;
        let script = format!(
            "set -e
             openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 \
               -keyout ca.key -out ca.pem -subj '/CN=Trunkline lab CA'
             openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
               -keyout server.key -out server.csr -subj '/CN={server_name}'
             printf 'subjectAltName=DNS:{server_name},DNS:localhost,IP:127.0.0.1' > server.ext
             openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 3650 \
               -out server.new -extfile server.ext
             mv server.new server.pem"
        );
        command::output(Command::new("sh").current_dir(directory).args(["-c", &script]))?;
        Ok(made)
    }
}
