//! The steps of a power loss, in order. The code in `power_loss/` ends or tears the operations under way and saves
//! dirty units in an emergency flush; this file also aborts the outstanding requests.

use super::Drive;
use super::spec::EnergySpec;
use crate::base::geometry::Lpn;
use crate::base::units::Span;
use crate::core::{Offline, State};
use crate::ftl::FlushMethod;
use crate::host::{Completion, FailReason, Host, InFlight, InWork};
use crate::power_loss::{AtRisk, Dirty, GcMeans, Means, PowerLoss, in_order_of_programs};
use crate::probe::Probe;
use crate::sched::NEVER;
use std::collections::BTreeMap;

impl<P: Probe> Drive<P> {
    /// Power fails at the next event.
    #[cold]
    pub(super) fn cut_power_soon(&mut self) {
        self.power.cut_at = self.core.now();
        self.power.set_clock(&mut self.core);
    }

    /// Power fails now and returns as soon as the drive has stopped. Returns the record of the power loss.
    ///
    /// # Panics
    /// If the drive keeps no sequence numbers to recover from (its spec models no power loss, and the drive has no
    /// oracle), or power is off already.
    pub fn cut_power(&mut self) -> &PowerLoss {
        self.lose_power();
        self.restore_power();
        self.losses.list.last().expect("power has just failed")
    }

    /// Power fails now: all state in RAM is lost. [`Drive::restore_power`] rebuilds the drive from flash.
    ///
    /// # Panics
    /// If the drive keeps no sequence numbers (see [`Drive::cut_power`]), or power is off already.
    pub fn lose_power(&mut self) {
        assert!(
            self.core.flash().keeps_sequences(),
            "the drive keeps no sequence numbers: its spec models no power loss"
        );
        assert!(!self.core.state().is_off, "power is off already");
        self.core.set_state(State { is_off: true, ..*self.core.state() });
        self.power.cut_at = NEVER;
        let mut loss = PowerLoss {
            at: self.core.now(),
            energy_j: self.power.energy_j(self.core.now()),
            aborted_requests: self.path.host.requests.live(),
            ..PowerLoss::default()
        };
        loss.capacitor_loss = self
            .power
            .capacitor
            .as_ref()
            .map_or(0.0, |capacitor| capacitor.loss(self.power.age_s(self.core.now())));
        let finishes = self.power.finishes();
        let mut dirty = self.dirty_at_power_loss(finishes, &mut loss);
        let mut in_ram = self.lost_earlier();
        let in_flight = self.abort_requests();
        Offline::new(&mut self.core).drop_queues();
        if finishes {
            let units_per_program = self.core.first_shape().units_per_program;
            dirty = in_order_of_programs(dirty, self.core.placements(), units_per_program);
            self.flush_on_capacitor(&mut dirty, &mut loss);
        } else {
            self.losses.torn_erases = self.with_power_loss(|outage, _| outage.tear(&mut loss));
        }
        let trims = self.end_trims(&dirty);
        Offline::new(&mut self.core).stop_dies();
        self.core.probe.on_power_off(loss.at, self.core.now());
        in_ram.extend(dirty.iter().filter(|unit| unit.has_unflushed && !unit.is_saved).map(|unit| unit.lpn));
        self.losses.at_risk =
            AtRisk { in_ram, destroyed: std::mem::take(&mut loss.destroyed), trims, in_flight };
        self.losses.down_ns += self.core.now() - loss.at;
        self.losses.list.push(loss);
    }

    /// The deallocations that the capacitor backs up become durable if the flush has written all units of their
    /// records. Returns those that are not durable.
    fn end_trims(&mut self, dirty: &[Dirty]) -> Vec<(Lpn, u64)> {
        let host = &mut self.path.host;
        if host.is_backed && dirty.iter().all(|unit| unit.is_saved || !unit.is_trims()) {
            host.trims.make_durable();
        }
        host.trims.take_pending()
    }

    /// Lets operations under way end, and programs dirty units and lines of the VSM until all are saved or the energy
    /// is used up.
    fn flush_on_capacitor(&mut self, dirty: &mut [Dirty], loss: &mut PowerLoss) {
        let capacitor = self.power.capacitor.clone().expect("a flush needs a capacitor");
        let method = self.spec.capacitor.flush;
        let at_a_time = match method {
            FlushMethod::Plain => self.power.concurrency(),
            FlushMethod::Csw => self.core.geometry().dies,
        };
        let spent_j = |flush_ns: Span, program_ns: Span| {
            capacitor.spent_j(flush_ns.ns() as f64, program_ns.ns() as f64)
        };
        let gc = self.spec.power.gc_in_flush.then(|| {
            // An erase makes older deallocations durable.
            self.path.host.trims.make_durable();
            let gain_min = self.core.garbage_per_superblock();
            let EnergySpec { read_j, erase_j, .. } = self.spec.energy;
            GcMeans { read_j, erase_j, gain_min }
        });
        let means = Means { method, at_a_time, spent_j: &spent_j, gc };
        self.with_power_loss(|outage, sampled| {
            outage.flush(&means, dirty, loss, |core, time| sampled.rows_until(core, time));
        });
        loss.spent_j = spent_j(loss.flush_ns, loss.program_ns) + loss.gc_j;
        self.power.capacitor.as_mut().expect("a flush needs a capacitor").cycle(1);
    }

    /// Ends all outstanding requests with [`FailReason::PowerLost`]. Returns, by LPN, the units of their writes.
    fn abort_requests(&mut self) -> BTreeMap<u32, InFlight> {
        let aborted = self.path.host.requests.take_all();
        let open = self.path.host.epochs.open();
        let units = |work: &InWork| Host::units(&self.core, &work.request);
        let promises =
            self.path.host.promises.as_mut().expect("a drive with sequence numbers keeps promises");
        let in_flight = promises.on_power_loss(&aborted, open, units);
        if let Some(link) = &mut self.path.host.link {
            link.clear(self.core.now());
        }
        if let Some(controller) = &mut self.path.host.controller {
            controller.clear(self.core.now());
        }
        let host = &mut self.path.host;
        host.record.on_aborted(self.core.now(), aborted.len() as u32);
        if host.requests.completed() >= host.results_after {
            let after_warm_up = host.requests.completed() - host.results_after;
            host.begin_results(&self.core);
            host.record.failed[FailReason::PowerLost as usize] = after_warm_up;
            self.begin_results();
        }
        for request in aborted {
            let InWork { id, request, .. } = request;
            let completion =
                Completion { id, request, completed: self.core.now(), failed: Some(FailReason::PowerLost) };
            self.path.host.completions.push(completion);
        }
        in_flight
    }
}
