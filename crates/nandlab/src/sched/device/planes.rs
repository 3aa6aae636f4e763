//! `timing.plane_reads`: the planes of a die sense different blocks at their own times.
//!
//! The planes of a die are divided into groups, by default of one plane. A group is a *station*: it has queues of reads, a
//! page register and a clock of its own, and follows the dies in `Device::dies`. Queues and register of the die serve the
//! other operations, which take all planes. The stations of a die share its channel and its off-chip path. A station
//! whose register waits for its transfer is not free, so it does not sense.
//!
//! | station | takes its next read if |
//! |---|---|
//! | of a free die | the scheduler picks it among the reads of the station and the operations of the die |
//! | of a die with a suspended operation, or a copyback held between sense and program | it is a host read that the scheduler picks so; during a copyback that holds its planes' registers, in another group |
//!
//! A program, erase or copyback begins, and a suspended or held one goes on, when no station of the die is at work and none
//! may take a read. With [`Scheduler::ReadFirst`](crate::sched::Scheduler::ReadFirst) the stations of a die that is read
//! much are rarely free at the same time, so host reads hold such an operation off for at most `timing.read_hold`, and
//! for the reads that are under way then: after that no station takes a host read before the operation. The other reads
//! are not held back: a job has a bounded number of them at a time, and with few of them between two programs GC would
//! stay behind its share.
//!
//! Each read is an operation of its own: reads are not joined to multi-plane reads. A die counts as busy while a station is
//! at work. With one controller command at a time and without other operations, the stations of a die are request for
//! request as fast as as many dies of one plane on the same channel; the twin in the tests is such a drive.

use super::{Device, Phase};
use crate::base::geometry::{DieId, Geometry};
use crate::base::slab::Fifo;
use crate::base::state::{state, value};
use crate::base::units::{Span, Time};
use crate::sched::pick::{Waiting, pick};
use crate::sched::{Agenda, Class, CopybackGap, FlashOp, NEVER, Slot, Transaction, Transactions, Watcher};

/// `timing.plane_reads`: how the planes of a die read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaneReads {
    /// A die has one read at a time, of several planes only with `timing.multi_plane`.
    Together,
    /// Each plane has its own.
    Independent,
    /// Each of so many groups of planes has its own.
    Groups(u32),
}

impl PlaneReads {
    /// The groups of a die of `planes` planes that read at their own times; 1 if all planes read together.
    pub fn groups(self, planes: u32) -> u32 {
        match self {
            Self::Together => 1,
            Self::Independent => planes,
            Self::Groups(groups) => groups,
        }
    }
}

/// The state of a die whose planes read independently.
#[derive(Clone, Copy, Debug, Default)]
struct OfDie {
    /// Number of stations at work.
    at_work: u32,
    /// The time since which a station is at work.
    since: Time,
    /// The time since which an operation of the die waits for its stations, or is suspended or held for reads.
    waits_since: Option<Time>,
}

/// The stations of a drive whose planes read independently.
#[derive(Debug)]
pub(super) struct Planes {
    dies: u32,
    groups: u32,
    planes_per_group: u32,
    read_hold: Span,
    of_die: Box<[OfDie]>,
    /// Whether a station has read while another one of its die did, or has left a host read to an operation of the die
    /// after the hold: on a die whose planes read together neither happens.
    has_effect: bool,
}

impl Planes {
    /// `None` if the planes of a die read together.
    pub(super) fn new(geometry: &Geometry, groups: u32, read_hold: Span) -> Option<Self> {
        (groups > 1).then(|| Self {
            dies: geometry.dies,
            groups,
            planes_per_group: geometry.planes_per_die() / groups,
            read_hold,
            of_die: vec![OfDie::default(); geometry.dies as usize].into(),
            has_effect: false,
        })
    }

    /// The number of stations.
    pub(super) fn stations(&self) -> u32 {
        self.dies * self.groups
    }

    /// The die of a station, or the die itself.
    #[inline(always)]
    pub(super) fn die_of(&self, id: DieId) -> DieId {
        if id.0 < self.dies { id } else { DieId((id.0 - self.dies) / self.groups) }
    }

    /// The station that serves a transaction: that of its planes for a read, otherwise the die.
    #[inline(always)]
    pub(super) fn station_of(&self, transaction: &Transaction) -> DieId {
        match transaction.kind {
            FlashOp::Read => self.station_of_plane(transaction),
            _ => transaction.die,
        }
    }

    /// The station of the plane of a transaction.
    #[inline(always)]
    fn station_of_plane(&self, transaction: &Transaction) -> DieId {
        let group = u32::from(transaction.plane_in_die) / self.planes_per_group;
        DieId(self.dies + transaction.die.0 * self.groups + group)
    }

    /// The stations of a die.
    fn of(&self, die: DieId) -> impl Iterator<Item = DieId> + use<> {
        let first = self.dies + die.0 * self.groups;
        (first..first + self.groups).map(DieId)
    }

    /// Whether a station of a die is at work.
    pub(super) fn are_at_work(&self, die: DieId) -> bool {
        self.of_die[die.index()].at_work > 0
    }

    /// The time since which stations of a die are at work; `None` if none is.
    pub(super) fn busy_since(&self, die: DieId) -> Option<Time> {
        let of_die = &self.of_die[die.index()];
        (of_die.at_work > 0).then_some(of_die.since)
    }

    /// Whether an operation of a die has been held off for the time of `timing.read_hold`.
    fn is_hold_over(&self, die: DieId, now: Time) -> bool {
        let is_over = |since: Time| now >= since.saturating_add(self.read_hold);
        self.of_die[die.index()].waits_since.is_some_and(is_over)
    }

    /// The queues of all dies have been dropped, so no operation waits for stations any longer. A suspended or held one
    /// begins to wait when its die is looked at next.
    pub(super) fn forget_waits(&mut self) {
        self.of_die.iter_mut().for_each(|of_die| of_die.waits_since = None);
    }

    /// At power-off no station is at work any longer.
    pub(super) fn stop(&mut self) {
        self.of_die.fill(OfDie::default());
    }
}

impl Device {
    /// The die of a clock of the device.
    #[inline(always)]
    pub(super) fn die_of(&self, id: DieId) -> DieId {
        self.planes.as_ref().map_or(id, |planes| planes.die_of(id))
    }

    /// Whether it has made a difference that planes read independently.
    pub(crate) fn have_planes_read_independently(&self) -> bool {
        self.planes.as_ref().is_some_and(|planes| planes.has_effect)
    }

    /// Whether a die has no operation under way. A suspended or held operation does not count.
    pub fn is_free(&self, die: DieId) -> bool {
        self.dies[die.index()].phase == Phase::Idle
            && self.planes.as_ref().is_none_or(|planes| !planes.are_at_work(die))
    }

    /// [`Device::start_next`] for a station or its die. A station that is free takes a read if it may; then the die takes
    /// an operation if it may.
    #[cold]
    #[inline(never)]
    pub(super) fn start_next_of_planes<W: Watcher>(
        &mut self,
        pool: &mut Transactions,
        agenda: &mut Agenda,
        watcher: &mut W,
        now: Time,
        id: DieId,
    ) {
        let die = self.die_of(id);
        if self.dies[die.index()].phase != Phase::Idle {
            if id != die {
                agenda.set(id.0, NEVER);
            }
            if self.suspender.is_some() {
                self.try_to_suspend(pool, agenda, watcher, now, die);
            }
            return;
        }
        // Stations that become busy in the same event take their reads in the order in which the reads were queued.
        let takes_read = id != die && self.take_read(pool, agenda, watcher, now, id);
        if !takes_read && self.dies[id.index()].phase == Phase::Idle {
            agenda.set(id.0, NEVER);
        }
        if id == die || self.waits_for_stations(pool, die) {
            self.look_at_die(pool, agenda, watcher, now, die);
        }
    }

    /// Whether a free die has an operation other than the reads of its stations.
    fn waits_for_stations(&self, pool: &Transactions, die: DieId) -> bool {
        let waiting = self.waiting(pool, die);
        let is_interrupted = self.suspended(die).is_some() || self.dies[die.index()].held.is_some();
        is_interrupted || waiting.first.iter().any(Option::is_some)
    }

    /// The stations of a free die take reads, as far as they may; otherwise the die takes its next operation.
    fn look_at_die<W: Watcher>(
        &mut self,
        pool: &mut Transactions,
        agenda: &mut Agenda,
        watcher: &mut W,
        now: Time,
        die: DieId,
    ) {
        let stations = self.planes.as_ref().expect("the planes read independently").of(die);
        for station in stations {
            self.take_read(pool, agenda, watcher, now, station);
        }
        let waits = self.waits_for_stations(pool, die);
        let of_die = &mut self.planes.as_mut().expect("the planes read independently").of_die[die.index()];
        if !waits || of_die.at_work > 0 {
            of_die.waits_since = waits.then(|| of_die.waits_since.unwrap_or(now));
            agenda.set(die.0, NEVER);
            return;
        }
        of_die.waits_since = None;
        if self.suspended(die).is_some() {
            self.take_up(pool, agenda, watcher, now, die);
        } else if let Some(held) = self.dies[die.index()].held {
            self.program_held(pool, agenda, watcher, now, die, held);
        } else {
            let waiting = self.waiting(pool, die);
            self.start_picked(pool, agenda, watcher, now, die, waiting, None);
        }
    }

    /// What waits for a die and some of its stations together.
    fn waiting_with(
        &self,
        pool: &Transactions,
        die: DieId,
        stations: impl Iterator<Item = DieId>,
    ) -> Waiting {
        let mut waiting = self.waiting_uncleaned(pool, die);
        for station in stations {
            let heads = self.waiting_uncleaned(pool, station);
            for (first, other) in waiting.first.iter_mut().zip(heads.first) {
                *first = [*first, other].into_iter().flatten().min();
            }
        }
        self.leave_to_cleaning(die, &mut waiting);
        waiting
    }

    /// What waits for a die and all its stations.
    pub(super) fn waiting_for_all(&self, pool: &Transactions, die: DieId) -> Waiting {
        let planes = self.planes.as_ref().expect("the planes read independently");
        self.waiting_with(pool, die, planes.of(die))
    }

    /// A station takes its next read, if it is free and may. Returns whether it does.
    fn take_read<W: Watcher>(
        &mut self,
        pool: &mut Transactions,
        agenda: &mut Agenda,
        watcher: &mut W,
        now: Time,
        id: DieId,
    ) -> bool {
        if self.dies[id.index()].phase != Phase::Idle || self.dies[id.index()].load == 0 {
            return false;
        }
        let die = self.die_of(id);
        let waiting = self.waiting_for_station(pool, now, die, id);
        let Some(class) = self.class_of_read(pool, waiting, die, id) else { return false };
        let station = &mut self.dies[id.index()];
        let slot = station.queues[class as usize].pop(pool).expect("the class has a read that waits");
        station.batch = Fifo::of(pool, slot);
        station.kind = FlashOp::Read;
        station.width = self.timing.width(pool[slot].shape, FlashOp::Read);
        station.since = now;
        let planes = self.planes.as_mut().expect("the planes read independently");
        let of_die = &mut planes.of_die[die.index()];
        if of_die.at_work == 0 {
            of_die.since = now;
        }
        planes.has_effect |= of_die.at_work > 0;
        of_die.at_work += 1;
        watcher.on_issue(now, id, &pool[slot]);
        self.begin(pool, agenda, watcher, now, id);
        true
    }

    /// What waits for a station and its die, without the host reads that another operation no longer lets go first.
    fn waiting_for_station(&mut self, pool: &Transactions, now: Time, die: DieId, id: DieId) -> Waiting {
        let mut waiting = self.waiting_with(pool, die, std::iter::once(id));
        let planes = self.planes.as_mut().expect("the planes read independently");
        if planes.is_hold_over(die, now) {
            planes.has_effect |= waiting.leave_out_host_reads();
        }
        waiting
    }

    /// The class of the read that a free station takes of what is `waiting` for it and its die; `None` if the scheduler
    /// lets it take none.
    fn class_of_read(&self, pool: &Transactions, waiting: Waiting, die: DieId, id: DieId) -> Option<Class> {
        let planes = self.planes.as_ref().expect("the planes read independently");
        let mut class = pick(self.scheduler, &waiting)?;
        let head = |id: DieId, class: Class| {
            self.dies[id.index()].queues[class as usize].first().map(|slot| &pool[slot])
        };
        let older_is_read = |class: Class| match (head(id, class), head(die, class)) {
            (Some(read), Some(other)) => read.order < other.order,
            (read, _) => read.is_some(),
        };
        let turns = &self.dies[die.index()].turns;
        if turns.are_taken(&waiting, class) {
            let is_program = !older_is_read(Class::Background)
                && head(die, Class::Background).is_some_and(|first| first.kind.programs());
            class = turns.next(is_program);
        }
        if !older_is_read(class) {
            return None;
        }
        let held = self.dies[die.index()].held;
        if class != Class::HostRead && (held.is_some() || self.suspended(die).is_some()) {
            return None;
        }
        let is_in_register = held.is_some_and(|held| planes.station_of_plane(&pool[held]) == id);
        if self.gap == Some(CopybackGap::OtherPlanes) && is_in_register {
            return None;
        }
        Some(class)
    }

    /// Counts the reads under way at the stations of each die in the load of the die.
    pub(super) fn count_reads_of_stations(&mut self) {
        let Some(planes) = &self.planes else { return };
        for id in (planes.dies..planes.dies + planes.stations()).map(DieId) {
            self.dies[planes.die_of(id).index()].load += self.dies[id.index()].load;
        }
    }

    /// Queues a read at the station of its planes, or another transaction at its die. `push` adds it to the queue.
    #[cold]
    #[inline(never)]
    pub(super) fn submit_to_station(
        &mut self,
        pool: &mut Transactions,
        slot: Slot,
        push: impl Fn(&mut Fifo<Transaction>, &mut Transactions, Slot),
    ) {
        let planes = self.planes.as_ref().expect("the planes read independently");
        let (id, die) = (planes.station_of(&pool[slot]), pool[slot].die);
        let queue = &mut self.dies[id.index()].queues[pool[slot].class as usize];
        push(queue, pool, slot);
        self.dies[id.index()].load += 1;
        self.dies[die.index()].load += 1;
        self.mark(id);
    }

    /// The read of a station has left its register.
    #[cold]
    #[inline(never)]
    pub(super) fn on_read_out(&mut self, now: Time, id: DieId) {
        let Some(planes) = &mut self.planes else { return };
        let die = planes.die_of(id);
        let of_die = &mut planes.of_die[die.index()];
        of_die.at_work -= 1;
        let owner = &mut self.dies[die.index()];
        owner.load -= 1;
        if of_die.at_work == 0 {
            owner.busy_ns += now - of_die.since;
        }
    }
}

value! { OfDie { at_work, since, waits_since } }
state! { Planes { of_die, has_effect } fixed { dies, groups, planes_per_group, read_hold } }
