use std::collections::BTreeMap;

use proptest::prelude::*;
use zvariant::serialized::Context;
use zvariant::{LE, to_bytes};

use super::*;

#[expect(deprecated, reason = "the successor crate is young; only the oracle is affected")]
fn oracle<T: serde::Serialize + zvariant::DynamicType>(value: &T) -> Vec<u8> {
    to_bytes(Context::new_gvariant(LE, 0), value).unwrap().to_vec()
}

#[test]
fn writes_what_the_oracle_writes_for_a_dict() {
    let mut ours = DictWriter::new();
    ours.string("ostree.ref-binding", "main").u64("n", 7).value("raw", "ay", b"\x01\x02");
    let mut theirs = BTreeMap::new();
    theirs.insert("n", zvariant::Value::from(7u64));
    theirs.insert("ostree.ref-binding", zvariant::Value::from("main"));
    theirs.insert("raw", zvariant::Value::from(vec![1u8, 2]));
    let bytes = ours.finish();
    let ordered = {
        let mut again = DictWriter::new();
        again.u64("n", 7).string("ostree.ref-binding", "main").value("raw", "ay", b"\x01\x02");
        again.finish()
    };
    assert_eq!(ordered, oracle(&theirs));
    let dict = Dict::new(&bytes).unwrap();
    assert_eq!(dict.len(), 3);
    assert_eq!(dict.get("ostree.ref-binding").unwrap().as_str(), Some("main"));
    assert_eq!(dict.get("n").unwrap().as_u64(), Some(7));
    assert_eq!(dict.get("raw").unwrap().as_bytes(), Some(&[1u8, 2][..]));
    assert!(dict.get("absent").is_none());
}

#[test]
fn refuses_what_is_not_normal_form() {
    // One string element whose offset lies beyond the array.
    assert_eq!(ArrayReader::new(&[b'a', 0, 9], ALIGN_1).unwrap_err(), VariantError::Offset);
    // Two strings whose second offset lies before the first.
    let array = ArrayReader::new(&[b'a', 0, 2, 2], ALIGN_1).unwrap();
    assert!(array.iter().all(|element| element.is_ok()));
    let array = ArrayReader::new(&[b'a', 0, 3, 2], ALIGN_1).unwrap();
    assert!(array.iter().any(|element| element == Err(VariantError::Offset)));
    assert_eq!(string(b"a\0b\0"), Err(VariantError::StringEnd));
    assert_eq!(string(b"ab"), Err(VariantError::StringEnd));
    assert_eq!(string(b""), Err(VariantError::StringEnd));
    assert_eq!(string(b"\xff\0"), Err(VariantError::Utf8));
    assert_eq!(Value::new(b"\0"), Err(VariantError::Type));
    assert_eq!(Value::new(b"x\0 "), Err(VariantError::Type));
    let mut tuple = TupleReader::new(&[1, 1, 0, 0, 5, 0, 0, 0]);
    assert_eq!(tuple.fixed::<1>(1), Ok([1]));
    assert_eq!(tuple.fixed::<4>(4), Err(VariantError::Padding));
}

proptest! {
    #[test]
    fn arrays_of_pairs_agree_with_the_oracle(
        pairs in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..40), prop::collection::vec(any::<u8>(), 0..400)), 0..20)
    ) {
        let mut array = ArrayWriter::new(ALIGN_1);
        for (first, second) in &pairs {
            let mut pair = TupleWriter::new();
            pair.variable(ALIGN_1, first);
            array.push(&pair.last(ALIGN_1, second));
        }
        let bytes = array.finish();
        prop_assert_eq!(&bytes, &oracle(&pairs));
        let read: Vec<(Vec<u8>, Vec<u8>)> = ArrayReader::new(&bytes, ALIGN_1).unwrap().iter().map(|pair| {
            let mut pair = TupleReader::new(pair.unwrap());
            let first = pair.variable(ALIGN_1).unwrap().to_vec();
            (first, pair.last(ALIGN_1).unwrap().to_vec())
        }).collect();
        prop_assert_eq!(read, pairs);
    }

    #[test]
    fn mixed_tuples_agree_with_the_oracle(a in any::<u64>(), b in any::<u32>(), s in "[a-z]{0,300}", c in prop::collection::vec(any::<u8>(), 0..70000)) {
        let mut tuple = TupleWriter::new();
        tuple.fixed(ALIGN_4, &b.to_le_bytes()).string(&s).fixed(ALIGN_8, &a.to_le_bytes());
        let bytes = tuple.last(ALIGN_1, &c);
        prop_assert_eq!(&bytes, &oracle(&(b, s.as_str(), a, &c)));
        let mut reader = TupleReader::new(&bytes);
        prop_assert_eq!(reader.fixed::<4>(ALIGN_4), Ok(b.to_le_bytes()));
        prop_assert_eq!(reader.variable(ALIGN_1).and_then(string), Ok(s.as_str()));
        prop_assert_eq!(reader.fixed::<8>(ALIGN_8), Ok(a.to_le_bytes()));
        prop_assert_eq!(reader.last(ALIGN_1), Ok(&c[..]));
    }

    #[test]
    fn any_bytes_are_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(dict) = Dict::new(&data) {
            prop_assert_eq!(dict.iter().count(), dict.len());
        }
        if let Ok(array) = ArrayReader::new(&data, ALIGN_8) {
            for _ in array.iter() {}
        }
        if let Ok(value) = Value::new(&data) {
            let _ = (value.as_str(), value.as_u64(), value.as_byte_strings());
        }
    }
}
