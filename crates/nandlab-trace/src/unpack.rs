//! The content of a trace file: the file itself, or what is inside compressed streams and archives, recognized by its
//! content. UTF-16 becomes UTF-8.
//!
//! An archive holds one trace. The list of its files is read first, from the file once more, so that an archive of several
//! files is refused before a request is played; a pipe, which cannot be read again, may not be an archive.

use crate::recorded::{Requests, is_recording};
use std::io::{self, Cursor, Read, Seek, SeekFrom};

/// Bytes at the start of a stream that decide what it is: a header of a tar archive.
const HEAD: usize = 512;
/// Streams and archives inside one another, at most.
const DEPTH: usize = 4;
/// Names of files in a message, at most.
const NAMES: usize = 20;

/// A stream of bytes.
pub(crate) type Stream = Box<dyn Read>;

/// Opens the file from its start again; `None` for a pipe.
pub(crate) type Again<'a> = Option<&'a Open>;

/// Opens a file from its start.
pub(crate) type Open = dyn Fn() -> io::Result<Box<dyn SeekRead>> + Send;

/// A file in which positions can be set.
pub(crate) trait SeekRead: Read + Seek {}

impl<T: Read + Seek> SeekRead for T {}

/// Why a file is not read.
pub(crate) enum Refusal {
    /// The bytes cannot be read; the name is that of the stream.
    Stream(&'static str, io::Error),
    /// What the file is, and what the user can do.
    Content { message: String, remedy: String },
}

fn refused<T>(message: impl Into<String>, remedy: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Content { message: message.into(), remedy: remedy.into() })
}

/// The content of the file `raw`, and the name of the innermost stream for messages.
pub(crate) fn unpack(raw: Stream, again: Again<'_>) -> Result<(&'static str, Stream), Refusal> {
    let mut reader = Layers { name: "file", stream: raw };
    for depth in 0..=DEPTH {
        let head = reader.head();
        if let Some(what) = foreign(&head) {
            return refused(format!("is {what}"), "extract the trace, and name its file");
        }
        if is_zip(&head) {
            let Some(again) = again.filter(|_| depth == 0) else {
                return refused(
                    "holds a zip archive that cannot be searched",
                    "extract the trace, and name its file",
                );
            };
            reader.stream = zip_member(reader.stream, again)?;
        } else if is_tar(&head) {
            let Some(again) = again else {
                let message = "can be read only once, like a pipe, and a tar archive is read twice";
                return refused(message, "save it in a file first");
            };
            check_tar(again, depth)?;
            reader.stream =
                Box::new(TarMember::first(reader.stream).map_err(|e| reader_error("tar archive", e))?);
        } else if is_recording(&head) {
            let whole = std::mem::replace(&mut reader.stream, Box::new(io::empty()));
            let requests = Requests::of(io::BufReader::with_capacity(1 << 16, whole));
            let requests = requests.map_err(|e| reader_error("recording", io::Error::other(e)))?;
            return Ok(("recording", Box::new(requests)));
        } else if !reader.decompressed(&head)? {
            break;
        }
        if depth == DEPTH {
            return refused(
                format!("holds more than {DEPTH} compressed streams or archives inside one another"),
                "extract the trace, and name its file",
            );
        }
    }
    let head = reader.head();
    if let Some(is_little) = utf16(&head) {
        reader.stream =
            Box::new(Utf16 { stream: reader.stream, is_little, odd: Vec::new(), text: Vec::new(), at: 0 });
    }
    Ok((reader.name, reader.stream))
}

fn reader_error(name: &'static str, error: io::Error) -> Refusal {
    Refusal::Stream(name, error)
}

/// The innermost stream so far.
struct Layers {
    name: &'static str,
    stream: Stream,
}

impl Layers {
    /// The first bytes of the stream, which stay in the stream.
    fn head(&mut self) -> Vec<u8> {
        let mut head = Vec::with_capacity(HEAD);
        // An error comes back when the stream is read.
        let failed = (&mut self.stream).take(HEAD as u64).read_to_end(&mut head).err();
        let rest = std::mem::replace(&mut self.stream, Box::new(io::empty()));
        let start = Cursor::new(head.clone());
        self.stream = match failed {
            None => Box::new(start.chain(rest)),
            Some(error) => Box::new(start.chain(Failing(Some(error)))),
        };
        head
    }

    /// Decompresses the stream if it begins as a compressed stream.
    fn decompressed(&mut self, head: &[u8]) -> Result<bool, Refusal> {
        let is = |magic: &[u8]| head.starts_with(magic);
        let is_skippable = head.len() >= 4 && head[0] & 0xf0 == 0x50 && head[1..4] == [0x2a, 0x4d, 0x18];
        // The level, and then the start of the first block or the end of an empty stream.
        let of_block =
            |magic: &[u8]| head.get(4..).is_some_and(|rest| rest.iter().zip(magic).all(|(a, b)| a == b));
        let is_bzip2 = is(b"BZh")
            && head.get(3).is_some_and(|level| (b'1'..=b'9').contains(level))
            && (of_block(&[0x31, 0x41, 0x59, 0x26, 0x53, 0x59])
                || of_block(&[0x17, 0x72, 0x45, 0x38, 0x50, 0x90]));
        let mut whole = || std::mem::replace(&mut self.stream, Box::new(io::empty()));
        let (name, stream): (_, Stream) = if is(&[0x28, 0xb5, 0x2f, 0xfd]) || is_skippable {
            let decoder = zstd::stream::read::Decoder::new(whole());
            ("zstd stream", Box::new(decoder.map_err(|e| reader_error("zstd stream", e))?))
        } else if is(&[0x1f, 0x8b]) {
            let buffered = io::BufReader::with_capacity(1 << 16, whole());
            ("gzip stream", Box::new(flate2::bufread::MultiGzDecoder::new(buffered)))
        } else if is(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
            ("xz stream", Box::new(liblzma::read::XzDecoder::new_multi_decoder(whole())))
        } else if is_bzip2 {
            ("bzip2 stream", Box::new(bzip2::read::MultiBzDecoder::new(whole())))
        } else {
            return Ok(false);
        };
        (self.name, self.stream) = (name, stream);
        Ok(true)
    }
}

/// A stream that ends with an error.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// The name of a compressed stream or archive that is not read.
fn foreign(head: &[u8]) -> Option<&'static str> {
    [
        (&b"7z\xbc\xaf\x27\x1c"[..], "a 7z archive"),
        (b"Rar!\x1a\x07", "a rar archive"),
        (b"\x04\x22\x4d\x18", "an lz4 stream"),
        (b"\x1f\x9d", "a stream of compress (.Z)"),
        (b"PAR1", "a Parquet file"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        (b"SQLite format 3\0", "an SQLite database"),
    ]
    .into_iter()
    .find_map(|(magic, what)| head.starts_with(magic).then_some(what))
}

/// The error for an archive that does not hold one file. `command` extracts a file of the archive.
fn several<T>(archive: &str, names: &[String], command: &str) -> Result<T, Refusal> {
    if names.is_empty() {
        return refused(format!("is a {archive} archive without a file"), "name a file with a trace");
    }
    let shown: Vec<_> = names.iter().take(NAMES).map(|name| shown(name)).collect();
    let more = if names.len() > NAMES { ", ..." } else { "" };
    refused(
        format!("is a {archive} archive of {} files: {}{more}", names.len(), shown.join(", ")),
        format!("extract one of them, such as {command} {}", shown[0]),
    )
}

/// A name for a message: at most its last 40 characters, without unprintable characters.
fn shown(name: &str) -> String {
    let from = name.char_indices().rev().nth(39).map_or(0, |(at, _)| at);
    let cut = if from > 0 { "..." } else { "" };
    format!("{cut}{}", name[from..].escape_debug())
}

/// Whether a file of an archive is the trace or one of its traces: it is not empty, and not a note of the file manager.
fn is_content(name: &str, size: u64) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    size > 0
        && !file.is_empty()
        && !file.starts_with("._")
        && file != ".DS_Store"
        && !name.starts_with("__MACOSX/")
}

// ---- tar ----

fn is_tar(head: &[u8]) -> bool {
    head.len() == HEAD && head[0] != 0 && octal(&head[148..156]).is_some_and(|sum| sum == checksum(head))
}

fn checksum(header: &[u8]) -> u64 {
    let sum = |bytes: &[u8]| bytes.iter().map(|&b| u64::from(b)).sum::<u64>();
    sum(&header[..148]) + 8 * u64::from(b' ') + sum(&header[156..])
}

/// A number in octal digits, or in base 256 if the first bit is set.
fn octal(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        return field[1..]
            .iter()
            .try_fold(u64::from(field[0] & 0x7f), |n, &b| n.checked_mul(256)?.checked_add(b.into()));
    }
    let digits = field.iter().skip_while(|b| **b == b' ').take_while(|b| !matches!(b, b' ' | 0));
    digits.clone().next()?;
    digits.clone().try_fold(0u64, |n, &b| n.checked_mul(8)?.checked_add((b as char).to_digit(8)?.into()))
}

/// The next file of a tar archive whose stream is at a header: its name and size. The stream is then at its content.
/// `None` at the end of the archive. Folders, links and other entries are left out.
fn next_file(stream: &mut dyn Read) -> io::Result<Option<(String, u64)>> {
    let (mut long_name, mut long_size) = (None, None);
    loop {
        let mut header = [0; HEAD];
        let n = stream.take(HEAD as u64).read(&mut header[..1])?;
        if n == 0 {
            return Ok(None);
        }
        stream.read_exact(&mut header[1..])?;
        if header.iter().all(|&b| b == 0) {
            return Ok(None);
        }
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "a damaged header");
        if octal(&header[148..156]) != Some(checksum(&header)) {
            return Err(damaged());
        }
        let size = octal(&header[124..136]).ok_or_else(damaged)?;
        let text = |field: &[u8]| {
            let end = field.iter().position(|&b| b == 0).unwrap_or(field.len());
            String::from_utf8_lossy(&field[..end]).into_owned()
        };
        match header[156] {
            b'L' | b'x' => {
                let mut content = Vec::new();
                stream.take(size.min(1 << 20)).read_to_end(&mut content)?;
                skip(stream, size.next_multiple_of(HEAD as u64) - content.len() as u64)?;
                if header[156] == b'L' {
                    long_name = Some(text(&content));
                } else {
                    for record in content.split(|&b| b == b'\n') {
                        let record = String::from_utf8_lossy(record);
                        let Some((key, value)) =
                            record.split_once(' ').and_then(|(_, entry)| entry.split_once('='))
                        else {
                            continue;
                        };
                        match key {
                            "path" => long_name = Some(value.to_owned()),
                            "size" => long_size = value.parse().ok(),
                            _ => {}
                        }
                    }
                }
            }
            b'0' | 0 | b'7' => {
                let prefix =
                    if &header[257..262] == b"ustar" { text(&header[345..500]) } else { String::new() };
                let name = text(&header[..100]);
                let whole = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
                return Ok(Some((long_name.unwrap_or(whole), long_size.unwrap_or(size))));
            }
            _ => {
                skip(stream, size.next_multiple_of(HEAD as u64))?;
                (long_name, long_size) = (None, None);
            }
        }
    }
}

/// Skips bytes of a stream; the end of the stream within them is an error.
fn skip(stream: &mut dyn Read, bytes: u64) -> io::Result<()> {
    match io::copy(&mut stream.take(bytes), &mut io::sink())? == bytes {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Refuses a tar archive that does not hold one file. The archive is inside `depth` compressed streams.
fn check_tar(again: &Open, depth: usize) -> Result<(), Refusal> {
    let failed = |e| reader_error("tar archive", e);
    let mut reader = Layers { name: "file", stream: Box::new(again().map_err(failed)?) };
    for _ in 0..depth {
        let head = reader.head();
        if !reader.decompressed(&head)? {
            return refused("holds an archive inside another", "extract the trace, and name its file");
        }
    }
    let mut names = Vec::new();
    while let Some((name, size)) = next_file(&mut *reader.stream).map_err(failed)? {
        if is_content(&name, size) {
            names.push(name);
        }
        skip(&mut *reader.stream, size.next_multiple_of(HEAD as u64)).map_err(failed)?;
    }
    if names.len() == 1 { Ok(()) } else { several("tar", &names, "tar -xf FILE") }
}

/// The content of a file of a tar archive. Its end is that of the stream, which is read to its own end.
struct TarMember {
    stream: Stream,
    left: u64,
}

impl TarMember {
    /// The first file that has content.
    fn first(mut stream: Stream) -> io::Result<Self> {
        while let Some((name, size)) = next_file(&mut *stream)? {
            if is_content(&name, size) {
                return Ok(Self { stream, left: size });
            }
            skip(&mut *stream, size.next_multiple_of(HEAD as u64))?;
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

impl Read for TarMember {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            io::copy(&mut self.stream, &mut io::sink())?;
            return Ok(0);
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let n = self.stream.read(&mut buffer[..most])?;
        if n == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= n as u64;
        Ok(n)
    }
}

// ---- zip ----

fn is_zip(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06")
}

/// A file of a zip archive, as the directory at the end of the archive has it.
struct ZipEntry {
    name: String,
    method: u16,
    is_encrypted: bool,
    crc: u32,
    packed: u64,
    size: u64,
    header_at: u64,
}

/// Numbers of a record of a zip archive, little-endian.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn number(&self, at: usize, bytes: usize) -> io::Result<u64> {
        let field = self.0.get(at..at + bytes).ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(field.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
    }
}

/// The files of a zip archive.
fn zip_entries(file: &mut dyn SeekRead) -> io::Result<Vec<ZipEntry>> {
    const END: usize = 22;
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "no directory of files at its end");
    let length = file.seek(SeekFrom::End(0))?;
    let tail_at = length.saturating_sub(END as u64 + 0xffff);
    let tail = read_at(file, tail_at, (length - tail_at) as usize)?;
    let end = tail.windows(4).rposition(|window| window == b"PK\x05\x06").ok_or_else(damaged)?;
    let fields = Fields(&tail[end..]);
    let (mut count, mut bytes, mut at) =
        (fields.number(10, 2)?, fields.number(12, 4)?, fields.number(16, 4)?);
    if let Some(locator) = end.checked_sub(20).filter(|&at| tail[at..].starts_with(b"PK\x06\x07")) {
        let record = read_at(file, Fields(&tail[locator..]).number(8, 8)?, 56)?;
        let fields = Fields(&record);
        (count, bytes, at) = (fields.number(32, 8)?, fields.number(40, 8)?, fields.number(48, 8)?);
    }
    if bytes > length || count > bytes {
        return Err(damaged());
    }
    let directory = read_at(file, at, bytes as usize)?;
    let (mut entries, mut from) = (Vec::new(), 0);
    for _ in 0..count {
        let entry =
            directory.get(from..).filter(|entry| entry.starts_with(b"PK\x01\x02")).ok_or_else(damaged)?;
        let fields = Fields(entry);
        let lengths = [28, 30, 32].map(|at| fields.number(at, 2));
        let [name, extra, comment] = lengths;
        let (name, extra, comment) = (name? as usize, extra? as usize, comment? as usize);
        let text = entry.get(46..46 + name).ok_or_else(damaged)?;
        let mut found = ZipEntry {
            name: String::from_utf8_lossy(text).into_owned(),
            method: fields.number(10, 2)? as u16,
            is_encrypted: fields.number(8, 2)? & 1 == 1,
            crc: fields.number(16, 4)? as u32,
            packed: fields.number(20, 4)?,
            size: fields.number(24, 4)?,
            header_at: fields.number(42, 4)?,
        };
        found.widen(entry.get(46 + name..46 + name + extra).ok_or_else(damaged)?)?;
        entries.push(found);
        from += 46 + name + extra + comment;
    }
    Ok(entries)
}

impl ZipEntry {
    /// Takes numbers that need 64 bits from the field for them.
    fn widen(&mut self, mut extra: &[u8]) -> io::Result<()> {
        while extra.len() >= 4 {
            let (id, bytes) = (Fields(extra).number(0, 2)?, Fields(extra).number(2, 2)? as usize);
            let field = Fields(extra.get(4..4 + bytes).ok_or(io::ErrorKind::UnexpectedEof)?);
            if id == 1 {
                let mut at = 0;
                for number in [&mut self.size, &mut self.packed, &mut self.header_at] {
                    if *number == u64::from(u32::MAX) {
                        *number = field.number(at, 8)?;
                        at += 8;
                    }
                }
            }
            extra = &extra[4 + bytes..];
        }
        Ok(())
    }
}

fn read_at(file: &mut dyn SeekRead, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(at))?;
    let mut found = vec![0; bytes];
    file.read_exact(&mut found)?;
    Ok(found)
}

/// The content of the only file of the zip archive `stream`.
fn zip_member(mut stream: Stream, again: &Open) -> Result<Stream, Refusal> {
    let failed = |e| reader_error("zip archive", e);
    let mut file = again().map_err(failed)?;
    let mut entries = zip_entries(&mut *file).map_err(failed)?;
    entries.retain(|entry| is_content(&entry.name, entry.size));
    let [entry] = &entries[..] else {
        let names: Vec<_> = entries.into_iter().map(|entry| entry.name).collect();
        return several("zip", &names, "unzip FILE");
    };
    let unreadable = match (entry.is_encrypted, entry.method) {
        (true, _) => Some("is encrypted"),
        (false, 0 | 8) => None,
        (false, _) => Some("is compressed by another method than deflate"),
    };
    if let Some(why) = unreadable {
        return refused(
            format!("is a zip archive whose file {} {why}", shown(&entry.name)),
            "extract the trace, and name its file",
        );
    }
    let header = read_at(&mut *file, entry.header_at, 30).map_err(failed)?;
    let lengths = Fields(&header).number(26, 2).and_then(|name| Ok(name + Fields(&header).number(28, 2)?));
    let data_at = entry.header_at + 30 + lengths.map_err(failed)?;
    skip(&mut *stream, data_at).map_err(failed)?;
    let packed = stream.take(entry.packed);
    let content = if entry.method == 0 {
        ZipContent::Stored(packed)
    } else {
        ZipContent::Deflated(flate2::read::DeflateDecoder::new(packed))
    };
    Ok(Box::new(ZipMember { content, crc: flate2::Crc::new(), expected: (entry.size, entry.crc) }))
}

/// The content of a file of a zip archive. At its end its size and checksum are compared, and the stream is read to its
/// own end.
struct ZipMember {
    content: ZipContent,
    crc: flate2::Crc,
    expected: (u64, u32),
}

enum ZipContent {
    Stored(io::Take<Stream>),
    Deflated(flate2::read::DeflateDecoder<io::Take<Stream>>),
}

impl Read for ZipMember {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = match &mut self.content {
            ZipContent::Stored(content) => content.read(buffer)?,
            ZipContent::Deflated(content) => content.read(buffer)?,
        };
        self.crc.update(&buffer[..n]);
        if n == 0 && !buffer.is_empty() {
            let packed = match &mut self.content {
                ZipContent::Stored(content) => content,
                ZipContent::Deflated(content) => content.get_mut(),
            };
            io::copy(packed.get_mut(), &mut io::sink())?;
            let (size, crc) = self.expected;
            if u64::from(self.crc.amount()) != size & u64::from(u32::MAX) || self.crc.sum() != crc {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "its size or checksum is wrong"));
            }
        }
        Ok(n)
    }
}

// ---- UTF-16 ----

/// Whether the content is UTF-16 with a byte order mark, little-endian (`true`) or big-endian. The first characters must be
/// ASCII, as in every trace.
fn utf16(head: &[u8]) -> Option<bool> {
    let is_little = match head {
        [0xff, 0xfe, ..] => true,
        [0xfe, 0xff, ..] => false,
        _ => return None,
    };
    let (units, _) = head[2..].as_chunks::<2>();
    let is_ascii = |unit: &[u8; 2]| {
        let [low, high] = if is_little { *unit } else { [unit[1], unit[0]] };
        high == 0 && (low.is_ascii_graphic() || low.is_ascii_whitespace())
    };
    (units.len() >= 2 && units.iter().take(8).all(is_ascii)).then_some(is_little)
}

/// A stream of UTF-16 as UTF-8. The byte order mark becomes that of UTF-8; half a character becomes a replacement
/// character.
struct Utf16 {
    stream: Stream,
    is_little: bool,
    /// Bytes that are not converted yet.
    odd: Vec<u8>,
    /// Converted text, of which `at` bytes have been read.
    text: Vec<u8>,
    at: usize,
}

impl Read for Utf16 {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.text.len() {
            let mut more = [0; 1 << 14];
            let n = self.stream.read(&mut more)?;
            self.odd.extend_from_slice(&more[..n]);
            let (pairs, _) = self.odd.as_chunks::<2>();
            let unit = |pair: &[u8; 2]| {
                if self.is_little { u16::from_le_bytes(*pair) } else { u16::from_be_bytes(*pair) }
            };
            let mut units: Vec<u16> = pairs.iter().map(unit).collect();
            // The second half of a character may be in the next bytes.
            if n > 0 && units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) {
                units.pop();
            }
            self.odd.drain(..units.len() * 2);
            (self.text, self.at) = (String::from_utf16_lossy(&units).into_bytes(), 0);
            if n == 0 {
                if !self.odd.is_empty() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                if self.text.is_empty() {
                    return Ok(0);
                }
            }
        }
        let n = (self.text.len() - self.at).min(buffer.len());
        buffer[..n].copy_from_slice(&self.text[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}
