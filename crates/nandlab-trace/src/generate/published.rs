//! Published statistics of block traces that the profiles imitate.
//!
//! Numbers as published, one row a trace: the MSR Cambridge traces (per-volume 4 KiB statistics, request counts and
//! working sets of the SNIA IOTTA release, gathered by cache and SSD studies; `ms/` and `misc/` are other traces of the
//! same tables) and the UMass repository's Financial and WebSearch traces (request counts and distinct start
//! addresses). A missing number was not published; the profile then assumes one, see `profile`.

use serde_json::{Value, json};

/// What was published of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// The profile's name.
    pub name: &'static str,
    /// Requests that the statistics cover.
    pub requests: u64,
    /// They cover only the trace's first requests (`write_pct` and the working set still cover all of it).
    pub prefix: bool,
    /// Writes among the requests, in percent.
    pub write_pct: Option<f64>,
    /// Bytes read and written.
    pub bytes: Option<u64>,
    /// 4 KiB page references.
    pub references_4k: Option<u64>,
    /// Writes among the page references, in percent.
    pub write_references_pct: Option<f64>,
    /// Distinct 4 KiB pages.
    pub pages_4k: Option<u64>,
    /// Distinct 4 KiB pages written.
    pub written_4k: Option<u64>,
    /// Highest address in GiB.
    pub address_max_gib: Option<f64>,
    /// From the first request to the last, in seconds.
    pub duration_s: Option<f64>,
    /// Share of page writes that rewrite a page.
    pub rewrite_ratio: Option<f64>,
    /// Share of page writes that go to the most written 1 % of the written pages.
    pub top_1pct_share: Option<f64>,
    /// Median seconds between two writes of a page.
    pub rewrite_interval_s: Option<f64>,
    /// Writes of the most written page.
    pub page_writes_max: Option<u64>,
    /// Distinct start addresses.
    pub start_offsets: Option<u64>,
    /// Working set in bytes, as its source counts it (distinct start addresses with their sizes).
    pub working_set_bytes: Option<u64>,
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
};

impl Published {
    /// The numbers under the names that [`crate::TraceStat::to_json`] gives its own; what was not published is null.
    pub fn to_json(&self) -> Value {
        let percent = |p: Option<f64>| p.map(|p| p / 100.0);
        // A read ratio of the whole trace beside numbers of its first requests would compare unlike things.
        let read_ratio = if self.prefix { None } else { percent(self.write_pct).map(|w| 1.0 - w) };
        json!({
            "name": self.name,
            "prefix": self.prefix,
            "requests": self.requests,
            "read_ratio": read_ratio,
            "mean_kib": self.bytes.map(|b| b as f64 / self.requests as f64 / 1024.0),
            "bytes": self.bytes,
            "duration_s": self.duration_s,
            "iops_mean": self.duration_s.map(|s| self.requests as f64 / s),
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

/// Every profile, with what was published of its trace.
pub fn profiles() -> &'static [Published] {
    &PROFILES
}

/// The profile called `name`.
pub fn profile(name: &str) -> Option<&'static Published> {
    PROFILES.iter().find(|p| p.name == name)
}

#[rustfmt::skip]
static PROFILES: [Published; 36] = [
    Published { name: "msr/hm_0", requests: 3_000_000, prefix: true, bytes: Some(24_790_653_440), references_4k: Some(6_815_630), write_references_pct: Some(66.5), pages_4k: Some(603_876), written_4k: Some(421_475), address_max_gib: Some(13.94), duration_s: Some(431556.0), rewrite_ratio: Some(0.907), top_1pct_share: Some(0.4253), rewrite_interval_s: Some(802.3), page_writes_max: Some(109_129), start_offsets: Some(439_187), working_set_bytes: Some(5_627_588_273), ..NONE },
    Published { name: "msr/mds_0", requests: 1_211_034, bytes: Some(11_403_751_424), references_4k: Some(2_916_662), write_references_pct: Some(70.4), pages_4k: Some(818_174), written_4k: Some(86_930), address_max_gib: Some(33.92), duration_s: Some(604803.0), rewrite_ratio: Some(0.9577), top_1pct_share: Some(0.6199), rewrite_interval_s: Some(60.0), page_writes_max: Some(117_036), write_pct: Some(88.11), ..NONE },
    Published { name: "msr/prn_0", requests: 3_000_000, prefix: true, bytes: Some(28_525_076_480), references_4k: Some(8_179_783), write_references_pct: Some(82.3), pages_4k: Some(1_502_619), written_4k: Some(1_189_391), address_max_gib: Some(66.32), duration_s: Some(354712.0), rewrite_ratio: Some(0.8234), top_1pct_share: Some(0.5448), rewrite_interval_s: Some(90.0), page_writes_max: Some(101_932), write_pct: Some(89.21), start_offsets: Some(711_385), working_set_bytes: Some(21_954_476_952), ..NONE },
    Published { name: "msr/proj_0", requests: 3_000_000, prefix: true, bytes: Some(109_625_602_048), references_4k: Some(26_929_740), write_references_pct: Some(92.9), pages_4k: Some(820_587), written_4k: Some(420_969), address_max_gib: Some(16.24), duration_s: Some(479707.0), rewrite_ratio: Some(0.9832), top_1pct_share: Some(0.173), rewrite_interval_s: Some(57.8), page_writes_max: Some(88_299), start_offsets: Some(286_228), working_set_bytes: Some(11_714_738_048), ..NONE },
    Published { name: "msr/prxy_0", requests: 3_000_000, prefix: true, bytes: Some(11_243_907_584), references_4k: Some(4_616_349), write_references_pct: Some(96.2), pages_4k: Some(111_673), written_4k: Some(84_585), address_max_gib: Some(20.71), duration_s: Some(143846.0), rewrite_ratio: Some(0.981), top_1pct_share: Some(0.7268), rewrite_interval_s: Some(19.9), page_writes_max: Some(34_884), write_pct: Some(96.94), start_offsets: Some(155_681), working_set_bytes: Some(2_181_521_263), ..NONE },
    Published { name: "msr/rsrch_0", requests: 1_433_655, bytes: Some(13_109_630_464), references_4k: Some(3_254_278), write_references_pct: Some(88.8), pages_4k: Some(93_773), written_4k: Some(75_878), address_max_gib: Some(16.89), duration_s: Some(604796.0), rewrite_ratio: Some(0.9737), top_1pct_share: Some(0.5445), rewrite_interval_s: Some(60.1), page_writes_max: Some(125_991), write_pct: Some(90.68), ..NONE },
    Published { name: "msr/src2_0", requests: 1_557_814, bytes: Some(11_495_121_408), references_4k: Some(2_999_229), write_references_pct: Some(87.6), pages_4k: Some(187_918), written_4k: Some(130_219), address_max_gib: Some(15.63), duration_s: Some(698877.0), rewrite_ratio: Some(0.9504), top_1pct_share: Some(0.6315), rewrite_interval_s: Some(60.0), page_writes_max: Some(125_880), ..NONE },
    Published { name: "msr/stg_0", requests: 2_030_915, bytes: Some(24_073_370_624), references_4k: Some(6_098_667), write_references_pct: Some(68.2), pages_4k: Some(1_668_913), written_4k: Some(102_899), address_max_gib: Some(10.82), duration_s: Some(604794.0), rewrite_ratio: Some(0.9753), top_1pct_share: Some(0.4347), rewrite_interval_s: Some(2091.0), page_writes_max: Some(140_946), ..NONE },
    Published { name: "msr/ts_0", requests: 1_801_734, bytes: Some(16_611_923_968), references_4k: Some(4_216_457), write_references_pct: Some(74.1), pages_4k: Some(239_289), written_4k: Some(140_985), address_max_gib: Some(21.97), duration_s: Some(698983.0), rewrite_ratio: Some(0.9549), top_1pct_share: Some(0.563), rewrite_interval_s: Some(60.0), page_writes_max: Some(130_688), write_pct: Some(82.42), ..NONE },
    Published { name: "msr/usr_0", requests: 2_237_889, bytes: Some(51_945_009_664), references_4k: Some(12_873_274), write_references_pct: Some(27.9), pages_4k: Some(646_969), written_4k: Some(169_331), address_max_gib: Some(15.9), duration_s: Some(604795.0), rewrite_ratio: Some(0.9528), top_1pct_share: Some(0.6047), rewrite_interval_s: Some(60.0), page_writes_max: Some(119_570), write_pct: Some(59.58), ..NONE },
    Published { name: "msr/wdev_0", requests: 1_143_261, bytes: Some(10_627_698_688), references_4k: Some(2_654_824), write_references_pct: Some(72.7), pages_4k: Some(138_102), written_4k: Some(90_193), address_max_gib: Some(16.96), duration_s: Some(604803.0), rewrite_ratio: Some(0.9533), top_1pct_share: Some(0.5429), rewrite_interval_s: Some(61.8), page_writes_max: Some(83_540), write_pct: Some(79.92), ..NONE },
    Published { name: "msr/web_0", requests: 2_029_945, bytes: Some(31_163_521_536), references_4k: Some(9_642_398), write_references_pct: Some(46.4), pages_4k: Some(1_915_690), written_4k: Some(188_207), address_max_gib: Some(33.91), duration_s: Some(604804.0), rewrite_ratio: Some(0.9579), top_1pct_share: Some(0.6083), rewrite_interval_s: Some(54.2), page_writes_max: Some(273_112), ..NONE },
    Published { name: "ms/DevToolRel", requests: 160_539, bytes: Some(3_133_000_000), write_pct: Some(32.41), ..NONE },
    Published { name: "ms/Exchange", requests: 660_727, bytes: Some(9_795_000_000), write_pct: Some(76.08), ..NONE },
    Published { name: "ms/LiveMapsBE", requests: 410_355, bytes: Some(15_646_000_000), write_pct: Some(28.23), ..NONE },
    Published { name: "ms/MSNFS", requests: 994_058, bytes: Some(10_251_000_000), write_pct: Some(35.16), ..NONE },
    Published { name: "misc/Postmark", requests: 4_444_162, bytes: Some(19_437_000_000), write_pct: Some(71.37), ..NONE },
    Published { name: "ms/TPCC", requests: 1_934_095, bytes: Some(43_932_000_000), write_pct: Some(30.05), ..NONE },
    Published { name: "misc/Webserver", requests: 689_520, bytes: Some(7_607_000_000), write_pct: Some(39.24), ..NONE },
    Published { name: "msr/hm_1", requests: 609_311, bytes: Some(9_450_000_000), write_pct: Some(4.66), ..NONE },
    Published { name: "msr/src1_0", requests: 37_415_613, bytes: Some(1_650_000_000_000), write_pct: Some(43.57), start_offsets: Some(5_659_341), working_set_bytes: Some(164_910_638_039), ..NONE },
    Published { name: "msr/stg_1", requests: 2_196_861, bytes: Some(91_815_000_000), write_pct: Some(36.25), ..NONE },
    Published { name: "msr/prn_1", requests: 11_233_411, start_offsets: Some(2_173_575), working_set_bytes: Some(92_634_821_007), ..NONE },
    Published { name: "msr/proj_1", requests: 23_639_742, start_offsets: Some(15_452_001), working_set_bytes: Some(754_502_595_719), ..NONE },
    Published { name: "msr/proj_2", requests: 29_266_482, start_offsets: Some(16_180_242), working_set_bytes: Some(726_042_317_055), ..NONE },
    Published { name: "msr/proj_4", requests: 6_465_639, start_offsets: Some(3_002_525), working_set_bytes: Some(133_694_064_112), ..NONE },
    Published { name: "msr/prxy_1", requests: 168_638_964, start_offsets: Some(390_226), working_set_bytes: Some(16_482_259_120), ..NONE },
    Published { name: "msr/src1_1", requests: 45_746_222, start_offsets: Some(6_170_590), working_set_bytes: Some(197_931_420_352), ..NONE },
    Published { name: "msr/usr_1", requests: 45_283_980, start_offsets: Some(13_966_057), working_set_bytes: Some(730_508_653_546), ..NONE },
    Published { name: "msr/usr_2", requests: 10_570_046, start_offsets: Some(7_374_757), working_set_bytes: Some(421_399_857_253), ..NONE },
    Published { name: "msr/web_2", requests: 5_175_368, start_offsets: Some(1_321_270), working_set_bytes: Some(71_496_495_215), ..NONE },
    Published { name: "umass/Financial1", requests: 5_334_987, write_pct: Some(76.84), start_offsets: Some(710_908), ..NONE },
    Published { name: "umass/Financial2", requests: 3_699_194, write_pct: Some(17.65), start_offsets: Some(296_072), ..NONE },
    Published { name: "umass/WebSearch1", requests: 1_055_448, write_pct: Some(0.02), start_offsets: Some(480_446), ..NONE },
    Published { name: "umass/WebSearch2", requests: 4_579_809, write_pct: Some(0.022), start_offsets: Some(726_501), ..NONE },
    Published { name: "umass/WebSearch3", requests: 4_261_709, write_pct: Some(0.03), start_offsets: Some(707_802), ..NONE },
];
