//! A file object that streams by in pieces: the pieces do not matter, and no more comes out than
//! its header promises.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trunkline_proto::ostree::{Filez, FilezDecoder, FilezError, FilezLimits};

fn read(data: &[u8], step: usize) -> Result<Filez, FilezError> {
    let limits = FilezLimits { header_bytes_max: 4096, content_bytes_max: 1 << 20 };
    let mut decoder = FilezDecoder::new(limits);
    let mut content = 0;
    for piece in data.chunks(step) {
        decoder.push(piece, &mut |piece| content += piece.len() as u64)?;
    }
    let filez = decoder.finish()?;
    assert_eq!(content, filez.content_bytes);
    Ok(filez)
}

fuzz_target!(|data: &[u8]| {
    let whole = read(data, data.len().max(1));
    assert_eq!(read(data, 7).is_ok(), whole.is_ok());
});
