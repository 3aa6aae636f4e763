//! The choices of every policy slot: one table a slot, one line a policy. Slots whose mechanism keeps a table of its
//! own (`POLICIES`) take it from there.

use super::kind::{Kind, Param, Payload, Policy, Range};
use crate::base::policy::PolicyInfo;
use crate::base::units::Span;
use std::sync::LazyLock;

/// A policy without parameters.
const fn plain(name: &'static str, doc: &'static str) -> Policy {
    Policy { name, payload: Payload::None, doc }
}

/// A policy with parameters.
const fn with(name: &'static str, params: &'static [Param], doc: &'static str) -> Policy {
    Policy { name, payload: Payload::Params(params), doc }
}

/// A policy with one value.
const fn value(name: &'static str, kind: &'static Kind, doc: &'static str) -> Policy {
    Policy { name, payload: Payload::Value(kind), doc }
}

const fn param(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Param {
    Param { name, kind, default, doc }
}

/// A policy as its own module describes it. Made once for each, so what it leaks is bounded.
fn registered(info: &'static PolicyInfo) -> Policy {
    let param = |p: &crate::base::policy::ParamInfo| Param {
        name: p.name,
        kind: match p.whole {
            true => Kind::Int { min: p.min as u64, max: p.max as u64 },
            false => Kind::Num(Range { min: p.min, max: p.max, above: false, below: false }),
        },
        default: p.default.map_or("", |default| match p.whole {
            true => (default as u64).to_string().leak(),
            false => format!("{default:?}").leak(),
        }),
        doc: p.description,
    };
    let params: Vec<Param> = info.params.iter().map(param).collect();
    let payload = if params.is_empty() { Payload::None } else { Payload::Params(params.leak()) };
    Policy { name: info.name, payload, doc: info.description }
}

/// A number from 0 to 1.
pub(super) const SHARE: Kind = Kind::Num(Range { min: 0.0, max: 1.0, above: false, below: false });
/// A number from 0 to below 1.
pub(super) const SHARE_BELOW_1: Kind = Kind::Num(Range { min: 0.0, max: 1.0, above: false, below: true });
/// A number above 0, at most 1.
pub(super) const SHARE_ABOVE_0: Kind = Kind::Num(Range { min: 0.0, max: 1.0, above: true, below: false });
/// A factor above 0.
pub(super) const FACTOR: Kind = Kind::Num(Range { min: 0.0, max: 1e9, above: true, below: false });
/// The longest time that makes sense for one flash operation.
pub(super) const OPERATION_NS_MAX: u64 = 10_000_000_000;
/// A flash operation: it takes time.
pub(super) const OPERATION: Kind = Kind::Time { min: 1, max: OPERATION_NS_MAX };
/// A time that may be nothing.
pub(super) const OVERHEAD: Kind = Kind::Time { min: 0, max: OPERATION_NS_MAX };
/// Any length of time that can be simulated.
pub(super) const ANY_TIME: Kind = Kind::Time { min: 0, max: Span::LIMIT.ns() };
/// As [`ANY_TIME`], and something.
pub(super) const SOME_TIME: Kind = Kind::Time { min: 1, max: Span::LIMIT.ns() };
/// P/E cycles.
pub(super) const CYCLES: Kind = Kind::Int { min: 0, max: 10_000_000 };
/// A count that may be 0.
pub(super) const COUNT: Kind = Kind::Int { min: 0, max: i64::MAX as u64 };

pub(super) const CELL: Kind = Kind::Slot(&[
    plain("slc", "one bit a cell"),
    plain("mlc", "two bits a cell, planar"),
    plain("3d-mlc", "two bits a cell, stacked"),
    plain("3d-tlc", "three bits a cell, stacked"),
]);

pub(super) const PROGRAM: Kind = Kind::Either(&[
    OPERATION,
    Kind::Table(&[
        param("lsb", OPERATION, "", "tPROG of an LSB page"),
        param("msb", OPERATION, "", "tPROG of an MSB page; a TLC middle page takes the mean"),
    ]),
    Kind::Table(&[
        param("fastest", OPERATION, "", "tPROG of the bottom layer"),
        param("slowest", OPERATION, "", "tPROG of the top layer; linear in between"),
    ]),
]);

pub(super) const COMMAND: Kind = Kind::Either(&[
    OVERHEAD,
    Kind::Table(&[
        param("read", OVERHEAD, "\"0us\"", "of a read of a page"),
        param("program", OVERHEAD, "\"0us\"", "of a program of a page"),
        param("erase", OVERHEAD, "\"0us\"", "of an erase of a block"),
        param("copyback", OVERHEAD, "\"0us\"", "of a copyback of a page"),
        param("multi_plane_read", COMMAND_TOGETHER, "\"each\"", "of a read of several planes, in all"),
        param("multi_plane_program", COMMAND_TOGETHER, "\"each\"", "of a program of several planes, in all"),
    ]),
]);

const COMMAND_TOGETHER: Kind =
    Kind::Either(&[OVERHEAD, Kind::Slot(&[plain("each", "every plane pays what one plane does")])]);

/// A bandwidth in MB/s.
const MB_PER_S: Kind = Kind::Num(Range { min: 0.0, max: 1e9, above: true, below: false });

pub(super) const LINK: Kind = Kind::Either(&[
    Kind::Slot(&[plain("none", "takes no time, never a bottleneck")]),
    Kind::Table(&[
        param("mb_per_s", MB_PER_S, "", "bandwidth in each direction, in MB/s"),
        param("latency", OVERHEAD, "\"0us\"", "time one way, of a command as of a completion"),
    ]),
]);

pub(super) const OFF_CHIP: Kind =
    Kind::Either(&[MB_PER_S, Kind::Slot(&[plain("unlimited", "never a bottleneck")])]);

pub(super) const SCHEDULER: Kind = Kind::Slot(&[
    plain("read-first", "host reads, then host writes, then background work"),
    plain("fcfs", "strictly in order of arrival"),
]);

pub(super) const PACING: Kind = Kind::Slot(&[
    plain("proportional", "so that the next free block is there when the host needs it"),
    plain("none", "by age: whichever has waited longer goes next"),
]);

pub(super) const FOREGROUND: Kind = Kind::Slot(&[
    plain("interleaved", "the die of a foreground GC serves the host between its operations"),
    plain("blocking", "reads, programs and erase of a victim in one piece on its die, as in older models"),
]);

pub(super) const FILL_ORDER: Kind = Kind::Slot(&[
    plain("random", "cold and hot data side by side, as after years of random writes"),
    plain("sequential", "as after one sequential write of the drive"),
]);

pub(super) const MAP: Kind = Kind::Slot(&[
    plain("page", "the whole map in RAM"),
    with(
        "demand",
        &[
            param("cache", MAP_CACHE, "\"64MiB\"", "mapping cache, 8 bytes an entry"),
            param("eviction", EVICTION, "\"lru\"", "which entry leaves a full cache"),
        ],
        "DFTL: a cached map with translation pages in flash",
    ),
]);

/// From one entry to one for every page number there is.
const MAP_CACHE: Kind = Kind::Size { min: 8, max: 8 << 32, step: 8 };

const EVICTION: Kind = Kind::Slot(&[
    plain("lru", "the least recently used entry"),
    with(
        "read-level",
        &[param(
            "fixed",
            Kind::Int { min: 1, max: u32::MAX as u64 },
            "2000",
            "Len_fix: the first of them, less one, stay",
        )],
        "LaLDPC, Algorithm 1: the lowest read level, of these the least recently used",
    ),
]);

pub(super) const WEAR_LEVELLING: Kind = Kind::Slot(&[
    plain("dynamic", "the free block with the fewest P/E cycles is used next"),
    plain("static", "dynamic, and cold blocks are moved"),
    plain("none", "free blocks are used in the order they were freed"),
]);

pub(super) const VICTIM: Kind = Kind::Registered(|| {
    static ALL: LazyLock<Vec<Policy>> =
        LazyLock::new(|| crate::background::gc::POLICIES.iter().map(|(info, _)| registered(info)).collect());
    &ALL
});

pub(super) const ECC_LEVELS: Kind = Kind::Either(&[
    Kind::Slot(&[
        plain("none", "[timing] alone, which decodes everything"),
        plain("laldpc", "LaLDPC, Tables I and II: seven levels"),
    ]),
    Kind::List(
        &[
            param("rber_max", RBER_MAX, "", "the level decodes every RBER below this"),
            param("sense", OPERATION, "", "time on the die"),
            param("transfer", OVERHEAD, "", "time on the channel for a page"),
            param("decode", OVERHEAD, "", "time in the controller"),
        ],
        16,
    ),
]);

/// Beyond one half a bit says the opposite.
const RBER_MAX: Kind = Kind::Num(Range { min: 0.0, max: 0.5, above: true, below: false });

pub(super) const ECC_START: Kind = Kind::Slot(&[
    plain("first", "LDPC-in-SSD: always level 1"),
    plain("ideal", "the level that decodes, as if it were known"),
    plain(
        "last-level",
        "LaLDPC: the level of the page's last read while its map entry is cached, else level 1",
    ),
    plain(
        "block-level",
        "last-level, but without a cached entry the level that last decoded a page of the block",
    ),
]);

pub(super) const ECC_RETRY: Kind = Kind::Slot(&[
    plain("full", "every try is a whole read"),
    plain("incremental", "a further try pays what its level adds in sensing and transfer, and decoding"),
]);

pub(super) const RBER: Kind = Kind::Slot(&[
    plain("none", "no bit errors"),
    with(
        "vth",
        &[
            param("dvpp", volts(0.01, 0.6), "0.38", "programming step in V, the width of a programmed state"),
            param("cell_to_cell", volts(0.0, 0.5), "0.05", "sigma of the cell-to-cell interference in V"),
            param(
                "sensing_step",
                volts(0.001, 0.1),
                "0.03",
                "distance of the references of soft sensing in V",
            ),
            param("per_page_kind", Kind::Bool, "false", "LSB and MSB pages apart, not the mean of both"),
        ],
        "threshold voltage distributions of MLC",
    ),
    value("table", &Kind::Path, "measured: a CSV of P/E cycles, retention, reads and RBER"),
]);

/// The states lie 0.6 V apart and are read with seven references each: wider steps would overlap.
const fn volts(min: f64, max: f64) -> Kind {
    Kind::Num(Range { min, max, above: false, below: false })
}

/// At most 60 years: the drive keeps ages as seconds in 32 bits, which leaves as long again for the run.
pub(super) const AGE: Kind = Kind::Time { min: 0, max: 60 * 365 * 86_400_000_000_000 };

/// So few that `show` has them in one line, of which the reader takes 64 points.
pub(super) const RETENTION: Kind = Kind::Either(&[
    AGE,
    Kind::List(
        &[
            param("age", AGE, "", "age of the data"),
            param("share", SHARE_ABOVE_0, "", "its share of the data"),
        ],
        32,
    ),
]);

pub(super) const REFRESH: Kind = Kind::Slot(&[
    plain("none", "data is never refreshed"),
    with(
        "fcr",
        &[
            param("full_strength", Kind::Bool, "false", "refresh reads go straight to the highest level"),
            param(
                "in_place",
                Kind::Bool,
                "false",
                "pages are reprogrammed where they are, nothing is erased",
            ),
            param(
                "reprogram_error",
                Kind::Num(Range { min: 0.0, max: 1e-2, above: false, below: false }),
                "0.0",
                "RBER that every page reprogrammed in place adds to all pages of its block until its erase: its \
                 neighbours are disturbed, those of 3D flash most",
            ),
        ],
        "every valid page is remapped when its block is due",
    ),
    with(
        "ec-cache",
        &[
            param(
                "size",
                Kind::Size { min: 512, max: 1 << 40, step: 512 },
                "\"1MiB\"",
                "RAM for error positions",
            ),
            param(
                "hot_reads",
                HOT_READS,
                "8",
                "host reads of a page since it was programmed from which on its error positions are kept",
            ),
        ],
        "fcr, with a cache of known error positions of pages that are read often",
    ),
    with(
        "partial",
        &[
            param("susceptible_ratio", SUSCEPTIBLE, "0.0788", "share of a page's bits that are susceptible"),
            param("encoding", ENCODING, "\"paper\"", "how the susceptible bits are written down"),
            param("codeword_bits", Kind::Int { min: 64, max: 1 << 20 }, "8192", "bits of an LDPC codeword"),
            param("vsm_pages", Kind::Int { min: 1, max: 4096 }, "4", "pages of the virtual shadow memory"),
            param(
                "min_free_blocks",
                SHARE,
                "0.20",
                "below this share of free blocks every refresh is conventional",
            ),
            param(
                "hot_reads",
                HOT_READS,
                "8",
                "pages read so often since they were programmed are refreshed conventionally",
            ),
            param(
                "max_share",
                SHARE_ABOVE_0,
                "1.0",
                "pages whose susceptible data takes more than this share of a page are refreshed conventionally",
            ),
        ],
        "PR: only the susceptible bits of a page are moved, to pages that many share",
    ),
]);

/// Counted in a byte a page.
const HOT_READS: Kind = Kind::Int { min: 1, max: 255 };

const SUSCEPTIBLE: Kind = Kind::Either(&[
    SHARE,
    Kind::Slot(&[plain("vth", "by the distributions of reliability.rber.vth, page by page")]),
]);

const ENCODING: Kind = Kind::Slot(&[
    plain("paper", "as many bits as are susceptible, as the paper's evaluation counts"),
    plain("entries", "an offset in the codeword and a value for each bit (Section 3.3 of the paper)"),
    plain("enumerative", "positions and values at their entropy"),
]);

pub(super) const REFRESH_INTERVAL: Kind = Kind::List(
    &[
        param("pe", Kind::Int { min: 1, max: 10_000_000 }, "", "up to this many P/E cycles"),
        param("every", SOME_TIME, "", "a block is due after this time"),
    ],
    64,
);

pub(super) const MIGRATION: Kind = Kind::Slot(&[
    plain("off-chip", "every copy is read out, corrected and written back"),
    with(
        "rcopyback",
        &[COPYBACK_LIMIT],
        "inside the plane, at most n times in a row, when the write buffer is busy",
    ),
    with(
        "rcopyback-greedy",
        &[COPYBACK_LIMIT],
        "inside the plane, at most n times in a row, whenever it may",
    ),
]);

const COPYBACK_LIMIT: Param = param(
    "limit",
    Kind::Either(&[
        COPYBACKS,
        Kind::Slot(&[
            plain("table", "by the P/E cycles of the destination (rcopyback paper, Table 1)"),
            with(
                "measured",
                &[
                    param(
                        "within",
                        Kind::Time { min: 0, max: 60 * 365 * 86_400_000_000_000 },
                        "\"365d\"",
                        "the page stays readable for so long",
                    ),
                    param("level", Kind::Int { min: 1, max: 16 }, "7", "at this read level or a lower one"),
                ],
                "as many as the RBER of the destination allows",
            ),
        ]),
        Kind::List(
            &[
                param("pe", Kind::Int { min: 0, max: 10_000_000 }, "", "up to this many P/E cycles"),
                param("copybacks", COPYBACKS, "", "copybacks in a row at most"),
            ],
            32,
        ),
    ]),
    "\"table\"",
    "copybacks in a row at most: a number, by P/E cycles, or measured",
);

/// So many blocks are open for copybacks in every plane.
const COPYBACKS: Kind = Kind::Int { min: 0, max: crate::copyback::COPYBACKS_MAX as u64 };

pub(super) const SYNC: Kind = Kind::Registered(|| {
    static ALL: LazyLock<Vec<Policy>> = LazyLock::new(|| {
        crate::write_cache::sync::POLICIES.iter().map(|(info, _)| registered(info)).collect()
    });
    &ALL
});

pub(super) const DIRTY_BUDGET: Kind =
    Kind::Either(&[SHARE, Kind::Slot(&[plain("measured", "budget detection sets it by the capacitor")])]);

/// Degrees Celsius, as wide as the parts of a drive are made for (assumption).
const CELSIUS: Kind = Kind::Num(Range { min: -40.0, max: 125.0, above: false, below: false });

/// As many entries as `RETENTION`.
pub(super) const TEMPERATURE: Kind = Kind::Either(&[
    CELSIUS,
    Kind::List(
        &[
            param(
                "from",
                ANY_TIME,
                "",
                "from so long after the start, on the scaled clock; the first from 0",
            ),
            param("celsius", CELSIUS, "", "degrees Celsius from then on"),
        ],
        32,
    ),
]);

pub(super) const STEPS: Kind = Kind::Slot(&[
    plain("five", "100, 90, 80, 70 or 0 % of the cache"),
    plain("continuous", "any share of the cache"),
]);

pub(super) const FLUSH: Kind = Kind::Slot(&[
    plain("plain", "ordinary allocation"),
    plain("csw", "capacitance-saving: dies in parallel, fast pages first"),
]);

pub(super) const FLUSH_ORDER: Kind = Kind::Slot(&[
    plain("oldest", "the least recently used page first"),
    plain("newest", "the most recently used page first"),
    plain("metadata", "metadata first, then as \"oldest\""),
]);

pub(super) const METHOD: Kind = Kind::Slot(&[
    plain("none", "a fresh drive"),
    plain("fill", "filled to a used and a valid share, without simulating time"),
    plain("pts", "SNIA PTS: sequential fill, then random overwrite until the WAF is steady"),
]);

pub(super) const TIME_UNIT: Kind = Kind::Slot(&[
    plain("ps", "picoseconds"),
    plain("ns", "nanoseconds"),
    plain("us", "microseconds"),
    plain("ms", "milliseconds"),
    plain("s", "seconds"),
]);

pub(super) const FORMAT: Kind = Kind::Slot(&[
    plain("msr", "MSR Cambridge CSV"),
    plain("spc", "SPC-1 ASCII, as the UMass traces"),
    plain("blkparse", "text of blkparse"),
    plain("fio-iolog", "fio write_iolog"),
    plain("ssdsim", "SSDsim ASCII"),
    plain("disksim", "DiskSim ASCII"),
    plain("mqsim", "MQSim ASCII"),
    plain("alibaba", "Alibaba block traces"),
    plain("tencent", "Tencent block storage"),
    plain("systor", "SYSTOR '17"),
    plain("vscsi", "VMware vscsiStats"),
]);

pub(super) const SYNTHETIC: Kind = Kind::Table(&[
    param("requests", Kind::Int { min: 1, max: 1_000_000_000_000 }, "1_000_000", "number of requests"),
    param("read_fraction", SHARE, "0.3", "share of reads"),
    param("trim_fraction", SHARE, "0.0", "share of TRIMs; the rest are writes"),
    param("size", Kind::Sizes, "\"4KiB\"", "request size, or sizes and their weights"),
    param("address", ADDRESS, "\"uniform\"", "where requests go"),
    param("span", SHARE_ABOVE_0, "1.0", "share of the logical space that is addressed"),
    param(
        "align",
        Kind::Size { min: 512, max: 1 << 30, step: 512 },
        "\"4KiB\"",
        "addresses are multiples of this",
    ),
]);

const ADDRESS: Kind = Kind::Either(&[
    Kind::Slot(&[
        plain("uniform", "every place alike"),
        plain("sequential", "one after the other, wrapping at the end of the span"),
        value(
            "zipf",
            &Kind::Num(Range { min: 0.0, max: 10.0, above: true, below: false }),
            "Zipf with this exponent; ranks are scattered over the span",
        ),
    ]),
    Kind::Table(&[
        param("hot", SHARE_ABOVE_0, "", "hot share of the span"),
        param("share", SHARE, "", "share of the accesses that go there"),
    ]),
]);

pub(super) const ARRIVAL: Kind = Kind::Slot(&[
    plain("trace", "at the workload's own times"),
    value("queue_depth", &Kind::Int { min: 1, max: 65_536 }, "closed loop: always this many outstanding"),
    value(
        "iops",
        &Kind::Num(Range { min: 0.0, max: 1e9, above: true, below: false }),
        "open loop: this many requests a second",
    ),
    with(
        "bursts",
        &[
            param("requests", Kind::Int { min: 1, max: 1_000_000_000_000 }, "", "requests of a round"),
            param("at_once", SHARE_ABOVE_0, "", "share of them that arrives at once, as its first"),
            param(
                "idle",
                Kind::Time { min: 1, max: IDLE_NS_MAX },
                "",
                "time from one of the others to the next, and to the next round",
            ),
        ],
        "open loop: rounds of a burst and of single requests with idle times between them",
    ),
]);

/// A day: longer ones make a run of nothing.
const IDLE_NS_MAX: u64 = 86_400_000_000_000;

pub(super) const BEYOND: Kind = Kind::Slot(&[
    plain("refuse", "the run is refused, naming the first such request"),
    plain("wrap", "addresses are taken modulo the logical capacity, and counted"),
]);

/// `CWDP` and the other 23, then `dynamic`.
pub(super) const ALLOCATION: Kind = Kind::Slot(&[
    plain("CWDP", "static: channel varies fastest, then chip (way), die, plane"),
    plain("CWPD", "static order"),
    plain("CDWP", "static order"),
    plain("CDPW", "static order"),
    plain("CPWD", "static order"),
    plain("CPDW", "static order"),
    plain("WCDP", "static order"),
    plain("WCPD", "static order"),
    plain("WDCP", "static order"),
    plain("WDPC", "static order"),
    plain("WPCD", "static order"),
    plain("WPDC", "static order"),
    plain("DCWP", "static order"),
    plain("DCPW", "static order"),
    plain("DWCP", "static order"),
    plain("DWPC", "static order"),
    plain("DPCW", "static order"),
    plain("DPWC", "static order"),
    plain("PCWD", "static order"),
    plain("PCDW", "static order"),
    plain("PWCD", "static order"),
    plain("PWDC", "static order"),
    plain("PDCW", "static order"),
    plain("PDWC", "static order"),
    plain("dynamic", "the least-loaded die"),
]);
