//! Flag fields of the transmission phase.

use bitflags::bitflags;

bitflags! {
    /// What an export offers, told to the client when transmission is entered ("Transmission
    /// flags"). A client may use a feature only when its flag was sent.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct TransmissionFlags: u16 {
        /// Set in every field.
        const HAS_FLAGS = 1 << 0;
        /// Writes are refused.
        const READ_ONLY = 1 << 1;
        /// FLUSH is understood.
        const SEND_FLUSH = 1 << 2;
        /// The force-unit-access flag is understood.
        const SEND_FUA = 1 << 3;
        /// Seeks are costly.
        const ROTATIONAL = 1 << 4;
        /// TRIM is understood.
        const SEND_TRIM = 1 << 5;
        /// WRITE_ZEROES is understood.
        const SEND_WRITE_ZEROES = 1 << 6;
        /// The don't-fragment flag is understood.
        const SEND_DF = 1 << 7;
        /// Several connections see one state.
        const CAN_MULTI_CONN = 1 << 8;
        /// CACHE is understood.
        const SEND_CACHE = 1 << 10;
        /// The fast-zero flag is understood.
        const SEND_FAST_ZERO = 1 << 11;
        /// BLOCK_STATUS may name contexts in a payload.
        const BLOCK_STATUS_PAYLOAD = 1 << 12;
    }
}

bitflags! {
    /// Flags of one request ("Command flags"). Bits without a name are kept, so that they can be
    /// refused.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct CommandFlags: u16 {
        /// Answer only when what was written is durable.
        const FUA = 1 << 0;
        /// Write zeroes without leaving a hole.
        const NO_HOLE = 1 << 1;
        /// Answer in one content chunk.
        const DF = 1 << 2;
        /// Describe one extent only.
        const REQ_ONE = 1 << 3;
        /// Fail rather than write zeroes slowly.
        const FAST_ZERO = 1 << 4;
        /// The length field counts a payload (extended headers only).
        const PAYLOAD_LEN = 1 << 5;
        const _ = !0;
    }
}

bitflags! {
    /// State of an extent in the `base:allocation` context.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct ExtentFlags: u32 {
        /// Not allocated behind the export.
        const HOLE = 1 << 0;
        /// Reads as zeroes.
        const ZERO = 1 << 1;
    }
}
