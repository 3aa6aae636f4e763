//! What a profile is drawn from: the published numbers, and assumptions where there are none.

use crate::generate::Published;

/// The numbers that shape a profile. [`Settings::of`] fills them from what was published; any may be changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Requests that the other numbers cover.
    pub requests: u64,
    /// Share of reads among the requests. Not published: that of the page references, else 0.5.
    pub read_ratio: f64,
    /// Mean bytes of a request. Not published: 1 / 1.7 of the working set's bytes for each distinct start address (1.7
    /// is the geometric mean of that excess over the five traces where both are known; it varies from 0.7 to 3.8),
    /// else 4 KiB (Financial), 15 KiB (WebSearch), 8 KiB.
    pub bytes_mean: f64,
    /// Mean 4 KiB pages that a read touches. Not published: from `bytes_mean`.
    pub pages_per_read: f64,
    /// Mean 4 KiB pages that a write touches. Not published: from `bytes_mean`.
    pub pages_per_write: f64,
    /// Distinct pages. Not published: the working set, else the distinct start addresses, else a fifth of the page
    /// references.
    pub footprint_pages: u64,
    /// Distinct pages written. Not published: the footprint times the writes' share of page references.
    pub written_pages: u64,
    /// The space that addresses are scattered over, in bytes. Not published: 1.25 times the footprint.
    pub address_max_bytes: u64,
    /// Length in seconds. Not published: MSR's week; else by rate, 400 requests/s for WebSearch and 100 for others.
    pub duration_s: f64,
    /// Share of page writes that go to the most written 1 %. Not published: 0.5.
    pub top_1pct_written_share: f64,
    /// Period of the periodic writes, and so the median rewrite interval, in seconds. Not published: 60 for MSR, 30.
    pub rewrite_interval_s_median: f64,
    /// Writes of the hottest page. Not published: 2 % of the page writes, at most one each 5 s.
    pub page_writes_max: u64,
    /// Mean requests of a burst; 1: none. Not published: 8.
    pub burst_requests_mean: f64,
    /// Mean time between a burst's requests in microseconds. Not published: 1000, shorter if the rate demands it.
    pub burst_gap_us_mean: f64,
}

impl Settings {
    /// The settings that imitate `published`.
    pub fn of(published: &Published) -> Self {
        let p = published;
        let requests = p.requests as f64;
        let (msr, web) = (p.name.starts_with("msr/"), p.name.starts_with("umass/Web"));
        let write_share = p.write_pct.or(p.write_references_pct).map_or(0.5, |pct| pct / 100.0);
        let assumed_bytes = match () {
            () if web => 15_360.0,
            () if p.name.starts_with("umass/") => 4096.0,
            () => 8192.0,
        };
        let per_start = p
            .working_set_bytes
            .zip(p.start_offsets)
            .map(|(bytes, starts)| bytes as f64 / starts as f64 / 1.7);
        let bytes_mean = p.bytes.map(|bytes| bytes as f64 / requests).or(per_start).unwrap_or(assumed_bytes);
        let references = p.references_4k.map_or((bytes_mean / 4096.0).max(1.0) * requests, |n| n as f64);
        let write_references = references * p.write_references_pct.map_or(write_share, |pct| pct / 100.0);
        let per = |references: f64, requests: f64| {
            if requests < 1.0 { 1.0 } else { (references / requests).max(1.0) }
        };
        let pages = p
            .pages_4k
            .or(p.working_set_bytes.map(|bytes| bytes / 4096))
            .or(p.start_offsets)
            .unwrap_or((references / 5.0) as u64);
        let written = p.written_4k.unwrap_or((pages as f64 * write_references / references) as u64);
        let rate_assumed = if web { 400.0 } else { 100.0 };
        let duration_s = p.duration_s.unwrap_or(if msr { 604_800.0 } else { requests / rate_assumed });
        let hottest_assumed = (write_references * 0.02).min(duration_s / 5.0) as u64;
        Self {
            requests: p.requests,
            read_ratio: 1.0 - write_share,
            bytes_mean,
            pages_per_read: per(references - write_references, requests * (1.0 - write_share)),
            pages_per_write: per(write_references, requests * write_share),
            footprint_pages: pages,
            written_pages: written.min(pages),
            address_max_bytes: p
                .address_max_gib
                .map_or(pages * 5 / 4 * 4096, |gib| (gib * (1u64 << 30) as f64) as u64),
            duration_s,
            top_1pct_written_share: p.top_1pct_share.unwrap_or(0.5),
            rewrite_interval_s_median: p.rewrite_interval_s.unwrap_or(if msr { 60.0 } else { 30.0 }),
            page_writes_max: p.page_writes_max.unwrap_or(hottest_assumed),
            burst_requests_mean: 8.0,
            burst_gap_us_mean: 1000.0,
        }
    }
}
