use super::*;
use crate::nbd::{BlockSizes, TransmissionFlags as T};
use proptest::prelude::*;

fn agreement(style: ReplyStyle, flags: T) -> Agreement {
    Agreement {
        export: String::new(),
        size: 1 << 30,
        flags,
        block_sizes: BlockSizes::default(),
        style,
        allocation: style != ReplyStyle::Simple,
    }
}

fn header(command: u16, flags: CommandFlags, offset: u64, length: u64) -> Header {
    Header { flags, command, cookie: 9, offset, length }
}

fn verdict(agreement: &Agreement, header: Header) -> Result<Command, WireError> {
    agreement.judge(&header).map(|request| request.command).map_err(|refusal| refusal.error)
}

const NONE: CommandFlags = CommandFlags::empty();

#[test]
fn reads_are_held_to_the_export_and_the_payload() {
    let all = agreement(ReplyStyle::Structured, T::HAS_FLAGS | T::SEND_DF);
    let read = |flags, offset, length| verdict(&all, header(command::READ, flags, offset, length));
    assert_eq!(read(NONE, 0, 4096), Ok(Command::Read { whole: false }));
    assert_eq!(read(CommandFlags::DF, 0, 4096), Ok(Command::Read { whole: true }));
    assert_eq!(read(NONE, (1 << 30) - 1, 1), Ok(Command::Read { whole: false }));
    assert_eq!(read(NONE, 1 << 30, 1), Err(WireError::Invalid));
    assert_eq!(read(NONE, u64::MAX, 2), Err(WireError::Invalid));
    assert_eq!(read(NONE, 0, 0), Err(WireError::Invalid));
    assert_eq!(read(CommandFlags::FUA, 0, 1), Err(WireError::Invalid));
    assert_eq!(read(NONE, 0, 1 << 26), Err(WireError::Overflow));
    let simple = agreement(ReplyStyle::Simple, T::HAS_FLAGS);
    let read = |flags, length| verdict(&simple, header(command::READ, flags, 0, length));
    assert_eq!(read(NONE, 1 << 26), Err(WireError::Invalid));
    assert_eq!(read(CommandFlags::DF, 512), Err(WireError::Invalid));
}

#[test]
fn writes_need_permission_and_an_offer() {
    let fixed = agreement(ReplyStyle::Simple, T::HAS_FLAGS | T::READ_ONLY);
    for number in [command::WRITE, command::TRIM, command::WRITE_ZEROES] {
        assert_eq!(verdict(&fixed, header(number, NONE, 0, 1)), Err(WireError::NotPermitted));
    }
    let plain = agreement(ReplyStyle::Simple, T::HAS_FLAGS);
    assert_eq!(verdict(&plain, header(command::WRITE, NONE, 1 << 30, 1)), Err(WireError::NoSpace));
    assert_eq!(verdict(&plain, header(command::TRIM, NONE, 0, 1)), Err(WireError::Invalid));
    assert_eq!(verdict(&plain, header(command::FLUSH, NONE, 0, 0)), Err(WireError::Invalid));
    let full = agreement(
        ReplyStyle::Simple,
        T::HAS_FLAGS | T::SEND_FUA | T::SEND_TRIM | T::SEND_WRITE_ZEROES | T::SEND_FLUSH,
    );
    let zero = |flags| verdict(&full, header(command::WRITE_ZEROES, flags, 0, 1 << 29));
    assert_eq!(
        zero(CommandFlags::FUA | CommandFlags::NO_HOLE),
        Ok(Command::WriteZeroes { fua: true, no_hole: true, fast: false })
    );
    assert_eq!(zero(CommandFlags::FAST_ZERO), Err(WireError::Invalid));
    assert_eq!(verdict(&full, header(command::FLUSH, CommandFlags::FUA, 0, 0)), Ok(Command::Flush));
    assert_eq!(verdict(&full, header(command::FLUSH, NONE, 0, 1)), Err(WireError::Invalid));
}

#[test]
fn payload_rules_follow_the_header_style() {
    let extended =
        agreement(ReplyStyle::Extended, T::HAS_FLAGS | T::SEND_DF | T::BLOCK_STATUS_PAYLOAD);
    let bare = header(command::WRITE, NONE, 0, 5);
    assert_eq!(bare.payload_bytes(ReplyStyle::Simple), 5);
    assert_eq!(bare.payload_bytes(ReplyStyle::Extended), 5, "qemu leaves the flag out");
    assert_eq!(verdict(&extended, bare), Ok(Command::Write { fua: false }));
    let carried = header(command::WRITE, CommandFlags::PAYLOAD_LEN, 0, 5);
    assert_eq!(carried.payload_bytes(ReplyStyle::Extended), 5);
    assert_eq!(verdict(&extended, carried), Ok(Command::Write { fua: false }));
    let odd = header(command::READ, CommandFlags::PAYLOAD_LEN, 0, 5);
    assert_eq!(odd.payload_bytes(ReplyStyle::Extended), 5);
    assert_eq!(verdict(&extended, odd), Err(WireError::Invalid));
    assert_eq!(verdict(&extended, header(42, NONE, 0, 5)), Err(WireError::Invalid));
}

#[test]
fn block_status_may_name_its_context() {
    let extended = agreement(ReplyStyle::Extended, T::HAS_FLAGS | T::BLOCK_STATUS_PAYLOAD);
    let asked = header(command::BLOCK_STATUS, CommandFlags::PAYLOAD_LEN, 4096, 12);
    let request = extended.judge(&asked).unwrap();
    let payload =
        |length: u64, id: u32| [length.to_be_bytes().as_slice(), &id.to_be_bytes()].concat();
    let judged = extended.judge_status_payload(request, &payload(8192, Agreement::ALLOCATION_ID));
    assert_eq!(judged.unwrap().length, 8192);
    assert!(extended.judge_status_payload(request, &payload(8192, 7)).is_err());
    assert!(extended.judge_status_payload(request, &payload(u64::MAX, 1)).is_err());
    assert!(extended.judge_status_payload(request, b"short").is_err());
    let simple = agreement(ReplyStyle::Simple, T::HAS_FLAGS);
    let status = header(command::BLOCK_STATUS, NONE, 0, 1);
    assert_eq!(verdict(&simple, status), Err(WireError::Invalid));
}

#[test]
fn a_lost_frame_is_seen_at_the_first_word() {
    let mut bytes = &b"GET "[..];
    assert!(Header::decode(ReplyStyle::Simple, &mut bytes).is_err());
    let mut extended = &EXTENDED_REQUEST_MAGIC.to_be_bytes()[..];
    assert!(Header::decode(ReplyStyle::Structured, &mut extended).is_err());
    assert_eq!(Header::decode(ReplyStyle::Extended, &mut extended), Ok(None));
}

fn styles() -> impl Strategy<Value = ReplyStyle> {
    prop_oneof![Just(ReplyStyle::Simple), Just(ReplyStyle::Structured), Just(ReplyStyle::Extended)]
}

proptest! {
    #[test]
    fn headers_round_trip(
        style in styles(), flags: u16, command: u16, cookie: u64, offset: u64, length: u32,
    ) {
        let flags = CommandFlags::from_bits_retain(flags);
        let header = Header { flags, command, cookie, offset, length: u64::from(length) };
        let mut bytes = Vec::new();
        header.encode(style, &mut bytes);
        prop_assert_eq!(bytes.len(), Header::encoded_bytes(style));
        for end in 0..bytes.len() {
            prop_assert_eq!(Header::decode(style, &mut &bytes[..end]), Ok(None));
        }
        prop_assert_eq!(Header::decode(style, &mut &bytes[..]), Ok(Some(header)));
    }

    #[test]
    fn accepted_ranges_lie_within_the_export(
        style in styles(), offered: u16, flags in 0_u16..128, command in 0_u16..10,
        offset: u64, length: u64, near in -70_000_i64..70_000,
    ) {
        let agreement = agreement(style, T::from_bits_truncate(offered));
        for (offset, length) in [
            (offset, length),
            (agreement.size.wrapping_add_signed(near), length % 70_000),
        ] {
            let flags = CommandFlags::from_bits_retain(flags);
            let header = header(command, flags, offset, length);
            if let Ok(request) = agreement.judge(&header) {
                let filtered = matches!(request.command, Command::BlockStatus { filtered: true, .. });
                if !filtered {
                    prop_assert!(request.offset.checked_add(request.length) <= Some(agreement.size));
                }
                prop_assert_eq!(request.cookie, 9);
            }
        }
    }
}
