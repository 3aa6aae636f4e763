//! The geometry of a drive and the ids of its parts.
//!
//! Numbering is dense and nested: channel, chip, die, plane, block, page. For example, the id of a die's first plane is
//! the die's id times the planes per die. PPNs number the physical pages of the whole drive, LPNs the logical pages.
//!
//! A *page* is a mapping unit (`ftl.mapping_unit`): the bytes that a map entry stands for. A *flash page*, which the
//! flash senses and programs as a whole, has [`Geometry::units_per_page`] pages with consecutive PPNs. By default the
//! mapping unit is the flash page.

pub use crate::base::ids::{BlockId, CacheSlot, DieId, Lpn, MissId, PlaneId, Ppn, RequestId, Tvpn};

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
    /// P/E cycles after which a block is retired.
    pub endurance: u32,
    /// Page registers of a plane.
    pub registers: u32,
}

/// `drive.cell`: the type of the flash cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Cell {
    Slc,
    Mlc,
    Mlc3d,
    Tlc3d,
}

/// Divides by a fixed 32-bit number with a multiplication. Exact for every 32-bit dividend.
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    magic: u64,
    by: u32,
}

impl Divisor {
    /// Prepares the division by `by`, which must not be 0.
    pub fn new(by: u32) -> Self {
        assert!(by > 0, "division by zero");
        // ceil(2^64 / by). For by = 1 the sum wraps to 0, so `divide` handles 1 separately.
        Self { magic: (u64::MAX / u64::from(by)).wrapping_add(1), by }
    }

    /// `n / by`.
    #[inline(always)]
    pub fn divide(self, n: u32) -> u32 {
        if self.by == 1 { n } else { ((u128::from(self.magic) * u128::from(n)) >> 64) as u32 }
    }

    /// `(n / by, n % by)`.
    #[inline(always)]
    pub fn split(self, n: u32) -> (u32, u32) {
        let q = self.divide(n);
        (q, n - q * self.by)
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
    /// Pages that the host can address: raw pages / (1 + OP), rounded down.
    pub logical_pages: u32,
    pub cell: Cell,
    pub layers: u32,
    by_page: Divisor,
    by_block: Divisor,
    by_plane: Divisor,
}

impl Geometry {
    /// The geometry of a validated `[drive]` section whose mapping unit is the flash page.
    ///
    /// # Panics
    /// If the drive has 2^32 - 1 pages or more; the spec check rejects such a drive.
    pub fn new(drive: &DriveSpec) -> Self {
        Self::with_units(drive, 1)
    }

    /// The geometry of a validated `[drive]` section with `units_per_page` mapping units in a flash page.
    ///
    /// # Panics
    /// If the drive has 2^32 - 1 mapping units or more; the spec check rejects such a drive.
    pub fn with_units(drive: &DriveSpec, units_per_page: u32) -> Self {
        let pages_per_block = drive.pages_per_block * units_per_page;
        let dies_per_channel = drive.chips_per_channel * drive.dies_per_chip;
        let dies = drive.channels * dies_per_channel;
        let planes = dies * drive.planes_per_die;
        let blocks = u64::from(planes) * u64::from(drive.blocks_per_plane);
        let pages = blocks * u64::from(pages_per_block);
        assert!(pages < u64::from(u32::MAX), "a drive of {pages} pages does not fit 32-bit page numbers");
        Self {
            channels: drive.channels,
            dies_per_channel,
            chips_per_channel: drive.chips_per_channel,
            dies_per_chip: drive.dies_per_chip,
            planes_per_die: drive.planes_per_die,
            blocks_per_plane: drive.blocks_per_plane,
            pages_per_block,
            page_bytes: drive.page_size_bytes / units_per_page,
            dies,
            planes,
            blocks: blocks as u32,
            pages: pages as u32,
            pages_per_plane: drive.blocks_per_plane * pages_per_block,
            units_per_page,
            logical_pages: logical_pages(pages, drive.op) as u32,
            cell: drive.cell,
            layers: drive.layers,
            by_page: Divisor::new(pages_per_block),
            by_block: Divisor::new(drive.blocks_per_plane),
            by_plane: Divisor::new(drive.planes_per_die),
        }
    }

    /// Bytes that the host can address.
    pub fn logical_bytes(&self) -> u64 {
        u64::from(self.logical_pages) * u64::from(self.page_bytes)
    }

    /// Bytes of flash.
    pub fn raw_bytes(&self) -> u64 {
        u64::from(self.pages) * u64::from(self.page_bytes)
    }

    /// Bytes of a flash page.
    pub fn flash_page_bytes(&self) -> u32 {
        self.page_bytes * self.units_per_page
    }

    /// Flash pages of the drive.
    pub fn flash_pages(&self) -> u32 {
        self.pages / self.units_per_page
    }

    /// Flash pages of a block.
    pub fn flash_pages_per_block(&self) -> u32 {
        self.pages_per_block / self.units_per_page
    }

    /// The first page of the flash page of `ppn`.
    #[inline(always)]
    pub fn first_unit(&self, ppn: Ppn) -> Ppn {
        // A block has a whole number of flash pages.
        Ppn(ppn.0 & !(self.units_per_page - 1))
    }

    /// The position of a page in its flash page, from 0.
    #[inline(always)]
    pub fn unit(&self, ppn: Ppn) -> u32 {
        ppn.0 & (self.units_per_page - 1)
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

    /// Whether page `page` of a block is in the MSB flash page of a planar MLC wordline. A torn program of this flash
    /// page also destroys the LSB flash page of the wordline, which is the flash page before it.
    #[inline(always)]
    pub fn endangers_lsb(&self, page: u32) -> bool {
        self.cell == Cell::Mlc && self.flash_page(page) % 2 == 1
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

    /// The ids of a plane's blocks as array indices.
    pub fn blocks_of(&self, plane: PlaneId) -> std::ops::Range<usize> {
        let first = self.first_block(plane).index();
        first..first + self.blocks_per_plane as usize
    }

    /// The ids of a plane's blocks, in ascending order.
    pub fn block_ids_of(&self, plane: PlaneId) -> impl Iterator<Item = BlockId> + Clone + use<> {
        let first = self.first_block(plane).0;
        (first..first + self.blocks_per_plane).map(BlockId)
    }

    /// The die of a plane.
    #[inline(always)]
    pub fn die_of(&self, plane: PlaneId) -> DieId {
        DieId(self.by_plane.divide(plane.0))
    }

    /// The channel of a die.
    #[inline(always)]
    pub fn channel_of(&self, die: DieId) -> u32 {
        die.0 / self.dies_per_channel
    }

    /// Flash pages of one wordline, one for each bit of a cell.
    pub fn pages_per_wordline(&self) -> u32 {
        match self.cell {
            Cell::Slc => 1,
            Cell::Mlc | Cell::Mlc3d => 2,
            Cell::Tlc3d => 3,
        }
    }

    /// The kind of page `page` of a block. The flash pages of a wordline have consecutive numbers.
    pub fn kind(&self, page: u32) -> PageKind {
        let page = self.flash_page(page);
        match (self.pages_per_wordline(), page % self.pages_per_wordline()) {
            (1, _) => PageKind::Slc,
            (_, 0) => PageKind::Lsb,
            (3, 1) => PageKind::Csb,
            _ => PageKind::Msb,
        }
    }

    /// The layer of page `page` of a block, from 0 at the bottom. The pages are spread evenly over the layers, in
    /// ascending order.
    pub fn layer(&self, page: u32) -> u32 {
        let page = u64::from(self.flash_page(page));
        (page * u64::from(self.layers) / u64::from(self.flash_pages_per_block())) as u32
    }

    /// Shows a page as `c0.d3.p1.b120.pg7`: channel, die in the channel, plane in the die, block in the plane, page in
    /// the block.
    pub fn show(&self, ppn: Ppn) -> impl fmt::Display + use<> {
        let (block, page) = self.split(ppn);
        let plane = self.plane_of(block);
        let die = self.die_of(plane);
        let (channel, die_in_channel) = (self.channel_of(die), die.0 % self.dies_per_channel);
        let (plane, block) = (plane.0 % self.planes_per_die, block.0 % self.blocks_per_plane);
        fmt::from_fn(move |f| write!(f, "c{channel}.d{die_in_channel}.p{plane}.b{block}.pg{page}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisor_is_exact() {
        let mut stream = crate::base::rng::Stream::new(1, "divisor");
        for _ in 0..200_000 {
            let by = (stream.bits() as u32 >> (stream.bits() % 32)).max(1);
            let n = stream.bits() as u32;
            for n in [n, 0, u32::MAX, by, by - 1, n / by * by] {
                assert_eq!(Divisor::new(by).split(n), (n / by, n % by), "{n} / {by}");
            }
        }
    }
}
