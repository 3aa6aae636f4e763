//! `timing.scheduler`: the order between the queues of a die.

use super::transaction::Class;

/// `timing.scheduler`: the order between the three queues of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Strictly in order of arrival.
    Fcfs,
    /// Host reads, then host writes, then background work; while background work is urgent, the older of background
    /// work and host writes.
    ReadFirst,
}

/// The unit of shares: a share of `SHARES` is every program of a die.
pub const SHARES: u16 = 1024;

/// Pages by which one side can be ahead of its share: a side that had nothing waiting makes up for at most this many
/// pages.
const AHEAD_PAGES: i32 = 8;

/// What a scheduler knows when a die is free.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Submission order of the first transaction of each class; `None` where nothing waits.
    pub first: [Option<u64>; 3],
    /// Whether background work is urgent on this die, because a plane of the die is short of free blocks.
    pub promoted: bool,
}

impl Waiting {
    /// A cleaning that began at `order` has the die: host transactions with a lower order go first, then background
    /// work alone.
    pub(super) fn leave_to_cleaning(&mut self, order: u64) {
        let came_before = self.first.map(|first| first.filter(|&came| came < order));
        let [read, write, _] = came_before;
        self.first = match (read, write) {
            (None, None) => [None, None, self.first[Class::Background as usize]],
            _ => came_before,
        };
    }

    /// Whether both host writes and urgent background work wait.
    #[inline(always)]
    fn is_contended(&self) -> bool {
        let [_, write, background] = self.first;
        self.promoted && write.is_some() && background.is_some()
    }
}

/// The turns that host writes and urgent background work take on a die: each side has its share of the pages that are
/// programmed while both wait. Reads and erases of background work do not wait for a turn: they are few, and the
/// programs of background work depend on them, as does free space.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns {
    /// The share of background work; `None`: no turns are taken.
    share: Option<u16>,
    /// Pages that background work is behind its share, in [`SHARES`]ths.
    behind: i32,
}

impl Turns {
    pub(super) fn set(&mut self, share: Option<u16>) {
        if share.is_none() {
            self.behind = 0;
        }
        self.share = share;
    }

    /// Whether turns decide instead of `class`, which the scheduler has picked: host reads go first in any case.
    #[inline(always)]
    pub(super) fn are_taken(&self, waiting: &Waiting, class: Class) -> bool {
        self.share.is_some() && class != Class::HostRead && waiting.is_contended()
    }

    /// The class whose turn it is; `is_program` says whether the next operation of background work is a program.
    pub(super) fn next(&self, is_program: bool) -> Class {
        if self.behind >= 0 || !is_program { Class::Background } else { Class::HostWrite }
    }

    /// `pages` pages are programmed for `class`, whose turn it is.
    pub(super) fn on_program(&mut self, class: Class, pages: u32) {
        let Some(share) = self.share else { return };
        let (pages, share, whole) = (pages as i32, i32::from(share), i32::from(SHARES));
        let credit = if class == Class::Background { pages * (share - whole) } else { pages * share };
        self.behind = (self.behind + credit).clamp(-AHEAD_PAGES * whole, AHEAD_PAGES * whole);
    }
}

/// The class that is served next; `None` when nothing waits.
#[inline]
pub fn pick(scheduler: Scheduler, waiting: &Waiting) -> Option<Class> {
    use Class::{Background, HostRead, HostWrite};
    const ALL: [Class; 3] = [HostRead, HostWrite, Background];
    match scheduler {
        Scheduler::Fcfs => ALL
            .into_iter()
            .filter_map(|class| waiting.first[class as usize].map(|order| (order, class)))
            .min_by_key(|&(order, _)| order)
            .map(|(_, class)| class),
        Scheduler::ReadFirst => {
            let [read, write, background] = waiting.first;
            // Admitted host writes have their pages already and take no more space, so urgent work need not go before
            // all of them: by age neither side starves, and host writes do not wait for the copies of a whole victim.
            let is_older = background.is_some_and(|b| write.is_none_or(|w| b < w));
            if read.is_none() && waiting.promoted && is_older {
                return Some(Background);
            }
            ALL.into_iter().find(|&class| waiting.first[class as usize].is_some())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of background work and of the host after `batches` batches of `pages` pages while both sides wait.
    fn programs(turns: &mut Turns, batches: u32, pages: u32) -> [u32; 2] {
        let mut done = [0, 0];
        for _ in 0..batches {
            let class = turns.next(true);
            turns.on_program(class, pages);
            done[usize::from(class == Class::HostWrite)] += pages;
        }
        done
    }

    #[test]
    fn each_side_has_its_share_of_the_pages() {
        for (share, pages) in [(1, 1), (307, 1), (512, 1), (614, 4), (960, 2)] {
            let mut turns = Turns::default();
            turns.set(Some(share));
            let [background, host] = programs(&mut turns, 10_240, pages);
            let fair = (background + host) * u32::from(share) / 1024;
            assert!(background.abs_diff(fair) <= pages, "{background} of {} at {share}", background + host);
        }
    }

    #[test]
    fn the_lead_of_one_side_is_bounded() {
        let mut turns = Turns::default();
        turns.set(Some(512));
        // Background work has nothing to program for a long time, then makes up for eight pages of its half.
        for _ in 0..1000 {
            turns.on_program(Class::HostWrite, 1);
        }
        assert_eq!(programs(&mut turns, 16, 1), [16, 0]);
        assert_eq!(programs(&mut turns, 1000, 1), [500, 500]);
    }

    #[test]
    fn turns_are_taken_only_by_urgent_programs_and_host_writes() {
        let mut turns = Turns::default();
        let both = [None, Some(1), Some(2)];
        let are_taken =
            |turns: &Turns, first, promoted, class| turns.are_taken(&Waiting { first, promoted }, class);
        assert!(!are_taken(&turns, both, true, Class::HostWrite), "there are no shares");
        turns.set(Some(512));
        assert!(are_taken(&turns, both, true, Class::HostWrite));
        assert!(are_taken(&turns, both, true, Class::Background));
        assert!(!are_taken(&turns, both, false, Class::HostWrite));
        assert!(!are_taken(&turns, [Some(9), Some(1), Some(2)], true, Class::HostRead));
        assert!(!are_taken(&turns, [None, Some(1), None], true, Class::HostWrite));
        assert!(!are_taken(&turns, [None, None, Some(2)], true, Class::Background));
        turns.on_program(Class::Background, 1);
        assert_eq!(turns.next(true), Class::HostWrite);
        // A read or an erase of background work does not wait for a turn.
        assert_eq!(turns.next(false), Class::Background);
    }
}
