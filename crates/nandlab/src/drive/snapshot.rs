//! Saves and loads preconditioned drives.
//!
//! A snapshot contains the state that preconditioning makes: the LPN of every valid unit; of every superblock its P/E
//! cycles, its state, the number of its shape, the mark of its stream, from which its consecutive copybacks follow, and
//! how many of its units have been programmed or skipped; the next unit of each open superblock of every lane, by the
//! numbers of the streams; and the sequence number of the newest write.
//!
//! `core/sections.rs` has the format of the file. The sections, in this order:
//!
//! | section | content |
//! |---|---|
//! | `drive` | the geometry and the settings on which the state depends; the sequence number |
//! | those of mechanisms | see [`Mechanism::save`]; in the order of the list of mechanisms |
//! | `placement` | on a drive with placement handles: see `drive/saved_placement.rs` |
//! | `superblocks` | the superblocks and their units |
//! | `lanes` | the open superblocks |
//!
//! A drive with another geometry or another such setting refuses to load the snapshot. A mechanism without a section
//! begins empty, unless it cannot; a section that no mechanism of the drive loads is refused.

use super::Drive;
use super::mechanisms::each_mechanism;
use crate::base::geometry::{LaneId, Lpn, SuperblockId, UnitId};
use crate::base::units::Time;
pub use crate::core::SnapshotError;
use crate::core::{
    Core, Mechanism, Offline, SavedSuperblock, Section, SectionKind, SectionReader, SectionWriter,
};
use crate::flash::{DEAD_LPN, ShapeId, SuperblockState};
use crate::ftl::streams::FIXED_NUMBERS;
use crate::ftl::{STREAMS_MAX, StreamId};
use crate::probe::Probe;
use std::io::{self, Read, Write};

/// The largest number of units of a superblock whose count of programmed or skipped units takes 16 bits.
const SMALL_SUPERBLOCK: u32 = 0xffff;

const DRIVE: SectionKind = SectionKind { name: "drive", version: 1 };
const SUPERBLOCKS: SectionKind = SectionKind { name: "superblocks", version: 1 };
const LANES: SectionKind = SectionKind { name: "lanes", version: 1 };

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
    /// The drive has a policy from outside, so it has no checkpoints.
    Outside {
        /// The spec key of the policy's slot.
        slot: &'static str,
        /// The name of the policy.
        name: String,
    },
    /// The drive has failed, so it has no checkpoints.
    Failed,
    /// Power is off, so the drive has no checkpoint now.
    Off,
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
            Self::Outside { slot, name } => write!(
                f,
                "the state of the policy {name} cannot be saved, because it is not built in: set {slot} to a policy of \
                 nandlab"
            ),
            Self::Failed => write!(f, "the drive has failed, so it cannot go on from a checkpoint"),
            Self::Off => write!(f, "power is off: switch the drive on first"),
        }
    }
}

impl std::error::Error for SaveError {}

impl From<io::Error> for SaveError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The section of a mechanism, if the file has one: gives it to the mechanism.
fn load_mechanism<P: Probe, M: Mechanism<P>>(
    mechanism: &mut M,
    core: &Core<P>,
    sections: &mut Vec<Section>,
) -> Result<(), SnapshotError> {
    let Some(kind) = M::SECTION else { return Ok(()) };
    let mut section = Section::take(sections, kind)?;
    mechanism.load(core, section.as_mut())?;
    section.as_ref().map_or(Ok(()), Section::end)
}

impl<P: Probe> Drive<P> {
    /// The properties in which a saved drive and the drive that loads it must agree, by the names that errors show. A
    /// superblock has one block of each plane of its lane. So the blocks of a plane, bad ones included, are the
    /// superblocks of a lane, missing ones included; and the pages of a block are the rows of a superblock.
    fn fingerprint(&self) -> [(&'static str, u64); 15] {
        let (g, shape) = (self.core.geometry(), self.core.first_shape());
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
            ("drive.channels", g.channels.into()),
            ("static allocation order", self.core.ftl().allocator.order_hash()),
        ]
    }

    /// The number of open superblocks of a lane in a file, by the numbers of the streams. Unused numbers are 0.
    fn saved_streams(&self) -> usize {
        let streams = self.core.streams();
        let last = streams.ids().map(|stream| streams.spec(stream).number).max();
        usize::from(last.unwrap_or_default() + 1).max(FIXED_NUMBERS.into())
    }

    /// Checks that a snapshot by [`Drive::save`] would contain all data of the host.
    ///
    /// # Errors
    /// While operations are under way, and while the write cache has dirty units.
    pub fn may_save(&self) -> Result<(), SaveError> {
        let mut lanes = (0..self.core.geometry().lanes).map(LaneId);
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
        let mut sections = Vec::new();
        each_mechanism!(&self, |mechanism| sections.extend(mechanism.save(&self.core)));
        sections.extend(self.save_placement());
        let mut out = SectionWriter::new(out, sections.len() + 3)?;
        let fingerprint = self.fingerprint();
        out.begin(DRIVE, 8 * (fingerprint.len() as u64 + 1))?;
        for (_, value) in fingerprint {
            out.put(value)?;
        }
        out.put(self.core.sequence())?;
        sections.iter().try_for_each(|section| out.write(section))?;
        // Some policies depend on the order in which superblocks were closed. So superblocks are saved in the order of
        // the times at which they were last closed, and of their numbers if the times are equal, as in preconditioning.
        let mut order: Vec<u32> = (0..self.core.geometry().superblocks).collect();
        order.sort_by_key(|&superblock| {
            (self.core.flash().superblocks[superblock as usize].closed_at, superblock)
        });
        let is_small = self.core.first_shape().units <= SMALL_SUPERBLOCK;
        let of_superblock = if is_small { 12 } else { 16 };
        let used = order.iter().map(|&id| u64::from(self.units_before_next(SuperblockId(id)))).sum::<u64>();
        out.begin(SUPERBLOCKS, of_superblock * order.len() as u64 + 4 * used)?;
        for id in order {
            let superblock = self.core.superblock(SuperblockId(id));
            out.put_u32(id)?;
            out.put_u32(superblock.pe_cycles)?;
            let (mark, shape) = (superblock.mark, self.core.flash().shape_id(SuperblockId(id)).number());
            let used = self.units_before_next(SuperblockId(id));
            let state = u32::from(shape) << 4 | superblock.state as u32;
            out.put_u32(u32::from(mark) << 24 | (used & 0xffff) << 8 | state)?;
            if !is_small {
                out.put_u32(used >> 16)?;
            }
            for index in 0..used {
                let unit = self.core.geometry().unit(SuperblockId(id), index);
                // Combination pages have no data of the host. Links to them are not saved, so combination pages are
                // saved as invalid.
                let is_valid =
                    self.core.is_valid(unit) && !self.core.ftl().is_combination(self.core.flash().lpn(unit));
                out.put_u32(if is_valid { self.core.flash().lpn(unit).0 } else { DEAD_LPN })?;
            }
        }
        let streams = self.core.streams();
        let saved_streams = self.saved_streams();
        out.begin(LANES, 8 * self.core.ftl().lanes.len() as u64 * saved_streams as u64)?;
        for lane in self.core.ftl().lanes.iter() {
            let open = lane.open_superblocks();
            for number in 0..saved_streams {
                out.put(streams.numbered(number).map_or(0, |stream| open[stream.index()]))?;
            }
        }
        Ok(out.finish()?)
    }

    /// The number of units of a superblock, the first ones, that have been programmed or skipped. In an open superblock
    /// on several dies of which the stream uses only LSB pages, some dies may have skipped further units: only the
    /// units before the next unit of the stream count.
    fn units_before_next(&self, superblock: SuperblockId) -> u32 {
        let Self { core, .. } = self;
        let programmed = core.superblock(superblock).programmed;
        if core.geometry().dies_per_lane == 1 || core.superblock(superblock).state != SuperblockState::Open {
            return programmed;
        }
        let open = core.ftl().lanes[core.geometry().lane_of(superblock).index()].open_superblocks();
        let nexts = open.iter().filter_map(|&entry| entry.checked_sub(1)).map(|next| UnitId(next as u32));
        let mut nexts = nexts.map(|next| core.geometry().split(next));
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
        let mut input = SectionReader::new(input)?;
        input.begin(DRIVE)?;
        for (what, mine) in self.fingerprint() {
            let theirs = input.get()?;
            if theirs != mine {
                return Err(SnapshotError::Mismatch(what, theirs, mine));
            }
        }
        let sequence = input.get()?;
        let mut sections = input.before(SUPERBLOCKS)?;
        each_mechanism!(&mut self, |mechanism| load_mechanism(mechanism, &self.core, &mut sections)?);
        let mut placement = self.take_placement(&mut sections)?;
        if let Some(section) = sections.first() {
            return Err(SnapshotError::UnknownSection(section.name()));
        }
        Offline::new(&mut self.core).set_sequence(sequence);
        input.begin(SUPERBLOCKS)?;
        let mut closed = Vec::new();
        for _ in 0..self.core.geometry().superblocks {
            let (id, pe_cycles, packed) = (input.get_u32()?, input.get_u32()?, input.get_u32()?);
            let (mark, mut used) = ((packed >> 24) as u8, packed >> 8 & 0xffff);
            let (shape, state) = ((packed >> 4 & 0xf) as u8, packed & 0xf);
            if self.core.first_shape().units > SMALL_SUPERBLOCK {
                used |= input.get_u32()? << 16;
            }
            let mark = self.core.streams().loaded_mark(mark);
            let mark = mark.filter(|_| id < self.core.geometry().superblocks);
            let state = match state {
                0 => SuperblockState::Free,
                1 => SuperblockState::Open,
                2 => SuperblockState::Full,
                4 => SuperblockState::Retired,
                5 => SuperblockState::Bad,
                6 => SuperblockState::Cached,
                _ => return Err(SnapshotError::Damaged("a superblock is in an impossible state")),
            };
            let shapes = self.core.flash().shapes();
            let fits = |&shape: &ShapeId| {
                used <= shapes[shape].units && (shape == ShapeId::FIRST || state != SuperblockState::Free)
            };
            let (Some(mark), Some(shape)) = (mark, shapes.numbered(shape).filter(fits)) else {
                return Err(SnapshotError::Damaged("a superblock is out of range"));
            };
            let id = SuperblockId(id);
            let mut offline = Offline::new(&mut self.core);
            let saved = SavedSuperblock { pe_cycles, mark, state, shape, used };
            let corrected = offline
                .load_superblock(id, &saved)
                .ok_or(SnapshotError::Damaged("it has other superblocks than this drive"))?;
            for index in 0..used {
                let (lpn, unit) = (Lpn(input.get_u32()?), offline.geometry().unit(id, index));
                if !offline.load_unit(unit, lpn, corrected) {
                    return Err(SnapshotError::Damaged("an LPN is out of range or mapped twice"));
                }
            }
            if state.is_closed() {
                closed.push(id);
            }
        }
        self.load_placement(&mut placement)?;
        input.begin(LANES)?;
        // The drive that was saved may have had other streams.
        let numbers = input.left() / 8 / u64::from(self.core.geometry().lanes);
        for lane in (0..self.core.geometry().lanes).map(LaneId) {
            // By the number of the stream, as in `Lane::open_superblocks`: 1 + the next unit, or 0.
            let open: Vec<u64> = (0..numbers).map(|_| input.get()).collect::<Result<_, _>>()?;
            let geometry = self.core.geometry();
            let first = geometry.first_superblock(lane);
            let end = SuperblockId(first.0 + geometry.superblocks_per_lane);
            let [first, end] = [first, end].map(|superblock| u64::from(geometry.unit(superblock, 0).0));
            if open.iter().any(|&entry| entry != 0 && !(first + 1..end + 1).contains(&entry)) {
                return Err(SnapshotError::Damaged("an open superblock is in another lane"));
            }
            let mut nexts = [None; STREAMS_MAX];
            for (number, entry) in open.into_iter().enumerate() {
                let Some(next) = entry.checked_sub(1).map(|unit| UnitId(unit as u32)) else { continue };
                let ftl = self.core.ftl();
                let is_used = |&stream: &StreamId| stream != StreamId::GC || !ftl.shares_first_superblock;
                let has_mark = |&stream: &StreamId| self.may_continue(stream, next);
                match ftl.streams.numbered(number).filter(is_used).filter(has_mark) {
                    Some(stream) => nexts[stream.index()] = Some(next),
                    // A superblock to which no unit will be written any more is closed.
                    None => {
                        let superblock = self.core.geometry().superblock_of(next);
                        let units = self.core.shape(superblock).units;
                        Offline::new(&mut self.core).skip_to(superblock, units);
                        closed.push(superblock);
                    }
                }
            }
            Offline::new(&mut self.core).restore_lane(lane, nexts);
        }
        input.finish()?;
        self.load_open_units(placement)?;
        let mut offline = Offline::new(&mut self.core);
        for superblock in closed {
            offline.close(superblock, Time::START);
        }
        self.loaded();
        // A file that was not written by `save` may have a correct checksum.
        self.audit().map_err(|_| SnapshotError::Damaged("it does not pass the audit"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::geometry::{Cell, KindTimes, ProgramOrder};
    use crate::base::units::{MS, US};
    use crate::core::testing::Setup;
    use crate::drive::spec;
    use crate::flash::{Ageing, CellTimes, EccSpec, ProgramTime, Shape, StartLevel};
    use crate::probe::NoProbe;

    /// A mechanism whose state is a number, and which can begin with 0.
    #[derive(Debug, Default, PartialEq)]
    struct Number(u64);

    const NUMBER: SectionKind = SectionKind { name: "number", version: 4 };

    impl Mechanism<NoProbe> for Number {
        const SECTION: Option<SectionKind> = Some(NUMBER);

        fn save(&self, _core: &Core<NoProbe>) -> Option<Section> {
            let mut section = Section::new(NUMBER);
            section.put(self.0);
            (self.0 > 0).then_some(section)
        }

        fn load(&mut self, _core: &Core<NoProbe>, from: Option<&mut Section>) -> Result<(), SnapshotError> {
            self.0 = from.map_or(Ok(0), Section::get)?;
            Ok(())
        }
    }

    /// A fresh drive with a second shape: the cells of a block hold one bit.
    fn with_two_shapes() -> Drive<NoProbe> {
        let text = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                    blocks_per_plane = 16\npages_per_block = 8\npage_size = '4KiB'\ncell = 'mlc'\nop = 0.9\n";
        let spec = spec::load(text, "test.toml", std::path::Path::new("."), &[]).unwrap().spec;
        let mut drive = Drive::new(&spec);
        let mut shapes = drive.core.flash().shapes().clone();
        let times = CellTimes {
            read: Some(KindTimes::uniform(20 * US)),
            transfer_ns: 10 * US,
            decode_ns: Some(US),
            erase_ns: MS,
        };
        let steps = ProgramTime::Uniform(100 * US).steps(Cell::Slc, 4, 1, 1);
        let ecc = EccSpec::of(Vec::new(), StartLevel::First);
        let shape = Shape::new(drive.core.geometry(), Cell::Slc, ProgramOrder::Page, &steps, &times, &ecc);
        shapes.add(shape, Ageing { endurance_of_first: 1, endurance: 1, rber_factor: 1.0 });
        drive.core.set_shapes(shapes);
        drive
    }

    #[test]
    fn a_loaded_superblock_has_the_shape_of_the_saved_one() {
        let mut drive = with_two_shapes();
        let slc = drive.core.flash().shapes().numbered(1).expect("a second shape");
        let superblocks = [(ShapeId::FIRST, 8), (slc, 4), (slc, 3)].into_iter().zip(0..);
        let mut nexts = [None; STREAMS_MAX];
        let mut offline = Offline::new(&mut drive.core);
        for ((shape, used), id) in superblocks {
            let (id, is_full) = (SuperblockId(id), used == offline.flash().shapes()[shape].units);
            let state = if is_full { SuperblockState::Full } else { SuperblockState::Open };
            let saved = SavedSuperblock { pe_cycles: 7, mark: 0, state, shape, used };
            let corrected = offline.load_superblock(id, &saved).expect("no superblock is bad");
            for index in 0..used {
                let unit = offline.geometry().unit(id, index);
                assert!(offline.load_unit(unit, Lpn(unit.0), corrected));
            }
            if is_full {
                offline.close(id, Time::START);
            } else {
                nexts[StreamId::HOST.index()] = Some(offline.geometry().unit(id, used));
            }
        }
        offline.restore_lane(LaneId(0), nexts);
        drive.audit().unwrap();
        let mut bytes = Vec::new();
        drive.save(&mut bytes).unwrap();
        let mut loaded = with_two_shapes();
        loaded.load(bytes.as_slice()).unwrap();
        let shapes = |drive: &Drive<NoProbe>| {
            (0..16).map(|id| drive.core.flash().shape_id(SuperblockId(id))).collect::<Vec<_>>()
        };
        assert_eq!(shapes(&loaded), shapes(&drive));
        assert_eq!(shapes(&loaded)[..4], [ShapeId::FIRST, slc, slc, ShapeId::FIRST]);
        let mut again = Vec::new();
        loaded.save(&mut again).unwrap();
        assert!(again == bytes, "the loaded drive is saved as a different file");
        // A drive that has no such shape refuses the file.
        let mut other = Drive::new(&drive.spec);
        let error = other.load(bytes.as_slice()).unwrap_err();
        assert!(matches!(error, SnapshotError::Damaged("a superblock is out of range")), "{error}");
    }

    #[test]
    fn a_mechanism_gets_its_section_and_begins_empty_without_one() {
        let core = Setup::default().core();
        for number in [0, 7] {
            let mut sections: Vec<Section> = Some(Number(number)).save(&core).into_iter().collect();
            assert_eq!(sections.len() as u64, number.min(1));
            let mut loaded = Some(Number::default());
            load_mechanism(&mut loaded, &core, &mut sections).unwrap();
            assert_eq!((loaded, sections.len()), (Some(Number(number)), 0));
        }
        let mut section = Number(7).save(&core).unwrap();
        section.put(8);
        let error = load_mechanism(&mut Number::default(), &core, &mut vec![section]).unwrap_err();
        assert!(matches!(error, SnapshotError::Damaged("a section is too long")), "{error}");
    }

    #[test]
    fn the_section_of_a_mechanism_that_the_drive_does_not_have_is_refused() {
        let core = Setup::default().core();
        let mut sections = vec![Number(7).save(&core).unwrap()];
        let error = load_mechanism(&mut None::<Number>, &core, &mut sections).unwrap_err();
        assert!(matches!(error, SnapshotError::Unused("number")), "{error}");
        load_mechanism(&mut None::<Number>, &core, &mut Vec::new()).unwrap();
    }
}
