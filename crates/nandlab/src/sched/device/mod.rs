//! The device: dies, channels and the off-chip path, and the phases of each flash operation on them.
//!
//! | operation | phases |
//! |---|---|
//! | read | command (channel), sense (die), transfer out (channel and off-chip path); the controller then decodes the page; if a try does not decode, the read is queued again for another try |
//! | program | command and transfer in (channel and off-chip path), program (die) |
//! | erase | command (channel), erase (die) |
//! | copyback | command (channel), sense and program (die); with [`CopybackGap`] host reads may come between the two |
//!
//! An operation occupies its die from the first phase to the last, a read because the page register holds the data
//! until the transfer out has ended. Exceptions are a suspended operation and a copyback between sense and program: the
//! die then serves host reads. A channel carries one transfer at a time, in the order in which the dies requested the
//! channel. A multi-plane read asks for the transfers of all its pages when they are sensed, so they follow each other
//! without a transfer of another die between them. All channels share one off-chip path, or one for each direction
//! (`timing.off_chip_mb_per_s`). Data passes through channel and off-chip path at the same time, so a transfer ends
//! when the slower of the two has carried the data, and occupies its channel until then. A page that a try does not
//! decode crosses only the channel.
//!
//! If no other part of the drive depends on when a phase on a channel begins, a die reserves its channel instead of
//! asking for it, and its array operation is known at once to begin at the end of the reservation. This is so without
//! an off-chip path, suspension, the power-loss model and an observer of phases (`Watcher::sees_phases`). The end of a
//! command or of a transfer in is then no event, and the die is in [`Phase::Array`] from the reservation on.
//!
//! Where programs are counted, the transactions that program are counted, copybacks included: each may write several
//! pages, and a multi-plane operation has several of them.

mod channels;
mod gap;
mod planes;
mod power;
mod state;
mod suspend;

use crate::base::state::state;
pub use gap::CopybackGap;
pub use planes::PlaneReads;
pub use state::{Ended, Phase};

use super::agenda::{Agenda, NEVER};
use super::channel::Channel;
use super::partners::Partners;
use super::pick::{Scheduler, Waiting, pick};
use super::timing::Timing;
use super::transaction::{Class, FlashOp, Slot, Transaction, Transactions};
use super::watcher::Watcher;
use crate::base::geometry::{DieId, Geometry, UnitId};
use crate::base::slab::Fifo;
use crate::base::units::{Span, Time};
use planes::Planes;
use state::Die;
use std::iter::successors;
use suspend::Suspender;

/// The dies, channels and off-chip path of a drive. Clock `i` of the agenda belongs to die `i`, or behind the dies to a
/// station of planes that read independently.
#[derive(Debug)]
pub struct Device {
    /// The dies, and behind them the stations.
    dies: Box<[Die]>,
    /// `None` if the planes of a die read together.
    planes: Option<Planes>,
    channels: Box<[Channel]>,
    /// When each off-chip path is free; the second is that of programs, if `timing.off_chip_mb_per_s` separates them.
    off_chip_free_at: [Time; 2],
    timing: Timing,
    scheduler: Scheduler,
    /// For each die the submission number from which on host transactions wait for the cleanings under way, that of the
    /// first of these ([`Device::begin_cleaning`]).
    cleaning_order: Box<[u64]>,
    /// Dies that [`Device::start`] has to look at, in this order: free dies with new work, and dies that may suspend
    /// their operation for new work.
    marked: Vec<DieId>,
    /// A submission number, and how many programs with lower numbers have been queued and have not ended
    /// ([`Device::has_program_before`]).
    before: (u64, u32),
    /// The partners of multi-plane operations; `None` without `timing.multi_plane`, and if a die has one plane.
    partners: Option<Partners>,
    /// Whether a die has started an operation of several transactions, each in a plane of its own.
    has_used_several_planes: bool,
    /// The host reads between the sense and the program of a copyback; `None`: no reads.
    gap: Option<CopybackGap>,
    /// `None` if operations are not suspended.
    suspender: Option<Suspender>,
    /// Whether dies reserve their channels unless an observer sees the phases: there is no off-chip path, no suspension
    /// and no power loss.
    reserves: bool,
    /// Whether planes read independently, or dies suspend operations.
    has_more_to_start: bool,
}

impl Device {
    /// A device with idle dies. `may_lose_power`: power may fail during an operation.
    pub fn new(
        geometry: &Geometry,
        timing: Timing,
        scheduler: Scheduler,
        multi_plane: bool,
        gap: Option<CopybackGap>,
        may_lose_power: bool,
    ) -> Self {
        let suspender = Suspender::new(timing.suspend, geometry.dies);
        let planes = Planes::new(geometry, timing.plane_groups, timing.read_hold_ns);
        let stations = planes.as_ref().map_or(0, Planes::stations);
        let die_of = |id: u32| planes.as_ref().map_or(DieId(id), |planes| planes.die_of(DieId(id)));
        let partners =
            (multi_plane && geometry.planes_per_die() > 1).then(|| Partners::new(geometry, timing.shapes()));
        // The off-chip path serves the channels in the order in which their transfers begin.
        let is_off_chip = timing.off_chip_ns.iter().any(|&ns| ns > Span::ZERO);
        Self {
            reserves: !may_lose_power && !is_off_chip && suspender.is_none(),
            has_more_to_start: planes.is_some() || suspender.is_some(),
            dies: (0..geometry.dies + stations).map(|id| Die::new(geometry.channel_of(die_of(id)))).collect(),
            channels: vec![Channel::default(); geometry.channels as usize].into(),
            off_chip_free_at: [Time::START; 2],
            suspender,
            timing,
            scheduler,
            cleaning_order: vec![0; geometry.dies as usize].into(),
            marked: Vec::with_capacity((geometry.dies + stations) as usize),
            before: (0, 0),
            partners,
            planes,
            has_used_several_planes: false,
            gap,
        }
    }

    /// Whether a die has started an operation of several transactions, each in a plane of its own
    /// (`timing.multi_plane`).
    pub(crate) fn has_used_several_planes(&self) -> bool {
        self.has_used_several_planes
    }

    /// Bytes of memory for the lists of multi-plane operations ([`Geometry::superblocks_on_dies`]).
    pub fn multi_plane_bytes(superblocks_on_dies: usize) -> u64 {
        Partners::bytes(superblocks_on_dies)
    }

    /// Bytes of the array by superblock.
    pub fn bytes(&self) -> u64 {
        self.partners.as_ref().map_or(0, Partners::bytes_of_ends)
    }

    /// The phase times.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// The number of clocks of the device.
    #[inline(always)]
    pub fn clocks(&self) -> u32 {
        self.dies.len() as u32
    }

    /// The phase of a die; without the reads of planes that read independently.
    pub fn phase(&self, die: DieId) -> Phase {
        self.dies[die.index()].phase
    }

    /// The kind of the operation under way on a die, or on planes of the die that read at their own times; `None` if there
    /// is none.
    pub fn kind(&self, die: DieId) -> Option<FlashOp> {
        let are_reading = || self.planes.as_ref().is_some_and(|planes| planes.are_at_work(die));
        match &self.dies[die.index()] {
            of if of.phase != Phase::Idle => Some(of.kind),
            _ => are_reading().then_some(FlashOp::Read),
        }
    }

    /// Whether a copyback of a die is sensing its pages, before it is held between sense and program. `false` without
    /// [`CopybackGap`], when sense and program are one array phase.
    pub fn is_sensing(&self, die: DieId) -> bool {
        let die = &self.dies[die.index()];
        self.gap.is_some() && die.phase == Phase::Array && die.kind == FlashOp::Copyback && !die.is_sensed
    }

    /// The number of transactions queued on a die, under way, held or suspended.
    #[inline(always)]
    pub fn load(&self, die: DieId) -> u32 {
        self.dies[die.index()].load
    }

    /// The total time for which a die has been occupied until `now`.
    pub fn die_busy_ns(&self, die: DieId, now: Time) -> Span {
        let reads_since = self.planes.as_ref().and_then(|planes| planes.busy_since(die));
        let die = &self.dies[die.index()];
        let since = if die.phase == Phase::Idle { reads_since } else { Some(die.since) };
        // For statistics `now` may be before the start of the operation.
        die.busy_ns + since.map_or(Span::ZERO, |since| now.saturating_sub(since))
    }

    /// The total time for which a channel has been occupied by commands and transfers until `now`.
    pub fn channel_busy_ns(&self, channel: u32, now: Time) -> Span {
        self.channels[channel as usize].busy_ns(now)
    }

    /// The first transaction under way on a die; its partners follow it through [`Transaction::next`]. A copyback whose
    /// program waits for a host read is not among them, and neither are those of [`Device::suspended`].
    pub fn under_way(&self, die: DieId) -> Option<Slot> {
        self.dies[die.index()].batch.first()
    }

    /// Whether a die has begun the operation whose first transaction has the unit `first`: the operation is under way
    /// or suspended. A copyback whose program waits for a host read is not found.
    pub fn has_begun(&self, pool: &Transactions, die: DieId, first: UnitId) -> bool {
        let begun = [self.under_way(die), self.suspended(die)];
        let mut slots = begun.into_iter().flat_map(|slot| successors(slot, |&slot| pool[slot].next));
        slots.any(|slot| pool[slot].unit == first)
    }

    /// Counts one more lane of a die whose background work is urgent. While there is one, [`Scheduler::ReadFirst`]
    /// serves the background work of the die with the priority of host writes.
    pub fn promote(&mut self, die: DieId) {
        self.dies[die.index()].promoted += 1;
    }

    /// Undoes one [`Device::promote`].
    pub fn demote(&mut self, die: DieId) {
        self.dies[die.index()].promoted -= 1;
    }

    /// Begins a cleaning: gives a die to background work and refresh until [`Device::end_cleaning`]. As long as host
    /// transactions with a submission number below `order` wait, the die first serves transactions with such a number.
    /// If a cleaning of the die is under way already, the `order` of that cleaning remains in force.
    pub fn begin_cleaning(&mut self, die: DieId, order: u64) {
        let cleanings = &mut self.dies[die.index()].cleanings;
        if *cleanings == 0 {
            self.cleaning_order[die.index()] = order;
        }
        *cleanings += 1;
    }

    /// Undoes one [`Device::begin_cleaning`]. [`Device::start`] then starts the die if it is free.
    pub fn end_cleaning(&mut self, die: DieId) {
        self.dies[die.index()].cleanings -= 1;
        self.mark(die);
    }

    /// Sets the share of a die's programs, in [`SHARES`](super::SHARES)ths, that urgent background work has while host
    /// writes wait. With `None` the side that has waited longer goes next. The die has the number `number`, from 0 on,
    /// among the `dies` dies of a lane, over which the turns of host writes are spread evenly.
    pub fn set_share(&mut self, die: DieId, share: Option<u16>, (number, dies): (u32, u32)) {
        self.dies[die.index()].turns.set(share, number, dies);
    }

    /// Queues a transaction on its die. [`Device::start`] starts a free die once all transactions of the same event are
    /// queued.
    #[inline]
    pub fn submit(&mut self, pool: &mut Transactions, slot: Slot) {
        if self.planes.is_some() && pool[slot].kind == FlashOp::Read {
            self.submit_to_station(pool, slot, Fifo::push);
            return;
        }
        let (id, class) = (pool[slot].die, pool[slot].class);
        let die = &mut self.dies[id.index()];
        let queue = &mut die.queues[class as usize];
        match &mut self.partners {
            None => queue.push(pool, slot),
            Some(partners) => partners.push(pool, queue, slot),
        }
        die.load += 1;
        if pool[slot].order < self.before.0 {
            self.before.1 += u32::from(pool[slot].kind.programs());
        }
        self.mark(id);
    }

    /// Queues a further try of a read at the front of its queue, because the read has waited there already.
    pub fn submit_again(&mut self, pool: &mut Transactions, slot: Slot) {
        if self.planes.is_some() {
            self.submit_to_station(pool, slot, Fifo::push_front);
            return;
        }
        let (id, class) = (pool[slot].die, pool[slot].class);
        let die = &mut self.dies[id.index()];
        let queue = &mut die.queues[class as usize];
        match &mut self.partners {
            None => queue.push_front(pool, slot),
            Some(partners) => partners.push_front(pool, queue, slot),
        }
        die.load += 1;
        self.mark(id);
    }

    /// Adds a die, if it is free or may suspend its operation, to the end of the list of dies that [`Device::start`]
    /// starts, unless it is in the list.
    #[inline(always)]
    fn mark(&mut self, id: DieId) {
        let die = &mut self.dies[id.index()];
        let may_start = die.phase == Phase::Idle || self.suspender.is_some() && die.phase == Phase::Array;
        if may_start && !die.is_marked {
            die.is_marked = true;
            self.marked.push(id);
        }
    }

    /// Calls [`Device::start_next`] for the marked dies: free dies that have new work, and dies that may suspend their
    /// operation for it. To be called after all transactions of an event or a request have been queued.
    #[inline(always)]
    pub fn start<W: Watcher>(
        &mut self,
        pool: &mut Transactions,
        agenda: &mut Agenda,
        watcher: &mut W,
        now: Time,
    ) {
        if !self.marked.is_empty() {
            self.start_marked(pool, agenda, watcher, now);
        }
    }

    // Not inlined, since `start` is called from several places.
    #[inline(never)]
    fn start_marked<W: Watcher>(
        &mut self,
        pool: &mut Transactions,
        agenda: &mut Agenda,
        watcher: &mut W,
        now: Time,
    ) {
        for at in 0..self.marked.len() {
            let id = self.marked[at];
            self.dies[id.index()].is_marked = false;
            self.start_next(pool, agenda, watcher, now, id);
        }
        self.marked.clear();
    }

    /// Ends the phase of a die at the time of the die's clock, and starts the next phase.
    ///
    /// After [`Ended::Batch`] or [`Ended::Page`] the caller handles what has ended, then calls [`Device::start`] and
    /// [`Device::start_next`]. Until then the clock of a die that has become idle remains set, because most dies start
    /// their next operation at once. After [`Ended::Page`] the die may still be transferring the other pages of a
    /// multi-plane read; `start_next` then leaves the die as it is.
    #[inline(always)]
    pub fn on_clock<W: Watcher>(
        &mut self,
        pool: &mut Transactions,
        agenda: &mut Agenda,
        watcher: &mut W,
        now: Time,
        id: DieId,
    ) -> Ended {
        let die = &mut self.dies[id.index()];
        match (die.phase, die.kind) {
            (Phase::Command | Phase::TransferIn, _) => {
                self.release_channel(agenda, watcher, pool, now, id);
                self.start_array(pool, agenda, watcher, now, id);
                Ended::Nothing
            }
            (Phase::Array, FlashOp::Read) => {
                let slot = die.batch.first().expect("an operation has a transaction");
                self.ask_channel(agenda, watcher, pool, now, id, Phase::TransferOut);
                Ended::Sense(slot)
            }
            (Phase::Array, _)
                if self.suspender.as_ref().is_some_and(|suspender| !suspender.is_end(id, now)) =>
            {
                self.on_suspend_clock(pool, agenda, watcher, now, id);
                Ended::Nothing
            }
            (Phase::Array, FlashOp::Copyback) if self.gap.is_some() && !die.is_sensed => {
                die.held = die.batch.first();
                (die.batch, die.is_sensed) = (Fifo::default(), true);
                Self::end(die, now);
                self.start_next(pool, agenda, watcher, now, id);
                Ended::Nothing
            }
            (Phase::Array, _) => {
                let first = die.batch.first().expect("an operation has a transaction");
                (die.batch, die.is_sensed) = (Fifo::default(), false);
                die.load -= count(pool, Some(first));
                Self::end(die, now);
                if self.before.1 > 0 {
                    self.before.1 -= self.count_programs_before(pool, first);
                }
                if let Some(suspender) = &mut self.suspender {
                    suspender.end(id);
                }
                Ended::Batch(first)
            }
            (Phase::TransferOut, _) => {
                let slot = die.batch.pop(pool).expect("a transfer has a transaction");
                die.load -= 1;
                if die.batch.is_empty() {
                    Self::end(die, now);
                    if self.planes.is_some() {
                        self.on_read_out(now, id);
                    }
                    self.release_channel(agenda, watcher, pool, now, id);
                } else {
                    self.transfer_next_page(agenda, watcher, pool, now, id);
                }
                Ended::Page(slot)
            }
            (Phase::Idle, _) => unreachable!("an event for an idle die"),
        }
    }

    #[inline]
    fn end(die: &mut Die, now: Time) {
        die.phase = Phase::Idle;
        die.busy_ns += now - die.since;
    }

    /// If the die is free, starts its next operation: takes a suspended operation up again, continues a held copyback,
    /// or starts the transaction that the scheduler picks, with its partners. Unsets the die's clock if there is none.
    /// If the die is not free, may suspend its operation.
    #[inline]
    pub fn start_next<W: Watcher>(
        &mut self,
        pool: &mut Transactions,
        agenda: &mut Agenda,
        watcher: &mut W,
        now: Time,
        id: DieId,
    ) {
        if self.has_more_to_start {
            self.start_next_of_all(pool, agenda, watcher, now, id);
        } else if self.dies[id.index()].phase == Phase::Idle {
            self.start_free(pool, agenda, watcher, now, id);
        }
    }

    /// [`Device::start_next`] of a drive whose planes read independently, or whose dies suspend operations.
    #[cold]
    #[inline(never)]
    fn start_next_of_all<W: Watcher>(
        &mut self,
        pool: &mut Transactions,
        agenda: &mut Agenda,
        watcher: &mut W,
        now: Time,
        id: DieId,
    ) {
        if self.planes.is_some() {
            self.start_next_of_planes(pool, agenda, watcher, now, id);
        } else if self.dies[id.index()].phase != Phase::Idle {
            self.try_to_suspend(pool, agenda, watcher, now, id);
        } else if !self.resume(pool, agenda, watcher, now, id) {
            self.start_free(pool, agenda, watcher, now, id);
        }
    }

    /// A free die without a suspended operation continues a held copyback, or starts the transaction that the scheduler
    /// picks, with its partners.
    #[inline(always)]
    fn start_free<W: Watcher>(
        &mut self,
        pool: &mut Transactions,
        agenda: &mut Agenda,
        watcher: &mut W,
        now: Time,
        id: DieId,
    ) {
        if self.dies[id.index()].load == 0 {
            agenda.set(id.0, NEVER);
            return;
        }
        let mut waiting = self.waiting(pool, id);
        let die = &mut self.dies[id.index()];
        // The plane whose register holds the data of a copyback: no host read may use this plane.
        let mut without = None;
        if let Some(held) = die.held {
            let plane = pool[held].plane_in_die;
            let first = die.queues[Class::HostRead as usize].first();
            let is_in_other_plane = first.is_some_and(|read| pool[read].plane_in_die != plane);
            let gap = self.gap.expect("a copyback is held only in a gap");
            if waiting.first[Class::HostRead as usize].is_none()
                || gap == CopybackGap::OtherPlanes && !is_in_other_plane
            {
                self.program_held(pool, agenda, watcher, now, id, held);
                return;
            }
            waiting.leave_to_host_reads();
            without = (gap == CopybackGap::OtherPlanes).then_some(plane);
        }
        self.start_picked(pool, agenda, watcher, now, id, waiting, without);
    }

    /// A free die starts the transaction that the scheduler picks among those `waiting`, with its partners. `without`:
    /// no read of this plane. Unsets the die's clock if none waits.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn start_picked<W: Watcher>(
        &mut self,
        pool: &mut Transactions,
        agenda: &mut Agenda,
        watcher: &mut W,
        now: Time,
        id: DieId,
        waiting: Waiting,
        without: Option<u8>,
    ) {
        let die = &mut self.dies[id.index()];
        let Some(mut class) = pick(self.scheduler, &waiting) else {
            agenda.set(id.0, NEVER);
            return;
        };
        let takes_turns = die.turns.are_taken(&waiting, class);
        if takes_turns {
            class = whose_turn(die, pool);
        }
        let queue = &mut die.queues[class as usize];
        die.batch = if let Some(partners) = &mut self.partners {
            partners.take(pool, queue, without)
        } else {
            let slot = queue.pop(pool).expect("the scheduler picked a class that waits");
            Fifo::of(pool, slot)
        };
        let slot = die.batch.first().expect("a batch has a transaction");
        die.kind = pool[slot].kind;
        die.width = self.timing.width(pool[slot].shape, die.kind);
        die.since = now;
        if takes_turns {
            end_turn(die, pool, class);
        }
        watcher.on_issue(now, id, &pool[slot]);
        if self.partners.is_some() {
            let mut rest = pool[slot].next;
            self.has_used_several_planes |= rest.is_some();
            while let Some(other) = rest {
                watcher.on_joined(now, id, &pool[slot], &pool[other]);
                rest = pool[other].next;
            }
        }
        self.begin(pool, agenda, watcher, now, id);
    }

    /// Begins the first phase of the operation that a die or a station has taken.
    #[inline(always)]
    fn begin<W: Watcher>(
        &mut self,
        pool: &mut Transactions,
        agenda: &mut Agenda,
        watcher: &mut W,
        now: Time,
        id: DieId,
    ) {
        let die = &self.dies[id.index()];
        let phase = match die.kind {
            FlashOp::Program => Some(Phase::TransferIn),
            _ if self.command_ns(pool, die) > Span::ZERO => Some(Phase::Command),
            _ => None,
        };
        let ready = match phase {
            None => now,
            Some(phase) if self.reserves(watcher) => self.reserve_channel(pool, now, id, phase),
            Some(phase) => {
                self.take_or_wait(agenda, watcher, pool, now, id, phase);
                return;
            }
        };
        self.start_array(pool, agenda, watcher, ready, id);
    }

    /// The heads of a die's queues, as far as the cleanings of the die let the die serve them.
    #[inline(always)]
    fn waiting(&self, pool: &Transactions, id: DieId) -> Waiting {
        let mut waiting = self.waiting_uncleaned(pool, id);
        self.leave_to_cleaning(id, &mut waiting);
        waiting
    }

    /// The heads of a die's queues.
    #[inline(always)]
    fn waiting_uncleaned(&self, pool: &Transactions, id: DieId) -> Waiting {
        let die = &self.dies[id.index()];
        Waiting {
            first: die.queues.map(|queue| queue.first().map(|slot| pool[slot].order)),
            promoted: die.promoted > 0,
        }
    }

    /// Leaves out of `waiting` what has to wait for the cleanings of a die.
    #[inline(always)]
    fn leave_to_cleaning(&self, id: DieId, waiting: &mut Waiting) {
        if self.dies[id.index()].cleanings > 0 {
            waiting.leave_to_cleaning(self.cleaning_order[id.index()]);
        }
    }

    /// The number of pages in a die's operation, or for an erase the number of blocks: of all transactions of the
    /// operation together. Each block is in a plane of its own, and so is each page unless one program writes all pages
    /// of a wordline.
    #[inline(always)]
    fn pages_at_work(&self, pool: &Transactions, die: &Die) -> u64 {
        let width = die.width;
        u64::from(if self.partners.is_some() { width * count(pool, die.batch.first()) } else { width })
    }

    /// Channel time of the command cycles of a die's operation.
    #[inline(always)]
    fn command_ns(&self, pool: &Transactions, die: &Die) -> Span {
        match self.pages_at_work(pool, die) {
            1 => self.timing.command_ns(die.kind),
            pages => self.timing.command_of_pages_ns(die.kind, pages),
        }
    }

    /// Begins the array operation of a die whose command or transfer in has ended or, at `now`, will end.
    #[inline(always)]
    fn start_array<W: Watcher>(
        &mut self,
        pool: &Transactions,
        agenda: &mut Agenda,
        watcher: &mut W,
        now: Time,
        id: DieId,
    ) {
        let die = &mut self.dies[id.index()];
        let first = first_of(&die.batch, pool);
        // The `extent` of a copyback is the time of sensing its pages.
        let copyback_sense_ns = || Span::from_ns(first.extent.into());
        let shape = &self.timing.shapes()[first.shape];
        let program_ns = || shape.program_ns(first.index);
        let (sense_ns, rest_ns) = match die.kind {
            // All pages of a multi-plane read have the same number in their blocks, and so the same kind.
            FlashOp::Read => (shape.read(first.index, first.level, first.tries > 0).sense_ns, Span::ZERO),
            FlashOp::Program => (Span::ZERO, program_ns()),
            FlashOp::Erase => (Span::ZERO, shape.erase_ns),
            FlashOp::Copyback => match (self.gap, die.is_sensed) {
                (None, _) => (copyback_sense_ns(), program_ns()),
                (Some(_), false) => (copyback_sense_ns(), Span::ZERO),
                (Some(_), true) => (Span::ZERO, program_ns()),
            },
        };
        let end = now + sense_ns + rest_ns;
        die.phase = Phase::Array;
        agenda.set(id.0, end);
        watcher.on_phase(now, end, id, u32::from(die.channel), Phase::Array, first);
        if die.kind != FlashOp::Read
            && let Some(suspender) = &mut self.suspender
        {
            suspender.begin(id, first, now + sense_ns, end);
            // A host read may have come during the transfer in.
            self.try_to_suspend(pool, agenda, watcher, now, id);
        }
    }
}

/// The first transaction of a batch. The batch must not be empty.
#[inline(always)]
fn first_of<'a>(batch: &Fifo<Transaction>, pool: &'a Transactions) -> &'a Transaction {
    &pool[batch.first().expect("an operation under way has a transaction")]
}

/// The number of transactions in a list from `rest` on.
fn count(pool: &Transactions, mut rest: Option<Slot>) -> u32 {
    let mut count = 0;
    while let Some(slot) = rest {
        count += 1;
        rest = pool[slot].next;
    }
    count
}

/// The class whose turn it is: host writes or background work.
#[inline(never)]
fn whose_turn(die: &Die, pool: &Transactions) -> Class {
    let first = die.queues[Class::Background as usize].first();
    die.turns.next(first.is_some_and(|slot| pool[slot].kind.programs()))
}

/// Counts the programs of the batch that the die has started in the turn of `class`.
#[inline(never)]
fn end_turn(die: &mut Die, pool: &Transactions, class: Class) {
    if die.kind.programs() {
        let programs = count(pool, die.batch.first());
        die.turns.on_program(class, programs);
    }
}

state! {
    Device { dies, channels, off_chip_free_at, cleaning_order, marked, before, has_used_several_planes }
    parts { planes, partners, suspender }
    fixed { timing, scheduler, gap, reserves, has_more_to_start }
}
