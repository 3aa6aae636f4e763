//! The file of a session of a live drive: everything that the drive was given, in the order in which it was given.
//!
//! The file begins with the magic bytes [`MAGIC`], the length of the header as a u32, the CRC-32 of the header as a u32, and
//! the header as JSON ([`Header`]). Records follow. A record is a frame of 12 bytes, which are the length of the body, the
//! number of the record (from 0, modulo 2^32) and the CRC-32 of the header's CRC, the number and the body, each as a u32,
//! and the body. All numbers are little-endian. The body begins with a byte of the kind and the flags, and the simulated time
//! since the record before, in nanoseconds, as a LEB128 number ([`Entry`]).
//!
//! A record that is not whole, at the end of the file, is a torn tail, which is dropped: the writer was killed, or the
//! file system was full. A record that is not whole and has whole records after it is damage, and an error.

use crate::base::request::{Op, Request, Tag};
use crate::base::units::{Span, Time};
use serde::{Deserialize, Serialize};
use std::io::{self, Read};

/// The first bytes of the file. The last one is the number of the format.
pub const MAGIC: [u8; 8] = *b"NANDREC\x01";
/// The most bytes of the header.
const HEADER_MAX: u32 = 16 << 20;
/// Bytes before the body of a record.
const FRAME: usize = 12;
/// The most bytes of the data of a record: the longest request of a client, and more.
pub const DATA_MAX: usize = 64 << 20;
/// The most bytes of a body.
const BODY_MAX: usize = DATA_MAX + 64;
/// The most bytes after the last whole record that can be a torn tail. A writer has far fewer bytes in memory.
const TAIL_MAX: u64 = 256 << 20;
/// Data of fewer bytes is not compressed.
const COMPRESSED_MIN: usize = 512;

/// In the first byte of a body: the kind.
const KIND: u8 = 0x0f;
const FUA: u8 = 0x10;
/// The record has data: the payload of a write, or a text.
const DATA: u8 = 0x20;
/// The data is compressed (Snappy, raw format).
const COMPRESSED: u8 = 0x40;
/// The request has a tag.
const TAG: u8 = 0x80;

/// What a recording is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The version of nandlab that simulated the drive. Another one may simulate another drive from the same records.
    pub nandlab: String,
    /// The resolved spec of the drive, as TOML.
    pub spec: String,
    /// The folder at which relative paths of the spec start.
    pub folder: String,
    /// The seed of the spec.
    pub seed: u64,
    /// A number that tells this recording from others, so that no other one is read as a part of it.
    pub id: u64,
    /// Whether the recording begins at a checkpoint of the drive, which the checkpoint names by this `id`. Without the
    /// checkpoint it cannot be played.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
}

/// What a drive was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request; its arrival is the present time or earlier.
    Request(Request),
    /// Power fails.
    Cut,
    /// Power returns.
    Restore,
    /// Power returns, and fails again this time after, if recovery takes longer.
    CutInRecovery(Span),
    /// A detection of the dirty budget is asked for.
    Detect,
    /// The host lets this placement identifier go on in another reclaim unit.
    UpdateHandle(u16),
    /// A mark of the user, with a text.
    Mark,
    /// A line that a program has acknowledged, with its text.
    Acknowledged,
    /// The session ends.
    Stop,
}

/// A record: what the drive was given, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The simulated time; that of the record before, or later.
    pub at: Time,
    /// What the drive was given.
    pub event: Event,
    /// The payload of a write, which is empty for zeros, or the text of a mark.
    pub data: &'a [u8],
}

/// Why a recording cannot be read.
#[derive(Debug)]
pub enum RecordingError {
    /// The system refuses to read the file.
    Io(io::Error),
    /// The file does not begin as a recording does.
    Foreign,
    /// The file is of another format of recordings.
    Format(u8),
    /// The header is not whole.
    Header(String),
    /// A record is damaged, and whole records follow it.
    Damaged {
        /// The number of the record, from 0.
        number: u64,
        /// The byte of the file at which the record begins.
        offset: u64,
        /// What is wrong.
        reason: &'static str,
    },
}

impl std::fmt::Display for RecordingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => write!(f, "the recording cannot be read: {error}"),
            Self::Foreign => f.write_str("the file is no recording of a live drive"),
            Self::Format(format) => {
                write!(f, "the recording has the format {format}, and this program reads format {}", MAGIC[7])
            }
            Self::Header(text) => write!(f, "the header of the recording is damaged: {text}"),
            Self::Damaged { number, offset, reason } => write!(
                f,
                "record {number} of the recording, at byte {offset}, is damaged ({reason}), and whole records follow it"
            ),
        }
    }
}

impl RecordingError {
    /// What the user can do.
    pub fn remedy(&self) -> String {
        match self {
            Self::Io(_) => "check the disk".to_owned(),
            Self::Foreign => "name a file that `nandlab serve --record` has written".to_owned(),
            Self::Format(_) => "read it with the version of nandlab that has written it".to_owned(),
            Self::Header(_) => "take the file from a copy".to_owned(),
            Self::Damaged { offset, .. } => format!(
                "take the file from a copy; cut to {offset} bytes, it has the session up to this record"
            ),
        }
    }
}

impl std::error::Error for RecordingError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for RecordingError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Header {
    /// The bytes before the first record.
    pub fn to_bytes(&self) -> Vec<u8> {
        let json = serde_json::to_vec(self).expect("a header is serializable");
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&(json.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&json).to_le_bytes());
        bytes.extend_from_slice(&json);
        bytes
    }

    /// The state of a writer after the header.
    pub fn encoder(&self) -> Encoder {
        let json = serde_json::to_vec(self).expect("a header is serializable");
        Encoder::new(crc32fast::hash(&json), 0, Time::START)
    }
}

/// The CRC-32 of a record.
fn checksum(salt: u32, number: u32, body: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&salt.to_le_bytes());
    crc.update(&number.to_le_bytes());
    crc.update(body);
    crc.finalize()
}

/// Turns records into bytes.
pub struct Encoder {
    salt: u32,
    number: u64,
    last: Time,
    compressor: snap::raw::Encoder,
    compressed: Vec<u8>,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder")
            .field("number", &self.number)
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

impl Encoder {
    fn new(salt: u32, number: u64, last: Time) -> Self {
        Self { salt, number, last, compressor: snap::raw::Encoder::new(), compressed: Vec::new() }
    }

    /// Appends a record to `out`. A time before that of the last record counts as that one.
    ///
    /// # Panics
    /// When the data has more than [`DATA_MAX`] bytes.
    pub fn append(&mut self, out: &mut Vec<u8>, entry: &Entry<'_>) {
        assert!(entry.data.len() <= DATA_MAX, "a record holds at most {DATA_MAX} bytes");
        let frame = out.len();
        out.extend_from_slice(&[0; FRAME]);
        let begin = out.len();
        let (kind, request) = match entry.event {
            Event::Request(request) => (request.op as u8, Some(request)),
            Event::Cut => (4, None),
            Event::Restore => (5, None),
            Event::Detect => (6, None),
            Event::Mark => (7, None),
            Event::Acknowledged => (8, None),
            Event::Stop => (9, None),
            Event::CutInRecovery(_) => (10, None),
            Event::UpdateHandle(_) => (11, None),
        };
        out.push(kind | if entry.data.is_empty() { 0 } else { DATA });
        let at = entry.at.max(self.last);
        number(out, at.saturating_sub(self.last).ns());
        self.last = at;
        match entry.event {
            Event::CutInRecovery(after) => number(out, after.ns()),
            Event::UpdateHandle(identifier) => number(out, identifier.into()),
            _ => {}
        }
        if let Some(Request { arrival, fua, offset, len, tag, op }) = request {
            number(out, at.saturating_sub(arrival).ns());
            if op != Op::Flush {
                number(out, offset);
                number(out, len);
            }
            if fua {
                out[begin] |= FUA;
            }
            if tag != Tag::default() {
                out[begin] |= TAG;
                number(out, tag.queue.into());
                number(out, tag.placement.into());
            }
        }
        if !entry.data.is_empty() {
            let is_smaller = entry.data.len() >= COMPRESSED_MIN && self.compress(entry.data);
            if is_smaller {
                out[begin] |= COMPRESSED;
            }
            out.extend_from_slice(if is_smaller { &self.compressed } else { entry.data });
        }
        let crc = checksum(self.salt, self.number as u32, &out[begin..]);
        let len = (out.len() - begin) as u32;
        out[frame..frame + 4].copy_from_slice(&len.to_le_bytes());
        out[frame + 4..frame + 8].copy_from_slice(&(self.number as u32).to_le_bytes());
        out[frame + 8..begin].copy_from_slice(&crc.to_le_bytes());
        self.number += 1;
    }

    /// Compresses data; returns whether that saves an eighth of it.
    fn compress(&mut self, data: &[u8]) -> bool {
        self.compressed.resize(snap::raw::max_compress_len(data.len()), 0);
        let Ok(len) = self.compressor.compress(data, &mut self.compressed) else { return false };
        self.compressed.truncate(len);
        len <= data.len() - data.len() / 8
    }

    /// The time of the last record.
    pub fn last(&self) -> Time {
        self.last
    }
}

/// Appends a number as LEB128.
fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a LEB128 number from the start of `bytes`.
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0u64, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if shift > 63 || (part << shift) >> shift != part {
            return None;
        }
        value |= part << shift;
        shift += 7;
        if byte < 0x80 {
            return Some(value);
        }
    }
}

/// Reads a recording.
pub struct Recording<R> {
    from: R,
    header: Header,
    salt: u32,
    number: u64,
    last: Time,
    /// Bytes of the file up to the end of the last whole record.
    whole: u64,
    /// Bytes after the last whole record.
    torn: u64,
    is_over: bool,
    body: Vec<u8>,
    data: Vec<u8>,
    decoder: snap::raw::Decoder,
}

impl<R> std::fmt::Debug for Recording<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording")
            .field("header", &self.header)
            .field("number", &self.number)
            .field("last", &self.last)
            .field("whole", &self.whole)
            .finish_non_exhaustive()
    }
}

/// What is wrong with the bytes of a record.
enum Wrong {
    Io(io::Error),
    /// The bytes of the record that there are, and what is wrong.
    Bytes(Vec<u8>, &'static str),
}

impl<R: Read> Recording<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// When the file is no recording, has another format, or has no whole header.
    pub fn open(mut from: R) -> Result<Self, RecordingError> {
        let mut magic = Vec::new();
        (&mut from).take(MAGIC.len() as u64).read_to_end(&mut magic)?;
        if magic.len() < MAGIC.len() || magic[..7] != MAGIC[..7] {
            return Err(RecordingError::Foreign);
        }
        if magic[7] != MAGIC[7] {
            return Err(RecordingError::Format(magic[7]));
        }
        let cut = || RecordingError::Header("the file ends in it".to_owned());
        let mut lengths = Vec::new();
        (&mut from).take(8).read_to_end(&mut lengths)?;
        let (len, crc) = (word(&lengths, 0).ok_or_else(cut)?, word(&lengths, 4).ok_or_else(cut)?);
        if len > HEADER_MAX {
            return Err(RecordingError::Header(format!("it would have {len} bytes")));
        }
        let mut json = Vec::new();
        (&mut from).take(len.into()).read_to_end(&mut json)?;
        if json.len() < len as usize {
            return Err(cut());
        }
        if crc32fast::hash(&json) != crc {
            return Err(RecordingError::Header("its checksum does not agree".to_owned()));
        }
        let header =
            serde_json::from_slice(&json).map_err(|error| RecordingError::Header(error.to_string()))?;
        Ok(Self {
            from,
            header,
            salt: crc,
            number: 0,
            last: Time::START,
            whole: (MAGIC.len() + 8 + json.len()) as u64,
            torn: 0,
            is_over: false,
            body: Vec::new(),
            data: Vec::new(),
            decoder: snap::raw::Decoder::new(),
        })
    }

    /// What the recording is of.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Records so far.
    pub fn records(&self) -> u64 {
        self.number
    }

    /// Bytes up to the end of the last whole record.
    pub fn whole(&self) -> u64 {
        self.whole
    }

    /// Bytes of the torn tail; known when [`Recording::next`] has returned `None`.
    pub fn torn(&self) -> u64 {
        self.torn
    }

    /// The writer that goes on after the last record; right when [`Recording::next`] has returned `None`.
    pub fn encoder(&self) -> Encoder {
        Encoder::new(self.salt, self.number, self.last)
    }

    /// The next record; `None` at the end, and where a torn tail begins.
    ///
    /// # Errors
    /// When the file cannot be read, or is damaged; the recording then has no further record.
    #[allow(
        clippy::should_implement_trait,
        reason = "an entry borrows the recording, so this is no iterator"
    )]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, RecordingError> {
        if self.is_over {
            return Ok(None);
        }
        match self.read() {
            Ok(None) => {
                self.is_over = true;
                Ok(None)
            }
            Ok(Some((event, at))) => {
                self.number += 1;
                self.whole += (FRAME + self.body.len()) as u64;
                self.last = at;
                Ok(Some(Entry { at, event, data: &self.data }))
            }
            Err(Wrong::Io(error)) => {
                self.is_over = true;
                Err(error.into())
            }
            Err(Wrong::Bytes(bytes, reason)) => {
                self.is_over = true;
                let (number, offset) = (self.number, self.whole);
                if self.is_tail(bytes)? {
                    Ok(None)
                } else {
                    Err(RecordingError::Damaged { number, offset, reason })
                }
            }
        }
    }

    /// Reads a record into `body` and `data`.
    fn read(&mut self) -> Result<Option<(Event, Time)>, Wrong> {
        let mut frame = Vec::with_capacity(FRAME);
        (&mut self.from).take(FRAME as u64).read_to_end(&mut frame).map_err(Wrong::Io)?;
        if frame.is_empty() {
            return Ok(None);
        }
        let (Some(len), Some(number), Some(crc)) = (word(&frame, 0), word(&frame, 4), word(&frame, 8)) else {
            return Err(Wrong::Bytes(frame, "it ends in its frame"));
        };
        if len as usize > BODY_MAX || number != self.number as u32 {
            return Err(Wrong::Bytes(frame, "its frame is not that of a record"));
        }
        self.body.clear();
        (&mut self.from).take(len.into()).read_to_end(&mut self.body).map_err(Wrong::Io)?;
        let wrong = |body: &[u8], reason| Wrong::Bytes([&frame[..], body].concat(), reason);
        if self.body.len() < len as usize {
            return Err(wrong(&self.body, "it ends in its body"));
        }
        if checksum(self.salt, number, &self.body) != crc {
            return Err(wrong(&self.body, "its checksum does not agree"));
        }
        match self.parse() {
            Some(parsed) => Ok(Some(parsed)),
            None => Err(wrong(&self.body, "its checksum agrees, but it has no meaning")),
        }
    }

    /// What the body says; its data goes to `data`.
    fn parse(&mut self) -> Option<(Event, Time)> {
        let (&first, mut rest) = self.body.split_first()?;
        let kind = first & KIND;
        let at = self.last.ns().checked_add(take_number(&mut rest)?)?;
        let at = Time::from_ns(at);
        let event = match kind {
            0..=3 => {
                let op = Op::ALL[usize::from(kind)];
                let arrival = Time::from_ns(at.ns().checked_sub(take_number(&mut rest)?)?);
                let (offset, len) = match op {
                    Op::Flush => (0, 0),
                    _ => (take_number(&mut rest)?, take_number(&mut rest)?),
                };
                let mut tag = Tag::default();
                if first & TAG != 0 {
                    tag.queue = take_number(&mut rest)?.try_into().ok()?;
                    tag.placement = take_number(&mut rest)?.try_into().ok()?;
                }
                let fua = first & FUA != 0;
                Event::Request(Request { arrival, op, fua, offset, len, tag })
            }
            4 => Event::Cut,
            5 => Event::Restore,
            6 => Event::Detect,
            7 => Event::Mark,
            8 => Event::Acknowledged,
            9 => Event::Stop,
            10 => Event::CutInRecovery(Span::from_ns(take_number(&mut rest)?)),
            11 => Event::UpdateHandle(take_number(&mut rest)?.try_into().ok()?),
            _ => return None,
        };
        self.data.clear();
        if first & COMPRESSED != 0 {
            let len = snap::raw::decompress_len(rest).ok().filter(|&len| len <= DATA_MAX)?;
            self.data.resize(len, 0);
            let len = self.decoder.decompress(rest, &mut self.data).ok()?;
            self.data.truncate(len);
        } else if first & DATA != 0 {
            self.data.extend_from_slice(rest);
        } else if !rest.is_empty() {
            return None;
        }
        if let Event::Request(request) = event
            && !self.data.is_empty()
            && (request.op != Op::Write || self.data.len() as u64 != request.len)
        {
            return None;
        }
        Some((event, at))
    }

    /// Whether what follows the last whole record is a torn tail: no record in it is whole. `bytes` are its first bytes.
    fn is_tail(&mut self, mut bytes: Vec<u8>) -> Result<bool, RecordingError> {
        (&mut self.from).take(TAIL_MAX).read_to_end(&mut bytes)?;
        if bytes.len() as u64 >= TAIL_MAX {
            return Ok(false);
        }
        self.torn = bytes.len() as u64;
        // The record in question may be followed by as many as there is room for.
        let ahead = (bytes.len() / FRAME) as u32;
        let is_whole = |frame: &[u8], rest: &[u8]| {
            let (Some(len), Some(number), Some(crc)) = (word(frame, 0), word(frame, 4), word(frame, 8))
            else {
                return false;
            };
            number.wrapping_sub(self.number as u32) <= ahead
                && rest.get(..len as usize).is_some_and(|body| checksum(self.salt, number, body) == crc)
        };
        Ok(!(1..bytes.len().saturating_sub(FRAME)).any(|at| {
            let (frame, rest) = bytes[at..].split_at(FRAME);
            is_whole(frame, rest)
        }))
    }
}

/// The u32 at `at`, if there is one.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A number that differs from recording to recording.
pub fn fresh_id() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> Header {
        Header {
            nandlab: "1".to_owned(),
            spec: "seed = 3\n".to_owned(),
            folder: "/".to_owned(),
            seed: 3,
            id: 77,
            continues: false,
        }
    }

    type Owned = (u64, Event, Vec<u8>);

    fn events() -> impl Strategy<Value = Vec<Owned>> {
        let request =
            (0..4usize, any::<bool>(), any::<u32>(), 1..70_000u64, any::<bool>(), 0..2000u64, any::<u16>());
        let event = prop_oneof![
            8 => request.prop_map(|(op, fua, offset, len, zeros, lag, queue)| {
                let op = Op::ALL[op];
                let (offset, len) = if op == Op::Flush { (0, 0) } else { (u64::from(offset), len) };
                let tag = Tag { queue: queue % 3, placement: queue % 2 };
                let request = Request { op, fua, offset, len, tag, arrival: Time::from_ns(lag) };
                // Both data that can be compressed and data that cannot.
                let data = match (op, zeros) {
                    (Op::Write, false) => (0..len).map(|n| if lag % 2 == 0 { n / 100 } else { n * n * lag / 7 } as u8).collect(),
                    _ => Vec::new(),
                };
                (Event::Request(request), data)
            }),
            1 => Just((Event::Cut, Vec::new())),
            1 => Just((Event::Restore, Vec::new())),
            1 => Just((Event::Detect, Vec::new())),
            1 => any::<u16>().prop_map(|identifier| (Event::UpdateHandle(identifier), Vec::new())),
            1 => (0..1u64 << 40).prop_map(|ns| (Event::CutInRecovery(Span::from_ns(ns)), Vec::new())),
            1 => "[a-z]{0,20}".prop_map(|text| (Event::Mark, text.into_bytes())),
            1 => "[a-z]{0,20}".prop_map(|text| (Event::Acknowledged, text.into_bytes())),
            1 => Just((Event::Stop, Vec::new())),
        ];
        let timed = (0..1u64 << 40, event).prop_map(|(wait, (event, data))| (wait, event, data));
        proptest::collection::vec(timed, 0..12).prop_map(|mut all| {
            let mut now = 0;
            for (at, event, _) in &mut all {
                now += *at;
                *at = now;
                if let Event::Request(request) = event {
                    request.arrival = Time::from_ns(now.saturating_sub(request.arrival.ns()));
                }
            }
            all
        })
    }

    /// The file, and the ends of the header and of each record.
    fn written(events: &[Owned]) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = header().to_bytes();
        let (mut encoder, mut ends) = (header().encoder(), vec![bytes.len()]);
        for (at, event, data) in events {
            encoder.append(&mut bytes, &Entry { at: Time::from_ns(*at), event: *event, data });
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    fn read(bytes: &[u8]) -> Result<(Vec<Owned>, u64, u64), RecordingError> {
        let mut recording = Recording::open(bytes)?;
        let mut all = Vec::new();
        while let Some(entry) = recording.next()? {
            all.push((entry.at.ns(), entry.event, entry.data.to_vec()));
        }
        Ok((all, recording.whole(), recording.torn()))
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(events in events()) {
            let (bytes, _) = written(&events);
            let (found, whole, torn) = read(&bytes).unwrap();
            prop_assert_eq!((found, whole, torn), (events, bytes.len() as u64, 0));
        }

        #[test]
        fn a_file_cut_anywhere_has_its_whole_records(events in events(), cut in any::<prop::sample::Index>()) {
            let (bytes, ends) = written(&events);
            let cut = ends[0] + cut.index(bytes.len() - ends[0] + 1);
            let (found, whole, torn) = read(&bytes[..cut]).unwrap();
            let number = ends.iter().filter(|&&end| end <= cut).count() - 1;
            prop_assert_eq!(&found[..], &events[..number]);
            prop_assert_eq!((whole, whole + torn), (ends[number] as u64, cut as u64));
        }

        /// A changed byte is damage if whole records follow, and a torn tail if none does.
        #[test]
        fn a_changed_byte_is_never_read(events in events(), at in any::<prop::sample::Index>(), change in 1..=255u8) {
            let (mut bytes, ends) = written(&events);
            prop_assume!(!events.is_empty());
            let at = ends[0] + at.index(bytes.len() - ends[0]);
            bytes[at] ^= change;
            let number = ends.iter().filter(|&&end| end <= at).count() - 1;
            match read(&bytes) {
                Ok((found, whole, _)) => {
                    prop_assert_eq!(number, events.len() - 1, "records follow");
                    prop_assert_eq!(&found[..], &events[..number]);
                    prop_assert_eq!(whole, ends[number] as u64);
                }
                Err(RecordingError::Damaged { number: found, offset, .. }) => {
                    prop_assert!(number < events.len() - 1);
                    prop_assert_eq!((found, offset), (number as u64, ends[number] as u64));
                }
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = read(&bytes);
            let _ = read(&[&header().to_bytes()[..], &bytes].concat());
        }
    }

    #[test]
    fn a_writer_goes_on_where_a_reader_has_ended() {
        let events = [(5, Event::Cut, Vec::new()), (9, Event::Restore, Vec::new())];
        let (bytes, ends) = written(&events);
        let mut recording = Recording::open(&bytes[..ends[1] + 3]).unwrap();
        while recording.next().unwrap().is_some() {}
        let mut rest = bytes[..recording.whole() as usize].to_vec();
        let entry = Entry { at: Time::from_ns(9), event: Event::Restore, data: &[] };
        recording.encoder().append(&mut rest, &entry);
        assert_eq!(rest, bytes);
    }

    #[test]
    fn records_of_another_recording_are_no_part_of_this_one() {
        let other = Header { id: 78, ..header() };
        let (mut bytes, ends) = written(&[(5, Event::Cut, Vec::new())]);
        let mut encoder = other.encoder();
        let mut theirs = Vec::new();
        for at in [1, 2] {
            encoder.append(&mut theirs, &Entry { at: Time::from_ns(at), event: Event::Restore, data: &[] });
        }
        bytes.extend_from_slice(&theirs);
        let (found, whole, torn) = read(&bytes).unwrap();
        assert_eq!((found.len(), whole, torn), (1, ends[1] as u64, theirs.len() as u64));
    }

    #[test]
    fn other_files_are_refused() {
        assert!(matches!(read(b"0,0,512,W,1\n"), Err(RecordingError::Foreign)));
        assert!(matches!(read(b"NANDREC\x02"), Err(RecordingError::Format(2))));
        let bytes = header().to_bytes();
        assert!(matches!(read(&bytes[..bytes.len() - 1]), Err(RecordingError::Header(_))));
        let mut changed = bytes;
        *changed.last_mut().unwrap() ^= 1;
        assert!(matches!(read(&changed), Err(RecordingError::Header(_))));
    }
}
