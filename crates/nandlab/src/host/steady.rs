//! The SNIA steady-state test (Solid State Storage Performance Test Specification, Enterprise, "steady state"), with
//! rounds long enough to be meaningful.
//!
//! The initial fill of a drive affects its performance until the spare space has been written many times. So a round
//! ends when two amounts have been programmed in it: for the host, the spare bytes (raw less logical), and for all
//! causes together, a fifth of the raw bytes. Raw bytes are here those of the blocks that the drive has, without bad
//! ones. The five rounds of the window then program at least the raw capacity. In a long run rounds become longer, so
//! that the window remains a quarter to a half of the run and slow changes are detected.

use crate::base::geometry::Geometry;
use crate::base::numbers::{finite, number, per, ratio};
use crate::base::state::{state, value};
use crate::base::units::Time;
use schemars::JsonSchema;
use serde::Serialize;

/// Number of rounds of the measurement window.
const ROUNDS: usize = 5;

/// The verdict on a quantity in the window, which is the last five rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct SteadyState {
    /// Whether the mean is above 0, the range at most 20 % of the mean, and the rise of the fitted line over the window
    /// at most 10 % of the mean.
    pub is_met: bool,
    /// Mean of the five rounds.
    pub mean: f64,
    /// Range: (largest - smallest) / mean.
    pub range: f64,
    /// Slope: |rise of the least-squares line over the window| / mean.
    pub slope: f64,
}

/// Whether the drive is in a steady state, judged by the last five rounds (the window).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The run has fewer than five rounds.
    #[serde(rename = "too short")]
    TooShort,
    /// The WAF and, in a closed loop, the throughput meet the criteria, and at least 0.9 pages are erased per page
    /// programmed in the window.
    Steady,
    /// Not steady: the run has five rounds, but does not meet the criteria.
    #[serde(rename = "not steady")]
    NotSteady,
}

/// A quantity in each round, and the verdict on the window, which is the last five rounds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SteadyQuantity {
    /// Whether mean > 0, range <= 0.2 and slope <= 0.1 in the last five rounds; null if the run has fewer.
    pub met: Option<bool>,
    /// Mean of the last five rounds; null if the run has fewer.
    pub mean: Option<f64>,
    /// Range of the last five rounds: (largest - smallest) / mean; null if the run has fewer.
    #[schemars(extend("unit" = "share"))]
    pub range: Option<f64>,
    /// Slope of the last five rounds: |rise of the least-squares line| / mean; null if the run has fewer.
    #[schemars(extend("unit" = "share"))]
    pub slope: Option<f64>,
    /// The quantity in each round of the run; null for a round in which it is undefined.
    pub rounds: Vec<Option<f64>>,
}

/// The SNIA steady-state test.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SteadySummary {
    /// Whether the drive is in a steady state, judged by the last five rounds.
    pub verdict: Verdict,
    /// Number of rounds of the run.
    #[schemars(extend("unit" = "rounds"))]
    pub rounds: usize,
    /// The least number of bytes programmed for the host in a round.
    #[schemars(extend("unit" = "bytes"))]
    pub round_host_bytes_min: u64,
    /// The least number of bytes programmed for all causes in a round.
    #[schemars(extend("unit" = "bytes"))]
    pub round_bytes_min: u64,
    /// Beginning of the window, which is the last five rounds; null if the run has fewer.
    #[schemars(extend("unit" = "s"))]
    pub window_begin_s: Option<f64>,
    /// End of the window, which is the last five rounds; null if the run has fewer.
    #[schemars(extend("unit" = "s"))]
    pub window_end_s: Option<f64>,
    /// Pages of the blocks erased in the last five rounds per page programmed in them; null if the run has fewer
    /// rounds.
    #[schemars(extend("unit" = "share"))]
    pub erased_share: Option<f64>,
    /// Write amplification by round: bytes programmed per byte of completed host writes.
    pub waf: SteadyQuantity,
    /// Throughput of host reads and writes by round; null in an open loop, where the load does not follow the drive.
    #[schemars(extend("unit" = "bytes/s"))]
    pub bytes_per_s: Option<SteadyQuantity>,
    /// Number of requests, those of the warm-up included, with which the run would have five rounds, with a tenth added;
    /// null if the run has five rounds, or nothing was programmed for the host.
    #[schemars(extend("unit" = "requests"))]
    pub requests_needed: Option<u64>,
    /// Value of `workload.repeat` with which the run would have five rounds, with a tenth added; null if the run has
    /// five rounds, or nothing was programmed for the host.
    pub repeat_needed: Option<u64>,
}

/// Tests the last five of `rounds`; `None` if there are fewer.
pub fn steady_state(rounds: &[f64]) -> Option<SteadyState> {
    let window = rounds.last_chunk::<ROUNDS>()?;
    let mean = window.iter().sum::<f64>() / ROUNDS as f64;
    let largest = window.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let smallest = window.iter().copied().fold(f64::INFINITY, f64::min);
    let centre = (ROUNDS - 1) as f64 / 2.0;
    let covariance: f64 = window.iter().enumerate().map(|(i, v)| (i as f64 - centre) * (v - mean)).sum();
    let variance: f64 = (0..ROUNDS).map(|i| (i as f64 - centre) * (i as f64 - centre)).sum();
    let range = ratio(largest - smallest, mean);
    let slope = ratio((covariance / variance * (ROUNDS - 1) as f64).abs(), mean);
    Some(SteadyState { is_met: mean > 0.0 && range <= 0.20 && slope <= 0.10, mean, range, slope })
}

/// Counts from the beginning of the run to a time; bytes count from the end of the warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    pub(crate) time: Time,
    /// Number of pages programmed for the host.
    pub(crate) host_pages: u64,
    /// Number of pages programmed for all causes.
    pub(crate) pages: u64,
    pub(crate) erases: u64,
    /// Bytes of completed host writes.
    pub(crate) written: u64,
    /// Bytes of completed host reads and writes.
    pub(crate) moved: u64,
}

/// The number of rounds at which every two rounds are merged into one.
const ROUNDS_MAX: usize = 20;

/// The smallest share of the programmed pages whose blocks must be erased in the window. With a smaller share the drive
/// is still being filled.
const ERASED_MIN: f64 = 0.9;

/// The rounds of a run.
#[derive(Debug)]
pub(crate) struct Rounds {
    /// The least number of pages programmed for the host in a round.
    host_pages_min: u64,
    /// The least number of pages programmed for all causes in a round.
    pages_min: u64,
    /// The counts at the beginning of the results, and at the end of each round.
    ends: Vec<Count>,
    /// The number of pages programmed for the host at which the present round can end at the earliest.
    due: u64,
}

impl Rounds {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        let spare = geometry.good_units() - geometry.logical_units;
        let host_pages_min = u64::from(spare.div_ceil(geometry.units_per_page)).max(1);
        let pages = geometry.good_units() / geometry.units_per_page;
        let pages_min = u64::from(pages).div_ceil(ROUNDS as u64);
        Self { host_pages_min, pages_min, ends: Vec::new(), due: 0 }.beginning_at(Count::default())
    }

    /// The rounds of the same drive, whose results begin when the counts are `begin`.
    pub(crate) fn beginning_at(&self, begin: Count) -> Self {
        let &Self { host_pages_min, pages_min, .. } = self;
        let mut ends = Vec::with_capacity(ROUNDS_MAX + 1);
        ends.push(begin);
        Self { host_pages_min, pages_min, ends, due: begin.host_pages + host_pages_min }
    }

    /// Whether the present round may end now that `host_pages` pages have been programmed for the host.
    #[inline(always)]
    pub(crate) fn may_end(&self, host_pages: u64) -> bool {
        host_pages >= self.due
    }

    /// Ends the present round, if enough pages have been programmed in it.
    #[cold]
    pub(crate) fn end(&mut self, now: Count) {
        let begin = self.ends[self.ends.len() - 1];
        let missing = (begin.pages + self.pages_min).saturating_sub(now.pages);
        if missing > 0 {
            // The next check is due after a 64th of the missing pages.
            self.due = now.host_pages + (missing / 64).max(1);
            return;
        }
        self.ends.push(now);
        if self.ends.len() == ROUNDS_MAX + 1 {
            let mut is_kept = false;
            self.ends.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            (self.host_pages_min, self.pages_min) = (2 * self.host_pages_min, 2 * self.pages_min);
        }
        self.due = now.host_pages + self.host_pages_min;
    }

    /// The value of `steady_state` in the summary; `None` if the host has written nothing. Throughput is judged only in
    /// a closed loop, where the load follows the drive. `run`: the number of requests that have ended, the number of
    /// requests of the warm-up before them, and the number of times that the workload was played.
    pub(crate) fn verdict(
        &self,
        page_bytes: u64,
        pages_per_block: u32,
        now: &Count,
        closed_loop: bool,
        run: [u64; 3],
    ) -> Option<SteadySummary> {
        if now.written == 0 {
            return None;
        }
        let of_rounds = |value: &dyn Fn(&Count, &Count) -> f64| -> Vec<f64> {
            self.ends.windows(2).map(|pair| value(&pair[0], &pair[1])).collect()
        };
        let waf = of_rounds(&|begin, end| {
            let written = end.written - begin.written;
            per((end.pages - begin.pages) * page_bytes, written).unwrap_or(f64::NAN)
        });
        let bytes_per_s = of_rounds(&|begin, end| {
            ratio((end.moved - begin.moved) as f64, (end.time - begin.time).seconds())
        });
        let rounds = self.ends.len() - 1;
        let is_over = rounds >= ROUNDS;
        let window = &self.ends[rounds.saturating_sub(ROUNDS)..];
        let (begin, end) = (window[0], window[window.len() - 1]);
        let erased = ratio(
            ((end.erases - begin.erases) * u64::from(pages_per_block)) as f64,
            (end.pages - begin.pages) as f64,
        );
        let judged = |values: &[f64]| steady_state(values).expect("there are enough rounds");
        let is_steady = is_over
            && judged(&waf).is_met
            && (!closed_loop || judged(&bytes_per_s).is_met)
            && erased >= ERASED_MIN;
        let verdict = if !is_over {
            Verdict::TooShort
        } else if is_steady {
            Verdict::Steady
        } else {
            Verdict::NotSteady
        };
        let shown = |values: &[f64]| {
            let state = is_over.then(|| judged(values));
            let of = |value: fn(&SteadyState) -> f64| state.as_ref().and_then(|state| finite(value(state)));
            SteadyQuantity {
                met: state.as_ref().map(|state| state.is_met),
                mean: of(|state| state.mean),
                range: of(|state| state.range),
                slope: of(|state| state.slope),
                rounds: values.iter().copied().map(finite).collect(),
            }
        };
        let times = self.times_needed(now).filter(|_| !is_over);
        let [ended, warm_up, repeat] = run;
        // The warm-up is not played longer.
        let longer = |times: f64| match warm_up {
            0 => times,
            _ => (warm_up as f64 + ended as f64 * times) / (warm_up + ended) as f64,
        };
        let needed = |of: u64| times.map(|times| (of as f64 * longer(times)).ceil() as u64);
        Some(SteadySummary {
            verdict,
            rounds,
            round_host_bytes_min: self.host_pages_min * page_bytes,
            round_bytes_min: self.pages_min * page_bytes,
            window_begin_s: is_over.then(|| number(begin.time.seconds())),
            window_end_s: is_over.then(|| number(end.time.seconds())),
            erased_share: is_over.then(|| number(erased)),
            waf: shown(&waf),
            bytes_per_s: closed_loop.then(|| shown(&bytes_per_s)),
            requests_needed: needed(warm_up + ended),
            repeat_needed: needed(repeat),
        })
    }

    /// The factor by which the run must be longer to have five rounds at its rate of programs so far, with a tenth
    /// added; `None` if nothing has been programmed for the host.
    fn times_needed(&self, now: &Count) -> Option<f64> {
        let (rounds, begin) = (ROUNDS as f64, self.ends[0]);
        let (host_pages, pages) = (now.host_pages - begin.host_pages, now.pages - begin.pages);
        let by_host = rounds * self.host_pages_min as f64 / host_pages as f64;
        let by_all = rounds * self.pages_min as f64 / pages as f64;
        (host_pages > 0).then(|| 1.1 * by_host.max(by_all))
    }
}

value! { Count { time, host_pages, pages, erases, written, moved } }
state! { Rounds { host_pages_min, pages_min, ends, due } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::geometry::{Cell, DriveSpec};
    use crate::base::state::{State, StateReader, StateWriter};

    #[test]
    fn a_window_is_steady_only_if_both_range_and_slope_are_within_their_limits() {
        assert_eq!(steady_state(&[1.0; 4]), None);
        assert!(
            steady_state(&[9.0, 1.0, 1.0, 1.0, 1.0, 1.0]).unwrap().is_met,
            "only the last five rounds are tested"
        );
        let wide = steady_state(&[1.0, 1.25, 1.0, 1.25, 1.0]).unwrap();
        assert!(!wide.is_met && wide.range > 0.20 && wide.slope < 0.10);
        // The values rise by 0.03 per round, so by 0.12 over the window: 0.113 of the mean of 1.06, which is above the
        // limit of the slope and below that of the range.
        let rising = steady_state(&[1.0, 1.03, 1.06, 1.09, 1.12]).unwrap();
        assert!(!rising.is_met && rising.range < 0.20);
        assert!((rising.slope - 0.12 / 1.06).abs() < 1e-12);
        assert!(!steady_state(&[0.0; 5]).unwrap().is_met, "five rounds of 0 are not a steady state");
    }

    /// One plane of 100 blocks of 10 pages of 4 KiB; 800 of the 1000 pages are logical. So a round needs 200 pages for
    /// the host, and 1000 / 5 = 200 pages for all causes.
    fn geometry() -> Geometry {
        Geometry::new(&DriveSpec {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: 100,
            pages_per_block: 10,
            page_size_bytes: 4096,
            cell: Cell::Mlc,
            layers: 1,
            op: 0.25,
            bad_blocks: 0.0,
            endurance: 3000,
            registers: 1,
            program_order: crate::base::geometry::ProgramOrder::Page,
        })
    }

    /// The rounds and final counts of a drive that programs `waf(t)` pages for the t-th of `pages` host pages, at one
    /// host page per second, and erases the share `erased` of the programmed pages.
    fn played(pages: u64, waf: impl Fn(u64) -> u64, erased: f64) -> (Rounds, Count) {
        let mut rounds = Rounds::new(&geometry());
        let mut now = Count::default();
        for page in 1..=pages {
            now.time = Time::from_ns(page * 1_000_000_000);
            now.host_pages = page;
            now.pages += waf(page);
            now.erases = (now.pages as f64 * erased / 10.0) as u64;
            (now.written, now.moved) = (page * 4096, page * 4096);
            if rounds.may_end(now.host_pages) {
                rounds.end(now);
            }
        }
        (rounds, now)
    }

    fn verdict(pages: u64, waf: impl Fn(u64) -> u64, erased: f64) -> Option<SteadySummary> {
        let (rounds, now) = played(pages, waf, erased);
        rounds.verdict(4096, 10, &now, true, [pages, 0, 2])
    }

    #[test]
    fn a_round_needs_the_spare_pages_for_the_host_and_a_fifth_of_the_raw_pages_for_all_causes() {
        let (rounds, _) = played(999, |_| 2, 1.0);
        let ends: Vec<u64> = rounds.ends.iter().map(|end| end.host_pages).collect();
        assert_eq!(
            ends,
            [0, 200, 400, 600, 800],
            "each round has 200 host pages and 400 pages for all causes, and needs 200 of each"
        );
        let (mut rounds, mut now) = (Rounds::new(&geometry()), Count::default());
        rounds.pages_min = 500;
        while rounds.ends.len() == 1 {
            (now.host_pages, now.pages) = (now.host_pages + 1, now.pages + 1);
            if rounds.may_end(now.host_pages) {
                rounds.end(now);
            }
        }
        assert!(
            (500..=508).contains(&now.host_pages),
            "{now:?}: the round must end soon after 500 pages for all causes"
        );
    }

    #[test]
    fn in_a_long_run_the_window_remains_a_quarter_to_six_tenths_of_the_run() {
        for pages in [2_000, 4_000, 4_200, 17_000, 100_000] {
            let (rounds, now) = played(pages, |_| 1, 1.0);
            assert!(rounds.ends.len() <= ROUNDS_MAX);
            let window = now.host_pages - rounds.ends[rounds.ends.len() - 1 - ROUNDS].host_pages;
            let share = window as f64 / pages as f64;
            assert!((0.25..=0.6).contains(&share), "{pages} pages: the window is {share} of the run");
        }
    }

    /// A checkpoint did not save the length of a round. A drive that went on from it after twenty rounds, when rounds have
    /// become twice as long, ended its rounds too early, and stated half of their length.
    #[test]
    fn a_checkpoint_has_the_length_of_the_rounds() {
        let (rounds, now) = played(5_000, |_| 1, 1.0);
        let mut bytes = Vec::new();
        let mut sink = |chunk: &[u8]| {
            bytes.extend_from_slice(chunk);
            Ok(())
        };
        let mut out = StateWriter::to(&mut sink);
        rounds.save_state(&mut out);
        out.finish().unwrap();
        let (left, mut bytes) = (bytes.len() as u64, &*bytes);
        let mut source = |chunk: &mut [u8]| Ok(std::io::Read::read_exact(&mut bytes, chunk)?);
        let mut restored = Rounds::new(&geometry());
        restored.load_state(&mut StateReader::of(&mut source, left)).unwrap();
        let verdict = |of: &Rounds| of.verdict(4096, 10, &now, true, [5_000, 0, 1]).unwrap();
        assert_eq!(verdict(&restored).round_bytes_min, 2 * 200 * 4096);
        assert_eq!(verdict(&restored), verdict(&rounds));
        assert_eq!(restored.due, rounds.due);
    }

    #[test]
    fn the_verdict_is_steady_not_steady_or_too_short() {
        let even = |pages| verdict(pages, |_| 3, 1.0).unwrap();
        assert_eq!((even(1000).verdict, even(999).verdict), (Verdict::Steady, Verdict::TooShort));
        assert_eq!(even(1000).waf.mean, Some(3.0));
        assert_eq!(even(1000).bytes_per_s.unwrap().mean, Some(4096.0));
        // Five rounds take 1000 host pages, twice those of this run. With a tenth added: 2.2 x 500 requests are 1100,
        // and 2.2 x 2 plays are 4.4, rounded up to 5.
        assert_eq!((even(500).requests_needed, even(500).repeat_needed), (Some(1100), Some(5)));
        assert_eq!(even(1100).requests_needed, None);
        // The WAF is steady neither if it rises in the window, nor if it alternates between rounds.
        assert_eq!(verdict(1000, |page| 2 + u64::from(page > 700), 1.0).unwrap().verdict, Verdict::NotSteady);
        assert_eq!(verdict(1000, |page| 2 + page / 200 % 2, 1.0).unwrap().verdict, Verdict::NotSteady);
        // The WAF is steady, but only half of the programmed pages are erased: free space is being used up.
        let filling = verdict(1000, |_| 1, 0.5).unwrap();
        assert_eq!((filling.verdict, filling.waf.met), (Verdict::NotSteady, Some(true)));
        assert!((filling.erased_share.unwrap() - 0.5).abs() < 0.02);
        assert_eq!(verdict(0, |_| 1, 1.0), None, "there is no verdict without writes");
    }

    /// The results begin after 300 requests of the warm-up, which have programmed 300 pages for the host and 900 in all.
    /// 500 requests follow. As above five rounds take 1100 requests, with the warm-up 1400. The two plays of the workload
    /// had 800 requests, so 1400 requests take 3.5 plays, rounded up to 4.
    #[test]
    fn rounds_begin_after_the_warm_up_which_the_proposed_length_includes() {
        let (host_pages, pages) = (300, 900);
        let mut now = Count { time: Time::from_ns(300), host_pages, pages, ..Count::default() };
        let mut rounds = Rounds::new(&geometry()).beginning_at(now);
        for page in 1..=500 {
            (now.time, now.host_pages) = (Time::from_ns(300 + page), 300 + page);
            (now.pages, now.written, now.moved) = (900 + 3 * page, page * 4096, page * 4096);
            if rounds.may_end(now.host_pages) {
                rounds.end(now);
            }
        }
        let ends: Vec<u64> = rounds.ends.iter().map(|end| end.host_pages).collect();
        assert_eq!(ends, [300, 500, 700]);
        let found = rounds.verdict(4096, 10, &now, true, [500, 300, 2]).unwrap();
        assert_eq!((found.requests_needed, found.repeat_needed), (Some(1400), Some(4)));
        assert_eq!(found.waf.rounds, [Some(3.0), Some(3.0)]);
    }

    #[test]
    fn throughput_is_judged_only_in_a_closed_loop() {
        let (mut rounds, now) = played(1000, |_| 2, 1.0);
        rounds.ends.iter_mut().zip(0..).for_each(|(end, at)| end.moved *= 1 + at);
        let open = rounds.verdict(4096, 10, &now, false, [1000, 0, 1]).unwrap();
        let closed = rounds.verdict(4096, 10, &now, true, [1000, 0, 1]).unwrap();
        assert_eq!((open.verdict, open.bytes_per_s), (Verdict::Steady, None));
        assert_eq!((closed.verdict, closed.bytes_per_s.unwrap().met), (Verdict::NotSteady, Some(false)));
    }
}
