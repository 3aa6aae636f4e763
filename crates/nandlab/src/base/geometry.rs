//! The geometry of a drive and the words for its parts.
//!
//! - A *page* is what the flash senses as a whole. A *unit* is a mapping unit (`ftl.mapping_unit`): the bytes that a
//!   map entry stands for. A page has [`Geometry::units_per_page`] units with consecutive PPNs; by default it is one
//!   unit.
//! - A PPN ([`UnitId`]) is the number of a physical unit on the drive, an LPN ([`Lpn`]) that of a logical unit. The
//!   LPNs below [`Geometry::logical_units`] are those of the host; those of translation and combination pages follow. A
//!   `u32` called `index` or `unit` is the number of a physical unit in its superblock, from 0 on.
//! - A *plane* is a plane of a die, a *block* a block of one plane.
//! - A *superblock* (`ftl.superblock`) consists of the blocks that are filled, collected, erased and retired as one. A
//!   *lane* is the planes whose blocks form superblocks: [`Geometry::planes_per_lane`] planes on each of
//!   [`Geometry::dies_per_lane`] dies. A superblock has one good block of each plane of its lane. By default a lane is
//!   a single plane, and a superblock a single block.
//! - A *row* of a superblock on a die consists of the pages with the same number in each of its blocks there, in the
//!   order of the planes; row r has the pages with number r. A *full row* is the rows with the same number on all dies
//!   of the superblock. How the units of a superblock follow each other over rows and dies is in [`Stripes`].
//! - A *programming unit* is what one program operation writes: a page, or with `drive.program_order = "one-shot"` all
//!   pages of a wordline of each block that the superblock has on a die, which are consecutive rows. A block then has
//!   whole wordlines only. The units of a programming unit have consecutive PPNs.
//! - What follows from the use of the cells is the *shape* of a superblock ([`Shape`](crate::flash::Shape)): how many of
//!   its PPNs have a unit, its programming units, page kinds and times.
//!
//! Ids count over the whole drive, from 0 on. They are nested: the dies of a channel, the lanes of a die, the
//! superblocks of a lane and the units of a superblock have consecutive ids. Chips have no ids; the dies of a chip have
//! consecutive ones. With `ftl.superblock = "drive"` lane 0 is the only lane, and on all dies. A lane has as many
//! superblocks as its plane with the fewest good blocks has good blocks ([`BadBlocks`]). If these are fewer than
//! `drive.blocks_per_plane`, the last superblock ids of the lane are those of missing superblocks.
//!
//! [`Geometry::planes_per_lane`] and [`Geometry::units_per_row`] count what is on one die. All other numbers per lane
//! and per superblock are for all dies of the lane.
//!
//! Map, valid bits, OOB, GC and jobs know units, superblocks and lanes. Planes matter to the device
//! (`Transaction::plane_in_die`), and to copybacks, which stay in their plane. Flash operations are counted by page and
//! block, most other things by unit and superblock. A job of a lane acts on all dies of the lane
//! ([`Geometry::dies_of`]).

pub use crate::base::ids::{CacheSlot, DieId, LaneId, Lpn, MissId, RequestId, SuperblockId, Tvpn, UnitId};
pub use crate::base::page_kind::{KindTimes, PageKind};
pub use crate::base::stripes::{Divisor, Stripes};

use crate::base::bad_blocks::BadBlocks;

use std::fmt;

/// The number of logical units of a drive with `units` physical units.
pub fn logical_units(units: u64, op: f64) -> u64 {
    (units as f64 / (1.0 + op)) as u64
}

/// Section `[drive]` of the spec: the geometry.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct DriveSpec {
    pub channels: u32,
    pub chips_per_channel: u32,
    pub dies_per_chip: u32,
    pub planes_per_die: u32,
    pub blocks_per_plane: u32,
    pub pages_per_block: u32,
    pub page_size_bytes: u32,
    pub cell: Cell,
    /// Layers of a 3D block; the pages of the block are spread evenly over them. 1 for 2D cells.
    pub layers: u32,
    /// Over-provisioning: (raw - logical) / logical bytes.
    pub op: f64,
    /// Share of the blocks that are bad from the factory.
    pub bad_blocks: f64,
    /// P/E cycles at which a superblock is retired.
    pub endurance: u32,
    /// Page registers of a plane.
    pub registers: u32,
    /// What one program operation writes.
    pub program_order: ProgramOrder,
}

/// `drive.program_order`: the pages that one program operation writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramOrder {
    /// One page.
    Page,
    /// All pages of a wordline, in each block that the superblock has on the die.
    OneShot,
}

/// `ftl.superblock`: the blocks of a superblock, which are filled, collected, erased and retired as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Superblock {
    /// One block.
    Plane,
    /// One block of every plane of a die.
    Die,
    /// One block of every plane of the drive.
    Drive,
}

/// How the FTL divides the flash memory.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Units of a page, a power of two.
    pub units_per_page: u32,
    /// The blocks of a superblock.
    pub superblock: Superblock,
}

impl Default for Layout {
    /// A unit is a page, and a superblock a block.
    fn default() -> Self {
        Self { units_per_page: 1, superblock: Superblock::Plane }
    }
}

impl Superblock {
    /// Planes of a lane on each of its dies: the blocks that a superblock has there.
    pub fn planes(self, drive: &DriveSpec) -> u32 {
        match self {
            Self::Plane => 1,
            Self::Die | Self::Drive => drive.planes_per_die,
        }
    }
}

/// `drive.cell`: the type of the flash cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Cell {
    Slc,
    Mlc,
    Tlc,
    Mlc3d,
    Tlc3d,
}

impl Cell {
    /// Bits of a cell.
    pub fn bits(self) -> u32 {
        match self {
            Cell::Slc => 1,
            Cell::Mlc | Cell::Mlc3d => 2,
            Cell::Tlc | Cell::Tlc3d => 3,
        }
    }

    /// The kind of the page with number `row` in its block. The pages of a wordline have consecutive numbers.
    pub fn kind_of_row(self, row: u32) -> PageKind {
        match (self.bits(), row % self.bits()) {
            (1, _) => PageKind::Slc,
            (_, 0) => PageKind::Lsb,
            (3, 1) => PageKind::Csb,
            _ => PageKind::Msb,
        }
    }
}

/// The geometry of a drive: the spec's values, and the numbers that follow from them.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Geometry {
    pub channels: u32,
    pub dies_per_channel: u32,
    pub chips_per_channel: u32,
    pub dies_per_chip: u32,
    /// Lanes that have planes on a die. With superblocks on all dies it is 1: every die has planes of the only lane.
    pub lanes_per_die: u32,
    /// Superblocks of a lane, missing ones ([`BadBlocks`]) included: the blocks of a plane, bad ones included.
    pub superblocks_per_lane: u32,
    /// PPNs of a superblock, on all its dies: the units of a superblock whose cells are used with all their bits. Only
    /// addresses follow from it; the units of a superblock are those of its shape.
    pub units_per_superblock: u32,
    /// Bytes of a unit.
    pub unit_bytes: u32,
    /// Dies of the drive.
    pub dies: u32,
    /// Lanes of the drive.
    pub lanes: u32,
    /// Superblocks of the drive, missing ones included.
    pub superblocks: u32,
    /// Units of the drive, those of missing superblocks included.
    pub units: u32,
    /// Units of a page, a power of two.
    pub units_per_page: u32,
    /// Units of a row of a superblock on one die.
    pub units_per_row: u32,
    /// Planes that a lane has on each of its dies: the blocks that a superblock has there.
    pub planes_per_lane: u32,
    /// Dies of a lane, and of each superblock: 1, or all dies of the drive.
    pub dies_per_lane: u32,
    /// The order of the units of a superblock.
    pub stripes: Stripes,
    /// Units that the host can address: the units of the drive / (1 + OP), rounded down.
    pub logical_units: u32,
    /// The blocks that are bad from the factory.
    pub bad: BadBlocks,
    // Each divides by the number that it is named for.
    by_units_per_superblock: Divisor,
    by_superblocks_per_lane: Divisor,
    by_lanes_per_die: Divisor,
    by_dies_per_channel: Divisor,
    /// The binary logarithm of `unit_bytes`; `None` for a size that is no power of two.
    unit_shift: Option<u32>,
}

impl Geometry {
    /// The geometry of a validated `[drive]` section whose unit is the page, and whose superblocks are single blocks.
    ///
    /// # Panics
    /// If the drive has 2^32 - 1 units or more; the spec check rejects such a drive. The number 2^32 - 1 is left free,
    /// because as an LPN it stands for no data.
    pub fn new(drive: &DriveSpec) -> Self {
        Self::with(drive, Layout::default())
    }

    /// The geometry of a validated `[drive]` section that the FTL divides by `layout`.
    ///
    /// # Panics
    /// If the drive has 2^32 - 1 units or more; the spec check rejects such a drive. The number 2^32 - 1 is left free,
    /// because as an LPN it stands for no data.
    pub fn with(drive: &DriveSpec, layout: Layout) -> Self {
        let Layout { units_per_page, superblock } = layout;
        let planes_per_lane = superblock.planes(drive);
        let unit_bytes = drive.page_size_bytes / units_per_page;
        let lanes_per_die = drive.planes_per_die / planes_per_lane;
        let units_per_row = units_per_page * planes_per_lane;
        let dies_per_channel = drive.chips_per_channel * drive.dies_per_chip;
        let dies = drive.channels * dies_per_channel;
        let dies_per_lane = if superblock == Superblock::Drive { dies } else { 1 };
        let units_per_superblock = drive.pages_per_block * units_per_row * dies_per_lane;
        let rows_per_program = match drive.program_order {
            ProgramOrder::Page => 1,
            ProgramOrder::OneShot => drive.cell.bits(),
        };
        let lanes = dies / dies_per_lane * lanes_per_die;
        let superblocks = u64::from(lanes) * u64::from(drive.blocks_per_plane);
        let units = superblocks * u64::from(units_per_superblock);
        assert!(units < u64::from(u32::MAX), "a drive has at most 2^32 - 2 units, this one {units}");
        Self {
            channels: drive.channels,
            dies_per_channel,
            chips_per_channel: drive.chips_per_channel,
            dies_per_chip: drive.dies_per_chip,
            lanes_per_die,
            superblocks_per_lane: drive.blocks_per_plane,
            units_per_superblock,
            unit_bytes,
            dies,
            lanes,
            superblocks: superblocks as u32,
            units: units as u32,
            units_per_page,
            units_per_row,
            planes_per_lane,
            dies_per_lane,
            stripes: Stripes::new(dies_per_lane, units_per_row, rows_per_program),
            logical_units: logical_units(units, drive.op) as u32,
            bad: BadBlocks::default(),
            by_units_per_superblock: Divisor::new(units_per_superblock),
            by_superblocks_per_lane: Divisor::new(drive.blocks_per_plane),
            by_lanes_per_die: Divisor::new(lanes_per_die),
            by_dies_per_channel: Divisor::new(dies_per_channel),
            unit_shift: unit_bytes.is_power_of_two().then(|| unit_bytes.ilog2()),
        }
    }

    /// Bytes that the host can address.
    pub fn logical_bytes(&self) -> u64 {
        u64::from(self.logical_units) * u64::from(self.unit_bytes)
    }

    /// Bytes of flash memory, bad blocks included.
    pub fn raw_bytes(&self) -> u64 {
        u64::from(self.units) * u64::from(self.unit_bytes)
    }

    /// The LPN of the unit that has the byte at the logical address `offset`, as 64 bits: the address may be beyond the
    /// drive's end.
    #[inline(always)]
    pub fn lpn_at(&self, offset: u64) -> u64 {
        self.unit_shift.map_or_else(|| self.unit_by_division(offset), |shift| offset >> shift)
    }

    #[cold]
    fn unit_by_division(&self, offset: u64) -> u64 {
        offset / u64::from(self.unit_bytes)
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> u32 {
        self.unit_bytes * self.units_per_page
    }

    /// Pages of the drive, those of bad blocks included.
    pub fn pages(&self) -> u32 {
        self.units / self.units_per_page
    }

    /// Units of a full row of a superblock: of the rows with the same number on all its dies.
    #[inline(always)]
    pub fn units_per_full_row(&self) -> u32 {
        self.units_per_row * self.dies_per_lane
    }

    /// Blocks of a superblock: the planes of a lane on all its dies.
    pub fn blocks_per_superblock(&self) -> u32 {
        self.planes_per_lane * self.dies_per_lane
    }

    /// Blocks of the drive, bad ones included.
    pub fn blocks(&self) -> u32 {
        self.superblocks * self.blocks_per_superblock()
    }

    /// Planes of a die.
    pub fn planes_per_die(&self) -> u32 {
        self.lanes_per_die * self.planes_per_lane
    }

    /// The first unit of the page of `unit`.
    #[inline(always)]
    pub fn first_of_page(&self, unit: UnitId) -> UnitId {
        // A superblock has a whole number of pages.
        UnitId(unit.0 & !(self.units_per_page - 1))
    }

    /// The row of unit `unit` of a superblock on its die: the number of its page in its block.
    #[inline(always)]
    pub fn row(&self, unit: u32) -> u32 {
        self.stripes.row(unit)
    }

    /// The plane of unit `unit` of a superblock, by its number among the planes that the lane has on the die.
    #[inline(always)]
    fn plane_in_lane(&self, unit: u32) -> u32 {
        if self.planes_per_lane == 1 { 0 } else { self.stripes.by_row.split(unit).1 / self.units_per_page }
    }

    /// The block of unit `unit` of a superblock, by its number in the superblock.
    #[inline(always)]
    pub fn member(&self, unit: u32) -> u32 {
        let plane = self.plane_in_lane(unit);
        if self.dies_per_lane == 1 {
            plane
        } else {
            self.stripes.split(unit).0 * self.planes_per_lane + plane
        }
    }

    /// The number in its die of the plane of unit `unit` of `superblock`.
    #[inline(always)]
    pub fn plane_in_die(&self, superblock: SuperblockId, unit: u32) -> u32 {
        let (_, lane_in_die) = self.by_lanes_per_die.split(self.lane_of(superblock).0);
        lane_in_die * self.planes_per_lane + self.plane_in_lane(unit)
    }

    /// The units of the page of `unit`.
    pub fn units_of_page(&self, unit: UnitId) -> impl Iterator<Item = UnitId> + use<> {
        let first = self.first_of_page(unit).0;
        (first..first + self.units_per_page).map(UnitId)
    }

    /// The superblock of the unit with this PPN, and the unit's number in its superblock.
    #[inline(always)]
    pub fn split(&self, unit: UnitId) -> (SuperblockId, u32) {
        let (superblock, index) = self.by_units_per_superblock.split(unit.0);
        (SuperblockId(superblock), index)
    }

    /// The numbers in its superblock of the units of the page of `unit`.
    pub fn numbers_of_page(&self, unit: UnitId) -> std::ops::Range<u32> {
        let (_, number) = self.split(self.first_of_page(unit));
        number..number + self.units_per_page
    }

    /// The superblocks of the drive, each counted once for each of its dies.
    pub fn superblocks_on_dies(&self) -> usize {
        (self.superblocks * self.dies_per_lane) as usize
    }

    /// Divides PPNs by the number of PPNs of a superblock.
    pub fn by_superblock(&self) -> Divisor {
        self.by_units_per_superblock
    }

    /// The superblock of a unit.
    #[inline(always)]
    pub fn superblock_of(&self, unit: UnitId) -> SuperblockId {
        SuperblockId(self.by_units_per_superblock.divide(unit.0))
    }

    /// The PPN of the unit with number `index` in `superblock`.
    #[inline(always)]
    pub fn unit(&self, superblock: SuperblockId, index: u32) -> UnitId {
        UnitId(superblock.0 * self.units_per_superblock + index)
    }

    /// The lane of a superblock.
    #[inline(always)]
    pub fn lane_of(&self, superblock: SuperblockId) -> LaneId {
        LaneId(self.by_superblocks_per_lane.divide(superblock.0))
    }

    /// The first superblock of a lane.
    #[inline(always)]
    pub fn first_superblock(&self, lane: LaneId) -> SuperblockId {
        SuperblockId(lane.0 * self.superblocks_per_lane)
    }

    /// The ids of the superblocks that a lane has as array indices.
    pub fn superblocks_of(&self, lane: LaneId) -> std::ops::Range<usize> {
        let first = self.first_superblock(lane).index();
        first..first + self.superblocks_in(lane) as usize
    }

    /// The ids of the superblocks that a lane has, in ascending order.
    pub fn superblock_ids_of(&self, lane: LaneId) -> impl Iterator<Item = SuperblockId> + Clone + use<> {
        let first = self.first_superblock(lane).0;
        (first..first + self.superblocks_in(lane)).map(SuperblockId)
    }

    /// The die of a lane that is on one die.
    #[inline(always)]
    pub fn die_of(&self, lane: LaneId) -> DieId {
        debug_assert!(self.dies_per_lane == 1, "the superblocks of the lane are on several dies");
        DieId(self.by_lanes_per_die.divide(lane.0))
    }

    /// The die of unit `unit` of `superblock`.
    #[inline(always)]
    pub fn die_of_unit(&self, superblock: SuperblockId, unit: u32) -> DieId {
        if self.dies_per_lane == 1 {
            self.die_of(self.lane_of(superblock))
        } else {
            DieId(self.stripes.split(unit).0)
        }
    }

    /// The number of a die among the dies of each of its lanes.
    #[inline]
    pub fn die_in_lane(&self, die: DieId) -> u32 {
        if self.dies_per_lane == 1 { 0 } else { die.0 }
    }

    /// The dies of a lane.
    #[inline]
    pub fn dies_of(&self, lane: LaneId) -> impl Iterator<Item = DieId> + use<> {
        let dies = if self.dies_per_lane == 1 {
            let die = self.die_of(lane).0;
            die..die + 1
        } else {
            0..self.dies
        };
        dies.map(DieId)
    }

    /// The lanes of the dies of a lane, which include the lane itself.
    #[inline]
    pub fn lanes_beside(&self, lane: LaneId) -> impl Iterator<Item = LaneId> + Clone + use<> {
        let first = self.first_lane_beside(lane).0;
        (first..first + self.lanes_per_die).map(LaneId)
    }

    /// The first of the lanes that [`Geometry::lanes_beside`] returns.
    #[inline(always)]
    pub fn first_lane_beside(&self, lane: LaneId) -> LaneId {
        LaneId(self.by_lanes_per_die.divide(lane.0) * self.lanes_per_die)
    }

    /// The lanes that have planes on a die.
    #[inline]
    pub fn lanes_of(&self, die: DieId) -> impl Iterator<Item = LaneId> + Clone + use<> {
        let first = if self.dies_per_lane == 1 { die.0 * self.lanes_per_die } else { 0 };
        (first..first + self.lanes_per_die).map(LaneId)
    }

    /// The channel of a die.
    #[inline(always)]
    pub fn channel_of(&self, die: DieId) -> u32 {
        self.by_dies_per_channel.divide(die.0)
    }

    /// Shows a unit as `c0.d3.p1.b120.pg7`: the numbers of the channel, of the die in the channel, of the plane in the
    /// die, of the superblock in its lane, and, after `pg`, of the unit in the superblock. The lane follows from die
    /// and plane.
    pub fn show(&self, unit: UnitId) -> impl fmt::Display + use<> {
        let (superblock, index) = self.split(unit);
        let die = self.die_of_unit(superblock, index);
        let (channel, die_in_channel) = (self.channel_of(die), die.0 % self.dies_per_channel);
        let plane = self.plane_in_die(superblock, index);
        let superblock = superblock.0 % self.superblocks_per_lane;
        fmt::from_fn(move |f| write!(f, "c{channel}.d{die_in_channel}.p{plane}.b{superblock}.pg{index}"))
    }
}
