//! The steps of recovery after power has returned, in order.

use super::mechanisms::each_mechanism;
use super::{Drive, build};
use crate::base::geometry::{LaneId, Lpn, SuperblockId};
use crate::base::lost::{Content, Recovered};
use crate::base::units::Span;
use crate::core::{BeforeLoss, Mechanism, Offline, State, Wake};
use crate::demand_map::Mapping;
use crate::ftl::Ftl;
use crate::host::AfterLoss;
use crate::power_loss::{AtRisk, Recovery};
use crate::probe::Probe;
use std::collections::BTreeMap;

/// What a power loss may have destroyed of a unit.
#[derive(Default)]
struct UnitAtRisk {
    /// Whether data of acknowledged writes, or the record of a TRIM, was only in RAM or has been destroyed.
    is_at_risk: bool,
    /// The writes that have been destroyed in flash, by their sequence numbers.
    destroyed: Vec<u64>,
    /// The TRIMs that are undone, because older data is back.
    undone_trims: Vec<u64>,
}

impl<P: Probe> Drive<P> {
    /// Power returns: rebuilds the drive from flash. The empty capacitor is recharged while the drive works.
    ///
    /// # Panics
    /// When power is not off.
    pub fn restore_power(&mut self) {
        assert!(self.core.state().is_off, "power is on");
        self.core.set_state(State { is_off: false, ..*self.core.state() });
        let mut recovery = Recovery::default();
        let torn_erases = std::mem::take(&mut self.losses.torn_erases);
        Offline::new(&mut self.core).forget_counts();
        let mut busy_ns = vec![Span::ZERO; self.core.geometry().dies as usize];
        let channel_ns_per_byte = self.spec.timing.channel_ns_per_byte;
        let (mut found, scan_ns) = self.with_return(&mut busy_ns, &mut recovery, |on_return, trims| {
            for superblock in torn_erases {
                on_return.erase(superblock);
            }
            on_return.end_erases();
            let found = on_return.read_oobs(trims);
            on_return.recovery.scanned_pages = found.scanned.iter().sum();
            let scan_ns = on_return.scan_ns(&found, channel_ns_per_byte);
            (found, scan_ns)
        });
        let before = self.start_afresh();
        self.with_return(&mut busy_ns, &mut recovery, |on_return, _| {
            on_return.take_back_copies(&mut found);
            on_return.rebuild_map(&found);
        });
        self.recover_mechanisms(&before);
        drop(before);
        if self.power.capacitor.is_some() {
            self.use_lsb_pages_only();
        }
        let lost = self
            .with_return(&mut busy_ns, &mut recovery, |on_return, _| on_return.merge_partial_units(&found));
        self.on_not_recovered(&lost);
        self.losses.at_risk.in_ram.extend(lost.into_iter().map(|(lpn, _)| lpn));
        self.record_losses();
        for superblock in (0..self.core.geometry().superblocks).map(SuperblockId) {
            self.core.look_if_dead(superblock);
        }
        recovery.ns = scan_ns + busy_ns.iter().copied().max().unwrap_or(Span::ZERO);
        self.core.advance_to(self.core.now() + recovery.ns);
        self.losses.down_ns += recovery.ns;
        if self.power.capacitor.is_some() {
            let recharge_ns = self.spec.capacitor.recharge_ns;
            self.power.begin_recharge(&mut self.core, recharge_ns);
            // Recovery may have collected superblocks, whose copies are the only ones.
            for lane in (0..self.core.geometry().lanes).map(LaneId) {
                self.core.end_wordlines(lane);
            }
            self.forbid_dirty_units();
        } else {
            self.with_power(|power, core, kept| power.restore_budget(core, kept));
        }
        self.core.set_clock(self.core.idle_clock(), self.core.now() + self.spec.gc.idle_after_ns);
        recovery.stale_translation_pages = self.path.map.as_ref().map_or(0, Mapping::stale_pages);
        self.began();
        for lane in (0..self.core.geometry().lanes).map(LaneId) {
            self.core.wake(Wake::Space(lane));
        }
        self.serve();
        let loss = self.losses.list.last_mut().expect("power has failed");
        loss.recovery = Some(recovery);
    }

    /// Lists the units about which the power loss has broken a promise to the host, and notifies the probe.
    fn record_losses(&mut self) {
        let Self { path, core, losses, caching, .. } = self;
        let (logical_units, unit_bytes) = (core.geometry().logical_units, core.geometry().unit_bytes);
        let (probe, data) = core.probe_and_data();
        let promises = path.host.promises.as_mut().expect("a drive with sequence numbers keeps promises");
        let AtRisk { in_ram, destroyed, trims, in_flight } = std::mem::take(&mut losses.at_risk);
        let sequence = |lpn: Lpn| data.sequence(lpn);
        let is_unreadable =
            |lpn: Lpn| caching.as_ref().is_some_and(|caching| caching.lost.contains_key(&lpn.0));
        let mut units: BTreeMap<u32, UnitAtRisk> = BTreeMap::new();
        for lpn in in_ram {
            units.entry(lpn.0).or_default().is_at_risk = true;
        }
        for &(lpn, sequence) in &destroyed {
            let unit = units.entry(lpn.0).or_default();
            unit.is_at_risk = true;
            unit.destroyed.push(sequence);
        }
        for (lpn, trimmed) in trims {
            match sequence(lpn) {
                None => path.host.trims.keep(lpn, trimmed),
                Some(back) if back < trimmed => {
                    let unit = units.entry(lpn.0).or_default();
                    unit.is_at_risk = true;
                    unit.undone_trims.push(trimmed);
                }
                Some(_) => {}
            }
        }
        for &lpn in in_flight.keys() {
            units.entry(lpn).or_default();
        }
        let records = &path.host.trims;
        let content = |lpn: Lpn| {
            if is_unreadable(lpn) {
                return Content::Unreadable;
            }
            let without_data = || records.newest(lpn).map_or(Content::Nothing, Content::Trimmed);
            sequence(lpn).map_or_else(without_data, Content::Write)
        };
        let loss = losses.list.last_mut().expect("power has failed");
        for (&lpn, unit) in &units {
            let content = content(Lpn(lpn));
            let held = content.held();
            let after = AfterLoss {
                lpn: Lpn(lpn),
                held,
                is_at_risk: unit.is_at_risk,
                in_flight: in_flight.get(&lpn).copied(),
                undone_trims: &unit.undone_trims,
                destroyed: &unit.destroyed,
            };
            loss.lost.extend(promises.broken(&after));
            if unit.is_at_risk {
                promises.keep(Lpn(lpn), held);
            }
            if let Content::Write(sequence) = content
                && in_flight.contains_key(&lpn)
            {
                promises.on_found(Lpn(lpn), sequence);
            }
        }
        let recovered =
            Recovered { units: logical_units, unit_bytes, destroyed: &destroyed, content: &content };
        probe.on_power_loss(&loss.lost, &recovered);
    }

    /// Replaces the state in RAM that power loss destroys by fresh state. Returns the old FTL.
    fn start_afresh(&mut self) -> Ftl {
        let fresh = build::ftl(&self.spec, &self.policies, self.core.geometry(), self.core.flash());
        let mut offline = Offline::new(&mut self.core);
        let before = offline.forget_ram(fresh);
        each_mechanism!(&mut self, |mechanism| mechanism.power_lost(&mut offline));
        self.renew_policies();
        before
    }

    /// The map has been rebuilt: the mechanisms rebuild what follows from it. `before`: the FTL before the power loss.
    fn recover_mechanisms(&mut self, before: &Ftl) {
        let remapped = std::mem::take(&mut self.losses.remapped);
        let before = BeforeLoss { map: &before.map, remapped: &remapped };
        let mut offline = Offline::new(&mut self.core);
        each_mechanism!(&mut self, |mechanism| mechanism.recovered(&mut offline, &before));
    }

    /// Restricts the host's streams to LSB pages, because programs may be torn while the capacitor is empty.
    fn use_lsb_pages_only(&mut self) {
        for lane in (0..self.core.geometry().lanes).map(LaneId) {
            self.core.set_host_lsb_only(lane, true);
        }
    }
}
