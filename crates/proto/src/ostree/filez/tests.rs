use proptest::prelude::*;

use super::*;

fn encode(header: &FileHeader, content: &[u8], level: u32) -> (Checksum, Vec<u8>) {
    let mut bytes = Vec::new();
    let mut sink = |piece: &[u8]| bytes.extend_from_slice(piece);
    let mut encoder = FilezEncoder::new(header, content.len() as u64, level, &mut sink);
    for piece in content.chunks(1000) {
        encoder.push(piece, &mut sink).unwrap();
    }
    let checksum = encoder.finish(&mut sink).unwrap();
    (checksum, bytes)
}

fn decode(bytes: &[u8], step: usize) -> Result<(Filez, Vec<u8>), FilezError> {
    let mut content = Vec::new();
    let mut decoder = FilezDecoder::new(FilezLimits::default());
    for piece in bytes.chunks(step) {
        decoder.push(piece, &mut |piece| content.extend_from_slice(piece))?;
    }
    Ok((decoder.finish()?, content))
}

#[test]
fn a_link_is_a_header_and_nothing_else() {
    let header = FileHeader::symlink(0, 0, "target".to_owned());
    let (checksum, mut bytes) = encode(&header, b"", 6);
    let (read, content) = decode(&bytes, 3).unwrap();
    assert_eq!((read.checksum, read.content_bytes, content), (checksum, 0, vec![]));
    bytes.push(0);
    assert_eq!(decode(&bytes, 64).unwrap_err(), FilezError::TrailingBytes);
}

#[test]
fn the_name_does_not_depend_on_the_level() {
    let header = FileHeader::regular(0, 0, 0o644);
    let content = b"word ".repeat(5000);
    let (fast, fast_bytes) = encode(&header, &content, 1);
    let (best, best_bytes) = encode(&header, &content, 9);
    assert_eq!(fast, best);
    assert_ne!(fast_bytes, best_bytes);
}

#[test]
fn a_bomb_is_refused_by_what_its_header_states() {
    let header = FileHeader::regular(0, 0, 0o644);
    let (_, bytes) = encode(&header, &vec![0; 4 << 20], 9);
    let mut forged = header.encode_archive(1000);
    forged.extend_from_slice(&bytes[header.encode_archive(0).len()..]);
    let mut handed_on = 0;
    let mut decoder = FilezDecoder::new(FilezLimits::default());
    let error = decoder.push(&forged, &mut |piece| handed_on += piece.len()).unwrap_err();
    assert_eq!(error, FilezError::ContentLength { stated: 1000 });
    assert_eq!(handed_on, 0);
    assert_eq!(decoder.push(b"", &mut |_| ()).unwrap_err(), error);

    let mut decoder =
        FilezDecoder::new(FilezLimits { content_bytes_max: 10, ..FilezLimits::default() });
    let error = decoder.push(&bytes, &mut |_| ()).unwrap_err();
    assert_eq!(error, FilezError::ContentTooLong { stated: 4 << 20, max: 10 });
}

#[test]
fn impossible_headers_are_refused_before_they_are_collected() {
    let mut decoder = FilezDecoder::new(FilezLimits::default());
    let error = decoder.push(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0], &mut |_| ()).unwrap_err();
    assert_eq!(error, FilezError::HeaderLength { bytes: u32::MAX });
}

proptest! {
    #[test]
    fn round_trips_in_any_pieces(
        content in prop::collection::vec(any::<u8>(), 0..5000),
        step in 1usize..6000,
        permissions in 0u32..0o10000,
    ) {
        let header = FileHeader::regular(1, 2, permissions);
        let (checksum, bytes) = encode(&header, &content, 6);
        let (read, back) = decode(&bytes, step).unwrap();
        prop_assert_eq!(back, content);
        prop_assert_eq!(read.checksum, checksum);
        prop_assert_eq!(read.header, header);
    }

    #[test]
    fn a_cut_or_changed_object_never_passes(
        content in prop::collection::vec(any::<u8>(), 0..3000),
        at in any::<prop::sample::Index>(),
        bit in 0u8..8,
    ) {
        let header = FileHeader::regular(1, 2, 0o644);
        let (checksum, mut bytes) = encode(&header, &content, 6);
        let at = at.index(bytes.len());
        prop_assert!(decode(&bytes[..at], 100).is_err());
        bytes[at] ^= 1 << bit;
        if let Ok((read, back)) = decode(&bytes, 100) {
            // Changed compressed bytes may mean the same content; then it is the same object.
            prop_assert!(read.checksum != checksum || back == content);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode(&data, 7);
    }
}
