use proptest::prelude::*;

use super::*;

/// Decodes pieces one after another: the body, and the bytes that belong to nobody.
fn decode(pieces: &[&[u8]]) -> Result<(Vec<u8>, usize, bool), ChunkError> {
    let mut decoder = ChunkedDecoder::new();
    let mut body = Vec::new();
    let mut surplus = 0;
    for piece in pieces {
        let mut piece = piece.to_vec();
        let decoded = decoder.decode(&mut piece)?;
        body.extend_from_slice(&piece[..decoded.body]);
        surplus += piece.len() - decoded.consumed;
    }
    Ok((body, surplus, decoder.is_done()))
}

#[test]
fn chunks_extensions_and_trailers_are_read() {
    let coded = b"5\r\nhello\r\n06 ;a=\"b\"\r\n world\r\nA;x\r\n0123456789\r\n0\r\nDigest: x\r\nB: c\r\n\r\n";
    let (body, surplus, done) = decode(&[coded]).unwrap();
    assert_eq!(body, b"hello world0123456789");
    assert_eq!((surplus, done), (0, true));
}

#[test]
fn bytes_after_the_end_are_left() {
    assert_eq!(decode(&[b"1\r\na\r\n0\r\n\r\nHTTP"]).unwrap(), (b"a".to_vec(), 4, true));
}

#[test]
fn an_unfinished_body_is_not_done() {
    assert!(!decode(&[b"5\r\nhello\r\n0\r\n"]).unwrap().2);
    assert!(!decode(&[b"5\r\nhel"]).unwrap().2);
}

#[test]
fn broken_codings_are_refused() {
    let cases: [(&[u8], ChunkError); 10] = [
        (b"\r\n", ChunkError::Size),
        (b"g\r\n", ChunkError::Size),
        (b"-1\r\n", ChunkError::Size),
        (b"1 2\r\n", ChunkError::Size),
        (b"00000000000000001\r\n", ChunkError::Size),
        (b"5\nhello", ChunkError::Size),
        (b"5\rhello", ChunkError::Line),
        (b"5\r\nhello!\r\n", ChunkError::Line),
        (b"5;a\nhello", ChunkError::Line),
        (b"0\r\n\n", ChunkError::Line),
    ];
    for (coded, expected) in cases {
        assert_eq!(decode(&[coded]), Err(expected), "{}", String::from_utf8_lossy(coded));
    }
}

#[test]
fn extensions_and_trailers_are_bounded_together() {
    let long = vec![b'x'; EXTRA_BYTES_MAX as usize + 1];
    let expected = Err(ChunkError::TooMuchExtra { bytes_max: EXTRA_BYTES_MAX });
    assert_eq!(decode(&[b"1;", &long]), expected);
    assert_eq!(decode(&[b"0\r\n", &long]), expected);
}

proptest! {
    #[test]
    fn a_body_comes_back_however_it_is_cut(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..8),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut coded = Vec::new();
        for chunk in &chunks {
            coded.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            coded.extend_from_slice(chunk);
            coded.extend_from_slice(b"\r\n");
        }
        coded.extend_from_slice(b"0\r\n\r\n");
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(coded.len())).collect();
        at.extend([0, coded.len()]);
        at.sort_unstable();
        let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &coded[pair[0]..pair[1]]).collect();
        let (body, surplus, done) = decode(&pieces).unwrap();
        prop_assert_eq!(body, chunks.concat());
        prop_assert_eq!((surplus, done), (0, true));
    }

    #[test]
    fn any_bytes_are_answered_without_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let length = bytes.len();
        if let Ok(decoded) = ChunkedDecoder::new().decode(&mut bytes) {
            prop_assert!(decoded.body <= decoded.consumed && decoded.consumed <= length);
        }
    }
}
