//! Support for the tests of mechanisms: a core of one die with a few small superblocks and without a drive, its event
//! loop, and a map in RAM.
//!
//! A unit is a page, a superblock is a block, and a lane is a plane.
//!
//! Times: 50 us to sense a page, 200 us to program a page (on planar MLC 100 us for an LSB page, 300 us for an MSB
//! page), 10 us to transfer a page, 1 ms to erase a block. With read levels, level L senses in L x 50 us and decodes in
//! L x 20 us.

use super::{Config, Core, Map, Offline, Space, Wake, Wants};
use crate::base::geometry::{
    Cell, DieId, DriveSpec, Geometry, KindTimes, LaneId, Lpn, SuperblockId, Tvpn, UnitId,
};
use crate::base::policy::PolicyError;
use crate::base::units::{MS, Span, US};
use crate::drive::spec::streams::StreamSettings;
use crate::flash::{
    AgeClock, Array, CopybackErrors, Ecc, EccSpec, InitialAges, LevelSpec, ProgramTime, RberSpec,
    Reliability, ReliabilitySpec, Retention, ShapeId, Shapes, StartLevel, SuperblockState,
};
use crate::ftl::allocation::Allocation;
use crate::ftl::needs::{Demands, SuperblockNeeds};
use crate::ftl::placement::{Isolation, PlacementSpec, Placements};
use crate::ftl::{self, Candidates, Ftl, StreamId, VictimPolicy, WearLevelling};
use crate::probe::NoProbe;
use crate::sched::{
    Class, CommandTimes, Ended, FlashOp, NEVER, OffChipRate, Owner, PlaneReads, Scheduler, Slot, SuspendSpec,
    Timing, TimingSpec, Transaction,
};
use std::collections::BTreeMap;

/// The first lane of the only die.
pub(crate) const LANE: LaneId = LaneId(0);

/// The settings of a core.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Lanes of the die, superblocks of a lane, units of a superblock.
    pub(crate) lanes: u32,
    pub(crate) superblocks: u32,
    pub(crate) units: u32,
    pub(crate) unit_bytes: u32,
    pub(crate) logical_units: u32,
    pub(crate) cell: Cell,
    /// Number of read levels; 0: every read decodes at once. The needed level of a unit is the number of reads of its
    /// superblock, at least 1.
    pub(crate) levels: u8,
    pub(crate) start: StartLevel,
    pub(crate) pe_cycles: u32,
    pub(crate) endurance: u32,
    pub(crate) levelling: WearLevelling,
    pub(crate) has_demand_map: bool,
    pub(crate) copybacks_max: u8,
    /// Placement handles, and one bit for each that is persistently isolated.
    pub(crate) handles: u16,
    pub(crate) persistent: u16,
    pub(crate) has_combinations: bool,
    /// Number of cached units that a capacitor flushes at power loss; `None`: the drive has no such cache.
    pub(crate) flushed_units: Option<u64>,
    pub(crate) hot_reads: Option<u32>,
    pub(crate) suspend: SuspendSpec,
    /// Whether a foreground cleaning has its dies to itself.
    pub(crate) blocks_dies: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            lanes: 1,
            superblocks: 8,
            units: 4,
            unit_bytes: 4096,
            logical_units: 16,
            cell: Cell::Slc,
            levels: 0,
            start: StartLevel::First,
            pe_cycles: 0,
            endurance: 1000,
            levelling: WearLevelling::Dynamic,
            has_demand_map: false,
            copybacks_max: 0,
            handles: 1,
            persistent: 0,
            has_combinations: false,
            flushed_units: None,
            hot_reads: None,
            suspend: SuspendSpec::default(),
            blocks_dies: false,
        }
    }
}

/// RBER that a read adds to the units of its superblock.
const READ_DISTURB: f64 = 1e-3;

impl Setup {
    /// The core with these settings.
    pub(crate) fn core(&self) -> Core<NoProbe> {
        let drive = DriveSpec {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: self.lanes,
            blocks_per_plane: self.superblocks,
            pages_per_block: self.units,
            page_size_bytes: self.unit_bytes,
            cell: self.cell,
            layers: 1,
            op: 0.0,
            bad_blocks: 0.0,
            endurance: self.endurance,
            registers: 1,
            program_order: crate::base::geometry::ProgramOrder::Page,
        };
        let mut geometry = Geometry::new(&drive);
        geometry.logical_units = self.logical_units;
        let level = |level: u8| LevelSpec {
            sense: Some(KindTimes::uniform(u64::from(level) * 50 * US)),
            transfer_ns: Some(10 * US),
            decode_ns: Some(u64::from(level) * 20 * US),
            ..LevelSpec::new(READ_DISTURB * (f64::from(level) + 0.5))
        };
        let ecc = EccSpec::of((1..=self.levels).map(level).collect(), self.start);
        let reliability = ReliabilitySpec {
            rber: RberSpec::None,
            read_disturb: READ_DISTURB,
            copyback: CopybackErrors::Constant,
            copyback_error: 0.0,
            page_variation: 0.0,
            pe_cycles: self.pe_cycles,
            retention: Retention::Shares(vec![(Span::ZERO, 1.0)]),
            clock_scale: 1.0,
        };
        let shapes = Shapes::new(self.timing().shape(&drive, &ecc, &geometry));
        let config = Config {
            timing: Timing::new(&self.timing(), &geometry, shapes),
            scheduler: Scheduler::ReadFirst,
            multi_plane: false,
            copies_back: true,
            copyback_gap: None,
            ecc: Ecc::new(&ecc),
            reliability: Reliability::new(&reliability),
            variation: None,
            age_clock: AgeClock::new(1.0),
            initial_ages: InitialAges::new(&reliability.retention, 0),
            pe_cycles: self.pe_cycles,
            endurance: self.endurance,
            keeps_sequences: true,
            placements: self.placements(),
            foreground_free: 0.0,
            blocks_dies: self.blocks_dies,
            levels_in_entries: self.has_demand_map,
            forgets_translation_levels: false,
            knows_errors: true,
            has_parts: self.has_combinations,
            reprogram_error: 0.0,
            hot_reads: self.hot_reads,
            refresh_class: Class::Background,
            geometry,
        };
        Core::new(config, |geometry, array| self.ftl(geometry, array), NoProbe)
    }

    /// The FTL with these settings, with no unit mapped.
    pub(crate) fn ftl(&self, geometry: &Geometry, array: &Array) -> Ftl {
        let settings = StreamSettings {
            handles: self.handles,
            persistent: self.persistent,
            shares_first_superblock: false,
            levels_wear: self.levelling == WearLevelling::Static,
            has_demand_map: self.has_demand_map,
            unit_bytes: self.unit_bytes,
            copybacks_max: self.copybacks_max,
            has_combinations: self.has_combinations,
            slc: None,
            added: crate::host::AddedStreams::default(),
        };
        let needs = SuperblockNeeds::new(&Demands {
            lanes: self.lanes.into(),
            blocks_per_superblock: 1,
            bad_blocks: 0.0,
            seed: 0,
            units_per_superblock: self.units.into(),
            units_per_flush_superblock: self.units.into(),
            units_per_program: 1,
            unit_bytes: self.unit_bytes.into(),
            logical_units: self.logical_units.into(),
            streams: settings.streams(),
            flushed_units: self.flushed_units,
            groups: 1,
        });
        let config = ftl::Config {
            allocation: Allocation::Static(*b"CWDP"),
            levelling: self.levelling,
            victim: Box::new(FewestValid),
            needs,
            streams: settings.streams(),
            slc: None,
            flush_shape: ShapeId::FIRST,
            placements: self.placements(),
        };
        Ftl::new(config, geometry, array)
    }

    fn placements(&self) -> Placements {
        let isolation = |handle: u16| match self.persistent >> handle & 1 {
            0 => Isolation::Initial,
            _ => Isolation::Persistent,
        };
        let isolation = (0..self.handles).map(isolation).collect();
        Placements::of(
            &PlacementSpec { handles: self.handles, isolation, ..PlacementSpec::default() },
            self.lanes,
        )
    }

    fn timing(&self) -> TimingSpec {
        let by_kind = ProgramTime::ByKind(KindTimes::new(100 * US, 300 * US));
        TimingSpec {
            read: Some(KindTimes::uniform(50 * US)),
            program: if matches!(self.cell, Cell::Mlc | Cell::Tlc) {
                by_kind
            } else {
                ProgramTime::Uniform(200 * US)
            },
            erase_ns: MS,
            channel_ns_per_byte: 10_000.0 / f64::from(self.unit_bytes),
            command: CommandTimes::uniform(Span::ZERO),
            decode_ns: Some(Span::ZERO),
            off_chip: OffChipRate::Unlimited,
            scheduler: Scheduler::ReadFirst,
            multi_plane: false,
            plane_reads: PlaneReads::Together,
            read_hold_ns: Span::ZERO,
            suspend: self.suspend,
        }
    }
}

/// The only shape of a drive, with the times of a core without read levels.
pub(crate) fn shapes(drive: &DriveSpec, geometry: &Geometry) -> Shapes {
    let ecc = EccSpec::of(Vec::new(), StartLevel::First);
    Shapes::new(Setup { cell: drive.cell, ..Setup::default() }.timing().shape(drive, &ecc, geometry))
}

/// Picks the superblock with the fewest valid units.
#[derive(Clone, Debug)]
struct FewestValid;

impl VictimPolicy for FewestValid {
    fn pick(&mut self, lane: &Candidates) -> Result<Option<u32>, PolicyError> {
        Ok(lane.least_valid())
    }

    fn fork(&self) -> Box<dyn VictimPolicy> {
        Box::new(self.clone())
    }
}

/// An event that a test handles.
#[derive(Debug)]
pub(crate) enum Event {
    /// A wake.
    Wake(Wake),
    /// The unit of a read has left its die.
    Page(Slot),
    /// A program, copyback or erase has ended; array, FTL and map are up to date. A program in place changes none of
    /// them.
    Ended(Transaction),
    /// A clock other than the die's has expired; it is not set again.
    Clock(u32),
}

/// The next event, in the order in which the drive serves events; `None` when there are no further events.
pub(crate) fn next(core: &mut Core<NoProbe>) -> Option<Event> {
    loop {
        start(core);
        if let Some(wake) = core.wakes.pop() {
            return Some(Event::Wake(wake));
        }
        let (clock, ended) = strike(core)?;
        match ended {
            None => return Some(Event::Clock(clock)),
            Some(Ended::Nothing | Ended::Sense(_)) => {}
            Some(Ended::Page(slot)) => return Some(Event::Page(slot)),
            Some(Ended::Batch(slot)) => {
                let done = core.pool.remove(slot);
                end(core, &done);
                return Some(Event::Ended(done));
            }
        }
    }
}

/// Starts the die, if it is free and transactions are queued.
pub(crate) fn start(core: &mut Core<NoProbe>) {
    core.start_dies();
    let Core { device, pool, agenda, probe, now, .. } = core;
    device.start_next(pool, agenda, probe, *now, DieId(0));
}

/// Advances to the next clock. Returns the clock and, for the die's clock, what has ended; `None` if no clock is set.
pub(crate) fn strike(core: &mut Core<NoProbe>) -> Option<(u32, Option<Ended>)> {
    let (time, clock) = core.agenda.first();
    if time == NEVER {
        return None;
    }
    core.now = time;
    if clock > 0 {
        core.agenda.set(clock, NEVER);
        return Some((clock, None));
    }
    let Core { device, pool, agenda, probe, now, .. } = core;
    Some((clock, Some(device.on_clock(pool, agenda, probe, *now, DieId(0)))))
}

fn end(core: &mut Core<NoProbe>, done: &Transaction) {
    if done.kind == FlashOp::Erase {
        core.end_erase(done.unit, done.cause);
        return;
    }
    core.count_ended(done.kind, done.cause, done.shape);
    if done.is_in_place() {
        return;
    }
    if let (FlashOp::Copyback, Some(source)) = (done.kind, done.replaces)
        && core.ftl.map.get(done.lpn) == Some(source)
    {
        core.ftl.remap(&mut core.array, done.lpn, done.unit);
    }
    if core.end_program(done).is_closed {
        core.wake(Wake::Space(core.geometry.lane_of(core.geometry.superblock_of(done.unit))));
    }
    if let Some(old) = done.replaces {
        core.unpin(core.geometry.superblock_of(old));
    }
}

/// Ends the read of a unit that has left its die, as if its read level had decoded it.
pub(crate) fn decode(core: &mut Core<NoProbe>, slot: Slot) -> Transaction {
    let read = core.pool.remove(slot);
    let superblock = core.geometry.superblock_of(read.unit);
    core.array.read(&core.geometry, superblock, read.index);
    core.count_ended(FlashOp::Read, read.cause, read.shape);
    core.unpin(superblock);
    read
}

/// Programs units without simulated time, each with the next sequence number. Returns the PPN of the last unit.
pub(crate) fn fill(
    core: &mut Core<NoProbe>,
    stream: StreamId,
    lpns: impl IntoIterator<Item = u32>,
) -> UnitId {
    let mut last = None;
    for lpn in lpns.into_iter().map(Lpn) {
        core.sequence += 1;
        let sequence = core.sequence;
        Offline::new(core).program_now(LANE, stream, lpn, sequence, |_| ());
        last = core.ftl.map.get(lpn);
    }
    last.expect("`lpns` is not empty")
}

/// Deallocates an LPN. Returns the unit to which the LPN was mapped.
pub(crate) fn unmap(core: &mut Core<NoProbe>, lpn: u32) -> Option<UnitId> {
    core.ftl.unmap(&mut core.array, Lpn(lpn))
}

/// Deallocates all units of a full superblock, and erases the superblock without simulated time.
pub(crate) fn clear(core: &mut Core<NoProbe>, superblock: SuperblockId) {
    assert_eq!(core.array.superblock(superblock).state, SuperblockState::Full);
    while let Some(index) = core.ftl.next_valid(superblock, 0) {
        let lpn = core.array.lpn(core.geometry.unit(superblock, index));
        unmap(core, lpn.0);
    }
    core.begin_emptying(superblock);
    core.end_erase(core.geometry.unit(superblock, 0), crate::sched::Cause::Gc);
}

/// A map with every entry in RAM, which records its calls.
#[derive(Debug, Default)]
pub(crate) struct MapInRam {
    pub(crate) levels: BTreeMap<u32, u8>,
    pub(crate) written: Vec<u32>,
    /// LPNs that jobs have moved, each with whether the move has corrected the data.
    pub(crate) moved: Vec<(u32, bool)>,
    pub(crate) jobs_ended: u32,
}

impl Map<NoProbe> for MapInRam {
    fn has_entry(&mut self, _: &mut Core<NoProbe>, _: Lpn, _: Owner, _: Wants) -> bool {
        true
    }

    fn keep_entry(&mut self, _: &mut Core<NoProbe>, _: Lpn) {}

    fn on_written(&mut self, _: &mut Core<NoProbe>, lpn: Lpn) {
        self.written.push(lpn.0);
    }

    fn on_moved(&mut self, _: &mut Core<NoProbe>, _: LaneId, lpn: Lpn, is_corrected: bool) {
        self.moved.push((lpn.0, is_corrected));
    }

    fn on_unmapped(&mut self, _: &mut Core<NoProbe>, _: Lpn) -> Option<Tvpn> {
        None
    }

    fn end_job(&mut self, _: &mut Core<NoProbe>, _: LaneId) {
        self.jobs_ended += 1;
    }

    fn level(&self, _: &Core<NoProbe>, lpn: Lpn) -> u8 {
        self.levels.get(&lpn.0).copied().unwrap_or(0)
    }

    fn set_level(&mut self, _: &mut Core<NoProbe>, lpn: Lpn, level: u8) {
        self.levels.insert(lpn.0, level);
    }

    fn is_waiting(&self) -> bool {
        false
    }

    fn waits_in(&self, _: LaneId) -> bool {
        false
    }

    fn prefetch_move(&self, _: Lpn) {}
}

impl Core<NoProbe> {
    /// The flash array, for tests that set what a verb would change slowly.
    pub(crate) fn flash_mut(&mut self) -> &mut Array {
        &mut self.array
    }

    /// Gives a fresh drive further shapes.
    pub(crate) fn set_shapes(&mut self, shapes: Shapes) {
        self.array = self.array.clone().with_shapes(shapes.clone());
        self.ftl = self.ftl.clone().with_shapes(shapes);
    }

    /// The emptied and dead superblocks of a lane.
    pub(crate) fn space(&self, lane: LaneId) -> &Space {
        &self.room.spaces[lane.index()]
    }

    /// Makes a superblock the victim of a job of a lane that does not exist.
    pub(crate) fn set_victim(&mut self, lane: LaneId, victim: Option<SuperblockId>) {
        self.room.works[lane.index()].victim = victim;
    }

    /// Counts a host read of a unit.
    pub(crate) fn count_host_read(&mut self, unit: UnitId) {
        self.read_counts.count(unit);
    }

    /// Drops all wakes.
    pub(crate) fn forget_wakes(&mut self) {
        self.wakes.clear();
    }

    /// Drops the read levels that are kept.
    pub(crate) fn forget_levels(&mut self) {
        self.levels.forget();
    }

    /// Takes a free superblock of a die, as a flush does.
    pub(crate) fn take_flush_superblock(&mut self, die: DieId) -> Option<SuperblockId> {
        self.ftl.take_flush_superblock(&mut self.array, die, StreamId::HOST)
    }

    /// Drops the operations that no die has begun.
    pub(crate) fn drop_device_queues(&mut self) {
        self.device.drop_queues(&self.pool);
    }

    /// Drops all operations, and takes a fresh FTL.
    pub(crate) fn forget_operations(&mut self, ftl: Ftl) {
        self.pool.clear();
        self.ftl = ftl;
    }
}
