//! Bytes on their way to a client, in whatever form costs least.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::Error;

/// Bytes that a read yields, in order: memory shared with a cache, zeroes that need not exist,
/// or parts of a file that the kernel may send by itself.
#[derive(Clone, Debug, Default)]
pub struct Content {
    pieces: Vec<Piece>,
}

/// One piece of a [`Content`]; never empty.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Bytes in memory.
    Bytes(Bytes),
    /// That many zero bytes.
    Zeroes(u64),
    /// A part of a file.
    File(FileSlice),
}

/// A part of an open file that holds what the export had when it was read.
#[derive(Clone, Debug)]
pub struct FileSlice {
    /// The file and its name.
    pub file: Arc<NamedFile>,
    /// Where the part starts in the file, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
}

/// An open file that remembers its name for error messages.
#[derive(Debug)]
pub struct NamedFile {
    /// The open file.
    pub file: File,
    /// The name as the user knows it.
    pub name: Arc<str>,
}

/// Zeroes that stand in where a hole cannot be sent as such.
static ZEROES: [u8; 64 * 1024] = [0; 64 * 1024];

impl Content {
    /// Nothing yet, with room for `pieces`.
    pub fn with_capacity(pieces: usize) -> Self {
        Self { pieces: Vec::with_capacity(pieces) }
    }

    /// Appends a piece; an empty one is left out, zeroes join zeroes.
    pub fn push(&mut self, piece: Piece) {
        match (piece.len(), &piece, self.pieces.last_mut()) {
            (0, ..) => {}
            (_, Piece::Zeroes(more), Some(Piece::Zeroes(before))) => *before += more,
            _ => self.pieces.push(piece),
        }
    }

    /// Appends all of `other`.
    pub fn append(&mut self, other: Self) {
        for piece in other.pieces {
            self.push(piece);
        }
    }

    /// The pieces in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The pieces in order, to keep.
    pub fn into_pieces(self) -> Vec<Piece> {
        self.pieces
    }

    /// Bytes in all.
    pub fn len(&self) -> u64 {
        self.pieces.iter().map(Piece::len).sum()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The same content in memory, file parts read. Zeroes stay as they are.
    ///
    /// # Errors
    /// Those of reading the files.
    pub async fn load(self) -> Result<Self, Error> {
        if !self.pieces.iter().any(|piece| matches!(piece, Piece::File(_))) {
            return Ok(self);
        }
        blocking(move || {
            let mut loaded = Self::with_capacity(self.pieces.len());
            for piece in self.pieces {
                loaded.push(match piece {
                    Piece::File(slice) => Piece::Bytes(slice.read()?),
                    other => other,
                });
            }
            Ok(loaded)
        })
        .await
    }

    /// The same content as one buffer.
    ///
    /// # Errors
    /// Those of reading the files.
    pub async fn into_bytes(self) -> Result<Bytes, Error> {
        let loaded = self.load().await?;
        if let [Piece::Bytes(only)] = &loaded.pieces[..] {
            return Ok(only.clone());
        }
        let mut whole = Vec::with_capacity(loaded.len() as usize);
        for piece in loaded.pieces {
            match piece {
                Piece::Bytes(bytes) => whole.extend_from_slice(&bytes),
                Piece::Zeroes(length) => whole.resize(whole.len() + length as usize, 0),
                Piece::File(_) => unreachable!("load() leaves no file parts"),
            }
        }
        Ok(whole.into())
    }
}

impl From<Piece> for Content {
    fn from(piece: Piece) -> Self {
        let mut content = Self::with_capacity(1);
        content.push(piece);
        content
    }
}

impl Piece {
    /// Its bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Zeroes(length) => *length,
            Self::File(slice) => slice.length,
        }
    }

    /// Whether it has none; no piece of a [`Content`] is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl FileSlice {
    /// Reads the part. Blocks.
    ///
    /// # Errors
    /// [`Error::Shrunk`] when the file ends within the part, or what the system says.
    pub fn read(&self) -> Result<Bytes, Error> {
        let mut buffer = vec![0; self.length as usize];
        match self.file.file.read_exact_at(&mut buffer, self.offset) {
            Ok(()) => Ok(buffer.into()),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Err(Error::Shrunk { name: Arc::clone(&self.file.name) })
            }
            Err(error) => Err(Error::local(&self.file.name, error)),
        }
    }
}

/// `length` zero bytes as pieces of shared memory.
pub(crate) fn zero_bytes(mut length: u64) -> impl Iterator<Item = Bytes> {
    std::iter::from_fn(move || {
        let now = length.min(ZEROES.len() as u64);
        length -= now;
        (now > 0).then(|| Bytes::from_static(&ZEROES[..now as usize]))
    })
}

/// Runs `work` on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(join) if join.is_panic() => std::panic::resume_unwind(join.into_panic()),
        Err(_) => Err(Error::Stopping),
    }
}
