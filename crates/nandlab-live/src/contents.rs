//! The data of a simulated drive, which the drive itself does not keep.
//!
//! A drive writes a unit out of place, so several versions of an LPN exist at a time: the newest one, those in flash that it
//! has replaced, and after a power loss perhaps an older one is the newest again. [`Contents`] keeps data by LPN and
//! version, the sequence number of the host's write. Garbage collection moves a unit with its sequence number, so it changes
//! nothing here. Which versions are still somewhere in the drive is the drive's knowledge: it drops the others with
//! [`Contents::retain`].
//!
//! A version without data reads as zeros. Therefore zeros take no memory, and neither does a unit that was preconditioned
//! and never written.
//!
//! The data of a kept drive is in a file, which stays there for the next start; the system keeps as much of it in memory as
//! there is room for. The data of other drives is in memory, up to a limit.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use nandlab_base::base::huge::prefetch;
use nandlab_base::base::ids::Lpn;
use nandlab_base::base::state::{State, StateError, StateReader, StateWriter, Value, value};

use crate::arena::Arena;
use crate::memory::is_zero;
use crate::places::{Places, PlacesError};
use crate::table::Table;

/// Versions that are searched together.
const TOGETHER: usize = 64;

/// Why a version cannot be kept or read.
#[derive(Debug)]
pub enum ContentsError {
    /// The memory is used up.
    Full {
        /// The limit in bytes.
        memory_max: u64,
    },
    /// There are as many versions as can be numbered.
    TooMany,
    /// The file cannot be made, read or written.
    File {
        /// The folder of the file.
        folder: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

impl std::fmt::Display for ContentsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full { memory_max } => write!(
                f,
                "the drive's data exceeds the limit of {memory_max} bytes of memory: raise it, or keep the drive in a folder"
            ),
            Self::TooMany => write!(f, "the drive's data has more units than can be numbered"),
            Self::File { folder, error } => {
                write!(f, "the drive's data cannot be kept in a file in {}: {error}", folder.display())
            }
        }
    }
}

impl std::error::Error for ContentsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { error, .. } => Some(error),
            Self::Full { .. } | Self::TooMany => None,
        }
    }
}

/// A version with data.
#[derive(Clone, Copy, Debug)]
struct Entry {
    version: u64,
    /// Number + 1 of the next older version of the LPN; 0 without one. Of a free entry: of the next free one.
    older: u32,
    /// Where its data is in the [`Store`].
    place: u32,
}

value! { Entry { version, older, place } }

/// Where the data is.
#[derive(Debug)]
enum Store {
    /// In memory, at most so many bytes.
    Memory(Arena, u64),
    /// In the file of a kept drive.
    File(Places),
}

/// Data of units by LPN and version.
///
/// Memory: the data of versions that are not zeros, up to the limit, in steps of 8 MiB, unless it is in a file; 16 bytes for
/// each of them, and 4 for its checksum if it is in a file; 4 bytes for each LPN in the neighbourhood of one; and 8 bytes for
/// each 1,024 LPNs of the drive. An operation on a version costs one step for each newer version of its LPN.
#[derive(Debug)]
pub struct Contents {
    unit_bytes: usize,
    /// Number + 1 of the entry of the newest version of each LPN.
    newest: Table,
    entries: Vec<Entry>,
    /// Number + 1 of a free entry; 0 without one.
    free: u32,
    store: Store,
    scratch: Vec<u8>,
}

impl Contents {
    /// The most bytes of memory for the contents of `units` logical units in `versions` versions, without their data.
    pub(crate) fn bytes_max(units: u64, versions: u64) -> u64 {
        (size_of::<Entry>() + size_of::<u32>()) as u64 * versions + 4 * units + units.div_ceil(1024) * 8
    }

    /// No data: every version of every LPN from 0 to `units` - 1 reads as zeros. A unit has `unit_bytes` bytes, at least 1.
    /// More data than `memory_max` bytes is refused.
    pub fn new(units: u64, unit_bytes: u32, memory_max: u64) -> Self {
        Self::with(units, unit_bytes, Store::Memory(Arena::new(unit_bytes as usize), memory_max))
    }

    /// No data of a kept drive, whose data goes to the file `path`. A file that is there is replaced with the first write,
    /// unless [`Contents::load`] opens it.
    pub(crate) fn kept(units: u64, unit_bytes: u32, path: &Path) -> Self {
        Self::with(units, unit_bytes, Store::File(Places::new(path, unit_bytes)))
    }

    fn with(units: u64, unit_bytes: u32, store: Store) -> Self {
        Self {
            unit_bytes: unit_bytes as usize,
            newest: Table::new(units),
            entries: Vec::new(),
            free: 0,
            store,
            scratch: Vec::new(),
        }
    }

    /// Bytes of a unit.
    pub fn unit_bytes(&self) -> u32 {
        self.unit_bytes as u32
    }

    /// Number of versions that have data.
    pub fn versions(&self) -> u64 {
        match &self.store {
            Store::Memory(arena, _) => arena.used(),
            Store::File(file) => file.used(),
        }
    }

    /// Bytes of data in memory.
    pub fn memory_bytes(&self) -> u64 {
        match &self.store {
            Store::Memory(arena, _) => arena.used() * self.unit_bytes as u64,
            Store::File(_) => 0,
        }
    }

    /// Bytes of data in the file.
    pub fn file_bytes(&self) -> u64 {
        match &self.store {
            Store::Memory(..) => 0,
            Store::File(file) => file.used() * self.unit_bytes as u64,
        }
    }

    /// Makes sure that `units` further versions can be written before others are dropped.
    ///
    /// # Errors
    /// When there is no room for them. Nothing has changed then, but the file may have grown.
    pub fn reserve(&mut self, units: u64) -> Result<(), ContentsError> {
        match &mut self.store {
            Store::Memory(arena, memory_max) => {
                let left = (*memory_max / self.unit_bytes as u64).saturating_sub(arena.used());
                if units <= left { Ok(()) } else { Err(ContentsError::Full { memory_max: *memory_max }) }
            }
            Store::File(file) => file.reserve(units).map_err(|error| Self::of_file(file, error)),
        }
    }

    fn of_file(file: &Places, error: impl Into<PlacesError>) -> ContentsError {
        match error.into() {
            PlacesError::TooMany => ContentsError::TooMany,
            PlacesError::Io(error) => ContentsError::File { folder: file.folder().to_owned(), error },
        }
    }

    /// Keeps `data`, a whole unit, as a version of `lpn`. It replaces data that the version has already.
    ///
    /// # Errors
    /// When there is no room, or the file cannot be written. The version is then as before.
    ///
    /// # Panics
    /// When `data` has not the length of a unit, or the drive does not have `lpn`.
    pub fn write(&mut self, lpn: Lpn, version: u64, data: &[u8]) -> Result<(), ContentsError> {
        assert_eq!(data.len(), self.unit_bytes, "a version is a whole unit");
        if is_zero(data) {
            self.remove(lpn, version);
            return Ok(());
        }
        let entry = self.find(lpn, version);
        if let Some(entry) = entry.filter(|&entry| !self.is_bound(self.entries[entry].place)) {
            return self.fill(self.entries[entry].place, data);
        }
        let place = self.take_place()?;
        if let Err(error) = self.fill(place, data) {
            self.give_place_back(place);
            return Err(error);
        }
        match entry {
            Some(entry) => {
                let before = std::mem::replace(&mut self.entries[entry].place, place);
                self.give_place_back(before);
            }
            None => self.link(lpn, version, place),
        }
        Ok(())
    }

    /// Whether a checkpoint names a place, so that its bytes must stay as they are.
    fn is_bound(&self, place: u32) -> bool {
        matches!(&self.store, Store::File(file) if file.is_bound(place))
    }

    /// Keeps a version of `lpn` that is the version `base`, or zeros without one, except for `data` from byte `at` on.
    ///
    /// # Errors
    /// As [`Contents::write`], and when the file cannot be read.
    ///
    /// # Panics
    /// When the data ends beyond the unit, or the drive does not have `lpn`.
    pub fn write_part(
        &mut self,
        lpn: Lpn,
        version: u64,
        base: Option<u64>,
        at: u32,
        data: &[u8],
    ) -> Result<(), ContentsError> {
        let mut unit = std::mem::take(&mut self.scratch);
        unit.clear();
        let read = match base {
            Some(base) => self.read(lpn, base, &mut unit),
            None => {
                unit.resize(self.unit_bytes, 0);
                Ok(())
            }
        };
        let outcome = read.and_then(|()| {
            unit[at as usize..at as usize + data.len()].copy_from_slice(data);
            self.write(lpn, version, &unit)
        });
        self.scratch = unit;
        outcome
    }

    /// Appends a version of `lpn` to `out`, a whole unit. A version without data, and an LPN that the drive does not have,
    /// are zeros.
    ///
    /// # Errors
    /// When the file cannot be read. Nothing is appended then.
    pub fn read(&self, lpn: Lpn, version: u64, out: &mut Vec<u8>) -> Result<(), ContentsError> {
        self.read_part(lpn, version, 0, self.unit_bytes as u32, out)
    }

    /// Appends `len` bytes from byte `at` of a version of `lpn` to `out`.
    ///
    /// # Errors
    /// As [`Contents::read`].
    ///
    /// # Panics
    /// When the part ends beyond the unit.
    pub fn read_part(
        &self,
        lpn: Lpn,
        version: u64,
        at: u32,
        len: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), ContentsError> {
        let start = out.len();
        out.resize(start + len as usize, 0);
        let read = self.read_into(lpn, version, at, &mut out[start..]);
        if read.is_err() {
            out.truncate(start);
        }
        read
    }

    /// Reads a version of `lpn` from byte `at` on into `out`.
    ///
    /// # Errors
    /// As [`Contents::read`]; `out` is undefined then.
    ///
    /// # Panics
    /// When the part ends beyond the unit.
    pub fn read_into(&self, lpn: Lpn, version: u64, at: u32, out: &mut [u8]) -> Result<(), ContentsError> {
        let range = at as usize..at as usize + out.len();
        assert!(range.end <= self.unit_bytes, "the part is in the unit");
        let Some(entry) = self.find(lpn, version) else {
            out.fill(0);
            return Ok(());
        };
        let place = self.entries[entry].place;
        match &self.store {
            Store::Memory(arena, _) => {
                out.copy_from_slice(&arena.bytes(place)[range]);
                Ok(())
            }
            Store::File(file) => file.read(place, at, out).map_err(|error| Self::of_file(file, error)),
        }
    }

    /// A checkpoint of a kept drive begins: what it names is kept until the next one has its place. Returns the file of the
    /// data, which has to be on the disk before the checkpoint takes its place; `None` if there is none.
    ///
    /// # Errors
    /// When the file cannot be given away.
    pub(crate) fn begin_checkpoint(&mut self) -> io::Result<Option<File>> {
        match &mut self.store {
            Store::Memory(..) => Ok(None),
            Store::File(file) => file.begin_checkpoint(),
        }
    }

    /// The checkpoint that has begun last has its place on the disk, or, without `is_saved`, will not get it.
    pub(crate) fn end_checkpoint(&mut self, is_saved: bool) {
        if let Store::File(file) = &mut self.store {
            file.end_checkpoint(is_saved);
        }
    }

    /// Writes which versions of a kept drive have data, and where. The data stays in the file.
    pub(crate) fn save(&self, out: &mut StateWriter<'_>) {
        let Store::File(file) = &self.store else {
            return out.fail(io::Error::other("the data of the drive is in memory"));
        };
        file.save(out);
        self.newest.save_state(out);
        self.entries.save_state(out);
        self.free.save(out);
    }

    /// Takes over what [`Contents::save`] has written, and opens the file.
    ///
    /// # Errors
    /// When reading fails, the file is missing or another one, or the bytes cannot be.
    pub(crate) fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        let Store::File(file) = &mut self.store else {
            return Err(StateError::Damaged("it is of a drive whose data is in a file"));
        };
        file.load(from)?;
        self.newest.load_state(from)?;
        self.entries.load_state(from)?;
        self.free = Value::load(from)?;
        file.loaded(&used_places(&self.entries, self.free)?)
    }

    /// Drops a version of `lpn`; it reads as zeros afterwards.
    pub fn remove(&mut self, lpn: Lpn, version: u64) {
        self.retain_of(lpn.0.into(), |_, kept| kept != version);
    }

    /// Drops every version of which `keep` returns `false`. Visits LPNs in ascending order, and the versions of an LPN from
    /// the newest to the oldest.
    pub fn retain(&mut self, mut keep: impl FnMut(Lpn, u64) -> bool) {
        let mut from = 0;
        while let Some(lpn) = self.newest.next_used(from, u64::MAX) {
            self.retain_of(lpn, &mut keep);
            from = lpn + 1;
        }
    }

    /// Drops every version that is not among `kept`. Versions among `kept` that have no data are ignored.
    pub fn retain_only(&mut self, kept: impl Iterator<Item = (Lpn, u64)>) {
        let mut marks = vec![0u64; self.entries.len().div_ceil(64)];
        // The versions of a large drive are in no cache, so several are waited for at the same time.
        let (mut kept, mut together) = (kept.fuse(), [(Lpn(0), 0); TOGETHER]);
        loop {
            let mut count = 0;
            for (to, of) in together.iter_mut().zip(&mut kept) {
                self.newest.prefetch(of.0.0.into());
                *to = of;
                count += 1;
            }
            let now = &together[..count];
            for &(lpn, _) in now {
                if let Some(first) = self.newest.get(lpn.0.into()).checked_sub(1) {
                    prefetch(&raw const self.entries[first as usize]);
                }
            }
            for &(lpn, version) in now {
                if let Some(entry) = self.find(lpn, version) {
                    marks[entry / 64] |= 1 << (entry % 64);
                }
            }
            if count < TOGETHER {
                break;
            }
        }
        let mut from = 0;
        while let Some(lpn) = self.newest.next_used(from, u64::MAX) {
            self.retain_entries(lpn, |entry, _| marks[entry / 64] >> (entry % 64) & 1 == 1);
            from = lpn + 1;
        }
    }

    /// Drops the versions of one LPN of which `keep` returns `false`.
    fn retain_of(&mut self, lpn: u64, mut keep: impl FnMut(Lpn, u64) -> bool) {
        self.retain_entries(lpn, |_, version| keep(Lpn(lpn as u32), version));
    }

    /// Drops the versions of one LPN of which `keep`, with the number of the entry and the version, returns `false`.
    fn retain_entries(&mut self, lpn: u64, mut keep: impl FnMut(usize, u64) -> bool) {
        // The last entry that stays, of which `older` is to be set.
        let mut before: Option<usize> = None;
        let mut next = self.newest.get(lpn);
        while next != 0 {
            let number = next as usize - 1;
            let Entry { version, older, place } = self.entries[number];
            if keep(number, version) {
                before = Some(number);
            } else {
                match before {
                    Some(before) => self.entries[before].older = older,
                    None => {
                        self.newest.set(lpn, older);
                    }
                }
                self.give_place_back(place);
                self.entries[number].older = self.free;
                self.free = next;
            }
            next = older;
        }
    }

    /// The entry of a version.
    fn find(&self, lpn: Lpn, version: u64) -> Option<usize> {
        let mut next = self.newest.get(lpn.0.into());
        // Versions descend along the list.
        while next != 0 {
            let entry = self.entries[next as usize - 1];
            if entry.version <= version {
                return (entry.version == version).then_some(next as usize - 1);
            }
            next = entry.older;
        }
        None
    }

    /// Puts a version that has no entry into the list of its LPN.
    fn link(&mut self, lpn: Lpn, version: u64, place: u32) {
        let mut before: Option<usize> = None;
        let mut older = self.newest.get(lpn.0.into());
        while older != 0 && self.entries[older as usize - 1].version > version {
            before = Some(older as usize - 1);
            older = self.entries[older as usize - 1].older;
        }
        let entry = Entry { version, older, place };
        let number = match self.free {
            0 => {
                self.entries.push(entry);
                self.entries.len() as u32
            }
            number => {
                self.free = self.entries[number as usize - 1].older;
                self.entries[number as usize - 1] = entry;
                number
            }
        };
        match before {
            Some(before) => self.entries[before].older = number,
            None => {
                self.newest.set(lpn.0.into(), number);
            }
        }
    }

    /// A place for a unit.
    fn take_place(&mut self) -> Result<u32, ContentsError> {
        match &mut self.store {
            Store::Memory(arena, memory_max) => {
                if (arena.used() + 1) * self.unit_bytes as u64 > *memory_max {
                    return Err(ContentsError::Full { memory_max: *memory_max });
                }
                arena.take().ok_or(ContentsError::TooMany)
            }
            Store::File(file) => file.take().map_err(|error| Self::of_file(file, error)),
        }
    }

    fn give_place_back(&mut self, place: u32) {
        match &mut self.store {
            Store::Memory(arena, _) => arena.give_back(place),
            Store::File(file) => file.give_back(place),
        }
    }

    /// Writes a unit to a place.
    fn fill(&mut self, place: u32, data: &[u8]) -> Result<(), ContentsError> {
        match &mut self.store {
            Store::Memory(arena, _) => {
                arena.bytes_mut(place).copy_from_slice(data);
                Ok(())
            }
            Store::File(file) => file.write(place, data).map_err(|error| Self::of_file(file, error)),
        }
    }
}

/// The places of all entries that are not in the list of free ones, which begins with `free`.
fn used_places(entries: &[Entry], free: u32) -> Result<Vec<u32>, StateError> {
    let damaged = || StateError::Damaged("it has an entry of data that cannot be");
    let mut is_free = vec![false; entries.len()];
    let mut next = free;
    while next != 0 {
        let number = next as usize - 1;
        if is_free.get(number) != Some(&false) {
            return Err(damaged());
        }
        is_free[number] = true;
        next = entries[number].older;
    }
    let used = entries.iter().zip(is_free).filter(|&(_, is_free)| !is_free);
    let place = |(entry, _): (&Entry, bool)| {
        if entry.older as usize <= entries.len() { Ok(entry.place) } else { Err(damaged()) }
    };
    used.map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places::tests::path;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const UNIT: u32 = 96;
    const LPNS: u32 = 5;

    /// The twin: every version in a map, zeros too.
    type Twin = BTreeMap<(u32, u64), Vec<u8>>;

    #[derive(Clone, Debug)]
    enum Step {
        Write { lpn: u32, version: u64, byte: u8 },
        Part { lpn: u32, version: u64, base: Option<u64>, at: u32, len: u32, byte: u8 },
        Remove { lpn: u32, version: u64 },
        Retain { modulus: u64, keep: u64 },
        RetainOnly { modulus: u64, keep: u64 },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let lpn = 0..LPNS;
        let version = 0..12u64;
        // A third of the data is zeros.
        let byte = prop_oneof![Just(0u8), any::<u8>(), any::<u8>()];
        let step = prop_oneof![
            6 => (lpn.clone(), version.clone(), byte.clone())
                .prop_map(|(lpn, version, byte)| Step::Write { lpn, version, byte }),
            4 => (lpn.clone(), version.clone(), proptest::option::of(version.clone()), 0..UNIT, 1..=UNIT, byte).prop_map(
                |(lpn, version, base, at, len, byte)| Step::Part { lpn, version, base, at, len: len.min(UNIT - at), byte }
            ),
            2 => (lpn, version).prop_map(|(lpn, version)| Step::Remove { lpn, version }),
            1 => (1..4u64, 0..4u64).prop_map(|(modulus, keep)| Step::Retain { modulus, keep }),
            1 => (1..4u64, 0..4u64).prop_map(|(modulus, keep)| Step::RetainOnly { modulus, keep }),
        ];
        proptest::collection::vec(step, 1..120)
    }

    fn apply(contents: &mut Contents, twin: &mut Twin, step: &Step) {
        match *step {
            Step::Write { lpn, version, byte } => {
                let data = vec![byte; UNIT as usize];
                contents.write(Lpn(lpn), version, &data).unwrap();
                twin.insert((lpn, version), data);
            }
            Step::Part { lpn, version, base, at, len, byte } => {
                let zeros = vec![0; UNIT as usize];
                let mut data = base.and_then(|base| twin.get(&(lpn, base))).unwrap_or(&zeros).clone();
                let part = vec![byte; len as usize];
                data[at as usize..(at + len) as usize].copy_from_slice(&part);
                contents.write_part(Lpn(lpn), version, base, at, &part).unwrap();
                twin.insert((lpn, version), data);
            }
            Step::Remove { lpn, version } => {
                contents.remove(Lpn(lpn), version);
                twin.remove(&(lpn, version));
            }
            Step::RetainOnly { modulus, keep } => {
                let keeps = |lpn: u32, version: u64| (u64::from(lpn) + version) % modulus == keep;
                let all = (0..LPNS).flat_map(|lpn| (0..12).map(move |version| (lpn, version)));
                let kept = all.filter(|&(lpn, version)| keeps(lpn, version));
                contents.retain_only(kept.map(|(lpn, version)| (Lpn(lpn), version)));
                twin.retain(|&(lpn, version), _| keeps(lpn, version));
            }
            Step::Retain { modulus, keep } => {
                let mut visited = Vec::new();
                let keeps = |lpn: u32, version: u64| (u64::from(lpn) + version) % modulus != keep;
                contents.retain(|lpn, version| {
                    visited.push((lpn.0, std::cmp::Reverse(version)));
                    keeps(lpn.0, version)
                });
                assert!(visited.is_sorted(), "LPNs ascend, and the versions of each descend: {visited:?}");
                twin.retain(|&(lpn, version), _| keeps(lpn, version));
            }
        }
    }

    fn check(contents: &Contents, twin: &Twin) {
        for lpn in 0..LPNS {
            for version in 0..12 {
                let mut found = vec![7];
                contents.read(Lpn(lpn), version, &mut found).unwrap();
                let zeros = vec![0; UNIT as usize];
                let expected = twin.get(&(lpn, version)).unwrap_or(&zeros);
                assert_eq!(&found[1..], expected, "LPN {lpn}, version {version}");
                found.clear();
                contents.read_part(Lpn(lpn), version, 5, 9, &mut found).unwrap();
                assert_eq!(found, expected[5..14]);
            }
        }
        let with_data = twin.values().filter(|data| !is_zero(data)).count() as u64;
        assert_eq!(contents.versions(), with_data, "zeros take nothing, and what was dropped takes nothing");
    }

    proptest! {
        /// The store and its twin read the same, with the data in memory and in a file.
        #[test]
        fn contents_read_like_the_twin(steps in steps(), is_in_file in any::<bool>()) {
            let (path, memory_max) = (path(), if is_in_file { 0 } else { 1000 * u64::from(UNIT) });
            let mut contents = if is_in_file {
                Contents::kept(LPNS.into(), UNIT, &path)
            } else {
                Contents::new(LPNS.into(), UNIT, memory_max)
            };
            let mut twin = Twin::new();
            for step in &steps {
                apply(&mut contents, &mut twin, step);
                prop_assert!(contents.memory_bytes() <= memory_max);
                prop_assert_eq!(contents.memory_bytes() + contents.file_bytes(), contents.versions() * u64::from(UNIT));
            }
            check(&contents, &twin);
            contents.retain(|_, _| false);
            prop_assert_eq!(contents.versions(), 0);
            let _ = std::fs::remove_file(&path);
        }
    }

    #[test]
    fn data_beyond_the_memory_is_refused() {
        let mut contents = Contents::new(4, 4, 8);
        contents.write(Lpn(0), 1, b"aaaa").unwrap();
        contents.write(Lpn(0), 2, b"bbbb").unwrap();
        let refused = contents.write(Lpn(1), 3, b"cccc");
        assert!(matches!(refused, Err(ContentsError::Full { memory_max: 8 })), "{refused:?}");
        contents.write(Lpn(1), 4, &[0; 4]).expect("zeros need no room");
        contents.write(Lpn(0), 2, b"dddd").expect("a version that has data has its room");
        contents.remove(Lpn(0), 1);
        contents.write(Lpn(1), 3, b"cccc").expect("the room of a dropped version is free");
    }

    #[test]
    fn what_is_reserved_can_be_written() {
        let path = path();
        for is_in_file in [false, true] {
            let mut contents = if is_in_file { Contents::kept(8, 4, &path) } else { Contents::new(8, 4, 8) };
            contents.reserve(2).unwrap();
            assert_eq!(contents.reserve(3).is_ok(), is_in_file);
            contents.write(Lpn(0), 1, b"aaaa").unwrap();
            assert_eq!(contents.reserve(2).is_ok(), is_in_file);
            contents.reserve(1).unwrap();
            for lpn in 0..if is_in_file { 8 } else { 2 } {
                contents.write(Lpn(lpn), 1, b"bbbb").unwrap();
            }
        }
        let _ = std::fs::remove_file(&path);
    }

    #[test]
    fn a_folder_without_room_for_a_file_is_an_error_that_names_it() {
        let mut contents = Contents::kept(4, 4, Path::new("/nonexistent/folder/data"));
        let text = contents.write(Lpn(0), 1, b"aaaa").unwrap_err().to_string();
        assert!(text.contains("/nonexistent/folder"), "{text}");
        let mut out = Vec::new();
        contents.read(Lpn(0), 1, &mut out).unwrap();
        assert_eq!(out, [0; 4], "the version is as before");
        assert_eq!(contents.versions(), 0);
    }

    #[test]
    fn zeros_take_no_memory_on_a_large_drive() {
        let mut contents = Contents::new(1 << 28, 4096, 1 << 30);
        let zeros = vec![0; 4096];
        for lpn in 0..100_000 {
            contents.write(Lpn(lpn * 2_000), u64::from(lpn), &zeros).unwrap();
        }
        let Store::Memory(arena, _) = &contents.store else { panic!("the data is in memory") };
        assert_eq!((contents.versions(), arena.allocated_bytes()), (0, 0));
    }
}
