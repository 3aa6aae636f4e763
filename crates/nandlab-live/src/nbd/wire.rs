//! Numbers of the protocol, named as in the protocol document without the prefix NBD_.

/// "NBDMAGIC", the first eight bytes of a connection.
pub(super) const INIT_PASSWD: u64 = 0x4e42_444d_4147_4943;
/// "IHAVEOPT", before the handshake flags and before each option.
pub(super) const OPTS_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Before each reply to an option.
pub(super) const REP_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Before each request.
pub(super) const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Before each simple reply.
pub(super) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Before each chunk of a structured reply.
pub(super) const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Bytes of an option without its data.
pub(super) const OPTION_HEADER: usize = 16;
/// Bytes of a request without its payload.
pub(super) const REQUEST_HEADER: usize = 28;

// Handshake flags, which client flags repeat.
pub(super) const FLAG_FIXED_NEWSTYLE: u16 = 1 << 0;
pub(super) const FLAG_NO_ZEROES: u16 = 1 << 1;

// Transmission flags.
pub(super) const FLAG_HAS_FLAGS: u16 = 1 << 0;
pub(super) const FLAG_READ_ONLY: u16 = 1 << 1;
pub(super) const FLAG_SEND_FLUSH: u16 = 1 << 2;
pub(super) const FLAG_SEND_FUA: u16 = 1 << 3;
pub(super) const FLAG_SEND_TRIM: u16 = 1 << 5;
pub(super) const FLAG_SEND_WRITE_ZEROES: u16 = 1 << 6;
pub(super) const FLAG_SEND_DF: u16 = 1 << 7;
pub(super) const FLAG_CAN_MULTI_CONN: u16 = 1 << 8;
pub(super) const FLAG_SEND_FAST_ZERO: u16 = 1 << 11;

// Options.
pub(super) const OPT_EXPORT_NAME: u32 = 1;
pub(super) const OPT_ABORT: u32 = 2;
pub(super) const OPT_LIST: u32 = 3;
pub(super) const OPT_INFO: u32 = 6;
pub(super) const OPT_GO: u32 = 7;
pub(super) const OPT_STRUCTURED_REPLY: u32 = 8;
pub(super) const OPT_LIST_META_CONTEXT: u32 = 9;
pub(super) const OPT_SET_META_CONTEXT: u32 = 10;

// Replies to options.
pub(super) const REP_ACK: u32 = 1;
pub(super) const REP_SERVER: u32 = 2;
pub(super) const REP_INFO: u32 = 3;
pub(super) const REP_META_CONTEXT: u32 = 4;
pub(super) const REP_ERR_UNSUP: u32 = (1 << 31) + 1;
pub(super) const REP_ERR_INVALID: u32 = (1 << 31) + 3;
pub(super) const REP_ERR_UNKNOWN: u32 = (1 << 31) + 6;
pub(super) const REP_ERR_SHUTDOWN: u32 = (1 << 31) + 7;
pub(super) const REP_ERR_BLOCK_SIZE_REQD: u32 = (1 << 31) + 8;
pub(super) const REP_ERR_TOO_BIG: u32 = (1 << 31) + 9;

// Information about an export.
pub(super) const INFO_EXPORT: u16 = 0;
pub(super) const INFO_NAME: u16 = 1;
pub(super) const INFO_DESCRIPTION: u16 = 2;
pub(super) const INFO_BLOCK_SIZE: u16 = 3;

// Commands.
pub(super) const CMD_READ: u16 = 0;
pub(super) const CMD_WRITE: u16 = 1;
pub(super) const CMD_DISC: u16 = 2;
pub(super) const CMD_FLUSH: u16 = 3;
pub(super) const CMD_TRIM: u16 = 4;
pub(super) const CMD_WRITE_ZEROES: u16 = 6;
pub(super) const CMD_BLOCK_STATUS: u16 = 7;

// Flags of commands.
pub(super) const CMD_FLAG_FUA: u16 = 1 << 0;
pub(super) const CMD_FLAG_NO_HOLE: u16 = 1 << 1;
pub(super) const CMD_FLAG_DF: u16 = 1 << 2;
pub(super) const CMD_FLAG_REQ_ONE: u16 = 1 << 3;
pub(super) const CMD_FLAG_FAST_ZERO: u16 = 1 << 4;

// Chunks of structured replies.
pub(super) const REPLY_FLAG_DONE: u16 = 1;
pub(super) const REPLY_TYPE_OFFSET_DATA: u16 = 1;
pub(super) const REPLY_TYPE_BLOCK_STATUS: u16 = 5;
pub(super) const REPLY_TYPE_ERROR: u16 = (1 << 15) + 1;
pub(super) const REPLY_TYPE_ERROR_OFFSET: u16 = (1 << 15) + 2;

// Status of an extent in the context base:allocation.
pub(super) const STATE_HOLE: u32 = 1 << 0;
pub(super) const STATE_ZERO: u32 = 1 << 1;

/// Longest string of the protocol in bytes ("Conventions" in the protocol document).
pub(super) const STRING_MAX: usize = 4096;

/// A reader of numbers and strings in network byte order. `None` means that the bytes end too early.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    /// The next `len` bytes.
    pub(super) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (part, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(part)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (part, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*part)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A string: 32 bits of length, then the bytes.
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        self.bytes(len as usize)
    }
}
