//! What can be asked of a drive from outside; the clocks of power and of the link.

use super::Drive;
use crate::base::geometry::{BlockId, Ppn};
use crate::capacitor::{CapacitorState, Stage};
use crate::core::Part;
use crate::host::{LinkEnd, LinkState};
use crate::probe::Probe;
use crate::refresh::{ErrorCacheState, PartialState};
use crate::write_cache::Caching;

impl<P: Probe> Drive<P> {
    /// Pages of the write cache: that fit, that may be dirty, that are.
    pub fn cache_pages(&self) -> [u32; 3] {
        self.caching.as_ref().map_or([0; 3], Caching::pages)
    }
}

impl<P: Probe> Drive<P> {
    /// The power clock has struck.
    pub(super) fn on_power(&mut self) {
        if self.core.now >= self.power.cut_at {
            self.cut_power();
        } else {
            self.with_power(|power, core, kept| power.on_clock(core, kept));
        }
    }

    /// Measures the capacitor now, whatever the host does: the host's command. Nothing without capacitor and cache, or
    /// while it is empty or being measured.
    pub fn detect_budget(&mut self) {
        if self.power.capacitor.is_some() && self.caching.is_some() && self.power.stage == Stage::Charged {
            self.with_power(|power, core, kept| {
                let _inside = core.inside.enter(Part::Capacitor);
                power.begin_detection(core, kept);
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
    /// [`PowerSpec`]: super::spec::PowerSpec
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
        let cache = self.refreshing.error_cache.as_ref()?;
        Some(cache.state())
    }

    /// The errors of a page that are known from before, as a part of its RBER; `None`: the cache does not have it.
    pub fn cached_rber(&self, ppn: Ppn) -> Option<f64> {
        let cache = self.refreshing.error_cache.as_ref()?;
        cache.knows(ppn).then(|| self.core.physics.known.of(ppn))
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
