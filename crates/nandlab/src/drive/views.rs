//! What can be asked of a drive from outside.

use super::{DataPath, Drive, Refreshing};
use crate::base::geometry::{BlockId, PlaneId, Ppn};
use crate::capacitor::{CapacitorState, Power, Stage};
use crate::core::{Core, Part, Wake};
use crate::host::{LinkEnd, LinkState};
use crate::probe::Probe;
use crate::refresh::{ErrorCacheState, PartialState};
use crate::sched::Transaction;
use crate::write_cache::Caching;

impl<P: Probe> Drive<P> {
    /// Pages of the write cache: that fit, that may be dirty, that are.
    pub fn cache_pages(&self) -> [u32; 3] {
        self.caching.as_ref().map_or([0; 3], |caching| {
            [caching.cache.capacity(), caching.cache.budget(), caching.cache.dirty_pages()]
        })
    }
}

impl<P: Probe> Drive<P> {
    /// Lets the capacitor and its detection work.
    pub(crate) fn with_power(
        &mut self,
        work: impl FnOnce(&mut Power, &mut Core<P>, &mut Option<Caching>, &mut DataPath, &mut Refreshing),
    ) {
        work(&mut self.power, &mut self.core, &mut self.caching, &mut self.path, &mut self.refreshing);
    }

    /// The power clock has struck.
    pub(crate) fn on_power(&mut self) {
        if self.core.now >= self.power.cut_at {
            self.cut_power();
        } else {
            self.with_power(Power::on_clock);
        }
    }

    /// A plane's job is over.
    pub(crate) fn on_job_over(&mut self, plane: PlaneId) {
        self.power.on_job_over(&mut self.core, &mut self.caching, &mut self.refreshing, plane);
    }

    /// Measures the capacitor now, whatever the host does: the host's command. Nothing without capacitor and cache, or
    /// while it is empty or being measured.
    pub fn detect_budget(&mut self) {
        if self.power.capacitor.is_some() && self.caching.is_some() && self.power.stage == Stage::Charged {
            self.with_power(|power, core, cache, path, refreshing| {
                let _inside = core.inside.enter(Part::Capacitor);
                power.begin_detection(core, cache, path, refreshing);
                power.set_clock(core);
            });
            self.serve();
        }
    }

    /// Whether the capacitor is empty and being charged.
    pub fn is_recharging(&self) -> bool {
        self.power.stage == Stage::Recharging
    }

    /// How far the detection of the budget is: `charged`, `syncing`, `draining`, `settling` or `recharging`. Without a
    /// capacitor always the first.
    pub fn power_stage(&self) -> &'static str {
        match self.power.stage {
            Stage::Charged => "charged",
            Stage::Syncing => "syncing",
            Stage::Draining => "draining",
            Stage::Settling => "settling",
            Stage::Recharging => "recharging",
        }
    }

    /// Whether it is to fail at this very moment: the last completion was the one that [`PowerSpec`] names.
    ///
    /// [`PowerSpec`]: crate::spec::PowerSpec
    pub fn is_power_failing(&self) -> bool {
        self.power.cut_at <= self.core.now
    }

    /// The capacitor now; `None` without one.
    pub fn capacitor(&self) -> Option<CapacitorState> {
        let capacitor = self.power.capacitor.as_ref()?;
        let at = self.power.age_s(self.core.now);
        Some(CapacitorState {
            stage: self.power_stage(),
            energy_j: self.power.energy_j(self.core.now),
            energy_j_full: capacitor.energy_j(at),
            energy_j_rated: capacitor.rated_j(),
            loss_share: capacitor.loss(at),
            is_worn_out: capacitor.is_worn_out(at),
            cycles: capacitor.cycles(),
        })
    }

    /// Pages that the capacitor could save now if it were full, by Eq. 1 to 5: the flush method's pages, as many at a time
    /// as it writes. 0 without a capacitor.
    pub fn capability_pages(&self) -> f64 {
        self.power.capability_pages(self.core.now)
    }
}

impl<P: Probe> Drive<P> {
    /// A copyback has been programmed: the map follows.
    #[inline(never)]
    pub(crate) fn on_copied_back(&mut self, done: &Transaction) {
        let source = done.replaces.expect("a copyback has a source");
        let (from, page) = self.core.geometry.split(source);
        self.core
            .stats
            .migration
            .on_copyback(self.core.array.block(self.core.geometry.block_of(done.ppn)).copybacks);
        self.core.array.read(from, page);
        self.core.array.copy_errors(self.core.geometry.block_of(done.ppn), from);
        // Unless the host has written the page meanwhile.
        if self.core.ftl.map.get(done.lpn) == Some(source) {
            self.core.ftl.remap(&self.core.geometry, &mut self.core.array, done.lpn, done.ppn);
            let plane = self.core.geometry.plane_of(from);
            self.path.mapping.on_moved(&mut self.core, plane, done.lpn, false);
            if let Some(cache) = &mut self.error_cache {
                cache.move_page(&mut self.core.known, source, done.ppn);
            }
        }
    }
}

impl<P: Probe> Drive<P> {
    /// The grace of a due block is running out.
    pub(crate) fn hurry(&mut self, block: BlockId) {
        let plane = self.core.geometry.plane_of(block);
        if let Some(partial) = &mut self.refreshing.partial
            && partial.has_data_in_vsm(block)
        {
            partial.empty_vsm(&mut self.core);
        }
        let is_next = self.core.victim(plane) == Some(block) || self.refreshing.refresh.is_next(plane, block);
        if self.background.hurry(&mut self.core, plane, is_next) {
            self.core.stats.refresh.promoted += 1;
        } else if !self.core.has_job(plane) && !self.core.is_short(plane) {
            self.core.wake(Wake::Due(plane));
        }
    }

    /// How many times faster blocks come due than the drive has refreshed them so far: the mean time of a refreshed block,
    /// for all blocks of a plane that hold data, by the interval. `None` before the first one.
    pub fn refresh_load(&self) -> Option<f64> {
        self.refreshing.refresh.load(&self.core)
    }

    /// A block with valid data that should have been refreshed more than its grace ago, for tests.
    #[doc(hidden)]
    pub fn overdue(&self) -> Option<BlockId> {
        self.refreshing.refresh.overdue(&self.core).next()
    }

    /// Blocks with valid data that should have been refreshed more than their grace ago.
    pub fn overdue_blocks(&self) -> u32 {
        let refresh = &self.refreshing.refresh;
        // Before the first event nobody knows the ages.
        if refresh.is_on() && refresh.has_begun() {
            self.refreshing.refresh.overdue(&self.core).count() as u32
        } else {
            0
        }
    }
}

impl<P: Probe> Drive<P> {
    /// What the cache of known errors holds; `None` without it.
    pub fn error_cache(&self) -> Option<ErrorCacheState> {
        let cache = self.error_cache.as_ref()?;
        Some(cache.state())
    }

    /// The errors of a page that are known from before, as a part of its RBER; `None`: the cache does not have it.
    pub fn cached_rber(&self, ppn: Ppn) -> Option<f64> {
        let cache = self.error_cache.as_ref()?;
        cache.knows(ppn).then(|| self.core.known.of(ppn))
    }
}

impl<P: Probe> Drive<P> {
    /// How partial refresh is; `None` without it.
    pub fn partial_refresh(&self) -> Option<PartialState> {
        Some(self.refreshing.partial.as_ref()?.state(&self.core))
    }
}

impl<P: Probe> Drive<P> {
    /// The link between host and drive now; `None` without one.
    pub fn link(&self) -> Option<LinkState> {
        self.path.host.link.as_ref().map(|link| link.state(self.core.now))
    }

    /// The link's clock has struck.
    pub(crate) fn on_link(&mut self) {
        let host = &mut self.path.host;
        match host.link.as_mut().expect("there is a link").receive(&mut self.core) {
            (LinkEnd::Drive, id) => {
                let request = host.requests.request(id);
                self.begin(id, &request);
            }
            (LinkEnd::Host, id) => {
                host.requests.get(id).pages_left = 0;
                host.report(&mut self.core, id);
            }
        }
    }
}
