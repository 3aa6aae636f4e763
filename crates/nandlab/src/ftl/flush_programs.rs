//! The programming units to which an emergency flush writes, die by die. A programming unit is what one program writes:
//! a page or, with one-shot programs, a wordline of each block that a superblock has on a die. A variable called
//! `program` is the number of a programming unit among those of its superblock on its die, from 0 on.
//!
//! With `capacitor.flush_mode = "slc"` the flush takes free superblocks for itself under both methods, and writes them in
//! SLC mode, where all programs are equally fast.
//!
//! `plain` takes the next programming unit of the host's stream, as a host write does. `csw` (capacitance-saving
//! writing, Section IV-C of the aging-capacitor paper) takes the fast pages of free superblocks.
//!
//! On planar MLC and TLC in page order the fast pages are the LSB pages. Eq. 6 gives the number of pages that the flush
//! requires of each free superblock on each of its dies. If LSB pages are enough, only these are used. If not, Eq. 7
//! gives the number of wordlines at the start of the superblock of which only the LSB page is used. The paper has Eq. 7
//! for MLC; for TLC, where each of these wordlines leaves two pages erased, it is derived ([`lsb_only_wordlines`]). The
//! superblocks of a die are filled one after the other: every superblock takes LSB pages in the same proportion, and
//! the flush may leave superblocks free. In a superblock of several planes the pages of a row are used, or left erased,
//! alike. So Eq. 7 counts rows instead of pages, and a wordline is here one of every plane together.
//!
//! A superblock on several dies (`ftl.superblock = "drive"`) is a superblock of each of its dies: each die takes its
//! part of the same superblocks in the same order, at its own pace. In such superblocks a `plain` flush, too, goes die
//! by die ([`FlushPrograms::continue_by_die`]): no die waits for the die to which the host's stream would write next.
//!
//! On 3D cells the fast pages are in the lowest layers, which have the first programming units of a superblock. Each
//! die writes the first programming unit of every free superblock, one superblock after the other, then the second one
//! of every superblock, and so on (Section IV-C-3, Fig. 3). A superblock is taken when its first programming unit is
//! written. A die that has fewer free superblocks than others reaches the higher layers earlier: it does not wait for
//! the others, because the controller takes more power than the programs of a die.
//!
//! The data of each placement handle goes to superblocks of its own. Each handle has its share of the free superblocks
//! that are written layer by layer, and at least one; the programs required of a superblock (Eq. 6) are those of a
//! reclaim group, in which the last superblock of each handle may be part-filled.

use super::placement::Place;
use super::{AllocatedUnit, Ftl, StreamId};
use crate::base::geometry::{Cell, DieId, SuperblockId};
use crate::base::state::value;
use crate::flash::{Array, ShapeId};
use crate::spec::choices;

choices! {
    /// `capacitor.flush`: how dirty units are written at power loss.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FlushMethod {
        /// Ordinary allocation.
        Plain = "plain": "ordinary allocation",
        /// Capacitance-saving: dies in parallel, fast pages first.
        Csw = "csw": "capacitance-saving: dies in parallel, fast pages first",
    }
}

/// The superblocks that a flush has taken on a die. They are written set by set; a set has at most
/// [`FlushPrograms::set_max`] superblocks. The flush writes one programming unit of every superblock of the set, then
/// the next one of every superblock, until the superblocks of the set are full.
#[derive(Clone, Debug, Default)]
struct OnDie {
    superblocks: Vec<SuperblockId>,
    /// The index in `superblocks` of the first superblock of the present set; all superblocks before it are full.
    set_start: usize,
    /// The index in `superblocks` of the superblock that is written next.
    at: usize,
    /// The programming unit of the superblock `at` that is written next. In the superblocks of the set before `at`,
    /// their programming unit of this number is written already.
    program: u32,
}

/// The programming units to which a flush writes, one after another.
#[derive(Clone, Debug)]
pub struct FlushPrograms {
    /// Whether each die has programming units of its own, or all take the next ones of the host's streams.
    is_by_die: bool,
    /// By placement handle and die.
    on_dies: Box<[OnDie]>,
    /// By handle, the superblocks on several dies that have been taken. Each die takes all of them in this order.
    shared: Box<[Vec<SuperblockId>]>,
    /// The dies in the order in which they are served, and the index of the die whose turn it is.
    order: Box<[DieId]>,
    turn: usize,
    /// By reclaim group, the number of wordlines at the start of each superblock of which only the LSB page is used.
    lsb_only: Box<[u32]>,
    /// Rows of a wordline whose pages depend on one another ([`Shape::dependent_pages`](crate::flash::Shape::dependent_pages)).
    rows_per_wordline: u32,
    /// Programming units of a row on a die, all of which are used or all skipped
    /// ([`Shape::programs_per_row`](crate::flash::Shape::programs_per_row)).
    programs_per_row: u32,
    /// By place, the largest number of superblocks of a die that are written together, one programming unit of each in turn.
    set_max: Box<[usize]>,
    /// Units of a programming unit.
    units_per_program: u32,
    /// Programming units of a superblock on one die.
    programs_on_die: u32,
}

impl FlushPrograms {
    /// Prepares a flush of about as many units of each place as `units` has, on the drive in its present state. On 3D cells
    /// `csw` writes at most `together` superblocks of a die layer by layer, before it takes the next superblocks; `None`:
    /// all free superblocks.
    pub fn new(method: FlushMethod, ftl: &Ftl, units: &[u32], together: Option<u32>) -> Self {
        let geometry = &ftl.geometry;
        let die = |turn: u32| match method {
            FlushMethod::Plain => DieId(turn),
            // The channel varies fastest, then the die, then the chip.
            FlushMethod::Csw => {
                let (rest, channel) = (turn / geometry.channels, turn % geometry.channels);
                let (chip, die) = (rest / geometry.dies_per_chip, rest % geometry.dies_per_chip);
                DieId((channel * geometry.chips_per_channel + chip) * geometry.dies_per_chip + die)
            }
        };
        // The flush takes free superblocks, and gives them its shape.
        let shape = &ftl.shapes[ftl.flush_shape];
        let (programs_on_die, programs_per_row) = (shape.programs_on_die(), shape.programs_per_row());
        let handles = usize::from(ftl.placements.handles);
        let lsb_only = |(group, units): (u16, &[u32])| match shape.cell {
            // One-shot programs are equally fast.
            Cell::Mlc | Cell::Tlc if shape.dependent_pages() > 1 => {
                let required = required_programs(ftl, group, units, shape.units_per_program);
                lsb_only_wordlines(
                    (programs_on_die / programs_per_row).into(),
                    shape.dependent_pages().into(),
                    required.div_ceil(programs_per_row).into(),
                ) as u32
            }
            _ => 0,
        };
        let set_max = |(group, units): (u16, &[u32])| match shape.cell {
            Cell::Mlc3d | Cell::Tlc3d => sets(ftl, group, units, together),
            Cell::Slc | Cell::Mlc | Cell::Tlc => vec![1; units.len()],
        };
        let by_group = || (0..).zip(units.chunks(handles));
        Self {
            on_dies: vec![OnDie::default(); handles * geometry.dies as usize].into(),
            shared: vec![Vec::new(); handles].into(),
            is_by_die: method == FlushMethod::Csw || ftl.flush_shape != ShapeId::FIRST,
            order: (0..geometry.dies).map(die).collect(),
            turn: 0,
            lsb_only: by_group().map(lsb_only).collect(),
            rows_per_wordline: shape.dependent_pages(),
            programs_per_row,
            set_max: by_group().flat_map(set_max).collect(),
            units_per_program: shape.units_per_program,
            programs_on_die,
        }
    }

    /// Makes a `plain` flush continue on each die by itself, in the superblock on several dies that the host's stream of
    /// each handle has open (`open`), and then in free superblocks, one programming unit after another. `done` returns the
    /// number of units of a superblock on a die that are programmed or skipped once the programs under way have ended.
    pub fn continue_by_die(
        &mut self,
        open: impl IntoIterator<Item = Option<SuperblockId>>,
        done: impl Fn(SuperblockId, DieId) -> u32,
    ) {
        self.is_by_die = true;
        self.lsb_only.fill(0);
        self.set_max.fill(1);
        let dies = self.order.len();
        for ((open, shared), of_handle) in
            open.into_iter().zip(&mut self.shared).zip(self.on_dies.chunks_mut(dies))
        {
            let Some(open) = open else { continue };
            shared.push(open);
            for (on_die, die) in of_handle.iter_mut().zip((0..).map(DieId)) {
                on_die.superblocks.push(open);
                on_die.program = done(open, die) / self.units_per_program;
                if on_die.program == self.programs_on_die {
                    (on_die.set_start, on_die.at, on_die.program) = (1, 1, 0);
                }
            }
        }
    }

    /// Returns a function of a programming unit of a reclaim group: the number of programming units right after it that the
    /// flush leaves erased. After the last LSB page of a wordline of which only the LSB pages are used, these are the other
    /// pages of the wordline; else 0.
    fn skipped_after(&self, group: u16) -> impl Fn(u32) -> u32 + use<> {
        let &Self { rows_per_wordline, programs_per_row, programs_on_die: programs, .. } = self;
        let lsb_only = self.lsb_only[usize::from(group)];
        move |program| {
            let (row, next_in_row) = (program / programs_per_row, (program + 1) % programs_per_row);
            let skips = next_in_row == 0
                && row.is_multiple_of(rows_per_wordline)
                && row / rows_per_wordline < lsb_only;
            if skips { ((rows_per_wordline - 1) * programs_per_row).min(programs - program - 1) } else { 0 }
        }
    }

    /// The next programming unit for data of a place, by its first unit: on the first die of the reclaim group, in turn,
    /// that is not `busy` and has a programming unit left. `None` if there is no such die.
    pub fn next(
        &mut self,
        array: &mut Array,
        ftl: &mut Ftl,
        place: Place,
        busy: impl Fn(DieId) -> bool,
    ) -> Option<AllocatedUnit> {
        for step in 0..self.order.len() {
            let turn = (self.turn + step) % self.order.len();
            let die = self.order[turn];
            if busy(die) || !ftl.is_in_group(die, place.group) {
                continue;
            }
            let stream = ftl.streams.of_handle(place.handle);
            let allocated = if self.is_by_die {
                self.program_of_die((die, place, stream), array, ftl)
            } else {
                ftl.allocate_for_flush(array, die, stream)
            };
            if allocated.is_some() {
                self.turn = turn + 1;
                return allocated;
            }
        }
        None
    }

    /// The next programming unit of a die in the superblocks that the flush takes for the data of a place, which goes to
    /// `stream`, by its first unit. `None` if none is left.
    fn program_of_die(
        &mut self,
        (die, place, stream): (DieId, Place, StreamId),
        array: &mut Array,
        ftl: &mut Ftl,
    ) -> Option<AllocatedUnit> {
        let (end, units) = (self.programs_on_die, self.units_per_program);
        let skipped_after = self.skipped_after(place.group);
        let handle = usize::from(place.handle);
        let set_max = self.set_max[ftl.placements.number(place)];
        let shared_of_handle = &mut self.shared[handle];
        let on_die = &mut self.on_dies[handle * self.order.len() + die.index()];
        while on_die.at == on_die.superblocks.len() {
            // Only a set whose first programming units are being written takes further superblocks.
            let taken = on_die.at - on_die.set_start;
            if on_die.program == 0 && taken < set_max {
                let shared = shared_of_handle.get(on_die.superblocks.len()).copied();
                match shared.or_else(|| ftl.take_flush_superblock(array, die, stream)) {
                    Some(superblock) => {
                        on_die.superblocks.push(superblock);
                        if ftl.geometry.dies_per_lane > 1 && shared.is_none() {
                            shared_of_handle.push(superblock);
                        }
                    }
                    None if taken == 0 => return None,
                    None => {}
                }
            }
            if on_die.at == on_die.superblocks.len() {
                on_die.at = on_die.set_start;
                on_die.program += 1 + skipped_after(on_die.program);
                if on_die.program >= end {
                    (on_die.set_start, on_die.at, on_die.program) =
                        (on_die.superblocks.len(), on_die.superblocks.len(), 0);
                }
            }
        }
        let (superblock, program) = (on_die.superblocks[on_die.at], on_die.program);
        on_die.at += 1;
        let index = ftl.geometry.stripes.unit(ftl.geometry.die_in_lane(die), program * units);
        let unit = ftl.geometry.unit(superblock, index);
        // Each die of a superblock on several dies counts as opening the superblock.
        Some(AllocatedUnit { unit, opened: program == 0, skips: (skipped_after(program) * units) as u16 })
    }

    /// The superblocks taken by the flush that still have, on at least one of their dies, a programming unit that the
    /// flush has neither written nor left erased.
    pub fn unfilled(&self, ftl: &Ftl) -> Vec<SuperblockId> {
        let (end, dies) = (self.programs_on_die, self.order.len());
        let mut unfilled = Vec::new();
        for (number, die) in self.on_dies.iter().enumerate() {
            let skipped_after = self.skipped_after(ftl.group_of_die(DieId((number % dies) as u32)));
            let after = die.program + 1 + skipped_after(die.program);
            let next = |nth: usize| if nth < die.at { after } else { die.program };
            let set = die.superblocks.iter().enumerate().skip(die.set_start);
            let begun = set.filter(|&(nth, _)| next(nth) < end).map(|(_, superblock)| superblock);
            // Superblocks on several dies that this die has not reached.
            let others = self.shared[number / dies].iter().skip(die.superblocks.len());
            for &superblock in begun.chain(others) {
                if !unfilled.contains(&superblock) {
                    unfilled.push(superblock);
                }
            }
        }
        unfilled
    }
}

/// Eq. 7: the number of wordlines at the start of a superblock of which only the LSB page is used, if `required` of its
/// `rows` rows are required. A wordline has `rows_per_wordline` rows, one for each of its pages; the last wordline of
/// the superblock may have fewer. A wordline of which only the LSB page is used leaves `rows_per_wordline - 1` rows
/// erased.
pub fn lsb_only_wordlines(rows: u64, rows_per_wordline: u64, required: u64) -> u64 {
    if required <= rows / rows_per_wordline {
        return rows.div_ceil(rows_per_wordline);
    }
    rows.saturating_sub(required) / (rows_per_wordline - 1)
}

/// The number of free superblocks that each die of a reclaim group has for the flush. Dies without are left out.
fn free_superblocks(ftl: &Ftl, group: u16) -> Vec<u32> {
    let geometry = &ftl.geometry;
    let superblocks =
        |die: DieId| -> u32 { geometry.lanes_of(die).map(|lane| ftl.flush_superblocks(lane)).sum() };
    let dies = (0..geometry.dies).map(DieId).filter(|&die| ftl.is_in_group(die, group));
    dies.map(superblocks).filter(|&superblocks| superblocks > 0).collect()
}

/// The number of handles of a reclaim group that have data, beyond the first: on each die, as many superblocks may be
/// part-filled beside the last one.
fn further_handles(units: &[u32]) -> u32 {
    (units.iter().filter(|&&units| units > 0).count() as u32).saturating_sub(1)
}

/// Eq. 6: the number of programming units required of each free superblock on each of its dies, for a flush of `units`
/// units of each handle of a reclaim group, if each die provides as many superblocks as the die with the fewest free
/// superblocks.
fn required_programs(ftl: &Ftl, group: u16, units: &[u32], units_per_program: u32) -> u32 {
    let programs: u32 = units.iter().map(|units| units.div_ceil(units_per_program)).sum();
    let free = free_superblocks(ftl, group);
    match free.iter().min() {
        Some(&fewest) => {
            let filled = fewest.saturating_sub(further_handles(units)).max(1);
            programs.div_ceil(free.len() as u32 * filled)
        }
        None => 0,
    }
}

/// The number of superblocks of a die that each handle of a reclaim group writes together: all, or of several handles
/// with data each its share by its `units` units, so that the others have at least one.
fn sets(ftl: &Ftl, group: u16, units: &[u32], together: Option<u32>) -> Vec<usize> {
    let further = further_handles(units);
    if further == 0 {
        let all = together.map_or(usize::MAX, |superblocks| superblocks.max(1) as usize);
        return vec![all; units.len()];
    }
    let fewest = free_superblocks(ftl, group).into_iter().min().unwrap_or(0);
    let shared = u64::from(together.unwrap_or(u32::MAX).min(fewest).saturating_sub(further));
    let sum: u64 = units.iter().map(|&units| u64::from(units)).sum();
    let share = |&units: &u32| (shared * u64::from(units) / sum).max(1) as usize;
    units.iter().map(share).collect()
}

value! { OnDie { superblocks, set_start, at, program } }
value! {
    FlushPrograms {
        is_by_die,
        on_dies,
        shared,
        order,
        turn,
        lsb_only,
        rows_per_wordline,
        programs_per_row,
        set_max,
        units_per_program,
        programs_on_die,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::geometry::{DriveSpec, Geometry, LaneId, Layout, Superblock};
    use crate::base::policy::PolicyError;
    use crate::core::testing::shapes;
    use crate::flash::Keeps;
    use crate::ftl::allocation::Allocation;
    use crate::ftl::needs::{Demands, SuperblockNeeds};
    use crate::ftl::placement::{PlacementSpec, Placements};
    use crate::ftl::streams::StreamSpec;
    use crate::ftl::{Candidates, Config, VictimPolicy, WearLevelling};

    #[derive(Clone, Debug)]
    struct Never;

    impl VictimPolicy for Never {
        fn pick(&mut self, _: &Candidates) -> Result<Option<u32>, PolicyError> {
            Ok(None)
        }

        fn fork(&self) -> Box<dyn VictimPolicy> {
            Box::new(self.clone())
        }
    }

    struct Bench {
        geometry: Geometry,
        array: Array,
        ftl: Ftl,
    }

    /// Four dies on four channels, each with nine superblocks of `planes` blocks of `rows` pages of `units` units. On
    /// 3D cells each row is a layer. Die n has `free[n]` superblocks for the flush.
    fn bench(cell: Cell, rows: u32, free: [u32; 4], units: u32, planes: u32) -> Bench {
        let drive = DriveSpec {
            channels: 4,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: planes,
            blocks_per_plane: 9,
            pages_per_block: rows,
            page_size_bytes: 4096,
            cell,
            layers: if matches!(cell, Cell::Mlc | Cell::Tlc) { 1 } else { rows },
            op: 1.0,
            bad_blocks: 0.0,
            endurance: 1000,
            registers: 1,
            program_order: crate::base::geometry::ProgramOrder::Page,
        };
        let layout = Layout { units_per_page: units, superblock: Superblock::Die };
        let geometry = Geometry::with(&drive, layout);
        let keeps = Keeps { sequences: true, ..Keeps::default() };
        let mut array = Array::new(&geometry, shapes(&drive, &geometry), 0, keeps);
        let streams = vec![StreamSpec::host(0, false), StreamSpec::gc(false)];
        let needs = SuperblockNeeds::new(&Demands {
            lanes: 4,
            blocks_per_superblock: 1,
            bad_blocks: 0.0,
            seed: 0,
            units_per_superblock: array.shapes().first().units.into(),
            units_per_flush_superblock: array.shapes().first().units.into(),
            units_per_program: units.into(),
            unit_bytes: geometry.unit_bytes.into(),
            logical_units: geometry.logical_units.into(),
            streams: streams.clone(),
            flushed_units: Some(8 * u64::from(units)),
            groups: 1,
        });
        let config = Config {
            allocation: Allocation::Static(*b"CWDP"),
            levelling: WearLevelling::None,
            victim: Box::new(Never),
            needs,
            streams,
            placements: Placements::of(&PlacementSpec::default(), 4),
            slc: None,
            flush_shape: ShapeId::FIRST,
        };
        let mut ftl = Ftl::new(config, &geometry, &array);
        for (lane, free) in (0..4).map(LaneId).zip(free) {
            while ftl.flush_superblocks(lane) > free {
                ftl.take_flush_superblock(&mut array, DieId(lane.0), StreamId::HOST);
            }
        }
        Bench { geometry, array, ftl }
    }

    /// The pages to which a flush of `count` pages writes on each die, in order, by their numbers in their superblocks.
    /// The dies are always idle.
    fn pages_of(bench: &mut Bench, count: u32, together: Option<u32>) -> [Vec<u32>; 4] {
        let Bench { geometry, array, ftl } = bench;
        // The last page has one unit of data.
        let units = geometry.units_per_page;
        let mut places = FlushPrograms::new(FlushMethod::Csw, ftl, &[(count - 1) * units + 1], together);
        let mut by_die = <[Vec<u32>; 4]>::default();
        for _ in 0..count {
            let place = places.next(array, ftl, Place::default(), |_| false).expect("a page is free");
            let (superblock, index) = geometry.split(place.unit);
            assert_eq!((index % units, u32::from(place.skips) % units), (0, 0));
            by_die[geometry.die_of(geometry.lane_of(superblock)).index()].push(index / units);
        }
        by_die
    }

    /// The same of a fresh drive, whatever the units of a page.
    fn pages_by_die(
        (cell, rows, free): (Cell, u32, [u32; 4]),
        count: u32,
        together: Option<u32>,
    ) -> [Vec<u32>; 4] {
        let [one, four] =
            [1, 4].map(|units| pages_of(&mut bench(cell, rows, free, units, 1), count, together));
        assert_eq!(one, four);
        one
    }

    #[test]
    fn csw_writes_3d_superblocks_layer_by_layer_as_in_figure_3() {
        // Four chips with two free superblocks of three pages: thirteen pages take the first pages of all eight
        // superblocks, the second page of the first superblock of each chip, and that of the second superblock of chip
        // 0.
        let found = pages_by_die((Cell::Mlc3d, 3, [2; 4]), 13, None);
        assert_eq!(found, [vec![0, 0, 1, 1], vec![0, 0, 1], vec![0, 0, 1], vec![0, 0, 1]]);
    }

    #[test]
    fn a_die_with_few_free_superblocks_does_not_make_the_others_use_slow_layers() {
        // Superblocks of four pages. Eq. 6 with the one free superblock of die 0 requires five pages of each
        // superblock: superblock by superblock every die would fill a superblock first (pages 0, 1, 2, 3).
        let found = pages_by_die((Cell::Tlc3d, 4, [1, 8, 8, 8]), 20, None);
        assert_eq!(found[0], [0, 1, 2, 3]);
        assert_eq!(found[1].iter().chain(&found[2]).chain(&found[3]).sum::<u32>(), 0, "{found:?}");
    }

    #[test]
    fn superblocks_written_in_sets_are_filled_set_by_set() {
        let found = pages_by_die((Cell::Mlc3d, 2, [0, 0, 0, 5]), 10, Some(2));
        assert_eq!(found[3], [0, 0, 1, 1, 0, 0, 1, 1, 0, 1]);
    }

    #[test]
    fn planar_superblocks_are_filled_superblock_by_superblock_by_equations_6_and_7() {
        // Seven pages of each of eight superblocks of eight pages: one wordline has only an LSB page.
        let found = pages_by_die((Cell::Mlc, 8, [2; 4]), 56, None);
        assert_eq!(found, [0; 4].map(|_| vec![0, 2, 3, 4, 5, 6, 7, 0, 2, 3, 4, 5, 6, 7]));
    }

    /// The rows of a superblock of three planes are used or skipped in all planes alike. Of eight rows of MLC seven are
    /// required: the LSB row of the first wordline, and then whole wordlines. A few pages less than whole rows make no
    /// difference.
    #[test]
    fn superblocks_are_filled_by_rows() {
        let of_rows = |rows: [u32; 7]| -> Vec<u32> {
            rows.into_iter().flat_map(|row| [3 * row, 3 * row + 1, 3 * row + 2]).collect()
        };
        let superblock = of_rows([0, 2, 3, 4, 5, 6, 7]);
        for lacking in 0..3 {
            let count = 4 * 2 * 21 - lacking * 8;
            let found = pages_of(&mut bench(Cell::Mlc, 8, [2; 4], 1, 3), count, None);
            let expected = [&superblock[..], &superblock].concat();
            assert_eq!(found, [0; 4].map(|_| expected[..(count / 4) as usize].to_vec()));
        }
        // Twelve pages of each superblock: the four LSB rows are enough.
        let found = pages_of(&mut bench(Cell::Mlc, 8, [2; 4], 4, 3), 4 * 2 * 12, None);
        let superblock: Vec<u32> = [0, 2, 4, 6].into_iter().flat_map(|row| 3 * row..3 * row + 3).collect();
        assert_eq!(found[3], [&superblock[..], &superblock].concat());
    }

    #[test]
    fn planar_tlc_uses_lsb_pages_first_and_then_whole_wordlines() {
        let pages = |count| pages_by_die((Cell::Tlc, 12, [2; 4]), count, None)[0].clone();
        // Four pages of each of eight superblocks: the four LSB pages are enough.
        assert_eq!(pages(32), [0, 3, 6, 9, 0, 3, 6, 9]);
        // Six pages of each superblock: three LSB pages and one whole wordline.
        assert_eq!(pages(48), [0, 3, 6, 9, 10, 11, 0, 3, 6, 9, 10, 11]);
        // Five pages need the whole wordline too: a wordline of TLC adds two pages at once.
        assert_eq!(pages(40), [0, 3, 6, 9, 10, 11, 0, 3, 6, 9]);
        // Twelve pages: all of them.
        assert_eq!(pages(96), [(0..12).collect::<Vec<_>>(), (0..12).collect()].concat());
    }

    /// A superblock of eight pages has wordlines of three, three and two pages.
    #[test]
    fn the_last_wordline_of_planar_tlc_may_be_incomplete() {
        let found = pages_by_die((Cell::Tlc, 8, [1; 4]), 12, None);
        // Three pages are required of each superblock: more than the two wordlines that are whole.
        assert_eq!(found[0], [0, 3, 6]);
    }
}
