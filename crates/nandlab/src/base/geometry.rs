//! The geometry of a drive and the ids of its parts.
//!
//! Numbering is dense and nested: channel, chip, die, plane, block, page. For example, the id of a die's first plane is
//! the die's id times the planes per die. PPNs number the physical pages of the whole drive, LPNs the logical pages.
//!
//! A *page* is a mapping unit (`ftl.mapping_unit`): the bytes that a map entry stands for. A *flash page*, which the
//! flash senses as a whole, has [`Geometry::units_per_page`] pages with consecutive PPNs. By default the mapping unit is
//! the flash page.
//!
//! A *block* is a superblock (`ftl.superblock`): the blocks that are filled, collected and erased as one. A *flash
//! block* is one of its members, one in each plane of a group: [`Geometry::planes_per_block`] planes on each of
//! [`Geometry::dies_per_block`] dies. The group has one [`PlaneId`]. By default the group is a single plane. On a die,
//! row r of a block consists of flash page r of every member, in the order of the planes. How the pages of a block
//! follow each other over rows and dies is in [`Stripes`]. A plane whose group has bad flash blocks has fewer blocks
//! than `drive.blocks_per_plane` ([`BadBlocks`]): those with the highest numbers do not exist.
//!
//! A *programming unit* is what one program operation writes: a flash page, or with `drive.program_order = "one-shot"`
//! all flash pages of a wordline of every member, which are consecutive rows. It has
//! [`Geometry::pages_per_program`] pages with consecutive PPNs.

pub use crate::base::ids::{BlockId, CacheSlot, DieId, Lpn, MissId, PlaneId, Ppn, RequestId, Tvpn};
pub use crate::base::stripes::{Divisor, Stripes};

use crate::base::bad_blocks::BadBlocks;
use crate::base::units::Span;
use std::fmt;

/// The number of logical pages of a drive with `pages` physical pages.
pub(crate) fn logical_pages(pages: u64, op: f64) -> u64 {
    (pages as f64 / (1.0 + op)) as u64
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
    /// Layers of a 3D block; its pages are spread evenly over them. 1 for 2D cells.
    pub layers: u32,
    /// Over-provisioning: (raw - logical) / logical pages.
    pub op: f64,
    /// Share of the flash blocks that are bad from the factory.
    pub bad_blocks: f64,
    /// P/E cycles after which a block is retired.
    pub endurance: u32,
    /// Page registers of a plane.
    pub registers: u32,
    /// What one program operation writes.
    pub program_order: ProgramOrder,
}

/// `drive.program_order`: the flash pages that one program operation writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramOrder {
    /// One flash page.
    Page,
    /// All flash pages of a wordline.
    OneShot,
}

/// `ftl.superblock`: the blocks that are filled, collected, erased and retired as one.
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
    /// Mapping units of a flash page, a power of two.
    pub units_per_page: u32,
    /// The blocks that are filled and erased as one.
    pub superblock: Superblock,
}

impl Default for Layout {
    /// Mapping by flash page, every block by itself.
    fn default() -> Self {
        Self { units_per_page: 1, superblock: Superblock::Plane }
    }
}

impl Superblock {
    /// The blocks of a superblock on one die.
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
}

/// The kind of a page: which bit of its cells it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PageKind {
    /// The only page of an SLC cell.
    Slc,
    /// Least significant bit: programmed first, fast.
    Lsb,
    /// Centre bit of a TLC cell.
    Csb,
    /// Most significant bit: programmed last, slow.
    Msb,
}

/// A time of an operation on a page, for each page kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindTimes {
    /// SLC and LSB pages.
    pub lsb_ns: Span,
    /// CSB pages.
    pub csb_ns: Span,
    /// MSB pages.
    pub msb_ns: Span,
}

impl KindTimes {
    /// The same time for every page.
    pub fn uniform(ns: Span) -> Self {
        Self { lsb_ns: ns, csb_ns: ns, msb_ns: ns }
    }

    /// Times of LSB and MSB pages, and their mean for CSB pages.
    pub fn new(lsb_ns: Span, msb_ns: Span) -> Self {
        Self { lsb_ns, csb_ns: Span::from_ns(lsb_ns.ns().midpoint(msb_ns.ns())), msb_ns }
    }

    /// The time of a page of this kind.
    pub fn of(&self, kind: PageKind) -> Span {
        match kind {
            PageKind::Slc | PageKind::Lsb => self.lsb_ns,
            PageKind::Csb => self.csb_ns,
            PageKind::Msb => self.msb_ns,
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
    pub planes_per_die: u32,
    pub blocks_per_plane: u32,
    pub pages_per_block: u32,
    pub page_bytes: u32,
    pub dies: u32,
    pub planes: u32,
    pub blocks: u32,
    pub pages: u32,
    pub pages_per_plane: u32,
    /// Pages (mapping units) of a flash page, a power of two.
    pub units_per_page: u32,
    /// Pages (mapping units) of a row of a block on one die.
    pub pages_per_row: u32,
    /// Flash blocks of a block on one die, one for each plane of the group that has one [`PlaneId`].
    pub planes_per_block: u32,
    /// Dies of a block: 1, or all dies of the drive.
    pub dies_per_block: u32,
    /// The order of the pages of a block.
    pub stripes: Stripes,
    /// Flash pages of a programming unit.
    pub flash_pages_per_program: u32,
    /// Pages (mapping units) of a programming unit.
    pub pages_per_program: u32,
    /// Pages that the host can address: raw pages / (1 + OP), rounded down.
    pub logical_pages: u32,
    /// The flash blocks that are bad from the factory.
    pub bad: BadBlocks,
    pub cell: Cell,
    pub layers: u32,
    by_page: Divisor,
    by_block: Divisor,
    by_plane: Divisor,
    by_program: Divisor,
    by_channel: Divisor,
    /// The binary logarithm of `page_bytes`; `None` for a size that is no power of two.
    page_shift: Option<u32>,
}

impl Geometry {
    /// The geometry of a validated `[drive]` section whose mapping unit is the flash page.
    ///
    /// # Panics
    /// If the drive has 2^32 - 1 pages or more; the spec check rejects such a drive.
    pub fn new(drive: &DriveSpec) -> Self {
        Self::with(drive, Layout::default())
    }

    /// The geometry of a validated `[drive]` section that the FTL divides by `layout`.
    ///
    /// # Panics
    /// If the drive has 2^32 - 1 mapping units or more; the spec check rejects such a drive.
    pub fn with(drive: &DriveSpec, layout: Layout) -> Self {
        let Layout { units_per_page, superblock } = layout;
        let planes_per_block = superblock.planes(drive);
        let page_bytes = drive.page_size_bytes / units_per_page;
        let planes_per_die = drive.planes_per_die / planes_per_block;
        let pages_per_row = units_per_page * planes_per_block;
        let dies_per_channel = drive.chips_per_channel * drive.dies_per_chip;
        let dies = drive.channels * dies_per_channel;
        let dies_per_block = if superblock == Superblock::Drive { dies } else { 1 };
        let pages_per_block = drive.pages_per_block * pages_per_row * dies_per_block;
        let rows_per_program = match drive.program_order {
            ProgramOrder::Page => None,
            ProgramOrder::OneShot => Some(drive.cell.bits()),
        };
        let flash_pages_per_program = rows_per_program.map_or(1, |rows| rows * planes_per_block);
        let pages_per_program = flash_pages_per_program * units_per_page;
        let planes = dies / dies_per_block * planes_per_die;
        let blocks = u64::from(planes) * u64::from(drive.blocks_per_plane);
        let pages = blocks * u64::from(pages_per_block);
        assert!(pages < u64::from(u32::MAX), "a drive of {pages} pages does not fit 32-bit page numbers");
        Self {
            channels: drive.channels,
            dies_per_channel,
            chips_per_channel: drive.chips_per_channel,
            dies_per_chip: drive.dies_per_chip,
            planes_per_die,
            blocks_per_plane: drive.blocks_per_plane,
            pages_per_block,
            page_bytes,
            dies,
            planes,
            blocks: blocks as u32,
            pages: pages as u32,
            pages_per_plane: drive.blocks_per_plane * pages_per_block,
            units_per_page,
            pages_per_row,
            planes_per_block,
            dies_per_block,
            stripes: Stripes::new(dies_per_block, pages_per_row, rows_per_program.unwrap_or(1)),
            flash_pages_per_program,
            pages_per_program,
            logical_pages: logical_pages(pages, drive.op) as u32,
            bad: BadBlocks::default(),
            cell: drive.cell,
            layers: drive.layers,
            by_page: Divisor::new(pages_per_block),
            by_block: Divisor::new(drive.blocks_per_plane),
            by_plane: Divisor::new(planes_per_die),
            by_program: Divisor::new(pages_per_program),
            by_channel: Divisor::new(dies_per_channel),
            page_shift: page_bytes.is_power_of_two().then(|| page_bytes.ilog2()),
        }
    }

    /// Bytes that the host can address.
    pub fn logical_bytes(&self) -> u64 {
        u64::from(self.logical_pages) * u64::from(self.page_bytes)
    }

    /// Bytes of flash, bad blocks included.
    pub fn raw_bytes(&self) -> u64 {
        u64::from(self.pages) * u64::from(self.page_bytes)
    }

    /// The number of the page that has the byte at the logical address `offset`.
    #[inline(always)]
    pub fn page_at(&self, offset: u64) -> u64 {
        self.page_shift.map_or_else(|| self.page_by_division(offset), |shift| offset >> shift)
    }

    #[cold]
    fn page_by_division(&self, offset: u64) -> u64 {
        offset / u64::from(self.page_bytes)
    }

    /// Bytes of a flash page.
    pub fn flash_page_bytes(&self) -> u32 {
        self.page_bytes * self.units_per_page
    }

    /// Flash pages of the drive.
    pub fn flash_pages(&self) -> u32 {
        self.pages / self.units_per_page
    }

    /// Rows of a block: flash pages of a flash block.
    pub fn rows_per_block(&self) -> u32 {
        self.pages_per_block / (self.units_per_page * self.flash_blocks_per_block())
    }

    /// Flash pages of a block.
    pub fn flash_pages_per_block(&self) -> u32 {
        self.pages_per_block / self.units_per_page
    }

    /// Programming units of a block.
    pub fn programs_per_block(&self) -> u32 {
        self.pages_per_block / self.pages_per_program
    }

    /// Pages (mapping units) of a row of a block on all its dies.
    #[inline(always)]
    pub fn pages_per_full_row(&self) -> u32 {
        self.pages_per_row * self.dies_per_block
    }

    /// Consecutive pages that are always programmed and corrected together: a power of two. `copies_back`: the flash pages
    /// of a program may be copies of pages of different ages. `has_parts`: each page may be corrected by itself.
    pub fn pages_per_age(&self, copies_back: bool, has_parts: bool) -> u32 {
        match (copies_back, has_parts) {
            (_, true) => 1,
            (true, false) => self.units_per_page,
            // A block has a whole number of programs.
            (false, false) => 1 << self.pages_per_program.trailing_zeros(),
        }
    }

    /// Flash blocks of a block.
    pub fn flash_blocks_per_block(&self) -> u32 {
        self.planes_per_block * self.dies_per_block
    }

    /// Flash blocks of the drive.
    pub fn flash_blocks(&self) -> u32 {
        self.blocks * self.flash_blocks_per_block()
    }

    /// Planes of a die.
    pub fn flash_planes_per_die(&self) -> u32 {
        self.planes_per_die * self.planes_per_block
    }

    /// The first page of the flash page of `ppn`.
    #[inline(always)]
    pub fn first_unit(&self, ppn: Ppn) -> Ppn {
        // A block has a whole number of flash pages.
        Ppn(ppn.0 & !(self.units_per_page - 1))
    }

    /// The position of a page in its programming unit, from 0.
    #[inline(always)]
    pub fn place_in_program(&self, ppn: Ppn) -> u32 {
        // A block has a whole number of programming units.
        self.by_program.split(ppn.0).1
    }

    /// The row of page `page` of a block: the number of its flash page in its flash block.
    #[inline(always)]
    pub fn row(&self, page: u32) -> u32 {
        self.stripes.row(page)
    }

    /// The plane of page `page` of a block, by its number among the planes that the block has on the die.
    #[inline(always)]
    fn plane_in_block(&self, page: u32) -> u32 {
        if self.planes_per_block == 1 { 0 } else { self.stripes.by_row.split(page).1 / self.units_per_page }
    }

    /// The flash block of page `page` of a block, by its number in the block.
    #[inline(always)]
    pub fn member(&self, page: u32) -> u32 {
        let plane = self.plane_in_block(page);
        if self.dies_per_block == 1 {
            plane
        } else {
            self.stripes.split(page).0 * self.planes_per_block + plane
        }
    }

    /// The number in its die of the plane of page `page` of `block`.
    #[inline(always)]
    pub fn plane_in_die(&self, block: BlockId, page: u32) -> u32 {
        let (_, group) = self.by_plane.split(self.plane_of(block).0);
        group * self.planes_per_block + self.plane_in_block(page)
    }

    /// Whether a flash page that is copied back has to wait for others: they fill its programming unit, or they are in the
    /// planes whose turn it is.
    pub fn copybacks_wait(&self) -> bool {
        self.flash_pages_per_program > 1 || self.flash_blocks_per_block() > 1
    }

    /// The pages of the flash page of `ppn`.
    pub fn units(&self, ppn: Ppn) -> impl Iterator<Item = Ppn> + use<> {
        let first = self.first_unit(ppn).0;
        (first..first + self.units_per_page).map(Ppn)
    }

    /// The number within its block of the flash page of page `page`.
    #[inline(always)]
    pub fn flash_page(&self, page: u32) -> u32 {
        page / self.units_per_page
    }

    /// The block of a page, and the page's number in it.
    #[inline(always)]
    pub fn split(&self, ppn: Ppn) -> (BlockId, u32) {
        let (block, page) = self.by_page.split(ppn.0);
        (BlockId(block), page)
    }

    /// The block of a page.
    #[inline(always)]
    pub fn block_of(&self, ppn: Ppn) -> BlockId {
        BlockId(self.by_page.divide(ppn.0))
    }

    /// The page with number `page` in `block`.
    #[inline(always)]
    pub fn page(&self, block: BlockId, page: u32) -> Ppn {
        Ppn(block.0 * self.pages_per_block + page)
    }

    /// The plane of a block.
    #[inline(always)]
    pub fn plane_of(&self, block: BlockId) -> PlaneId {
        PlaneId(self.by_block.divide(block.0))
    }

    /// The first block of a plane.
    #[inline(always)]
    pub fn first_block(&self, plane: PlaneId) -> BlockId {
        BlockId(plane.0 * self.blocks_per_plane)
    }

    /// The ids of the blocks that a plane has as array indices.
    pub fn blocks_of(&self, plane: PlaneId) -> std::ops::Range<usize> {
        let first = self.first_block(plane).index();
        first..first + self.blocks_in(plane) as usize
    }

    /// The ids of the blocks that a plane has, in ascending order.
    pub fn block_ids_of(&self, plane: PlaneId) -> impl Iterator<Item = BlockId> + Clone + use<> {
        let first = self.first_block(plane).0;
        (first..first + self.blocks_in(plane)).map(BlockId)
    }

    /// The die of a plane whose blocks are on one die.
    #[inline(always)]
    pub fn die_of(&self, plane: PlaneId) -> DieId {
        debug_assert!(self.dies_per_block == 1, "the blocks of the plane are on several dies");
        DieId(self.by_plane.divide(plane.0))
    }

    /// The die of page `page` of `block`.
    #[inline(always)]
    pub fn die_of_page(&self, block: BlockId, page: u32) -> DieId {
        if self.dies_per_block == 1 {
            self.die_of(self.plane_of(block))
        } else {
            DieId(self.stripes.split(page).0)
        }
    }

    /// The number of a die among the dies of each of its blocks.
    #[inline]
    pub fn die_in_block(&self, die: DieId) -> u32 {
        if self.dies_per_block == 1 { 0 } else { die.0 }
    }

    /// The dies of a plane.
    #[inline]
    pub fn dies_of(&self, plane: PlaneId) -> impl Iterator<Item = DieId> + use<> {
        let dies = if self.dies_per_block == 1 {
            let die = self.die_of(plane).0;
            die..die + 1
        } else {
            0..self.dies
        };
        dies.map(DieId)
    }

    /// The planes of the dies of a plane, which include the plane itself.
    #[inline]
    pub fn planes_beside(&self, plane: PlaneId) -> impl Iterator<Item = PlaneId> + Clone + use<> {
        let first = self.first_plane_beside(plane).0;
        (first..first + self.planes_per_die).map(PlaneId)
    }

    /// The first of the planes of the dies of a plane.
    #[inline(always)]
    pub fn first_plane_beside(&self, plane: PlaneId) -> PlaneId {
        PlaneId(self.by_plane.divide(plane.0) * self.planes_per_die)
    }

    /// The planes of a die.
    #[inline]
    pub fn planes_of(&self, die: DieId) -> impl Iterator<Item = PlaneId> + Clone + use<> {
        let first = if self.dies_per_block == 1 { die.0 * self.planes_per_die } else { 0 };
        (first..first + self.planes_per_die).map(PlaneId)
    }

    /// The channel of a die.
    #[inline(always)]
    pub fn channel_of(&self, die: DieId) -> u32 {
        self.by_channel.divide(die.0)
    }

    /// Flash pages of one wordline of a flash block, one for each bit of a cell.
    pub fn pages_per_wordline(&self) -> u32 {
        self.cell.bits()
    }

    /// Flash pages of a wordline that are programmed one after another, so that a torn program also destroys the pages
    /// before it: those of a planar cell of several bits in page order. 1 for SLC and for 3D cells, where no page depends
    /// on another.
    #[inline]
    pub fn dependent_pages(&self) -> u32 {
        match self.cell {
            // The pages of a one-shot program are torn together.
            _ if self.flash_pages_per_program > 1 => 1,
            Cell::Mlc => 2,
            Cell::Tlc => 3,
            Cell::Slc | Cell::Mlc3d | Cell::Tlc3d => 1,
        }
    }

    /// The number of pages of its wordline on which page `page` of a block depends ([`Geometry::dependent_pages`]).
    #[inline]
    pub fn depends_on(&self, page: u32) -> u32 {
        self.row(page) % self.dependent_pages()
    }

    /// Pages (mapping units) of a wordline of every flash block of a block, which are consecutive pages of the block. If no
    /// page depends on another ([`Geometry::dependent_pages`]), those of a row.
    pub fn pages_per_wordlines(&self) -> u32 {
        self.dependent_pages() * self.pages_per_full_row()
    }

    /// The number of pages from page `page` of a block on up to the next page that begins a wordline in every flash block; 0
    /// if `page` does, or if no page depends on another.
    pub fn left_in_wordlines(&self, page: u32) -> u32 {
        if self.dependent_pages() == 1 {
            return 0;
        }
        let end = page.next_multiple_of(self.pages_per_wordlines());
        // The last wordline of a block may have fewer rows.
        end.min(self.pages_per_block) - page
    }

    /// The kind of page `page` of a block. The flash pages of a wordline have consecutive numbers.
    pub fn kind(&self, page: u32) -> PageKind {
        self.kind_of_row(self.row(page))
    }

    /// The kind of the pages of row `row` of a block.
    pub fn kind_of_row(&self, row: u32) -> PageKind {
        match (self.pages_per_wordline(), row % self.pages_per_wordline()) {
            (1, _) => PageKind::Slc,
            (_, 0) => PageKind::Lsb,
            (3, 1) => PageKind::Csb,
            _ => PageKind::Msb,
        }
    }

    /// The layer of row `row` of a block, from 0 at the bottom. The rows are spread evenly over the layers, in ascending
    /// order.
    pub fn layer_of_row(&self, row: u32) -> u32 {
        (u64::from(row) * u64::from(self.layers) / u64::from(self.rows_per_block())) as u32
    }

    /// Shows a page as `c0.d3.p1.b120.pg7`: channel, die in the channel, plane in the die, block in the plane, page in
    /// the block.
    pub fn show(&self, ppn: Ppn) -> impl fmt::Display + use<> {
        let (block, page) = self.split(ppn);
        let die = self.die_of_page(block, page);
        let (channel, die_in_channel) = (self.channel_of(die), die.0 % self.dies_per_channel);
        let (plane, block) = (self.plane_in_die(block, page), block.0 % self.blocks_per_plane);
        fmt::from_fn(move |f| write!(f, "c{channel}.d{die_in_channel}.p{plane}.b{block}.pg{page}"))
    }
}
