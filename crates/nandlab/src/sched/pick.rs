//! `timing.scheduler`: the queue from which a die takes its next transaction.

use super::transaction::Class;
use crate::base::state::value;

/// `timing.scheduler`: the choice among the queues of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// The transaction that was submitted first.
    Fcfs,
    /// Host reads, then host writes, then background work. While background work is urgent, host reads, then the older
    /// of host writes and background work. Refresh may precede host writes or all host operations
    /// (`refresh.priority`).
    ReadFirst,
}

/// The denominator of shares: a share of `SHARES` is all programs of a die.
pub const SHARES: u16 = 1024;

/// The largest number of programs by which one side can be ahead of its share. So a side that had nothing to program
/// for a while later catches up by at most this number of programs.
const AHEAD_MAX: i32 = 8;

/// The state of a free die's queues, from which a scheduler picks.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Submission number of the first transaction of each class; `None` for a class without waiting transactions.
    pub first: [Option<u64>; Class::ALL.len()],
    /// Whether background work is urgent in at least one lane of this die.
    pub promoted: bool,
}

impl Waiting {
    /// Leaves the die to a cleaning that began at submission number `order`: as long as host transactions with a lower
    /// number wait, only transactions with a lower number are picked, then only background work and refresh.
    pub(super) fn leave_to_cleaning(&mut self, order: u64) {
        let came_before = self.first.map(|first| first.filter(|&number| number < order));
        let [_, read, _, write, _] = came_before;
        let [first, _, before_writes, _, background] = self.first;
        self.first = match (read, write) {
            (None, None) => [first, None, before_writes, None, background],
            _ => came_before,
        };
    }

    /// Leaves out host reads. Returns whether one waits.
    pub(super) fn leave_out_host_reads(&mut self) -> bool {
        self.first[Class::HostRead as usize].take().is_some()
    }

    /// Leaves the die to host reads.
    pub(super) fn leave_to_host_reads(&mut self) {
        let [_, read, ..] = self.first;
        self.first = [None, read, None, None, None];
    }

    /// Whether both host writes and urgent background work wait.
    #[inline(always)]
    fn is_contended(&self) -> bool {
        let [_, _, _, write, background] = self.first;
        self.promoted && write.is_some() && background.is_some()
    }
}

/// Divides the programs of a die between host writes and urgent background work, in turns. Each side has its share of
/// the programs that start while both wait. Reads and erases of background work do not wait for a turn: they are
/// few, and the programs of background work and the free space depend on them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns {
    /// The share of background work; `None` if the programs are not divided.
    share: Option<u16>,
    /// Programs by which background work is behind its share, in [`SHARES`]ths of a program; negative if it is ahead.
    behind: i32,
}

impl Turns {
    /// Sets the share. When the programs begin to be divided, the turn of host writes on die `number` of `dies` is
    /// `number / dies` of a round later than on die 0.
    pub(super) fn set(&mut self, share: Option<u16>, number: u32, dies: u32) {
        match share {
            None => self.behind = 0,
            // A program of the host takes background work back by its share.
            Some(share) if self.share.is_none() => self.behind = (u32::from(share) * number / dies) as i32,
            Some(_) => {}
        }
        self.share = share;
    }

    /// Whether [`Turns::next`] replaces `class`, which the scheduler has picked. Only host writes and background work
    /// take turns.
    #[inline(always)]
    pub(super) fn are_taken(&self, waiting: &Waiting, class: Class) -> bool {
        self.share.is_some()
            && matches!(class, Class::HostWrite | Class::Background)
            && waiting.is_contended()
    }

    /// The class whose turn it is; `is_program` states whether the next operation of background work is a program.
    pub(super) fn next(&self, is_program: bool) -> Class {
        if self.behind >= 0 || !is_program { Class::Background } else { Class::HostWrite }
    }

    /// Counts `programs` programs that are started in the turn of `class`, as one multi-plane operation if several.
    pub(super) fn on_program(&mut self, class: Class, programs: u32) {
        let Some(share) = self.share else { return };
        let (programs, share, whole) = (programs as i32, i32::from(share), i32::from(SHARES));
        let credit = if class == Class::Background { programs * (share - whole) } else { programs * share };
        self.behind = (self.behind + credit).clamp(-AHEAD_MAX * whole, AHEAD_MAX * whole);
    }
}

/// The class from which the next transaction is taken; `None` if no transaction waits.
#[inline]
pub fn pick(scheduler: Scheduler, waiting: &Waiting) -> Option<Class> {
    match scheduler {
        Scheduler::Fcfs => Class::ALL
            .into_iter()
            .filter_map(|class| waiting.first[class as usize].map(|order| (order, class)))
            .min_by_key(|&(order, _)| order)
            .map(|(_, class)| class),
        Scheduler::ReadFirst => {
            let [first, read, before_writes, write, background] = waiting.first;
            // Waiting host writes have their units already and take no more space, so urgent work need not precede all
            // of them. In the order of age neither side starves, and host writes do not wait for the copies of a whole
            // victim.
            let is_older = background.is_some_and(|b| write.is_none_or(|w| b < w));
            let none_before = first.is_none() && read.is_none() && before_writes.is_none();
            if none_before && waiting.promoted && is_older {
                return Some(Class::Background);
            }
            Class::ALL.into_iter().find(|&class| waiting.first[class as usize].is_some())
        }
    }
}

value! { Turns { share, behind } }

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs of background work and of the host in `batches` batches of `each` programs, while both sides wait.
    fn programs(turns: &mut Turns, batches: u32, each: u32) -> [u32; 2] {
        let mut programmed = [0, 0];
        for _ in 0..batches {
            let class = turns.next(true);
            turns.on_program(class, each);
            programmed[usize::from(class == Class::HostWrite)] += each;
        }
        programmed
    }

    #[test]
    fn each_side_has_its_share_of_the_programs() {
        for (share, each) in [(1, 1), (307, 1), (512, 1), (614, 4), (960, 2)] {
            let mut turns = Turns::default();
            turns.set(Some(share), 0, 1);
            let [background, host] = programs(&mut turns, 10_240, each);
            let fair = (background + host) * u32::from(share) / 1024;
            assert!(
                background.abs_diff(fair) <= each,
                "{background} of {} programs at a share of {share}",
                background + host
            );
        }
    }

    #[test]
    fn the_turns_of_several_dies_are_spread_evenly() {
        // At a share of 15 / 16 the host has one program of 16: on four dies each four programs after the die before.
        let first_of_host = |number| {
            let mut turns = Turns::default();
            turns.set(Some(960), number, 4);
            (1..).find(|_| programs(&mut turns, 1, 1) == [0, 1]).expect("the host has a turn")
        };
        assert_eq!([0, 1, 2, 3].map(first_of_host), [2, 5, 9, 13]);
        // The spread remains: the turns are not set back when the share changes.
        let mut turns = Turns::default();
        turns.set(Some(960), 3, 4);
        assert_eq!(programs(&mut turns, 4, 1), [4, 0]);
        turns.set(Some(961), 3, 4);
        assert_eq!(programs(&mut turns, 8, 1), [8, 0]);
        assert_eq!(programs(&mut turns, 4, 1)[1], 1);
    }

    #[test]
    fn one_side_catches_up_by_a_bounded_number_of_programs() {
        let mut turns = Turns::default();
        turns.set(Some(512), 0, 1);
        // Background work has nothing to program for a long time; then it is 8 programs behind, the most allowed. At a
        // share of a half each of its programs makes up for half a program, so 16 programs follow each other.
        for _ in 0..1000 {
            turns.on_program(Class::HostWrite, 1);
        }
        assert_eq!(programs(&mut turns, 16, 1), [16, 0]);
        assert_eq!(programs(&mut turns, 1000, 1), [500, 500]);
    }

    #[test]
    fn turns_apply_only_while_host_writes_and_urgent_programs_wait() {
        let mut turns = Turns::default();
        let both = [None, None, None, Some(1), Some(2)];
        let are_taken =
            |turns: &Turns, first, promoted, class| turns.are_taken(&Waiting { first, promoted }, class);
        assert!(!are_taken(&turns, both, true, Class::HostWrite), "turns apply although no share is set");
        turns.set(Some(512), 0, 1);
        assert!(are_taken(&turns, both, true, Class::HostWrite));
        assert!(are_taken(&turns, both, true, Class::Background));
        assert!(!are_taken(&turns, both, false, Class::HostWrite));
        assert!(!are_taken(&turns, [None, Some(9), None, Some(1), Some(2)], true, Class::HostRead));
        assert!(!are_taken(&turns, [None, None, None, Some(1), None], true, Class::HostWrite));
        assert!(!are_taken(&turns, [None, None, None, None, Some(2)], true, Class::Background));
        turns.on_program(Class::Background, 1);
        assert_eq!(turns.next(true), Class::HostWrite);
        // A read or an erase of background work does not wait for a turn.
        assert_eq!(turns.next(false), Class::Background);
    }
}
