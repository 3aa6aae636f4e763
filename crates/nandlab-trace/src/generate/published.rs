//! Statistics of published and recorded block traces, which the profiles imitate.
//!
//! Each row has the published numbers of one trace. `msr/` are the MSR Cambridge traces: per-volume 4 KiB statistics,
//! request counts and working sets of the SNIA IOTTA release, collected by cache and SSD studies. `ms/` and `misc/` are
//! other traces in the tables of these studies. `umass/` are the Financial and WebSearch traces of the UMass
//! repository: request counts and distinct start addresses. [`Settings`](super::Settings) lists the assumptions for
//! numbers that were not published.
//!
//! `laldpc/` are the fifteen workloads of the LaLDPC paper (MSST 2017). Each workload is a part of an MSR or UMass
//! trace. Table III of the paper gives sectors read and written, read ratio and days; Table IV gives the share of reads
//! that find data not written since the start. The numbers of the parts differ from those of the whole traces:
//! Financial1 has 77 % writes, its part F1 has 2 %. So the workloads are profiles of their own. The read ratio is by
//! sectors. For rsrch1 the paper prints 3 %, while the sectors give 0.3 %.
//!
//! `recorded/` are block traces, three to four minutes each, of programs on ext4 on a loop device of 12 or 16 GiB under
//! load. The statistics of these traces are published only here. `oltp` and `ntrx` are MariaDB under sysbench (12
//! tables of a million rows, uniform, 8 threads). `oltp` is `oltp_read_write` at 80 transactions/s, with a buffer pool
//! of 128 MiB for 3.1 GiB of data. `ntrx` is `oltp_update_non_index`, with a buffer pool of 2600 MiB. `fileserver` and
//! `varmail` execute the operations of filebench's personalities of these names, with less memory than the files
//! occupy. `fileserver` has 30,000 files of 128 KiB on average and 50 threads, `varmail` 50,000 files of 16 KiB and 16
//! threads. Profiles have reads and writes only; TRIMs and flushes are not imitated.

use serde_json::{Value, json};

/// The published statistics of a trace. A field is `None` if its number was not published.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// The profile's name.
    pub name: &'static str,
    /// Number of requests that the statistics cover.
    pub requests: u64,
    /// Whether the statistics cover only the first requests of the trace. `write_pct` and the working set always cover
    /// the whole trace.
    pub prefix: bool,
    /// Share of writes in the requests, in percent.
    pub write_pct: Option<f64>,
    /// Bytes read and written.
    pub bytes: Option<u64>,
    /// 4 KiB page references: for each request, the pages that it touches.
    pub references_4k: Option<u64>,
    /// Share of writes in the 4 KiB page references, in percent.
    pub write_references_pct: Option<f64>,
    /// Distinct 4 KiB pages read or written.
    pub pages_4k: Option<u64>,
    /// Distinct 4 KiB pages written.
    pub written_4k: Option<u64>,
    /// Highest address in GiB.
    pub address_max_gib: Option<f64>,
    /// Time from the first request to the last, in seconds.
    pub duration_s: Option<f64>,
    /// Share of page writes that rewrite a page.
    pub rewrite_ratio: Option<f64>,
    /// Share of page writes that go to the most written 1 % of the written pages.
    pub top_1pct_share: Option<f64>,
    /// Median time between two successive writes of a page, in seconds.
    pub rewrite_interval_s: Option<f64>,
    /// Writes of the most written page.
    pub page_writes_max: Option<u64>,
    /// Distinct start addresses.
    pub start_offsets: Option<u64>,
    /// Working set in bytes: the sum of the request sizes over the distinct start addresses.
    pub working_set_bytes: Option<u64>,
    /// Sectors of 512 bytes read and written. If both `sectors` and `like` are given, `requests` was not published but
    /// computed by [`Settings::of`].
    ///
    /// [`Settings::of`]: super::Settings::of
    pub sectors: Option<[u64; 2]>,
    /// Share of reads in the sectors, in percent.
    pub read_sectors_pct: Option<f64>,
    /// Share of the page reads that find data not written since the start, in percent. For `laldpc/` this is the share
    /// of soft reads in Table IV.
    pub unwritten_reads_pct: Option<f64>,
    /// The profile whose numbers replace those that were not published.
    pub like: Option<&'static str>,
}

const NONE: Published = Published {
    name: "",
    requests: 0,
    prefix: false,
    write_pct: None,
    bytes: None,
    references_4k: None,
    write_references_pct: None,
    pages_4k: None,
    written_4k: None,
    address_max_gib: None,
    duration_s: None,
    rewrite_ratio: None,
    top_1pct_share: None,
    rewrite_interval_s: None,
    page_writes_max: None,
    start_offsets: None,
    working_set_bytes: None,
    sectors: None,
    read_sectors_pct: None,
    unwritten_reads_pct: None,
    like: None,
};

impl Published {
    /// The numbers as JSON, with the keys of [`crate::TraceStat::to_json`]; null for a number that was not published.
    pub fn to_json(&self) -> Value {
        let percent = |p: Option<f64>| p.map(|p| p / 100.0);
        // `write_pct` covers the whole trace. In a prefix the other numbers cover only the first requests, so the read
        // ratio is left out.
        let read_ratio = if self.prefix { None } else { percent(self.write_pct).map(|w| 1.0 - w) };
        json!({
            "name": self.name,
            "prefix": self.prefix,
            "requests": self.like.is_none().then_some(self.requests),
            "read_ratio": read_ratio,
            "mean_kib": self.bytes.map(|b| b as f64 / self.requests as f64 / 1024.0),
            "bytes": self.bytes,
            "sectors_read": self.sectors.map(|s| s[0]),
            "sectors_written": self.sectors.map(|s| s[1]),
            "read_ratio_sectors": percent(self.read_sectors_pct),
            "unwritten_read_ratio_4k": percent(self.unwritten_reads_pct),
            "like": self.like,
            "duration_s": self.duration_s,
            "iops_mean": self.duration_s.filter(|_| self.like.is_none()).map(|s| self.requests as f64 / s),
            "address_max_bytes": self.address_max_gib.map(|g| (g * (1u64 << 30) as f64) as u64),
            "footprint_4k_pages": self.pages_4k,
            "written_4k_pages": self.written_4k,
            "references_4k": self.references_4k,
            "write_references_share": percent(self.write_references_pct),
            "rewrite_ratio_4k": self.rewrite_ratio,
            "top_1pct_written_share": self.top_1pct_share,
            "rewrite_interval_s_median": self.rewrite_interval_s,
            "page_writes_max": self.page_writes_max,
            "start_offsets": self.start_offsets,
            "working_set_bytes": self.working_set_bytes,
        })
    }
}

/// All profiles, with the published statistics of their traces.
pub fn profiles() -> &'static [Published] {
    &PROFILES
}

/// The profile called `name`.
pub fn profile(name: &str) -> Option<&'static Published> {
    PROFILES.iter().find(|p| p.name == name)
}

/// A row of the per-volume table. `counts`: requests, bytes, page references, pages, written pages, writes of the
/// hottest page. `rates`: percentage of writes in the page references, highest address (GiB), duration (s), rewrite
/// ratio, share of the top 1 %, median rewrite interval (s).
const fn volume(name: &'static str, counts: [u64; 6], rates: [f64; 6]) -> Published {
    Published {
        bytes: Some(counts[1]),
        references_4k: Some(counts[2]),
        pages_4k: Some(counts[3]),
        written_4k: Some(counts[4]),
        page_writes_max: Some(counts[5]),
        write_references_pct: Some(rates[0]),
        address_max_gib: Some(rates[1]),
        duration_s: Some(rates[2]),
        rewrite_ratio: Some(rates[3]),
        top_1pct_share: Some(rates[4]),
        rewrite_interval_s: Some(rates[5]),
        ..counted(name, counts[0])
    }
}

/// A row of the request and working-set tables.
const fn counted(name: &'static str, requests: u64) -> Published {
    Published { name, requests, ..NONE }
}

/// A workload of the LaLDPC paper: sectors read and written; read ratio (percent), days, share of soft reads (percent).
/// `requests` is computed from the sectors and the request sizes of `like`.
const fn laldpc(
    name: &'static str,
    like: &'static str,
    requests: u64,
    sectors: [u64; 2],
    [read_pct, days, soft_pct]: [f64; 3],
) -> Published {
    Published {
        like: Some(like),
        sectors: Some(sectors),
        read_sectors_pct: Some(read_pct),
        duration_s: Some(days * 86_400.0),
        unwritten_reads_pct: Some(soft_pct),
        ..counted(name, requests)
    }
}

impl Published {
    const fn prefix(self) -> Self {
        Self { prefix: true, ..self }
    }

    const fn write_pct(self, percent: f64) -> Self {
        Self { write_pct: Some(percent), ..self }
    }

    /// Adds the sectors read and written, and the percentage of the page reads that find data not written since the
    /// start.
    const fn recorded(self, sectors: [u64; 2], unwritten_reads_pct: f64) -> Self {
        Self { sectors: Some(sectors), unwritten_reads_pct: Some(unwritten_reads_pct), ..self }
    }

    const fn bytes(self, bytes: u64) -> Self {
        Self { bytes: Some(bytes), ..self }
    }

    const fn starts(self, starts: u64) -> Self {
        Self { start_offsets: Some(starts), ..self }
    }

    const fn working_set(self, starts: u64, bytes: u64) -> Self {
        Self { start_offsets: Some(starts), working_set_bytes: Some(bytes), ..self }
    }
}

static PROFILES: [Published; 55] = [
    volume(
        "msr/hm_0",
        [3_000_000, 24_790_653_440, 6_815_630, 603_876, 421_475, 109_129],
        [66.5, 13.94, 431556.0, 0.907, 0.4253, 802.3],
    )
    .prefix()
    .working_set(439_187, 5_627_588_273),
    volume(
        "msr/mds_0",
        [1_211_034, 11_403_751_424, 2_916_662, 818_174, 86_930, 117_036],
        [70.4, 33.92, 604803.0, 0.9577, 0.6199, 60.0],
    )
    .write_pct(88.11),
    volume(
        "msr/prn_0",
        [3_000_000, 28_525_076_480, 8_179_783, 1_502_619, 1_189_391, 101_932],
        [82.3, 66.32, 354712.0, 0.8234, 0.5448, 90.0],
    )
    .prefix()
    .write_pct(89.21)
    .working_set(711_385, 21_954_476_952),
    volume(
        "msr/proj_0",
        [3_000_000, 109_625_602_048, 26_929_740, 820_587, 420_969, 88_299],
        [92.9, 16.24, 479707.0, 0.9832, 0.173, 57.8],
    )
    .prefix()
    .working_set(286_228, 11_714_738_048),
    volume(
        "msr/prxy_0",
        [3_000_000, 11_243_907_584, 4_616_349, 111_673, 84_585, 34_884],
        [96.2, 20.71, 143846.0, 0.981, 0.7268, 19.9],
    )
    .prefix()
    .write_pct(96.94)
    .working_set(155_681, 2_181_521_263),
    volume(
        "msr/rsrch_0",
        [1_433_655, 13_109_630_464, 3_254_278, 93_773, 75_878, 125_991],
        [88.8, 16.89, 604796.0, 0.9737, 0.5445, 60.1],
    )
    .write_pct(90.68),
    volume(
        "msr/src2_0",
        [1_557_814, 11_495_121_408, 2_999_229, 187_918, 130_219, 125_880],
        [87.6, 15.63, 698877.0, 0.9504, 0.6315, 60.0],
    ),
    volume(
        "msr/stg_0",
        [2_030_915, 24_073_370_624, 6_098_667, 1_668_913, 102_899, 140_946],
        [68.2, 10.82, 604794.0, 0.9753, 0.4347, 2091.0],
    ),
    volume(
        "msr/ts_0",
        [1_801_734, 16_611_923_968, 4_216_457, 239_289, 140_985, 130_688],
        [74.1, 21.97, 698983.0, 0.9549, 0.563, 60.0],
    )
    .write_pct(82.42),
    volume(
        "msr/usr_0",
        [2_237_889, 51_945_009_664, 12_873_274, 646_969, 169_331, 119_570],
        [27.9, 15.9, 604795.0, 0.9528, 0.6047, 60.0],
    )
    .write_pct(59.58),
    volume(
        "msr/wdev_0",
        [1_143_261, 10_627_698_688, 2_654_824, 138_102, 90_193, 83_540],
        [72.7, 16.96, 604803.0, 0.9533, 0.5429, 61.8],
    )
    .write_pct(79.92),
    volume(
        "msr/web_0",
        [2_029_945, 31_163_521_536, 9_642_398, 1_915_690, 188_207, 273_112],
        [46.4, 33.91, 604804.0, 0.9579, 0.6083, 54.2],
    ),
    counted("ms/DevToolRel", 160_539).bytes(3_133_000_000).write_pct(32.41),
    counted("ms/Exchange", 660_727).bytes(9_795_000_000).write_pct(76.08),
    counted("ms/LiveMapsBE", 410_355).bytes(15_646_000_000).write_pct(28.23),
    counted("ms/MSNFS", 994_058).bytes(10_251_000_000).write_pct(35.16),
    counted("misc/Postmark", 4_444_162).bytes(19_437_000_000).write_pct(71.37),
    counted("ms/TPCC", 1_934_095).bytes(43_932_000_000).write_pct(30.05),
    counted("misc/Webserver", 689_520).bytes(7_607_000_000).write_pct(39.24),
    counted("msr/hm_1", 609_311).bytes(9_450_000_000).write_pct(4.66),
    counted("msr/src1_0", 37_415_613)
        .bytes(1_650_000_000_000)
        .write_pct(43.57)
        .working_set(5_659_341, 164_910_638_039),
    counted("msr/stg_1", 2_196_861).bytes(91_815_000_000).write_pct(36.25),
    counted("msr/prn_1", 11_233_411).working_set(2_173_575, 92_634_821_007),
    counted("msr/proj_1", 23_639_742).working_set(15_452_001, 754_502_595_719),
    counted("msr/proj_2", 29_266_482).working_set(16_180_242, 726_042_317_055),
    counted("msr/proj_4", 6_465_639).working_set(3_002_525, 133_694_064_112),
    counted("msr/prxy_1", 168_638_964).working_set(390_226, 16_482_259_120),
    counted("msr/src1_1", 45_746_222).working_set(6_170_590, 197_931_420_352),
    counted("msr/usr_1", 45_283_980).working_set(13_966_057, 730_508_653_546),
    counted("msr/usr_2", 10_570_046).working_set(7_374_757, 421_399_857_253),
    counted("msr/web_2", 5_175_368).working_set(1_321_270, 71_496_495_215),
    counted("umass/Financial1", 5_334_987).write_pct(76.84).starts(710_908),
    counted("umass/Financial2", 3_699_194).write_pct(17.65).starts(296_072),
    counted("umass/WebSearch1", 1_055_448).write_pct(0.02).starts(480_446),
    counted("umass/WebSearch2", 4_579_809).write_pct(0.022).starts(726_501),
    counted("umass/WebSearch3", 4_261_709).write_pct(0.03).starts(707_802),
    // `like` is the profile of the same volume if there is one, else of another volume of the same server.
    laldpc("laldpc/wdev0", "msr/wdev_0", 1_005_955, [5_172_477, 13_153_463], [28.0, 6.0, 36.0]),
    laldpc("laldpc/rsrch2", "msr/rsrch_0", 85_462, [1_090_912, 605_720], [64.0, 6.6, 0.2]),
    laldpc("laldpc/proxy0", "msr/prxy_0", 693_922, [545_985, 4_604_603], [11.0, 0.5, 17.0]),
    laldpc("laldpc/prn1", "msr/prn_1", 515_317, [6_966_661, 18_265_525], [28.0, 1.3, 4.0]),
    laldpc("laldpc/prn0", "msr/prn_0", 960_356, [19_136_490, 5_691_238], [77.0, 0.7, 22.0]),
    laldpc("laldpc/ts0", "msr/ts_0", 1_022_511, [3_976_632, 14_127_647], [22.0, 4.7, 36.0]),
    laldpc("laldpc/rsrch1", "msr/rsrch_0", 19_170, [1_110, 334_365], [3.0, 5.7, 91.0]),
    laldpc("laldpc/F1", "umass/Financial1", 829_833, [6_508_016, 130_648], [98.0, 0.5, 99.0]),
    laldpc("laldpc/F2", "umass/Financial2", 551_693, [4_312_858, 100_684], [97.0, 0.5, 100.0]),
    laldpc("laldpc/hm0", "msr/hm_0", 192_029, [1_167_249, 1_932_058], [37.0, 0.4, 41.0]),
    laldpc("laldpc/hm1", "msr/hm_1", 238_377, [6_444_861, 775_983], [89.0, 4.8, 21.0]),
    laldpc("laldpc/proj1", "msr/proj_1", 113_502, [773_087, 5_594_270], [12.0, 0.1, 0.5]),
    laldpc("laldpc/proj3", "msr/proj_4", 69_129, [3_471_062, 65_402], [98.0, 0.6, 58.0]),
    laldpc("laldpc/proj4", "msr/proj_4", 41_557, [1_301_436, 824_502], [61.0, 3.9, 5.0]),
    laldpc("laldpc/web1", "msr/web_0", 314_016, [7_992_543, 1_422_974], [85.0, 7.0, 46.0]),
    volume(
        "recorded/oltp",
        [617_060, 11_852_795_392, 2_908_168, 695_085, 274_481, 1_228],
        [34.42, 6.15, 240.4, 0.7258, 0.5378, 0.3717],
    )
    .write_pct(22.73)
    .recorded([15_257_496, 7_892_495], 75.58),
    volume(
        "recorded/ntrx",
        [695_061, 13_421_552_128, 3_476_192, 707_198, 702_694, 3_012],
        [98.64, 6.19, 200.13, 0.7951, 0.4627, 0.01514],
    )
    .write_pct(98.3)
    .recorded([377_280, 25_836_689], 84.32),
    volume(
        "recorded/fileserver",
        [1_904_369, 98_527_571_968, 24_054_583, 2_182_358, 2_036_150, 33],
        [50.89, 14.03, 180.24, 0.8337, 0.0284, 17.89],
    )
    .write_pct(51.08)
    .recorded([94_512_984, 97_923_680], 6.57),
    volume(
        "recorded/varmail",
        [1_461_583, 19_372_118_016, 4_729_521, 1_057_660, 1_003_736, 12_175],
        [61.9, 14.18, 180.3, 0.6571, 0.1761, 3.793],
    )
    .write_pct(52.2)
    .recorded([14_416_728, 23_419_440], 17.18),
];
