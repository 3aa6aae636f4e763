//! The file with the data of a kept drive: places of one unit each, which are used again when their unit is dropped.
//!
//! The file stays beside the checkpoint of the drive, which says what is at which place. The places that a checkpoint names are
//! *bound*: they keep their bytes until the next checkpoint has taken its place, even when their units are dropped or written
//! anew meanwhile. So a start reads no units: it opens the file, and each unit is read when a client asks for it. A checksum
//! of each place shows a unit that was damaged.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nandlab_base::base::state::{State, StateError, StateReader, StateWriter, Value};
use nandlab_base::recording::fresh_id;

/// The most places of a file.
const PLACES_MAX: u64 = (1 << 31) - 1;
/// Bytes by which a file grows.
const GROWTH: u64 = 64 << 20;
/// Bytes before the first place: what the file is, and its number.
const HEAD: u64 = 4096;
const MAGIC: [u8; 16] = *b"nandlab data 1\0\n";

/// Why a place cannot be taken.
#[derive(Debug)]
pub(crate) enum PlacesError {
    /// All places that can be numbered are used.
    TooMany,
    /// The file cannot be made, or has no room.
    Io(io::Error),
}

impl From<io::Error> for PlacesError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A file of units.
#[derive(Debug)]
pub(crate) struct Places {
    path: PathBuf,
    unit_bytes: u64,
    /// Made when it is first needed.
    file: Option<File>,
    /// The number of the file; 0 before it is made.
    id: u64,
    free: Vec<u32>,
    /// Places from this one on were never used.
    fresh: u32,
    /// Bytes of places that the system has promised.
    len: u64,
    used: u64,
    /// By place, the checksum of its unit.
    checks: Vec<u32>,
    /// A bit for each place that the checkpoint names that is on the disk, or one on its way there.
    bound: Vec<u64>,
    /// Bound places whose units were dropped before the latest checkpoint began, and since then.
    before: Vec<u32>,
    since: Vec<u32>,
}

impl Places {
    /// The file at `path`. A file that is there is replaced, unless [`Places::load`] opens it.
    pub(crate) fn new(path: &Path, unit_bytes: u32) -> Self {
        Self {
            path: path.to_owned(),
            unit_bytes: unit_bytes.into(),
            file: None,
            id: 0,
            free: Vec::new(),
            fresh: 0,
            len: 0,
            used: 0,
            checks: Vec::new(),
            bound: Vec::new(),
            before: Vec::new(),
            since: Vec::new(),
        }
    }

    /// The folder of the file.
    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Number of used places.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Whether a checkpoint names the place, so that its bytes must stay as they are.
    pub(crate) fn is_bound(&self, place: u32) -> bool {
        self.bound.get(place as usize / 64).is_some_and(|places| places >> (place % 64) & 1 == 1)
    }

    /// The file, which is made if there is none.
    fn file(&mut self) -> io::Result<&File> {
        let file = match &mut self.file {
            Some(file) => return Ok(file),
            none => {
                // A file that is there may be open to other users.
                match std::fs::remove_file(&self.path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
                let mut options = OpenOptions::new();
                options.read(true).write(true).create_new(true).mode(0o600);
                let file = options.open(&self.path)?;
                let id = fresh_id();
                file.write_all_at(&[&MAGIC[..], &id.to_le_bytes()].concat(), 0)?;
                self.id = id;
                none.insert(file)
            }
        };
        Ok(file)
    }

    /// Where a place begins in the file.
    fn offset(&self, place: u32) -> u64 {
        HEAD + u64::from(place) * self.unit_bytes
    }

    /// Makes sure that `places` further places can be taken and written.
    pub(crate) fn reserve(&mut self, places: u64) -> Result<(), PlacesError> {
        let fresh = u64::from(self.fresh) + places.saturating_sub(self.free.len() as u64);
        if fresh > PLACES_MAX {
            return Err(PlacesError::TooMany);
        }
        let (before, wanted) = (self.len, fresh * self.unit_bytes);
        if wanted <= before {
            return Ok(());
        }
        let len = wanted.max(before + GROWTH);
        let file = self.file()?;
        let exactly = allocate(file, HEAD + before, len - before);
        // There may be room for less.
        let (allocated, len) = if exactly.is_ok() {
            (exactly, len)
        } else {
            (allocate(file, HEAD + before, wanted - before), wanted)
        };
        allocated?;
        self.len = len;
        Ok(())
    }

    /// A place, whose bytes are what they happen to be.
    pub(crate) fn take(&mut self) -> Result<u32, PlacesError> {
        self.file()?;
        let place = match self.free.pop() {
            Some(place) => place,
            None if u64::from(self.fresh) == PLACES_MAX => return Err(PlacesError::TooMany),
            None => {
                self.fresh += 1;
                self.fresh - 1
            }
        };
        self.used += 1;
        Ok(place)
    }

    /// The unit of a place is dropped.
    pub(crate) fn give_back(&mut self, place: u32) {
        self.used -= 1;
        if self.is_bound(place) {
            self.since.push(place);
        } else {
            self.free.push(place);
        }
    }

    /// Writes a unit to a used place that is not bound.
    pub(crate) fn write(&mut self, place: u32, unit: &[u8]) -> io::Result<()> {
        debug_assert!(!self.is_bound(place), "a checkpoint names place {place}");
        let offset = self.offset(place);
        self.file.as_ref().ok_or(io::ErrorKind::NotFound)?.write_all_at(unit, offset)?;
        let place = place as usize;
        if self.checks.len() <= place {
            self.checks.resize(place + 1, 0);
        }
        self.checks[place] = crc32fast::hash(unit);
        Ok(())
    }

    /// Reads the unit of a used place from byte `at` on.
    pub(crate) fn read(&self, place: u32, at: u32, out: &mut [u8]) -> io::Result<()> {
        let (offset, file) = (self.offset(place), self.file.as_ref().ok_or(io::ErrorKind::NotFound)?);
        let check = |unit: &[u8]| match self.checks.get(place as usize) {
            Some(&check) if check == crc32fast::hash(unit) => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the checksum of a unit does not agree")),
        };
        if out.len() as u64 == self.unit_bytes {
            file.read_exact_at(out, offset)?;
            return check(out);
        }
        let mut unit = vec![0; self.unit_bytes as usize];
        file.read_exact_at(&mut unit, offset)?;
        check(&unit)?;
        out.copy_from_slice(&unit[at as usize..at as usize + out.len()]);
        Ok(())
    }

    /// A checkpoint begins that names all used places. Returns the file, which has to be on the disk before the checkpoint
    /// takes its place; `None` if nothing was ever written.
    pub(crate) fn begin_checkpoint(&mut self) -> io::Result<Option<File>> {
        self.before.append(&mut self.since);
        self.bound.clear();
        self.bound.resize((self.fresh as usize).div_ceil(64), u64::MAX);
        // Places that were never used are not bound.
        if let (Some(last), 1..) = (self.bound.last_mut(), self.fresh % 64) {
            *last = (1 << (self.fresh % 64)) - 1;
        }
        for &place in &self.free {
            self.bound[place as usize / 64] &= !(1 << (place % 64));
        }
        self.file.as_ref().map(File::try_clone).transpose()
    }

    /// The checkpoint that has begun last has its place on the disk, or, without `is_saved`, will not get it.
    pub(crate) fn end_checkpoint(&mut self, is_saved: bool) {
        if is_saved {
            for place in self.before.drain(..) {
                self.bound[place as usize / 64] &= !(1 << (place % 64));
                self.free.push(place);
            }
        }
    }

    /// Writes what a checkpoint has to know of the file.
    pub(crate) fn save(&self, out: &mut StateWriter<'_>) {
        (self.id, self.fresh).save(out);
        self.checks.save_state(out);
    }

    /// Opens the file that a checkpoint names. Its places are known after [`Places::loaded`].
    pub(crate) fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        (self.id, self.fresh) = Value::load(from)?;
        self.checks.load_state(from)?;
        if self.id == 0 {
            return Ok(());
        }
        let path = &self.path;
        let of_file = |error: io::Error| {
            StateError::Io(io::Error::new(
                error.kind(),
                format!("the drive's data in {}: {error}", path.display()),
            ))
        };
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(of_file)?;
        let mut head = [0; 24];
        file.read_exact_at(&mut head, 0).map_err(of_file)?;
        if head[..16] != MAGIC || head[16..] != self.id.to_le_bytes() {
            return Err(of_file(io::Error::other("it is not the file that this checkpoint goes with")));
        }
        self.len =
            file.metadata().map_err(of_file)?.len().saturating_sub(HEAD) / self.unit_bytes * self.unit_bytes;
        self.file = Some(file);
        Ok(())
    }

    /// Takes the places over that a checkpoint names, those in `used`: they are bound, and all others are free.
    pub(crate) fn loaded(&mut self, used: &[u32]) -> Result<(), StateError> {
        self.bound = vec![0; (self.fresh as usize).div_ceil(64)];
        for &place in used {
            let mark = 1 << (place % 64);
            match self.bound.get_mut(place as usize / 64) {
                Some(places) if place < self.fresh && *places & mark == 0 => *places |= mark,
                _ => return Err(StateError::Damaged("it has a unit at a place that cannot be")),
            }
        }
        self.checks.resize(self.fresh as usize, 0);
        self.used = used.len() as u64;
        // The first ones are taken first.
        self.free = (0..self.fresh).rev().filter(|&place| !self.is_bound(place)).collect();
        Ok(())
    }
}

/// Makes sure that the system has room for `len` bytes of a file from `offset` on, where it can promise that.
fn allocate(file: &File, offset: u64, len: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), offset, len) {
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => {}
        Err(error) => return Err(error.into()),
    }
    let _ = (file, offset, len);
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const UNIT: usize = 8;

    /// A path for a file of a test.
    pub(crate) fn path() -> PathBuf {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        std::env::temp_dir().join(format!("nandlab-places-{}-{number}", std::process::id()))
    }

    #[derive(Clone, Debug)]
    enum Step {
        Write(u8),
        Drop(usize),
        Begin,
        End(bool),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => any::<u8>().prop_map(Step::Write),
            4 => any::<usize>().prop_map(Step::Drop),
            1 => Just(Step::Begin),
            2 => any::<bool>().prop_map(Step::End),
        ];
        proptest::collection::vec(step, 1..200)
    }

    /// What a checkpoint names: its bytes, and the units by place.
    type Named = (Vec<u8>, BTreeMap<u32, u8>);

    /// The places of a checkpoint, opened by another process.
    fn open(path: &Path, (bytes, units): &Named) -> Places {
        let mut places = Places::new(path, UNIT as u32);
        let mut rest = &bytes[..];
        let mut source = |out: &mut [u8]| {
            let (now, later) = rest.split_at(out.len());
            out.copy_from_slice(now);
            rest = later;
            Ok(())
        };
        places.load(&mut StateReader::of(&mut source, bytes.len() as u64)).unwrap();
        places.loaded(&units.keys().copied().collect::<Vec<_>>()).unwrap();
        places
    }

    fn check(places: &Places, units: &BTreeMap<u32, u8>) {
        let mut unit = [0; UNIT];
        for (&place, &byte) in units {
            places.read(place, 0, &mut unit).unwrap();
            assert_eq!(unit, [byte; UNIT], "place {place}");
            let mut part = [0; 3];
            places.read(place, 2, &mut part).unwrap();
            assert_eq!(part, [byte; 3]);
        }
        assert_eq!(places.used(), units.len() as u64);
    }

    proptest! {
        /// Units are written and dropped, and checkpoints begin and end. At every step each checkpoint that a start may find
        /// has the units that it had: the one in its place, and one on its way there. Dropped places are used again after the
        /// next checkpoint.
        #[test]
        fn a_checkpoint_keeps_what_it_names(steps in steps()) {
            let path = path();
            let mut places = Places::new(&path, UNIT as u32);
            let mut units = BTreeMap::new();
            let (mut on_disk, mut on_its_way): (Option<Named>, Option<Named>) = (None, None);
            for step in steps {
                match step {
                    Step::Write(byte) => {
                        places.reserve(1).unwrap();
                        let place = places.take().unwrap();
                        assert!(!places.is_bound(place), "place {place}");
                        places.write(place, &[byte; UNIT]).unwrap();
                        assert!(units.insert(place, byte).is_none(), "place {place} is used");
                    }
                    Step::Drop(number) if !units.is_empty() => {
                        let place = *units.keys().nth(number % units.len()).unwrap();
                        units.remove(&place);
                        places.give_back(place);
                    }
                    Step::Begin if on_its_way.is_none() => {
                        places.begin_checkpoint().unwrap();
                        let mut bytes = Vec::new();
                        let mut sink = |more: &[u8]| {
                            bytes.extend_from_slice(more);
                            Ok(())
                        };
                        let mut out = StateWriter::to(&mut sink);
                        places.save(&mut out);
                        out.finish().unwrap();
                        on_its_way = Some((bytes, units.clone()));
                    }
                    Step::End(is_saved) if on_its_way.is_some() => {
                        places.end_checkpoint(is_saved);
                        let named = on_its_way.take();
                        if is_saved {
                            on_disk = named;
                        }
                    }
                    Step::Drop(_) | Step::Begin | Step::End(_) => {}
                }
                check(&places, &units);
                for named in [&on_disk, &on_its_way].into_iter().flatten() {
                    check(&open(&path, named), &named.1);
                }
            }
            // Two checkpoints later nothing that was dropped is bound, and a start finds the same places free.
            for _ in 0..2 {
                places.begin_checkpoint().unwrap();
                places.end_checkpoint(true);
            }
            assert_eq!(places.free.len() as u64 + places.used(), u64::from(places.fresh));
            let _ = std::fs::remove_file(&path);
        }
    }
}
