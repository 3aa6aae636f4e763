//! The audit of a drive: its parts agree with each other.

use super::Drive;
use crate::base::geometry::{LaneId, Lpn};
use crate::demand_map::Mapping;
use crate::flash::Stamp;
use crate::probe::Probe;

impl<P: Probe> Drive<P> {
    /// Audits the whole drive. If nothing is under way, also checks that no pins, waiting units, flushes or jobs are
    /// left, and that the link is empty.
    ///
    /// # Errors
    /// The first inconsistency found.
    pub fn audit(&self) -> Result<(), String> {
        self.core.ftl.audit(&self.core.geometry, &self.core.array)?;
        self.core.device.audit(&self.core.pool)?;
        if let Some(mapping) = &self.path.map {
            mapping.demand.audit(&self.core.ftl.map)?;
        }
        if let Some(caching) = &self.caching {
            caching.cache.audit()?;
        }
        if self.core.array.keeps_sequences() {
            for lpn in (0..self.core.geometry.logical_units).map(Lpn) {
                let stamp =
                    self.core.ftl.map.get(lpn).map_or(Stamp::default(), |unit| self.core.array.stamp(unit));
                if stamp.sequence > self.core.sequence
                    || stamp.corrected > self.core.physics.age_clock.at(self.core.now)
                {
                    return Err(format!(
                        "LPN {} has a sequence number or an age stamp from the future: {stamp:?}",
                        lpn.0
                    ));
                }
            }
        }
        if self.core.array.keeps_copied() {
            let now = self.core.age_stamp_now();
            let mapped =
                (0..self.core.geometry.logical_units).filter_map(|lpn| self.core.ftl.map.get(Lpn(lpn)));
            for unit in mapped {
                let Some(copied) = self.core.array.copied(unit) else { continue };
                let corrected = self.core.array.stamp(unit).corrected;
                if !(0.0..=0.5).contains(&copied.rber) || !(corrected..=now).contains(&copied.programmed) {
                    let shown = self.core.geometry.show(unit);
                    return Err(format!(
                        "{shown} has impossible errors: {copied:?}, corrected at {corrected:?}"
                    ));
                }
            }
        }
        if let Some(buffer) = &self.path.host.buffer {
            buffer.audit(&self.core)?;
        }
        self.background.audit(&self.core)?;
        let is_at_rest = self.is_at_rest();
        if let Some(caching) = self.caching.as_ref().filter(|_| self.path.host.is_backed) {
            let (cache, trims) = (&caching.cache, self.path.host.trim_units(&self.core));
            if cache.unflushed() + trims > cache.budget() {
                return Err(format!(
                    "{} units with unflushed acknowledged writes and {trims} units of TRIM records exceed the budget \
                     of {} units",
                    cache.unflushed(),
                    cache.budget()
                ));
            }
        }
        if let Some(partial) = &self.schemes.refreshing.partial {
            partial.audit(&self.core, is_at_rest)?;
        }
        if let Some(cache) = &self.schemes.refreshing.error_cache {
            cache.audit(&self.core)?;
        }
        if is_at_rest {
            if let Some(superblock) = self.core.array.superblocks.iter().position(|b| b.pins > 0) {
                return Err(format!("superblock {superblock} is pinned though no operation is under way"));
            }
            // A job that is ahead of the host may wait, and others for it, until the host has written more or is idle.
            let lanes = || (0..self.core.geometry.lanes).map(LaneId);
            let may_wait = |lane| !self.core.state.is_idle && self.background.is_ahead(lane);
            let are_served = !lanes().any(may_wait);
            if are_served && self.path.writes.count > 0
                || !self.path.host.merging.is_empty()
                || are_served && !self.path.map.as_ref().is_none_or(Mapping::is_idle)
            {
                return Err("a write or map entry still waits though no request is outstanding".to_owned());
            }
            if let Some(mapping) = self.path.map.as_ref().filter(|_| are_served) {
                mapping.audit_at_rest()?;
            }
            if let Some(caching) = &self.caching {
                caching.audit_at_rest()?;
            }
            if self.path.host.flushes > 0 {
                return Err(format!("nothing is under way, but {} flushes wait", self.path.host.flushes));
            }
            if self.link().is_some_and(|link| link.to_drive.requests + link.to_host.requests > 0) {
                return Err("a request is on the link though none is outstanding".to_owned());
            }
            for lane in lanes() {
                if self.core.has_job(lane) && !may_wait(lane) || self.core.emptied(lane).is_some() {
                    return Err(format!(
                        "lane {} has a background job without an operation under way",
                        lane.0
                    ));
                }
            }
        }
        Ok(())
    }
}
