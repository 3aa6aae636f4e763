//! Kept traces: the requests of a trace that was read to its end, in a file of a cache folder (`file`). The next run of
//! the trace reads this file instead of parsing the text.
//!
//! The name of a kept trace is the size of the source, the hash of its content, and the hash of all that changes the
//! parse: the `[workload]` keys of the trace and the version of this crate. The path of the source is not part of it.
//! The hash of the content is that of the bytes from which the requests were parsed: the thread that reads the source
//! computes it on the way.
//!
//! A **source mark** spares hashing the source again: a small file whose name is the hash of device, inode, size,
//! mtime and ctime of the source, and whose content is the hash of the source. A mark is written only if the source did
//! not change while it was read, and if mtime and ctime were then older than [`SETTLED`]. A later change gets a later
//! ctime, which no program can set back, and so another mark. Without a mark the source is hashed only if a kept trace
//! of the same size and keys exists.
//!
//! Files appear under their names by renaming, when they are complete. Several processes may use the folder: two that
//! parse the same trace write equal files. When a trace has been kept, the files used longest ago are removed until the
//! folder is within its limit.
//!
//! The parser's thread also writes the batches to the kept trace, which gets its name when the trace has ended without
//! an error. The version of this crate is a hash of its sources (`build.rs`), so a changed reader never meets the
//! requests of another version.
//!
//! The layout is our own because Parquet or Arrow would make the reader depend on a dozen crates for four columns of
//! numbers; the hash is XXH3 of the crate `twox-hash`, which the writer of Parquet uses too. A column of a batch has as
//! many bytes a number as its range needs (`column`): reading the file took a fortieth of the CPU time of a run when
//! each number had eight.

mod column;
mod file;
#[cfg(test)]
mod tests;

pub(crate) use file::{Description, KeptReader};

use crate::batch::Batch;
use crate::stamp::{ReadBytes, Stamp};
use crate::tally::Tally;
use crate::trace::TraceSource;
use file::Writer;
use nandlab_base::base::kept_folder::{KeptFolder, now, touch};
use nandlab_base::workload::{Part, TraceSpec};
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use twox_hash::XxHash3_128;

/// Bytes of all kept traces in a folder, at most.
const BYTES_MAX: u64 = 4 << 30;
/// Age of mtime and ctime at which a file system gives a change of the file another time.
const SETTLED: Duration = Duration::from_secs(2);
/// The version of this crate, whatever its number: a change of a parser makes all kept traces void.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("NANDLAB_TRACE_SOURCES"));

/// The folder of kept traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptTraces {
    folder: KeptFolder,
    settled: Duration,
}

/// The space that kept traces take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptSize {
    /// Number of kept traces.
    pub traces: u64,
    /// Bytes of all files in the folder.
    pub bytes: u64,
}

impl KeptTraces {
    /// The folder `traces` that the environment gives ([`KeptFolder::from_environment`]). `None`: no traces are kept.
    pub fn from_environment() -> Option<Self> {
        KeptFolder::from_environment("traces", BYTES_MAX).map(Self::of)
    }

    /// Kept traces in `folder`, which is made when the first trace is kept.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self::of(KeptFolder::new(folder, BYTES_MAX))
    }

    fn of(folder: KeptFolder) -> Self {
        Self { folder, settled: SETTLED }
    }

    /// With `bytes_max` as the limit of all kept traces in the folder, in bytes.
    #[must_use]
    pub fn limited(self, bytes_max: u64) -> Self {
        Self { folder: KeptFolder::new(self.folder.path(), bytes_max), ..self }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The limit of all kept traces in the folder, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.folder.bytes_max()
    }

    /// The space that the kept traces take; 0 if the folder does not exist.
    pub fn size(&self) -> KeptSize {
        let (traces, bytes) = self.folder.size("trace");
        KeptSize { traces, bytes }
    }

    /// The kept trace of the content that `trace` names now.
    pub(crate) fn find(&self, trace: &TraceSpec) -> Option<(KeptReader, Description)> {
        // A pipe must not be opened before it is read.
        if !fs::metadata(&trace.path).ok()?.is_file() {
            return None;
        }
        let mut source = File::open(&trace.path).ok()?;
        let stamp = Stamp::of(&source).ok()?;
        let keys = keys_hash(trace);
        let mark = self.mark(&stamp);
        let hash = match read_mark(&mark) {
            Some(hash) => hash,
            None => {
                if !self.has_candidate(stamp.size, keys) {
                    return None;
                }
                let opened = now();
                let (hash, bytes) = hash_of(&mut source).ok()?;
                if bytes != stamp.size {
                    return None;
                }
                let after = Stamp::of(&source).ok()?;
                self.mark_source(&ReadBytes { hash, bytes, before: stamp, after, opened });
                hash
            }
        };
        let name = self.name(stamp.size, hash, keys);
        let found = KeptReader::open(&name, &trace.path)?;
        for used in [&name, &mark] {
            touch(used);
        }
        Some(found)
    }

    /// A keeper of the requests of `trace`; `None` for a source that is no file, such as a pipe, and if the folder
    /// cannot be written.
    pub(crate) fn keeper(&self, trace: &TraceSpec) -> Option<Keeper> {
        fs::metadata(&trace.path).ok().filter(Metadata::is_file)?;
        self.folder.make().ok()?;
        let writer = Writer::new(self.folder.begin().ok()?, self.bytes_max());
        Some(Keeper { kept: self.clone(), keys: keys_hash(trace), writer })
    }

    fn name(&self, size: u64, hash: u128, keys: u128) -> PathBuf {
        self.folder().join(format!("{size:x}-{hash:032x}-{keys:032x}.trace"))
    }

    fn mark(&self, stamp: &Stamp) -> PathBuf {
        self.folder().join(format!("{:032x}.source", XxHash3_128::oneshot(format!("{stamp:?}").as_bytes())))
    }

    /// Whether there is a kept trace of a source of this size, parsed with these keys.
    fn has_candidate(&self, size: u64, keys: u128) -> bool {
        let (start, end) = (format!("{size:x}-"), format!("-{keys:032x}.trace"));
        let Ok(entries) = fs::read_dir(self.folder()) else { return false };
        entries.flatten().any(|entry| {
            entry.file_name().to_str().is_some_and(|name| name.starts_with(&start) && name.ends_with(&end))
        })
    }

    /// Writes the mark of a source that was read to its end, if its stamp identifies the content that was read.
    fn mark_source(&self, read: &ReadBytes) {
        let is_unchanged = read.before == read.after && read.bytes == read.before.size;
        if is_unchanged && read.before.is_settled(read.opened, self.settled) {
            // A source without a mark is hashed again.
            let _ = self.write_mark(&self.mark(&read.before), read.hash);
        }
    }

    fn write_mark(&self, mark: &Path, hash: u128) -> io::Result<()> {
        let mut to = self.folder.begin()?;
        to.file.write_all(mark_text(hash).as_bytes())?;
        to.publish(mark)
    }
}

/// Keeps the requests of a trace while it is parsed.
pub(crate) struct Keeper {
    kept: KeptTraces,
    keys: u128,
    writer: Writer,
}

impl Keeper {
    /// Keeps the requests of a batch. `None`: the trace is kept, or cannot be kept.
    pub(crate) fn keep(mut self, batch: &Batch, source: &mut TraceSource) -> Option<Self> {
        self.writer.push(batch).ok()?;
        match &batch.end {
            None => return Some(self),
            Some(end) if end.error.is_none() => {
                let _ = self.publish(source, &end.tally);
            }
            Some(_) => {}
        }
        None
    }

    fn publish(self, source: &mut TraceSource, tally: &Tally) -> Option<()> {
        let Self { kept, keys, writer } = self;
        let read = source.read_bytes()?;
        let name = kept.name(read.bytes, read.hash, keys);
        writer.finish(&name, source.format_name(), &crate::Source::devices(source), tally).ok()?;
        kept.mark_source(&read);
        kept.folder.sweep(&["trace", "source"]);
        Some(())
    }
}

/// The hash of all that changes the parse of a content: the keys of the trace without its path and part, and the
/// version.
fn keys_hash(trace: &TraceSpec) -> u128 {
    // A part of a trace is chosen from the requests of the whole trace.
    let keys = TraceSpec { path: PathBuf::new(), part: Part::default(), ..trace.clone() };
    XxHash3_128::oneshot(format!("{VERSION} {keys:?}").as_bytes())
}

/// The hash of the rest of a file, and its number of bytes.
fn hash_of(file: &mut File) -> io::Result<(u128, u64)> {
    let (mut hash, mut bytes, mut chunk) = (XxHash3_128::new(), 0, vec![0; 1 << 18]);
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok((hash.finish_128(), bytes)),
            Ok(n) => {
                hash.write(&chunk[..n]);
                bytes += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// The content of a source mark: the hash of the source and the hash of this text.
fn mark_text(hash: u128) -> String {
    let text = format!("{hash:032x}");
    format!("{text} {:032x}\n", XxHash3_128::oneshot(text.as_bytes()))
}

fn read_mark(mark: &Path) -> Option<u128> {
    let text = fs::read_to_string(mark).ok()?;
    let hash = u128::from_str_radix(text.get(..32)?, 16).ok()?;
    (text == mark_text(hash)).then_some(hash)
}
