//! The shape of a superblock: how many bits its cells hold, and what follows from that for its units, programs and times.
//!
//! Most drives have one shape. A drive whose blocks are also used with fewer bits a cell, such as one with an SLC cache,
//! has a shape for each of these uses. The array knows the shape of each superblock ([`Array::shape`](super::Array::shape));
//! an erased superblock can be given another one ([`Array::reshape`](super::Array::reshape)).
//!
//! The geometry addresses units: the superblock of a PPN, and the die, the plane and the row of a unit are the same in
//! every shape. A superblock has as many PPNs as the largest shape has units ([`Geometry::units_per_superblock`]); in a
//! smaller shape the last PPNs have no unit. A page has the same number of units in every shape.

use super::ecc::{EccSpec, LevelSpec, Retry};
use crate::base::geometry::{Cell, Divisor, Geometry, KindTimes, PageKind, ProgramOrder, Stripes, UnitId};
use crate::base::state::value;
use crate::base::units::Span;
use std::ops::Range;
use std::sync::Arc;

/// The largest number of shapes of a drive, a power of two.
pub const SHAPES_MAX: usize = 4;

/// `timing.program`: tPROG, and how it depends on the page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProgramTime {
    /// The same tPROG for every page.
    Uniform(Span),
    /// By page kind (`{ lsb, csb, msb }`).
    ByKind(KindTimes),
    /// By layer (`{ fastest, slowest }`), linear from the bottom layer (fastest) to the top layer (slowest).
    ByLayer {
        /// Bottom layer.
        fastest_ns: Span,
        /// Top layer.
        slowest_ns: Span,
    },
}

impl ProgramTime {
    /// The mean over the page kinds, or over the layers, in seconds. The CSB pages that MLC lacks have the mean of the
    /// other two kinds.
    pub(crate) fn mean_s(self) -> f64 {
        let ns = |span: Span| span.ns() as f64;
        1e-9 * match self {
            Self::Uniform(span) => ns(span),
            Self::ByKind(KindTimes { lsb_ns, csb_ns, msb_ns }) => {
                (ns(lsb_ns) + ns(csb_ns) + ns(msb_ns)) / 3.0
            }
            Self::ByLayer { fastest_ns, slowest_ns } => (ns(fastest_ns) + ns(slowest_ns)) / 2.0,
        }
    }

    /// The program operations of a block of `rows` rows in `layers` layers, each of `rows_per_step` rows. The time of an
    /// operation is that of its first row. The rows are spread evenly over the layers, in ascending order.
    pub fn steps(self, cell: Cell, rows: u32, rows_per_step: u32, layers: u32) -> Vec<ProgramStep> {
        let time = |row: u32| match self {
            Self::Uniform(ns) => ns,
            Self::ByKind(times) => times.of(cell.kind_of_row(row)),
            Self::ByLayer { fastest_ns, slowest_ns } => {
                let layer = u64::from(row) * u64::from(layers) / u64::from(rows);
                let top = u64::from(layers.max(2) - 1);
                fastest_ns + (slowest_ns - fastest_ns) * layer / top
            }
        };
        let step = |first: u32| ProgramStep { rows: first..first + rows_per_step, time_ns: time(first) };
        (0..rows).step_by(rows_per_step as usize).map(step).collect()
    }
}

/// A program operation of a block. Its rows are programmed once, together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramStep {
    /// The rows that the operation programs.
    pub rows: Range<u32>,
    /// Time of the operation (tPROG).
    pub time_ns: Span,
}

/// The times of a block other than those of its programs. A read level may have its own instead of those of reads.
#[derive(Clone, Copy, Debug)]
pub struct CellTimes {
    /// tR; `None` if every read level has a sensing time of its own.
    pub read: Option<KindTimes>,
    /// Time of the transfer of a page over the channel.
    pub transfer_ns: Span,
    /// Time of decoding; `None` if every read level has one of its own.
    pub decode_ns: Option<Span>,
    /// Time of erasing the block (tBERS).
    pub erase_ns: Span,
}

/// The cost of one try of a read at its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadCost {
    /// Time of the sensing on the die.
    pub sense_ns: Span,
    /// Time of the transfer on the channel.
    pub transfer_ns: Span,
    /// Time of the decoding in the controller.
    pub decode_ns: Span,
}

/// The shape of a superblock. Unless it says otherwise, a unit is the number of a unit in its superblock.
#[derive(Clone, Debug)]
pub struct Shape {
    /// How the cells are used.
    pub cell: Cell,
    /// Units of a superblock, on all its dies.
    pub units: u32,
    /// Rows of a superblock on each of its dies: pages of a block.
    pub rows: u32,
    /// Pages of a programming unit.
    pub pages_per_program: u32,
    /// Units of a programming unit.
    pub units_per_program: u32,
    /// Time of erasing a block, or the blocks that a superblock has on a die (tBERS).
    pub erase_ns: Span,
    by_units_per_program: Divisor,
    /// Rows of a program operation.
    rows_per_step: u32,
    /// Units of a page, in every shape the same.
    pub units_per_page: u32,
    /// Units of the rows with the same number on all dies of a superblock, in every shape the same.
    pub units_per_full_row: u32,
    stripes: Stripes,
    /// Number of read levels, at least 1.
    levels: usize,
    /// For LSB, CSB and MSB pages in turn: the costs of a first try, by level; then the costs of a try that follows a
    /// failed try, by level.
    reads: Arc<[ReadCost]>,
    /// By row, the index in `reads` of the first cost of its kind.
    kinds: Arc<[u16]>,
    /// tPROG by row.
    program_ns: Arc<[Span]>,
}

impl Shape {
    /// The shape of superblocks whose blocks have cells used as `cell`, and are programmed in `steps`: a page at a time,
    /// or the rows of a step in each block that the superblock has on a die (`order`).
    ///
    /// # Panics
    /// If the steps do not program the rows in order, each once and the same number in each operation; if a superblock
    /// then has more units than PPNs, or on several dies no whole stripes ([`Stripes`]); and if neither a read level nor
    /// `times` has a time.
    pub fn new(
        geometry: &Geometry,
        cell: Cell,
        order: ProgramOrder,
        steps: &[ProgramStep],
        times: &CellTimes,
        ecc: &EccSpec,
    ) -> Self {
        let rows = steps.last().expect("a block has rows").rows.end;
        let rows_per_step = steps[0].rows.len() as u32;
        let firsts = (0..rows).step_by(rows_per_step as usize);
        assert!(
            steps.iter().map(|step| step.rows.clone()).eq(firsts.map(|first| first..first + rows_per_step)),
            "the program operations do not fill the block row by row"
        );
        assert!(
            order == ProgramOrder::OneShot || rows_per_step == 1,
            "a program operation writes several pages"
        );
        let units_per_full_row = geometry.units_per_full_row();
        let units = rows * units_per_full_row;
        let pages_per_program = match order {
            ProgramOrder::Page => rows_per_step,
            ProgramOrder::OneShot => rows_per_step * geometry.planes_per_lane,
        };
        let units_per_program = pages_per_program * geometry.units_per_page;
        assert!(
            units <= geometry.units_per_superblock
                && geometry.units_per_superblock.is_multiple_of(units_per_program),
            "{units} units in programs of {units_per_program} do not fit the {} PPNs of a superblock",
            geometry.units_per_superblock
        );
        assert!(
            geometry.stripes.fit(units, units_per_program),
            "a superblock of {units} units in programs of {units_per_program} has no whole stripes"
        );
        let levels = ecc.levels.len().max(1);
        let of_row = |row: u32| match cell.kind_of_row(row) {
            PageKind::Slc | PageKind::Lsb => 0,
            PageKind::Csb => 2 * levels as u16,
            PageKind::Msb => 4 * levels as u16,
        };
        let reads = [PageKind::Lsb, PageKind::Csb, PageKind::Msb].map(|kind| read_costs(kind, times, ecc));
        Self {
            cell,
            units,
            rows,
            pages_per_program,
            units_per_program,
            erase_ns: times.erase_ns,
            by_units_per_program: Divisor::new(units_per_program),
            rows_per_step,
            units_per_page: geometry.units_per_page,
            units_per_full_row,
            stripes: geometry.stripes,
            levels,
            reads: reads.concat().into(),
            kinds: (0..rows).map(of_row).collect(),
            program_ns: steps.iter().flat_map(|step| step.rows.clone().map(|_| step.time_ns)).collect(),
        }
    }

    /// The program operations of a block, in order.
    pub fn steps(&self) -> impl Iterator<Item = ProgramStep> + '_ {
        let step = |first: u32| ProgramStep {
            rows: first..first + self.rows_per_step,
            time_ns: self.program_ns[first as usize],
        };
        (0..self.rows).step_by(self.rows_per_step as usize).map(step)
    }

    /// The first unit of each programming unit of a superblock, in ascending order.
    pub fn programs(&self) -> impl Iterator<Item = u32> + Clone + use<> {
        (0..self.units).step_by(self.units_per_program as usize)
    }

    /// Programming units of a superblock on one of its dies.
    pub fn programs_on_die(&self) -> u32 {
        self.units / self.units_per_program / self.stripes.dies
    }

    /// Programming units of a row on one die: with page order one in every plane of the lane. 1 with one-shot programs,
    /// although a programming unit then has several rows.
    pub fn programs_per_row(&self) -> u32 {
        (self.units_per_full_row / self.stripes.dies / self.units_per_program).max(1)
    }

    /// Pages of a superblock.
    pub fn pages(&self) -> u32 {
        self.units / self.units_per_page
    }

    /// The number of the unit with this PPN in its programming unit, from 0 on.
    #[inline(always)]
    pub fn place_in_program(&self, unit: UnitId) -> u32 {
        // The number of PPNs of a superblock is a multiple of the units of a programming unit.
        self.by_units_per_program.split(unit.0).1
    }

    /// Consecutive units that are always programmed and corrected together: a power of two. `copies_back`: the pages of
    /// a programming unit may be copies of pages of different ages. `has_parts`: each unit may be corrected by itself.
    pub fn units_per_age(&self, copies_back: bool, has_parts: bool) -> u32 {
        match (copies_back, has_parts) {
            (_, true) => 1,
            (true, false) => self.units_per_page,
            // A superblock has a whole number of programming units.
            (false, false) => 1 << self.units_per_program.trailing_zeros(),
        }
    }

    /// Whether a page that is to be copied back may have to wait: until other pages fill a programming unit with it,
    /// or, in a superblock of several blocks, until the next programming unit of the stream is in the plane of the
    /// page.
    pub fn copybacks_wait(&self) -> bool {
        self.pages_per_program > 1 || self.units_per_full_row > self.units_per_page
    }

    /// Pages of a wordline, one for each bit of a cell.
    pub fn pages_per_wordline(&self) -> u32 {
        self.cell.bits()
    }

    /// Pages of a wordline that are programmed one after another, so that a torn program also destroys the pages before
    /// its own: all pages of a wordline of planar MLC or TLC in page order. 1 where no page depends on another: SLC, 3D
    /// cells, one-shot programs.
    #[inline]
    pub fn dependent_pages(&self) -> u32 {
        match self.cell {
            // The pages of a one-shot program are torn together.
            _ if self.pages_per_program > 1 => 1,
            Cell::Mlc => 2,
            Cell::Tlc => 3,
            Cell::Slc | Cell::Mlc3d | Cell::Tlc3d => 1,
        }
    }

    /// The number of pages of its wordline on which the page of a unit depends: those before it, or 0 where no page
    /// depends on another ([`Shape::dependent_pages`]).
    #[inline]
    pub fn depends_on(&self, unit: u32) -> u32 {
        self.stripes.row(unit) % self.dependent_pages()
    }

    /// Units of the full rows whose pages depend on one another ([`Shape::dependent_pages`]): of a wordline of every
    /// block of a superblock. They are consecutive units of the superblock. If no page depends on another, units of a
    /// full row.
    pub fn units_per_wordlines(&self) -> u32 {
        self.dependent_pages() * self.units_per_full_row
    }

    /// The number of units from a unit on up to the next unit that begins a wordline in every block; 0 if the unit does,
    /// or if no page depends on another.
    pub fn left_in_wordlines(&self, unit: u32) -> u32 {
        if self.dependent_pages() == 1 {
            return 0;
        }
        let end = unit.next_multiple_of(self.units_per_wordlines());
        // In page order the last wordline of a block may have fewer pages.
        end.min(self.units) - unit
    }

    /// The row of a unit: the number of its page in its block.
    #[inline]
    pub fn row(&self, unit: u32) -> u32 {
        self.stripes.row(unit)
    }

    /// The kind of the page of a unit. The pages of a wordline have consecutive numbers in their block.
    pub fn kind(&self, unit: u32) -> PageKind {
        self.cell.kind_of_row(self.stripes.row(unit))
    }

    /// The cost of a try at `level` for the page of a unit. `is_retry` states that the try follows a failed try at the
    /// level below. Only the time of sensing depends on the page.
    #[inline(always)]
    pub fn read(&self, unit: u32, level: u8, is_retry: bool) -> &ReadCost {
        let behind = if is_retry { self.levels } else { 0 };
        &self.reads
            [usize::from(self.kinds[self.stripes.row(unit) as usize]) + usize::from(level) - 1 + behind]
    }

    /// The cost of a try at `level` for any page, whose times of transfer and decoding are those of every page.
    #[inline(always)]
    pub fn after_sensing(&self, level: u8, is_retry: bool) -> &ReadCost {
        &self.reads[usize::from(level) - 1 + if is_retry { self.levels } else { 0 }]
    }

    /// Time of sensing the page of a unit into the page register (tR), at the first read level.
    #[inline(always)]
    pub fn read_ns(&self, unit: u32) -> Span {
        self.read(unit, 1, false).sense_ns
    }

    /// For each page kind that the superblock has, the costs of a first try, by level; then those of a try that follows a
    /// failed try, by level.
    pub fn tries(&self) -> impl Iterator<Item = &[ReadCost]> {
        // A wordline has at most three rows, which are the first ones of a superblock.
        self.kinds.iter().take(3).map(|&kind| &self.reads[kind.into()..][..2 * self.levels])
    }

    /// For each page kind that the superblock has, the costs of a first try, by level.
    pub fn first_tries(&self) -> impl Iterator<Item = &[ReadCost]> {
        self.tries().map(|tries| &tries[..self.levels])
    }

    /// Time of the program (tPROG) of the page of a unit, or of the programming unit that begins with this unit.
    #[inline(always)]
    pub fn program_ns(&self, unit: u32) -> Span {
        self.program_ns[self.stripes.row(unit) as usize]
    }
}

/// The costs of a first try at a page of this kind, by level; then those of a try that follows a failed try, by level.
fn read_costs(kind: PageKind, times: &CellTimes, ecc: &EccSpec) -> Vec<ReadCost> {
    let cost = |level: Option<&LevelSpec>| ReadCost {
        sense_ns: level.and_then(|level| level.sense).or(times.read).expect("a tR").of(kind)
            + level.map_or(Span::ZERO, |level| level.further.of(kind)),
        transfer_ns: level.and_then(|level| level.transfer_ns).unwrap_or(times.transfer_ns)
            * level.map_or(1, |level| level.transfers.into()),
        decode_ns: level.and_then(|level| level.decode_ns).or(times.decode_ns).expect("a time"),
    };
    let mut first: Vec<ReadCost> = ecc.levels.iter().map(|level| cost(Some(level))).collect();
    if first.is_empty() {
        first.push(cost(None));
    }
    let mut again = first.clone();
    if ecc.retry == Retry::Incremental {
        // The controller keeps the result of the sensing at the lower level.
        for level in (1..first.len()).filter(|&level| ecc.levels[level].adds) {
            again[level].sense_ns -= first[level - 1].sense_ns;
            again[level].transfer_ns -= first[level - 1].transfer_ns;
        }
    }
    [first, again].concat()
}

/// The number of a shape among those of its drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShapeId(u8);

impl ShapeId {
    /// The shape that every superblock has at the start, and every free superblock.
    pub const FIRST: Self = Self(0);
    /// The shape of superblocks in SLC mode, in a drive that has some.
    pub const SLC: Self = Self(1);

    /// The number, below [`SHAPES_MAX`].
    pub fn number(self) -> u8 {
        self.0
    }

    pub(super) fn of(number: u8) -> Self {
        Self(number)
    }

    /// The number as an array index, below [`SHAPES_MAX`].
    #[inline(always)]
    pub fn index(self) -> usize {
        usize::from(self.0) % SHAPES_MAX
    }
}

/// How cells of a shape age and err, compared with those of the first shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ageing {
    /// P/E cycles of a superblock that has only cycles of the first shape at which it retires.
    pub endurance_of_first: u32,
    /// P/E cycles of a superblock that has only cycles of this shape at which it retires.
    pub endurance: u32,
    /// The RBER of a page, as a factor of that of a page of the first shape after the same wear, age and reads.
    pub rber_factor: f64,
}

impl Ageing {
    /// That of the first shape.
    const FIRST: Self = Self { endurance_of_first: 1, endurance: 1, rber_factor: 1.0 };

    /// The cycles of the first shape that wear a superblock as much as `cycles` of this shape, rounded down.
    pub(crate) fn wear(&self, cycles: u32) -> u32 {
        let wear = u64::from(cycles) * u64::from(self.endurance_of_first) / u64::from(self.endurance);
        u32::try_from(wear).unwrap_or(u32::MAX)
    }

    /// The cycles of the first shape that wear a superblock as much as one more cycle of this shape, after `cycles` of
    /// them: over many cycles `endurance_of_first / endurance` on average.
    pub fn wear_of_next(&self, cycles: u32) -> u32 {
        self.wear(cycles.saturating_add(1)) - self.wear(cycles)
    }
}

/// The shapes of a drive, at most [`SHAPES_MAX`].
#[derive(Clone, Debug)]
pub struct Shapes {
    /// Behind the last shape the first one follows again, so that an index needs no check.
    all: [Shape; SHAPES_MAX],
    count: usize,
    ageing: [Ageing; SHAPES_MAX],
}

impl Shapes {
    /// The shapes of a drive whose superblocks all have this shape.
    pub fn new(first: Shape) -> Self {
        Self { all: [(); SHAPES_MAX].map(|()| first.clone()), count: 1, ageing: [Ageing::FIRST; SHAPES_MAX] }
    }

    /// Adds a shape.
    ///
    /// # Panics
    /// If the drive has [`SHAPES_MAX`] shapes already.
    pub fn add(&mut self, shape: Shape, ageing: Ageing) -> ShapeId {
        let id = ShapeId(self.count as u8);
        (self.all[self.count], self.ageing[self.count]) = (shape, ageing);
        self.count += 1;
        id
    }

    /// How cells of a shape age and err.
    #[inline(always)]
    pub fn ageing(&self, id: ShapeId) -> &Ageing {
        &self.ageing[id.index()]
    }

    /// Whether all superblocks of the drive have the first shape.
    #[inline(always)]
    pub fn is_single(&self) -> bool {
        self.count == 1
    }

    /// The shape that every superblock has at the start, and every free superblock. Questions about the drive as a
    /// whole, such as the superblocks that it needs, ask this shape.
    #[inline(always)]
    pub fn first(&self) -> &Shape {
        &self.all[0]
    }

    /// The shape with a number; `None` if the drive has none.
    pub fn numbered(&self, number: u8) -> Option<ShapeId> {
        (usize::from(number) < self.count).then_some(ShapeId(number))
    }

    /// The shapes in the order of their numbers.
    pub fn iter(&self) -> std::slice::Iter<'_, Shape> {
        self.all[..self.count].iter()
    }

    /// The largest number of units of a programming unit.
    pub fn units_per_program_max(&self) -> u32 {
        self.iter().map(|shape| shape.units_per_program).max().unwrap_or(1)
    }

    /// The largest number of units of a superblock.
    pub fn units_max(&self) -> u32 {
        self.iter().map(|shape| shape.units).max().unwrap_or_default()
    }

    /// Whether the pages of a wordline depend on one another in some shape ([`Shape::dependent_pages`]).
    pub fn have_dependent_pages(&self) -> bool {
        self.iter().any(|shape| shape.dependent_pages() > 1)
    }

    /// Consecutive units that are always programmed and corrected together in every shape ([`Shape::units_per_age`]).
    pub fn units_per_age(&self, copies_back: bool, has_parts: bool) -> u32 {
        self.iter().map(|shape| shape.units_per_age(copies_back, has_parts)).min().unwrap_or(1)
    }
}

impl std::ops::Index<ShapeId> for Shapes {
    type Output = Shape;

    #[inline(always)]
    fn index(&self, id: ShapeId) -> &Shape {
        &self.all[id.index()]
    }
}

value! { ShapeId { ..tuple number } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::geometry::{DriveSpec, Layout, Lpn, Superblock as Blocks, SuperblockId};
    use crate::base::units::{MS, US};
    use crate::flash::{Array, Keeps, Stamp, StartLevel, SuperblockState};

    /// A drive of one plane with blocks of two TLC wordlines, each of which one program writes. A page has two units. And
    /// the shape of these blocks with one bit a cell: a page a wordline.
    fn tlc_and_slc() -> (Geometry, Shapes, ShapeId) {
        let drive = DriveSpec {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: 3,
            pages_per_block: 6,
            page_size_bytes: 8192,
            cell: Cell::Tlc3d,
            layers: 2,
            op: 0.5,
            bad_blocks: 0.0,
            endurance: 10,
            registers: 1,
            program_order: ProgramOrder::OneShot,
        };
        let geometry = Geometry::with(&drive, Layout { units_per_page: 2, superblock: Blocks::Plane });
        let ecc = EccSpec::of(Vec::new(), StartLevel::First);
        let by_layer = ProgramTime::ByLayer { fastest_ns: 600 * US, slowest_ns: 800 * US };
        let times = CellTimes {
            read: Some(KindTimes { lsb_ns: 40 * US, csb_ns: 60 * US, msb_ns: 80 * US }),
            transfer_ns: 10 * US,
            decode_ns: Some(US),
            erase_ns: 5 * MS,
        };
        let steps = by_layer.steps(Cell::Tlc3d, 6, 3, 2);
        let tlc = Shape::new(&geometry, Cell::Tlc3d, ProgramOrder::OneShot, &steps, &times, &ecc);
        let times = CellTimes { read: Some(KindTimes::uniform(20 * US)), erase_ns: 3 * MS, ..times };
        let steps = ProgramTime::Uniform(100 * US).steps(Cell::Slc, 2, 1, 1);
        let slc = Shape::new(&geometry, Cell::Slc, ProgramOrder::Page, &steps, &times, &ecc);
        let mut shapes = Shapes::new(tlc);
        let slc = shapes.add(slc, Ageing { endurance_of_first: 10, endurance: 30, rber_factor: 0.01 });
        (geometry, shapes, slc)
    }

    #[test]
    fn units_kinds_programs_and_times_follow_from_the_shape() {
        let (_, shapes, slc) = tlc_and_slc();
        let of = |shape: &Shape| (shape.units, shape.rows, shape.pages_per_program, shape.units_per_program);
        assert_eq!([of(shapes.first()), of(&shapes[slc])], [(12, 6, 3, 6), (4, 2, 1, 2)]);
        let step = |rows, time_ns| ProgramStep { rows, time_ns };
        let steps = |shape: &Shape| shape.steps().collect::<Vec<_>>();
        assert_eq!(steps(shapes.first()), [step(0..3, 600 * US), step(3..6, 800 * US)]);
        assert_eq!(steps(&shapes[slc]), [step(0..1, 100 * US), step(1..2, 100 * US)]);
        let kinds = |shape: &Shape| (0..shape.units).map(|unit| shape.kind(unit)).collect::<Vec<_>>();
        let [lsb, csb, msb] = [PageKind::Lsb, PageKind::Csb, PageKind::Msb].map(|kind| [kind; 2]);
        assert_eq!(kinds(shapes.first()), [lsb, csb, msb, lsb, csb, msb].concat());
        assert_eq!(kinds(&shapes[slc]), [PageKind::Slc; 4]);
        let read = |shape: &Shape| (0..shape.units).map(|unit| shape.read_ns(unit)).sum::<Span>();
        assert_eq!([read(shapes.first()), read(&shapes[slc])], [4 * (40 + 60 + 80) * US, 4 * 20 * US]);
        // The fifth PPN of the second superblock, number 16 of the drive, is the fifth unit of a program of six.
        let place = |shape: &Shape| shape.place_in_program(UnitId(16));
        assert_eq!([place(shapes.first()), place(&shapes[slc])], [4, 0]);
        // The smaller programming unit decides which units always have a common age: two.
        assert_eq!((shapes.units_per_program_max(), shapes.units_per_age(false, false)), (6, 2));
    }

    /// Fills a superblock of each shape by its programs, reads a page of each, and erases both. The times on the die add
    /// up to two programs, a read and an erase each.
    #[test]
    fn superblocks_of_two_shapes_are_programmed_and_erased_beside_each_other() {
        let (geometry, shapes, slc) = tlc_and_slc();
        let keeps = Keeps { sequences: true, ages: true, units_per_age: 2, ..Keeps::default() };
        let mut array = Array::new(&geometry, shapes, 7, keeps);
        let [tlc_block, slc_block] = [SuperblockId(0), SuperblockId(1)];
        array.reshape(slc_block, slc);
        let mut busy = [Span::ZERO; 2];
        for (superblock, busy) in [tlc_block, slc_block].into_iter().zip(&mut busy) {
            array.superblock_mut(superblock).state = SuperblockState::Open;
            let shape = array.shape(superblock).clone();
            for first in shape.programs() {
                *busy += shape.program_ns(first);
                for index in first..first + shape.units_per_program {
                    let unit = geometry.unit(superblock, index);
                    array.stage(unit, Lpn(unit.0), Stamp { sequence: 1, ..Stamp::default() });
                    assert_eq!(array.program(superblock, index), index + 1);
                }
            }
            assert_eq!(array.superblock(superblock).programmed, shape.units);
            assert_eq!(array.programmed(superblock).count() as u32, shape.units);
            assert!(array.unprogrammed(superblock).iter().all(Range::is_empty));
            array.read(&geometry, superblock, shape.units - 1);
            *busy += shape.read_ns(shape.units - 1) + shape.erase_ns;
        }
        assert_eq!(busy, [(600 + 800 + 80) * US + 5 * MS, (100 + 100 + 20) * US + 3 * MS]);
        for superblock in [tlc_block, slc_block] {
            array.erase(&geometry, superblock);
            let state = array.superblock(superblock);
            // Of three cycles in SLC mode, the first two do not yet wear the block as much as one of TLC.
            let worn = 7 + u32::from(superblock == tlc_block);
            assert_eq!((state.programmed, state.reads, state.pe_cycles), (0, 0, worn));
            assert_eq!(array.slc_cycles(superblock), 8 - worn);
            assert_eq!((array.shape_id(superblock), array.shape(superblock).units), (ShapeId::FIRST, 12));
        }
    }

    #[test]
    #[should_panic(expected = "superblock 1 is not erased and cannot be reshaped")]
    fn a_superblock_with_a_programmed_unit_cannot_be_reshaped() {
        let (geometry, shapes, slc) = tlc_and_slc();
        let mut array = Array::new(&geometry, shapes, 0, Keeps::default());
        array.superblock_mut(SuperblockId(1)).state = SuperblockState::Open;
        array.program(SuperblockId(1), 0);
        array.reshape(SuperblockId(1), slc);
    }
}
