//! Interactions between mechanisms: if a row of the table "Together" in ARCHITECTURE.md is a call from one mechanism to
//! another, the call is a function in this file. No mechanism imports another one: a mechanism declares its queries to
//! others as a trait, which is implemented here.

use super::Drive;
use super::schemes::Schemes;
use super::spec::FlushTo;
use super::stats::Sampled;
use crate::background::{Around, Background};
use crate::base::geometry::{CacheSlot, LaneId, Lpn, SuperblockId, UnitId};
use crate::base::units::Span;
use crate::capacitor::{Kept, PowerBackup};
use crate::core::{CopyBack, Core, Map, NextJob, Queued, Refreshed};
use crate::demand_map::Mapping;
use crate::ftl::{AllocatedUnit, WriteStream};
use crate::host::{Buffer, DataPath, Host, Trims};
use crate::power_loss::{self, Outage, Recovery, Return};
use crate::probe::Probe;
use crate::refresh::{Partial, Refreshing};
use crate::sched::{Owner, Transaction};
use crate::write_cache::Caching;

/// The path of a unit between host and flash, with the demand map of this drive.
pub(super) type Path = DataPath<Option<Mapping>>;

/// The mechanisms that background jobs query.
pub(super) struct Jobs<'a> {
    schemes: &'a mut Schemes,
    caching: Option<&'a mut Caching>,
}

impl<P: Probe> Around<P> for Jobs<'_> {
    fn next_job(&mut self, core: &mut Core<P>, lane: LaneId) -> Option<NextJob> {
        self.schemes.next_job(core, lane)
    }

    fn refresh_unit(&mut self, core: &mut Core<P>, lane: LaneId, read: &Transaction) -> Refreshed {
        self.schemes.refreshing.refresh_unit(core, lane, read)
    }

    fn end_staying(&mut self, core: &mut Core<P>, lane: LaneId, superblock: SuperblockId) {
        self.schemes.refreshing.end_staying(core, lane, superblock);
    }

    /// The policy `rcopyback` decides by the load of the write buffer: the write cache or `ftl.buffer`.
    fn copyback_stream(
        &mut self,
        core: &mut Core<P>,
        host: &mut Host,
        lane: LaneId,
        victim: SuperblockId,
        job: &NextJob,
    ) -> Option<WriteStream> {
        let Self { schemes, caching } = self;
        let buffer = |core: &Core<P>| match (caching, &mut host.buffer) {
            (Some(caching), _) => caching.load(core.now),
            (None, Some(buffer)) => buffer.load(core.now),
            (None, None) => 0.0,
        };
        schemes.copyback.copyback_stream(core, lane, victim, job, buffer)
    }

    fn may_copy_back(&mut self, core: &mut Core<P>, lane: LaneId, stream: WriteStream, unit: UnitId) -> bool {
        self.schemes.copyback.may_copy_back(core, lane, stream, unit)
    }

    fn on_left_over(&mut self) {
        self.schemes.copyback.stats.left_over += 1;
    }

    fn copy_back(&mut self, core: &mut Core<P>, copyback: CopyBack<'_>) -> Queued {
        self.schemes.copyback.copy_back(core, copyback)
    }

    /// A combination page has moved: its entries now belong to its new place.
    fn on_moved(&mut self, _core: &mut Core<P>, lpn: Lpn, to: UnitId) {
        if let Some(partial) = &mut self.schemes.refreshing.partial {
            partial.stage(lpn, to);
        }
    }
}

/// The mechanisms that the capacitor backs up.
pub(super) struct Saved<'a> {
    /// Whether FUA writes and flushes are acknowledged from the write cache while its budget is above 0
    /// (`cache.flush_to` = `cache`, and a capacitor).
    acknowledges: bool,
    caching: &'a mut Option<Caching>,
    path: &'a mut Path,
    refreshing: &'a mut Refreshing,
}

impl<P: Probe> Kept<P> for Saved<'_> {
    fn cache_units(&self) -> u32 {
        let buffer = self.path.host.buffer.as_ref();
        let of_buffer = buffer.map_or(0, Buffer::capacity);
        self.caching.as_ref().map_or(of_buffer, |caching| caching.cache.capacity())
    }

    fn budget_units(&self, share: f64) -> Option<u32> {
        let Some(Caching { cache, .. }) = &*self.caching else {
            return self.path.host.buffer.as_ref().map(Buffer::capacity);
        };
        Some(if cache.sync().keeps_budget() { cache.units_of(share) } else { cache.capacity() })
    }

    /// A budget above 0 is set only while the capacitor is charged.
    fn set_budget(&mut self, core: &mut Core<P>, units: u32) {
        if let Some(buffer) = &mut self.path.host.buffer {
            buffer.set_budget(units);
        }
        if let Some(caching) = self.caching {
            caching.set_budget(units);
            if self.acknowledges {
                self.path.host.set_backed(core, units > 0);
            }
        }
    }

    /// The capacitor also backs up the VSM, so the VSM is emptied before the capacitor is drained.
    fn begin_sync(&mut self, core: &mut Core<P>) {
        if let Some(partial) = &mut self.refreshing.partial {
            partial.empty_vsm(core);
        }
        if let Some(caching) = self.caching {
            caching.sync_more(core, self.path);
        }
    }

    fn is_synced(&self) -> bool {
        let is_synced = self.caching.as_ref().is_none_or(|caching| caching.cache.unflushed() == 0);
        is_synced && !self.refreshing.partial.as_ref().is_some_and(Partial::has_lines_under_way)
    }

    fn take_clean(&mut self, core: &mut Core<P>, next_slot: &mut u32) -> Option<(CacheSlot, Lpn, u64)> {
        let caching = self.caching.as_mut().expect("a detection needs a write cache");
        let (cache, whole) = (&mut caching.cache, caching.whole);
        let slot = cache.next_clean(next_slot, whole)?;
        let epoch = self.path.host.epochs.open();
        self.path.host.epochs.join_unit(epoch);
        cache.begin_rewrite(slot, epoch);
        let (lpn, sequence) = (cache.entry(slot).lpn, cache.entry(slot).sequence);
        self.path.map.keep_entry(core, lpn);
        Some((slot, lpn, sequence))
    }

    fn on_rewrite_queued(&mut self, core: &mut Core<P>, lpn: Lpn) {
        self.path.map.on_written(core, lpn);
    }

    fn end_rewrite(&mut self, core: &mut Core<P>, slot: CacheSlot) {
        if let Some(caching) = self.caching {
            caching.end_write_back(core, self.path, slot);
        }
    }

    /// A reprogram in place must not be torn.
    fn is_reprogramming(&self) -> bool {
        self.refreshing.refresh.is_reprogramming()
    }
}

/// The mechanisms that are notified of power loss and recovery.
pub(super) struct Off<'a> {
    schemes: &'a mut Schemes,
}

impl<P: Probe> power_loss::Schemes<P> for Off<'_> {
    fn on_first_program(&mut self, core: &mut Core<P>, superblock: SuperblockId) {
        self.schemes.refreshing.refresh.age_from_power_loss(core, superblock);
    }

    /// Data that has been copied back keeps its age.
    fn on_copied_back(&mut self, to: SuperblockId, from: SuperblockId) {
        self.schemes.refreshing.refresh.age_as_from_power_loss(to, from);
    }

    fn count_copyback(&mut self, in_a_row: u8) {
        self.schemes.copyback.stats.on_copyback(in_a_row);
    }

    fn on_erased(&mut self, core: &mut Core<P>, superblock: SuperblockId) {
        self.schemes.refreshing.on_erased(core, superblock);
    }

    fn on_unit_obsolete(&mut self, core: &mut Core<P>, unit: UnitId) {
        self.schemes.refreshing.on_unit_obsolete(core, unit);
    }

    fn on_blank(&mut self, first: UnitId, end: UnitId) {
        if let Some(partial) = &mut self.schemes.refreshing.partial {
            partial.links.blank(first, end);
        }
    }

    fn lines(&mut self, under_way: &[Transaction]) -> Vec<Lpn> {
        self.schemes
            .refreshing
            .partial
            .as_mut()
            .map_or_else(Vec::new, |partial| partial.lines_at_power_loss(under_way))
    }

    fn place_lines(&mut self, core: &mut Core<P>) -> Option<AllocatedUnit> {
        Partial::place_lines_at_power_loss(core)
    }

    fn stage(&mut self, lpn: Lpn, to: UnitId) {
        if let Some(partial) = &mut self.schemes.refreshing.partial {
            partial.stage(lpn, to);
        }
    }
}

impl<P: Probe> Drive<P> {
    /// Calls `work` with the write cache, if there is one.
    pub(super) fn with_cache(&mut self, work: impl FnOnce(&mut Caching, &mut Core<P>, &mut Path)) {
        if let Some(cache) = &mut self.caching {
            work(cache, &mut self.core, &mut self.path);
        }
    }

    /// Calls `work` with the background jobs.
    pub(super) fn with_background<R>(
        &mut self,
        work: impl FnOnce(&mut Background, &mut Core<P>, &mut Path, &mut Jobs) -> R,
    ) -> R {
        let Self { background, core, path, schemes, caching, .. } = self;
        work(background, core, path, &mut Jobs { schemes, caching: caching.as_mut() })
    }

    /// Calls `work` with the capacitor and its detection.
    pub(super) fn with_power<R>(
        &mut self,
        work: impl FnOnce(&mut PowerBackup, &mut Core<P>, &mut Saved) -> R,
    ) -> R {
        let acknowledges = self.acknowledges_from_cache();
        let Self { power, core, caching, path, schemes, .. } = self;
        work(power, core, &mut Saved { acknowledges, caching, path, refreshing: &mut schemes.refreshing })
    }

    /// Whether FUA writes and flushes are acknowledged from the write cache while the capacitor is charged and the
    /// dirty budget is above 0.
    pub(super) fn acknowledges_from_cache(&self) -> bool {
        self.caching.is_some() && self.power.capacitor.is_some() && self.spec.cache.flush_to == FlushTo::Cache
    }

    /// Deallocations have been recorded while the capacitor backs up the write cache. Makes them durable if their
    /// records fill a unit, or if the dirty budget has no room for their unit.
    pub(super) fn bound_trim_records(&mut self) {
        let host = &mut self.path.host;
        let unit_bytes = self.core.geometry.unit_bytes;
        let has_room =
            self.caching.as_ref().is_some_and(|cache| cache.has_room_for_trims(host.trims.units(unit_bytes)));
        if host.trims.fill_unit(unit_bytes) || !has_room {
            host.trims.make_durable();
        }
    }

    /// Calls `work` with the drive at the moment when power fails.
    pub(super) fn with_power_loss<R>(
        &mut self,
        work: impl FnOnce(&mut Outage<'_, P, Off<'_>>, &mut Sampled<'_>) -> R,
    ) -> R {
        let Self { core, schemes, losses, recorder, path, caching, power, background, .. } = self;
        let remapped = Vec::new();
        let mut outage = Outage { core, schemes: &mut Off { schemes }, remapped };
        let record = &mut path.host.record;
        let mut sampled = Sampled { recorder, record, caching, power, victims: &background.stats };
        let result = work(&mut outage, &mut sampled);
        losses.remapped = outage.remapped;
        result
    }

    /// Calls `work` with the drive while it is rebuilt from flash.
    pub(super) fn with_return<R>(
        &mut self,
        busy_ns: &mut [Span],
        recovery: &mut Recovery,
        work: impl FnOnce(&mut Return<'_, P, Off<'_>>, &Trims) -> R,
    ) -> R {
        let Self { core, schemes, path, power, .. } = self;
        let is_guarded = power.capacitor.is_some();
        let schemes = &mut Off { schemes };
        work(&mut Return { core, schemes, is_guarded, busy_ns, recovery }, &path.host.trims)
    }

    /// A copyback has ended: changes the map, and moves the known errors to the new unit.
    #[inline(never)]
    pub(super) fn on_copied_back(&mut self, done: &Transaction) {
        let Self { core, path, schemes, .. } = self;
        let source = done.replaces.expect("a copyback has a source");
        let (from, index) = core.geometry.split(source);
        let to = core.geometry.superblock_of(done.unit);
        if core.geometry.first_of_page(done.unit) == done.unit {
            schemes.copyback.stats.on_copyback(core.array.superblock(to).copybacks);
            core.array.read(&core.geometry, from, index);
        }
        core.take_over_errors(source, done.unit);
        // If the host has written the LPN meanwhile, or had done so before, the copy is invalid.
        if done.owner != Owner::Padding && core.ftl.map.get(done.lpn) == Some(source) {
            core.ftl.remap(&core.geometry, &mut core.array, done.lpn, done.unit);
            let lane = core.geometry.lane_of(from);
            path.map.on_moved(core, lane, done.lpn, false);
            if let Some(cache) = &mut schemes.refreshing.error_cache {
                cache.move_unit(&mut core.physics.known, source, done.unit);
            }
        }
    }

    /// A unit of a superblock that is refreshed without an erase has to be written elsewhere.
    pub(super) fn write_elsewhere(&mut self, lane: LaneId, read: &Transaction) {
        self.with_background(|jobs, core, path, around| jobs.write_elsewhere(core, path, around, lane, read));
    }

    /// At least half of the grace of a due superblock is over. Programs the susceptible bits of the superblock that are
    /// in the VSM, and promotes the job that refreshes the superblock. If the lane has no job, tries to start one.
    pub(super) fn hurry(&mut self, superblock: SuperblockId) {
        let Self { core, background, schemes, .. } = self;
        let refreshing = &mut schemes.refreshing;
        let lane = core.geometry.lane_of(superblock);
        if let Some(partial) = &mut refreshing.partial
            && partial.holds_up(core, superblock)
        {
            partial.empty_vsm(core);
        }
        let is_next = core.victim(lane) == Some(superblock) || refreshing.refresh.is_next(lane, superblock);
        if background.hurry(core, lane, is_next) {
            refreshing.refresh.on_promoted();
        } else if !core.has_job(lane) && !core.is_short(lane) {
            core.wake(crate::core::Wake::Due(lane));
        }
    }
}
