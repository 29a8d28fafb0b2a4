//! The Network Block Device protocol, server side, as values.
//!
//! Source: `doc/proto.md` of the NetworkBlockDevice project, with its `extension-ext-header`
//! branch for extended headers. Section names in this module refer to that document.
//!
//! Nothing here reads or writes a socket. A session feeds received bytes to [`Handshake`] and
//! sends what it puts in the output buffer; once transmission is entered it decodes each
//! [`Header`], has the [`Agreement`] judge it, and encodes answers with a [`ReplyEncoder`].

pub mod constants;

mod agreement;
mod flags;
mod handshake;
mod reply;
mod request;

pub use agreement::{Agreement, BlockSizes, ReplyStyle};
pub use flags::{CommandFlags, ExtentFlags, TransmissionFlags};
pub use handshake::{Answer, ExportFacts, Handshake, Policy, Step, TlsMode, Violation};
pub use reply::{Descriptor, ReplyEncoder, RequestId};
pub use request::{Command, Header, HeaderError, Refusal, Request, WireError};
