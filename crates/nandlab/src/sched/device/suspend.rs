//! `timing.suspend`: a die suspends its program or erase for host reads.
//!
//! | course of an operation | the die | ends |
//! |---|---|---|
//! | running | programs or erases | at the end of the operation, or with a suspension |
//! | entering | gets ready for reads | after `enter` |
//! | suspended | serves host reads | when its next operation is no host read |
//! | running again | takes the operation up again for `resume`, then programs or erases what is left | as above |
//!
//! G. Wu and X. He, "Reducing SSD read latency via NAND flash program and erase suspension", FAST 2012. The paper's
//! program is suspended between two of its phases, here after the same time `enter` at any point.
//!
//! An operation is suspended if a host read waits that would be the next operation of the die, and if the die is ready
//! for this read earlier than at the end of the operation: more than `enter` is left of it. So an operation of the
//! class [`Class::First`] is not suspended, and neither is any operation while one of this class waits or while the
//! read waits for a cleaning (`gc.foreground = "blocking"`). Between the start or a resumption of an operation and its
//! next suspension it makes progress for at least `min_progress`. After `max` suspensions it runs to its end. All
//! planes of a multi-plane operation are suspended together. Of a copyback only the program is suspended.
//!
//! The data of a suspended program is kept, so that pages of all planes can be read. `resume` has to include the time
//! of a second transfer if the flash memory needs one.
//!
//! During a suspension the operation under way on the die is the read; power loss finds the suspended one by
//! `Device::suspended`. `Watcher::on_suspend` moves the end of the array phase that was reported before.

use super::{Device, Phase, first_of};
use crate::base::geometry::DieId;
use crate::base::slab::Fifo;
use crate::base::state::{state, value};
use crate::base::units::{Span, Time};
use crate::sched::pick::pick;
use crate::sched::stats::SuspendStats;
use crate::sched::timing::{SuspendSpec, SuspendTimes};
use crate::sched::{Agenda, Class, FlashOp, Slot, Transaction, Transactions, Watcher};

/// The course of the program or erase of a die.
#[derive(Clone, Copy, Debug)]
enum Course {
    /// The die has no operation that may be suspended.
    None,
    /// The operation runs. It ends at `end` and may be suspended from `from` on.
    Running { end: Time, from: Time },
    /// The operation is suspended since `since`, with the time `left` to its end. The die gets ready for reads.
    Entering { since: Time, left: Span },
    /// The die serves host reads.
    Suspended { since: Time, left: Span, kind: FlashOp, batch: Fifo<Transaction> },
}

/// The suspensions of a drive.
#[derive(Debug)]
pub(super) struct Suspender {
    spec: SuspendSpec,
    /// By die the course of its operation, and the number of suspensions of this operation.
    dies: Box<[(Course, u32)]>,
    stats: SuspendStats,
}

impl Suspender {
    /// `None` without suspensions.
    pub(super) fn new(spec: SuspendSpec, dies: u32) -> Option<Self> {
        (spec != SuspendSpec::default()).then(|| Self {
            spec,
            dies: vec![(Course::None, 0); dies as usize].into(),
            stats: SuspendStats::default(),
        })
    }

    fn times(&self, kind: FlashOp) -> Option<SuspendTimes> {
        match kind {
            FlashOp::Read => None,
            FlashOp::Program | FlashOp::Copyback => self.spec.program,
            FlashOp::Erase => self.spec.erase,
        }
    }

    /// A die starts the array operation of `first`, which programs or erases from `from` to `end`.
    pub(super) fn begin(&mut self, id: DieId, first: &Transaction, from: Time, end: Time) {
        let times = self.times(first.kind).filter(|_| first.class != Class::First);
        let course =
            times.map_or(Course::None, |times| Course::Running { end, from: from + times.min_progress_ns });
        self.dies[id.index()] = (course, 0);
    }

    /// The operation of a die has ended, or power has failed.
    pub(super) fn end(&mut self, id: DieId) {
        self.dies[id.index()] = (Course::None, 0);
    }

    /// Whether the event of a die at `now`, in the array phase of a program or an erase, is the end of the operation.
    pub(super) fn is_end(&self, id: DieId, now: Time) -> bool {
        match self.dies[id.index()].0 {
            Course::Running { end, .. } => end <= now,
            Course::Entering { .. } => false,
            Course::None | Course::Suspended { .. } => true,
        }
    }

    /// The first transaction of the operation that a die has suspended to serve host reads.
    pub(super) fn suspended(&self, id: DieId) -> Option<Slot> {
        match self.dies.get(id.index()) {
            Some((Course::Suspended { batch, .. }, _)) => batch.first(),
            _ => None,
        }
    }
}

impl Device {
    /// The first transaction of the operation that a die has suspended, while the die serves host reads; its partners
    /// follow it through [`Transaction::next`]. It is not among those of [`Device::under_way`].
    pub fn suspended(&self, die: DieId) -> Option<Slot> {
        self.suspender.as_ref()?.suspended(die)
    }

    /// The suspensions so far.
    pub fn suspensions(&self) -> SuspendStats {
        self.suspender.as_ref().map_or_else(SuspendStats::default, |suspender| suspender.stats.clone())
    }

    /// Whether the next operation of a die would be a host read.
    fn is_host_read_next(&self, pool: &Transactions, id: DieId) -> bool {
        let waiting = match &self.planes {
            None => self.waiting(pool, id),
            Some(_) => self.waiting_for_all(pool, id),
        };
        pick(self.scheduler, &waiting) == Some(Class::HostRead)
    }

    /// Suspends the operation of a die for a waiting host read, or sets the die's clock to the time from which on the
    /// operation may be suspended.
    #[inline(never)]
    pub(super) fn try_to_suspend<W: Watcher>(
        &mut self,
        pool: &Transactions,
        agenda: &mut Agenda,
        watcher: &mut W,
        now: Time,
        id: DieId,
    ) {
        let kind = self.dies[id.index()].kind;
        let Some(suspender) = &self.suspender else { return };
        let (Course::Running { end, from }, count) = suspender.dies[id.index()] else { return };
        let Some(times) = suspender.times(kind).filter(|times| count < times.max) else { return };
        // The read would not start earlier than at the end of the operation.
        if from.max(now) + times.enter_ns >= end || !self.is_host_read_next(pool, id) {
            return;
        }
        if from > now {
            agenda.set(id.0, from);
            return;
        }
        let suspender = self.suspender.as_mut().expect("the die suspends operations");
        suspender.dies[id.index()] = (Course::Entering { since: now, left: end - now }, count + 1);
        match kind {
            FlashOp::Erase => suspender.stats.erases += 1,
            _ => suspender.stats.programs += 1,
        }
        let ready = now + times.enter_ns;
        agenda.set(id.0, ready);
        watcher.on_suspend(now, ready, id);
    }

    /// An event in the array phase of a program or an erase that is not its end: the die may suspend the operation, or
    /// is ready for host reads.
    #[inline(never)]
    pub(super) fn on_suspend_clock<W: Watcher>(
        &mut self,
        pool: &mut Transactions,
        agenda: &mut Agenda,
        watcher: &mut W,
        now: Time,
        id: DieId,
    ) {
        let Some(suspender) = &mut self.suspender else { return };
        let (course, _) = &mut suspender.dies[id.index()];
        match *course {
            Course::Running { end, .. } => {
                agenda.set(id.0, end);
                self.try_to_suspend(pool, agenda, watcher, now, id);
            }
            Course::Entering { since, left } => {
                let die = &mut self.dies[id.index()];
                *course = Course::Suspended { since, left, kind: die.kind, batch: die.batch };
                die.batch = Fifo::default();
                Self::end(die, now);
                self.start_next(pool, agenda, watcher, now, id);
            }
            Course::None | Course::Suspended { .. } => unreachable!("an event without an operation"),
        }
    }

    /// If a die has suspended its operation and its next operation is no host read, the die takes the suspended
    /// operation up again. Returns whether it does.
    #[inline(never)]
    pub(super) fn resume<W: Watcher>(
        &mut self,
        pool: &Transactions,
        agenda: &mut Agenda,
        watcher: &mut W,
        now: Time,
        id: DieId,
    ) -> bool {
        if self.suspended(id).is_none() || self.is_host_read_next(pool, id) {
            return false;
        }
        self.take_up(pool, agenda, watcher, now, id);
        true
    }

    /// A die takes its suspended operation up again.
    pub(super) fn take_up<W: Watcher>(
        &mut self,
        pool: &Transactions,
        agenda: &mut Agenda,
        watcher: &mut W,
        now: Time,
        id: DieId,
    ) {
        let suspender = self.suspender.as_mut().expect("the die suspends operations");
        let (Course::Suspended { since, left, kind, batch }, count) = suspender.dies[id.index()] else {
            unreachable!("the die has suspended no operation");
        };
        let times = suspender.times(kind).expect("the operation may be suspended");
        let running = now + times.resume_ns;
        let end = running + left;
        suspender.dies[id.index()] = (Course::Running { end, from: running + times.min_progress_ns }, count);
        suspender.stats.suspended_ns += running - since;
        let die = &mut self.dies[id.index()];
        (die.batch, die.kind, die.phase, die.since) = (batch, kind, Phase::Array, now);
        agenda.set(id.0, end);
        watcher.on_resume(now, id);
        watcher.on_phase(now, end, id, u32::from(die.channel), Phase::Array, first_of(&die.batch, pool));
    }
}

value! {
    Course enum {
        None,
        Running { end, from },
        Entering { since, left },
        Suspended { since, left, kind, batch },
    }
}
state! { Suspender { dies, stats } fixed { spec } }
