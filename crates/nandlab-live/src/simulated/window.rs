//! What a window on the drive shows of it.

use super::{Options, Simulated};
use crate::snapshot::{Bins, SHARES, Snapshot};
use nandlab::drive::DieWork;
use nandlab::flash::SuperblockState;
use nandlab::host::Op;
use nandlab::report::{Explainer, Taps, smart};
use nandlab::sched::{Cause, FlashOp};
use nandlab_base::base::ids::{DieId, LaneId};
use nandlab_base::base::units::{Span, Time};
use serde_json::{Map, Value, json};

/// The stretch of the machine's time in which requests are counted.
const ROUND: Span = Span::from_ns(1_000_000_000);
/// If all requests of a round have at most this many units, all of them are explained.
const UNITS_MAX: u64 = 20_000;
/// Otherwise those that come in the first part of the round. It is long beside the operations that the explainer does not
/// know when it wakes, also where the drive's time passes more slowly than that of the machine.
const EXPLAINED: Span = Span::from_ns(200_000_000);
/// How long into the round these are followed, if some do not complete.
const FOLLOWED: Span = Span::from_ns(400_000_000);

/// Which requests the window explains. To explain requests costs processor time with each operation of the drive, so
/// under load the explainer rests for most of the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    began: Time,
    /// Units of the requests of the round so far.
    units: u64,
    /// Whether this round or the one before has more than [`UNITS_MAX`] units.
    is_busy: bool,
}

impl Rounds {
    /// The first round.
    pub(super) fn new() -> Self {
        Self { began: Time::START, units: 0, is_busy: false }
    }

    /// A request of so many units comes at the time `now` of the machine, which is the time `simulated` of the drive.
    pub(super) fn on_request(&mut self, now: Time, units: u64, simulated: Time, taps: &mut Taps) {
        let end = self.began.saturating_add(ROUND);
        if now >= end {
            let follows = now < end.saturating_add(ROUND);
            *self = Self { began: now, units: 0, is_busy: follows && self.units > UNITS_MAX };
            taps.wake_explainer(simulated);
            if let Some(explainer) = taps.explainer_mut() {
                explainer.accept(true);
            }
        }
        self.units += units;
        self.is_busy |= self.units > UNITS_MAX;
        if self.is_busy
            && now >= self.began.saturating_add(EXPLAINED)
            && taps.explains()
            && let Some(explainer) = taps.explainer_mut()
        {
            explainer.accept(false);
            if explainer.outstanding() == 0 || now >= self.began.saturating_add(FOLLOWED) {
                taps.rest_explainer();
            }
        }
    }
}

impl Simulated {
    /// From now on snapshots are taken, if the options say so.
    pub(super) fn begin_snapshots(&mut self, options: &Options) {
        self.since_snapshot = options.explain.map(|_| Box::default());
        self.rounds = options.explain.filter(|&slowest| slowest > 0).map(|_| Rounds::new());
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
            "explained": drive.probe().explainer().map(|of| {
                [Op::Read, Op::Write].map(|op| of.sums(op).requests).iter().sum::<u64>()
            }),
            "parts_ns": drive.probe().explainer().map(Explainer::parts_json),
            "losses": { "covered": losses[0], "acknowledged": losses[1], "in_flight": losses[2] },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandlab::base::geometry::RequestId;
    use nandlab::host::Request;
    use nandlab::probe::Probe;

    /// A hundredth of a second in ns: a round has a hundred of them.
    const STEP: u64 = 10_000_000;

    /// A server to which a request of `units` units comes at each step from `from` to `to`. Returns the steps at which
    /// requests are accepted, and those at which the explainer is awake.
    fn explained(rounds: &mut Rounds, taps: &mut Taps, from: u64, to: u64, units: u64) -> [Vec<u64>; 2] {
        let mut found = [const { Vec::new() }; 2];
        for step in from..to {
            rounds.on_request(Time::from_ns(step * STEP), units, Time::START, taps);
            let is = [taps.explainer().is_some_and(Explainer::accepts) && taps.explains(), taps.explains()];
            found.iter_mut().zip(is).filter(|(_, is)| *is).for_each(|(steps, _)| steps.push(step));
        }
        found
    }

    fn taps() -> Taps {
        Taps::default().explaining(Explainer::new(1))
    }

    #[test]
    fn all_requests_of_a_light_load_are_explained() {
        let (mut rounds, mut taps) = (Rounds::new(), taps());
        let all: Vec<u64> = (0..1000).collect();
        // 20,000 units a second.
        assert_eq!(explained(&mut rounds, &mut taps, 0, 1000, 200), [all.clone(), all]);
    }

    #[test]
    fn under_load_those_of_a_fifth_of_the_time_are_explained() {
        let (mut rounds, mut taps) = (Rounds::new(), taps());
        // The load is known after 20,000 units of the first round.
        let first: Vec<u64> = (0..95).collect();
        let fifth: Vec<u64> = (0..20).collect();
        assert_eq!(explained(&mut rounds, &mut taps, 0, 100, 210), [first.clone(), first]);
        for round in 1..4 {
            let of_round: Vec<u64> = fifth.iter().map(|step| round * 100 + step).collect();
            let found = explained(&mut rounds, &mut taps, round * 100, round * 100 + 100, 210);
            assert_eq!(found, [of_round.clone(), of_round]);
        }
        // A round after a pause is not busy before its own units say so.
        let after: Vec<u64> = (1000..1095).collect();
        assert_eq!(explained(&mut rounds, &mut taps, 1000, 1100, 210), [after.clone(), after]);
    }

    /// A request that does not complete keeps the explainer awake for another 200 ms.
    #[test]
    fn requests_that_are_explained_are_followed_to_their_end() {
        let (mut rounds, mut taps) = (Rounds::new(), taps());
        explained(&mut rounds, &mut taps, 0, 100, 1000);
        for is_left in [true, false] {
            let from = if is_left { 100 } else { 200 };
            rounds.on_request(Time::from_ns(from * STEP), 1, Time::START, &mut taps);
            if is_left {
                taps.on_submitted(RequestId(0), 7, &Request::read(0, 4096), 0);
            }
            let [accepted, awake] = explained(&mut rounds, &mut taps, from, from + 100, 1000);
            assert_eq!((accepted.len(), awake.len()), (20, if is_left { 40 } else { 20 }));
        }
    }
}
