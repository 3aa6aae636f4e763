//! Queries of a drive's state, and the events of the clocks of power, link and controller.

use super::Drive;
use super::mechanisms::each_mechanism;
use crate::base::geometry::{DieId, LaneId, Lpn, SuperblockId, UnitId};
use crate::capacitor::{CapacitorState, Stage};
use crate::core::{Component, Mechanism};
use crate::host::{ControllerState, LinkEnd, LinkState};
use crate::probe::Probe;
use crate::refresh::{ErrorCacheState, PartialState};
use crate::sched::{FlashOp, Transaction};
use crate::write_cache::Caching;

/// What the drive has of an LPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Nothing: the LPN has not been written, or has been deallocated.
    Unmapped,
    /// Data of which at least a part is lost: reads of that part fail.
    Lost,
    /// The data of the write with this sequence number; 0: data of preconditioning, or in a drive that keeps no sequence
    /// numbers any data.
    Written(u64),
}

/// What a die does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum DieWork {
    /// Nothing.
    #[default]
    Idle,
    /// It reads.
    Read,
    /// It programs, also by a copyback.
    Program,
    /// It erases.
    Erase,
    /// A program or an erase is suspended for reads.
    Suspended,
}

impl DieWork {
    /// All states, in the order of their numbers.
    pub const ALL: [(Self, &str); 5] = [
        (Self::Idle, "idle"),
        (Self::Read, "read"),
        (Self::Program, "program"),
        (Self::Erase, "erase"),
        (Self::Suspended, "suspended"),
    ];
}

impl<P: Probe> Drive<P> {
    /// What a die does now.
    pub fn die_work(&self, die: DieId) -> DieWork {
        let device = self.core.device();
        match device.kind(die) {
            _ if device.suspended(die).is_some() => DieWork::Suspended,
            None => DieWork::Idle,
            Some(FlashOp::Read) => DieWork::Read,
            Some(FlashOp::Program | FlashOp::Copyback) => DieWork::Program,
            Some(FlashOp::Erase) => DieWork::Erase,
        }
    }

    /// Number of lanes with a background job.
    pub fn jobs(&self) -> u32 {
        (0..self.core.geometry().lanes).map(|lane| u32::from(self.core.has_job(LaneId(lane)))).sum()
    }

    /// Size, budget and acknowledged units of the write buffer, in units; 0 without one.
    pub fn buffer_units(&self) -> [u32; 3] {
        let buffer = self.path.host.buffer.as_ref();
        buffer.map_or([0; 3], |buffer| [buffer.capacity(), buffer.budget(), buffer.acknowledged()])
    }

    /// The newest version of an LPN, also if it is only in the write cache or in the write buffer. A write that the drive has
    /// not admitted yet is no version. The answer does not say whether flash can still be read.
    ///
    /// # Panics
    /// When the drive does not have `lpn`, or power is off.
    pub fn version(&self, lpn: Lpn) -> Version {
        assert!(!self.core.state().is_off, "power is off");
        let unit = self.core.unit_of(lpn);
        let is_lost_in_flash = unit.is_some_and(|unit| self.core.flash().is_lost(unit));
        let is_lost = is_lost_in_flash
            || self.caching.as_ref().is_some_and(|caching| caching.lost.contains_key(&lpn.0));
        if let Some(caching) = &self.caching
            && let Some(slot) = caching.cache.find(lpn)
            && let entry = caching.cache.entry(slot)
            && !entry.is_blank
        {
            let lacks_lost = is_lost && entry.valid != caching.whole;
            return if entry.lost != 0 || lacks_lost {
                Version::Lost
            } else {
                Version::Written(entry.sequence)
            };
        }
        match unit {
            _ if is_lost => Version::Lost,
            None => Version::Unmapped,
            Some(unit) => Version::Written(self.core.sequence_of(unit)),
        }
    }

    /// Bytes of memory of the drive's arrays whose sizes follow from the spec, those of entries included that have never
    /// been written. [`Memory`](crate::runner::memory::Memory) estimates them before the drive is built.
    pub fn bytes(&self) -> u64 {
        let mut bytes = self.core.bytes();
        each_mechanism!(&self, |mechanism| bytes += Mechanism::<P>::bytes(mechanism));
        bytes
    }

    /// The write cache in units: its size, its dirty budget, and its dirty units. All are 0 without a write cache.
    pub fn cache_units(&self) -> [u32; 3] {
        self.caching.as_ref().map_or([0; 3], Caching::units)
    }

    /// Size, dirty budget and dirty units of what the capacitor saves, in units: of the write cache with its write buffer,
    /// or of the write buffer of a drive with a capacitor; 0 without either.
    pub fn dirty_units(&self) -> [u32; 3] {
        match &self.path.host.buffer {
            Some(buffer) if self.caching.is_none() && self.power.capacitor.is_some() => {
                [buffer.capacity(), buffer.budget(), buffer.acknowledged()]
            }
            _ => {
                let memory = self.caching.as_ref().map_or(0, |caching| caching.cache.memory());
                let [_, budget, dirty] = self.cache_units();
                [memory, budget, dirty]
            }
        }
    }
}

impl<P: Probe> Drive<P> {
    /// The power clock has expired.
    pub(super) fn on_power(&mut self) {
        if self.core.now() >= self.power.cut_at {
            self.cut_power();
        } else {
            self.with_power(|power, core, kept| power.on_clock(core, kept));
        }
    }

    /// The bytes that a placement handle can still write to its present reclaim unit, in all lanes of its reclaim group
    /// together (NVMe's RUAMW, there in logical blocks). A lane in which it has none open counts a whole one. `None` if the
    /// drive has no such identifier.
    pub fn available_media_writes(&self, identifier: u16) -> Option<u64> {
        let place = self.core.placements().find(identifier)?;
        Some(self.core.available_units(place) * u64::from(self.core.geometry().unit_bytes))
    }

    /// The host lets a placement handle go on in new reclaim units (NVMe's Reclaim Unit Handle Update, of an I/O Management
    /// Send command). The rest of the present ones stays unused; if there was a rest, an event
    /// ([`EventKind::UnitNotFull`]) counts. Writes in flight still go to the present ones. Returns whether the drive has
    /// such an identifier.
    pub fn update_handle(&mut self, identifier: u16) -> bool {
        let place = self.core.placements().find(identifier);
        if let Some(place) = place.filter(|_| self.core.placement_stats().is_some()) {
            self.core.update_handle(place);
            self.serve();
        }
        place.is_some()
    }

    /// Begins a budget detection now, on the host's command, whether the drive is idle or not. Does nothing without
    /// capacitor or write cache, or while the capacitor is being measured or recharged.
    pub fn detect_budget(&mut self) {
        let has_memory = self.caching.is_some() || self.path.host.buffer.is_some();
        if self.power.capacitor.is_some() && has_memory && self.power.stage == Stage::Charged {
            self.with_power(|power, core, kept| {
                let _inside = core.enter(Component::Capacitor);
                power.begin_detection(core, kept);
                power.set_clock(core);
            });
            self.serve();
        }
    }

    /// The lanes in which the last copies of a victim gather in a programming unit, and those of them in which copies
    /// of the next victim have joined them.
    pub fn open_programs_of_gc(&self) -> [u32; 2] {
        let lanes = (0..self.core.geometry().lanes).map(LaneId);
        let victims = lanes.filter_map(|lane| {
            let emptied = self.core.emptied(lane)?.superblock;
            let of_unit =
                |unit: &Transaction| unit.replaces.map(|old| self.core.geometry().superblock_of(old));
            let mut victims = self.core.gathering_of_jobs(lane).map(of_unit);
            (victims.next() == Some(Some(emptied))).then(|| victims.any(|victim| victim != Some(emptied)))
        });
        victims.fold([0; 2], |[open, shared], is_shared| [open + 1, shared + u32::from(is_shared)])
    }

    /// Whether the capacitor is empty and being recharged.
    pub fn is_recharging(&self) -> bool {
        self.power.stage == Stage::Recharging
    }

    /// The stage of the budget detection: `charged`, `syncing`, `draining`, `settling` or `recharging`. Without a
    /// capacitor always `charged`.
    pub fn power_stage(&self) -> &'static str {
        match self.power.stage {
            Stage::Charged => "charged",
            Stage::Syncing => "syncing",
            Stage::Draining => "draining",
            Stage::Settling => "settling",
            Stage::Recharging => "recharging",
        }
    }

    /// Whether power fails at the present time, for example because the last completion was the one after which
    /// [`PowerSpec`] cuts power.
    ///
    /// [`PowerSpec`]: super::spec::PowerSpec
    pub fn is_power_failing(&self) -> bool {
        self.power.cut_at <= self.core.now()
    }

    /// The state of the capacitor; `None` without a capacitor.
    pub fn capacitor(&self) -> Option<CapacitorState> {
        let capacitor = self.power.capacitor.as_ref()?;
        let at = self.power.age_s(self.core.now());
        Some(CapacitorState {
            stage: self.power_stage(),
            energy_j: self.power.energy_j(self.core.now()),
            energy_j_full: capacitor.energy_j(at),
            energy_j_rated: capacitor.rated_j(),
            loss_share: capacitor.loss(at),
            is_worn_out: capacitor.is_worn_out(at),
            cycles: capacitor.cycles(),
        })
    }

    /// Number of units that the capacitor could save now if it were full, by Eq. 1 to 5 of the aging-capacitor paper,
    /// with the pages and the concurrency of the flush method. 0 without a capacitor.
    pub fn capability_units(&self) -> f64 {
        self.power.capability_units(self.core.now())
    }
}

impl<P: Probe> Drive<P> {
    /// The load of refresh: the rate at which superblocks come due divided by the rate at which they have been
    /// refreshed so far. For a lane this is the mean duration of a refresh job divided by the interval, summed over the
    /// superblocks with valid data. Returns the highest load of a lane; `None` before the first refresh.
    pub fn refresh_load(&self) -> Option<f64> {
        self.schemes.refreshing.refresh.load(&self.core)
    }

    /// A superblock with valid data that is overdue by more than its grace, for tests; `None` if there is no such
    /// superblock.
    #[doc(hidden)]
    pub fn overdue(&self) -> Option<SuperblockId> {
        self.schemes.refreshing.refresh.overdue(&self.core).next()
    }

    /// Number of superblocks with valid data that are overdue by more than their grace.
    pub fn overdue_superblocks(&self) -> u32 {
        let refresh = &self.schemes.refreshing.refresh;
        // Before the first event of the refresh clock the ages of superblocks are not set.
        if refresh.is_on() && refresh.has_begun() {
            self.schemes.refreshing.refresh.overdue(&self.core).count() as u32
        } else {
            0
        }
    }
}

impl<P: Probe> Drive<P> {
    /// Units that preconditioning has written in SLC mode (`slc.filled`).
    pub fn slc_filled(&self) -> u64 {
        self.schemes.slc.as_ref().map_or(0, |slc| slc.filled)
    }

    /// The state of EC-Cache; `None` without EC-Cache.
    pub fn error_cache(&self) -> Option<ErrorCacheState> {
        let cache = self.schemes.refreshing.error_cache.as_ref()?;
        Some(cache.state())
    }

    /// The RBER of a unit's known errors; `None` if EC-Cache has no entry of the unit.
    pub fn cached_rber(&self, unit: UnitId) -> Option<f64> {
        let cache = self.schemes.refreshing.error_cache.as_ref()?;
        cache.knows(unit).then(|| self.core.known_rber(unit))
    }
}

impl<P: Probe> Drive<P> {
    /// The state of partial refresh; `None` under other policies.
    pub fn partial_refresh(&self) -> Option<PartialState> {
        Some(self.schemes.refreshing.partial.as_ref()?.state(&self.core))
    }
}

impl<P: Probe> Drive<P> {
    /// The state of the link between host and drive; `None` without a link.
    pub fn link(&self) -> Option<LinkState> {
        self.path.host.link.as_ref().map(|link| link.state(self.core.now()))
    }

    /// The state of the controller's processors; `None` if the firmware takes no time.
    pub fn controller(&self) -> Option<ControllerState> {
        self.path.host.controller.as_ref().map(|controller| controller.state(self.core.now()))
    }

    /// The controller's clock has expired: a request begins.
    pub(crate) fn on_controller(&mut self) {
        let host = &mut self.path.host;
        let id = host.controller.as_mut().expect("only a controller sets its clock").end(&mut self.core);
        let request = host.requests.request(id);
        self.begin(id, &request);
    }

    /// The link's clock has expired: a request has reached the drive, or a completion the host.
    pub(crate) fn on_link(&mut self) {
        let host = &mut self.path.host;
        match host.link.as_mut().expect("only a link sets its clock").receive(&mut self.core) {
            (LinkEnd::Drive, id) => {
                let request = host.requests.request(id);
                self.reach(id, &request);
            }
            (LinkEnd::Host, id) => {
                host.requests.get(id).units_left = 0;
                host.report(&mut self.core, id);
            }
        }
    }
}
