//! The way of snapshots from the thread of the drive to a window: two bounded queues, one of snapshots that are filled and
//! one of those that may be filled again. The thread of the drive never waits for a window. When the window has not given
//! a snapshot back, no snapshot is taken, and the next one has what has happened meanwhile.

use super::clock::SECOND;
use crate::snapshot::Snapshot;
use nandlab_base::base::units::{Span, Time};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// The number of snapshots under way.
const SNAPSHOTS: usize = 3;
/// The time from a snapshot to the next.
const EVERY: Span = Span::from_ns(SECOND);

/// The end of the drive.
#[derive(Debug)]
pub struct Publisher {
    filled: SyncSender<Box<Snapshot>>,
    empty: Receiver<Box<Snapshot>>,
    next: Time,
}

/// The end of the window.
#[derive(Debug)]
pub struct Window {
    /// Snapshots, in order of time. The channel is closed when the server has ended.
    pub filled: Receiver<Box<Snapshot>>,
    /// Takes snapshots that the window needs no more.
    pub empty: SyncSender<Box<Snapshot>>,
}

/// Two ends.
pub fn window() -> (Publisher, Window) {
    let (filled, taken) = sync_channel(SNAPSHOTS);
    let (returned, empty) = sync_channel(SNAPSHOTS);
    for _ in 0..SNAPSHOTS {
        // There is room for all of them.
        let _ = returned.try_send(Box::default());
    }
    (Publisher { filled, empty, next: Time::START }, Window { filled: taken, empty: returned })
}

impl Publisher {
    /// When the next snapshot is due.
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// A snapshot to be filled, if one is due and there is one.
    pub(super) fn begin(&mut self, now: Time) -> Option<Box<Snapshot>> {
        if now < self.next {
            return None;
        }
        self.next = now.saturating_add(EVERY);
        self.empty.try_recv().ok()
    }

    /// Gives a snapshot to the window.
    pub(super) fn give(&self, snapshot: Box<Snapshot>) {
        // There is room for every snapshot; without a window nobody needs it.
        let _ = self.filled.try_send(snapshot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_takes_nothing_gets_the_first_snapshots_and_stops_nobody() {
        let (mut publisher, window) = window();
        let mut at = Time::START;
        let mut given = 0;
        for _ in 0..10 {
            assert_eq!(publisher.next(), at);
            if let Some(mut snapshot) = publisher.begin(at) {
                snapshot.at = at;
                publisher.give(snapshot);
                given += 1;
            }
            assert!(publisher.begin(at).is_none(), "one is due a second");
            at = at.saturating_add(EVERY);
        }
        assert_eq!(given, SNAPSHOTS);
        let first = window.filled.recv().expect("it was given");
        assert_eq!(first.at, Time::START);
        window.empty.send(first).expect("the drive is there");
        assert!(publisher.begin(at).is_some());
        drop(publisher);
        assert_eq!(window.filled.iter().count(), SNAPSHOTS - 1);
    }
}
