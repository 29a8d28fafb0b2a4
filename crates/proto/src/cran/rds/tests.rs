use proptest::prelude::*;

use super::*;
use crate::cran::{Error, Limits, StringMatrix, dcf, expand, read_index};

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../../../tests/fixtures/cran/", $name)).as_slice()
    };
}

fn open(bytes: &[u8]) -> Result<Object, Error> {
    read(&expand(bytes, &Limits::default()).unwrap())
}

fn expected_matrix() -> StringMatrix {
    let text = "Package: zoo\nVersion: 1.8-12\nDepends: R (>= 3.1.0), stats\n\n\
                Package: A3\nVersion: 1.0.0\nAuthor: José\n";
    dcf::read(text.as_bytes(), &Limits::default()).unwrap()
}

#[test]
fn r_matrices_are_read_whatever_the_compression_version_and_encoding() {
    for (name, bytes) in [
        ("xz", fixture!("matrix_xz.rds")),
        ("gzip", fixture!("matrix_gzip.rds")),
        ("bzip2", fixture!("matrix_bzip2.rds")),
        ("version 2", fixture!("matrix_v2.rds")),
        ("latin1", fixture!("matrix_latin1.rds")),
    ] {
        let matrix = read_index(bytes, &Limits::default()).unwrap();
        assert_eq!(matrix, expected_matrix(), "{name}");
    }
}

#[test]
fn a_repository_without_packages_has_an_empty_matrix() {
    let matrix = read_index(fixture!("matrix_empty.rds"), &Limits::default()).unwrap();
    assert_eq!((matrix.rows(), matrix.columns().len()), (0, 4));
}

#[test]
fn compact_vectors_are_unfolded() {
    let list = open(fixture!("compact.rds")).unwrap();
    let get = |name: &str| list.element(name).unwrap_or_else(|| panic!("{name}")).clone();
    let ints = |range: std::ops::RangeInclusive<i32>| Value::Integer(range.map(Some).collect());
    let texts = |numbers: &[i32]| {
        let texts: Vec<_> = numbers.iter().map(ToString::to_string).collect();
        Object::strings(texts.iter().map(|text| Some(text.as_str())))
    };
    assert_eq!(get("sequence").value, ints(1..=100));
    assert_eq!(get("down").value, Value::Integer(vec![Some(5), Some(4), Some(3)]));
    assert_eq!(get("reals").value, Value::Real(vec![3e9, 3e9 + 1., 3e9 + 2., 3e9 + 3., 3e9 + 4.]));
    assert_eq!(get("strings"), texts(&(1..=20).collect::<Vec<_>>()));
    assert_eq!(get("real_strings"), texts(&[1, 20, 300]));
    let sorted = get("sorted");
    assert_eq!(sorted.value.as_strings().unwrap().get(40), Some("b"));
    let named = get("named");
    assert_eq!(named.value, ints(1..=12));
    assert_eq!(named.names().unwrap().get(11), Some("12"));
    assert_eq!(get("flag").value, Value::Logical(vec![Some(true), None, Some(false)]));
    assert_eq!(get("raw").value, Value::Raw(vec![1, 2, 3]));
    assert_eq!(get("nothing").value, Value::Null);
    assert_eq!(get("missing").value, Value::Integer(vec![None]));
}

#[test]
fn code_is_refused() {
    let error = open(fixture!("closure.rds")).unwrap_err();
    assert!(matches!(error, Error::UnexpectedType { code: 3 }), "{error}");
}

#[test]
fn every_cut_is_noticed() {
    let whole = fixture!("compact.rds");
    for end in 0..whole.len() {
        assert!(open(&whole[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn nesting_is_bounded() {
    let nested =
        |levels| (1..levels).fold(Object::null(), |inner, _| Value::List(vec![inner]).into());
    let deepest = nested(DEPTH_MAX);
    assert_eq!(read(&write(&deepest)).unwrap(), deepest);
    let error = read(&write(&nested(DEPTH_MAX + 1))).unwrap_err();
    assert!(matches!(error, Error::TooDeep { .. }), "{error}");
}

#[test]
fn a_length_beyond_the_data_allocates_nothing() {
    let mut bytes = write(&Value::Integer(Vec::new()).into());
    let at = bytes.len() - 4;
    bytes[at..].copy_from_slice(&i32::MAX.to_be_bytes());
    assert!(matches!(read(&bytes), Err(Error::EndsEarly { .. })));
}

#[test]
fn a_compact_sequence_cannot_outgrow_its_file() {
    let bytes = fixture!("compact.rds");
    let hundred = 100f64.to_be_bytes();
    let at = bytes.windows(8).position(|window| window == hundred).unwrap();
    let mut bomb = bytes.to_vec();
    bomb[at..at + 8].copy_from_slice(&1e9f64.to_be_bytes());
    let error = open(&bomb).unwrap_err();
    assert!(matches!(error, Error::BadCompactVector { .. }), "{error}");
}

#[test]
fn an_old_format_or_another_is_refused() {
    for bytes in [b"A\n3\n".as_slice(), b"X\n\0\0\0\x01\0\0\0\0\0\0\0\0", b"RDX3\n", b""] {
        assert!(matches!(read(bytes), Err(Error::NotXdr)), "{bytes:?}");
    }
}

fn any_value() -> impl Strategy<Value = Object> {
    let cell = proptest::option::of("[ -~é€]{0,12}");
    let leaf = prop_oneof![
        Just(Value::Null),
        proptest::collection::vec(any::<Option<bool>>(), 0..5).prop_map(Value::Logical),
        proptest::collection::vec(proptest::option::of(1 - i32::MAX..i32::MAX), 0..5)
            .prop_map(Value::Integer),
        proptest::collection::vec(-1e300..1e300f64, 0..5).prop_map(Value::Real),
        proptest::collection::vec(any::<u8>(), 0..9).prop_map(Value::Raw),
        proptest::collection::vec(cell, 0..5)
            .prop_map(|cells| Value::Strings(cells.iter().map(Option::as_deref).collect())),
    ];
    let object = leaf.prop_map(Object::from);
    object.prop_recursive(3, 24, 4, |inner| {
        (
            proptest::collection::vec(inner.clone(), 1..4),
            proptest::collection::vec(("[a-z]{1,4}", inner), 0..3),
        )
            .prop_map(|(elements, attributes)| {
                let list = Object::from(Value::List(elements));
                attributes.into_iter().fold(list, |list, (name, value)| list.with(&name, value))
            })
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(object in any_value()) {
        prop_assert_eq!(read(&write(&object)).unwrap(), object);
    }

    #[test]
    fn a_matrix_survives_the_round_trip(
        rows in proptest::collection::vec(("[A-Za-z.]{2,8}", proptest::option::of("[ -~]{0,9}")), 1..9)
    ) {
        let packages = rows.iter().map(|(package, _)| Some(package.as_str()));
        let versions = rows.iter().map(|(_, version)| version.as_deref());
        let columns = ["Package", "Version"].map(str::to_owned).to_vec();
        let cells = packages.chain(versions).collect();
        let matrix = StringMatrix::from_columns(columns, rows.len(), cells).unwrap();
        let back = read(&write(&Object::from(&matrix))).unwrap().into_string_matrix().unwrap();
        prop_assert_eq!(back, matrix);
    }

    #[test]
    fn damaged_data_never_panics(at in 0usize..900, byte in any::<u8>()) {
        let mut bytes = fixture!("compact.rds").to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = open(&bytes);
    }

    #[test]
    fn noise_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = b"X\n\0\0\0\x02\0\x04\x02\x02\0\x02\x03\0".to_vec();
        bytes.extend_from_slice(&noise);
        let _ = read(&bytes);
    }
}
