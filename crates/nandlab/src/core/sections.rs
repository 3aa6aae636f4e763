//! The file of a saved drive: named sections.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | the magic number, whose last character is the number of the format |
//! | 8 | number of sections |
//! | | the sections |
//! | 8 | checksum (FNV-1a over the numbers after the magic number) |
//!
//! A section is its name (16 bytes, ASCII, filled up with zeros), its version (8 bytes), the length of its content in
//! bytes (8 bytes), and its content: numbers of 8 bytes, in a section of the drive itself also of 4 bytes. All numbers
//! are little-endian.
//!
//! The drive has sections of its own (`drive/snapshot.rs`). A mechanism has at most one section
//! ([`Mechanism::SECTION`](super::Mechanism::SECTION)), and writes it only if it has a state to save. A change of the
//! content of a section raises the version of this section; a change of the format raises the number of the format.

use crate::base::state::StateError;
use std::io::{self, Read, Write};

/// The magic number without the number of the format.
const MAGIC: [u8; 7] = *b"nandlab";

/// The number of the format.
const FORMAT: u8 = b'8';

/// Bytes of the name of a section.
const NAME: usize = 16;

/// The name and the version of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SectionKind {
    pub(crate) name: &'static str,
    pub(crate) version: u64,
}

/// Why a snapshot could not be loaded.
#[derive(Debug)]
pub enum SnapshotError {
    /// Reading failed.
    Io(io::Error),
    /// The file is not a snapshot, or is damaged.
    Damaged(&'static str),
    /// The snapshot is of another drive: the property that differs, its value in the snapshot, and its value in this
    /// drive.
    Mismatch(&'static str, u64, u64),
    /// The snapshot has another format: its character in the magic number.
    Format(char),
    /// The snapshot has a section that this version of nandlab does not know: its name.
    UnknownSection(String),
    /// A section has another version: its name, its version in the snapshot, and the version that is known.
    SectionVersion(&'static str, u64, u64),
    /// The snapshot has the section of a mechanism that this drive does not have: the name of the section.
    Unused(&'static str),
    /// The snapshot lacks a section that a drive cannot do without: its name.
    Missing(&'static str),
    /// The checkpoint was written by another version of nandlab: its version, and this one.
    OtherVersion {
        /// The version that wrote the checkpoint.
        theirs: String,
        /// The version that reads it.
        mine: String,
    },
    /// The checkpoint is of a drive with another spec.
    OtherSpec,
    /// The checkpoint is of a drive with an oracle, or another observer that needs sequence numbers, and this drive has
    /// none; or the reverse.
    OtherProbe,
}

impl std::fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const AGAIN: &str = "save the drive again with this version";
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Damaged(what) => write!(f, "the file is not a complete saved drive: {what}"),
            Self::Mismatch(what, theirs, mine) => {
                write!(f, "the file was saved from a drive with {what} = {theirs}, but this drive has {mine}")
            }
            Self::Format(theirs) => write!(
                f,
                "the drive was saved in format {theirs}, but this version of nandlab reads format {}: {AGAIN}",
                char::from(FORMAT)
            ),
            Self::UnknownSection(name) => write!(
                f,
                "the file has a section {name:?}, which this version of nandlab does not know: load the file with the \
                 version that saved it, or {AGAIN}"
            ),
            Self::SectionVersion(name, theirs, mine) => write!(
                f,
                "the section {name:?} of the file has version {theirs}, but this version of nandlab reads version \
                 {mine}: {AGAIN}"
            ),
            Self::Unused(name) => {
                // What the sections of mechanisms are called in words.
                let words = if *name == "slc" { "an SLC mode" } else { &format!("a {name}") };
                write!(
                    f,
                    "the file was saved from a drive with {words}, but this drive has none: turn it on, or save a \
                     drive without it"
                )
            }
            Self::Missing(name) => {
                write!(f, "the file is not a complete saved drive: it has no section {name:?}")
            }
            Self::OtherVersion { theirs, mine } => write!(
                f,
                "the checkpoint was written by nandlab {theirs}, but this is nandlab {mine}: restore the checkpoint with \
                 the version that wrote it"
            ),
            Self::OtherSpec => write!(
                f,
                "the checkpoint is of a drive with another spec: restore it in a drive with the spec with which it was \
                 written"
            ),
            Self::OtherProbe => write!(
                f,
                "the checkpoint is of a drive whose observers need sequence numbers, and those of this drive do not, or \
                 the reverse: restore it with the observers with which it was written"
            ),
        }
    }
}

impl std::error::Error for SnapshotError {}

impl From<io::Error> for SnapshotError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            Self::Damaged("it ends too early")
        } else {
            Self::Io(error)
        }
    }
}

impl From<StateError> for SnapshotError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::Io(error) => error.into(),
            StateError::Damaged(what) => Self::Damaged(what),
        }
    }
}

/// A section of a mechanism: a list of numbers.
#[derive(Debug)]
pub(crate) struct Section {
    name: [u8; NAME],
    version: u64,
    numbers: Vec<u64>,
    /// How many of the numbers have been read.
    read: usize,
}

impl Section {
    /// An empty section, to be written.
    pub(crate) fn new(kind: SectionKind) -> Self {
        Self { name: padded(kind.name), version: kind.version, numbers: Vec::new(), read: 0 }
    }

    /// Appends a number.
    pub(crate) fn put(&mut self, number: u64) {
        self.numbers.push(number);
    }

    /// Reads the next number.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn get(&mut self) -> Result<u64, SnapshotError> {
        let number = self.numbers.get(self.read).copied();
        self.read += 1;
        number.ok_or(SnapshotError::Damaged("a section is too short"))
    }

    /// All that the mechanism needs has been read.
    ///
    /// # Errors
    /// If numbers are left.
    pub(crate) fn end(&self) -> Result<(), SnapshotError> {
        if self.read == self.numbers.len() {
            Ok(())
        } else {
            Err(SnapshotError::Damaged("a section is too long"))
        }
    }

    /// The name, as text for an error.
    pub(crate) fn name(&self) -> String {
        self.name.iter().take_while(|&&byte| byte != 0).map(|&byte| char::from(byte)).collect()
    }

    /// Takes the section of this kind out of a list.
    ///
    /// # Errors
    /// If the section has another version.
    pub(crate) fn take(from: &mut Vec<Self>, kind: SectionKind) -> Result<Option<Self>, SnapshotError> {
        let Some(at) = from.iter().position(|section| section.name == padded(kind.name)) else {
            return Ok(None);
        };
        let section = from.remove(at);
        if section.version != kind.version {
            return Err(SnapshotError::SectionVersion(kind.name, section.version, kind.version));
        }
        Ok(Some(section))
    }
}

/// The name of a section as in the file.
fn padded(name: &str) -> [u8; NAME] {
    let mut bytes = [0; NAME];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes
}

/// How far a file has been read or written.
#[derive(Debug)]
struct Progress {
    /// The checksum of the numbers so far.
    sum: u64,
    /// The bytes left of the content of the present section; `None` outside a content.
    left: Option<u64>,
}

impl Progress {
    fn new() -> Self {
        Self { sum: 0xcbf2_9ce4_8422_2325, left: None }
    }

    fn add(&mut self, number: u64) {
        self.sum = (self.sum ^ number).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17);
    }

    /// Takes bytes of the content of the present section; `false` if there are not so many.
    #[inline]
    fn take(&mut self, bytes: u64) -> bool {
        let Some(left) = self.left else { return true };
        self.left = Some(left.saturating_sub(bytes));
        left >= bytes
    }

    /// Ends the content of the present section; `false` if bytes of it are left.
    fn end(&mut self) -> bool {
        self.left.take().is_none_or(|left| left == 0)
    }
}

/// Writes the file of a saved drive.
#[derive(Debug)]
pub(crate) struct SectionWriter<W: Write> {
    out: io::BufWriter<W>,
    progress: Progress,
}

impl<W: Write> SectionWriter<W> {
    /// Begins the file.
    pub(crate) fn new(out: W, sections: usize) -> io::Result<Self> {
        let out = io::BufWriter::with_capacity(1 << 20, out);
        let mut writer = Self { out, progress: Progress::new() };
        writer.out.write_all(&MAGIC)?;
        writer.out.write_all(&[FORMAT])?;
        writer.put(sections as u64)?;
        Ok(writer)
    }

    /// Begins a section of the drive itself, with a content of `bytes` bytes.
    pub(crate) fn begin(&mut self, kind: SectionKind, bytes: u64) -> io::Result<()> {
        self.head(padded(kind.name), kind.version, bytes)
    }

    fn head(&mut self, name: [u8; NAME], version: u64, bytes: u64) -> io::Result<()> {
        self.end_content();
        for half in name.as_chunks::<8>().0 {
            self.put(u64::from_le_bytes(*half))?;
        }
        self.put(version)?;
        self.put(bytes)?;
        self.progress.left = Some(bytes);
        Ok(())
    }

    /// Writes the section of a mechanism.
    pub(crate) fn write(&mut self, section: &Section) -> io::Result<()> {
        self.head(section.name, section.version, 8 * section.numbers.len() as u64)?;
        section.numbers.iter().try_for_each(|&number| self.put(number))
    }

    /// Writes a number of 8 bytes.
    pub(crate) fn put(&mut self, number: u64) -> io::Result<()> {
        self.progress.add(number);
        assert!(self.progress.take(8), "a section is longer than it says");
        self.out.write_all(&number.to_le_bytes())
    }

    /// Writes a number of 4 bytes.
    pub(crate) fn put_u32(&mut self, number: u32) -> io::Result<()> {
        self.progress.add(u64::from(number));
        assert!(self.progress.take(4), "a section is longer than it says");
        self.out.write_all(&number.to_le_bytes())
    }

    /// Writes numbers of 8 bytes.
    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (numbers, rest) = bytes.as_chunks();
        assert!(rest.is_empty(), "the bytes are whole numbers");
        numbers.iter().for_each(|&number| self.progress.add(u64::from_le_bytes(number)));
        assert!(self.progress.take(bytes.len() as u64), "a section is longer than it says");
        self.out.write_all(bytes)
    }

    fn end_content(&mut self) {
        assert!(self.progress.end(), "a section is shorter than it says");
    }

    /// Ends the file.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.end_content();
        self.out.write_all(&self.progress.sum.to_le_bytes())?;
        self.out.flush()
    }
}

/// Reads the file of a saved drive.
#[derive(Debug)]
pub(crate) struct SectionReader<R: Read> {
    input: io::BufReader<R>,
    progress: Progress,
    /// Number of sections that have not begun.
    sections: u64,
    /// Name and version of a section that has begun and whose content has not been read.
    head: Option<([u8; NAME], u64)>,
}

impl<R: Read> SectionReader<R> {
    /// Begins to read a file.
    ///
    /// # Errors
    /// When reading fails, or the file is no saved drive of this format.
    pub(crate) fn new(input: R) -> Result<Self, SnapshotError> {
        let input = io::BufReader::with_capacity(1 << 20, input);
        let mut reader = Self { input, progress: Progress::new(), sections: 0, head: None };
        let mut magic = [0; MAGIC.len() + 1];
        reader.input.read_exact(&mut magic)?;
        let [name @ .., format] = magic;
        if name != MAGIC || !format.is_ascii_digit() {
            return Err(SnapshotError::Damaged("it does not begin with the magic number"));
        }
        if format != FORMAT {
            return Err(SnapshotError::Format(char::from(format)));
        }
        reader.sections = reader.get()?;
        Ok(reader)
    }

    /// Begins the next section: reads its name, version and length. Does nothing if this has been done already.
    fn head(&mut self) -> Result<Option<([u8; NAME], u64)>, SnapshotError> {
        if self.head.is_none() && self.sections > 0 {
            self.end_content()?;
            let mut name = [0; NAME];
            for half in name.as_chunks_mut::<8>().0 {
                *half = self.get()?.to_le_bytes();
            }
            let version = self.get()?;
            self.progress.left = Some(self.get()?);
            self.sections -= 1;
            self.head = Some((name, version));
        }
        Ok(self.head)
    }

    /// Begins the next section, which must be of this kind.
    ///
    /// # Errors
    /// When reading fails, or another section follows.
    pub(crate) fn begin(&mut self, kind: SectionKind) -> Result<(), SnapshotError> {
        match self.head()? {
            Some((name, version)) if name == padded(kind.name) => {
                self.head = None;
                if version == kind.version {
                    Ok(())
                } else {
                    Err(SnapshotError::SectionVersion(kind.name, version, kind.version))
                }
            }
            _ => Err(SnapshotError::Missing(kind.name)),
        }
    }

    /// Reads all sections before the section of the kind `next`.
    ///
    /// # Errors
    /// When reading fails, or there is no such section.
    pub(crate) fn before(&mut self, next: SectionKind) -> Result<Vec<Section>, SnapshotError> {
        let mut sections = Vec::new();
        loop {
            let (name, version) = self.head()?.ok_or(SnapshotError::Missing(next.name))?;
            if name == padded(next.name) {
                return Ok(sections);
            }
            self.head = None;
            let mut numbers = Vec::new();
            while self.progress.left.is_some_and(|left| left > 0) {
                numbers.push(self.get()?);
            }
            sections.push(Section { name, version, numbers, read: 0 });
        }
    }

    /// Reads a number of 8 bytes.
    ///
    /// # Errors
    /// When reading fails, or the section ends before.
    pub(crate) fn get(&mut self) -> Result<u64, SnapshotError> {
        let mut bytes = [0; 8];
        self.take(&mut bytes)?;
        let number = u64::from_le_bytes(bytes);
        self.progress.add(number);
        Ok(number)
    }

    /// Reads a number of 4 bytes.
    ///
    /// # Errors
    /// When reading fails, or the section ends before.
    pub(crate) fn get_u32(&mut self) -> Result<u32, SnapshotError> {
        let mut bytes = [0; 4];
        self.take(&mut bytes)?;
        let number = u32::from_le_bytes(bytes);
        self.progress.add(u64::from(number));
        Ok(number)
    }

    /// The bytes left of the content of the present section.
    pub(crate) fn left(&self) -> u64 {
        self.progress.left.unwrap_or(0)
    }

    /// Reads numbers of 8 bytes.
    ///
    /// # Errors
    /// When reading fails, or the section ends before.
    pub(crate) fn get_bytes(&mut self, bytes: &mut [u8]) -> Result<(), StateError> {
        if !self.progress.take(bytes.len() as u64) {
            return Err(StateError::Damaged("a section is too short"));
        }
        self.input.read_exact(bytes)?;
        let (numbers, rest) = bytes.as_chunks();
        if !rest.is_empty() {
            return Err(StateError::Damaged("a section is no list of numbers"));
        }
        numbers.iter().for_each(|&number| self.progress.add(u64::from_le_bytes(number)));
        Ok(())
    }

    fn take(&mut self, bytes: &mut [u8]) -> Result<(), SnapshotError> {
        if !self.progress.take(bytes.len() as u64) {
            return Err(SnapshotError::Damaged("a section is too short"));
        }
        Ok(self.input.read_exact(bytes)?)
    }

    fn end_content(&mut self) -> Result<(), SnapshotError> {
        if self.progress.end() { Ok(()) } else { Err(SnapshotError::Damaged("a section is too long")) }
    }

    /// Checks that the file ends here.
    ///
    /// # Errors
    /// When reading fails, the checksum is wrong, or the file goes on.
    pub(crate) fn finish(mut self) -> Result<(), SnapshotError> {
        self.end_content()?;
        if self.sections > 0 {
            return Err(SnapshotError::Damaged("a section follows the last one"));
        }
        let sum = self.progress.sum;
        let mut end = [0; 8];
        self.input.read_exact(&mut end)?;
        if u64::from_le_bytes(end) != sum {
            return Err(SnapshotError::Damaged("the checksum is wrong"));
        }
        if io::copy(&mut self.input.take(1), &mut io::sink())? > 0 {
            return Err(SnapshotError::Damaged("bytes follow its end"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: SectionKind = SectionKind { name: "own", version: 3 };
    const OTHER: SectionKind = SectionKind { name: "of a mechanism", version: 1 };

    /// A file with a section of a mechanism with the numbers 7 and 9, and a section of the drive.
    fn file() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut out = SectionWriter::new(&mut bytes, 2).unwrap();
        let mut section = Section::new(OTHER);
        section.put(7);
        section.put(9);
        out.write(&section).unwrap();
        out.begin(OWN, 12).unwrap();
        out.put(1 << 40).unwrap();
        out.put_u32(5).unwrap();
        out.finish().unwrap();
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<u64>, SnapshotError> {
        let mut input = SectionReader::new(bytes)?;
        let mut others = input.before(OWN)?;
        let mut other = Section::take(&mut others, OTHER)?.expect("the file has the section");
        let mut numbers = vec![other.get()?, other.get()?];
        other.end()?;
        input.begin(OWN)?;
        numbers.extend([input.get()?, input.get_u32()?.into()]);
        input.finish()?;
        Ok(numbers)
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let bytes = file();
        // Magic and number of sections; two heads of 32 bytes with contents of 16 and 12 bytes; checksum.
        assert_eq!(bytes.len(), 16 + (32 + 16) + (32 + 12) + 8);
        assert_eq!(&bytes[..16], b"nandlab8\x02\0\0\0\0\0\0\0");
        assert_eq!(&bytes[16..40], b"of a mechanism\0\0\x01\0\0\0\0\0\0\0");
        assert_eq!(read(&bytes).unwrap(), [7, 9, 1 << 40, 5]);
    }

    #[test]
    fn a_content_that_is_longer_or_shorter_than_it_says_is_damaged() {
        // The length of the mechanism's section is at byte 40, that of the drive's at byte 88. After a wrong length of the
        // first one, the second one is not found where it is.
        for (at, by, says) in [
            (40, 8, "it ends too early"),
            (40, -8, "a section is too short"),
            (88, 8, "a section is too long"),
            (88, -8, "a section is too short"),
        ] {
            let mut bytes = file();
            bytes[at] = bytes[at].wrapping_add_signed(by);
            let error = read(&bytes).unwrap_err();
            assert!(matches!(error, SnapshotError::Damaged(what) if what == says), "{at}, {by}: {error}");
        }
    }

    #[test]
    fn a_section_of_another_version_is_refused_with_both_versions() {
        for (at, name) in [(32, "of a mechanism"), (80, "own")] {
            let mut bytes = file();
            bytes[at] += 1;
            let error = read(&bytes).unwrap_err();
            assert!(
                matches!(error, SnapshotError::SectionVersion(of, theirs, mine) if of == name && theirs == mine + 1),
                "{error}"
            );
        }
    }
}
