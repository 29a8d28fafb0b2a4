use proptest::prelude::*;

use super::super::{
    Receipt, Status, Want, decode_ids, decode_receipts, encode_ids, encode_receipts,
};
use super::*;
use crate::ostree::{Checksum, ObjectKind};

fn any_id() -> impl Strategy<Value = ObjectId> {
    (any::<[u8; 32]>(), 1u8..=7).prop_map(|(sum, kind)| {
        ObjectId::new(Checksum::from_bytes(sum), ObjectKind::from_number(kind).unwrap())
    })
}

fn pack(objects: &[(ObjectId, Vec<u8>)], missing: &[ObjectId]) -> Vec<u8> {
    let (mut encoder, head) = PackEncoder::new();
    let mut bytes = head.to_vec();
    for (id, data) in objects {
        bytes.extend_from_slice(&encoder.object(id, data.len() as u64));
        bytes.extend_from_slice(data);
    }
    for id in missing {
        bytes.extend_from_slice(&encoder.missing(id));
    }
    bytes.extend_from_slice(&encoder.end());
    bytes
}

type Unpacked = (Vec<(ObjectId, Vec<u8>)>, Vec<ObjectId>);

fn unpack(bytes: &[u8], step: usize, limits: PackLimits) -> Result<Unpacked, PackError> {
    let mut decoder = PackDecoder::new(limits);
    let mut objects: Vec<(ObjectId, Vec<u8>)> = Vec::new();
    let mut missing = Vec::new();
    let mut open = false;
    for piece in bytes.chunks(step) {
        decoder.push(Bytes::copy_from_slice(piece))?;
        while let Some(event) = decoder.next()? {
            match event {
                PackEvent::Object { id, bytes: _ } => {
                    assert!(!open);
                    open = true;
                    objects.push((id, Vec::new()));
                }
                PackEvent::Data(data) => {
                    assert!(open && !data.is_empty());
                    objects.last_mut().unwrap().1.extend_from_slice(&data);
                }
                PackEvent::ObjectEnd => open = false,
                PackEvent::Missing(id) => missing.push(id),
                PackEvent::End => assert!(!open),
            }
        }
    }
    decoder.finish().map(|()| (objects, missing))
}

#[test]
fn limits_and_forgeries_are_refused() {
    let id = ObjectId::new(Checksum::of(b"x"), ObjectKind::File);
    let bytes = pack(&[(id, vec![7; 100]), (id, vec![])], &[]);
    let refuse = |limits| unpack(&bytes, 1000, limits).unwrap_err();
    assert_eq!(
        refuse(PackLimits { object_bytes_max: 99, ..PackLimits::default() }),
        PackError::ObjectTooLong { id, bytes: 100, max: 99 }
    );
    assert_eq!(
        refuse(PackLimits { objects_max: 1, ..PackLimits::default() }),
        PackError::TooMany { max: 1 }
    );
    assert_eq!(
        refuse(PackLimits { pack_bytes_max: 50, ..PackLimits::default() }),
        PackError::TooMany { max: 50 }
    );
    let forge = |at: usize, byte| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        unpack(&bytes, 1000, PackLimits::default()).unwrap_err()
    };
    assert_eq!(forge(0, b'X'), PackError::Magic);
    assert_eq!(forge(4, 2), PackError::Version { version: 2 });
    assert_eq!(forge(5, 1), PackError::Kind { kind: 1 });
    assert_eq!(forge(8, 9), PackError::Record { tag: 9 });
    assert!(matches!(forge(41, 99), PackError::Id(_)));
    assert_eq!(forge(bytes.len() - 1, 9), PackError::Count { stated: 9, seen: 2 });
    let mut longer = bytes.clone();
    longer.push(0);
    assert_eq!(unpack(&longer, 1000, PackLimits::default()).unwrap_err(), PackError::TrailingBytes);
}

proptest! {
    #[test]
    fn packs_round_trip_in_any_pieces(
        objects in prop::collection::vec((any_id(), prop::collection::vec(any::<u8>(), 0..300)), 0..10),
        missing in prop::collection::vec(any_id(), 0..3),
        step in 1usize..400,
    ) {
        let bytes = pack(&objects, &missing);
        let read = unpack(&bytes, step, PackLimits::default()).unwrap();
        prop_assert_eq!(read, (objects, missing));
    }

    #[test]
    fn a_cut_pack_is_never_whole(
        objects in prop::collection::vec((any_id(), prop::collection::vec(any::<u8>(), 0..50)), 0..5),
        at in any::<prop::sample::Index>(),
    ) {
        let bytes = pack(&objects, &[]);
        let cut = &bytes[..at.index(bytes.len())];
        prop_assert_eq!(unpack(cut, 64, PackLimits::default()), Err(PackError::Truncated));
    }

    #[test]
    fn ids_round_trip(ids in prop::collection::btree_set(any_id(), 0..50), at in any::<prop::sample::Index>()) {
        let ids: Vec<_> = ids.into_iter().collect();
        let frame = encode_ids(&ids).unwrap();
        prop_assert_eq!(decode_ids(&frame), Ok(ids.clone()));
        prop_assert_eq!(decode_ids(&frame[..at.index(frame.len())]), Err(PackError::Truncated));
        if ids.len() > 1 {
            let reversed: Vec<_> = ids.into_iter().rev().collect();
            prop_assert_eq!(encode_ids(&reversed), Err(PackError::Order));
        }
    }

    #[test]
    fn receipts_round_trip(ids in prop::collection::vec((any_id(), 0usize..5, "[a-zé]{0,40}"), 0..20)) {
        let statuses = [Status::Stored, Status::Present, Status::Corrupt, Status::Refused, Status::Failed];
        let receipts: Vec<_> = ids.into_iter().map(|(id, status, detail)| Receipt { id, status: statuses[status], detail }).collect();
        prop_assert_eq!(decode_receipts(&encode_receipts(&receipts)), Ok(receipts));
    }

    #[test]
    fn wants_round_trip(wants in prop::collection::vec(any::<[u8; 32]>(), 0..5), haves in prop::collection::vec(any::<[u8; 32]>(), 0..5), parents_max in any::<u32>(), commitmeta in any::<bool>()) {
        let commits = |list: Vec<[u8; 32]>| list.into_iter().map(Checksum::from_bytes).collect();
        let want = Want { wants: commits(wants), haves: commits(haves), parents_max, commitmeta };
        prop_assert_eq!(Want::decode(&want.encode().unwrap()), Ok(want));
    }

    #[test]
    fn any_bytes_are_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..200), headed in any::<bool>(), kind in 1u8..5) {
        let mut frame = if headed { vec![b'T', b'L', b'P', b'K', 1, kind, 0, 0] } else { Vec::new() };
        frame.extend_from_slice(&data);
        let _ = (decode_ids(&frame), decode_receipts(&frame), Want::decode(&frame));
        let _ = unpack(&frame, 13, PackLimits::default());
    }
}
