//! A channel: the die that has taken it, the dies that wait for it or have reserved it, and the time for which it
//! was occupied.

use crate::base::geometry::DieId;
use crate::base::state::value;
use crate::base::units::{Span, Time};

/// A channel of a drive.
#[derive(Clone, Debug, Default)]
pub(super) struct Channel {
    /// The first and the last die that waits for the channel.
    pub(super) waiting: Option<(DieId, DieId)>,
    /// The time at which a die took the channel; `None` while the channel is free.
    taken_at: Option<Time>,
    /// The occupied time without the time since `taken_at`, with all reservations.
    busy_ns: Span,
    /// The end of the last reservation, and the time since which the channel is reserved without a gap.
    reserved: (Time, Time),
}

impl Channel {
    #[inline(always)]
    pub(super) fn is_taken(&self) -> bool {
        self.taken_at.is_some()
    }

    #[inline(always)]
    pub(super) fn take(&mut self, now: Time) {
        self.taken_at = Some(now);
    }

    /// Frees the channel if it is taken.
    #[inline(always)]
    pub(super) fn free(&mut self, now: Time) {
        self.busy_ns += self.taken_at.take().map_or(Span::ZERO, |since| now - since);
    }

    /// Reserves the channel for `span`, behind the reservations before. Returns the end of the reservation.
    #[inline(always)]
    pub(super) fn reserve(&mut self, now: Time, span: Span) -> Time {
        let (end, since) = self.reserved;
        let (from, since) = if end < now { (now, now) } else { (end, since) };
        self.reserved = (from + span, since);
        self.busy_ns += span;
        self.reserved.0
    }

    /// The total time for which the channel has been taken until `now`.
    pub(super) fn busy_ns(&self, now: Time) -> Span {
        // For statistics `now` may be before the time at which the channel was taken or reserved.
        let (end, since) = self.reserved;
        let later = end.saturating_sub(now.max(since));
        self.busy_ns - later + self.taken_at.map_or(Span::ZERO, |since| now.saturating_sub(since))
    }
}

value! { Channel { waiting, taken_at, busy_ns, reserved } }
