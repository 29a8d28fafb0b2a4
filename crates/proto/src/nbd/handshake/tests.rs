use super::*;
use proptest::prelude::*;

fn facts() -> ExportFacts {
    ExportFacts {
        name: "disk".into(),
        description: "a disk".into(),
        size: 1 << 40,
        flags: TransmissionFlags::READ_ONLY | TransmissionFlags::CAN_MULTI_CONN,
        block_sizes: BlockSizes::default(),
    }
}

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = OPTION_MAGIC.to_be_bytes().to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

fn go(name: &str, wants: &[u16]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    data.extend((wants.len() as u16).to_be_bytes());
    data.extend(wants.iter().flat_map(|kind| kind.to_be_bytes()));
    data
}

fn meta(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    data.extend((queries.len() as u32).to_be_bytes());
    for query in queries {
        data.extend((query.len() as u32).to_be_bytes());
        data.extend(query.as_bytes());
    }
    data
}

#[derive(Debug, PartialEq)]
enum End {
    Waits,
    Entered(Agreement),
    Closed,
    Dropped(Violation),
}

/// Plays the session over a client's bytes, cut into pieces of `piece` bytes.
fn play(policy: Policy, facts: &ExportFacts, bytes: &[u8], piece: usize) -> (Vec<u8>, End) {
    let mut handshake = Handshake::new(policy);
    let (mut input, mut out) = (BytesMut::new(), BytesMut::new());
    let mut end = End::Waits;
    'pieces: for part in bytes.chunks(piece) {
        input.extend_from_slice(part);
        let mut step = handshake.advance(&mut input, &mut out);
        loop {
            step = match step {
                Ok(Step::NeedInput) => break,
                Ok(Step::Lookup(name)) if name.is_empty() || name == facts.name => {
                    handshake.answer(Answer::Found(facts), &mut input, &mut out)
                }
                Ok(Step::Lookup(_)) => {
                    handshake.answer(Answer::Unknown("no such export"), &mut input, &mut out)
                }
                Ok(Step::List) => {
                    let list = [(facts.name.as_str(), facts.description.as_str())];
                    handshake.answer_list(list, &mut input, &mut out)
                }
                Ok(Step::StartTls) => {
                    handshake.tls_started();
                    handshake.advance(&mut input, &mut out)
                }
                Ok(Step::Enter(agreement)) => {
                    end = End::Entered(agreement);
                    break 'pieces;
                }
                Ok(Step::Close) => {
                    end = End::Closed;
                    break 'pieces;
                }
                Err(violation) => {
                    end = End::Dropped(violation);
                    break 'pieces;
                }
            };
        }
    }
    (out.to_vec(), end)
}

/// Option number, reply type and data of each reply.
fn replies(mut bytes: &[u8]) -> Vec<(u32, u32, Vec<u8>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        assert_eq!(bytes.get_u64(), crate::nbd::constants::OPTION_REPLY_MAGIC);
        let (number, kind, length) = (bytes.get_u32(), bytes.get_u32(), bytes.get_u32() as usize);
        all.push((number, kind, bytes[..length].to_vec()));
        bytes.advance(length);
    }
    all
}

fn kinds(bytes: &[u8]) -> Vec<u32> {
    replies(bytes).into_iter().map(|(_, kind, _)| kind).collect()
}

fn session(options: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = 3_u32.to_be_bytes().to_vec();
    bytes.extend(options.iter().flatten());
    bytes
}

fn run(options: &[Vec<u8>]) -> (Vec<u8>, End) {
    play(Policy::default(), &facts(), &session(options), usize::MAX)
}

#[test]
fn greets_as_fixed_newstyle_without_zeroes() {
    let mut out = BytesMut::new();
    Handshake::new(Policy::default()).greeting(&mut out);
    assert_eq!(&out[..], b"NBDMAGICIHAVEOPT\0\x03");
}

#[test]
fn go_with_everything_negotiated_enters() {
    let (out, end) = run(&[
        option(option::EXTENDED_HEADERS, b""),
        option(option::SET_META_CONTEXT, &meta("disk", &["base:allocation", "x-no:thing"])),
        option(option::GO, &go("disk", &[info::BLOCK_SIZE, info::DESCRIPTION, info::NAME, 999])),
    ]);
    let End::Entered(agreement) = end else { panic!("{end:?}") };
    assert_eq!(agreement.style, ReplyStyle::Extended);
    assert!(agreement.allocation);
    assert!(agreement.flags.contains(
        TransmissionFlags::HAS_FLAGS
            | TransmissionFlags::SEND_DF
            | TransmissionFlags::BLOCK_STATUS_PAYLOAD
            | TransmissionFlags::READ_ONLY
    ));
    assert_eq!(
        kinds(&out),
        [
            rep::ACK,
            rep::META_CONTEXT,
            rep::ACK,
            rep::INFO,
            rep::INFO,
            rep::INFO,
            rep::INFO,
            rep::ACK
        ]
    );
}

#[test]
fn info_describes_and_stays() {
    let (out, end) = run(&[option(option::INFO, &go("", &[])), option(option::ABORT, b"bye")]);
    assert_eq!(end, End::Closed);
    assert_eq!(kinds(&out), [rep::INFO, rep::ACK, rep::ACK]);
    assert_eq!(replies(&out)[0].2.len(), 12);
}

#[test]
fn export_name_pads_unless_agreed() {
    let name = option(option::EXPORT_NAME, b"disk");
    let (out, end) = run(std::slice::from_ref(&name));
    assert!(matches!(end, End::Entered(_)));
    assert_eq!(out.len(), 10);
    let mut old = 0_u32.to_be_bytes().to_vec();
    old.extend(&name);
    let (out, end) = play(Policy::default(), &facts(), &old, usize::MAX);
    let End::Entered(agreement) = end else { panic!("{end:?}") };
    assert_eq!(agreement.style, ReplyStyle::Simple);
    assert!(!agreement.flags.contains(TransmissionFlags::SEND_DF));
    assert_eq!(out.len(), 134);
}

#[test]
fn unknown_exports_and_options_get_their_codes() {
    let (out, end) = run(&[
        option(option::GO, &go("other", &[])),
        option(77, b"anything"),
        option(option::LIST, b"x"),
        option(option::LIST, b""),
        option(option::STARTTLS, b""),
        option(option::LIST_META_CONTEXT, &meta("disk", &[])),
    ]);
    assert_eq!(end, End::Waits);
    assert_eq!(
        kinds(&out),
        [
            rep::ERR_UNKNOWN,
            rep::ERR_UNSUP,
            rep::ERR_INVALID,
            rep::SERVER,
            rep::ACK,
            rep::ERR_POLICY,
            rep::ERR_INVALID
        ]
    );
    let (_, end) = run(&[option(option::EXPORT_NAME, b"other")]);
    assert_eq!(end, End::Dropped(Violation::ExportRefused));
}

#[test]
fn required_tls_hides_everything_until_it_runs() {
    let policy = Policy { tls: TlsMode::Require, list: true };
    // The client waits for the answer to STARTTLS, so its bytes come in two parts.
    let before = session(&[option(option::LIST, b""), option(option::STARTTLS, b"")]);
    let mut handshake = Handshake::new(policy);
    let (mut input, mut out) = (BytesMut::from(&before[..]), BytesMut::new());
    assert_eq!(handshake.advance(&mut input, &mut out), Ok(Step::StartTls));
    assert_eq!(kinds(&out), [rep::ERR_TLS_REQD, rep::ACK]);
    handshake.tls_started();
    input.extend_from_slice(&option(option::LIST, b""));
    assert_eq!(handshake.advance(&mut input, &mut out), Ok(Step::List));

    let (_, end) =
        play(policy, &facts(), &session(&[option(option::EXPORT_NAME, b"disk")]), usize::MAX);
    assert_eq!(end, End::Dropped(Violation::TlsRequired));
}

#[test]
fn clear_text_behind_starttls_is_an_attack() {
    let policy = Policy { tls: TlsMode::On, list: true };
    let bytes = session(&[option(option::STARTTLS, b""), option(option::LIST, b"")]);
    let (_, end) = play(policy, &facts(), &bytes, usize::MAX);
    assert_eq!(end, End::Dropped(Violation::ClearTextAfterStartTls));
}

#[test]
fn tls_forgets_what_was_agreed_before() {
    let policy = Policy { tls: TlsMode::On, list: true };
    let structured = option(option::STRUCTURED_REPLY, b"");
    let bytes =
        session(&[structured, option(option::STARTTLS, b""), option(option::GO, &go("disk", &[]))]);
    // Byte by byte, so that the GO comes only after the step.
    let (_, end) = play(policy, &facts(), &bytes, 1);
    let End::Entered(agreement) = end else { panic!("{end:?}") };
    assert_eq!(agreement.style, ReplyStyle::Simple);
}

#[test]
fn strict_sizes_need_a_client_that_asks() {
    let strict = ExportFacts {
        block_sizes: BlockSizes { minimum: 512, ..BlockSizes::default() },
        ..facts()
    };
    let bytes = session(&[option(option::GO, &go("disk", &[]))]);
    let (out, end) = play(Policy::default(), &strict, &bytes, usize::MAX);
    assert_eq!(end, End::Waits);
    assert_eq!(kinds(&out), [rep::INFO, rep::ERR_BLOCK_SIZE_REQD]);
    let bytes = session(&[option(option::GO, &go("disk", &[info::BLOCK_SIZE]))]);
    let (_, end) = play(Policy::default(), &strict, &bytes, usize::MAX);
    assert!(matches!(end, End::Entered(_)));
}

#[test]
fn contexts_are_replaced_even_by_a_failure_and_bound_to_their_export() {
    let set = |name, queries: &[&str]| option(option::SET_META_CONTEXT, &meta(name, queries));
    let structured = option(option::STRUCTURED_REPLY, b"");
    let enter = option(option::GO, &go("disk", &[]));
    let chosen = |options: &[Vec<u8>]| match run(options).1 {
        End::Entered(agreement) => agreement.allocation,
        end => panic!("{end:?}"),
    };
    let good = set("disk", &["base:allocation"]);
    assert!(chosen(&[structured.clone(), good.clone(), enter.clone()]));
    let bad = set("disk", &["nocolon"]);
    assert!(!chosen(&[structured.clone(), good.clone(), bad, enter.clone()]));
    assert!(!chosen(&[structured.clone(), set("", &["base:allocation"]), enter.clone()]));
    assert!(!chosen(&[structured, set("disk", &["base:"]), enter]));
}

#[test]
fn too_much_option_data_is_skipped_or_dropped() {
    let (out, end) = run(&[option(99, &vec![0; 70_000]), option(option::ABORT, b"")]);
    assert_eq!(end, End::Closed);
    assert_eq!(kinds(&out), [rep::ERR_TOO_BIG, rep::ACK]);
    let mut huge = option(99, b"");
    huge[12..16].copy_from_slice(&u32::MAX.to_be_bytes());
    let (_, end) = run(&[huge]);
    assert_eq!(end, End::Dropped(Violation::OptionTooLong(u32::MAX)));
    let many = vec![option(99, b""); OPTIONS_MAX as usize + 1];
    let (_, end) = run(&many);
    assert_eq!(end, End::Dropped(Violation::TooManyOptions));
}

#[test]
fn flags_and_magic_are_checked() {
    let (_, end) = play(Policy::default(), &facts(), &5_u32.to_be_bytes(), 4);
    assert_eq!(end, End::Dropped(Violation::ClientFlags(4)));
    let (_, end) = run(&[b"GET / HTTP/1.1\r\n".to_vec()]);
    assert!(matches!(end, End::Dropped(Violation::OptionMagic(_))));
    let mut old = 0_u32.to_be_bytes().to_vec();
    old.extend(option(option::LIST, b""));
    let (_, end) = play(Policy::default(), &facts(), &old, usize::MAX);
    assert_eq!(end, End::Dropped(Violation::NotFixedNewstyle(option::LIST)));
}

fn any_option() -> impl Strategy<Value = Vec<u8>> {
    let data = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        Just(go("disk", &[0, 1, 2, 3])),
        Just(meta("disk", &["base:allocation"])),
        Just(Vec::new()),
    ];
    // STARTTLS depends on where the pieces are cut, by design.
    ((1_u32..13).prop_filter("cut", |number| *number != option::STARTTLS), data)
        .prop_map(|(number, data)| option(number, &data))
}

proptest! {
    #[test]
    fn pieces_do_not_change_the_outcome(
        options in proptest::collection::vec(any_option(), 0..12),
        piece in 1_usize..50,
    ) {
        let bytes = session(&options);
        let whole = play(Policy::default(), &facts(), &bytes, usize::MAX);
        prop_assert_eq!(play(Policy::default(), &facts(), &bytes, piece), whole);
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut all = session(&[]);
        all.extend(&bytes);
        let (out, _) = play(Policy { tls: TlsMode::On, list: true }, &facts(), &all, 7);
        let _ = replies(&out);
    }
}
