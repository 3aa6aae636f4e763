//! The settings of a profile: published numbers, and assumptions for numbers that were not published.

use crate::generate::{Published, profile};

/// The numbers from which a profile is drawn. [`Settings::of`] takes the numbers from published statistics; each number
/// may be changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Number of requests that the other numbers describe.
    pub requests: u64,
    /// Share of reads in the requests. If not published: the share of reads in the page references, else 0.5.
    pub read_ratio: f64,
    /// Mean bytes of a request. If not published: the bytes of the working set per distinct start address, divided by
    /// 1.7. If the working set is not published either: 4 KiB for Financial, 15 KiB for WebSearch, 8 KiB for others.
    /// The divisor 1.7 is from the five traces with published bytes and working sets: the working set per start address
    /// is 0.7 to 3.7 times the mean request, in the geometric mean 1.7 times.
    pub bytes_mean: f64,
    /// Mean number of 4 KiB pages that a read touches. If not published: from `bytes_mean`.
    pub pages_per_read: f64,
    /// Mean number of 4 KiB pages that a write touches. If not published: from `bytes_mean`.
    pub pages_per_write: f64,
    /// Distinct 4 KiB pages read or written. If not published: the working set, else the distinct start addresses, else
    /// a fifth of the page references.
    pub footprint_pages: u64,
    /// Distinct 4 KiB pages written. If not published: the footprint times the share of writes in the page references.
    pub written_pages: u64,
    /// The space over which addresses are spread, in bytes. If not published: 1.25 times the footprint.
    pub address_max_bytes: u64,
    /// Length of the trace in seconds. If not published: a week for MSR; for other traces the number of requests
    /// divided by a rate. This rate is 400 requests/s for WebSearch, else 100.
    pub duration_s: f64,
    /// Share of page writes that go to the most written 1 % of the written pages. If not published: 0.5.
    pub top_1pct_written_share: f64,
    /// Median rewrite interval in seconds; also the period of the periodic writes. If not published: 60 for MSR, else
    /// 30.
    pub rewrite_interval_s_median: f64,
    /// Writes of the hottest page. If not published: 2 % of the page writes, at most one every 5 s.
    pub page_writes_max: u64,
    /// Mean number of requests of a burst; 1: no bursts. Never published: 8 is an assumption.
    pub burst_requests_mean: f64,
    /// Mean time between the requests of a burst in microseconds. Never published: 1000 is an assumption. The generator
    /// shortens the time to at most half of the mean time between requests.
    pub burst_gap_us_mean: f64,
    /// Total sectors of 512 bytes, read and written. `None`: the mean bytes per page follow from `bytes_mean` and are
    /// the same for reads and writes.
    pub sectors: Option<[u64; 2]>,
    /// Share of the page reads that find data not written since the start. `None`: the share is not controlled.
    pub unwritten_read_ratio: Option<f64>,
}

impl Settings {
    /// The settings that imitate `published`.
    ///
    /// If the statistics have sectors and `like`, some settings are those of the profile named by `like`: sizes, skew,
    /// rewrite interval, and written pages per page write. The number of requests follows from sectors and sizes. The
    /// number of read-only pages is the product of two numbers: the page reads of old data, and the read-only pages per
    /// page read of the profile named by `like`. A product below 256 is raised to 256. Then the number is limited to
    /// 0.9 times the page reads of old data.
    pub fn of(published: &Published) -> Self {
        let p = published;
        if let (Some(sectors), Some(like)) = (p.sectors, p.like.and_then(profile)) {
            return Self::of_sectors(p, sectors, &Self::of(like));
        }
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
            sectors: p.sectors,
            unwritten_read_ratio: p.unwritten_reads_pct.map(|pct| pct / 100.0),
        }
    }

    fn of_sectors(p: &Published, sectors: [u64; 2], like: &Self) -> Self {
        let of_like = like.page_references();
        let fill = like.bytes_mean * like.requests as f64 / (of_like[0] + of_like[1]) / 4096.0;
        let count =
            |sectors: u64, pages: f64| libm::round(sectors as f64 / 8.0 / (pages * fill.clamp(0.125, 1.0)));
        let reads = count(sectors[0], like.pages_per_read).max(1.0);
        let writes = count(sectors[1], like.pages_per_write).max(1.0);
        let requests = reads + writes;
        let duration_s = p.duration_s.unwrap_or(like.duration_s);
        let unwritten = p.unwritten_reads_pct.map(|pct| pct / 100.0);
        let [page_reads, page_writes] = [reads * like.pages_per_read, writes * like.pages_per_write];
        let written = page_writes * like.written_pages as f64 / of_like[1];
        let old_reads = page_reads * unwritten.unwrap_or(1.0);
        let only_read = old_reads * (like.footprint_pages - like.written_pages) as f64 / of_like[0];
        let only_read = only_read.max(256.0).min(0.9 * old_reads);
        let footprint = (written + only_read).max(1.0);
        let hottest_share = (page_writes / of_like[1]).min(duration_s / like.duration_s);
        Self {
            requests: requests as u64,
            read_ratio: reads / requests,
            bytes_mean: (sectors[0] + sectors[1]) as f64 * 512.0 / requests,
            footprint_pages: footprint as u64,
            written_pages: written.max(1.0) as u64,
            address_max_bytes: like.address_max_bytes.max((footprint * 1.25) as u64 * 4096),
            duration_s,
            page_writes_max: (like.page_writes_max as f64 * hottest_share) as u64,
            sectors: Some(sectors),
            unwritten_read_ratio: unwritten,
            ..*like
        }
    }

    /// Page references of reads and of writes.
    fn page_references(&self) -> [f64; 2] {
        let n = self.requests as f64;
        [n * self.read_ratio * self.pages_per_read, n * (1.0 - self.read_ratio) * self.pages_per_write]
    }
}
