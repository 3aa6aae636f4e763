//! The state of the flash translation layer: the map, the superblocks of the lanes and their valid units, the
//! allocation of units to writes, and the room that a lane has and needs.
//!
//! The FTL executes no flash operations and has no clock. The core adds the transactions that belong to a change of the
//! FTL. Preconditioning changes the FTL without transactions.

pub mod allocation;
mod audit;
mod flush_programs;
mod free_superblocks;
mod lane;
pub mod needs;
pub mod placement;
mod reclaim_units;
mod room;
mod slc;
pub(crate) mod spec;
pub mod streams;
mod unit_map;
mod victim;

use crate::base::state::state;
pub use flush_programs::{FlushMethod, FlushPrograms, lsb_only_wordlines};
pub use free_superblocks::{FreeSuperblocks, WearLevelling};
pub use lane::{AllocatedUnit, Lane};
pub use slc::SlcShare;
pub use streams::{STREAMS_MAX, StreamId};
pub use unit_map::UnitMap;
use victim::Picks;
pub use victim::{Candidates, LeastValid, VictimPolicy};

use crate::base::geometry::{DieId, Geometry, LaneId, Lpn, SuperblockId, UnitId};
use crate::base::huge::Huge;
use crate::base::policy::PolicyError;
use crate::base::units::Time;
pub use crate::flash::COPYBACKS_MAX;
use crate::flash::{Array, DEAD_LPN, ShapeId, Shapes, SuperblockState};
use allocation::Allocator;
use lane::OpenSuperblock;
use needs::SuperblockNeeds;
use placement::Placements;
use reclaim_units::ReclaimUnits;
use std::ops::Range;
use streams::{StreamSpec, Streams, Writer};

/// The configuration of the FTL of a drive.
#[derive(Debug)]
pub struct Config {
    /// The choice of the lane for a host write.
    pub allocation: allocation::Allocation,
    /// The choice of the free superblock that is opened next.
    pub levelling: WearLevelling,
    /// The choice of the superblock that is emptied next.
    pub victim: Box<dyn VictimPolicy>,
    /// The superblocks that every lane needs beyond its valid units.
    pub needs: SuperblockNeeds,
    /// The streams, as the mechanisms declare them.
    pub streams: Vec<StreamSpec>,
    /// The superblocks that the host may have in SLC mode; `None` without this mode.
    pub slc: Option<SlcShare>,
    /// The shape of the superblocks to which an emergency flush writes.
    pub flush_shape: ShapeId,
    /// Placement handles and reclaim groups.
    pub placements: Placements,
}

/// The map, the lanes and their policies.
#[derive(Clone, Debug)]
pub struct Ftl {
    /// LPN to PPN: the newest mapping of every LPN. The LPNs of the streams with own LPNs follow those of the host: those
    /// of translation pages, then those of combination pages.
    pub map: UnitMap,
    /// The streams of every lane.
    pub streams: Streams,
    /// Placement handles and reclaim groups.
    pub placements: Placements,
    /// Reclaim units of several superblocks.
    units: Option<ReclaimUnits>,
    /// The first LPN that is not the host's.
    first_own: u32,
    /// The LPNs of translation pages.
    translation: Range<u32>,
    /// The first LPN of combination pages.
    first_combination: u32,
    /// The number of LPNs of combination pages.
    combination_pages: u32,
    /// All lanes.
    pub lanes: Box<[Lane]>,
    /// The choice of the lane for a host write.
    pub allocator: Allocator,
    pub(crate) picks: Picks,
    /// The index of the full superblocks by valid units.
    index: LeastValid,
    /// By unit, one bit: whether the unit is valid. Every superblock starts a new word.
    valid: Huge<u64>,
    words_per_superblock: usize,
    geometry: Geometry,
    /// The shapes of the drive. Free superblocks have the first one.
    shapes: Shapes,
    levelling: WearLevelling,
    /// The superblocks that every lane needs beyond its valid units.
    pub needs: SuperblockNeeds,
    /// Whether GC moves units to the open superblock of the host (`migration.first_block = "shared"`). The spec check
    /// accepts this only where a program writes one unit.
    pub shares_first_superblock: bool,
    /// Free superblocks of a lane that only internal streams and the emergency flush may take.
    pub reserve_superblocks: u32,
    /// The part of `reserve_superblocks` that is kept for an emergency flush.
    flush_reserve_superblocks: u32,
    /// The part of `reserve_superblocks` that the job under way in the lane may take.
    job_superblocks: u32,
    /// Superblocks of a lane that GC cannot collect while the host waits: `reserve_superblocks`, and the most that
    /// internal streams may have open.
    taken_superblocks: u32,
    /// Superblocks of a lane that translation pages may have open.
    map_superblocks: u32,
    /// Free superblocks of a lane that GC needs.
    gc_superblocks: u32,
    /// The superblocks that the host may have in SLC mode; `None` without this mode.
    slc: Option<SlcShare>,
    /// The shape of the superblocks to which an emergency flush writes.
    flush_shape: ShapeId,
}

/// Free superblocks of each lane that an emergency flush leaves for GC's first job after power returns.
const FLUSH_KEEPS_SUPERBLOCKS: u32 = 1;

impl Ftl {
    /// Bytes of the map, the bits of valid units and the lists of free superblocks.
    pub fn bytes(&self) -> u64 {
        let free = self.lanes.iter().map(|lane| lane.free.bytes()).sum::<u64>();
        self.map.bytes() + self.valid.bytes() + self.index.bytes() + free
    }

    /// The shape of the superblocks to which an emergency flush writes.
    pub fn flush_shape(&self) -> ShapeId {
        self.flush_shape
    }

    /// The FTL of a drive whose shapes differ from those of this FTL in their times only.
    pub(crate) fn with_shapes(mut self, shapes: Shapes) -> Self {
        self.shapes = shapes;
        self
    }

    /// Creates the FTL of an erased drive.
    pub fn new(config: Config, geometry: &Geometry, array: &Array) -> Self {
        Self::with_map(config, geometry, array, None)
    }

    /// An FTL without free and open superblocks, with the map and the valid units of this one, which has none of them any
    /// more.
    pub(crate) fn renewed(&mut self, config: Config, geometry: &Geometry, array: &Array) -> Self {
        let map = std::mem::replace(&mut self.map, UnitMap::new(0));
        let valid = std::mem::replace(&mut self.valid, Huge::zeroed(0));
        Self::with_map(config, geometry, array, Some((map, valid)))
    }

    fn with_map(
        config: Config,
        geometry: &Geometry,
        array: &Array,
        kept: Option<(UnitMap, Huge<u64>)>,
    ) -> Self {
        let shapes = array.shapes().clone();
        let words_per_superblock = (shapes.units_max() as usize).div_ceil(64);
        let is_erased = kept.is_none();
        let Config { allocation, levelling, victim, needs, streams, placements, slc, flush_shape } = config;
        let streams = Streams::new(&streams, geometry.logical_units, geometry.units);
        let lane = |lane: u32| {
            let mut free = FreeSuperblocks::default();
            let superblocks = geometry.superblocks_of(LaneId(lane));
            for (within, superblock) in (0..).zip(&array.superblocks[superblocks]).filter(|_| is_erased) {
                free.push(levelling, within, superblock.pe_cycles);
            }
            Lane {
                free_units: free.len() * shapes.first().units,
                free,
                open: Default::default(),
                valid: 0,
                combinations: 0,
                promised_superblocks: 0,
                promised_units: 0,
                is_worn_out: false,
                usable_superblocks: geometry.superblocks_in(LaneId(lane)),
                erases_unchecked: 0,
                reserve_superblocks: needs.free() as u32,
                slc_superblocks: 0,
                is_slc_closed: false,
            }
        };
        let end = streams.ids().map(|stream| streams.lpns(stream).end).max().expect("a drive has streams");
        let own = |stream: Option<StreamId>| stream.map_or(end..end, |stream| streams.lpns(stream));
        let (translation, combination) = (own(streams.map()), own(streams.find("combination")));
        let (map, valid) = kept.unwrap_or_else(|| {
            let words = words_per_superblock * geometry.superblocks as usize;
            (UnitMap::new(end), Huge::zeroed(words))
        });
        Self {
            map,
            valid,
            units: ReclaimUnits::new(placements.reclaim_unit, &streams, geometry, array),
            placements,
            first_own: geometry.logical_units,
            translation,
            first_combination: combination.start,
            combination_pages: combination.end - combination.start,
            lanes: (0..geometry.lanes).map(lane).collect(),
            allocator: Allocator::new(allocation, geometry, placements.count()),
            picks: Picks::new(victim),
            index: LeastValid::new(geometry.lanes, geometry.superblocks_per_lane),
            words_per_superblock,
            shapes,
            geometry: geometry.clone(),
            levelling,
            shares_first_superblock: streams.spec(StreamId::GC).need.open == 0,
            reserve_superblocks: needs.free() as u32,
            flush_reserve_superblocks: needs.of("flush").free as u32,
            job_superblocks: needs.job() as u32,
            taken_superblocks: (needs.free() + needs.open()) as u32,
            map_superblocks: needs.of("mapping").open as u32,
            gc_superblocks: needs.of("gc").free as u32,
            slc,
            flush_shape,
            needs,
            streams,
        }
    }

    /// The index in [`Lane::open`] of the open superblock of a stream.
    #[inline(always)]
    fn open_of(&self, stream: StreamId) -> usize {
        if self.shares_first_superblock && stream == StreamId::GC {
            StreamId::HOST.index()
        } else {
            stream.index()
        }
    }

    /// Allocates the next unit of `stream` in `lane`, if necessary in a newly opened superblock. The host's stream
    /// leaves the lane its reserve and, in a superblock shared with GC, the units for copies ([`Lane::has_room`]).
    /// `None` if the stream has no unit left that it may take, and may not take a free superblock.
    #[inline(always)]
    pub fn allocate(&mut self, array: &mut Array, lane: LaneId, stream: StreamId) -> Option<AllocatedUnit> {
        let state = &self.lanes[lane.index()];
        let mut keep = 0;
        if self.streams.is_host(stream) {
            if self.shares_first_superblock && !state.has_room(stream, true) {
                return None;
            }
            if self.streams.slc() == Some(stream) {
                return self.allocate_slc(array, lane, stream);
            }
            keep = state.reserve_superblocks + state.promised_superblocks;
        }
        self.allocate_keeping(array, lane, stream, keep)
    }

    /// Allocates the next unit of `stream` in `lane`, and leaves the lane at least `keep` free superblocks.
    #[inline]
    fn allocate_keeping(
        &mut self,
        array: &mut Array,
        lane: LaneId,
        stream: StreamId,
        keep: u32,
    ) -> Option<AllocatedUnit> {
        let at = self.open_of(stream);
        let opened = self.lanes[lane.index()].open[at].is_full();
        if opened {
            self.open_superblock(array, lane, stream, keep)?;
        }
        let state = &mut self.lanes[lane.index()];
        let taken = state.take(at, self.geometry.units_per_row, self.geometry.dies_per_lane);
        Some(AllocatedUnit { opened, ..taken })
    }

    /// Opens a free superblock for `stream` in `lane`, and leaves the lane at least `keep` free ones; `None` if it has no
    /// more.
    #[inline(never)]
    fn open_superblock(
        &mut self,
        array: &mut Array,
        lane: LaneId,
        stream: StreamId,
        keep: u32,
    ) -> Option<()> {
        let at = self.open_of(stream);
        let state = &mut self.lanes[lane.index()];
        if state.free.len() <= keep {
            return None;
        }
        let spec = self.streams.spec(stream);
        let within = if spec.opens_most_worn { state.free.pop_most_worn() } else { state.free.pop() }?;
        let superblock = SuperblockId(self.geometry.first_superblock(lane).0 + within);
        let of_superblock = array.superblock_mut(superblock);
        (of_superblock.state, of_superblock.mark) = (SuperblockState::Open, spec.mark);
        if spec.writer == Writer::Slc {
            array.reshape(superblock, ShapeId::SLC);
            state.count_slc(self.reserve_superblocks, self.slc.as_ref(), 1);
        }
        let shape = array.shape_id(superblock);
        state.begin(at, self.geometry.unit(superblock, 0), shape, &self.shapes);
        if self.units.is_some() {
            self.add_to_unit(array, stream, superblock);
        }
        Some(())
    }

    /// At power failure, takes back the units allocated to programs that will never begin, in the streams to which the
    /// flush writes: dirty units to the host's, lines of the VSM to that of combination pages ([`Writer::Internal`]),
    /// and the copies of GC to that of GC. `programmed` returns the number of units of a superblock, the first ones, that
    /// will have been programmed or skipped.
    pub fn take_back_queued(&mut self, programmed: impl Fn(SuperblockId) -> u32) {
        let streams = &self.streams;
        let is_written = |&stream: &StreamId| {
            stream == StreamId::GC || streams.is_host(stream) || streams.is_internal(stream)
        };
        for lane in &mut self.lanes {
            for stream in streams.ids().filter(is_written) {
                let open = &mut lane.open[stream.index()];
                // A superblock whose units are all allocated may have been erased and opened for another stream by now.
                if !open.is_full() {
                    let first = open.end - self.shapes[open.shape].units;
                    let next = first + programmed(self.geometry.superblock_of(UnitId(first)));
                    lane.free_units += open.next.saturating_sub(next);
                    open.next = open.next.min(next);
                }
            }
        }
    }

    /// The lane of `die` to which a plain emergency flush writes the next units of a stream of the host: the one with the
    /// most room.
    pub fn flush_lane(&self, die: DieId, stream: StreamId) -> Option<LaneId> {
        let room = |lane: &LaneId| self.flush_room(*lane, stream);
        self.geometry.lanes_of(die).reduce(|a, b| if room(&b) > room(&a) { b } else { a })
    }

    /// The units of a lane that a plain emergency flush can write in a stream of the host.
    pub fn flush_room(&self, lane: LaneId, stream: StreamId) -> u32 {
        let open = self.lanes[lane.index()].open[stream.index()];
        let free = self.shapes.first();
        open.room(free.units_per_full_row) + self.flush_superblocks(lane) * free.units
    }

    /// Allocates a programming unit for an emergency flush from a stream of the host, in [`Ftl::flush_lane`] of `die`, as
    /// [`Ftl::allocate_program`] does. `None` also if the next programming unit of a superblock on several dies is on
    /// another die.
    pub fn allocate_for_flush(
        &mut self,
        array: &mut Array,
        die: DieId,
        stream: StreamId,
    ) -> Option<AllocatedUnit> {
        let lane = self.flush_lane(die, stream)?;
        if self.next_die(lane, stream)? != die {
            return None;
        }
        self.allocate_program(array, (lane, stream), FLUSH_KEEPS_SUPERBLOCKS)
    }

    /// Allocates a programming unit, and leaves the lane at least `keep` free superblocks. Returns its first unit with
    /// the `skips` of its last one: the number of units after the programming unit, on its die, that remain erased. The
    /// stream must not be amid a programming unit.
    pub fn allocate_program(
        &mut self,
        array: &mut Array,
        (lane, stream): (LaneId, StreamId),
        keep: u32,
    ) -> Option<AllocatedUnit> {
        let mut first = self.allocate_keeping(array, lane, stream, keep)?;
        let at = self.open_of(stream);
        let shape = &self.shapes[self.lanes[lane.index()].open[at].shape];
        debug_assert!(shape.place_in_program(first.unit) == 0, "the stream is amid a programming unit");
        for _ in 1..shape.units_per_program {
            let (row, dies) = (self.geometry.units_per_row, self.geometry.dies_per_lane);
            first.skips = self.lanes[lane.index()].take(at, row, dies).skips;
        }
        Some(first)
    }

    /// Takes a free superblock for the data of a stream of the host in an emergency flush, from the lane of `die` that has
    /// the most superblocks which the flush may take ([`Ftl::flush_superblocks`]); `None` if no lane has one.
    pub fn take_flush_superblock(
        &mut self,
        array: &mut Array,
        die: DieId,
        stream: StreamId,
    ) -> Option<SuperblockId> {
        let superblocks = |lane: &LaneId| self.flush_superblocks(*lane);
        let lane = self
            .geometry
            .lanes_of(die)
            .reduce(|a, b| if superblocks(&b) > superblocks(&a) { b } else { a })?;
        if self.flush_superblocks(lane) == 0 {
            return None;
        }
        let state = &mut self.lanes[lane.index()];
        let within = state.free.pop()?;
        state.free_units -= self.shapes.first().units;
        let superblock = SuperblockId(self.geometry.first_superblock(lane).0 + within);
        let of_superblock = array.superblock_mut(superblock);
        (of_superblock.state, of_superblock.mark) = (SuperblockState::Open, self.streams.spec(stream).mark);
        self.add_to_unit(array, stream, superblock);
        if self.flush_shape == ShapeId::SLC {
            array.superblock_mut(superblock).mark = self.streams.slc_mark();
            array.reshape(superblock, ShapeId::SLC);
            self.begin_slc(superblock);
        }
        Some(superblock)
    }

    /// Makes the stream that fills `superblock` continue in another superblock, if all units of `superblock` that are
    /// allocated have been programmed. Returns this stream, if it has left the superblock.
    pub fn leave_open_superblock(
        &mut self,
        array: &Array,
        lane: LaneId,
        superblock: SuperblockId,
    ) -> Option<StreamId> {
        let first = self.geometry.unit(superblock, 0).0;
        let Self { lanes, shapes, streams, .. } = self;
        let state = &mut lanes[lane.index()];
        let fills = |open: &OpenSuperblock| !open.is_full() && open.end == first + shapes[open.shape].units;
        // Without an open superblock it belongs to an emergency flush.
        let stream = streams.ids().find(|stream| fills(&state.open[stream.index()]))?;
        let open = &mut state.open[stream.index()];
        array.are_programmed(superblock, open.next - first).then(|| {
            state.free_units -= open.left();
            open.next = open.end;
            stream
        })
    }

    /// Returns a superblock from [`Ftl::take_flush_superblock`] to the free superblocks. No unit of the superblock may
    /// be programmed.
    pub fn give_back(&mut self, array: &mut Array, superblock: SuperblockId) {
        let lane = self.geometry.lane_of(superblock);
        self.leave_slc(array, superblock);
        let of_superblock = array.superblock_mut(superblock);
        (of_superblock.state, of_superblock.mark) = (SuperblockState::Free, 0);
        let pe_cycles = of_superblock.pe_cycles;
        array.set_reclaim_unit(superblock, 0);
        let within = superblock.0 - self.geometry.first_superblock(lane).0;
        let state = &mut self.lanes[lane.index()];
        state.free.push(self.levelling, within, pe_cycles);
        state.free_units += self.shapes.first().units;
    }

    /// Whether a stream uses only LSB pages.
    pub fn is_lsb_only(&self, lane: LaneId, stream: StreamId) -> bool {
        self.lanes[lane.index()].open[self.open_of(stream)].skips > 0
    }

    /// Whether the open superblock of a stream has wordlines of which some units are allocated and others are not, and
    /// the pages of a wordline depend on one another ([`Shape::left_in_wordlines`](crate::flash::Shape::left_in_wordlines)).
    pub fn is_amid_wordline(&self, lane: LaneId, stream: StreamId) -> bool {
        let open = self.lanes[lane.index()].open[self.open_of(stream)];
        let shape = &self.shapes[open.shape];
        !open.is_full() && shape.left_in_wordlines(shape.units - open.left()) > 0
    }

    /// Makes a stream use only LSB pages, or all pages again. To use only LSB pages, the stream must not be amid a
    /// wordline ([`Ftl::is_amid_wordline`]).
    pub fn set_lsb_only(&mut self, lane: LaneId, stream: StreamId, is_on: bool) {
        debug_assert!(!is_on || !self.is_amid_wordline(lane, stream), "the stream is amid a wordline");
        let at = self.open_of(stream);
        let open = &mut self.lanes[lane.index()].open[at];
        let shape = &self.shapes[open.shape];
        let skipped_rows = if is_on { shape.dependent_pages() - 1 } else { 0 };
        open.set_skips(skipped_rows, shape.units_per_full_row);
    }

    /// [`Ftl::set_lsb_only`] for the streams of the host.
    pub fn set_host_lsb_only(&mut self, lane: LaneId, is_on: bool) {
        // No page depends on another in SLC mode.
        for number in 0..self.streams.natives().len() {
            self.set_lsb_only(lane, self.streams.natives()[number], is_on);
        }
    }

    /// Whether an LPN is the LPN of a combination page.
    #[inline(always)]
    pub fn is_combination(&self, lpn: Lpn) -> bool {
        // `DEAD_LPN`, which a unit without data has, is beyond all LPNs.
        lpn.0.wrapping_sub(self.first_combination) < self.combination_pages
    }

    /// Whether an LPN is the LPN of a translation page.
    #[inline(always)]
    pub fn is_translation(&self, lpn: Lpn) -> bool {
        self.translation.contains(&lpn.0)
    }

    /// The stream to which a job moves a unit of `lpn` off-chip. `mark` returns the mark of the superblock that it leaves.
    #[inline]
    pub fn copy_stream(&self, lpn: Lpn, mark: impl FnOnce() -> u8, is_wear: bool) -> StreamId {
        if lpn.0 >= self.first_own
            && let Some(owner) = self.streams.owner_of(lpn)
        {
            return owner;
        }
        self.streams.of_jobs(mark, is_wear)
    }

    /// The stream to which a job moves the units of `superblock` off-chip. It follows from one unit, because data,
    /// translation pages and combination pages never share a superblock.
    pub fn emptying_stream(&self, array: &Array, superblock: SuperblockId, is_wear: bool) -> StreamId {
        let index = self.next_valid(superblock, 0);
        let lpn = index.map_or(Lpn(0), |index| array.lpn(self.geometry.unit(superblock, index)));
        self.copy_stream(lpn, || array.superblock(superblock).mark, is_wear)
    }

    /// The number of mapped logical units of the host.
    pub fn host_units_mapped(&self) -> u32 {
        let others = (self.first_own..self.map.len()).filter(|&lpn| self.map.get(Lpn(lpn)).is_some());
        self.map.mapped() - others.count() as u32
    }

    /// The index in `valid` of the word with the bit of unit `unit` of `superblock`, and the bit.
    #[inline(always)]
    fn bit(&self, superblock: SuperblockId, unit: u32) -> (usize, u64) {
        (superblock.index() * self.words_per_superblock + unit as usize / 64, 1 << (unit % 64))
    }

    /// The bits of a superblock: whether its units are valid, 64 of them in a word.
    pub(crate) fn valid_words(&self, superblock: SuperblockId) -> &[u64] {
        &self.valid[superblock.index() * self.words_per_superblock..][..self.words_per_superblock]
    }

    /// Prefetches into the CPU's cache whether unit `unit` of `superblock` is valid.
    #[inline(always)]
    pub(crate) fn prefetch_valid(&self, superblock: SuperblockId, unit: u32) {
        self.valid.prefetch(self.bit(superblock, unit).0);
    }

    /// Whether a unit is valid.
    #[inline(always)]
    pub fn is_valid(&self, unit: UnitId) -> bool {
        let (superblock, index) = self.geometry.split(unit);
        let (word, bit) = self.bit(superblock, index);
        self.valid[word] & bit != 0
    }

    /// The first valid unit of `superblock` from unit `from` on, by its number in the superblock.
    #[inline]
    pub fn next_valid(&self, superblock: SuperblockId, from: u32) -> Option<u32> {
        let words = self.valid_words(superblock);
        let mut word = from as usize / 64;
        let mut bits = words.get(word)? & (!0 << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *words.get(word)?;
        }
        Some(word as u32 * 64 + bits.trailing_zeros())
    }

    /// Maps `lpn` to `unit`, which becomes valid. Returns the unit to which `lpn` was mapped before; this unit is now
    /// invalid.
    #[inline]
    pub fn remap(&mut self, array: &mut Array, lpn: Lpn, unit: UnitId) -> Option<UnitId> {
        let old = self.map.set(lpn, unit);
        let (superblock, index) = self.geometry.split(unit);
        let (word, bit) = self.bit(superblock, index);
        self.valid[word] |= bit;
        array.superblock_mut(superblock).valid += 1;
        self.lanes[self.geometry.lane_of(superblock).index()].valid += 1;
        if let Some(old) = old {
            self.invalidate(array, old);
        }
        if self.is_combination(lpn) {
            self.count_combination(Some(unit), old);
        }
        old
    }

    /// Allocates the next units of the host's open superblock in `lane`, at most `max`, as [`Ftl::allocate`] does one
    /// after another. None if no superblock is open, and where each unit needs a look at more than this superblock.
    pub(crate) fn allocate_run(&mut self, lane: LaneId, max: u32) -> Range<u32> {
        let state = &mut self.lanes[lane.index()];
        let open = &mut state.open[StreamId::HOST.index()];
        if open.skips > 0 || self.shares_first_superblock {
            return 0..0;
        }
        let count = open.left().min(max);
        let first = open.next;
        open.next += count;
        state.free_units -= count;
        first..first + count
    }

    /// Makes successive units of a superblock valid, from its unit `index` on: those with an LPN, which the caller maps
    /// to them ([`Ftl::map_first`]). Units with [`DEAD_LPN`] remain invalid.
    pub(crate) fn validate_run(
        &mut self,
        array: &mut Array,
        superblock: SuperblockId,
        index: u32,
        lpns: &[u32],
    ) {
        let mut valid = 0;
        for (index, &lpn) in (index..).zip(lpns) {
            let (word, bit) = self.bit(superblock, index);
            let is_valid = lpn != DEAD_LPN;
            self.valid[word] |= if is_valid { bit } else { 0 };
            valid += u32::from(is_valid);
        }
        array.superblock_mut(superblock).valid += valid;
        self.lanes[self.geometry.lane_of(superblock).index()].valid += valid;
    }

    /// Maps an LPN of the host, which is unmapped, to a unit that is valid already.
    #[inline]
    pub(crate) fn map_first(&mut self, lpn: Lpn, unit: UnitId) {
        let old = self.map.set(lpn, unit);
        debug_assert!(old.is_none() && lpn.0 < self.first_own, "an unmapped LPN of the host");
    }

    /// Maps all LPNs anew, as [`Ftl::remap`] does one after another: no LPN is mapped, and no unit is valid. `entries` has
    /// 1 + the PPN of each LPN, or 0.
    pub fn restore_map(&mut self, array: &mut Array, entries: Huge<u32>) {
        debug_assert!(self.map.mapped() == 0, "an LPN is mapped");
        for (lpn, unit) in (0..).map(Lpn).zip(entries.iter()) {
            let Some(unit) = unit.checked_sub(1).map(UnitId) else { continue };
            let (superblock, index) = self.geometry.split(unit);
            let (word, bit) = self.bit(superblock, index);
            self.valid[word] |= bit;
            array.superblock_mut(superblock).valid += 1;
            if self.is_combination(lpn) {
                self.count_combination(Some(unit), None);
            }
        }
        for superblock in (0..self.geometry.superblocks).map(SuperblockId) {
            self.lanes[self.geometry.lane_of(superblock).index()].valid += array.superblock(superblock).valid;
        }
        self.map = UnitMap::from_entries(entries);
    }

    /// Maps some LPNs anew, in an FTL that has kept its map ([`Ftl::renewed`]): `entries` has 1 + the PPN of each of them, or
    /// 0. Counts the valid units of the lanes. Returns the LPNs that were mapped to another unit, or to none, in ascending
    /// order, with this unit.
    pub(crate) fn restore_changes(
        &mut self,
        array: &mut Array,
        entries: &[(Lpn, u32)],
    ) -> Vec<(Lpn, Option<UnitId>)> {
        debug_assert!(self.combination_pages == 0, "the lanes count combination pages");
        let changes = entries.iter().map(|&(lpn, entry)| (lpn, entry.checked_sub(1).map(UnitId)));
        let changes: Vec<_> = changes.filter(|&(lpn, unit)| self.map.get(lpn) != unit).collect();
        let mut touched = Vec::with_capacity(2 * changes.len());
        let mut before = Vec::with_capacity(changes.len());
        // All old units first: that of one LPN may be the new one of another.
        for &(lpn, _) in &changes {
            let old = self.map.clear(lpn);
            before.push((lpn, old));
            if let Some(old) = old {
                let (superblock, index) = self.geometry.split(old);
                let (word, bit) = self.bit(superblock, index);
                self.valid[word] &= !bit;
                touched.push(superblock);
            }
        }
        for &(lpn, unit) in &changes {
            if let Some(unit) = unit {
                self.map.set(lpn, unit);
                let (superblock, index) = self.geometry.split(unit);
                let (word, bit) = self.bit(superblock, index);
                self.valid[word] |= bit;
                touched.push(superblock);
            }
        }
        touched.sort_unstable();
        touched.dedup();
        for superblock in touched {
            let valid = self.valid_words(superblock).iter().map(|word| word.count_ones()).sum();
            array.superblock_mut(superblock).valid = valid;
        }
        for lane in (0..self.geometry.lanes).map(LaneId) {
            let superblocks = &array.superblocks[self.geometry.superblocks_of(lane)];
            self.lanes[lane.index()].valid = superblocks.iter().map(|superblock| superblock.valid).sum();
        }
        before
    }

    /// Whether the victim policy remembers in which order the superblocks have become full.
    pub(crate) fn picks_remember_order(&mut self) -> bool {
        self.picks.remember_order()
    }

    /// Counts a combination page as valid at `now`, and no longer as valid at `before`.
    #[cold]
    fn count_combination(&mut self, now: Option<UnitId>, before: Option<UnitId>) {
        let lane = |unit: UnitId| self.geometry.lane_of(self.geometry.superblock_of(unit)).index();
        if let Some(unit) = now {
            self.lanes[lane(unit)].combinations += 1;
        }
        if let Some(unit) = before {
            self.lanes[lane(unit)].combinations -= 1;
        }
    }

    /// Unmaps `lpn`. Returns the unit to which `lpn` was mapped; this unit is now invalid.
    #[inline]
    pub fn unmap(&mut self, array: &mut Array, lpn: Lpn) -> Option<UnitId> {
        let old = self.map.clear(lpn)?;
        self.invalidate(array, old);
        if self.is_combination(lpn) {
            self.count_combination(None, Some(old));
        }
        Some(old)
    }

    #[inline]
    fn invalidate(&mut self, array: &mut Array, unit: UnitId) -> SuperblockId {
        let (superblock, index) = self.geometry.split(unit);
        let (word, bit) = self.bit(superblock, index);
        debug_assert!(
            self.valid[word] & bit != 0,
            "unit {} to be invalidated is invalid already",
            self.geometry.show(unit)
        );
        self.valid[word] &= !bit;
        let lane = self.geometry.lane_of(superblock);
        self.lanes[lane.index()].valid -= 1;
        let state = array.superblock_mut(superblock);
        state.valid -= 1;
        if state.state == SuperblockState::Full {
            self.index.lower(lane, superblock.0 - self.geometry.first_superblock(lane).0, state.valid);
        }
        superblock
    }

    /// Closes `superblock`: the superblock becomes full, a candidate for GC.
    pub fn close(&mut self, array: &mut Array, superblock: SuperblockId, now: Time) {
        let lane = self.geometry.lane_of(superblock);
        let within = superblock.0 - self.geometry.first_superblock(lane).0;
        let is_slc = array.shape_id(superblock) == ShapeId::SLC;
        let state = array.superblock_mut(superblock);
        state.closed_at = now;
        if is_slc {
            state.state = SuperblockState::Cached;
            return;
        }
        state.state = SuperblockState::Full;
        self.index.lower(lane, within, state.valid);
        self.picks.on_closed(lane, within);
    }

    /// Whether GC can gain units in `lane`, because a full superblock has at least a programming unit's worth of
    /// invalid units.
    pub fn has_garbage(&self, lane: LaneId) -> bool {
        let shape = self.shapes.first();
        self.index.fewest(lane).saturating_add(shape.units_per_program) <= shape.units
    }

    /// The victim: a superblock of the reclaim unit that GC empties, or else the one that the policy picks; `None` if
    /// the lane has no garbage ([`Ftl::has_garbage`]). The policy may pick a full superblock without invalid units, as
    /// `fifo` does.
    ///
    /// # Errors
    /// When the policy fails or picks a superblock that is not full.
    pub fn pick_victim(
        &mut self,
        array: &Array,
        lane: LaneId,
        now: Time,
    ) -> Result<Option<SuperblockId>, PolicyError> {
        if !self.has_garbage(lane) {
            return Ok(None);
        }
        if let Some(rest) = self.rest_of_unit(array, lane) {
            return Ok(Some(rest));
        }
        let of_lane = self.geometry.superblocks_of(lane);
        let candidates = Candidates::new(array, lane, of_lane, now, &self.index);
        let within = self.picks.pick(&candidates)?;
        Ok(within.map(|within| SuperblockId(self.geometry.first_superblock(lane).0 + within)))
    }

    /// The full superblock with the fewest valid units, which the policy `greedy` picks; `None` without full
    /// superblocks.
    pub fn least_valid(&self, array: &Array, lane: LaneId, now: Time) -> Option<SuperblockId> {
        let within = self.candidates(array, lane, now).least_valid()?;
        Some(SuperblockId(self.geometry.first_superblock(lane).0 + within))
    }

    /// The input of a policy that picks superblocks of `lane`.
    pub(crate) fn candidates<'a>(&'a self, array: &'a Array, lane: LaneId, now: Time) -> Candidates<'a> {
        Candidates::new(array, lane, self.geometry.superblocks_of(lane), now, &self.index)
    }

    /// Makes `superblock` a victim: it is no longer a candidate.
    pub fn begin_emptying(&mut self, array: &mut Array, superblock: SuperblockId) {
        array.superblock_mut(superblock).state = SuperblockState::Victim;
        let lane = self.geometry.lane_of(superblock);
        let first = self.geometry.first_superblock(lane);
        let superblocks = &array.superblocks[self.geometry.superblocks_of(lane)];
        self.index.leave(lane, superblock.0 - first.0, superblocks);
    }

    /// Makes `superblock`, which has been erased, free. Retires it instead if it has reached `endurance` P/E cycles.
    pub fn release(&mut self, array: &mut Array, superblock: SuperblockId, endurance: u32) {
        let lane = self.geometry.lane_of(superblock);
        let within = superblock.0 - self.geometry.first_superblock(lane).0;
        let state = &mut self.lanes[lane.index()];
        state.erases_unchecked += 1;
        let superblock = array.superblock_mut(superblock);
        if superblock.pe_cycles >= endurance {
            superblock.state = SuperblockState::Retired;
            state.usable_superblocks -= 1;
        } else {
            superblock.state = SuperblockState::Free;
            state.free.push(self.levelling, within, superblock.pe_cycles);
            state.free_units += self.shapes.first().units;
            state.is_worn_out = false;
        }
    }

    /// Updates the order of the free superblocks after their P/E cycles have risen without an erase.
    pub fn on_worn(&mut self, array: &Array) {
        for (lane, state) in (0..self.geometry.lanes).map(LaneId).zip(&mut self.lanes) {
            let superblocks = &array.superblocks[self.geometry.superblocks_of(lane)];
            state.free.on_worn(self.levelling, |within| superblocks[within as usize].pe_cycles);
        }
    }

    /// Rebuilds a lane's free list from the states of its superblocks, for a loaded drive, and sets its open
    /// superblocks. `open` has the next unit of each stream; `None` for a stream without an open superblock.
    pub fn restore_lane(&mut self, array: &Array, lane: LaneId, open: [Option<UnitId>; STREAMS_MAX]) {
        let superblocks = &array.superblocks[self.geometry.superblocks_of(lane)];
        let state = &mut self.lanes[lane.index()];
        state.free = FreeSuperblocks::default();
        for (within, superblock) in superblocks.iter().enumerate() {
            if superblock.state == SuperblockState::Free {
                state.free.push(self.levelling, within as u32, superblock.pe_cycles);
            }
        }
        state.usable_superblocks = superblocks.iter().filter(|b| b.state.is_usable()).count() as u32;
        let slc =
            self.geometry.superblock_ids_of(lane).filter(|&id| array.shape_id(id) == ShapeId::SLC).count();
        (state.slc_superblocks, state.is_slc_closed) = (0, false);
        state.count_slc(self.reserve_superblocks, self.slc.as_ref(), slc as i32);
        state.open = open.map(|next| {
            next.map_or(OpenSuperblock::default(), |next| {
                let superblock = self.geometry.superblock_of(next);
                let shape = array.shape_id(superblock);
                let end = self.geometry.unit(superblock, 0).0 + array.shapes()[shape].units;
                OpenSuperblock { next: next.0, end, shape, ..OpenSuperblock::default() }
            })
        });
        state.free_units = state.count_free_units(self.shapes.first());
        self.resume_units(array, lane);
    }

    /// Makes a stream of the host go on in another superblock, whether or not the programs in the present one have ended.
    /// Returns the present one with the number of its units that are allocated; `None` if the stream has none.
    pub fn abandon_open(&mut self, lane: LaneId, stream: StreamId) -> Option<(SuperblockId, u32)> {
        let state = &mut self.lanes[lane.index()];
        let open = &mut state.open[stream.index()];
        if open.is_full() {
            return None;
        }
        let (superblock, index) = self.geometry.split(UnitId(open.next));
        state.free_units -= open.left();
        open.next = open.end;
        Some((superblock, index))
    }
}

state! {
    Ftl {
        map,
        lanes,
        allocator,
        picks,
        index,
        valid,
    }
    parts { units }
    fixed {
        streams,
        placements,
        first_own,
        translation,
        first_combination,
        combination_pages,
        words_per_superblock,
        geometry,
        shapes,
        levelling,
        needs,
        shares_first_superblock,
        reserve_superblocks,
        flush_reserve_superblocks,
        job_superblocks,
        taken_superblocks,
        map_superblocks,
        gc_superblocks,
        slc,
        flush_shape,
    }
}
