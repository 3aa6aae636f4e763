//! The constants of the generator, computed from settings: the regions, the requests of each part, the share of
//! repeats. The head of `profile.rs` describes the parts.

use super::Settings;
use crate::error::{ErrorKind, TraceError};
use std::ops::Range;

const PAGE: u64 = 4096;
/// Virtual pages of a chunk of 1 MiB. Chunks are permuted over the address space; a page keeps its place in its chunk.
/// If the chunks do not fit into the address space, the chunk size is halved until they fit.
const CHUNK_PAGES: u64 = 256;
/// The largest share of the address space that the footprint may take.
const SPACE_SHARE: f64 = 0.9;
/// Shares of the periodic writes in the rewrites that are tried, the largest first. The first share that fits the skew
/// (the share of the most written 1 % of the written pages) and the median rewrite interval is taken; if none fits,
/// there are no periodic writes.
const PERIODIC_SHARES: [f64; 6] = [0.25, 0.2, 0.15, 0.1, 0.06, 0.03];

/// The generator's constants. The regions `periodic`, `hot`, `cold` and `read_only` are ranges of virtual pages. The
/// hottest page is virtual page 0.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) requests: u64,
    pub(super) reads: u64,
    /// Writes to hot and cold pages.
    pub(super) rest_writes: u64,
    pub(super) hottest_writes: u64,
    pub(super) periodic_requests: u64,
    pub(super) periodic_groups: u64,
    pub(super) periodic_pages_each: u64,
    pub(super) period_ns: f64,
    pub(super) periodic: Range<u64>,
    pub(super) hot: Range<u64>,
    pub(super) cold: Range<u64>,
    pub(super) read_only: Range<u64>,
    /// All virtual pages.
    pub(super) pages: u64,
    /// Of the writes to hot and cold pages that do not repeat a recent extent: the share that goes to hot pages.
    pub(super) hot_share: f64,
    /// Of the writes to hot and cold pages: the share that repeats a recent extent.
    pub(super) repeat_share: f64,
    /// Mean pages of a read.
    pub(super) pages_per_read: f64,
    /// Mean pages of a write to hot or cold pages.
    pub(super) pages_per_write: f64,
    /// Bytes of the requests per byte of the pages that they touch: for reads, for writes.
    pub(super) fill: [f64; 2],
    /// Share of the page reads that find data not written since the start.
    pub(super) unwritten_read_ratio: Option<f64>,
    pub(super) chunk_pages: u64,
    pub(super) chunk_slots: u64,
    pub(super) duration_ns: f64,
    pub(super) burst_requests: f64,
    pub(super) burst_gap_ns: f64,
    pub(super) burst_pause_ns: f64,
}

/// The division of the page writes into the four parts of the profile.
#[derive(Clone, Copy, Debug, Default)]
struct Split {
    hottest: f64,
    periodic_pages: f64,
    /// Number of times that each periodic page is written.
    rounds: f64,
    hot_pages: f64,
    hot_writes: f64,
    repeat_share: f64,
}

impl Model {
    pub(super) fn new(s: &Settings, requests: u64, logical_bytes: u64) -> Result<Self, TraceError> {
        let space = logical_bytes.min(s.address_max_bytes.max(PAGE * CHUNK_PAGES)) / PAGE;
        let refuse =
            |message: String, remedy: &str| Err(TraceError::new(ErrorKind::Setting, message, remedy));
        if space < CHUNK_PAGES {
            return refuse(
                format!("expected a drive of at least 1 MiB for a profile, found {logical_bytes} bytes"),
                "enlarge the drive",
            );
        }
        let numbers = [
            s.bytes_mean - 511.0,
            s.pages_per_read,
            s.pages_per_write,
            s.duration_s,
            s.rewrite_interval_s_median,
            s.burst_requests_mean,
            s.burst_gap_us_mean,
        ];
        let shares = [s.read_ratio, s.top_1pct_written_share, s.unwritten_read_ratio.unwrap_or(0.0)];
        let is_valid = numbers.iter().all(|n| n.is_finite() && *n > 0.0)
            && shares.iter().all(|n| (0.0..=1.0).contains(n));
        if !is_valid || s.requests == 0 {
            return refuse(
                "expected settings of a profile with counts and times above 0, at least 512 bytes per request and \
                 shares from 0 to 1"
                    .into(),
                "correct the settings",
            );
        }
        let scale = requests as f64 / s.requests as f64;
        let shrink = scale.min(1.0);
        let n = requests as f64;
        let reads = libm::round(n * s.read_ratio).min(n);
        let writes = n - reads;
        let page_writes = writes * s.pages_per_write;
        let references = page_writes + reads * s.pages_per_read;
        let duration_s = s.duration_s * scale;

        let fit = (SPACE_SHARE * space as f64 / (s.footprint_pages as f64 * shrink)).min(1.0);
        let written = (s.written_pages as f64 * shrink * fit).min(page_writes * 0.97).max(1.0);
        let read_only = (s.footprint_pages.saturating_sub(s.written_pages) as f64 * shrink * fit)
            .min(reads * s.pages_per_read * 0.97);

        let hottest = (s.page_writes_max as f64 * scale).min(writes * 0.3);
        let split = divide(s, page_writes, written, hottest, duration_s, shrink < 1.0);
        let each = libm::floor(s.pages_per_write).max(1.0);
        let periodic_groups = libm::ceil(split.periodic_pages / each);
        let rounds = libm::floor(split.rounds);
        let periodic_requests = (periodic_groups * rounds).min(writes - hottest);
        let rest_writes = libm::floor(writes - hottest - periodic_requests);
        let rest_pages = page_writes - hottest - split.periodic_pages * rounds;

        let whole = |x: f64| libm::round(x.max(0.0)) as u64;
        let periodic = 1..1 + whole(split.periodic_pages);
        let hot = periodic.end..periodic.end + whole(split.hot_pages);
        let cold = hot.end..hot.end.max(whole(written));
        let read_only = cold.end..cold.end + whole(read_only);
        let pages = read_only.end;
        let mut chunk_pages = CHUNK_PAGES;
        while chunk_pages > 1 && pages.div_ceil(chunk_pages) > space / chunk_pages {
            chunk_pages /= 2;
        }

        let rest_writes_left = whole(writes) - whole(hottest).min(whole(writes));
        let periodic_requests = whole(periodic_requests).min(rest_writes_left);
        let rest_writes = whole(rest_writes).min(rest_writes_left - periodic_requests);
        let hottest_writes = whole(writes) - periodic_requests - rest_writes;
        let rest_requests = (reads + rest_writes as f64).max(1.0);
        let duration_ns = duration_s * 1e9;
        let burst_requests = s.burst_requests_mean.max(1.0);
        let bursts = (rest_requests / burst_requests).max(1.0);
        // A burst takes at most half of the mean time between bursts.
        let gap_max = duration_ns / rest_requests / 2.0;
        let burst_gap_ns = (s.burst_gap_us_mean * 1e3).min(gap_max);
        let burst_pause_ns = (duration_ns - (rest_requests - bursts) * burst_gap_ns) / bursts;
        Ok(Self {
            requests,
            reads: whole(reads),
            rest_writes,
            hottest_writes,
            periodic_requests,
            periodic_groups: whole(periodic_groups).max(1),
            periodic_pages_each: each as u64,
            period_ns: s.rewrite_interval_s_median * 1e9,
            periodic,
            hot,
            cold,
            read_only,
            pages,
            hot_share: (split.hot_writes / rest_pages.max(1.0)).clamp(0.0, 1.0),
            repeat_share: split.repeat_share,
            pages_per_read: s.pages_per_read,
            pages_per_write: (rest_pages / (rest_writes as f64).max(1.0)).max(1.0),
            fill: match s.sectors {
                None => [(s.bytes_mean * n / (references.max(1.0) * PAGE as f64)).clamp(0.125, 1.0); 2],
                Some(sectors) => {
                    let of = |sectors: u64, references: f64| {
                        (sectors as f64 * scale * 512.0 / (references.max(1.0) * PAGE as f64))
                            .clamp(0.125, 1.0)
                    };
                    [of(sectors[0], reads * s.pages_per_read), of(sectors[1], page_writes)]
                }
            },
            unwritten_read_ratio: s.unwritten_read_ratio,
            chunk_pages,
            chunk_slots: space / chunk_pages,
            duration_ns,
            burst_requests,
            burst_gap_ns,
            burst_pause_ns,
        })
    }
}

/// Divides the page writes into the four parts so that the skew and the median rewrite interval equal those of the
/// settings.
fn divide(
    s: &Settings,
    page_writes: f64,
    written: f64,
    hottest: f64,
    duration_s: f64,
    shortened: bool,
) -> Split {
    let top_pages = libm::ceil(written * 0.01);
    let top_writes = s.top_1pct_written_share * page_writes;
    let rewrites = (page_writes - written).max(1.0);
    let rounds = duration_s / s.rewrite_interval_s_median;
    let cold_mean = (page_writes - top_writes) / (written - top_pages).max(1.0);
    let solved = |periodic_pages: f64| {
        let hot_pages = (top_pages - periodic_pages - 1.0).max(0.0);
        let hot_writes =
            if hot_pages < 1.0 { 0.0 } else { (top_writes - hottest - periodic_pages * rounds).max(0.0) };
        let split = Split { hottest, periodic_pages, rounds, hot_pages, hot_writes, repeat_share: 0.0 };
        let early = |q: f64| early_share(&split, q, page_writes, written, rewrites, duration_s, s);
        let (mut low, mut high) = (0.0, repeat_share_max(&split, page_writes, written));
        let fits = early(low) <= 0.5 + periodic_pages * rounds / rewrites / 3.0;
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            if early(middle) < 0.5 { low = middle } else { high = middle }
        }
        (Split { repeat_share: low, ..split }, fits)
    };
    if rounds >= 3.0 {
        for share in PERIODIC_SHARES {
            let pages = libm::round(share * rewrites / rounds);
            // A shortened run has few pages in its top 1 %, so the periodic pages may be more than these.
            let room = if shortened { (top_pages * 0.85).max(written * 0.1) } else { top_pages * 0.85 };
            let skew_allows = hottest + pages * rounds <= top_writes || shortened;
            if pages < 1.0 || pages + 1.0 > room || !skew_allows || cold_mean > rounds * 0.8 {
                continue;
            }
            let (split, fits) = solved(pages);
            if fits {
                return split;
            }
        }
    }
    solved(0.0).0
}

/// The largest share of repeats that leaves enough other writes to write each cold page once.
fn repeat_share_max(split: &Split, page_writes: f64, written: f64) -> f64 {
    let rest = (page_writes - split.hottest - split.periodic_pages * split.rounds).max(1.0);
    let cold_writes = (rest - split.hot_writes).max(1.0);
    let cold_pages = (written - split.hot_pages - split.periodic_pages - 1.0).max(0.0);
    (1.0 - 1.1 * cold_pages / cold_writes).clamp(0.0, 0.95)
}

/// The rewrites with an interval shorter than the period, plus half of the periodic rewrites, as a share of all
/// rewrites. A share `q` of the writes to hot and cold pages repeats a recent extent.
fn early_share(
    split: &Split,
    q: f64,
    page_writes: f64,
    written: f64,
    rewrites: f64,
    duration_s: f64,
    s: &Settings,
) -> f64 {
    let periodic = split.periodic_pages * split.rounds;
    let rest = (page_writes - split.hottest - periodic).max(0.0);
    let cold_pages = (written - split.hot_pages - split.periodic_pages - 1.0).max(1.0);
    let hot = split.hot_writes * (1.0 - q);
    let cold = (rest - split.hot_writes).max(0.0) * (1.0 - q);
    // Random writes to a page are a Poisson process, so the intervals between them are exponentially distributed.
    let sooner = |writes: f64, pages: f64| {
        1.0 - libm::exp(-s.rewrite_interval_s_median * writes / (pages.max(1.0) * duration_s))
    };
    let hot_early = hot * sooner(hot, split.hot_pages);
    let cold_early = (cold - cold_pages).max(0.0) * sooner(cold - cold_pages, cold_pages);
    (split.hottest + q * rest + hot_early + cold_early + periodic / 2.0) / rewrites
}
