//! nginx's log, read back: what a client really did.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use anyhow::Result;

/// Tab-separated, for nginx's `log_format`. [`Traffic::from_log`] relies on the first five fields.
pub(super) const FORMAT: &str = "$connection\\t$connection_requests\\t$ssl_session_reused\\t\
    $status\\t$body_bytes_sent\\t$server_protocol\\t$server_port\\t$request_method\\t\
    $uri\\t$http_range\\t$http_user_agent\\t$msec";

/// What one run put on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) requests: u64,
    /// Answers other than 200 and 206.
    pub(crate) refused: u64,
    pub(crate) body_bytes: u64,
    /// Accepted connections, with or without a request.
    pub(crate) connections: u64,
    /// TLS handshakes in full, among connections that carried a request.
    pub(crate) handshakes_full: u64,
    /// Resumed ones.
    pub(crate) handshakes_resumed: u64,
}

impl Traffic {
    /// Sums up log lines; the connection count is that of the connections seen in the log.
    pub(super) fn from_log(text: &str) -> Self {
        let mut traffic = Self::default();
        let mut resumed_by_connection = BTreeMap::new();
        for line in text.lines() {
            let mut fields = line.split('\t');
            let (Some(connection), Some(_), Some(reused), Some(status), Some(bytes)) =
                (fields.next(), fields.next(), fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            traffic.requests += 1;
            traffic.refused += u64::from(!matches!(status, "200" | "206"));
            traffic.body_bytes += bytes.parse::<u64>().unwrap_or(0);
            resumed_by_connection.insert(connection, reused);
        }
        traffic.connections = count(resumed_by_connection.values().map(|_| true));
        traffic.handshakes_full = count(resumed_by_connection.values().map(|&mark| mark == "."));
        traffic.handshakes_resumed = count(resumed_by_connection.values().map(|&mark| mark == "r"));
        traffic
    }

    /// Reads what was logged from byte `start` on.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(crate) fn since(log: &Path, start: u64) -> Result<Self> {
        let mut file = File::open(log)?;
        file.seek(SeekFrom::Start(start))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok(Self::from_log(&text))
    }
}

fn count(marks: impl Iterator<Item = bool>) -> u64 {
    marks.map(u64::from).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_told_apart_and_handshakes_counted_once_each() {
        let log = "1\t1\t.\t200\t10\tHTTP/2.0\n1\t2\t.\t200\t20\tHTTP/2.0\n\
                   2\t1\tr\t206\t5\tHTTP/1.1\n3\t1\t-\t404\t0\tHTTP/1.1\n";
        let expected = Traffic {
            requests: 4,
            refused: 1,
            body_bytes: 35,
            connections: 3,
            handshakes_full: 1,
            handshakes_resumed: 1,
        };
        assert_eq!(Traffic::from_log(log), expected);
    }
}
