//! Saves and loads preconditioned drives.
//!
//! A snapshot contains the state that preconditioning makes: LPN and validity of every page, wear and state of every
//! block, and the open blocks of every plane. The file is little-endian; it begins with a magic number, the geometry
//! and the settings on which the state depends, and ends with a checksum. A drive with another geometry or another
//! such setting refuses to load the snapshot.

use super::Drive;
use crate::base::geometry::{BlockId, Lpn, PlaneId, Ppn};
use crate::base::units::Time;
use crate::flash::{BlockState, DEAD_LPN, Stamp};
use crate::ftl::{COPYBACKS_MAX, WearLevelling, WriteStream};
use crate::probe::Probe;
use std::io::{self, Read, Write};

/// The largest number of pages of a block whose count of programmed pages takes 16 bits.
const SMALL_BLOCK: u32 = 0xffff;

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
    /// The write cache has this many dirty pages.
    Dirty(u32),
}

impl std::fmt::Display for SaveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::UnderWay { requests: 0 } => write!(f, "operations are under way"),
            Self::UnderWay { requests: 1 } => write!(f, "1 request is outstanding"),
            Self::UnderWay { requests } => write!(f, "{requests} requests are outstanding"),
            Self::Dirty(1) => write!(f, "the write cache has 1 dirty page"),
            Self::Dirty(pages) => write!(f, "the write cache has {pages} dirty pages"),
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
    /// The properties in which a saved drive and the drive that loads it must agree.
    fn fingerprint(&self) -> [(&'static str, u64); 16] {
        let g = &self.core.geometry;
        [
            ("drive.chips_per_channel", g.chips_per_channel.into()),
            ("drive.dies_per_chip", g.dies_per_chip.into()),
            ("drive.planes_per_die", g.flash_planes_per_die().into()),
            ("ftl.mapping_unit (units of a page)", g.units_per_page.into()),
            ("ftl.superblock (blocks)", g.flash_blocks_per_block().into()),
            ("drive.program_order (pages of a program)", g.flash_pages_per_program.into()),
            ("planes", g.planes.into()),
            ("drive.blocks_per_plane", g.blocks_per_plane.into()),
            ("drive.bad_blocks, seed (bad blocks)", g.bad.flash_blocks),
            ("drive.bad_blocks, seed (hash of the bad blocks by plane)", g.bad.fingerprint()),
            ("drive.pages_per_block", g.rows_per_block().into()),
            ("drive.page_size (bytes)", g.flash_page_bytes().into()),
            ("logical pages", g.logical_pages.into()),
            ("translation pages (ftl.map)", self.demand_map().map_or(0, |demand| demand.pages.len() as u64)),
            ("drive.channels", g.channels.into()),
            ("static allocation order", self.core.ftl.allocator.order_hash()),
        ]
    }

    /// Whether this drive ever writes pages to `stream`.
    fn uses(&self, stream: WriteStream) -> bool {
        let spec = self.spec();
        match stream {
            WriteStream::Host => true,
            WriteStream::Gc => !self.core.ftl.shares_first_block,
            WriteStream::Wear => spec.ftl.wear_levelling == WearLevelling::Static,
            WriteStream::Mapping => self.demand_map().is_some(),
            WriteStream::Combination => spec.refresh.policy.partial().is_some(),
            WriteStream::Copyback(n) => n <= spec.migration.policy.copybacks_max(),
        }
    }

    /// Checks that a snapshot by [`Drive::save`] would contain all data of the drive.
    ///
    /// # Errors
    /// While operations are under way, and while the write cache has dirty pages.
    pub fn may_save(&self) -> Result<(), SaveError> {
        let mut planes = (0..self.core.geometry.planes).map(PlaneId);
        if !self.is_at_rest() || planes.any(|plane| self.core.has_job(plane)) {
            return Err(SaveError::UnderWay { requests: self.outstanding() });
        }
        match self.cache_pages() {
            [_, _, 0] => Ok(()),
            [_, _, dirty] => Err(SaveError::Dirty(dirty)),
        }
    }

    /// Writes the drive's state.
    ///
    /// # Errors
    /// When writing fails, while operations are under way, and while the write cache has dirty pages.
    pub fn save(&self, out: impl Write) -> Result<(), SaveError> {
        self.may_save()?;
        let mut out = Numbers::new(io::BufWriter::with_capacity(1 << 20, out));
        out.inner.write_all(&MAGIC)?;
        for (_, value) in self.fingerprint() {
            out.put(value)?;
        }
        out.put(self.core.sequence)?;
        // Blocks are saved in the order in which they were closed, because some policies depend on this order.
        let mut order: Vec<u32> = (0..self.core.geometry.blocks).collect();
        order.sort_by_key(|&block| (self.core.array.blocks[block as usize].closed_at, block));
        for id in order {
            let block = self.core.array.block(BlockId(id));
            out.put_u32(id)?;
            out.put_u32(block.pe_cycles)?;
            let copybacks = u32::from(block.copybacks) << 24;
            let programmed = self.pages_before_next(BlockId(id));
            out.put_u32(copybacks | (programmed & 0xffff) << 8 | block.state as u32)?;
            if self.core.geometry.pages_per_block > SMALL_BLOCK {
                out.put_u32(programmed >> 16)?;
            }
            for page in 0..programmed {
                let ppn = self.core.geometry.page(BlockId(id), page);
                // Links are not saved, so combination pages are saved as invalid.
                let is_valid = self.core.ftl.is_valid(&self.core.geometry, ppn)
                    && !self.core.ftl.is_combination(self.core.array.lpn(ppn));
                out.put_u32(if is_valid { self.core.array.lpn(ppn).0 } else { DEAD_LPN })?;
            }
        }
        for plane in self.core.ftl.planes.iter() {
            for next in plane.open_blocks() {
                out.put(next)?;
            }
        }
        let sum = out.sum;
        out.inner.write_all(&sum.to_le_bytes())?;
        Ok(out.inner.flush()?)
    }

    /// The pages of a block that have been programmed or skipped. In an open block on several dies with LSB pages only some
    /// dies have skipped more pages than those before the next one of the stream.
    fn pages_before_next(&self, block: BlockId) -> u32 {
        let Self { core, .. } = self;
        let programmed = core.array.block(block).programmed;
        if core.geometry.dies_per_block == 1 || core.array.block(block).state != BlockState::Open {
            return programmed;
        }
        let streams = core.ftl.planes[core.geometry.plane_of(block).index()].open_blocks();
        let nexts = streams.iter().filter_map(|&next| next.checked_sub(1)).map(|next| Ppn(next as u32));
        let mut splits = nexts.map(|next| core.geometry.split(next));
        splits.find(|&(of, _)| of == block).map_or(programmed, |(_, next)| next)
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
        for _ in 0..self.core.geometry.blocks {
            let (id, pe_cycles, packed) = (input.get_u32()?, input.get_u32()?, input.get_u32()?);
            let (copybacks, mut programmed, state) =
                ((packed >> 24) as u8, packed >> 8 & 0xffff, packed & 0xff);
            if self.core.geometry.pages_per_block > SMALL_BLOCK {
                programmed |= input.get_u32()? << 16;
            }
            let is_in_range = id < self.core.geometry.blocks && copybacks <= COPYBACKS_MAX;
            if !is_in_range || programmed > self.core.geometry.pages_per_block {
                return Err(SnapshotError::Damaged("a block is out of range"));
            }
            let state = match state {
                0 => BlockState::Free,
                1 => BlockState::Open,
                2 => BlockState::Full,
                4 => BlockState::Retired,
                5 => BlockState::Bad,
                _ => return Err(SnapshotError::Damaged("a block is in an impossible state")),
            };
            let id = BlockId(id);
            let block = self.core.array.block_mut(id);
            if (state == BlockState::Bad) != (block.state == BlockState::Bad) {
                return Err(SnapshotError::Damaged("a bad block is in use"));
            }
            block.pe_cycles = pe_cycles;
            block.copybacks = copybacks;
            block.state = state;
            self.core.array.skip_to(id, programmed);
            let corrected = self.core.physics.initial_ages.of(id);
            for page in 0..programmed {
                let (lpn, ppn) = (Lpn(input.get_u32()?), self.core.geometry.page(id, page));
                self.core.array.stage(ppn, lpn, Stamp { sequence: 0, corrected });
                if lpn.0 == DEAD_LPN {
                    continue;
                }
                if lpn.0 >= self.core.ftl.map.len() || self.core.ftl.map.get(lpn).is_some() {
                    return Err(SnapshotError::Damaged("an LPN is out of range or mapped twice"));
                }
                self.core.ftl.remap(&self.core.geometry, &mut self.core.array, lpn, ppn);
            }
            if state == BlockState::Full {
                closed.push(id);
            }
        }
        for plane in (0..self.core.geometry.planes).map(PlaneId) {
            let mut open = [0; crate::ftl::STREAMS];
            for next in &mut open {
                *next = input.get()?;
            }
            let (first, end) = (
                u64::from(self.core.geometry.page(self.core.geometry.first_block(plane), 0).0),
                u64::from(self.core.geometry.pages_per_plane),
            );
            if open.iter().any(|&next| next != 0 && !(first + 1..first + end + 1).contains(&next)) {
                return Err(SnapshotError::Damaged("an open block is in another plane"));
            }
            let mut at = open.map(|next| next.checked_sub(1).map(|ppn| Ppn(ppn as u32)));
            for stream in WriteStream::all() {
                // A block to which no page will be written any more is closed.
                if !self.uses(stream)
                    && let Some(next) = at[stream.index()].take()
                {
                    let block = self.core.geometry.block_of(next);
                    self.core.array.skip_to(block, self.core.geometry.pages_per_block);
                    closed.push(block);
                }
            }
            self.core.ftl.restore_plane(&self.core.geometry, &self.core.array, plane, at);
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
        for block in closed {
            self.core.ftl.close(&self.core.geometry, &mut self.core.array, block, Time::START);
        }
        if let Some(mapping) = &mut self.path.map {
            mapping.demand.trust_flash(&self.core.ftl.map);
        }
        self.note_at_rest();
        // A file that was not written by `save` may have a correct checksum.
        self.audit().map_err(|_| SnapshotError::Damaged("it does not pass the audit"))
    }
}
