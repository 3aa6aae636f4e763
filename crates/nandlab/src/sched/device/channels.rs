//! The channels and the off-chip path of the device: who has them, and when a transfer ends.

use super::state::Die;
use super::{Device, Phase, first_of};
use crate::base::geometry::DieId;
use crate::base::units::{Span, Time};
use crate::sched::{Agenda, NEVER, Transaction, Transactions, Watcher, Way};

impl Device {
    /// Takes the die's channel for `phase`, or waits for the channel.
    #[inline(always)]
    pub(super) fn ask_channel<W: Watcher>(
        &mut self,
        agenda: &mut Agenda,
        watcher: &mut W,
        pool: &Transactions,
        now: Time,
        id: DieId,
        phase: Phase,
    ) {
        if self.reserves(watcher) {
            let end = self.reserve_channel(pool, now, id, phase);
            self.dies[id.index()].phase = phase;
            agenda.set(id.0, end);
        } else {
            self.take_or_wait(agenda, watcher, pool, now, id, phase);
        }
    }

    /// As [`Device::ask_channel`], without a reservation.
    #[inline(never)]
    pub(super) fn take_or_wait<W: Watcher>(
        &mut self,
        agenda: &mut Agenda,
        watcher: &mut W,
        pool: &Transactions,
        now: Time,
        id: DieId,
        phase: Phase,
    ) {
        let die = &mut self.dies[id.index()];
        die.phase = phase;
        die.next_waiting = None;
        let channel = &mut self.channels[die.channel as usize];
        if !channel.is_taken() {
            self.grant_channel(agenda, watcher, pool, now, id);
            return;
        }
        agenda.set(id.0, NEVER);
        let first = match channel.waiting {
            None => id,
            Some((first, last)) => {
                self.dies[last.index()].next_waiting = Some(id);
                first
            }
        };
        channel.waiting = Some((first, id));
    }

    /// The die transfers the next page of a multi-plane read. The die has kept its channel, because it asked for the
    /// transfers of all pages together.
    #[inline(never)]
    pub(super) fn transfer_next_page<W: Watcher>(
        &mut self,
        agenda: &mut Agenda,
        watcher: &mut W,
        pool: &Transactions,
        now: Time,
        id: DieId,
    ) {
        if self.reserves(watcher) {
            let die = &self.dies[id.index()];
            agenda.set(id.0, now + self.page_out_ns(first_of(&die.batch, pool)));
        } else {
            self.begin_on_channel(agenda, watcher, pool, now, id);
        }
    }

    /// The time of the transfer out of the page of `read`, or of the units of the page that were asked for.
    #[inline(always)]
    fn page_out_ns(&self, read: &Transaction) -> Span {
        let shape = &self.timing.shapes()[read.shape];
        let transfer_ns = shape.after_sensing(read.level, read.tries > 0).transfer_ns;
        self.timing.of_part(transfer_ns, read.extent)
    }

    /// Reserves the die's channel for the pages behind the first one of a multi-plane read.
    #[inline(never)]
    fn reserve_later_pages(&mut self, pool: &Transactions, now: Time, id: DieId) {
        let die = &self.dies[id.index()];
        let mut later = first_of(&die.batch, pool).next;
        while let Some(slot) = later {
            let ns = self.page_out_ns(&pool[slot]);
            self.channels[die.channel as usize].reserve(now, ns);
            later = pool[slot].next;
        }
    }

    /// The times of the command and the transfer of `phase` of a die, and the pages that cross the off-chip path. Of a
    /// read the times of its next page.
    #[inline(always)]
    fn on_channel(&self, pool: &Transactions, die: &Die, phase: Phase) -> (Span, Span, u64) {
        match phase {
            Phase::Command => (self.command_ns(pool, die), Span::ZERO, 0),
            // A page that this try does not decode is not sent over the off-chip path.
            Phase::TransferOut => {
                let first = first_of(&die.batch, pool);
                (Span::ZERO, self.page_out_ns(first), u64::from(!first.is_uncorrectable()))
            }
            Phase::TransferIn => {
                let pages = self.pages_at_work(pool, die);
                (self.command_ns(pool, die), pages * self.timing.transfer_ns, pages)
            }
            Phase::Idle | Phase::Array => unreachable!("this phase needs no channel"),
        }
    }

    /// Whether the phases on a channel are reserved when they are asked for: their end is known then, because the channel
    /// serves the dies in the order in which they ask. An event at the end of a command or a transfer in is not needed.
    #[inline(always)]
    pub(super) fn reserves<W: Watcher>(&self, watcher: &W) -> bool {
        self.reserves && !watcher.sees_phases()
    }

    /// Reserves the die's channel for `phase`, and for all pages of a read. Returns the end of the phase, of a read
    /// that of its first page.
    #[inline(always)]
    pub(super) fn reserve_channel(
        &mut self,
        pool: &Transactions,
        now: Time,
        id: DieId,
        phase: Phase,
    ) -> Time {
        let die = &self.dies[id.index()];
        let (command_ns, transfer_ns, _) = self.on_channel(pool, die, phase);
        let end = self.channels[die.channel as usize].reserve(now, command_ns + transfer_ns);
        if phase == Phase::TransferOut && self.partners.is_some() {
            self.reserve_later_pages(pool, now, id);
        }
        end
    }

    #[inline(always)]
    fn grant_channel<W: Watcher>(
        &mut self,
        agenda: &mut Agenda,
        watcher: &mut W,
        pool: &Transactions,
        now: Time,
        id: DieId,
    ) {
        self.channels[self.dies[id.index()].channel as usize].take(now);
        self.begin_on_channel(agenda, watcher, pool, now, id);
    }

    /// Begins the phase of a die that has its channel.
    #[inline(never)]
    fn begin_on_channel<W: Watcher>(
        &mut self,
        agenda: &mut Agenda,
        watcher: &mut W,
        pool: &Transactions,
        now: Time,
        id: DieId,
    ) {
        let die = &self.dies[id.index()];
        let first = first_of(&die.batch, pool);
        let (command_ns, transfer_ns, pages) = self.on_channel(pool, die, die.phase);
        let data_from = now + command_ns;
        let mut end = data_from + transfer_ns;
        let way = if die.phase == Phase::TransferIn { Way::In } else { Way::Out } as usize;
        let off_chip_ns = pages * self.timing.of_part(self.timing.off_chip_ns[way], first.extent);
        if off_chip_ns > Span::ZERO {
            let free_at = &mut self.off_chip_free_at[usize::from(self.timing.off_chip_path[way])];
            *free_at = (*free_at).max(data_from) + off_chip_ns;
            end = end.max(*free_at);
        }
        agenda.set(id.0, end);
        watcher.on_phase(now, end, id, u32::from(die.channel), die.phase, first_of(&die.batch, pool));
    }

    #[inline(always)]
    pub(super) fn release_channel<W: Watcher>(
        &mut self,
        agenda: &mut Agenda,
        watcher: &mut W,
        pool: &Transactions,
        now: Time,
        id: DieId,
    ) {
        if self.reserves(watcher) {
            return;
        }
        let channel = &mut self.channels[self.dies[id.index()].channel as usize];
        channel.free(now);
        if let Some((next, last)) = channel.waiting {
            channel.waiting = self.dies[next.index()].next_waiting.map(|after| (after, last));
            self.grant_channel(agenda, watcher, pool, now, next);
        }
    }
}
