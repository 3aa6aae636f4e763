//! The pages to which an emergency flush writes, die by die. In this file a page is what one program writes, a flash page
//! or with one-shot programs a programming unit, except in `AllocatedPage` and in the number of pages of the flush, which
//! count mapping units.
//!
//! `plain` takes the next page of the host's stream, as a host write does. `csw` (capacitance-saving writing, Section
//! IV-C of the aging-capacitor paper) takes the fast pages of free blocks.
//!
//! On planar MLC and TLC the fast pages are the LSB pages. Eq. 6 gives the number of pages that the flush requires of
//! each free block. If LSB pages are enough, only these are used. If not, Eq. 7 gives the number of wordlines at the
//! start of the block of which only the LSB page is used. The paper has Eq. 7 for MLC; for TLC, where each of these
//! wordlines leaves two pages erased, it is derived ([`lsb_only_wordlines`]). The blocks of a die are filled one after
//! the other: every block takes LSB pages in the same proportion, and the flush may leave blocks free. In a superblock both
//! equations count rows, whose pages in all planes are used or left erased alike.
//!
//! A block on several dies (`ftl.superblock = "drive"`) is a block of each of its dies: each die takes its part of the same
//! blocks in the same order, at its own pace. So does a `plain` flush, which does not wait for the die of the next page of the
//! host's stream.
//!
//! On 3D cells the fast pages are in the lowest layers. Each die writes the first page of every free block, one block
//! after the other, then the next page of every block, and so on (Section IV-C-3, Fig. 3). A block is taken only for
//! its first page. A die that has fewer free blocks than others reaches the next layer earlier: it does not wait for
//! the others, because the controller takes more power than the programs of a die.

use super::{AllocatedPage, Ftl};
use crate::base::geometry::{BlockId, Cell, DieId, Geometry};
use crate::flash::Array;
use crate::spec::choices;

choices! {
    /// `capacitor.flush`: how dirty pages are written at power loss.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FlushMethod {
        /// Ordinary allocation.
        Plain = "plain": "ordinary allocation",
        /// Capacitance-saving: dies in parallel, fast pages first.
        Csw = "csw": "capacitance-saving: dies in parallel, fast pages first",
    }
}

/// The free blocks that a flush has taken on a die. They are written in sets, each as large as [`FlushPages::set`]: one
/// page of every block of the set, then the next page of every block, until the set is full.
#[derive(Clone, Debug, Default)]
struct OnDie {
    blocks: Vec<BlockId>,
    /// The index in `blocks` of the first block of the present set; all blocks before it are full.
    first: usize,
    /// The index in `blocks` of the block that is written next.
    at: usize,
    /// The page of this block that is written next. The blocks of the set before `at` have this page already.
    page: u32,
}

/// The pages to which a flush writes, one after another.
#[derive(Clone, Debug)]
pub struct FlushPages {
    /// Whether each die has pages of its own, or all take the next pages of the host's streams.
    is_by_die: bool,
    dies: Box<[OnDie]>,
    /// The blocks on several dies that have been taken. Each die takes all of them in this order.
    shared: Vec<BlockId>,
    /// The dies in the order in which they are served, and the index of the die whose turn it is.
    order: Box<[DieId]>,
    turn: usize,
    /// The number of wordlines at the start of each block of which only the LSB page is used.
    lsb_only: u32,
    /// Flash pages of a wordline that depend on one another.
    wordline: u32,
    /// Pages of a row: with superblocks one in every plane, which all are used or skipped.
    row: u32,
    /// The largest number of blocks of a die that are written page by page together.
    set: usize,
}

impl FlushPages {
    /// Prepares a flush of about `pages` pages on the drive in its present state. On 3D cells `csw` writes at most
    /// `together` blocks of a die layer by layer, before it takes the next blocks; `None`: all free blocks.
    pub fn new(
        method: FlushMethod,
        geometry: &Geometry,
        ftl: &Ftl,
        pages: u32,
        together: Option<u32>,
    ) -> Self {
        let die = |index: u32| match method {
            FlushMethod::Plain => DieId(index),
            // The channel varies fastest, then the die, then the chip.
            FlushMethod::Csw => {
                let (rest, channel) = (index / geometry.channels, index % geometry.channels);
                let (chip, die) = (rest / geometry.dies_per_chip, rest % geometry.dies_per_chip);
                DieId((channel * geometry.chips_per_channel + chip) * geometry.dies_per_chip + die)
            }
        };
        let required = required_pages(geometry, ftl, pages.div_ceil(geometry.pages_per_program));
        let per_block = programs_on_die(geometry);
        let row = programs_per_row(geometry);
        let (lsb_only, set) = match geometry.cell {
            Cell::Slc => (0, 1),
            // The pages of a one-shot program are equally fast.
            Cell::Mlc | Cell::Tlc if geometry.dependent_pages() == 1 => (0, 1),
            Cell::Mlc | Cell::Tlc => (
                lsb_only_wordlines(
                    (per_block / row).into(),
                    geometry.dependent_pages().into(),
                    required.div_ceil(row).into(),
                ) as u32,
                1,
            ),
            Cell::Mlc3d | Cell::Tlc3d => (0, together.map_or(usize::MAX, |blocks| blocks.max(1) as usize)),
        };
        Self {
            dies: vec![OnDie::default(); geometry.dies as usize].into(),
            shared: Vec::new(),
            is_by_die: method == FlushMethod::Csw,
            order: (0..geometry.dies).map(die).collect(),
            turn: 0,
            lsb_only,
            wordline: geometry.dependent_pages(),
            row,
            set,
        }
    }

    /// Makes a `plain` flush continue on each die by itself, in the block on several dies that the host's stream has open
    /// (`open`), and then in free blocks, page by page. `done` returns the mapping units of a die in the open block that will
    /// have been programmed.
    pub fn continue_by_die(
        &mut self,
        geometry: &Geometry,
        open: Option<BlockId>,
        done: impl Fn(BlockId, DieId) -> u32,
    ) {
        (self.is_by_die, self.lsb_only, self.set) = (true, 0, 1);
        let Some(open) = open else { return };
        self.shared.push(open);
        for (on_die, die) in self.dies.iter_mut().zip((0..).map(DieId)) {
            on_die.blocks.push(open);
            on_die.page = done(open, die) / geometry.pages_per_program;
            if on_die.page == programs_on_die(geometry) {
                (on_die.first, on_die.at, on_die.page) = (1, 1, 0);
            }
        }
    }

    /// For a page of a block, the pages after it that the flush leaves erased: the other pages of the wordlines of which only
    /// the LSB page is used.
    fn skips(&self, pages_per_block: u32) -> impl Fn(u32) -> u32 + use<> {
        let &Self { lsb_only, wordline, row, .. } = self;
        move |page| {
            let (rows, behind) = (page / row, (page + 1) % row);
            let is_skipped = behind == 0 && rows.is_multiple_of(wordline) && rows / wordline < lsb_only;
            if is_skipped { ((wordline - 1) * row).min(pages_per_block - page - 1) } else { 0 }
        }
    }

    /// The next flash page, by its first page: on the first die, in turn, that is not `busy` and has a flash page left.
    /// `None` if there is no such die.
    pub fn next(
        &mut self,
        geometry: &Geometry,
        array: &mut Array,
        ftl: &mut Ftl,
        busy: impl Fn(DieId) -> bool,
    ) -> Option<AllocatedPage> {
        for step in 0..self.order.len() {
            let turn = (self.turn + step) % self.order.len();
            let die = self.order[turn];
            if busy(die) {
                continue;
            }
            let allocated = if self.is_by_die {
                self.page_of_die(die, geometry, array, ftl)
            } else {
                ftl.allocate_for_flush(geometry, array, die)
            };
            if allocated.is_some() {
                self.turn = turn + 1;
                return allocated;
            }
        }
        None
    }

    fn page_of_die(
        &mut self,
        die: DieId,
        geometry: &Geometry,
        array: &mut Array,
        ftl: &mut Ftl,
    ) -> Option<AllocatedPage> {
        let end = programs_on_die(geometry);
        let skips = self.skips(end);
        let on_die = &mut self.dies[die.index()];
        while on_die.at == on_die.blocks.len() {
            // Only a set whose first pages are being written takes further blocks.
            let taken = on_die.at - on_die.first;
            if on_die.page == 0 && taken < self.set {
                let shared = self.shared.get(on_die.blocks.len()).copied();
                match shared.or_else(|| ftl.take_flush_block(geometry, array, die)) {
                    Some(block) => {
                        on_die.blocks.push(block);
                        if geometry.dies_per_block > 1 && shared.is_none() {
                            self.shared.push(block);
                        }
                    }
                    None if taken == 0 => return None,
                    None => {}
                }
            }
            if on_die.at == on_die.blocks.len() {
                on_die.at = on_die.first;
                on_die.page += 1 + skips(on_die.page);
                if on_die.page >= end {
                    (on_die.first, on_die.at, on_die.page) = (on_die.blocks.len(), on_die.blocks.len(), 0);
                }
            }
        }
        let (block, page) = (on_die.blocks[on_die.at], on_die.page);
        on_die.at += 1;
        let unit = geometry.pages_per_program;
        let ppn = geometry.page(block, geometry.stripes.page(geometry.die_in_block(die), page * unit));
        Some(AllocatedPage { ppn, opened: page == 0, skips: (skips(page) * unit) as u16 })
    }

    /// The blocks taken by the flush that have unused pages on a die.
    pub fn unfilled(&self, geometry: &Geometry) -> Vec<BlockId> {
        let end = programs_on_die(geometry);
        let mut unfilled = Vec::new();
        for die in &self.dies {
            let behind = die.page + 1 + self.skips(end)(die.page);
            let next = |index: usize| if index < die.at { behind } else { die.page };
            let set = die.blocks.iter().enumerate().skip(die.first);
            let begun = set.filter(|&(index, _)| next(index) < end).map(|(_, block)| block);
            let others = self.shared.iter().skip(die.blocks.len());
            for &block in begun.chain(others) {
                if !unfilled.contains(&block) {
                    unfilled.push(block);
                }
            }
        }
        unfilled
    }
}

/// Eq. 7: the number of wordlines at the start of a block of which only the LSB page is used, if `required` pages of
/// the block are required. `wordline` is the number of pages of a wordline. A wordline with only its LSB page has
/// `wordline - 1` pages less than a whole one.
pub fn lsb_only_wordlines(pages_per_block: u64, wordline: u64, required: u64) -> u64 {
    if required <= pages_per_block / wordline {
        return pages_per_block.div_ceil(wordline);
    }
    pages_per_block.saturating_sub(required) / (wordline - 1)
}

/// Pages of a block on one die.
fn programs_on_die(geometry: &Geometry) -> u32 {
    geometry.programs_per_block() / geometry.dies_per_block
}

/// Pages of a row. A one-shot program, which writes several rows, counts as a row.
pub fn programs_per_row(geometry: &Geometry) -> u32 {
    (geometry.pages_per_row / geometry.pages_per_program).max(1)
}

/// Eq. 6: the number of pages required of each free block, if each die provides as many blocks as the die with the
/// fewest free blocks. Dies without free blocks are left out.
fn required_pages(geometry: &Geometry, ftl: &Ftl, pages: u32) -> u32 {
    let blocks =
        |die: u32| -> u32 { geometry.planes_of(DieId(die)).map(|plane| ftl.flush_blocks(plane)).sum() };
    let free: Vec<u32> = (0..geometry.dies).map(blocks).filter(|&blocks| blocks > 0).collect();
    match free.iter().min() {
        Some(&fewest) => pages.div_ceil(free.len() as u32 * fewest),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::geometry::PlaneId;
    use crate::base::geometry::{DriveSpec, Layout, Superblock};
    use crate::flash::Keeps;
    use crate::ftl::allocation::Allocation;
    use crate::ftl::needs::{BlockNeeds, Demands};
    use crate::ftl::{Candidates, Config, VictimPolicy, WearLevelling};

    #[derive(Clone, Debug)]
    struct Never;

    impl VictimPolicy for Never {
        fn pick(&mut self, _: &Candidates) -> Option<u32> {
            None
        }
    }

    struct Bench {
        geometry: Geometry,
        array: Array,
        ftl: Ftl,
    }

    /// Four dies on four channels, each with nine superblocks of `planes` blocks of `pages` flash pages of `units` pages, a
    /// flash page for each layer. Die n has `free[n]` blocks for the flush.
    fn bench(cell: Cell, pages: u32, free: [u32; 4], units: u32, planes: u32) -> Bench {
        let drive = DriveSpec {
            channels: 4,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: planes,
            blocks_per_plane: 9,
            pages_per_block: pages,
            page_size_bytes: 4096,
            cell,
            layers: if matches!(cell, Cell::Mlc | Cell::Tlc) { 1 } else { pages },
            op: 1.0,
            bad_blocks: 0.0,
            endurance: 1000,
            registers: 1,
            program_order: crate::base::geometry::ProgramOrder::Page,
        };
        let layout = Layout { units_per_page: units, superblock: Superblock::Die };
        let geometry = Geometry::with(&drive, layout);
        let mut array = Array::new(&geometry, 0, Keeps { sequences: true, ..Keeps::default() });
        let needs = BlockNeeds::new(&Demands {
            planes: 4,
            flash_blocks_per_block: 1,
            bad_blocks: 0.0,
            seed: 0,
            pages_per_block: geometry.pages_per_block.into(),
            pages_per_program: units.into(),
            page_bytes: geometry.page_bytes.into(),
            logical_pages: geometry.logical_pages.into(),
            shares_first_block: false,
            levels_wear: false,
            has_demand_map: false,
            copybacks_max: 0,
            has_combinations: false,
            flushed_pages: Some(8 * u64::from(units)),
        });
        let config = Config {
            allocation: Allocation::Static(*b"CWDP"),
            levelling: WearLevelling::None,
            victim: Box::new(Never),
            needs,
            translation_pages: 0,
            combination_pages: 0,
        };
        let mut ftl = Ftl::new(config, &geometry, &array);
        for (plane, free) in (0..4).map(PlaneId).zip(free) {
            while ftl.flush_blocks(plane) > free {
                ftl.take_flush_block(&geometry, &mut array, DieId(plane.0));
            }
        }
        Bench { geometry, array, ftl }
    }

    /// The flash pages within their blocks to which a flush of `count` flash pages writes on each die, in order. The dies
    /// are always idle.
    fn pages_of(bench: &mut Bench, count: u32, together: Option<u32>) -> [Vec<u32>; 4] {
        let Bench { geometry, array, ftl } = bench;
        // The last flash page has one page of data.
        let units = geometry.units_per_page;
        let mut pages = FlushPages::new(FlushMethod::Csw, geometry, ftl, (count - 1) * units + 1, together);
        let mut by_die = <[Vec<u32>; 4]>::default();
        for _ in 0..count {
            let place = pages.next(geometry, array, ftl, |_| false).expect("a page is free");
            let (block, page) = geometry.split(place.ppn);
            assert_eq!((page % units, u32::from(place.skips) % units), (0, 0));
            by_die[geometry.die_of(geometry.plane_of(block)).index()].push(page / units);
        }
        by_die
    }

    /// The same of a fresh drive, whatever the mapping units of a flash page.
    fn pages_by_die(
        (cell, pages, free): (Cell, u32, [u32; 4]),
        count: u32,
        together: Option<u32>,
    ) -> [Vec<u32>; 4] {
        let [one, four] =
            [1, 4].map(|units| pages_of(&mut bench(cell, pages, free, units, 1), count, together));
        assert_eq!(one, four);
        one
    }

    #[test]
    fn csw_writes_3d_blocks_layer_by_layer_as_in_figure_3() {
        // Four chips with two free blocks of three pages: thirteen pages take the first pages of all eight blocks, the
        // second pages of the four first blocks, and that of the second block of chip 0.
        let found = pages_by_die((Cell::Mlc3d, 3, [2; 4]), 13, None);
        assert_eq!(found, [vec![0, 0, 1, 1], vec![0, 0, 1], vec![0, 0, 1], vec![0, 0, 1]]);
    }

    #[test]
    fn a_die_with_few_free_blocks_does_not_make_the_others_use_slow_layers() {
        // Blocks of four pages. Eq. 6 with the one free block of die 0 requires five pages of each block: block by
        // block every die would fill a block first (pages 0, 1, 2, 3).
        let found = pages_by_die((Cell::Tlc3d, 4, [1, 8, 8, 8]), 20, None);
        assert_eq!(found[0], [0, 1, 2, 3]);
        assert_eq!(found[1].iter().chain(&found[2]).chain(&found[3]).sum::<u32>(), 0, "{found:?}");
    }

    #[test]
    fn blocks_written_in_sets_are_filled_set_by_set() {
        let found = pages_by_die((Cell::Mlc3d, 2, [0, 0, 0, 5]), 10, Some(2));
        assert_eq!(found[3], [0, 0, 1, 1, 0, 0, 1, 1, 0, 1]);
    }

    #[test]
    fn planar_blocks_are_filled_block_by_block_by_equations_6_and_7() {
        // Seven pages of each of eight blocks of eight pages: one wordline has only an LSB page.
        let found = pages_by_die((Cell::Mlc, 8, [2; 4]), 56, None);
        assert_eq!(found, [0; 4].map(|_| vec![0, 2, 3, 4, 5, 6, 7, 0, 2, 3, 4, 5, 6, 7]));
    }

    /// The rows of a superblock of three planes are used or skipped in all planes alike. Eight rows of MLC: the LSB row of
    /// the first wordline, and then whole rows; a page more or less in a row makes no difference.
    #[test]
    fn superblocks_are_filled_by_rows() {
        let of_rows = |rows: [u32; 7]| -> Vec<u32> {
            rows.into_iter().flat_map(|row| [3 * row, 3 * row + 1, 3 * row + 2]).collect()
        };
        let block = of_rows([0, 2, 3, 4, 5, 6, 7]);
        for lacking in 0..3 {
            let count = 4 * 2 * 21 - lacking * 8;
            let found = pages_of(&mut bench(Cell::Mlc, 8, [2; 4], 1, 3), count, None);
            let expected = [&block[..], &block].concat();
            assert_eq!(found, [0; 4].map(|_| expected[..(count / 4) as usize].to_vec()));
        }
        // Twelve pages of each block: the four LSB rows are enough.
        let found = pages_of(&mut bench(Cell::Mlc, 8, [2; 4], 4, 3), 4 * 2 * 12, None);
        let block: Vec<u32> = [0, 2, 4, 6].into_iter().flat_map(|row| 3 * row..3 * row + 3).collect();
        assert_eq!(found[3], [&block[..], &block].concat());
    }

    #[test]
    fn planar_tlc_uses_lsb_pages_first_and_then_whole_wordlines() {
        let pages = |count| pages_by_die((Cell::Tlc, 12, [2; 4]), count, None)[0].clone();
        // Four pages of each of eight blocks: the four LSB pages are enough.
        assert_eq!(pages(32), [0, 3, 6, 9, 0, 3, 6, 9]);
        // Six pages of each block: three LSB pages and one whole wordline.
        assert_eq!(pages(48), [0, 3, 6, 9, 10, 11, 0, 3, 6, 9, 10, 11]);
        // Five pages need the whole wordline too: a wordline of TLC adds two pages at once.
        assert_eq!(pages(40), [0, 3, 6, 9, 10, 11, 0, 3, 6, 9]);
        // Twelve pages: all of them.
        assert_eq!(pages(96), [(0..12).collect::<Vec<_>>(), (0..12).collect()].concat());
    }

    /// A block of eight pages has wordlines of three, three and two pages.
    #[test]
    fn the_last_wordline_of_planar_tlc_may_be_incomplete() {
        let found = pages_by_die((Cell::Tlc, 8, [1; 4]), 12, None);
        // Three pages are required of each block: more than the two wordlines that are whole.
        assert_eq!(found[0], [0, 3, 6]);
    }
}
