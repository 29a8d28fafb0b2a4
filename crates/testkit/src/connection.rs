//! One accepted connection, from the first byte to the choice of protocol.

use crate::fault::ConnectionFault;
use crate::log::ConnectionEntry;
use crate::site::Site;
use crate::wire::{Duplex, Line, ResetSwitch, Rewound, Socket, Wire};
use crate::{h1, h2};
use bytes::BytesMut;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

/// The start of HTTP/2's client preface (RFC 9113, section 3.4), enough to tell it from a request.
const H2_PREFACE_START: &[u8] = b"PRI * HTTP/2.0";

/// How an origin speaks to its clients.
#[derive(Clone)]
pub(crate) struct Manners {
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) h1: bool,
    pub(crate) h2: bool,
    pub(crate) line: Line,
    pub(crate) streams_max: u32,
}

/// What a protocol needs to know of its connection.
#[derive(Debug)]
pub(crate) struct Attended {
    pub(crate) site: Site,
    pub(crate) entry: Arc<ConnectionEntry>,
    pub(crate) fault: ConnectionFault,
    pub(crate) reset: ResetSwitch,
}

/// Serves one connection to its end.
pub(crate) async fn attend(
    socket: Socket,
    manners: Manners,
    site: Site,
    entry: ConnectionEntry,
    fault: ConnectionFault,
) {
    let mut line = manners.line;
    line.sent_bytes_max = match fault {
        ConnectionFault::CloseAfterBytes(bytes) => Some((bytes, false)),
        ConnectionFault::ResetAfterBytes(bytes) => Some((bytes, true)),
        _ => None,
    };
    let reset = ResetSwitch::default();
    let mut wire = Wire::new(socket, line, reset.clone());
    if matches!(fault, ConnectionFault::Silent) {
        // Until the client gives up.
        let _ = tokio::io::copy(&mut wire, &mut tokio::io::sink()).await;
        return;
    }
    let entry = Arc::new(entry);
    let attended = Attended { site, entry: entry.clone(), fault, reset };
    let Some(acceptor) = &manners.tls else {
        return plaintext(wire, &manners, attended).await;
    };
    let Ok(tls) = acceptor.accept(wire).await else { return entry.handshake_failed() };
    entry.handshake_done(tls.get_ref().1);
    match tls.get_ref().1.alpn_protocol() {
        Some(b"h2") => http2(tls, &manners, attended).await,
        _ => h1::serve(tls, BytesMut::new(), attended).await,
    }
}

async fn plaintext(mut wire: Wire, manners: &Manners, attended: Attended) {
    let mut front = BytesMut::new();
    if manners.h2 {
        while front.len() < H2_PREFACE_START.len() && H2_PREFACE_START.starts_with(&front) {
            match wire.read_buf(&mut front).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }
    if front.starts_with(H2_PREFACE_START) {
        http2(Rewound::new(front, wire), manners, attended).await;
    } else if manners.h1 {
        h1::serve(wire, front, attended).await;
    }
}

async fn http2(mut io: impl Duplex + 'static, manners: &Manners, attended: Attended) {
    if matches!(attended.fault, ConnectionFault::GarbageH2) {
        // A frame header that announces more than any peer allows, of a type that is none.
        let _ = io.write_all(&[0xff; 64]).await;
        let _ = io.flush().await;
        // Let the client see the bytes before the end: wait until it has had enough of us.
        let _ = io.shutdown().await;
        let _ = tokio::io::copy(&mut io, &mut tokio::io::sink()).await;
        return;
    }
    h2::serve(io, manners.streams_max, attended).await;
}
