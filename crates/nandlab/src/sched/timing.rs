//! The duration of each phase of a flash operation.

use super::transaction::FlashOp;
use super::{PlaneReads, Scheduler};
use crate::base::geometry::{DriveSpec, Geometry, KindTimes, ProgramOrder};
use crate::base::units::{Span, transfer_ns};
use crate::flash::{CellTimes, EccSpec, ProgramTime, SHAPES_MAX, Shape, ShapeId, Shapes};

/// Section `[timing]` of the spec.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct TimingSpec {
    /// tR; `None` if every read level has a sensing time of its own.
    pub read: Option<KindTimes>,
    pub program: ProgramTime,
    pub erase_ns: Span,
    pub channel_ns_per_byte: f64,
    pub command: CommandTimes,
    /// Time of decoding in the controller, after a page or a part of it has been transferred out; `None` if every read
    /// level has a decoding time of its own.
    pub decode_ns: Option<Span>,
    pub off_chip: OffChipRate,
    pub scheduler: Scheduler,
    pub multi_plane: bool,
    /// How the planes of a die read.
    pub plane_reads: PlaneReads,
    /// The longest time for which host reads of independent planes hold off another operation of their die.
    pub read_hold_ns: Span,
    pub suspend: SuspendSpec,
}

/// `timing.off_chip_mb_per_s`: the rate of the off-chip path between flash controllers and buffer, in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum OffChipRate {
    /// Transfers take no time.
    #[default]
    Unlimited,
    /// One path for both directions.
    Shared(f64),
    /// A path for each direction (`{ read, write }`).
    Separate {
        /// Out of the flash memory.
        read: f64,
        /// Into the flash memory.
        write: f64,
    },
}

/// `timing.command`: channel time of the command and address cycles that precede every flash operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct CommandTimes {
    pub read_ns: Span,
    pub program_ns: Span,
    pub erase_ns: Span,
    pub copyback_ns: Span,
    /// Time for a multi-plane read; `None` if it is `read_ns` for each plane.
    pub multi_plane_read_ns: Option<Span>,
    /// Time for a program of several pages; `None` if it is `program_ns` for each page.
    pub multi_plane_program_ns: Option<Span>,
}

impl CommandTimes {
    /// The same time for every kind of operation.
    pub fn uniform(ns: Span) -> Self {
        let together = None;
        Self {
            read_ns: ns,
            program_ns: ns,
            erase_ns: ns,
            copyback_ns: ns,
            multi_plane_read_ns: together,
            multi_plane_program_ns: together,
        }
    }
}

/// `timing.suspend`: the suspension of programs and erases for host reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SuspendSpec {
    /// Programs, and the programs of copybacks; `None`: they are not suspended.
    pub program: Option<SuspendTimes>,
    /// Erases; `None`: they are not suspended.
    pub erase: Option<SuspendTimes>,
}

/// The times and the limit of the suspensions of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuspendTimes {
    /// Time from the suspension until the die is ready for a read.
    pub enter_ns: Span,
    /// Time in which the die takes the operation up again.
    pub resume_ns: Span,
    /// Progress of the operation from its start, or from its last resumption, to its next suspension, at least.
    pub min_progress_ns: Span,
    /// Most suspensions of an operation, at least 1.
    pub max: u32,
}

/// The direction of a transfer over the off-chip path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Out of the flash memory: reads.
    Out,
    /// Into the flash memory: programs.
    In,
}

impl TimingSpec {
    /// The shape of the superblocks of a drive of validated sections, each of whose blocks is used with all bits of its
    /// cells.
    ///
    /// # Panics
    /// If neither a read level nor `[timing]` has a time.
    pub fn shape(&self, drive: &DriveSpec, ecc: &EccSpec, geometry: &Geometry) -> Shape {
        let rows_per_step = match drive.program_order {
            ProgramOrder::Page => 1,
            ProgramOrder::OneShot => drive.cell.bits(),
        };
        let steps = self.program.steps(drive.cell, drive.pages_per_block, rows_per_step, drive.layers);
        Shape::new(geometry, drive.cell, drive.program_order, &steps, &self.times(geometry), ecc)
    }

    /// The times of blocks used with all bits of their cells, without those of their programs.
    pub(crate) fn times(&self, geometry: &Geometry) -> CellTimes {
        CellTimes {
            read: self.read,
            transfer_ns: transfer_ns(geometry.page_bytes().into(), self.channel_ns_per_byte),
            decode_ns: self.decode_ns,
            erase_ns: self.erase_ns,
        }
    }
}

/// Phase times of a drive, computed once from the spec. Those of reads in the array, programs and erases are in the
/// shapes of the drive.
#[derive(Clone, Debug)]
pub struct Timing {
    /// The shapes of the drive.
    shapes: Shapes,
    /// Time of the transfer of a page into the page register, over the channel.
    pub transfer_ns: Span,
    /// Time of the transfer of a page over the off-chip path, by [`Way`]; 0 for an unlimited path.
    pub off_chip_ns: [Span; 2],
    /// The path of each [`Way`]: the same one if both directions share a path.
    pub off_chip_path: [u8; 2],
    /// Channel time of the command and address cycles that precede every operation.
    pub command: CommandTimes,
    /// Channel time of the command and address cycles of an operation on one page, or for an erase one block, by
    /// [`FlashOp`].
    commands: [Span; 4],
    /// The suspension of programs and erases.
    pub suspend: SuspendSpec,
    /// The groups of planes of a die that read at their own times; 1 if all planes read together.
    pub plane_groups: u32,
    /// The longest time for which host reads of independent planes hold off another operation of their die.
    pub read_hold_ns: Span,
    /// The largest number of planes in one read; 1 without `timing.multi_plane`.
    planes: u32,
    /// The largest number of lanes in one program or erase; 1 without `timing.multi_plane`.
    lanes: u32,
    /// Bytes of a page.
    page_bytes: u64,
    /// Dies of the drive, and those of a channel.
    dies: u64,
    dies_per_channel: u64,
    /// Pages, or for an erase blocks, of an operation on one superblock, by [`ShapeId`] and [`FlashOp`].
    widths: [[u32; 4]; SHAPES_MAX],
}

impl Timing {
    /// The times of a validated `[timing]` section on a drive with these shapes.
    pub fn new(spec: &TimingSpec, geometry: &Geometry, shapes: Shapes) -> Self {
        let bytes = u64::from(geometry.page_bytes());
        let page_at = |rate: f64| transfer_ns(bytes, 1e9 / rate);
        let mut widths = [[0; 4]; SHAPES_MAX];
        for (widths, shape) in widths.iter_mut().zip(shapes.iter()) {
            let pages = shape.pages_per_program;
            *widths = [1, pages, geometry.planes_per_lane, pages];
        }
        Self {
            transfer_ns: transfer_ns(bytes, spec.channel_ns_per_byte),
            off_chip_ns: match spec.off_chip {
                OffChipRate::Unlimited => [Span::ZERO; 2],
                OffChipRate::Shared(rate) => [page_at(rate); 2],
                OffChipRate::Separate { read, write } => [page_at(read), page_at(write)],
            },
            off_chip_path: if matches!(spec.off_chip, OffChipRate::Separate { .. }) {
                [0, 1]
            } else {
                [0, 0]
            },
            command: spec.command,
            commands: {
                let CommandTimes { read_ns, program_ns, erase_ns, copyback_ns, .. } = spec.command;
                [read_ns, program_ns, erase_ns, copyback_ns]
            },
            suspend: spec.suspend,
            plane_groups: spec.plane_reads.groups(geometry.planes_per_die()),
            read_hold_ns: spec.read_hold_ns,
            planes: if spec.multi_plane { geometry.planes_per_die() } else { 1 },
            lanes: if spec.multi_plane { geometry.lanes_per_die } else { 1 },
            page_bytes: bytes,
            dies: geometry.dies.into(),
            dies_per_channel: geometry.dies_per_channel.into(),
            widths,
            shapes,
        }
    }

    /// The shapes of the drive.
    #[inline(always)]
    pub fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// Time to write a superblock of the first shape, one programming unit after another: transfers in and programs,
    /// without command cycles.
    pub fn superblock_write_ns(&self) -> Span {
        let transfer_ns = u64::from(self.width(ShapeId::FIRST, FlashOp::Program)) * self.transfer_ns;
        let first = self.shapes.first();
        first.programs().map(|unit| transfer_ns + first.program_ns(unit)).sum()
    }

    /// Channel time of the program of one programming unit in a superblock of this shape: command cycles, and the
    /// transfers of all its pages.
    pub fn program_transfer_ns(&self, shape: ShapeId) -> Span {
        let pages = u64::from(self.width(shape, FlashOp::Program));
        self.command_of_pages_ns(FlashOp::Program, pages) + pages * self.transfer_ns
    }

    /// The largest number of pages that a die reads at once: by one read, or by one read of each group of planes.
    fn pages_read_at_once(&self) -> u64 {
        self.planes.max(self.plane_groups).into()
    }

    /// The longest time that the operations of a die occupy a channel together. The candidates: the transfers out of all
    /// pages that it reads at once, at any read level; the command cycles of a multi-plane program with its transfers in; the command cycles of
    /// another operation.
    pub fn longest_transfer_ns(&self) -> Span {
        let (planes, lanes) = (self.pages_read_at_once(), u64::from(self.lanes));
        let costs = self.shapes.iter().flat_map(Shape::tries).flatten();
        let reads = planes * costs.map(|cost| cost.transfer_ns).max().unwrap_or_default();
        let programs = (1..=lanes)
            .map(|programs| programs * self.pages_per_program_max())
            .map(|pages| self.command_of_pages_ns(FlashOp::Program, pages) + pages * self.transfer_ns);
        let others = [FlashOp::Read, FlashOp::Erase, FlashOp::Copyback].map(|kind| {
            let pages = if kind == FlashOp::Copyback { self.pages_per_program_max() } else { planes };
            self.command_ns(kind).max(self.command_of_pages_ns(kind, pages))
        });
        programs.chain(others).chain([reads]).max().unwrap_or_default()
    }

    /// The longest time that a die waits for its channel and the off-chip path and then transfers. In the worst case every
    /// die of the channel first transfers a whole read at the last read level or a whole program, and so does every die of
    /// the drive on the off-chip path.
    pub fn longest_wait_ns(&self) -> Span {
        let (planes, lanes) = (self.pages_read_at_once(), u64::from(self.lanes));
        let program = lanes * self.pages_per_program_max();
        let [out, into] = self.off_chip_ns;
        let off_chip_ns = (planes * out).max(program * into);
        self.dies_per_channel * self.longest_transfer_ns() + self.dies * off_chip_ns
    }

    /// The largest number of pages of a programming unit.
    fn pages_per_program_max(&self) -> u64 {
        self.widths.map(|widths| widths[FlashOp::Program as usize]).into_iter().max().unwrap_or(1).into()
    }

    /// The longest time of one try of a read on the die and in the decoder, without its transfers.
    pub fn longest_try_ns(&self) -> Span {
        let costs = self.shapes.iter().flat_map(Shape::tries).flatten();
        costs.map(|cost| cost.sense_ns + cost.decode_ns).max().unwrap_or_default()
    }

    /// The longest time from power failure until a die has taken a suspended operation up again; 0 without suspensions.
    /// The die is getting ready for reads, or serves a read. `wait_ns` is the longest time in which a die waits for its
    /// channel and transfers a page.
    pub fn longest_resumption_ns(&self, wait_ns: Span) -> Span {
        let read_ns = self.longest_try_ns() + wait_ns;
        let SuspendSpec { program, erase } = self.suspend;
        let resumption = |times: SuspendTimes| times.enter_ns.max(read_ns) + times.resume_ns;
        [program, erase].into_iter().flatten().map(resumption).max().unwrap_or_default()
    }

    /// The time of a read that needs every level, at the first level first: command cycles, sensing, transfers and
    /// decoding of all tries. And the part of this time in which the read occupies its channel.
    pub fn longest_read_ns(&self) -> [Span; 2] {
        // A policy may begin at any level, with a first try.
        let first_tries = self.shapes.iter().flat_map(Shape::first_tries);
        first_tries.fold([Span::ZERO; 2], |longest, tries| {
            let on_channel: Span = tries.iter().map(|cost| cost.transfer_ns.max(self.off_chip_ns[0])).sum();
            let on_channel = on_channel + tries.len() as u64 * self.command_ns(FlashOp::Read);
            let elsewhere: Span = tries.iter().map(|cost| cost.sense_ns + cost.decode_ns).sum();
            [longest[0].max(on_channel + elsewhere), longest[1].max(on_channel)]
        })
    }

    /// Pages, or for an erase blocks, of an operation on one superblock of this shape.
    #[inline(always)]
    pub fn width(&self, shape: ShapeId, kind: FlashOp) -> u32 {
        self.widths[shape.index()][kind as usize]
    }

    /// Channel time of the command cycles of an operation on one page, or for an erase one block.
    #[inline(always)]
    pub fn command_ns(&self, kind: FlashOp) -> Span {
        self.commands[kind as usize]
    }

    /// Channel time of the command cycles of an operation on `pages` pages, or for an erase blocks.
    pub fn command_of_pages_ns(&self, kind: FlashOp, pages: u64) -> Span {
        let together = match kind {
            FlashOp::Read => self.command.multi_plane_read_ns,
            FlashOp::Program => self.command.multi_plane_program_ns,
            FlashOp::Erase | FlashOp::Copyback => None,
        };
        match together {
            Some(together) if pages > 1 => together,
            _ => pages * self.command_ns(kind),
        }
    }

    /// The shortest tR of a page, and the shortest tBERS.
    pub fn shortest_read_and_erase_ns(&self) -> (Span, Span) {
        let first_tries = self.shapes.iter().flat_map(Shape::first_tries);
        let read_ns = first_tries.map(|tries| tries[0].sense_ns).min();
        let erase_ns = self.shapes.iter().map(|shape| shape.erase_ns).min();
        (read_ns.unwrap_or_default(), erase_ns.unwrap_or_default())
    }

    /// The time on the channel or the off-chip path for `part_bytes` of a page, if the whole page takes `page_ns`. 0
    /// bytes stand for the whole page.
    #[inline(always)]
    pub fn of_part(&self, page_ns: Span, part_bytes: u32) -> Span {
        if part_bytes == 0 { page_ns } else { self.of_bytes(page_ns, part_bytes) }
    }

    #[cold]
    fn of_bytes(&self, page_ns: Span, bytes: u32) -> Span {
        Span::from_ns((page_ns.ns() * u64::from(bytes)).div_ceil(self.page_bytes))
    }
}
