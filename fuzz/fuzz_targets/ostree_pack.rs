//! Frames of the pack protocol: a pack in pieces means what it means whole.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use trunkline_proto::pack::{
    PackDecoder, PackError, PackEvent, PackLimits, Want, decode_ids, decode_receipts, encode_ids,
};

fn objects(data: &[u8], step: usize) -> Result<u32, PackError> {
    let mut decoder = PackDecoder::new(PackLimits::default());
    let mut objects = 0;
    for piece in data.chunks(step) {
        decoder.push(Bytes::copy_from_slice(piece))?;
        while let Some(event) = decoder.next()? {
            objects += u32::from(matches!(event, PackEvent::ObjectEnd));
        }
    }
    decoder.finish().map(|()| objects)
}

fuzz_target!(|data: &[u8]| {
    assert_eq!(objects(data, 5).ok(), objects(data, data.len().max(1)).ok());
    if let Ok(ids) = decode_ids(data) {
        assert_eq!(encode_ids(&ids).as_deref(), Ok(data));
    }
    if let Ok(want) = Want::decode(data) {
        assert_eq!(want.encode().as_deref(), Ok(data));
    }
    let _ = decode_receipts(data);
});
