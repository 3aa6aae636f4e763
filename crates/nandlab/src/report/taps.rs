//! The set of the observers of a drive: the oracle, the timeline and any further observers.
//!
//! A drive is compiled once for each type of its probe. Product code has two: `NoProbe` and [`Taps`]. A further observer
//! implements [`Probe`] and is added to the set ([`Taps::with`]), so the drive is not compiled again for it.
//!
//! An event goes to the oracle first, then to the explainer and to the timeline, then to the further observers in the order
//! in which they were added. Oracle, explainer and timeline are called directly, the others dynamically. In a set that is no
//! more than an oracle, an event costs one check of a flag besides the call of the oracle. Most events say how the drive
//! works; the further observers get them only if one of them sees them ([`Probe::sees_work`]).

use super::{Explainer, Timeline};
use crate::base::geometry::{DieId, Lpn, RequestId};
use crate::base::lost::{Lost, Recovered};
use crate::base::request::{Completion, Request};
use crate::base::state::{StateError, StateReader, StateWriter, load_part, save_part};
use crate::base::units::Time;
use crate::host::Oracle;
use crate::probe::Probe;
use crate::sched::{Phase, Transaction, Watcher};
use std::any::Any;

/// The observers of a drive. The set is complete before the drive is built, because the drive then decides what it
/// keeps for its observers ([`Probe::needs_sequences`]).
#[derive(Default)]
pub struct Taps {
    oracle: Option<Oracle>,
    timeline: Option<Timeline>,
    explainer: Option<Explainer>,
    /// The explainer while it is told of no events.
    resting: Option<Explainer>,
    others: Vec<Box<dyn Probe>>,
    /// Whether the set has observers besides the oracle, and whether it has any besides oracle and explainer: those of
    /// how the drive works, and all.
    has_more: bool,
    rest_sees_work: bool,
    has_rest: bool,
    /// Whether there are further observers, and whether one of them sees how the drive works.
    has_others: bool,
    others_see_work: bool,
    needs_sequences: bool,
    sees_phases: bool,
}

impl Taps {
    /// The set of an oracle and a timeline, if there are any.
    pub fn new(oracle: Option<Oracle>, timeline: Option<Timeline>) -> Self {
        let mut taps = Self::default();
        if let Some(oracle) = &oracle {
            taps.answer_for(oracle);
        }
        if let Some(timeline) = &timeline {
            taps.answer_for(timeline);
        }
        let has_timeline = timeline.is_some();
        let (has_more, rest_sees_work, has_rest) = (has_timeline, has_timeline, has_timeline);
        Self { has_more, rest_sees_work, has_rest, oracle, timeline, ..taps }
    }

    /// The set with an explainer.
    #[must_use]
    pub fn explaining(mut self, explainer: Explainer) -> Self {
        self.answer_for(&explainer);
        self.explainer = Some(explainer);
        self.has_more = true;
        self
    }

    /// Tells the explainer of no more events: while it rests, an event costs nothing more than without an explainer.
    pub fn rest_explainer(&mut self) {
        self.resting = self.explainer.take().or(self.resting.take());
    }

    /// Tells an explainer that rests of events again, from `now` on.
    pub fn wake_explainer(&mut self, now: Time) {
        if let Some(mut explainer) = self.resting.take() {
            explainer.wake(now);
            self.explainer = Some(explainer);
        }
    }

    /// Whether there is an explainer that is told of events.
    pub fn explains(&self) -> bool {
        self.explainer.is_some()
    }

    /// The set with one more observer.
    #[must_use]
    pub fn with(mut self, observer: impl Probe) -> Self {
        self.answer_for(&observer);
        self.others_see_work |= observer.sees_work();
        self.rest_sees_work |= self.others_see_work;
        self.has_rest = true;
        self.others.push(Box::new(observer));
        (self.has_more, self.has_others) = (true, true);
        self
    }

    fn answer_for(&mut self, observer: &impl Probe) {
        self.needs_sequences |= observer.needs_sequences();
        self.sees_phases |= observer.sees_phases();
    }

    /// Whether the set has no observer.
    pub fn is_empty(&self) -> bool {
        self.oracle.is_none() && !self.has_more
    }

    /// The oracle.
    pub fn oracle(&self) -> Option<&Oracle> {
        self.oracle.as_ref()
    }

    /// The oracle, mutable.
    pub fn oracle_mut(&mut self) -> Option<&mut Oracle> {
        self.oracle.as_mut()
    }

    /// The timeline.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.timeline.as_ref()
    }

    /// The explainer, whether it rests or not.
    pub fn explainer(&self) -> Option<&Explainer> {
        self.explainer.as_ref().or(self.resting.as_ref())
    }

    /// The explainer, mutable.
    pub fn explainer_mut(&mut self) -> Option<&mut Explainer> {
        self.explainer.as_mut().or(self.resting.as_mut())
    }

    /// The first further observer of this type.
    pub fn observer<T: Probe>(&self) -> Option<&T> {
        self.others.iter().find_map(|observer| {
            let observer: &dyn Any = &**observer;
            observer.downcast_ref()
        })
    }

    /// The first further observer of this type, mutable.
    pub fn observer_mut<T: Probe>(&mut self) -> Option<&mut T> {
        self.others.iter_mut().find_map(|observer| {
            let observer: &mut dyn Any = &mut **observer;
            observer.downcast_mut()
        })
    }

    /// Passes an event on to the further observers.
    #[inline(never)]
    fn tell(&mut self, event: impl Fn(&mut dyn Probe)) {
        for observer in &mut self.others {
            event(&mut **observer);
        }
    }
}

impl std::fmt::Debug for Taps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { oracle, timeline, explainer, resting, others, .. } = self;
        f.debug_struct("Taps")
            .field("oracle", oracle)
            .field("timeline", timeline)
            .field("explainer", &(explainer.is_some() || resting.is_some()))
            .field("others", &others.len())
            .finish()
    }
}

/// Methods that pass their event on to every observer of the set. The first flag says whether it may have any besides
/// oracle and explainer, the second one whether the further observers are told. The values
/// of the event are moved into the call of the further observers, so that without them no value has to be in memory.
macro_rules! pass_on {
    ($rest:ident, $told:ident; $($method:ident($($name:ident: $kind:ty),*);)+) => {$(
        #[inline]
        fn $method(&mut self, $($name: $kind),*) {
            if let Some(oracle) = &mut self.oracle {
                oracle.$method($($name),*);
            }
            if self.has_more {
                if let Some(explainer) = &mut self.explainer {
                    explainer.$method($($name),*);
                }
                if self.$rest {
                    if let Some(timeline) = &mut self.timeline {
                        timeline.$method($($name),*);
                    }
                    if self.$told {
                        self.tell(move |observer| observer.$method($($name),*));
                    }
                }
            }
        }
    )+};
}

impl Watcher for Taps {
    #[inline(always)]
    fn sees_phases(&self) -> bool {
        self.sees_phases
    }

    pass_on! {
        rest_sees_work, others_see_work;
        on_issue(now: Time, die: DieId, transaction: &Transaction);
        on_joined(now: Time, die: DieId, first: &Transaction, transaction: &Transaction);
        on_phase(start: Time, end: Time, die: DieId, channel: u32, phase: Phase, transaction: &Transaction);
        on_suspend(now: Time, ready: Time, die: DieId);
        on_resume(now: Time, die: DieId);
    }
}

impl Probe for Taps {
    #[inline(always)]
    fn needs_sequences(&self) -> bool {
        self.needs_sequences
    }

    /// The timeline begins anew in a restored drive.
    fn save(&self, out: &mut StateWriter<'_>) {
        save_part(&self.oracle, out);
        self.others.iter().for_each(|observer| observer.save(out));
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        load_part(&mut self.oracle, from)?;
        self.others.iter_mut().try_for_each(|observer| observer.load(from))
    }

    pass_on! {
        rest_sees_work, others_see_work;
        on_reached(now: Time, slot: RequestId);
        on_begun(now: Time, slot: RequestId);
        on_done(now: Time, slot: RequestId);
        on_queued(now: Time, transaction: &Transaction);
        on_ended(now: Time, transaction: &Transaction);
        on_access(now: Time, end: Time, slot: RequestId);
        on_accessed(slot: RequestId);
        on_timer(now: Time);
        on_decode(start: Time, end: Time, channel: u32, level: u8, transaction: &Transaction);
    }

    pass_on! {
        has_rest, has_others;
        on_submitted(slot: RequestId, id: u64, request: &Request, operations: u64);
        on_results(operations: u64);
        on_write_admitted(request: Option<RequestId>, lpn: Lpn, sequence: u64);
        on_write_durable(lpn: Lpn, sequence: u64);
        on_flush_asked(id: u64);
        on_flushed(id: u64, from_cache: bool);
        on_power_off(failed: Time, off: Time);
        on_power_loss(lost: &[Lost], recovered: &Recovered<'_>);
        on_fua_cached(lpn: Lpn, sequence: u64);
        on_write_acknowledged(lpn: Lpn, sequence: u64);
        on_trimmed(request: RequestId, lpn: Lpn, sequence: u64);
        on_read_asked(request: RequestId, lpn: Lpn);
        on_read_answered(request: RequestId, lpn: Lpn, sequence: Option<u64>);
        on_read_failed(request: RequestId, lpn: Lpn);
        on_completed(slot: RequestId, done: &Completion);
    }
}

#[cfg(test)]
mod tests;
