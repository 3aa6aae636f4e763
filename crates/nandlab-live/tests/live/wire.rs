//! A client's side of the protocol, written from the protocol document alone: nothing here is shared with the session.

use std::sync::Arc;

use nandlab_base::base::units::Time;
use nandlab_live::backend::Backend;
use nandlab_live::memory::Memory;
use nandlab_live::nbd::{Command, Export, Session};

pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
pub(crate) const DISC: u16 = 2;
pub(crate) const FLUSH: u16 = 3;
pub(crate) const TRIM: u16 = 4;
pub(crate) const ZEROES: u16 = 6;
pub(crate) const STATUS: u16 = 7;

pub(crate) const FUA: u16 = 1;
pub(crate) const NO_HOLE: u16 = 2;
pub(crate) const DF: u16 = 4;
pub(crate) const REQ_ONE: u16 = 8;
pub(crate) const FAST: u16 = 16;

pub(crate) const EPERM: u32 = 1;
pub(crate) const EIO: u32 = 5;
pub(crate) const EINVAL: u32 = 22;
pub(crate) const ENOSPC: u32 = 28;
pub(crate) const ESHUTDOWN: u32 = 108;

pub(crate) const ACK: u32 = 1;
pub(crate) const SERVER: u32 = 2;
pub(crate) const INFO: u32 = 3;
pub(crate) const META_CONTEXT: u32 = 4;
pub(crate) const ERR_UNSUP: u32 = 0x8000_0001;
pub(crate) const ERR_INVALID: u32 = 0x8000_0003;
pub(crate) const ERR_UNKNOWN: u32 = 0x8000_0006;
pub(crate) const ERR_SHUTDOWN: u32 = 0x8000_0007;
pub(crate) const ERR_BLOCK_SIZE_REQD: u32 = 0x8000_0008;
pub(crate) const ERR_TOO_BIG: u32 = 0x8000_0009;

/// The client's flags: fixed newstyle, no zeroes.
pub(crate) const CLIENT_FLAGS: [u8; 4] = [0, 0, 0, 3];

/// An option with its data.
pub(crate) fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// Data of NBD_OPT_INFO and NBD_OPT_GO.
pub(crate) fn info_data(name: &str, wanted: &[u16]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    data.extend((wanted.len() as u16).to_be_bytes());
    wanted.iter().for_each(|kind| data.extend(kind.to_be_bytes()));
    data
}

/// Data of NBD_OPT_LIST_META_CONTEXT and NBD_OPT_SET_META_CONTEXT.
pub(crate) fn context_data(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    data.extend((queries.len() as u32).to_be_bytes());
    for query in queries {
        data.extend((query.len() as u32).to_be_bytes());
        data.extend(query.as_bytes());
    }
    data
}

/// A handshake up to the transmission phase.
pub(crate) fn handshake(structured: bool) -> Vec<u8> {
    let mut bytes = CLIENT_FLAGS.to_vec();
    if structured {
        bytes.extend(option(8, &[]));
        bytes.extend(option(10, &context_data("", &["base:allocation"])));
    }
    bytes.extend(option(7, &info_data("", &[3])));
    bytes
}

/// A request; the payload of a write follows.
pub(crate) fn request(flags: u16, kind: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    let mut bytes = vec![0x25, 0x60, 0x95, 0x13];
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(len.to_be_bytes());
    bytes
}

/// A write with its payload.
pub(crate) fn write(flags: u16, cookie: u64, offset: u64, data: &[u8]) -> Vec<u8> {
    let mut bytes = request(flags, WRITE, cookie, offset, data.len() as u32);
    bytes.extend(data);
    bytes
}

/// A reply to an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OptionReply {
    pub(crate) option: u32,
    pub(crate) kind: u32,
    pub(crate) data: Vec<u8>,
}

/// What the server answered to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A simple reply without error, or a chunk of data; with the offset that a chunk has.
    Data(Option<u64>, Vec<u8>),
    /// An error, with the text and the offset that a chunk has.
    Error(u32, String, Option<u64>),
    /// Lengths and flags of extents.
    Extents(u32, Vec<(u32, u32)>),
}

/// Reads replies from bytes, and panics where the bytes are none.
#[derive(Default)]
pub(crate) struct Replies {
    pub(crate) bytes: Vec<u8>,
    at: usize,
}

impl Replies {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn take(&mut self, len: usize) -> Vec<u8> {
        let part = self.bytes.get(self.at..self.at + len);
        let part = part.unwrap_or_else(|| panic!("{len} bytes at {} of {}", self.at, self.bytes.len()));
        self.at += len;
        part.to_vec()
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().unwrap())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take(8).try_into().unwrap())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(crate) fn greeting(&mut self) {
        assert_eq!(self.take(8), b"NBDMAGIC");
        assert_eq!(self.take(8), b"IHAVEOPT");
        assert_eq!(self.u16(), 3, "fixed newstyle, no zeroes");
    }

    pub(crate) fn option(&mut self) -> OptionReply {
        assert_eq!(self.u64(), 0x0003_e889_0455_65a9, "magic of a reply to an option");
        let (option, kind, len) = (self.u32(), self.u32(), self.u32());
        OptionReply { option, kind, data: self.take(len as usize) }
    }

    /// The replies to one option: any number of informations, then the last one.
    pub(crate) fn options(&mut self) -> (Vec<OptionReply>, u32) {
        let mut all = Vec::new();
        loop {
            let reply = self.option();
            if matches!(reply.kind, SERVER | INFO | META_CONTEXT) {
                all.push(reply);
            } else {
                return (all, reply.kind);
            }
        }
    }

    /// Skips what [`handshake`] is answered with.
    pub(crate) fn handshake(&mut self, structured: bool) {
        self.greeting();
        let expected = if structured { vec![8, 10, 7] } else { vec![7] };
        for number in expected {
            let (informations, last) = self.options();
            assert!(informations.iter().all(|reply| reply.option == number));
            assert_eq!(last, ACK);
        }
    }

    /// The next reply to a request, and its cookie. `len_of` is the length of the data of a simple reply by cookie.
    pub(crate) fn answer(&mut self, len_of: impl Fn(u64) -> usize) -> (u64, Answer) {
        match self.u32() {
            0x6744_6698 => {
                let (error, cookie) = (self.u32(), self.u64());
                let answer = match error {
                    0 => Answer::Data(None, self.take(len_of(cookie))),
                    error => Answer::Error(error, String::new(), None),
                };
                (cookie, answer)
            }
            0x668e_33ef => {
                let (flags, kind, cookie, len) = (self.u16(), self.u16(), self.u64(), self.u32());
                assert_eq!(flags, 1, "the only chunk is the last one");
                let mut payload = Self::new(self.take(len as usize));
                (cookie, payload.chunk(kind))
            }
            magic => panic!("{magic:x} is the magic of no reply"),
        }
    }

    fn chunk(&mut self, kind: u16) -> Answer {
        let answer = match kind {
            1 => {
                let offset = self.u64();
                Answer::Data(Some(offset), self.take(self.bytes.len() - 8))
            }
            5 => {
                let id = self.u32();
                let count = (self.bytes.len() - 4) / 8;
                Answer::Extents(id, (0..count).map(|_| (self.u32(), self.u32())).collect())
            }
            0x8001 | 0x8002 => {
                let (error, len) = (self.u32(), self.u16());
                let text = String::from_utf8(self.take(len.into())).expect("a text");
                Answer::Error(error, text, (kind == 0x8002).then(|| self.u64()))
            }
            _ => panic!("{kind} is the type of no chunk"),
        };
        assert!(self.is_empty(), "a chunk has no further bytes");
        answer
    }
}

/// The largest request of the sessions that are given any bytes.
pub(crate) const ANY_MAXIMUM: u32 = 65_536;
/// What [`Session`] says of its memory, with `buffer_max` of [`session`] and a reply of [`ANY_MAXIMUM`].
pub(crate) const ANY_MEMORY_MAX: u64 =
    (65_536 + 28 + (256 << 10)) + 2 * ((1 << 20) + 65_536 + 64) + (5 << 20);

/// Gives any bytes to a session of a drive of `size` bytes, in pieces. Checks that its memory is bounded, that it answers
/// all requests, and that what it sends begins with the greeting.
pub(crate) fn survives(size: u64, bytes: &[u8], piece: usize) -> Session {
    let (mut session, mut memory) = session(size, |export| export.maximum = ANY_MAXIMUM);
    let sent = feed_watched(&mut session, &mut memory, bytes, piece, |session| {
        assert!(session.buffered_bytes() <= ANY_MEMORY_MAX, "{} bytes", session.buffered_bytes());
        assert_eq!(session.outstanding(), 0, "everything is answered");
    });
    Replies::new(sent).greeting();
    session
}

/// Gives bytes to a session, as many at a time as there is room for and at most `piece`. The commands are served by
/// `memory` at once. Returns what was sent.
pub(crate) fn feed(session: &mut Session, memory: &mut Memory, bytes: &[u8], piece: usize) -> Vec<u8> {
    feed_watched(session, memory, bytes, piece, |_| ())
}

/// As [`feed`]; `watch` sees the session after each piece.
fn feed_watched(
    session: &mut Session,
    memory: &mut Memory,
    bytes: &[u8],
    piece: usize,
    watch: impl Fn(&Session),
) -> Vec<u8> {
    let mut rest = bytes;
    let mut sent = Vec::new();
    loop {
        serve(session, memory, &mut sent);
        watch(session);
        if rest.is_empty() || !session.wants_input() {
            return sent;
        }
        let room = session.receive();
        let taken = rest.len().min(piece).min(room.capacity() - room.len());
        assert!(taken > 0, "a session that wants input has room");
        room.extend_from_slice(&rest[..taken]);
        rest = &rest[taken..];
    }
}

/// Serves the commands that a session has, each before the next, until it has none.
pub(crate) fn serve(session: &mut Session, memory: &mut Memory, sent: &mut Vec<u8>) {
    loop {
        let call = match session.next() {
            Some(Command::Request { call, request, payload }) => {
                memory.submit(1, Time::START, &request, payload).expect("memory has room");
                call
            }
            Some(Command::Status { call, offset, len, max }) => {
                let mut extents = Vec::new();
                memory.extents(offset, len.into(), max, &mut extents);
                assert!(extents.len() <= max);
                session.extents(call, &extents);
                continue;
            }
            None => {
                let is_stalled = session.is_stalled();
                while session.unsent() > 0 {
                    sent.extend_from_slice(session.output());
                    session.sent(session.output().len());
                }
                if !is_stalled {
                    return;
                }
                continue;
            }
        };
        let completion = memory.completed().expect("memory completes at once");
        match completion.result {
            Ok(()) if call.is_read() => session.data(call, |out| memory.take(completion.id, out)),
            Ok(()) => session.done(call),
            Err(failure) => session.failed(call, failure),
        }
    }
}

/// A session of a drive of `size` bytes in memory.
pub(crate) fn session(size: u64, change: impl FnOnce(&mut Export)) -> (Session, Memory) {
    let memory = Memory::new(size);
    let mut export = Export::new(memory.features());
    change(&mut export);
    export.check().expect("the export is possible");
    (Session::new(Arc::new(export), 1 << 20), memory)
}

/// Sends a handshake and then `bytes` to a new session; returns the replies after the handshake.
pub(crate) fn transmit(
    size: u64,
    structured: bool,
    change: impl FnOnce(&mut Export),
    bytes: &[u8],
) -> Replies {
    let (mut session, mut memory) = session(size, change);
    let mut stream = handshake(structured);
    stream.extend(bytes);
    let mut replies = Replies::new(feed(&mut session, &mut memory, &stream, usize::MAX));
    replies.handshake(structured);
    replies
}
