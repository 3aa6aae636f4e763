//! Saves and loads preconditioned drives.
//!
//! A snapshot contains the state that preconditioning makes: the LPN of every valid unit; of every superblock its P/E
//! cycles, its state, its mark, which has its consecutive copybacks, and how many of its units have been programmed or skipped; the next
//! unit of each open superblock of every lane; and the sequence number of the newest write. The file is little-endian;
//! it begins with a magic number, the geometry and the settings on which the state depends, and ends with a checksum. A
//! drive with another geometry or another such setting refuses to load the snapshot.

use super::Drive;
use crate::base::geometry::{LaneId, Lpn, SuperblockId, UnitId};
use crate::base::units::Time;
use crate::flash::{DEAD_LPN, Stamp, SuperblockState};
use crate::ftl::streams::FIXED_NUMBERS;
use crate::ftl::{COPYBACKS_MAX, STREAMS_MAX, StreamId};
use crate::probe::Probe;
use std::io::{self, Read, Write};

/// The largest number of units of a superblock whose count of programmed or skipped units takes 16 bits.
const SMALL_SUPERBLOCK: u32 = 0xffff;

const MAGIC: [u8; 8] = *b"nandlab7";

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
}

impl std::fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Damaged(what) => write!(f, "the file is not a complete saved drive: {what}"),
            Self::Mismatch(what, theirs, mine) => {
                write!(f, "the file was saved from a drive with {what} = {theirs}, but this drive has {mine}")
            }
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

/// Why a drive could not be saved.
#[derive(Debug)]
pub enum SaveError {
    /// Writing failed.
    Io(io::Error),
    /// Requests are outstanding, or operations are under way.
    UnderWay {
        /// Number of outstanding requests.
        requests: u32,
    },
    /// The write cache has this many dirty units.
    Dirty(u32),
}

impl std::fmt::Display for SaveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::UnderWay { requests: 0 } => write!(f, "operations are under way"),
            Self::UnderWay { requests: 1 } => write!(f, "1 request is outstanding"),
            Self::UnderWay { requests } => write!(f, "{requests} requests are outstanding"),
            Self::Dirty(1) => write!(f, "the write cache has 1 dirty unit"),
            Self::Dirty(units) => write!(f, "the write cache has {units} dirty units"),
        }
    }
}

impl std::error::Error for SaveError {}

impl From<io::Error> for SaveError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads or writes numbers with a running checksum (FNV-1a over words).
struct Numbers<T> {
    inner: T,
    sum: u64,
}

impl<T> Numbers<T> {
    fn new(inner: T) -> Self {
        Self { inner, sum: 0xcbf2_9ce4_8422_2325 }
    }

    fn add(&mut self, value: u64) {
        self.sum = (self.sum ^ value).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17);
    }
}

impl<W: Write> Numbers<W> {
    fn put(&mut self, value: u64) -> io::Result<()> {
        self.add(value);
        self.inner.write_all(&value.to_le_bytes())
    }

    fn put_u32(&mut self, value: u32) -> io::Result<()> {
        self.add(u64::from(value));
        self.inner.write_all(&value.to_le_bytes())
    }
}

impl<R: Read> Numbers<R> {
    fn get(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.inner.read_exact(&mut bytes)?;
        let value = u64::from_le_bytes(bytes);
        self.add(value);
        Ok(value)
    }

    fn get_u32(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.inner.read_exact(&mut bytes)?;
        let value = u32::from_le_bytes(bytes);
        self.add(u64::from(value));
        Ok(value)
    }
}

impl<P: Probe> Drive<P> {
    /// The properties in which a saved drive and the drive that loads it must agree, by the names that errors show. A
    /// superblock has one block of each plane of its lane. So the blocks of a plane, bad ones included, are the
    /// superblocks of a lane, missing ones included; and the pages of a block are the rows of a superblock.
    fn fingerprint(&self) -> [(&'static str, u64); 16] {
        let (g, shape) = (&self.core.geometry, self.core.first_shape());
        [
            ("drive.chips_per_channel", g.chips_per_channel.into()),
            ("drive.dies_per_chip", g.dies_per_chip.into()),
            ("drive.planes_per_die", g.planes_per_die().into()),
            ("ftl.mapping_unit (units of a page)", g.units_per_page.into()),
            ("ftl.superblock (blocks)", g.blocks_per_superblock().into()),
            ("drive.program_order (pages of a program)", shape.pages_per_program.into()),
            ("lanes", g.lanes.into()),
            ("drive.blocks_per_plane", g.superblocks_per_lane.into()),
            ("drive.bad_blocks, seed (bad blocks)", g.bad.blocks),
            ("drive.bad_blocks, seed (hash of the bad blocks by plane)", g.bad.fingerprint()),
            ("drive.pages_per_block", shape.rows.into()),
            ("drive.page_size (bytes)", g.page_bytes().into()),
            ("logical units", g.logical_units.into()),
            ("translation pages (ftl.map)", self.demand_map().map_or(0, |demand| demand.pages.len() as u64)),
            ("drive.channels", g.channels.into()),
            ("static allocation order", self.core.ftl.allocator.order_hash()),
        ]
    }

    /// The number of open superblocks of a lane in a file, by the numbers of the streams. Unused numbers are 0.
    fn saved_streams(&self) -> usize {
        let streams = &self.core.ftl.streams;
        let last = streams.ids().map(|stream| streams.spec(stream).number).max();
        usize::from(last.unwrap_or_default() + 1).max(FIXED_NUMBERS.into())
    }

    /// Checks that a snapshot by [`Drive::save`] would contain all data of the host.
    ///
    /// # Errors
    /// While operations are under way, and while the write cache has dirty units.
    pub fn may_save(&self) -> Result<(), SaveError> {
        let mut lanes = (0..self.core.geometry.lanes).map(LaneId);
        if !self.is_at_rest() || lanes.any(|lane| self.core.has_job(lane)) {
            return Err(SaveError::UnderWay { requests: self.outstanding() });
        }
        match self.cache_units() {
            [_, _, 0] => Ok(()),
            [_, _, dirty] => Err(SaveError::Dirty(dirty)),
        }
    }

    /// Writes the drive's state.
    ///
    /// # Errors
    /// When writing fails, while operations are under way, and while the write cache has dirty units.
    pub fn save(&self, out: impl Write) -> Result<(), SaveError> {
        self.may_save()?;
        let mut out = Numbers::new(io::BufWriter::with_capacity(1 << 20, out));
        out.inner.write_all(&MAGIC)?;
        for (_, value) in self.fingerprint() {
            out.put(value)?;
        }
        out.put(self.core.sequence)?;
        // Some policies depend on the order in which superblocks were closed. So superblocks are saved in the order of
        // the times at which they were last closed, and of their numbers if the times are equal, as in preconditioning.
        let mut order: Vec<u32> = (0..self.core.geometry.superblocks).collect();
        order.sort_by_key(|&superblock| {
            (self.core.array.superblocks[superblock as usize].closed_at, superblock)
        });
        for id in order {
            let superblock = self.core.array.superblock(SuperblockId(id));
            out.put_u32(id)?;
            out.put_u32(superblock.pe_cycles)?;
            let mark = u32::from(superblock.mark) << 24;
            let used = self.units_before_next(SuperblockId(id));
            out.put_u32(mark | (used & 0xffff) << 8 | superblock.state as u32)?;
            if self.core.first_shape().units > SMALL_SUPERBLOCK {
                out.put_u32(used >> 16)?;
            }
            for index in 0..used {
                let unit = self.core.geometry.unit(SuperblockId(id), index);
                // Combination pages have no data of the host. Links to them are not saved, so combination pages are
                // saved as invalid.
                let is_valid = self.core.ftl.is_valid(&self.core.geometry, unit)
                    && !self.core.ftl.is_combination(self.core.array.lpn(unit));
                out.put_u32(if is_valid { self.core.array.lpn(unit).0 } else { DEAD_LPN })?;
            }
        }
        let streams = &self.core.ftl.streams;
        for lane in self.core.ftl.lanes.iter() {
            let open = lane.open_superblocks();
            for number in 0..self.saved_streams() {
                out.put(streams.numbered(number).map_or(0, |stream| open[stream.index()]))?;
            }
        }
        let sum = out.sum;
        out.inner.write_all(&sum.to_le_bytes())?;
        Ok(out.inner.flush()?)
    }

    /// The number of units of a superblock, the first ones, that have been programmed or skipped. In an open superblock
    /// on several dies of which the stream uses only LSB pages, some dies may have skipped further units: only the
    /// units before the next unit of the stream count.
    fn units_before_next(&self, superblock: SuperblockId) -> u32 {
        let Self { core, .. } = self;
        let programmed = core.array.superblock(superblock).programmed;
        if core.geometry.dies_per_lane == 1
            || core.array.superblock(superblock).state != SuperblockState::Open
        {
            return programmed;
        }
        let open = core.ftl.lanes[core.geometry.lane_of(superblock).index()].open_superblocks();
        let nexts = open.iter().filter_map(|&entry| entry.checked_sub(1)).map(|next| UnitId(next as u32));
        let mut nexts = nexts.map(|next| core.geometry.split(next));
        nexts.find(|&(of, _)| of == superblock).map_or(programmed, |(_, index)| index)
    }

    /// Loads a saved state into a fresh drive.
    ///
    /// # Errors
    /// When reading fails, or the file is damaged or of another drive. After an error the drive must not be used.
    ///
    /// # Panics
    /// On a drive that has been written.
    pub fn load(&mut self, input: impl Read) -> Result<(), SnapshotError> {
        assert!(self.is_fresh(), "only a fresh drive can be loaded");
        let mut input = Numbers::new(io::BufReader::with_capacity(1 << 20, input));
        let mut magic = [0; 8];
        input.inner.read_exact(&mut magic)?;
        if magic != MAGIC {
            return Err(SnapshotError::Damaged("it does not begin with the magic number"));
        }
        for (what, mine) in self.fingerprint() {
            let theirs = input.get()?;
            if theirs != mine {
                return Err(SnapshotError::Mismatch(what, theirs, mine));
            }
        }
        self.core.sequence = input.get()?;
        let mut closed = Vec::new();
        for _ in 0..self.core.geometry.superblocks {
            let (id, pe_cycles, packed) = (input.get_u32()?, input.get_u32()?, input.get_u32()?);
            let (mark, mut used, state) = ((packed >> 24) as u8, packed >> 8 & 0xffff, packed & 0xff);
            if self.core.first_shape().units > SMALL_SUPERBLOCK {
                used |= input.get_u32()? << 16;
            }
            let is_mark = mark <= COPYBACKS_MAX || self.core.ftl.streams.marked(mark).is_some();
            let is_in_range = id < self.core.geometry.superblocks && is_mark;
            if !is_in_range || used > self.core.first_shape().units {
                return Err(SnapshotError::Damaged("a superblock is out of range"));
            }
            let state = match state {
                0 => SuperblockState::Free,
                1 => SuperblockState::Open,
                2 => SuperblockState::Full,
                4 => SuperblockState::Retired,
                5 => SuperblockState::Bad,
                _ => return Err(SnapshotError::Damaged("a superblock is in an impossible state")),
            };
            let id = SuperblockId(id);
            let superblock = self.core.array.superblock_mut(id);
            if (state == SuperblockState::Bad) != (superblock.state == SuperblockState::Bad) {
                return Err(SnapshotError::Damaged("it has other superblocks than this drive"));
            }
            superblock.pe_cycles = pe_cycles;
            superblock.mark = mark;
            superblock.state = state;
            self.core.array.skip_to(id, used);
            let corrected = self.core.physics.initial_ages.of(id);
            for index in 0..used {
                let (lpn, unit) = (Lpn(input.get_u32()?), self.core.geometry.unit(id, index));
                self.core.array.stage(unit, lpn, Stamp { sequence: 0, corrected });
                if lpn.0 == DEAD_LPN {
                    continue;
                }
                if lpn.0 >= self.core.ftl.map.len() || self.core.ftl.map.get(lpn).is_some() {
                    return Err(SnapshotError::Damaged("an LPN is out of range or mapped twice"));
                }
                self.core.ftl.remap(&self.core.geometry, &mut self.core.array, lpn, unit);
            }
            if state == SuperblockState::Full {
                closed.push(id);
            }
        }
        for lane in (0..self.core.geometry.lanes).map(LaneId) {
            // By the number of the stream, as in `Lane::open_superblocks`: 1 + the next unit, or 0.
            let open: Vec<u64> = (0..self.saved_streams()).map(|_| input.get()).collect::<io::Result<_>>()?;
            let geometry = &self.core.geometry;
            let first = geometry.first_superblock(lane);
            let end = SuperblockId(first.0 + geometry.superblocks_per_lane);
            let [first, end] = [first, end].map(|superblock| u64::from(geometry.unit(superblock, 0).0));
            if open.iter().any(|&entry| entry != 0 && !(first + 1..end + 1).contains(&entry)) {
                return Err(SnapshotError::Damaged("an open superblock is in another lane"));
            }
            let mut nexts = [None; STREAMS_MAX];
            for (number, entry) in open.into_iter().enumerate() {
                let Some(next) = entry.checked_sub(1).map(|unit| UnitId(unit as u32)) else { continue };
                let ftl = &self.core.ftl;
                let is_used = |&stream: &StreamId| stream != StreamId::GC || !ftl.shares_first_superblock;
                match ftl.streams.numbered(number).filter(is_used) {
                    Some(stream) => nexts[stream.index()] = Some(next),
                    // A superblock to which no unit will be written any more is closed.
                    None => {
                        let superblock = self.core.geometry.superblock_of(next);
                        self.core.array.skip_to(superblock, self.core.shape(superblock).units);
                        closed.push(superblock);
                    }
                }
            }
            self.core.ftl.restore_lane(&self.core.geometry, &self.core.array, lane, nexts);
        }
        let sum = input.sum;
        let mut end = [0; 8];
        input.inner.read_exact(&mut end)?;
        if u64::from_le_bytes(end) != sum {
            return Err(SnapshotError::Damaged("the checksum is wrong"));
        }
        if io::copy(&mut input.inner.take(1), &mut io::sink())? > 0 {
            return Err(SnapshotError::Damaged("bytes follow its end"));
        }
        for superblock in closed {
            self.core.ftl.close(&self.core.geometry, &mut self.core.array, superblock, Time::START);
        }
        if let Some(mapping) = &mut self.path.map {
            mapping.demand.trust_flash(&self.core.ftl.map);
        }
        self.preconditioned_mechanisms().expect("the map of a loaded drive has nothing to write");
        // A file that was not written by `save` may have a correct checksum.
        self.audit().map_err(|_| SnapshotError::Damaged("it does not pass the audit"))
    }
}
