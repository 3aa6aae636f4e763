//! The steps of recovery after power has returned, in order.

use super::mechanisms::each_mechanism;
use super::spec::RefreshPolicySpec;
use super::{Drive, build};
use crate::base::geometry::{LaneId, Lpn, SuperblockId};
use crate::base::lost::{Content, Recovered};
use crate::core::{BeforeLoss, Mechanism, Offline, State, Wake};
use crate::demand_map::Mapping;
use crate::host::AfterLoss;
use crate::power_loss::{AtRisk, Attempt, PowerFails, RecoveryCut};
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
    /// Power returns: rebuilds the drive from flash. The empty capacitor is recharged while the drive works. With
    /// `power.cut_in_recovery` power first fails once more, at this time after its return, if recovery takes longer.
    ///
    /// # Panics
    /// When power is not off.
    pub fn restore_power(&mut self) {
        if let Some(after) = self.spec.power.cut_in_recovery_ns
            && !self.cut_recovery(RecoveryCut::After(after))
        {
            return;
        }
        let has_ended = self.recover(None);
        debug_assert!(has_ended, "a recovery without a cut ends");
    }

    /// Power returns, and fails again during recovery. The steps of recovery before the cut are done, the step under way
    /// is torn, and power is off again: the next [`Drive::restore_power`] or `cut_recovery` begins recovery anew.
    /// Returns whether power has failed; `false` if recovery has ended before, so that the drive is ready. What is lost
    /// is found out, and listed in the record of the power loss, when a recovery ends.
    ///
    /// # Panics
    /// When power is not off.
    pub fn cut_recovery(&mut self, at: RecoveryCut) -> bool {
        !self.recover(Some(at))
    }

    /// Power returns. Returns whether recovery has ended before the `cut`.
    fn recover(&mut self, cut: Option<RecoveryCut>) -> bool {
        assert!(self.core.state().is_off, "power is on");
        self.core.set_state(State { is_off: false, ..*self.core.state() });
        let losses = &mut self.losses;
        let (so_far, torn_erases) =
            (std::mem::take(&mut losses.recovery), std::mem::take(&mut losses.torn_erases));
        let mut attempt = Attempt::new(self.core.geometry().dies, cut, so_far, torn_erases);
        let rebuilt = self.rebuild(&mut attempt);
        attempt.recovery.ns += attempt.elapsed_ns;
        self.losses.at_risk.destroyed.append(&mut attempt.destroyed);
        match rebuilt {
            Ok(lost) => {
                self.end_recovery(attempt, &lost);
                true
            }
            Err(PowerFails) => {
                self.fail_in_recovery(attempt);
                false
            }
        }
    }

    /// Rebuilds the drive from flash, step by step. Returns the LPN and the sequence number of each unit of the write
    /// cache that cannot be completed.
    ///
    /// # Errors
    /// If power fails before the last step has ended.
    fn rebuild(&mut self, attempt: &mut Attempt) -> Result<Vec<(Lpn, u64)>, PowerFails> {
        // An attempt that power ends would leave neither the map from before the power loss nor that of flash.
        let is_whole = !attempt.may_fail() && attempt.recovery.cuts == 0;
        let looks_at_all = !is_whole || !self.notes_changes();
        let suspects = self.losses.suspects(&self.core);
        let kept = (!looks_at_all).then_some(&suspects);
        match kept {
            None => Offline::new(&mut self.core).forget_counts(),
            Some(_) => Offline::new(&mut self.core).forget_pins(),
        }
        let channel_ns_per_byte = self.spec.timing.channel_ns_per_byte;
        let since = self.losses.list.last().expect("power has failed").at;
        let mut found = self.with_return(attempt, |on_return, trims| {
            on_return.end_erases()?;
            let found = on_return.read_oobs(trims, since, kept);
            on_return.scan(&found, channel_ns_per_byte)?;
            Ok(found)
        })?;
        self.start_afresh(kept.is_some());
        let mut changed = self.with_return(attempt, |on_return, _| {
            on_return.take_back_copies(&mut found)?;
            Ok(on_return.rebuild_map(&mut found, kept))
        })?;
        if let Some(before) = &self.losses.before {
            let now = &self.core.ftl().map;
            let lpns = (0..now.len()).map(Lpn).filter(|&lpn| now.get(lpn) != before.map.get(lpn));
            changed = lpns.map(|lpn| (lpn, before.map.get(lpn))).collect();
        }
        self.losses.note_twins(&self.core, &suspects, changed.iter().filter_map(|&(_, unit)| unit));
        let changed: Vec<Lpn> = changed.into_iter().map(|(lpn, _)| lpn).collect();
        self.recover_mechanisms(&changed);
        self.losses.changed = changed;
        if self.power.capacitor.is_some() {
            self.use_lsb_pages_only();
        }
        self.with_return(attempt, |on_return, _| on_return.merge_partial_units(&found))
    }

    /// Power has failed again during recovery.
    fn fail_in_recovery(&mut self, attempt: Attempt) {
        let Attempt { elapsed_ns, mut recovery, torn_erases, .. } = attempt;
        recovery.cuts += 1;
        Offline::new(&mut self.core).stop_dies();
        self.core.set_state(State { is_off: true, ..*self.core.state() });
        self.core.advance_to(self.core.now() + elapsed_ns);
        let losses = &mut self.losses;
        losses.down_ns += elapsed_ns;
        (losses.recovery, losses.torn_erases) = (recovery, torn_erases);
    }

    /// The drive has been rebuilt, and begins to work. `lost`: see [`Drive::rebuild`].
    fn end_recovery(&mut self, attempt: Attempt, lost: &[(Lpn, u64)]) {
        let Attempt { elapsed_ns, mut recovery, .. } = attempt;
        (self.losses.before, self.losses.mapped) = (None, Vec::new());
        self.on_not_recovered(lost);
        self.losses.at_risk.in_ram.extend(lost.iter().map(|&(lpn, _)| lpn));
        self.record_losses();
        for superblock in (0..self.core.geometry().superblocks).map(SuperblockId) {
            self.core.look_if_dead(superblock);
        }
        self.core.advance_to(self.core.now() + elapsed_ns);
        self.losses.down_ns += elapsed_ns;
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
        let notes_changes = self.notes_changes();
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
        let mut changed = std::mem::take(&mut losses.changed);
        changed.extend(units.keys().map(|&lpn| Lpn(lpn)));
        changed.append(&mut losses.remapped);
        let changed = notes_changes.then_some(&changed[..]);
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
            Recovered { units: logical_units, unit_bytes, destroyed: &destroyed, content: &content, changed };
        probe.on_power_loss(&loss.lost, &recovered);
    }

    /// Whether what may have changed at a power loss is known (`power_loss/changes.rs`). Refresh moves and unmaps units
    /// without an erase of their superblock; a write cache may write the same data to flash several times.
    pub(super) fn notes_changes(&self) -> bool {
        self.spec.refresh.policy == RefreshPolicySpec::None && self.caching.is_none()
    }

    /// Replaces the state in RAM that power loss destroys by fresh state. Keeps the FTL before the power loss, or only its map,
    /// in the fresh one.
    fn start_afresh(&mut self, keeps_map: bool) {
        let mut offline = Offline::new(&mut self.core);
        if keeps_map {
            let fresh = offline.renew_ftl(build::ftl_config(&self.spec, &self.policies, offline.geometry()));
            offline.forget_ram(fresh);
        } else {
            let fresh = build::ftl(&self.spec, &self.policies, offline.geometry(), offline.flash());
            let before = offline.forget_ram(fresh);
            // That of a recovery which power has ended is of no use.
            self.losses.before.get_or_insert(before);
        }
        each_mechanism!(&mut self, |mechanism| mechanism.power_lost(&mut offline));
        self.renew_policies();
    }

    /// The map has been rebuilt: the mechanisms rebuild what follows from it. `changed`: see [`BeforeLoss`].
    fn recover_mechanisms(&mut self, changed: &[Lpn]) {
        let before = BeforeLoss { changed, remapped: &self.losses.remapped };
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
