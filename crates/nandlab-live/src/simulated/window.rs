//! What a window on the drive shows of it.

use super::{Options, Simulated};
use crate::snapshot::{Bins, SHARES, Snapshot};
use nandlab::drive::DieWork;
use nandlab::flash::SuperblockState;
use nandlab::host::Op;
use nandlab::report::{Explainer, smart};
use nandlab::sched::{Cause, FlashOp};
use nandlab_base::base::ids::{DieId, LaneId};
use serde_json::{Map, Value, json};

impl Simulated {
    /// From now on snapshots are taken, if the options say so.
    pub(super) fn begin_snapshots(&mut self, options: &Options) {
        self.since_snapshot = options.explain.map(|_| Box::default());
        self.begin_snapshot();
    }

    /// What came before, such as a replay, is in no snapshot.
    pub(super) fn begin_snapshot(&mut self) {
        if let Some(bins) = &mut self.since_snapshot {
            bins.iter_mut().for_each(Bins::clear);
        }
        if let Some(explainer) = self.drive.probe_mut().explainer_mut() {
            explainer.take_slowest();
        }
    }

    /// Fills a snapshot, and begins the next one.
    pub(super) fn fill(&mut self, snapshot: &mut Snapshot) {
        snapshot.stat = self.stat();
        snapshot.smart = smart(&self.drive);
        snapshot.state = self.state();
        snapshot.dies.clear();
        let dies = (0..self.drive.geometry().dies).map(|die| self.drive.die_work(DieId(die)) as u8);
        snapshot.dies.extend(dies);
        snapshot.shares = self.shares();
        if let Some(bins) = &mut self.since_snapshot {
            for (of, shown) in bins.iter_mut().zip(&mut snapshot.latency) {
                std::mem::swap(of, shown);
                of.clear();
            }
        }
        if let Some(explainer) = self.drive.probe_mut().explainer_mut() {
            snapshot.slowest = explainer.take_slowest();
            snapshot.parts = Default::default();
            for op in Op::ALL {
                let parts = &explainer.sums(op).parts;
                snapshot.parts.0.iter_mut().zip(parts.0).for_each(|(sum, ns)| *sum += ns);
            }
        }
    }

    /// Closed superblocks by valid share.
    fn shares(&self) -> [u32; SHARES] {
        let (array, mut shares) = (self.drive.array(), [0; SHARES]);
        let units = array.shapes().first().units.max(1);
        for superblock in array.good_superblocks() {
            if superblock.state.is_closed() || superblock.state == SuperblockState::Victim {
                let share = (superblock.valid as usize * SHARES / units as usize).min(SHARES - 1);
                shares[share] += 1;
            }
        }
        shares
    }

    /// What the drive does at the moment, and its counters that `stat` does not have.
    pub(super) fn state(&self) -> Value {
        let drive = &self.drive;
        let stats = drive.stats();
        let kinds = [
            (FlashOp::Read, "read"),
            (FlashOp::Program, "program"),
            (FlashOp::Erase, "erase"),
            (FlashOp::Copyback, "copyback"),
        ];
        let flash: Map<String, Value> = kinds
            .into_iter()
            .map(|(kind, name)| {
                let counts = Cause::ALL.map(|cause| {
                    (cause.name().to_owned(), Value::from(stats.flash[kind as usize][cause as usize]))
                });
                (name.to_owned(), Value::Object(counts.into_iter().collect()))
            })
            .collect();
        let mut dies = [0u32; DieWork::ALL.len()];
        for die in 0..drive.geometry().dies {
            dies[drive.die_work(DieId(die)) as usize] += 1;
        }
        let dies: Map<String, Value> = DieWork::ALL
            .into_iter()
            .map(|(work, name)| (name.to_owned(), dies[work as usize].into()))
            .collect();
        let (mut free, mut open, mut closed, mut retired) = (0u64, 0u64, 0u64, 0u64);
        let (mut least, mut most, mut sum) = (u32::MAX, 0u32, 0u64);
        for superblock in drive.array().good_superblocks() {
            match superblock.state {
                SuperblockState::Free => free += 1,
                SuperblockState::Open => open += 1,
                SuperblockState::Full | SuperblockState::Cached | SuperblockState::Victim => closed += 1,
                SuperblockState::Retired | SuperblockState::Bad => retired += 1,
            }
            least = least.min(superblock.pe_cycles);
            most = most.max(superblock.pe_cycles);
            sum += u64::from(superblock.pe_cycles);
        }
        let all = (free + open + closed + retired).max(1);
        let capacitor = drive.capacitor().map(|of| {
            json!({
                "stage": of.stage,
                "energy_j": of.energy_j,
                "energy_j_full": of.energy_j_full,
                "loss_share": of.loss_share,
                "saves_units": drive.capability_units(),
            })
        });
        let units = |[size, budget, used]: [u32; 3]| {
            (size > 0).then(|| json!({ "size": size, "budget": budget, "used": used }))
        };
        let levels: Vec<u64> = {
            let by_level = &stats.ecc.levels;
            let last = by_level.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
            by_level[..last].to_vec()
        };
        let losses: [u64; 3] = stats.power.losses.iter().fold([0; 3], |mut sum, loss| {
            for lost in &loss.lost {
                sum[lost.promise as usize] += 1;
            }
            sum
        });
        let slc = drive.ftl().slc().is_some().then(|| {
            let lanes = (0..drive.ftl().lanes.len() as u32).map(LaneId);
            json!({
                "blocks": drive.ftl().lanes.iter().map(|lane| lane.slc_superblocks).sum::<u32>(),
                "blocks_max": lanes.map(|lane| drive.ftl().slc_limit(lane)).sum::<u32>(),
                "cached": stats.slc.cached,
                "direct": stats.slc.direct,
                "folded": {
                    "idle": stats.slc.folded_idle,
                    "full": stats.slc.folded_full,
                    "space": stats.slc.folded_space,
                },
            })
        });
        json!({
            "power": if self.is_off { "off" } else { "on" },
            "simulated_s": drive.now().seconds(),
            "dies": dies,
            "jobs": drive.jobs(),
            "flash": flash,
            "unit_bytes": drive.geometry().unit_bytes,
            "page_bytes": drive.geometry().page_bytes(),
            "superblocks": { "free": free, "open": open, "closed": closed, "retired": retired },
            "pe_cycles": {
                "min": if least == u32::MAX { 0 } else { least },
                "mean": sum as f64 / all as f64,
                "max": most,
                "endurance": drive.spec().drive.endurance,
            },
            "victims": stats.gc.victims,
            "waiting_writes": stats.counters.waiting_writes,
            "buffer": units(drive.buffer_units()),
            "cache": units(drive.cache_units()),
            "dirty": units(drive.dirty_units()),
            "slc": slc,
            "capacitor": capacitor,
            "levels": levels,
            "retries": stats.ecc.retries,
            "uncorrectable": stats.ecc.uncorrectable,
            "suspensions": {
                "programs": stats.suspensions.programs,
                "erases": stats.suspensions.erases,
            },
            "parts_ns": drive.probe().explainer().map(Explainer::parts_json),
            "losses": { "covered": losses[0], "acknowledged": losses[1], "in_flight": losses[2] },
        })
    }
}
