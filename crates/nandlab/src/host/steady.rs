//! The SNIA steady-state test (Solid State Storage Performance Test Specification, Enterprise, "steady state"), with
//! rounds long enough to be meaningful.
//!
//! The initial fill of a drive affects its performance until the spare space has been written many times. So a round
//! ends when the spare bytes, raw less logical, have been programmed for the host, and a fifth of the raw bytes for all
//! causes together: the five rounds of the window then program the raw capacity at least once. In a long run rounds
//! become longer, so that the window stays a quarter to a half of the run and slow changes are seen.

use crate::base::geometry::Geometry;
use crate::base::numbers::{finite, number, per, ratio};
use crate::base::units::Time;
use schemars::JsonSchema;
use serde::Serialize;

/// Rounds of the measurement window.
const ROUNDS: usize = 5;

/// The verdict on the last five rounds of a quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct SteadyState {
    /// Whether the range is at most 20 % of the mean, and the rise of the fitted line over the window at most 10 % of
    /// the mean.
    pub is_met: bool,
    /// Mean of the window.
    pub mean: f64,
    /// (largest - smallest) / mean.
    pub range: f64,
    /// |rise of the least-squares line over the window| / mean.
    pub slope: f64,
}

/// What the rounds say of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The run has fewer than five rounds.
    #[serde(rename = "too short")]
    TooShort,
    /// The drive is in a steady state.
    Steady,
    /// The drive is not.
    #[serde(rename = "not steady")]
    NotSteady,
}

/// A quantity by round, and the verdict on the last five of them; null while there are fewer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SteadyQuantity {
    /// Whether range and slope are within their limits.
    pub met: Option<bool>,
    /// Mean of the window.
    pub mean: Option<f64>,
    /// Largest less smallest round of the window, by the mean.
    #[schemars(extend("unit" = "share"))]
    pub range: Option<f64>,
    /// Rise of the fitted line over the window, by the mean.
    #[schemars(extend("unit" = "share"))]
    pub slope: Option<f64>,
    /// The quantity in each round; null where the round has none.
    pub rounds: Vec<Option<f64>>,
}

/// The SNIA steady-state test.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SteadySummary {
    /// What the rounds say of the drive.
    pub verdict: Verdict,
    /// Rounds of the run.
    #[schemars(extend("unit" = "rounds"))]
    pub rounds: usize,
    /// Bytes that are programmed for the host in a round, at least.
    #[schemars(extend("unit" = "bytes"))]
    pub round_host_bytes_min: u64,
    /// Bytes that are programmed for all causes in a round, at least.
    #[schemars(extend("unit" = "bytes"))]
    pub round_bytes_min: u64,
    /// Beginning of the window; null while there are fewer than five rounds.
    #[schemars(extend("unit" = "s"))]
    pub window_begin_s: Option<f64>,
    /// End of the window.
    #[schemars(extend("unit" = "s"))]
    pub window_end_s: Option<f64>,
    /// Pages erased in the window by pages programmed in it.
    #[schemars(extend("unit" = "share"))]
    pub erased_share: Option<f64>,
    /// Write amplification.
    pub waf: SteadyQuantity,
    /// Throughput; null in an open loop, where the load does not follow the drive.
    #[schemars(extend("unit" = "bytes/s"))]
    pub bytes_per_s: Option<SteadyQuantity>,
    /// Requests that five rounds take, and a tenth more; null where there are five rounds.
    #[schemars(extend("unit" = "requests"))]
    pub requests_needed: Option<u64>,
    /// `workload.repeat` that five rounds take, and a tenth more; null where there are five rounds.
    pub repeat_needed: Option<u64>,
}

/// Tests the last five of `rounds`; `None` when there are fewer.
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

/// The counts at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    pub(crate) time: Time,
    /// Pages programmed for the host.
    pub(crate) host_pages: u64,
    /// Pages programmed for all causes.
    pub(crate) pages: u64,
    pub(crate) erases: u64,
    /// Bytes of the host's writes.
    pub(crate) written: u64,
    /// Bytes of the host's reads and writes.
    pub(crate) moved: u64,
}

/// The largest number of rounds kept: at this number every two rounds become one.
const ROUNDS_MAX: usize = 20;

/// The least share of the programmed pages whose blocks must be erased in the window; with a smaller share the drive is
/// still being filled.
const ERASED_MIN: f64 = 0.9;

/// The rounds of a run.
#[derive(Debug)]
pub(crate) struct Rounds {
    /// Pages that must be programmed for the host in a round.
    host_pages_min: u64,
    /// Pages that must be programmed for all causes in a round.
    pages_min: u64,
    /// The counts at the beginning, and at the end of each round.
    ends: Vec<Count>,
    /// The number of pages programmed for the host at which the round under way can end at the earliest.
    due: u64,
}

impl Rounds {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        let host_pages_min = u64::from(geometry.pages - geometry.logical_pages).max(1);
        let mut ends = Vec::with_capacity(ROUNDS_MAX + 1);
        ends.push(Count::default());
        let pages_min = u64::from(geometry.pages).div_ceil(ROUNDS as u64);
        Self { host_pages_min, pages_min, ends, due: host_pages_min }
    }

    /// Whether the round under way may end, with `host_pages` pages programmed for the host.
    #[inline(always)]
    pub(crate) fn may_end(&self, host_pages: u64) -> bool {
        host_pages >= self.due
    }

    /// Ends the round under way, if enough has been programmed in it.
    #[cold]
    pub(crate) fn end(&mut self, now: Count) {
        let begin = self.ends[self.ends.len() - 1];
        let missing = (begin.pages + self.pages_min).saturating_sub(now.pages);
        if missing > 0 {
            // The next check comes after a 64th of the missing pages.
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

    /// The key `steady_state` of the summary; null if the host has written nothing. Throughput counts in a closed loop,
    /// where the load follows the drive. `run` has the numbers of requests that have ended and of times that the
    /// workload was played.
    pub(crate) fn verdict(
        &self,
        geometry: &Geometry,
        now: &Count,
        closed_loop: bool,
        run: [u64; 2],
    ) -> Option<SteadySummary> {
        if now.written == 0 {
            return None;
        }
        let page_bytes = u64::from(geometry.page_bytes);
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
            ((end.erases - begin.erases) * u64::from(geometry.pages_per_block)) as f64,
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
        let needed = |of: u64| times.map(|times| (of as f64 * times).ceil() as u64);
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
            requests_needed: needed(run[0]),
            repeat_needed: needed(run[1]),
        })
    }

    /// The factor by which the run must be longer to have five rounds, at its rate of programs so far and with a tenth
    /// added; `None` if nothing has been programmed for the host.
    fn times_needed(&self, now: &Count) -> Option<f64> {
        let rounds = ROUNDS as f64;
        let by_host = rounds * self.host_pages_min as f64 / now.host_pages as f64;
        let by_all = rounds * self.pages_min as f64 / now.pages as f64;
        (now.host_pages > 0).then(|| 1.1 * by_host.max(by_all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::geometry::{Cell, DriveSpec};

    #[test]
    fn both_criteria_count() {
        assert_eq!(steady_state(&[1.0; 4]), None);
        assert!(steady_state(&[9.0, 1.0, 1.0, 1.0, 1.0, 1.0]).unwrap().is_met, "only the last five count");
        let wide = steady_state(&[1.0, 1.25, 1.0, 1.25, 1.0]).unwrap();
        assert!(!wide.is_met && wide.range > 0.20 && wide.slope < 0.10);
        // The values rise by 0.03 a round: by 0.12 over the window, which is 0.113 of the mean and within the range
        // criterion.
        let rising = steady_state(&[1.0, 1.03, 1.06, 1.09, 1.12]).unwrap();
        assert!(!rising.is_met && rising.range < 0.20);
        assert!((rising.slope - 0.12 / 1.06).abs() < 1e-12);
        assert!(!steady_state(&[0.0; 5]).unwrap().is_met, "nothing happening is not a steady state");
    }

    /// 1 plane of 100 blocks of 10 pages of 4 KiB, 800 of the 1000 pages logical: rounds of 200 pages.
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
            endurance: 3000,
        })
    }

    /// A drive that programs `waf(t)` pages for the t-th of `pages` host pages, at one host page a second, and erases
    /// the share `erased` of the programmed pages.
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
        rounds.verdict(&geometry(), &now, true, [pages, 2])
    }

    #[test]
    fn a_round_is_the_spare_pages_and_a_fifth_of_the_raw_ones() {
        let (rounds, _) = played(999, |_| 2, 1.0);
        let ends: Vec<u64> = rounds.ends.iter().map(|end| end.host_pages).collect();
        assert_eq!(
            ends,
            [0, 200, 400, 600, 800],
            "200 host pages a round, and 400 pages for all causes, where 200 are needed"
        );
        let (mut rounds, mut now) = (Rounds::new(&geometry()), Count::default());
        rounds.pages_min = 500;
        while rounds.ends.len() == 1 {
            (now.host_pages, now.pages) = (now.host_pages + 1, now.pages + 1);
            if rounds.may_end(now.host_pages) {
                rounds.end(now);
            }
        }
        assert!((500..=508).contains(&now.host_pages), "{now:?}: the pages for all causes end this round");
    }

    #[test]
    fn in_a_long_run_the_window_stays_a_quarter_to_a_half_of_it() {
        for pages in [2_000, 4_000, 4_200, 17_000, 100_000] {
            let (rounds, now) = played(pages, |_| 1, 1.0);
            assert!(rounds.ends.len() <= ROUNDS_MAX);
            let window = now.host_pages - rounds.ends[rounds.ends.len() - 1 - ROUNDS].host_pages;
            let share = window as f64 / pages as f64;
            assert!((0.25..=0.6).contains(&share), "{pages}: {share}");
        }
    }

    #[test]
    fn steady_not_steady_and_too_short() {
        let even = |pages| verdict(pages, |_| 3, 1.0).unwrap();
        assert_eq!((even(1000).verdict, even(999).verdict), (Verdict::Steady, Verdict::TooShort));
        assert_eq!(even(1000).waf.mean, Some(3.0));
        assert_eq!(even(1000).bytes_per_s.unwrap().mean, Some(4096.0));
        // 1.1 times the least length: enough, and not much too long.
        assert_eq!((even(500).requests_needed, even(500).repeat_needed), (Some(1100), Some(5)));
        assert_eq!(even(1100).requests_needed, None);
        // The WAF still rises, or swings.
        assert_eq!(verdict(1000, |page| 2 + u64::from(page > 700), 1.0).unwrap().verdict, Verdict::NotSteady);
        assert_eq!(verdict(1000, |page| 2 + page / 200 % 2, 1.0).unwrap().verdict, Verdict::NotSteady);
        // The WAF is even, but free space is being used up.
        let filling = verdict(1000, |_| 1, 0.5).unwrap();
        assert_eq!((filling.verdict, filling.waf.met), (Verdict::NotSteady, Some(true)));
        assert!((filling.erased_share.unwrap() - 0.5).abs() < 0.02);
        assert_eq!(verdict(0, |_| 1, 1.0), None, "without writes there is nothing to judge");
    }

    #[test]
    fn throughput_counts_in_a_closed_loop_alone() {
        let (mut rounds, now) = played(1000, |_| 2, 1.0);
        rounds.ends.iter_mut().zip(0..).for_each(|(end, at)| end.moved *= 1 + at);
        let open = rounds.verdict(&geometry(), &now, false, [1000, 1]).unwrap();
        let closed = rounds.verdict(&geometry(), &now, true, [1000, 1]).unwrap();
        assert_eq!((open.verdict, open.bytes_per_s), (Verdict::Steady, None));
        assert_eq!((closed.verdict, closed.bytes_per_s.unwrap().met), (Verdict::NotSteady, Some(false)));
    }
}
