//! The energy of an emergency flush (Eq. 3 to 5 of the aging-capacitor paper), and the number of units that an energy
//! can save. The flush packs dirty units into programming units, so this file counts programs. A program writes one
//! page or, with one-shot programs, several.

use super::Capacitor;
use super::FlushMethod;
use crate::base::geometry::{Cell, Geometry};
use crate::flash::ShapeId;
use crate::ftl::lsb_only_wordlines;
use crate::sched::{FlashOp, Timing, Way};

/// Energy of an emergency flush by its number of programs, in the worst case: every die is erasing its blocks of a
/// superblock when power fails, or has suspended an erase that has just begun, and only the free superblocks reserved
/// for the flush are left.
///
/// `plain` uses the pages of a superblock in order, so every die of every lane may begin at slow pages. `csw` uses the
/// reserved superblocks as `ftl/flush_programs.rs` does: on 3D cells the first program of all superblocks, then the
/// next program of all superblocks; on planar MLC and TLC LSB pages only, or LSB pages and whole wordlines by Eq. 6 and
/// 7. Dies whose erase ends early write more pages than the others, so `csw` uses slower pages on these dies; the
/// number of these pages is bounded by the time of an erase.
#[derive(Clone, Debug, Default)]
pub struct FlushCost {
    /// Energy that a flush takes beside that of its programs, in joules: for the wait for an operation under way, for a
    /// last round of programs on few dies, and for the programs of the VSM. With `csw` also for slower pages on dies
    /// that begin early. With GC also for slow pages at which the streams of GC begin, and for a cleaning that ends
    /// last.
    fixed_j: f64,
    /// Groups of programs in their order: number of programs, and joules per program, the share of GC included.
    groups: Box<[(f64, f64)]>,
    /// Joules per program beyond the programs of `groups`.
    beyond_j: f64,
    /// The plan of `csw` on planar MLC and TLC, in place of `groups`.
    plan: Option<LsbFirst>,
    /// Units that a program writes.
    units_per_program: u32,
    /// Programs that may be part-filled beside the last one: those of the other placements.
    part_filled: u32,
}

/// In superblocks with more programs than this on a die, `plain` counts the slowest of these programs first, whatever
/// their order in the superblock.
const WINDOW_MAX: usize = 2048;

/// The conditions of a flush in the worst case.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// How dirty units are written.
    pub method: FlushMethod,
    /// Programs under way at a time.
    pub at_a_time: u32,
    /// Free superblocks of each lane that are reserved for the flush; 0 counts as 1.
    pub superblocks: u32,
    /// Placement handles. On each die the flush may leave a superblock of each handle part-filled.
    pub handles: u32,
    /// Reclaim groups. All dirty units may be of one of them, whose dies then write alone.
    pub groups: u32,
    /// Programs that write a full VSM, after the dirty units.
    pub vsm_programs: u32,
    /// GC during a plain flush; `None`: GC stops.
    pub gc: Option<GcCost>,
}

/// GC during a plain flush (`power.gc_in_flush`), in the worst case: GC cleans a superblock of a lane before the first
/// unit that the flush writes to the lane, and then whenever the flush has written the units that the last cleaning has
/// gained. Every cleaning gains as few units as GC accepts, and every read needs all read levels.
///
/// The spec check accepts GC in the flush only where units are pages, a superblock is one block, and a program writes
/// one page. So every unit that the flush writes is a program, and one superblock of each lane is cleaned at a time.
#[derive(Clone, Copy, Debug)]
pub struct GcCost {
    /// Energy of a try of a read, in joules.
    pub read_j: f64,
    /// Energy of an erase, in joules.
    pub erase_j: f64,
    /// Read levels of the drive, at least 1.
    pub levels: u8,
    /// Units that a cleaning gains, the fewest that GC accepts: at least 1.
    pub gain: u32,
}

/// What the cleaning of a superblock takes.
#[derive(Clone, Copy, Debug, Default)]
struct Victim {
    /// Time on the die, with the transfers, in nanoseconds.
    die_ns: f64,
    /// Time on the channel, in nanoseconds.
    channel_ns: f64,
    /// Time on the off-chip path, in nanoseconds.
    off_chip_ns: f64,
    /// Program times of the copies, in nanoseconds.
    program_ns: f64,
    /// Energy of reads and the erase, in joules.
    joules: f64,
}

impl Victim {
    fn new(gc: &GcCost, timing: &Timing, program_ns: f64) -> Self {
        let shape = timing.shapes().first();
        let copies = f64::from(shape.units - gc.gain);
        let [read_ns, read_on_channel_ns] = timing.longest_read_ns().map(|span| span.ns() as f64);
        let [out, into] = timing.off_chip_ns;
        let transfer_ns = (timing.command_ns(FlashOp::Program) + timing.transfer_ns.max(into)).ns() as f64;
        Self {
            die_ns: copies * (read_ns + transfer_ns + program_ns)
                + (timing.command_ns(FlashOp::Erase) + shape.erase_ns).ns() as f64,
            channel_ns: copies * (read_on_channel_ns + transfer_ns),
            off_chip_ns: copies * (out + into).ns() as f64,
            program_ns: copies * program_ns,
            joules: copies * f64::from(gc.levels) * gc.read_j + gc.erase_j,
        }
    }
}

impl FlushCost {
    /// The cost of a flush under `conditions`.
    pub fn new(capacitor: &Capacitor, geometry: &Geometry, timing: &Timing, conditions: &Conditions) -> Self {
        let &Conditions { method, at_a_time, superblocks, handles, groups, vsm_programs, gc } = conditions;
        let (at_a_time, dies) = (at_a_time.min(geometry.dies / groups), geometry.dies / groups);
        let channels = (geometry.channels / groups).max(1);
        let part_filled = handles * groups - 1;
        let shape = timing.shapes().first();
        // The first unit of each program of a superblock.
        let firsts = shape.programs();
        let times: Vec<f64> = firsts.clone().map(|first| shape.program_ns(first).ns() as f64).collect();
        // The programs of a superblock on one die. Those on its other dies have the same times.
        let on_die = |first: u32| geometry.stripes.split(first).0 == 0;
        let on_die = firsts.zip(&times).filter(|&(first, _)| on_die(first)).map(|(_, &time)| time);
        let on_die: Vec<f64> = on_die.collect();
        let slowest = times.iter().copied().fold(0.0, f64::max);
        let fastest = times.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let pages = u64::from(timing.width(ShapeId::FIRST, FlashOp::Program));
        let off_chip_ns = pages * timing.off_chip_ns[Way::In as usize];
        let command_ns = timing.command_of_pages_ns(FlashOp::Program, pages);
        let transfer_ns = command_ns + (pages * timing.transfer_ns).max(off_chip_ns);
        let (transfer_ns, off_chip_ns) = (transfer_ns.ns() as f64, off_chip_ns.ns() as f64);
        let victim = gc.map_or(Victim::default(), |gc| Victim::new(&gc, timing, mean));
        // Energy of a program of the flush, before each of which GC cleans the share `victims` of a superblock.
        let program_with_gc_j = |program_ns: f64, victims: f64| {
            // The transfers on the channels and on the off-chip path bound the rate.
            let interval_ns = ((program_ns + transfer_ns + victims * victim.die_ns) / f64::from(at_a_time))
                .max((transfer_ns + victims * victim.channel_ns) / f64::from(channels))
                .max(off_chip_ns + victims * victim.off_chip_ns);
            capacitor.spent_j(interval_ns, program_ns + victims * victim.program_ns) + victims * victim.joules
        };
        let program_j = |program_ns: f64| program_with_gc_j(program_ns, 0.0);
        let erase_ns = shape.erase_ns.ns() as f64;
        // Superblocks that the handles fill. Where each handle writes its share of them layer by layer, the share is rounded
        // down, so a handle goes at most twice as deep into its superblocks.
        let in_sets = matches!(shape.cell, Cell::Mlc3d | Cell::Tlc3d) && handles > 1;
        let filled = superblocks.saturating_sub(handles - 1);
        let superblocks = (if in_sets { filled / 2 } else { filled }).max(1);
        let all = f64::from(superblocks * (geometry.lanes / groups));
        // Programs of dies beyond their share while another die still erases a superblock.
        let ahead = f64::from(geometry.dies - 1) * (erase_ns / fastest).ceil();
        let ahead_j = ahead * (program_j(slowest) - program_j(fastest));
        let (groups, beyond_j, plan, more_j): (Vec<_>, _, _, _) = match (method, shape.cell) {
            (FlushMethod::Plain, _) => {
                // Each die of a lane writes a run of its own for each handle, in a superblock on several dies too.
                let runs = f64::from(geometry.lanes * geometry.dies_per_lane * handles);
                let mut slow = slowest_first(on_die, mean);
                let excess_ns = slow.iter().map(|time| time - mean).sum::<f64>() * runs;
                // The streams of GC may begin at slow pages, too; and one cleaning may end last.
                let more_j = gc.map_or(0.0, |_| {
                    let late_ns = excess_ns / f64::from(at_a_time) + victim.die_ns;
                    capacitor.spent_j(late_ns, excess_ns)
                });
                if gc.is_some() && slow.is_empty() {
                    slow.push(mean);
                }
                // Superblocks that GC cleans before the nth program of each run.
                let share =
                    |nth: usize| gc.map_or(0.0, |gc| if nth == 0 { 1.0 } else { 1.0 / f64::from(gc.gain) });
                let groups = slow.into_iter().enumerate();
                let groups = groups.map(|(nth, time)| (runs, program_with_gc_j(time, share(nth)))).collect();
                (groups, program_with_gc_j(mean, share(1)), None, more_j)
            }
            (FlushMethod::Csw, Cell::Mlc | Cell::Tlc) if shape.dependent_pages() > 1 => {
                let rows_per_wordline = shape.dependent_pages() as usize;
                let per_row = shape.programs_per_row();
                // The pages of a wordline that a superblock does not have cost nothing.
                let dearest = |kind: usize| {
                    let rows = on_die.chunks(per_row as usize).skip(kind).step_by(rows_per_wordline);
                    rows.flatten().copied().reduce(f64::max).map_or(0.0, program_j)
                };
                let plan = LsbFirst {
                    dies: dies.into(),
                    superblocks: (superblocks * geometry.lanes_per_die).into(),
                    programs_on_die: on_die.len() as u64,
                    per_row: per_row.into(),
                    by_kind_j: (0..rows_per_wordline).map(dearest).collect(),
                };
                (Vec::new(), program_j(slowest), Some(plan), ahead_j)
            }
            (FlushMethod::Csw, _) => {
                let groups = times.into_iter().map(|time| (all, program_j(time))).collect();
                (groups, program_j(slowest), None, ahead_j)
            }
        };
        let channel_ns = timing.longest_wait_ns();
        let resumption_ns = timing.longest_resumption_ns(channel_ns).ns() as f64;
        let wait_ns = erase_ns + resumption_ns + slowest + channel_ns.ns() as f64;
        Self {
            fixed_j: capacitor.spent_j(wait_ns, 0.0) + f64::from(vsm_programs) * program_j(slowest) + more_j,
            groups: groups.into(),
            beyond_j,
            plan,
            units_per_program: shape.units_per_program,
            part_filled,
        }
    }

    /// The number of units that `energy_j` joules can save: those of whole programs, less a program for each placement
    /// beyond the first, which may be part-filled. If a program writes one unit, the
    /// number has a fraction, the part of the next program that the energy covers.
    pub fn units(&self, energy_j: f64) -> f64 {
        match self.units_per_program {
            1 => self.programs(energy_j),
            units => {
                let filled = self.programs(energy_j) - f64::from(self.part_filled);
                libm::floor(filled.max(0.0)) * f64::from(units)
            }
        }
    }

    /// The number of programs for which `energy_j` joules suffice; the fraction is a part of the next program.
    fn programs(&self, energy_j: f64) -> f64 {
        let (mut programs, mut left_j) = (0.0, energy_j - self.fixed_j);
        if left_j <= 0.0 || self.beyond_j <= 0.0 {
            return 0.0;
        }
        if let Some(plan) = &self.plan {
            let whole = plan.programs(left_j);
            if whole < plan.room() {
                let (less_j, more_j) = (plan.cost_j(whole), plan.cost_j(whole + 1));
                return whole as f64 + (left_j - less_j) / (more_j - less_j);
            }
            (programs, left_j) = (whole as f64, left_j - plan.cost_j(whole));
        }
        for &(count, program_j) in &self.groups {
            if left_j < count * program_j {
                return programs + left_j / program_j;
            }
            programs += count;
            left_j -= count * program_j;
        }
        programs + left_j / self.beyond_j
    }
}

/// The programs of `csw` on planar MLC or TLC: LSB pages only, or LSB pages and whole wordlines by Eq. 6 and 7.
#[derive(Clone, Debug)]
struct LsbFirst {
    /// Dies of the drive.
    dies: u64,
    /// Reserved superblocks that have blocks on a die.
    superblocks: u64,
    /// Programs of a superblock on a die.
    programs_on_die: u64,
    /// Programs of a row of a superblock on a die.
    per_row: u64,
    /// Joules of a program, by the position of its page in the wordline: LSB, (CSB,) MSB. A wordline has as many rows.
    by_kind_j: Box<[f64]>,
}

impl LsbFirst {
    /// The number of programs of all reserved superblocks on all dies.
    fn room(&self) -> u64 {
        self.dies * self.superblocks * self.programs_on_die
    }

    /// Energy of a flush of `programs` programs, at most [`LsbFirst::room`], which are spread evenly over the dies.
    fn cost_j(&self, programs: u64) -> f64 {
        // `more` dies write `each` + 1 programs, the others `each`.
        let (each, more) = (programs / self.dies, programs % self.dies);
        // By Eq. 6: of each superblock on each die.
        let required = programs.div_ceil(self.dies * self.superblocks);
        let mut lsb = programs;
        let mut joules = 0.0;
        for kind in 1..self.by_kind_j.len() {
            let count = (self.dies - more) * self.count(kind as u64, each, required)
                + more * self.count(kind as u64, each + 1, required);
            lsb -= count;
            joules += count as f64 * self.by_kind_j[kind];
        }
        lsb as f64 * self.by_kind_j[0] + joules
    }

    /// The programs at position `kind` of their wordline, from 1, among `programs` programs of a die, if the flush
    /// requires `required` programs of each superblock on each die.
    fn count(&self, kind: u64, programs: u64, required: u64) -> u64 {
        let (rows_per_wordline, per_row) = (self.by_kind_j.len() as u64, self.per_row);
        let (rows, required_rows) = (self.programs_on_die / per_row, required.div_ceil(per_row));
        if required_rows <= rows / rows_per_wordline {
            return 0;
        }
        // The flush uses the LSB row of each of the first `lsb_only` wordlines, then all rows of the other wordlines.
        let lsb_only = lsb_only_wordlines(rows, rows_per_wordline, required_rows);
        let of_superblock = |programs: u64| {
            let behind = programs.saturating_sub(lsb_only * per_row);
            let (wordlines, rest) =
                (behind / (rows_per_wordline * per_row), behind % (rows_per_wordline * per_row));
            wordlines * per_row + rest.saturating_sub(kind * per_row).min(per_row)
        };
        let used = (rows - (rows_per_wordline - 1) * lsb_only) * per_row;
        programs / used * of_superblock(used) + of_superblock(programs % used)
    }

    /// The largest number of programs, at most [`LsbFirst::room`], that take at most `energy_j` joules.
    fn programs(&self, energy_j: f64) -> u64 {
        let (mut low, mut high) = (0, self.room());
        while low < high {
            let middle = (low + high).div_ceil(2);
            if self.cost_j(middle) <= energy_j {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }
}

/// The program times of `plain` in the worst case, slowest first, until the mean is reached. `times` are those of the
/// programs of a superblock on a die, in order.
///
/// Each die of a lane writes a run: consecutive programs, which may begin at any program of a superblock and continue
/// in the next superblock. The sum of the first n returned times is at least that of the slowest run of n programs. The
/// returned times do not rise, so this also bounds runs of unequal lengths: their sum is at most that of as many runs
/// of equal lengths.
fn slowest_first(times: Vec<f64>, mean: f64) -> Vec<f64> {
    let len = times.len();
    let mut excess = vec![0.0; len];
    if len > WINDOW_MAX {
        let mut slowest = times;
        slowest.sort_by(|a, b| b.total_cmp(a));
        slowest.retain(|&time| time > mean);
        return slowest;
    }
    let mut sums = vec![0.0; 2 * len + 1];
    for program in 0..2 * len {
        sums[program + 1] = sums[program] + times[program % len];
    }
    // By the number n of programs, the time by which the slowest run of n programs exceeds n times the mean.
    for programs in 1..len {
        let slowest = (0..len).map(|from| sums[from + programs] - sums[from]).fold(0.0, f64::max);
        excess[programs] = slowest - programs as f64 * mean;
    }
    // The least concave function above these points up to the highest one. Each group has its number of programs and
    // its mean time.
    let most = (0..len).rev().max_by(|&a, &b| excess[a].total_cmp(&excess[b])).unwrap_or(0);
    let mut groups: Vec<(usize, f64)> = Vec::new();
    for programs in 1..=most {
        let (mut count, mut time) = (1, excess[programs] - excess[programs - 1] + mean);
        while let Some((before, of_before)) = groups.pop_if(|&mut (_, of_before)| of_before <= time) {
            time = (time * count as f64 + of_before * before as f64) / (count + before) as f64;
            count += before;
        }
        groups.push((count, time));
    }
    groups.into_iter().flat_map(|(count, time)| std::iter::repeat_n(time, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_plain_bound_the_slowest_runs_and_end_at_the_mean() {
        // The slowest runs of 1 to 4 programs take 2, 3, 5 and 6: 0.5 above the mean at most.
        assert_eq!(slowest_first(vec![1.0, 2.0, 1.0, 2.0], 1.5), [2.0]);
        // The slowest runs of 1 to 3 programs take 3, 5 and 6.
        assert_eq!(slowest_first(vec![1.0, 2.0, 3.0], 2.0), [3.0]);
        // The slowest runs of 1 to 4 programs take 4, 8 (the last program of a superblock and the first of the next), 9
        // and 10.
        assert_eq!(slowest_first(vec![4.0, 1.0, 1.0, 4.0], 2.5), [4.0, 4.0]);
        assert_eq!(slowest_first(vec![2.0; 3], 2.0), [0.0; 0]);
    }

    #[test]
    fn lsb_first_counts_the_msb_pages_of_equations_6_and_7() {
        let by_kind_j = [1.0, 100.0].into();
        let plan = LsbFirst { dies: 1, superblocks: 7, programs_on_die: 8, per_row: 1, by_kind_j };
        // 40 programs require six programs of each superblock: six superblocks with 4 LSB and 2 MSB pages, and a
        // seventh with 3 LSB pages and 1 MSB page.
        let cost_j = [28, 29, 40, 56].map(|programs| plan.cost_j(programs));
        assert_eq!(cost_j, [28.0, 523.0 + 1.0, 1327.0, 2828.0]);
        assert_eq!([0.5, 28.0, 60.0, 1327.0, 1e9].map(|energy| plan.programs(energy)), [0, 28, 28, 40, 56]);
    }

    /// The same counts as a walk over the programs of the superblocks, one superblock after another, with each
    /// superblock's programs in order.
    #[test]
    fn lsb_first_counts_the_programs_of_tlc_as_a_walk_over_the_superblocks_does() {
        for (rows, per_row) in
            [3, 4, 5, 8, 12, 13].into_iter().flat_map(|rows| [(rows, 1), (rows, 2), (rows, 3)])
        {
            let by_kind_j = [1.0, 100.0, 1e4].into();
            let plan =
                LsbFirst { dies: 2, superblocks: 3, programs_on_die: rows * per_row, per_row, by_kind_j };
            for programs in 0..=plan.room() {
                let required = programs.div_ceil(6).div_ceil(per_row);
                let is_lsb_enough = required <= rows / 3;
                // Each LSB-only wordline gives up two rows; as many as leave `required` rows on a die.
                let lsb_only = (0..=rows.div_ceil(3))
                    .rev()
                    .find(|only| is_lsb_enough || rows >= required + 2 * only)
                    .expect("with none the superblock has all rows");
                let is_used = |row: &u64| row.is_multiple_of(3) || row / 3 >= lsb_only;
                let superblock: Vec<u64> = (0..rows)
                    .filter(is_used)
                    .flat_map(|used| std::iter::repeat_n(used, per_row as usize))
                    .collect();
                let walk = |count: u64| -> f64 {
                    let programs = superblock.iter().cycle().take(count as usize);
                    programs.map(|row| plan.by_kind_j[(row % 3) as usize]).sum()
                };
                let expected = walk(programs / 2) + walk(programs.div_ceil(2));
                let what = format!("{programs} of superblocks of {rows} rows of {per_row} programs");
                assert_eq!(plan.cost_j(programs), expected, "{what}");
            }
        }
    }
}
