//! The duration of each phase of a flash operation.

use super::Scheduler;
use super::transaction::FlashOp;
use crate::base::geometry::{Divisor, Geometry, KindTimes, PageKind, Stripes, UnitId};
use crate::base::units::{Span, transfer_ns};
use crate::flash::{EccSpec, LevelSpec, Retry};

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
}

/// The direction of a transfer over the off-chip path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Out of the flash memory: reads.
    Out,
    /// Into the flash memory: programs.
    In,
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

/// Phase times of a drive, computed once from the spec.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Time of erasing a block, or the blocks that a superblock has on a die (tBERS).
    pub erase_ns: Span,
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
    /// The largest number of planes in one read; 1 without `timing.multi_plane`.
    planes: u32,
    /// The largest number of lanes in one program or erase; 1 without `timing.multi_plane`.
    lanes: u32,
    /// For LSB, CSB and MSB pages in turn: the costs of a first try, by level; then the costs of a try that follows a
    /// failed try, by level.
    reads: Box<[ReadCost]>,
    /// By row of a superblock, the index in `reads` of the first cost of its kind.
    rows: Box<[u16]>,
    levels: usize,
    by_superblock: Divisor,
    /// Bytes of a page.
    page_bytes: u64,
    /// Units of a programming unit.
    units_per_program: u32,
    /// Pages, or for an erase blocks, of an operation on one superblock, by [`FlashOp`].
    widths: [u32; 4],
    stripes: Stripes,
    /// tPROG by row of a superblock.
    program_ns: Box<[Span]>,
}

impl Timing {
    /// The times of validated `[timing]` and `[ecc]` sections.
    ///
    /// # Panics
    /// If neither a read level nor `[timing]` has a time.
    pub fn new(spec: &TimingSpec, ecc: &EccSpec, geometry: &Geometry) -> Self {
        let bytes = u64::from(geometry.page_bytes());
        let page_at = |rate: f64| transfer_ns(bytes, 1e9 / rate);
        let transfer_ns = transfer_ns(bytes, spec.channel_ns_per_byte);
        let levels = ecc.levels.len().max(1);
        let costs = |kind: PageKind| {
            let cost = |level: Option<&LevelSpec>| ReadCost {
                sense_ns: level.and_then(|level| level.sense).or(spec.read).expect("a tR").of(kind),
                transfer_ns: level.and_then(|level| level.transfer_ns).unwrap_or(transfer_ns),
                decode_ns: level.and_then(|level| level.decode_ns).or(spec.decode_ns).expect("a time"),
            };
            let mut first: Vec<ReadCost> = ecc.levels.iter().map(|level| cost(Some(level))).collect();
            if first.is_empty() {
                first.push(cost(None));
            }
            let mut again = first.clone();
            if ecc.retry == Retry::Incremental {
                // The controller keeps the result of the sensing at the lower level.
                for level in 1..levels {
                    again[level].sense_ns -= first[level - 1].sense_ns;
                    again[level].transfer_ns -= first[level - 1].transfer_ns;
                }
            }
            [first, again].concat()
        };
        let of_row = |row: u32| match geometry.kind_of_row(row) {
            PageKind::Slc | PageKind::Lsb => 0,
            PageKind::Csb => 2 * levels as u16,
            PageKind::Msb => 4 * levels as u16,
        };
        Self {
            erase_ns: spec.erase_ns,
            transfer_ns,
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
            planes: if spec.multi_plane { geometry.planes_per_die() } else { 1 },
            lanes: if spec.multi_plane { geometry.lanes_per_die } else { 1 },
            levels,
            by_superblock: Divisor::new(geometry.units_per_superblock),
            page_bytes: bytes,
            units_per_program: geometry.units_per_program,
            widths: [1, geometry.pages_per_program, geometry.planes_per_lane, geometry.pages_per_program],
            reads: [PageKind::Lsb, PageKind::Csb, PageKind::Msb].map(costs).concat().into(),
            stripes: geometry.stripes,
            rows: (0..geometry.rows_per_superblock()).map(of_row).collect(),
            program_ns: (0..geometry.rows_per_superblock())
                .map(|row| program_ns(spec, geometry, row))
                .collect(),
        }
    }

    /// Time to write a superblock of `units_per_superblock` units, one programming unit after another: transfers in and
    /// programs, without command cycles.
    pub fn superblock_write_ns(&self, units_per_superblock: u32) -> Span {
        let transfer_ns = u64::from(self.width(FlashOp::Program)) * self.transfer_ns;
        let programs = (0..units_per_superblock).step_by(self.units_per_program as usize);
        programs.map(|unit| transfer_ns + self.program_ns(unit)).sum()
    }

    /// Channel time of the program of one programming unit: command cycles, and the transfers of all its pages.
    pub fn program_transfer_ns(&self) -> Span {
        let pages = u64::from(self.width(FlashOp::Program));
        self.command_of_pages_ns(FlashOp::Program, pages) + pages * self.transfer_ns
    }

    /// The longest time that one operation occupies a channel. The candidates: the transfers out of a multi-plane read,
    /// at any read level; the command cycles of a multi-plane program with its transfers in; the command cycles of
    /// another operation.
    pub fn longest_transfer_ns(&self) -> Span {
        let (planes, lanes) = (u64::from(self.planes), u64::from(self.lanes));
        let reads = planes * self.reads.iter().map(|cost| cost.transfer_ns).max().unwrap_or_default();
        let programs = (1..=lanes)
            .map(|programs| programs * u64::from(self.width(FlashOp::Program)))
            .map(|pages| self.command_of_pages_ns(FlashOp::Program, pages) + pages * self.transfer_ns);
        let others = [FlashOp::Read, FlashOp::Erase, FlashOp::Copyback].map(|kind| {
            let pages = if kind == FlashOp::Copyback { self.width(kind).into() } else { planes };
            self.command_ns(kind).max(self.command_of_pages_ns(kind, pages))
        });
        programs.chain(others).chain([reads]).max().unwrap_or_default()
    }

    /// The longest time that a die waits for its channel and the off-chip path and then transfers. In the worst case every
    /// die of the channel first transfers a whole read at the last read level or a whole program, and so does every die of
    /// the drive on the off-chip path.
    pub fn longest_wait_ns(&self, geometry: &Geometry) -> Span {
        let dies_per_channel = u64::from(geometry.dies / geometry.channels);
        let (planes, lanes) = (u64::from(self.planes), u64::from(self.lanes));
        let program = lanes * u64::from(self.width(FlashOp::Program));
        let [out, into] = self.off_chip_ns;
        let off_chip_ns = (planes * out).max(program * into);
        dies_per_channel * self.longest_transfer_ns() + u64::from(geometry.dies) * off_chip_ns
    }

    /// The longest time of one try of a read on the die and in the decoder, without its transfers.
    pub fn longest_try_ns(&self) -> Span {
        let costs = self.kinds().flat_map(|kind| &self.reads[2 * kind * self.levels..][..2 * self.levels]);
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
        let levels = u64::from(self.levels as u32);
        // A policy may begin at any level, with a first try.
        let tries = |kind: usize| &self.reads[2 * kind * self.levels..][..self.levels];
        let on_channel: Span = tries(0).iter().map(|cost| cost.transfer_ns.max(self.off_chip_ns[0])).sum();
        let on_channel = on_channel + levels * self.command_ns(FlashOp::Read);
        let elsewhere = |kind| tries(kind).iter().map(|cost| cost.sense_ns + cost.decode_ns).sum::<Span>();
        let elsewhere = self.kinds().map(elsewhere).max().unwrap_or_default();
        [on_channel + elsewhere, on_channel]
    }

    /// Pages, or for an erase blocks, of an operation on one superblock.
    #[inline(always)]
    pub fn width(&self, kind: FlashOp) -> u32 {
        self.widths[kind as usize]
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

    /// The cost of a try at `level` for the page of unit `unit` of a superblock. `is_retry` states that the try follows
    /// a failed try at the level below. Only the time of sensing depends on the page.
    #[inline(always)]
    pub fn read(&self, unit: u32, level: u8, is_retry: bool) -> &ReadCost {
        let behind = if is_retry { self.levels } else { 0 };
        &self.reads[usize::from(self.rows[self.stripes.row(unit) as usize]) + usize::from(level) - 1 + behind]
    }

    /// Time of sensing the page of unit `unit` of a superblock into the page register (tR), at the first read level.
    #[inline(always)]
    pub fn read_ns(&self, unit: u32) -> Span {
        self.read(unit, 1, false).sense_ns
    }

    /// Time of sensing the page of `source`, which a copyback copies ([`Timing::read_ns`]).
    #[inline(always)]
    pub fn copied_ns(&self, source: UnitId) -> Span {
        self.read_ns(self.by_superblock.split(source.0).1)
    }

    /// The shortest tR of a page.
    pub fn shortest_read_ns(&self) -> Span {
        self.kinds().map(|kind| self.reads[2 * kind * self.levels].sense_ns).min().unwrap_or_default()
    }

    /// The page kinds of a superblock, as numbers from 0 for LSB.
    fn kinds(&self) -> impl Iterator<Item = usize> {
        // A wordline has at most three rows, which are the first ones of a superblock.
        self.rows.iter().take(3).map(|&row| usize::from(row) / (2 * self.levels))
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

    /// Time of the program (tPROG) of the page of unit `unit` of a superblock, or of the programming unit that begins
    /// with this unit.
    #[inline(always)]
    pub fn program_ns(&self, unit: u32) -> Span {
        self.program_ns[self.stripes.row(unit) as usize]
    }
}

fn program_ns(spec: &TimingSpec, geometry: &Geometry, row: u32) -> Span {
    match spec.program {
        ProgramTime::Uniform(ns) => ns,
        ProgramTime::ByKind(times) => times.of(geometry.kind_of_row(row)),
        ProgramTime::ByLayer { fastest_ns, slowest_ns } => {
            let top = u64::from(geometry.layers.max(2) - 1);
            fastest_ns + (slowest_ns - fastest_ns) * u64::from(geometry.layer_of_row(row)) / top
        }
    }
}
