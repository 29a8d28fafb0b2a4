//! Whatever a client sends as a request, what is accepted lies within the export.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trunkline_proto::nbd::{
    Agreement, BlockSizes, Command, Header, ReplyStyle, TransmissionFlags,
};

fuzz_target!(|input: (u8, u16, u64, &[u8])| {
    let (style, flags, size, mut bytes) = input;
    let style = match style % 3 {
        0 => ReplyStyle::Simple,
        1 => ReplyStyle::Structured,
        _ => ReplyStyle::Extended,
    };
    let agreement = Agreement {
        export: String::new(),
        size,
        flags: TransmissionFlags::from_bits_truncate(flags),
        block_sizes: BlockSizes::default(),
        style,
        allocation: style != ReplyStyle::Simple,
    };
    while let Ok(Some(header)) = Header::decode(style, &mut bytes) {
        let mut encoded = Vec::new();
        header.encode(style, &mut encoded);
        assert_eq!(Header::decode(style, &mut &encoded[..]), Ok(Some(header)));
        let Ok(request) = agreement.judge(&header) else { continue };
        let request = match request.command {
            Command::BlockStatus { filtered: true, .. } => {
                match agreement.judge_status_payload(request, bytes) {
                    Ok(request) => request,
                    Err(_) => continue,
                }
            }
            _ => request,
        };
        assert!(request.offset.checked_add(request.length).is_some_and(|end| end <= size));
    }
});
