//! One connection: its phases, its buffers, and the requests and replies of the transmission phase.

use std::sync::Arc;

use super::export::Export;
use super::output::Output;
use super::wire::{self, Fields};
use crate::backend::{Errno, Extent, Failure, Op, Request};

/// The largest number of requests of one connection that are outstanding at a time. Further ones wait in the socket.
pub const QUEUE_MAX: u32 = 256;

/// Bytes that a session has room for when it receives, if no request needs more.
const RECEIVE: usize = 256 << 10;
/// Memory in bytes that the empty input keeps.
const KEEP: usize = 4 << 20;
/// Bytes of a reply beyond its data, at most, without the text of an error.
const REPLY_OVERHEAD: u64 = 64;
/// The most extents in a reply.
const EXTENTS_MAX: usize = 1024;

/// A request as the client knows it. The session wants it back with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    cookie: u64,
    offset: u64,
    len: u32,
    kind: u16,
    /// Bytes that are set aside for the reply.
    promised: u64,
}

impl Call {
    /// Whether the request is a read, which is answered with [`Session::data`] when it succeeds.
    pub fn is_read(&self) -> bool {
        self.kind == wire::CMD_READ
    }
}

/// What a client asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// A request for the backend, to be answered with [`Session::done`], [`Session::data`] or [`Session::failed`].
    Request {
        /// To be given back with the answer.
        call: Call,
        /// The request.
        request: Request,
        /// The data of a write; empty otherwise.
        payload: &'a [u8],
    },
    /// A question for the allocation status, to be answered with [`Session::extents`] or [`Session::failed`].
    Status {
        /// To be given back with the answer.
        call: Call,
        /// Address of the first byte.
        offset: u64,
        /// Length in bytes; at least 1.
        len: u32,
        /// The most extents that the answer may have.
        max: usize,
    },
}

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The client's flags are expected.
    Flags,
    /// Options are expected.
    Haggling,
    /// Requests are expected.
    Transmission,
    /// Nothing is expected any more. The connection is to be closed when every reply is sent.
    Draining,
}

/// What follows when bytes of the client have been skipped.
#[derive(Clone, Copy, Debug)]
pub(super) enum AfterSkip {
    /// The request of which the bytes were the payload has failed.
    Failed(Call, Failure),
    /// The option of which the bytes were the data was too long.
    TooBig(u32),
}

/// What the next bytes of the client are.
enum Step {
    /// They say nothing to the backend; the session has dealt with them.
    Served,
    /// They are no whole message yet, or no message will follow.
    Starved,
    /// They are not looked at until earlier requests are answered, or replies are sent.
    Stalled,
    Request(Call, Request, std::ops::Range<usize>),
    Status(Call, usize),
}

/// One connection of a client, without I/O.
///
/// The caller appends what it receives to [`Session::receive`], asks for commands with [`Session::next`] until there is
/// none, gives the answers, and sends [`Session::output`].
///
/// A session's buffers are bounded, whatever the client sends, and whether or not it reads: the input by the largest
/// request (`maximum` of [`Export`] and 28 bytes) or 256 KiB, the output and the data of outstanding reads together by
/// `buffer_max` and one reply. The output takes at most twice its memory, and 5 MiB.
#[derive(Debug)]
pub struct Session {
    pub(super) export: Arc<Export>,
    pub(super) phase: Phase,
    /// What was received; the bytes before `start` are dealt with.
    pub(super) input: Vec<u8>,
    pub(super) start: usize,
    /// Bytes from `start` on that the next message needs to be whole.
    pub(super) wanted: usize,
    /// Bytes of the client that are still to be skipped.
    pub(super) skip: u64,
    pub(super) after_skip: Option<AfterSkip>,
    pub(super) output: Output,
    buffer_max: u64,
    pub(super) fixed: bool,
    pub(super) no_zeroes: bool,
    pub(super) structured: bool,
    /// The client has selected `base:allocation`.
    pub(super) has_context: bool,
    /// The placement identifier of the connection's writes.
    pub(super) placement: u16,
    pub(super) is_shutting_down: bool,
    is_stalled: bool,
    outstanding: u32,
    /// Bytes that are set aside for the replies of outstanding requests.
    promised: u64,
}

impl Session {
    /// A connection that has just been accepted. `buffer_max` is the limit in bytes of the replies that are not sent yet,
    /// with those of outstanding requests; a single reply may be longer.
    pub fn new(export: Arc<Export>, buffer_max: u64) -> Self {
        let mut session = Self {
            export,
            phase: Phase::Flags,
            input: Vec::new(),
            start: 0,
            wanted: 0,
            skip: 0,
            after_skip: None,
            output: Output::default(),
            buffer_max,
            fixed: false,
            no_zeroes: false,
            structured: false,
            has_context: false,
            placement: 0,
            is_shutting_down: false,
            is_stalled: false,
            outstanding: 0,
            promised: 0,
        };
        let greeting = session.output.message(18);
        greeting.extend_from_slice(&wire::INIT_PASSWD.to_be_bytes());
        greeting.extend_from_slice(&wire::OPTS_MAGIC.to_be_bytes());
        let flags = wire::FLAG_FIXED_NEWSTYLE | wire::FLAG_NO_ZEROES;
        greeting.extend_from_slice(&flags.to_be_bytes());
        session
    }

    /// Where received bytes are to be appended, as many as the capacity has room for. There is room for at least one byte.
    pub fn receive(&mut self) -> &mut Vec<u8> {
        let unread = self.input.len() - self.start;
        if unread == 0 {
            self.input.clear();
            self.start = 0;
            if self.input.capacity() > KEEP && self.wanted <= KEEP {
                self.input = Vec::new();
            }
        }
        let room = self.wanted.max(RECEIVE).saturating_sub(unread).max(1);
        if self.input.capacity() - self.input.len() < room {
            self.input.drain(..self.start);
            self.start = 0;
            self.input.reserve_exact(room);
        }
        &mut self.input
    }

    /// Whether received bytes are wanted now. A session that does not want them leaves the client waiting.
    pub fn wants_input(&self) -> bool {
        self.phase != Phase::Draining && !self.is_stalled
    }

    /// Whether [`Session::next`] has a command that waits for answers to earlier ones, or for replies to be sent.
    pub fn is_stalled(&self) -> bool {
        self.is_stalled
    }

    /// Says that the client sends nothing any more.
    pub fn end_of_input(&mut self) {
        self.phase = Phase::Draining;
    }

    /// Says that outstanding requests get no answer, and that the connection ends when the replies so far are sent.
    pub fn abandon(&mut self) {
        self.phase = Phase::Draining;
        (self.outstanding, self.promised, self.is_stalled) = (0, 0, false);
        (self.skip, self.after_skip) = (0, None);
    }

    /// Says that the server is being shut down: further options and requests are answered with an error.
    pub fn shut_down(&mut self) {
        self.is_shutting_down = true;
    }

    /// The placement identifier of the connection's writes, which the client has named with the export.
    pub fn placement(&self) -> u16 {
        self.placement
    }

    /// Whether the handshake is over.
    pub fn is_transmitting(&self) -> bool {
        self.phase == Phase::Transmission
    }

    /// Whether the connection is to be closed now.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Draining && self.outstanding == 0 && self.unsent() == 0
    }

    /// Number of requests that are not answered.
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Bytes of memory that the buffers take.
    pub fn buffered_bytes(&self) -> u64 {
        (self.input.capacity() + self.output.capacity()) as u64
    }

    /// The next bytes to be sent; empty if there are none. Further ones may follow them.
    pub fn output(&self) -> &[u8] {
        self.output.first()
    }

    /// Number of bytes to be sent.
    pub fn unsent(&self) -> usize {
        self.output.len()
    }

    /// Says that the first `len` bytes of [`Session::output`] were sent.
    pub fn sent(&mut self, len: usize) {
        self.output.sent(len);
    }

    /// The next command of the client. `None` if the bytes received so far have none, or if it has to wait for answers
    /// to earlier ones or for replies to be sent; the caller then asks again after it has done either.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend its items")]
    pub fn next(&mut self) -> Option<Command<'_>> {
        self.is_stalled = false;
        loop {
            match self.step() {
                Step::Served => {}
                Step::Starved => return None,
                Step::Stalled => {
                    self.is_stalled = true;
                    return None;
                }
                Step::Request(call, request, payload) => {
                    return Some(Command::Request { call, request, payload: &self.input[payload] });
                }
                Step::Status(call, max) => {
                    return Some(Command::Status { call, offset: call.offset, len: call.len, max });
                }
            }
        }
    }

    fn step(&mut self) -> Step {
        if self.skip > 0 || self.after_skip.is_some() {
            let skipped = self.skip.min((self.input.len() - self.start) as u64);
            self.start += skipped as usize;
            self.skip -= skipped;
            if self.skip > 0 {
                return Step::Starved;
            }
            match self.after_skip.take() {
                Some(AfterSkip::Failed(call, failure)) => self.fail(&call, failure),
                Some(AfterSkip::TooBig(option)) => self.reply_to_option(option, wire::REP_ERR_TOO_BIG, &[]),
                None => {}
            }
        }
        if self.unsent() as u64 > self.buffer_max && self.phase != Phase::Draining {
            return Step::Stalled;
        }
        let is_served = match self.phase {
            Phase::Flags => self.client_flags(),
            Phase::Haggling => self.option(),
            Phase::Transmission => return self.request(),
            Phase::Draining => false,
        };
        if is_served { Step::Served } else { Step::Starved }
    }

    /// The next `len` bytes, if they are there. They count as dealt with when `start` is moved.
    pub(super) fn whole(&mut self, len: usize) -> Option<&[u8]> {
        self.wanted = len;
        self.input[self.start..].get(..len)
    }

    /// Deals with a request, if it is whole.
    fn request(&mut self) -> Step {
        let Some(header) = self.whole(wire::REQUEST_HEADER) else { return Step::Starved };
        let mut fields = Fields(header);
        let (Some(magic), Some(flags), Some(kind), Some(cookie), Some(offset), Some(len)) =
            (fields.u32(), fields.u16(), fields.u16(), fields.u64(), fields.u64(), fields.u32())
        else {
            return Step::Starved;
        };
        if magic != wire::REQUEST_MAGIC || kind == wire::CMD_DISC {
            self.phase = Phase::Draining;
            return Step::Starved;
        }
        let mut call = Call { cookie, offset, len, kind, promised: REPLY_OVERHEAD };
        let payload = if kind == wire::CMD_WRITE { len as usize } else { 0 };
        let op = match self.judge(&call, flags) {
            Ok(op) => op,
            Err(failure) => {
                self.start += wire::REQUEST_HEADER;
                self.skip = payload as u64;
                self.after_skip = Some(AfterSkip::Failed(call, failure));
                return Step::Served;
            }
        };
        let extents_max = if flags & wire::CMD_FLAG_REQ_ONE != 0 { 1 } else { EXTENTS_MAX };
        call.promised += match op {
            Some(Op::Read) => len.into(),
            Some(_) => 0,
            None => 8 * extents_max as u64,
        };
        let unsent = self.promised + self.unsent() as u64;
        if self.outstanding == QUEUE_MAX || (unsent > 0 && unsent + call.promised > self.buffer_max) {
            return Step::Stalled;
        }
        if self.whole(wire::REQUEST_HEADER + payload).is_none() {
            return Step::Starved;
        }
        let data = self.start + wire::REQUEST_HEADER..self.start + wire::REQUEST_HEADER + payload;
        self.start = data.end;
        self.outstanding += 1;
        self.promised += call.promised;
        match op {
            Some(op) => {
                let fua = flags & wire::CMD_FLAG_FUA != 0;
                Step::Request(call, Request { op, offset, len, fua, placement: self.placement }, data)
            }
            None => Step::Status(call, extents_max),
        }
    }

    /// The operation of a valid request; `None` is a question for the allocation status.
    fn judge(&self, call: &Call, flags: u16) -> Result<Option<Op>, Failure> {
        let invalid = |text| Err(Failure::new(Errno::Invalid, text));
        if self.is_shutting_down {
            return Err(Failure::new(Errno::ShuttingDown, "the server is being shut down"));
        }
        let features = &self.export.features;
        let fast_zero = if features.fast_zero { wire::CMD_FLAG_FAST_ZERO } else { 0 };
        let (op, further_flags) = match call.kind {
            wire::CMD_READ => (Some(Op::Read), if self.structured { wire::CMD_FLAG_DF } else { 0 }),
            wire::CMD_WRITE => (Some(Op::Write), 0),
            wire::CMD_FLUSH => (Some(Op::Flush), 0),
            wire::CMD_TRIM if features.trim => (Some(Op::Trim), 0),
            wire::CMD_WRITE_ZEROES => {
                let no_hole = flags & wire::CMD_FLAG_NO_HOLE != 0;
                let fast = flags & wire::CMD_FLAG_FAST_ZERO != 0;
                (Some(Op::WriteZeroes { no_hole, fast }), wire::CMD_FLAG_NO_HOLE | fast_zero)
            }
            wire::CMD_BLOCK_STATUS if self.has_context => (None, wire::CMD_FLAG_REQ_ONE),
            wire::CMD_BLOCK_STATUS => return invalid("no metadata context was negotiated"),
            _ => return invalid("unknown command"),
        };
        if flags & !(wire::CMD_FLAG_FUA | further_flags) != 0 {
            return invalid("unknown command flag");
        }
        let (offset, len) = (call.offset, call.len);
        if op == Some(Op::Flush) {
            return if offset == 0 && len == 0 {
                Ok(op)
            } else {
                invalid("a flush has no offset and no length")
            };
        }
        let is_write = matches!(op, Some(Op::Write | Op::WriteZeroes { .. } | Op::Trim));
        if is_write && self.export.read_only {
            return Err(Failure::new(Errno::NotPermitted, "the export is read-only"));
        }
        if len == 0 {
            return invalid("the request has no bytes");
        }
        if offset.checked_add(len.into()).is_none_or(|end| end > features.size) {
            let errno = if is_write && op != Some(Op::Trim) { Errno::NoSpace } else { Errno::Invalid };
            return Err(Failure::new(errno, "the request ends beyond the export"));
        }
        if (offset | u64::from(len)) & u64::from(self.export.minimum - 1) != 0 {
            return invalid("the request is not aligned to the minimum block size");
        }
        if matches!(op, Some(Op::Read | Op::Write)) && len > self.export.maximum {
            return invalid("the request is longer than the maximum block size");
        }
        Ok(op)
    }

    /// Takes back what was set aside for the reply of an outstanding request.
    fn end(&mut self, call: &Call) {
        self.outstanding -= 1;
        self.promised -= call.promised;
    }

    /// Answers a request without data: it has succeeded.
    pub fn done(&mut self, call: Call) {
        self.end(&call);
        debug_assert!(call.kind != wire::CMD_READ && call.kind != wire::CMD_BLOCK_STATUS);
        self.output.message(16).extend_from_slice(&simple_reply(&call, 0));
    }

    /// Answers a read. `fill` appends as many bytes as the read asked for.
    pub fn data(&mut self, call: Call, fill: impl FnOnce(&mut Vec<u8>)) {
        self.end(&call);
        debug_assert_eq!(call.kind, wire::CMD_READ);
        let output = self.output.message(call.len as usize + REPLY_OVERHEAD as usize);
        if self.structured {
            output.extend_from_slice(&chunk_header(&call, wire::REPLY_TYPE_OFFSET_DATA, 8 + call.len));
            output.extend_from_slice(&call.offset.to_be_bytes());
        } else {
            output.extend_from_slice(&simple_reply(&call, 0));
        }
        let end = output.len() + call.len as usize;
        fill(output);
        debug_assert_eq!(output.len(), end, "a read was filled with another number of bytes");
        output.resize(end, 0);
    }

    /// Answers a question for the allocation status. `extents` has at least one extent, and no more than the command
    /// allowed; an extent of 4 GiB or more, and with `REQ_ONE` one beyond the range of the command, is cut.
    pub fn extents(&mut self, call: Call, extents: &[Extent]) {
        self.end(&call);
        debug_assert!(call.kind == wire::CMD_BLOCK_STATUS && !extents.is_empty());
        // The sum of the lengths may be beyond the range of the command with the last extent only.
        let mut left = u64::from(call.len);
        let mut taken = 0;
        while taken < extents.len() && left > 0 {
            left = left.saturating_sub(extents[taken].len);
            taken += 1;
        }
        let longest = u64::from(u32::MAX) / u64::from(self.export.minimum) * u64::from(self.export.minimum);
        let cut = extents[..taken].iter().position(|extent| extent.len > longest).map_or(taken, |at| at + 1);
        let output = self.output.message(24 + 8 * cut);
        output.extend_from_slice(&chunk_header(&call, wire::REPLY_TYPE_BLOCK_STATUS, 4 + 8 * cut as u32));
        output.extend_from_slice(&super::haggling::ALLOCATION_ID.to_be_bytes());
        for extent in &extents[..cut] {
            let end = if cut == 1 { u64::from(call.len) } else { longest };
            let len = extent.len.min(end) as u32;
            let hole = if extent.hole { wire::STATE_HOLE } else { 0 };
            let zero = if extent.zero { wire::STATE_ZERO } else { 0 };
            output.extend_from_slice(&len.to_be_bytes());
            output.extend_from_slice(&(hole | zero).to_be_bytes());
        }
    }

    /// Answers a request: it has failed.
    pub fn failed(&mut self, call: Call, failure: Failure) {
        self.end(&call);
        self.fail(&call, failure);
    }

    fn fail(&mut self, call: &Call, failure: Failure) {
        let errno = failure.errno as u32;
        if !self.structured {
            return self.output.message(16).extend_from_slice(&simple_reply(call, errno));
        }
        let text = &failure.text.as_bytes()[..failure.text.floor_char_boundary(wire::STRING_MAX)];
        let range = call.offset..call.offset.saturating_add(call.len.into());
        let at = failure.at.filter(|at| range.contains(at));
        let (kind, further) = match at {
            Some(_) => (wire::REPLY_TYPE_ERROR_OFFSET, 8),
            None => (wire::REPLY_TYPE_ERROR, 0),
        };
        let output = self.output.message(34 + text.len());
        output.extend_from_slice(&chunk_header(call, kind, 6 + text.len() as u32 + further));
        output.extend_from_slice(&errno.to_be_bytes());
        output.extend_from_slice(&(text.len() as u16).to_be_bytes());
        output.extend_from_slice(text);
        if let Some(at) = at {
            output.extend_from_slice(&at.to_be_bytes());
        }
    }
}

/// A simple reply without its data.
fn simple_reply(call: &Call, errno: u32) -> [u8; 16] {
    let mut reply = [0; 16];
    reply[..4].copy_from_slice(&wire::SIMPLE_REPLY_MAGIC.to_be_bytes());
    reply[4..8].copy_from_slice(&errno.to_be_bytes());
    reply[8..].copy_from_slice(&call.cookie.to_be_bytes());
    reply
}

/// The header of the only chunk of a structured reply, with `len` bytes of payload.
fn chunk_header(call: &Call, kind: u16, len: u32) -> [u8; 20] {
    let mut header = [0; 20];
    header[..4].copy_from_slice(&wire::STRUCTURED_REPLY_MAGIC.to_be_bytes());
    header[4..6].copy_from_slice(&wire::REPLY_FLAG_DONE.to_be_bytes());
    header[6..8].copy_from_slice(&kind.to_be_bytes());
    header[8..16].copy_from_slice(&call.cookie.to_be_bytes());
    header[16..].copy_from_slice(&len.to_be_bytes());
    header
}
