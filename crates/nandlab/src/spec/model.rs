//! A validated spec: what the drive is built from. Made by [`crate::spec`]'s parser only (or by hand in tests);
//! every field has its unit in the name or the type.

use crate::base::geometry::DriveSpec;
use crate::base::policy::Choice;
use crate::base::units::{SECOND, Span, Time};
use crate::capacitor::CapacitorSpec;
use crate::copyback::CopybackLimit;
use crate::copyback::CopybackLimitSpec;
use crate::demand_map::MapSpec;
use crate::flash::{EccSpec, ReliabilitySpec};
use crate::ftl::WearLevelling;
use crate::ftl::allocation::Allocation;
use crate::refresh::partial::Encoding;
use crate::sched::TimingSpec;
use crate::write_cache::CacheSpec;
use std::path::PathBuf;

/// A whole validated spec. One section of the file is one field.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Spec {
    pub seed: u64,
    pub drive: DriveSpec,
    pub host: HostSpec,
    pub timing: TimingSpec,
    pub ftl: FtlSpec,
    pub gc: GcSpec,
    pub ecc: EccSpec,
    pub refresh: RefreshSpec,
    pub migration: MigrationSpec,
    pub cache: CacheSpec,
    pub capacitor: CapacitorSpec,
    pub power: PowerSpec,
    pub reliability: ReliabilitySpec,
    pub energy: EnergySpec,
    pub precondition: PreconditionSpec,
    /// `precondition.map_reads`: pages that the workload reads before it writes them hold data at the start.
    pub map_reads: bool,
    /// `None`: no workload section; fine for the stepping interface, refused by `run`.
    pub workload: Option<WorkloadSpec>,
    pub output: OutputSpec,
}

impl Spec {
    /// Whether power can fail here, or has something to keep the drive alive when it does.
    pub fn models_power_loss(&self) -> bool {
        let power = &self.power;
        self.capacitor.capacitance_f > 0.0 || power.cut_after_requests > 0 || power.cut_at_ns.is_some()
    }
}

/// `[host]`: what is between the host and the drive.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSpec {
    /// `None`: requests reach the drive, and completions the host, at once.
    pub link: Option<LinkSpec>,
}

/// `host.link`: the link between host and drive, the same in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSpec {
    /// Bandwidth in each direction, above 0.
    pub bytes_per_s: f64,
    /// One way: from sending a command, the last byte of data or a completion to its arrival.
    pub latency_ns: Span,
}

/// `[ftl]`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct FtlSpec {
    pub map: MapSpec,
    pub allocation: Allocation,
    pub wear_levelling: WearLevelling,
    /// Static wear levelling: move the coldest block once it lags the plane's mean P/E by this many cycles.
    pub wear_gap: u32,
}

/// `[gc]`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct GcSpec {
    /// From [`crate::background::gc::POLICIES`].
    pub victim: Choice,
    /// How foreground GC shares its die with host writes.
    pub pacing: GcPacing,
    /// Whether the die of a foreground GC serves others meanwhile.
    pub foreground: GcForeground,
    /// Share of the pages that can be free at which idle-time GC starts.
    pub background_free: f64,
    /// Share of the pages that can be free at which foreground GC starts.
    pub foreground_free: f64,
    /// Idle-time GC leaves a plane alone while its best victim is more than this share valid.
    pub idle_valid_max: f64,
    /// Time without host requests after which the drive counts as idle.
    pub idle_after_ns: Span,
}

/// `gc.pacing`: how foreground GC shares its die with host writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcPacing {
    /// So that the next free block is there when the host needs it.
    Proportional,
    /// By age: whichever has waited longer goes next.
    None,
}

/// `gc.foreground`: whether the die of a foreground GC serves others meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcForeground {
    /// As the scheduler says.
    Interleaved,
    /// The host waits for the whole cleaning of a victim; a block of translation pages is cleaned interleaved.
    Blocking,
}

/// `[refresh]`: how ageing data is kept readable.
#[derive(Clone, Debug, PartialEq)]
pub struct RefreshSpec {
    /// What is done with a block that is due.
    pub policy: RefreshPolicySpec,
    /// Up to so many P/E cycles a block is due so long after its first program or its last refresh; beyond the last line
    /// as in it.
    pub interval: Vec<(u32, Span)>,
    /// How much of its interval a block may be overdue.
    pub grace: f64,
}

/// `refresh.policy`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RefreshPolicySpec {
    /// Nothing.
    None,
    /// Every valid page is read, corrected and programmed anew (FCR).
    Fcr(FcrSpec),
    /// As FCR, and the error positions of pages that are read often are kept (EC-Cache).
    EcCache(EcCacheSpec),
    /// Only susceptible bits are written elsewhere (PR); reads as with `full_strength`.
    Partial(PartialSpec),
}

impl RefreshPolicySpec {
    /// How it refreshes partially, if it does.
    pub fn partial(&self) -> Option<&PartialSpec> {
        match self {
            RefreshPolicySpec::Partial(partial) => Some(partial),
            _ => None,
        }
    }

    /// Whether its reads go straight to the highest level.
    pub fn reads_full_strength(&self) -> bool {
        match self {
            RefreshPolicySpec::Fcr(fcr) => fcr.full_strength,
            RefreshPolicySpec::Partial(_) => true,
            RefreshPolicySpec::None | RefreshPolicySpec::EcCache(_) => false,
        }
    }

    /// How it reprograms pages in place, if it does.
    pub fn in_place(&self) -> Option<&FcrSpec> {
        match self {
            RefreshPolicySpec::Fcr(fcr) => Some(fcr).filter(|fcr| fcr.in_place),
            _ => None,
        }
    }

    /// The cache of known error positions, if it has one.
    pub fn ec_cache(&self) -> Option<&EcCacheSpec> {
        match self {
            RefreshPolicySpec::EcCache(cache) => Some(cache),
            _ => None,
        }
    }

    /// Whether it comes to know errors of pages that stay where they are.
    pub fn knows_errors(&self) -> bool {
        matches!(self, RefreshPolicySpec::EcCache(_) | RefreshPolicySpec::Partial(_))
    }

    /// From how many host reads since it was programmed a page is read often, if that counts here.
    pub fn hot_reads(&self) -> Option<u32> {
        match self {
            RefreshPolicySpec::EcCache(cache) => Some(cache.hot_reads),
            RefreshPolicySpec::Partial(partial) => Some(partial.hot_reads),
            RefreshPolicySpec::None | RefreshPolicySpec::Fcr(_) => None,
        }
    }
}

/// `refresh.policy.fcr`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FcrSpec {
    /// Its reads go straight to the highest level instead of trying all from the first.
    pub full_strength: bool,
    /// Pages are reprogrammed where they are, instead of being written elsewhere and their block erased.
    pub in_place: bool,
    /// RBER that every page reprogrammed in place adds to all pages of its block until the erase, 0 to 0.01.
    pub reprogram_error: f64,
}

/// `refresh.policy.ec-cache`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EcCacheSpec {
    /// RAM for error positions, in bytes.
    pub size_bytes: u64,
    /// Host reads of a page since it was programmed from which on its error positions are kept, 1 to 255.
    pub hot_reads: u32,
}

/// `refresh.policy.partial`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartialSpec {
    /// Share of a page's bits that are susceptible; `None`: by the `vth` model.
    pub susceptible_ratio: Option<f64>,
    /// How they are written down.
    pub encoding: Encoding,
    /// Bits of an LDPC codeword.
    pub codeword_bits: u32,
    /// Pages of the virtual shadow memory.
    pub vsm_pages: u32,
    /// Below this share of free blocks all refreshes are conventional.
    pub min_free_blocks: f64,
    /// A page that has been read so often since it was programmed is refreshed conventionally.
    pub hot_reads: u32,
    /// A page whose susceptible data takes more than this share of a page is refreshed conventionally.
    pub max_share: f64,
}

/// `[migration]`: how pages are copied inside the drive.
#[derive(Clone, Debug, PartialEq)]
pub struct MigrationSpec {
    /// A name from [`crate::copyback::POLICIES`].
    pub policy: &'static str,
    /// How many copybacks in a row a page may go through.
    pub limit: CopybackLimitSpec,
}

impl MigrationSpec {
    /// The most copybacks in a row of any page (Mcpb).
    pub fn copybacks_max(&self) -> u8 {
        CopybackLimit::new(&self.limit).most()
    }
}

/// `[power]`: when power fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerSpec {
    /// After this many completed requests; 0: never.
    pub cut_after_requests: u64,
    /// At this simulated time; `None`: never.
    pub cut_at_ns: Option<Time>,
}

/// `[energy]`: joules per operation and idle watts.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct EnergySpec {
    pub read_j: f64,
    pub program_j: f64,
    pub erase_j: f64,
    pub transfer_j_per_byte: f64,
    pub idle_w: f64,
}

/// `[precondition]`.
#[derive(Clone, Debug, PartialEq)]
pub enum PreconditionSpec {
    /// A fresh drive.
    None,
    /// Filled to a share of the physical pages, of which a share is valid.
    Fill {
        /// Filled share of the physical pages.
        used: f64,
        /// Valid share of the filled pages.
        valid: f64,
        /// Order of the LPNs in them.
        order: FillOrder,
    },
    /// SNIA PTS: sequential fill, then uniform random overwrite until the WAF is steady.
    Pts {
        /// At most this many times the logical capacity is overwritten; 0: the sequential fill alone.
        rounds_max: u32,
    },
    /// A drive saved earlier.
    Load(PathBuf),
}

/// `precondition.order`: the order of the LPNs in the pages of a fill. It decides write amplification until the workload has
/// written the drive several times over: what is invalidated together lies together after the one, and not after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillOrder {
    /// None.
    Random,
    /// That of the addresses.
    Sequential,
}

/// `[workload]`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct WorkloadSpec {
    pub source: Source,
    pub arrival: Arrival,
    pub beyond: Beyond,
    /// Stop after this many requests; 0: the whole workload.
    pub requests_max: u64,
    /// How many times the source is played.
    pub repeat: u32,
}

/// Where requests come from.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Source {
    Trace(TraceSpec),
    Profile(ProfileSpec),
    Synthetic(SyntheticSpec),
}

/// A trace file.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpec {
    /// The file, relative paths resolved against the spec's folder.
    pub path: PathBuf,
    /// `None`: by content.
    pub format: Option<String>,
    /// Which device (ASU, volume, disk) of a file that holds several; `None`: the only one.
    pub device: Option<DeviceChoice>,
    /// Skip malformed lines and count them.
    pub lenient: bool,
    /// Time unit of a format that does not fix it (MQSim), in nanoseconds; `None`: the format's default.
    pub time_unit_ns: Option<f64>,
    /// The longest time from one record to the next that is not questioned.
    pub max_gap_ns: Span,
}

/// `workload.device`.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceChoice {
    /// Only this device, by the name the format gives it (`"0"`, `"7,0"`, `"hm_0"`).
    One(String),
    /// All devices, laid one after another (each as large as its largest address, rounded up to 1 MiB).
    Concatenate,
}

/// A calibrated look-alike of a published or recorded trace.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileSpec {
    /// Such as `msr/hm_0`.
    pub name: String,
    /// Number of requests; `None`: as many as published.
    pub requests: Option<u64>,
}

/// `workload.synthetic`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct SyntheticSpec {
    pub requests: u64,
    pub read_fraction: f64,
    /// Share of all requests that are TRIMs.
    pub trim_fraction: f64,
    /// Request sizes in bytes and their weights.
    pub sizes: Vec<(u64, f64)>,
    pub address: Address,
    /// Share of the drive's logical space that is addressed.
    pub span: f64,
    /// Addresses are multiples of this many bytes.
    pub align_bytes: u64,
}

/// How a synthetic workload chooses addresses.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Address {
    Sequential,
    Uniform,
    /// Zipf with this exponent; ranks are scattered over the span.
    Zipf(f64),
    /// A `hot` share of the span gets `share` of the accesses.
    Hot {
        hot: f64,
        share: f64,
    },
}

/// How requests arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// At the workload's own times, multiplied by `time_scale`.
    Trace {
        /// > 1 stretches.
        time_scale: f64,
    },
    /// Closed loop: this many requests are always outstanding.
    QueueDepth(u32),
    /// Open loop at a constant rate of requests a second.
    Iops(f64),
    /// Open loop in rounds: a burst, then single requests.
    Bursts {
        /// Requests of a round.
        requests: u64,
        /// How many of them arrive at once, as the first of their round; 1 at least.
        at_once: u64,
        /// From one of the others to the next, and to the next round.
        idle_ns: Span,
    },
}

impl Arrival {
    /// When request `number` (counted from 0) arrives, which the workload itself has at `own`; `None` beyond
    /// [`Time::LIMIT`]. In a closed loop requests arrive when there is room for them: not later than the start.
    #[inline]
    pub fn at(&self, number: u64, own: Time) -> Option<Time> {
        match *self {
            Arrival::Trace { time_scale: 1.0 } => Some(own).filter(|&at| at <= Time::LIMIT),
            Arrival::Trace { time_scale } => Time::from_ns_f64(own.ns() as f64 * time_scale),
            Arrival::QueueDepth(_) => Some(Time::START),
            Arrival::Iops(rate) => Time::from_ns_f64(number as f64 * (SECOND.ns() as f64 / rate)),
            Arrival::Bursts { requests, at_once, idle_ns } => {
                let singly = |n: u64| n.saturating_sub(at_once - 1);
                // A round's burst, too, comes `idle` after the request before it.
                let pauses = number / requests * singly(requests) + singly(number % requests);
                pauses.checked_mul(idle_ns.ns()).map(Time::from_ns).filter(|&at| at <= Time::LIMIT)
            }
        }
    }
}

/// What happens to a request beyond the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// The run is refused, naming the first such request.
    Refuse,
    /// Addresses are taken modulo the logical capacity, and counted.
    Wrap,
}

/// `[output]`: what is written beside the summary.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputSpec {
    /// `timeline.json` (Chrome / Perfetto) of the first this many flash operations and the requests meanwhile; 0: none.
    pub timeline_operations: u64,
    /// `requests.parquet`, one row a request.
    pub requests: bool,
    /// Rows of `series.parquet` at most.
    pub series_rows: u32,
}
