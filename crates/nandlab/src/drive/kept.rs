//! Kept drives: preconditioned drives in files of a cache folder. The next run with the same preconditioning reads the
//! file instead of preconditioning its own drive, and has the same results.
//!
//! A file holds the state of the array and of the FTL ([`State`](crate::base::state::State)). Its name has
//! [`Loaded::fill_key`], the hash of all settings that preconditioning sees, and a hash of the build of nandlab and of
//! what the mechanisms of the drive make of array and FTL. The hash at the end of the file is checked before anything
//! is read from it, so a file that was cut short or damaged is no kept drive: the drive is preconditioned anew, and
//! replaces the file.
//!
//! `precondition.map_reads` follows after a kept drive as after preconditioning, so a kept drive depends on no workload
//! and on no file.
//!
//! The file, all numbers little-endian:
//!
//! | part | content |
//! |---|---|
//! | state | key, build, and `Drive::shape`; the result of the SNIA method; units written in SLC mode; array and FTL |
//! | hash | XXH3 (128 bits) of all bytes before |
//! | magic number | [`MAGIC`] |

use super::Drive;
use super::precondition::{PtsOutcome, Watch};
use super::spec::{Loaded, PreconditionSpec};
use crate::base::kept_folder::{KeptFolder, touch};
use crate::base::state::{StateError, StateReader, StateWriter, Value, value};
use crate::core::Offline;
use crate::probe::Probe;
use crate::spec::hash;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_128;

/// Bytes of all kept drives in a folder, at most.
const BYTES_MAX: u64 = 8 << 30;
/// A drive is kept if preconditioning has programmed at least so many units. Measured beside other load:
/// to program 5 Mi units takes 0.6 to 1.0 s, and to read them 0.2 to 0.3 s.
const UNITS_MIN: u64 = 4 << 20;
/// The last bytes of the file, with the version of its layout.
const MAGIC: [u8; 8] = *b"nlDrive1";
/// Bytes after the state.
const TRAILER: u64 = 16 + MAGIC.len() as u64;
/// Bytes read at once to check a file.
const CHUNK: usize = 1 << 20;

/// The folder of kept drives.
#[derive(Clone, Debug)]
pub struct KeptDrives {
    folder: KeptFolder,
    units_min: u64,
    /// The build of nandlab; `None` if it is unknown, so that no drive is kept. Only called when a drive may be read or
    /// written.
    build: fn() -> Option<String>,
}

impl KeptDrives {
    /// The folder `drives` that the environment gives ([`KeptFolder::from_environment`]). `None`: no drives are kept.
    pub fn from_environment(build: fn() -> Option<String>) -> Option<Self> {
        KeptFolder::from_environment("drives", BYTES_MAX).map(|folder| Self::new(folder, UNITS_MIN, build))
    }

    /// Kept drives of preconditionings that have programmed at least `units_min` units.
    pub fn new(folder: KeptFolder, units_min: u64, build: fn() -> Option<String>) -> Self {
        Self { folder, units_min, build }
    }

    /// The folder.
    pub fn folder(&self) -> &KeptFolder {
        &self.folder
    }

    /// The number of kept drives, and the bytes of all files in the folder.
    pub fn size(&self) -> (u64, u64) {
        self.folder.size("drive")
    }

    /// Where the drive of a spec is kept. `None` if its preconditioning makes nothing that could be kept.
    pub fn of(self, loaded: &Loaded) -> Option<KeptDrive> {
        Some(KeptDrive { key: loaded.fill_key()?, drives: self })
    }
}

/// Where the drives of one preconditioning are kept.
#[derive(Clone, Debug)]
pub struct KeptDrive {
    drives: KeptDrives,
    /// [`Loaded::fill_key`] of the spec.
    key: String,
}

/// What a file says of the drive that it holds.
#[derive(Debug, PartialEq)]
struct Of {
    key: String,
    build: String,
    shape: String,
}

value! { Of { key, build, shape } }
value! { PtsOutcome { waf, is_steady } }

/// How preconditioning has ended.
#[derive(Debug)]
pub struct Preconditioning {
    /// Whether the drive is preconditioned.
    pub is_done: bool,
    /// The result of the SNIA method, if the spec chooses this method.
    pub outcome: Option<PtsOutcome>,
    /// Why a kept drive was not used, or this one was not kept.
    pub note: Option<String>,
}

impl KeptDrive {
    /// Whether a kept drive has this key, of whatever build.
    fn has_candidate(&self) -> bool {
        let start = format!("{}-", self.key);
        self.drives.folder.entries().any(|entry| {
            let name = entry.path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(&start) && name.ends_with(".drive"))
        })
    }

    /// What a file of a drive of this shape says, and its path; `None` if the build is unknown.
    fn named(&self, shape: &str) -> Option<(Of, PathBuf)> {
        let build = (self.drives.build)()?;
        let name = format!("{}-{}.drive", self.key, hash(&format!("{build} {shape}")));
        let of = Of { key: self.key.clone(), build, shape: shape.to_owned() };
        Some((of, self.drives.folder.path().join(name)))
    }
}

impl<P: Probe> Drive<P> {
    /// Preconditions a fresh drive by the method of its spec, as [`Drive::precondition`] does, or gives it the state of
    /// a kept drive. A drive that took long enough is kept.
    ///
    /// # Errors
    /// When a kept drive cannot be read to its end. The drive must not be used then.
    ///
    /// # Panics
    /// On a drive that has been written.
    pub fn precondition_or_load(
        &mut self,
        kept: Option<&KeptDrive>,
        watch: Watch,
    ) -> Result<Preconditioning, String> {
        assert!(self.is_fresh(), "only a fresh drive can be preconditioned");
        let kept = kept.filter(|_| self.may_be_kept());
        let mut note = None;
        if let Some((of, path)) =
            kept.filter(|kept| kept.has_candidate()).and_then(|kept| kept.named(&self.shape()))
        {
            match checked(&path) {
                Ok(Some((file, bytes))) => match self.load_kept(file, bytes, &of) {
                    Ok(Some(outcome)) => {
                        touch(&path);
                        return Ok(Preconditioning { is_done: true, outcome, note: None });
                    }
                    Ok(None) => {}
                    Err(error) => {
                        return Err(format!(
                            "{}: the kept drive cannot be read: {}\n  remedy: repeat the run, with the environment \
                             variable NANDLAB_CACHE=off if the error comes again",
                            path.display(),
                            match error {
                                StateError::Io(error) => error.to_string(),
                                StateError::Damaged(what) => what.to_owned(),
                            }
                        ));
                    }
                },
                Ok(None) => {
                    note = Some(format!(
                        "{}: the kept drive is damaged; the drive was preconditioned anew",
                        path.display()
                    ));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    note = Some(format!(
                        "{}: the kept drive cannot be read: {error}; the drive was preconditioned anew",
                        path.display()
                    ));
                }
            }
        }
        let (is_done, outcome) = self.precondition(watch);
        if let Some(kept) = kept.filter(|_| is_done)
            && let Err(error) = self.keep(kept, outcome.as_ref(), watch)
        {
            note = Some(format!(
                "the preconditioned drive was not kept in {}: {error}; set the environment variable NANDLAB_CACHE to \
                 another folder, or to off",
                kept.drives.folder.path().display()
            ));
        }
        Ok(Preconditioning { is_done, outcome, note })
    }

    /// Whether the state that preconditioning makes is that of array and FTL alone: a policy from outside may have
    /// changed by the next run, and observers see the writes of the SNIA method.
    fn may_be_kept(&self) -> bool {
        let is_unseen = match self.spec.precondition {
            PreconditionSpec::Fill { .. } => true,
            PreconditionSpec::Pts { .. } => !self.core.probe.needs_sequences(),
            PreconditionSpec::None | PreconditionSpec::Load(_) => false,
        };
        is_unseen && self.policies.names().next().is_none()
    }

    /// The number of units that preconditioning has programmed, without those of GC in the sequential fill.
    fn units_programmed(&self, outcome: Option<&PtsOutcome>) -> u64 {
        match outcome {
            Some(pts) => {
                let overwritten: f64 = pts.waf.iter().sum();
                (f64::from(self.core.geometry().logical_units) * (1.0 + overwritten)) as u64
            }
            None => self.core.flash().superblocks.iter().map(|of| u64::from(of.programmed)).sum(),
        }
    }

    /// Writes a preconditioned drive to its file, if it is worth it and has room.
    fn keep(&self, kept: &KeptDrive, outcome: Option<&PtsOutcome>, watch: Watch) -> io::Result<()> {
        let KeptDrives { folder, units_min, .. } = &kept.drives;
        // Map and OOB, of which the file has the entries that are not alike.
        let bytes = 4 * (u64::from(self.core.ftl().map.mapped()) + self.units_programmed(None));
        if self.units_programmed(outcome) < *units_min || bytes > folder.bytes_max() {
            return Ok(());
        }
        let Some((of, path)) = kept.named(&self.shape()) else { return Ok(()) };
        folder.make()?;
        if folder.bytes_free().is_some_and(|free| free < 2 * bytes) {
            return Err(io::Error::other("the disk has not twice its size free"));
        }
        let mut to = folder.begin()?;
        let mut hash = XxHash3_128::new();
        let mut sink = |chunk: &[u8]| {
            // The caller may stop the run meanwhile.
            if !watch(1.0) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            hash.write(chunk);
            to.file.write_all(chunk)
        };
        let mut out = StateWriter::to(&mut sink);
        of.save(&mut out);
        (outcome.cloned(), self.slc_filled()).save(&mut out);
        self.core.save_flash(&mut out);
        match out.finish() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            written => written?,
        };
        to.file.write_all(&[&hash.finish_128().to_le_bytes()[..], &MAGIC].concat())?;
        to.publish(&path)?;
        folder.sweep(&["drive"]);
        Ok(())
    }

    /// Takes over the state in a file, whose first `bytes` bytes are the state. `None`, and the drive remains fresh, if
    /// it is the state of something else.
    fn load_kept(
        &mut self,
        mut file: File,
        bytes: u64,
        of: &Of,
    ) -> Result<Option<Option<PtsOutcome>>, StateError> {
        let mut source = |chunk: &mut [u8]| Ok(file.read_exact(chunk)?);
        let mut from = StateReader::of(&mut source, bytes);
        if Of::load(&mut from)? != *of {
            return Ok(None);
        }
        let (outcome, slc_filled) = Value::load(&mut from)?;
        Offline::new(&mut self.core).load_flash(&mut from)?;
        from.end()?;
        self.set_slc_filled(slc_filled);
        self.loaded();
        Ok(Some(outcome))
    }
}

/// Opens a file and checks it. Returns it with the number of bytes of its state; `None` if it is damaged.
fn checked(path: &Path) -> io::Result<Option<(File, u64)>> {
    let mut file = File::open(path)?;
    let Some(bytes) = fs::Metadata::len(&file.metadata()?).checked_sub(TRAILER) else { return Ok(None) };
    let (mut chunk, mut hash, mut left) = (vec![0; CHUNK], XxHash3_128::new(), bytes);
    while left > 0 {
        let now = left.min(CHUNK as u64);
        let now = &mut chunk[..now as usize];
        file.read_exact(now)?;
        hash.write(now);
        left -= now.len() as u64;
    }
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    if end != [&hash.finish_128().to_le_bytes()[..], &MAGIC].concat() {
        return Ok(None);
    }
    file.rewind()?;
    Ok(Some((file, bytes)))
}
