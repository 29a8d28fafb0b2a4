//! The handshake of a fixed newstyle server, as a state machine without I/O.
//!
//! The session sends [`Handshake::greeting`], then calls [`Handshake::advance`] whenever bytes
//! came. The machine parses options and writes their replies; where it needs to know about the
//! exports it stops with a [`Step`] that the session answers, so that looking an export up may
//! take as long as it likes.

use bytes::{Buf, BufMut, BytesMut};
use thiserror::Error;

use super::agreement::{Agreement, BlockSizes, ReplyStyle};
use super::constants::{
    CONTEXT_ALLOCATION, EXPORT_NAME_PADDING_BYTES, FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES,
    OPTION_HEADER_BYTES, OPTION_MAGIC, SERVER_MAGIC, STRING_BYTES_MAX, info, option, rep,
};
use super::flags::TransmissionFlags;

mod parse;
mod write;

#[cfg(test)]
mod tests;

use parse::{InfoRequest, MetaRequest};

/// Longest option data that is looked at, in bytes. Longer data is skipped and answered with
/// `NBD_REP_ERR_TOO_BIG`.
pub(crate) const OPTION_BYTES_MAX: u32 = 1 << 16;
/// Longest option data that is skipped rather than taken for an attack, in bytes.
pub(crate) const OPTION_SKIP_BYTES_MAX: u32 = 1 << 22;
/// Most options in one session.
pub(crate) const OPTIONS_MAX: u32 = 512;

/// When a client must use TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsMode {
    /// TLS is not offered.
    #[default]
    Off,
    /// Offered to those who ask.
    On,
    /// Nothing is said without it.
    Require,
}

/// What a server lets clients do before an export is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Use of TLS.
    pub tls: TlsMode,
    /// Whether clients may list the exports.
    pub list: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { tls: TlsMode::Off, list: true }
    }
}

/// What the handshake tells about an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportFacts {
    /// The name under which the server keeps it.
    pub name: String,
    /// Text for people; may be empty.
    pub description: String,
    /// Size in bytes.
    pub size: u64,
    /// What the export offers. `HAS_FLAGS`, `SEND_DF` and `BLOCK_STATUS_PAYLOAD` are added here,
    /// as they depend on the client.
    pub flags: TransmissionFlags,
    /// Size constraints.
    pub block_sizes: BlockSizes,
}

/// What the session must do next. Before it, all bytes in the output buffer must be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read more from the client, then call [`Handshake::advance`].
    NeedInput,
    /// Find the export of this name, then call [`Handshake::answer`].
    Lookup(String),
    /// Call [`Handshake::answer_list`].
    List,
    /// Start TLS as the server, then call [`Handshake::tls_started`].
    StartTls,
    /// The handshake is over; requests follow.
    Enter(Agreement),
    /// The client is done; close.
    Close,
}

/// The result of a [`Step::Lookup`].
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// The export exists.
    Found(&'a ExportFacts),
    /// It does not, or cannot be opened; the text tells the user why.
    Unknown(&'a str),
}

/// The client broke a rule after which the session cannot go on; close without reply.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// Client flags that were not offered.
    #[error("the client set handshake flags {0:#x} that were not offered")]
    ClientFlags(u32),
    /// An option did not start with its magic number.
    #[error("the client sent {0:#018x} where an option must start")]
    OptionMagic(u64),
    /// An option other than EXPORT_NAME without fixed newstyle.
    #[error("the client sent option {0} without fixed newstyle negotiation")]
    NotFixedNewstyle(u32),
    /// Option data beyond any use.
    #[error("the client announced {0} bytes of option data")]
    OptionTooLong(u32),
    /// More options than any client needs.
    #[error("the client sent more than {OPTIONS_MAX} options")]
    TooManyOptions,
    /// EXPORT_NAME named nothing that can be served; the option has no error reply.
    #[error("the client asked for an export that cannot be served")]
    ExportRefused,
    /// EXPORT_NAME although TLS is required.
    #[error("the client tried to enter without the TLS that is required")]
    TlsRequired,
    /// EXPORT_NAME after extended headers were agreed.
    #[error("the client left extended headers by the oldest option")]
    ExtendedHeadersLeft,
    /// Bytes after STARTTLS that are not part of TLS: an injection, or a broken client.
    #[error("the client sent clear text after STARTTLS")]
    ClearTextAfterStartTls,
}

#[derive(Debug)]
enum State {
    ClientFlags,
    Header,
    Data { number: u32, length: u32 },
    Skip { number: u32, left: u32 },
    Waiting(Pending),
    StartingTls,
    Over,
}

#[derive(Debug)]
enum Pending {
    ExportName(String),
    Info { go: bool, request: InfoRequest },
    ListContexts(MetaRequest),
    SetContexts(MetaRequest),
    List,
}

/// What the client negotiated so far; forgotten when TLS starts.
#[derive(Debug, Default)]
struct Negotiated {
    style: ReplyStyle,
    /// Export name for which `base:allocation` was chosen.
    allocation_of: Option<String>,
}

/// One client's handshake.
#[derive(Debug)]
pub struct Handshake {
    policy: Policy,
    state: State,
    fixed: bool,
    no_zeroes: bool,
    secure: bool,
    options: u32,
    negotiated: Negotiated,
}

impl Handshake {
    /// A handshake that has sent nothing yet.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            state: State::ClientFlags,
            fixed: false,
            no_zeroes: false,
            secure: false,
            options: 0,
            negotiated: Negotiated::default(),
        }
    }

    /// Appends the first bytes of the session, which the server sends unasked.
    pub fn greeting(&self, out: &mut BytesMut) {
        out.put_u64(SERVER_MAGIC);
        out.put_u64(OPTION_MAGIC);
        out.put_u16(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES);
    }

    /// Consumes what it can of `input`, appends replies to `out`, and says what comes next.
    ///
    /// # Errors
    /// A [`Violation`] when the client must be dropped.
    pub fn advance(&mut self, input: &mut BytesMut, out: &mut BytesMut) -> Result<Step, Violation> {
        loop {
            match self.state {
                State::ClientFlags => {
                    if input.len() < 4 {
                        return Ok(Step::NeedInput);
                    }
                    self.client_flags(input.get_u32())?;
                    self.state = State::Header;
                }
                State::Header => {
                    if !self.header(input)? {
                        return Ok(Step::NeedInput);
                    }
                }
                State::Skip { number, left } => {
                    let now = (left as usize).min(input.len());
                    input.advance(now);
                    let left = left - now as u32;
                    if left > 0 {
                        self.state = State::Skip { number, left };
                        return Ok(Step::NeedInput);
                    }
                    write::error(out, number, rep::ERR_TOO_BIG, "the option data is too long");
                    self.state = State::Header;
                }
                State::Data { number, length } => {
                    if input.len() < length as usize {
                        return Ok(Step::NeedInput);
                    }
                    let data = input.split_to(length as usize);
                    self.state = State::Header;
                    if let Some(step) = self.option(number, &data, input, out)? {
                        return Ok(step);
                    }
                }
                State::Waiting(Pending::List) => return Ok(Step::List),
                State::Waiting(ref pending) => {
                    return Ok(Step::Lookup(pending.export().to_owned()));
                }
                State::StartingTls => return Ok(Step::StartTls),
                State::Over => return Ok(Step::Close),
            }
        }
    }

    /// Answers [`Step::Lookup`], then goes on like [`Handshake::advance`].
    ///
    /// # Errors
    /// A [`Violation`] when the client must be dropped.
    pub fn answer(
        &mut self,
        answer: Answer<'_>,
        input: &mut BytesMut,
        out: &mut BytesMut,
    ) -> Result<Step, Violation> {
        let State::Waiting(pending) = std::mem::replace(&mut self.state, State::Header) else {
            debug_assert!(false, "nothing was asked");
            return self.advance(input, out);
        };
        let entered = match pending {
            Pending::ExportName(name) => Some(self.enter_by_name(name, answer, out)?),
            Pending::Info { go, request } => self.describe(go, request, answer, out),
            Pending::ListContexts(request) => {
                self.contexts(option::LIST_META_CONTEXT, request, answer, out);
                None
            }
            Pending::SetContexts(request) => {
                self.contexts(option::SET_META_CONTEXT, request, answer, out);
                None
            }
            Pending::List => None,
        };
        match entered {
            Some(agreement) => {
                self.state = State::Over;
                Ok(Step::Enter(agreement))
            }
            None => self.advance(input, out),
        }
    }

    /// Answers [`Step::List`] with pairs of name and description, then goes on like
    /// [`Handshake::advance`].
    ///
    /// # Errors
    /// A [`Violation`] when the client must be dropped.
    pub fn answer_list<'a>(
        &mut self,
        exports: impl IntoIterator<Item = (&'a str, &'a str)>,
        input: &mut BytesMut,
        out: &mut BytesMut,
    ) -> Result<Step, Violation> {
        debug_assert!(matches!(self.state, State::Waiting(Pending::List)), "no list was asked");
        for (name, description) in exports {
            write::server(out, name, description);
        }
        write::ack(out, option::LIST);
        self.state = State::Header;
        self.advance(input, out)
    }

    /// TLS runs. All that was negotiated in the clear is forgotten, as the specification demands.
    pub fn tls_started(&mut self) {
        debug_assert!(matches!(self.state, State::StartingTls), "TLS was not asked for");
        self.secure = true;
        self.negotiated = Negotiated::default();
        self.state = State::Header;
    }

    fn client_flags(&mut self, flags: u32) -> Result<(), Violation> {
        let known = u32::from(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES);
        if flags & !known != 0 {
            return Err(Violation::ClientFlags(flags & !known));
        }
        self.fixed = flags & u32::from(FLAG_FIXED_NEWSTYLE) != 0;
        self.no_zeroes = flags & u32::from(FLAG_NO_ZEROES) != 0;
        Ok(())
    }

    /// Takes an option header; false when it is not there yet.
    fn header(&mut self, input: &mut BytesMut) -> Result<bool, Violation> {
        if let Some(first) = input.first_chunk::<8>() {
            let magic = u64::from_be_bytes(*first);
            if magic != OPTION_MAGIC {
                return Err(Violation::OptionMagic(magic));
            }
        }
        if input.len() < OPTION_HEADER_BYTES {
            return Ok(false);
        }
        input.advance(8);
        let (number, length) = (input.get_u32(), input.get_u32());
        self.options += 1;
        if self.options > OPTIONS_MAX {
            return Err(Violation::TooManyOptions);
        }
        if number != option::EXPORT_NAME && !self.fixed {
            return Err(Violation::NotFixedNewstyle(number));
        }
        let name_too_long = number == option::EXPORT_NAME && length as usize > STRING_BYTES_MAX;
        if length > OPTION_SKIP_BYTES_MAX || name_too_long {
            return Err(Violation::OptionTooLong(length));
        }
        self.state = if length > OPTION_BYTES_MAX {
            State::Skip { number, left: length }
        } else {
            State::Data { number, length }
        };
        Ok(true)
    }

    /// Acts on one whole option. `Some` when the session must act first.
    fn option(
        &mut self,
        number: u32,
        data: &[u8],
        rest: &BytesMut,
        out: &mut BytesMut,
    ) -> Result<Option<Step>, Violation> {
        if self.policy.tls == TlsMode::Require && !self.secure {
            match number {
                option::STARTTLS | option::ABORT => {}
                option::EXPORT_NAME => return Err(Violation::TlsRequired),
                _ => {
                    write::error(out, number, rep::ERR_TLS_REQD, "this server requires TLS");
                    return Ok(None);
                }
            }
        }
        match number {
            option::ABORT => {
                write::ack(out, number);
                self.state = State::Over;
                return Ok(Some(Step::Close));
            }
            option::STARTTLS => return self.start_tls(data, rest, out),
            option::STRUCTURED_REPLY => self.upgrade(number, data, ReplyStyle::Structured, out),
            option::EXTENDED_HEADERS => self.upgrade(number, data, ReplyStyle::Extended, out),
            option::LIST => self.list(data, out),
            option::EXPORT_NAME => {
                if self.negotiated.style == ReplyStyle::Extended {
                    return Err(Violation::ExtendedHeadersLeft);
                }
                let name = parse::name(data).ok_or(Violation::ExportRefused)?;
                self.state = State::Waiting(Pending::ExportName(name));
            }
            option::INFO | option::GO => match InfoRequest::parse(data) {
                Ok(request) => {
                    let go = number == option::GO;
                    self.state = State::Waiting(Pending::Info { go, request });
                }
                Err(wrong) => write::error(out, number, wrong.reply, wrong.reason),
            },
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
                self.meta(number, data, out);
            }
            _ => write::error(out, number, rep::ERR_UNSUP, "the option is not known here"),
        }
        Ok(None)
    }

    fn start_tls(
        &mut self,
        data: &[u8],
        rest: &BytesMut,
        out: &mut BytesMut,
    ) -> Result<Option<Step>, Violation> {
        let number = option::STARTTLS;
        if !data.is_empty() {
            write::error(out, number, rep::ERR_INVALID, "STARTTLS carries no data");
        } else if self.secure {
            write::error(out, number, rep::ERR_INVALID, "TLS already runs");
        } else if self.policy.tls == TlsMode::Off {
            write::error(out, number, rep::ERR_POLICY, "this server was started without TLS");
        } else if rest.is_empty() {
            write::ack(out, number);
            self.state = State::StartingTls;
            return Ok(Some(Step::StartTls));
        } else {
            return Err(Violation::ClearTextAfterStartTls);
        }
        Ok(None)
    }

    fn upgrade(&mut self, number: u32, data: &[u8], style: ReplyStyle, out: &mut BytesMut) {
        if !data.is_empty() {
            write::error(out, number, rep::ERR_INVALID, "this option carries no data");
        } else if self.negotiated.style == ReplyStyle::Extended && style != ReplyStyle::Extended {
            let reason = "extended headers were agreed before";
            write::error(out, number, rep::ERR_EXT_HEADER_REQD, reason);
        } else {
            self.negotiated.style = style;
            write::ack(out, number);
        }
    }

    fn list(&mut self, data: &[u8], out: &mut BytesMut) {
        if !data.is_empty() {
            write::error(out, option::LIST, rep::ERR_INVALID, "LIST carries no data");
        } else if self.policy.list {
            self.state = State::Waiting(Pending::List);
        } else {
            write::error(out, option::LIST, rep::ERR_POLICY, "this server does not list exports");
        }
    }

    fn meta(&mut self, number: u32, data: &[u8], out: &mut BytesMut) {
        let set = number == option::SET_META_CONTEXT;
        if set {
            // A failed choice also replaces the one before.
            self.negotiated.allocation_of = None;
        }
        if self.negotiated.style == ReplyStyle::Simple {
            let reason = "structured replies must be agreed first";
            return write::error(out, number, rep::ERR_INVALID, reason);
        }
        match MetaRequest::parse(data) {
            Ok(request) if set => self.state = State::Waiting(Pending::SetContexts(request)),
            Ok(request) => self.state = State::Waiting(Pending::ListContexts(request)),
            Err(wrong) => write::error(out, number, wrong.reply, wrong.reason),
        }
    }

    fn agree(&self, export: String, facts: &ExportFacts) -> Agreement {
        let style = self.negotiated.style;
        let allocation = self.negotiated.allocation_of.as_ref() == Some(&export);
        let mut flags = facts.flags | TransmissionFlags::HAS_FLAGS;
        flags.set(TransmissionFlags::SEND_DF, style != ReplyStyle::Simple);
        flags.set(
            TransmissionFlags::BLOCK_STATUS_PAYLOAD,
            style == ReplyStyle::Extended && allocation,
        );
        let (size, block_sizes) = (facts.size, facts.block_sizes);
        Agreement { export, size, flags, block_sizes, style, allocation }
    }

    fn enter_by_name(
        &self,
        name: String,
        answer: Answer<'_>,
        out: &mut BytesMut,
    ) -> Result<Agreement, Violation> {
        let Answer::Found(facts) = answer else { return Err(Violation::ExportRefused) };
        if facts.block_sizes.minimum > 1 {
            // This option gives no way to tell the client.
            return Err(Violation::ExportRefused);
        }
        let agreement = self.agree(name, facts);
        out.put_u64(agreement.size);
        out.put_u16(agreement.flags.bits());
        if !self.no_zeroes {
            out.put_bytes(0, EXPORT_NAME_PADDING_BYTES);
        }
        Ok(agreement)
    }

    fn describe(
        &self,
        go: bool,
        request: InfoRequest,
        answer: Answer<'_>,
        out: &mut BytesMut,
    ) -> Option<Agreement> {
        let number = if go { option::GO } else { option::INFO };
        let facts = match answer {
            Answer::Found(facts) => facts,
            Answer::Unknown(reason) => {
                write::error(out, number, rep::ERR_UNKNOWN, reason);
                return None;
            }
        };
        let sizes = facts.block_sizes;
        let asks_sizes = request.wants(info::BLOCK_SIZE);
        if asks_sizes || sizes.minimum > 1 {
            write::info_block_size(out, number, sizes);
        }
        if sizes.minimum > 1 && !asks_sizes {
            let reason = "the client must ask for block sizes and keep to them";
            write::error(out, number, rep::ERR_BLOCK_SIZE_REQD, reason);
            return None;
        }
        if request.wants(info::NAME) {
            write::info_text(out, number, info::NAME, &facts.name);
        }
        if request.wants(info::DESCRIPTION) && !facts.description.is_empty() {
            write::info_text(out, number, info::DESCRIPTION, &facts.description);
        }
        let agreement = self.agree(request.export, facts);
        write::info_export(out, number, agreement.size, agreement.flags);
        write::ack(out, number);
        go.then_some(agreement)
    }

    fn contexts(
        &mut self,
        number: u32,
        request: MetaRequest,
        answer: Answer<'_>,
        out: &mut BytesMut,
    ) {
        if let Answer::Unknown(reason) = answer {
            return write::error(out, number, rep::ERR_UNKNOWN, reason);
        }
        let set = number == option::SET_META_CONTEXT;
        let matches = if set { request.selects_allocation() } else { request.lists_allocation() };
        if matches {
            let id = if set { Agreement::ALLOCATION_ID } else { 0 };
            write::meta_context(out, number, id, CONTEXT_ALLOCATION);
        }
        if set {
            self.negotiated.allocation_of = matches.then_some(request.export);
        }
        write::ack(out, number);
    }
}

impl Pending {
    fn export(&self) -> &str {
        match self {
            Self::ExportName(name) => name,
            Self::Info { request, .. } => &request.export,
            Self::ListContexts(request) | Self::SetContexts(request) => &request.export,
            Self::List => "",
        }
    }
}
