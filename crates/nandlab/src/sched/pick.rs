//! The order between a die's queues.

use super::transaction::Class;
use crate::spec::Scheduler;

/// What a scheduler may look at when a die is free.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Submission order of the first transaction of each class; `None` where nothing waits.
    pub first: [Option<u64>; 3],
    /// Space is running out on this die: background work is what makes room.
    pub promoted: bool,
}

/// Chooses the class that is served next; `None` when nothing waits.
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
            // Host writes that have a place cost no more space, so promoted work need not go before all of them: it
            // takes turns with them by age, which keeps it from starving and them from waiting for a whole victim.
            let is_older = background.is_some_and(|b| write.is_none_or(|w| b < w));
            if read.is_none() && waiting.promoted && is_older {
                return Some(Background);
            }
            ALL.into_iter().find(|&class| waiting.first[class as usize].is_some())
        }
    }
}
