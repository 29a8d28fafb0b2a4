//! A client may send anything: the handshake must neither panic nor depend on how its bytes were
//! cut into pieces.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use trunkline_proto::nbd::{
    Answer, BlockSizes, ExportFacts, Handshake, Policy, Step, TlsMode, TransmissionFlags, Violation,
};

fuzz_target!(|data: &[u8]| {
    let Some((first, bytes)) = data.split_first() else { return };
    // STARTTLS depends on where the pieces are cut, by design, so it is off.
    let policy = Policy { tls: TlsMode::Off, list: first & 1 == 0 };
    let piece = usize::from(first >> 1) + 1;
    let whole = play(policy, bytes, bytes.len().max(1));
    assert_eq!(play(policy, bytes, piece), whole);
});

fn play(policy: Policy, bytes: &[u8], piece: usize) -> (BytesMut, Result<Option<Step>, Violation>) {
    let facts = ExportFacts {
        name: "disk".into(),
        description: String::new(),
        size: 1 << 20,
        flags: TransmissionFlags::READ_ONLY,
        block_sizes: BlockSizes::default(),
    };
    let mut handshake = Handshake::new(policy);
    let (mut input, mut out) = (BytesMut::new(), BytesMut::new());
    for part in bytes.chunks(piece) {
        input.extend_from_slice(part);
        let mut step = handshake.advance(&mut input, &mut out);
        loop {
            step = match step {
                Ok(Step::NeedInput) => break,
                Ok(Step::Lookup(name)) if name == facts.name => {
                    handshake.answer(Answer::Found(&facts), &mut input, &mut out)
                }
                Ok(Step::Lookup(_)) => {
                    handshake.answer(Answer::Unknown("unknown"), &mut input, &mut out)
                }
                Ok(Step::List) => handshake.answer_list([("disk", "")], &mut input, &mut out),
                Ok(end) => return (out, Ok(Some(end))),
                Err(violation) => return (out, Err(violation)),
            };
        }
    }
    (out, Ok(None))
}
