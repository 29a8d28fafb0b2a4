//! Request bodies over HTTP/1.1, kept and hashed.

use bytes::{Buf as _, BytesMut};
use sha2::{Digest as _, Sha256};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// How much of one upload is kept for the test to look at; the rest is hashed and dropped.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// The longest chunk-size line that is read.
const CHUNK_LINE_BYTES_MAX: usize = 256;

/// A body as received.
#[derive(Debug, Default)]
pub(crate) struct UploadBody {
    pub(crate) kept: Vec<u8>,
    pub(crate) len: u64,
    pub(crate) sha256: String,
}

/// Takes a body piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    kept: Vec<u8>,
    len: u64,
    digest: Sha256,
    cut_after: Option<u64>,
}

impl Intake {
    /// An intake that fails once more than `cut_after` bytes came.
    pub(crate) fn new(cut_after: Option<u64>) -> Self {
        Self { cut_after, ..Self::default() }
    }

    /// Takes a piece. `Err` means that the script cuts the connection here.
    pub(crate) fn take(&mut self, piece: &[u8]) -> Result<(), Cut> {
        self.len += piece.len() as u64;
        self.digest.update(piece);
        let room = KEPT_BYTES_MAX.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&piece[..piece.len().min(room)]);
        match self.cut_after {
            Some(cut_after) if self.len >= cut_after => Err(Cut),
            _ => Ok(()),
        }
    }

    pub(crate) fn finish(self) -> UploadBody {
        let sha256 = self.digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        UploadBody { kept: self.kept, len: self.len, sha256 }
    }
}

/// The script says to cut the connection while the body comes in.
#[derive(Debug)]
pub(crate) struct Cut;

impl From<Cut> for io::Error {
    fn from(_: Cut) -> Self {
        io::ErrorKind::ConnectionAborted.into()
    }
}

/// Reads `len` bytes, what `buf` already holds first.
pub(crate) async fn read_sized<R: AsyncRead + Unpin>(
    io: &mut R,
    buf: &mut BytesMut,
    mut len: u64,
    intake: &mut Intake,
) -> io::Result<()> {
    while len > 0 {
        if buf.is_empty() {
            fill(io, buf).await?;
        }
        let taken = usize::try_from(len).map_or(buf.len(), |len| len.min(buf.len()));
        let piece = buf.split_to(taken);
        len -= taken as u64;
        intake.take(&piece)?;
    }
    Ok(())
}

/// Reads a chunked body with its trailer section (RFC 9112, section 7.1).
pub(crate) async fn read_chunked<R: AsyncRead + Unpin>(
    io: &mut R,
    buf: &mut BytesMut,
    intake: &mut Intake,
) -> io::Result<()> {
    loop {
        let line = read_line(io, buf).await?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(digits, 16)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "bad chunk size"))?;
        if size == 0 {
            while !read_line(io, buf).await?.is_empty() {}
            return Ok(());
        }
        read_sized(io, buf, size, intake).await?;
        read_line(io, buf).await?;
    }
}

async fn read_line<R: AsyncRead + Unpin>(io: &mut R, buf: &mut BytesMut) -> io::Result<String> {
    loop {
        if let Some(end) = buf.windows(2).position(|pair| pair == b"\r\n") {
            let line = String::from_utf8_lossy(&buf[..end]).into_owned();
            buf.advance(end + 2);
            return Ok(line);
        }
        if buf.len() > CHUNK_LINE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "line too long"));
        }
        fill(io, buf).await?;
    }
}

async fn fill<R: AsyncRead + Unpin>(io: &mut R, buf: &mut BytesMut) -> io::Result<()> {
    buf.reserve(16 << 10);
    match io.read_buf(buf).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}
