//! Raw deflate (RFC 1951), pushed piece by piece through a buffer of fixed size.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// Bytes handed on at a time.
const BUFFER_BYTES: usize = 64 * 1024;

/// The stream is not deflate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damaged;

#[derive(Debug)]
pub(super) struct Inflate {
    state: Decompress,
    buffer: Box<[u8]>,
}

/// What became of a piece of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// All of it was taken; more must come.
    More,
    /// The stream ended after this many bytes of it.
    Ended(usize),
}

impl Inflate {
    pub(super) fn new() -> Self {
        Self { state: Decompress::new(false), buffer: vec![0; BUFFER_BYTES].into() }
    }

    /// Inflates `input`; stops early when `sink` fails.
    pub(super) fn push<E: From<Damaged>>(
        &mut self,
        input: &[u8],
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Progress, E> {
        let mut taken = 0;
        loop {
            let (in_before, out_before) = (self.state.total_in(), self.state.total_out());
            let status = self
                .state
                .decompress(&input[taken..], &mut self.buffer, FlushDecompress::None)
                .map_err(|_| Damaged)?;
            let produced = length(self.state.total_out() - out_before);
            let consumed = length(self.state.total_in() - in_before);
            taken += consumed;
            if produced > 0 {
                sink(&self.buffer[..produced])?;
            }
            if status == Status::StreamEnd {
                return Ok(Progress::Ended(taken));
            }
            // A full buffer may hide more output, even with no input left.
            if taken == input.len() && produced < self.buffer.len() {
                return Ok(Progress::More);
            }
            if consumed == 0 && produced == 0 {
                return Err(Damaged.into());
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Deflate {
    state: Compress,
    buffer: Box<[u8]>,
}

impl Deflate {
    pub(super) fn new(level: u32) -> Self {
        let state = Compress::new(Compression::new(level.min(9)), false);
        Self { state, buffer: vec![0; BUFFER_BYTES].into() }
    }

    pub(super) fn push(&mut self, input: &[u8], sink: &mut dyn FnMut(&[u8])) {
        let mut taken = 0;
        while taken < input.len() {
            taken += self.step(&input[taken..], FlushCompress::None, sink).0;
        }
    }

    pub(super) fn finish(&mut self, sink: &mut dyn FnMut(&[u8])) {
        while self.step(&[], FlushCompress::Finish, sink).1 != Status::StreamEnd {}
    }

    fn step(
        &mut self,
        input: &[u8],
        flush: FlushCompress,
        sink: &mut dyn FnMut(&[u8]),
    ) -> (usize, Status) {
        let (in_before, out_before) = (self.state.total_in(), self.state.total_out());
        let status = self
            .state
            .compress(input, &mut self.buffer, flush)
            .expect("invariant: deflating has no bad input");
        let produced = length(self.state.total_out() - out_before);
        if produced > 0 {
            sink(&self.buffer[..produced]);
        }
        (length(self.state.total_in() - in_before), status)
    }
}

fn length(bytes: u64) -> usize {
    usize::try_from(bytes).expect("invariant: no more than a buffer")
}
