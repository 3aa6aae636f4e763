//! The section `[workload]`: the source of the requests, and their arrival times. The clients of `workload.clients` are
//! in [`crate::clients`].

use crate::base::rng::Stream;
use crate::base::units::{DAY, SECOND, Span, Time};
use crate::clients::{self, ClientSpec};
use crate::columns::Columns;
use crate::spec::{
    ANY_TIME, COUNT, Check, Choices, FACTOR, Follows, FromVal, Key, Listed, OneOf, Param, Params, Policy,
    Resolved, Rule, SHARE, SHARE_ABOVE_0, SOME_TIME, Section, Val, ValueKind, When, above_0, choices, int,
    key, param, params, plain, show_num, value, with,
};
use std::path::PathBuf;

/// The keys that name the source of the requests.
pub const SOURCES: OneOf = OneOf {
    section: "workload",
    keys: &["workload.trace", "workload.profile", "workload.synthetic", "workload.clients"],
    what: "the workload",
    without: "without a source",
    missing: "no source of requests",
};

const TRACE: When = When::Set(&["workload.trace"]);
const PROFILE: When = When::Set(&["workload.profile"]);
const ANY_SOURCE: When = When::Set(SOURCES.keys);
/// The sources whose requests all arrive by `workload.arrival`; a client has an arrival of its own.
const ONE_ARRIVAL: When = When::Set(&["workload.trace", "workload.profile", "workload.synthetic"]);

impl Section for Option<WorkloadSpec> {
    const KEYS: &'static [Key] = &[
        key("workload.trace", ValueKind::Path, "", "a trace file, plain, compressed or alone in an archive"),
        key(
            "workload.profile",
            ValueKind::Text,
            "",
            "a look-alike of a published or recorded trace, such as \"msr/hm_0\"",
        ),
        key("workload.synthetic", ValueKind::Table(SyntheticSpec::PARAMS), "", "a synthetic workload"),
        key(
            "workload.clients",
            ValueKind::List(ClientSpec::PARAMS, clients::CLIENTS_MAX),
            "",
            "several clients at once, each a synthetic workload with arrivals of its own; results are kept by client",
        ),
        key(
            "workload.format",
            ValueKind::Slot(FORMATS),
            "",
            "the trace's format; recognised by its content when not given",
        )
        .when(TRACE),
        key(
            "workload.device",
            ValueKind::Text,
            "",
            "the device of the trace that is played, or \"concatenate\": all devices, one after another",
        )
        .when(TRACE),
        key(
            "workload.devices",
            ValueKind::Texts(DEVICES_MAX),
            "",
            "the devices of the trace that are played, one after another in the address space, in this order",
        )
        .when(TRACE),
        key(
            "workload.only",
            ValueKind::Slot(Only::CHOICES),
            "",
            "the operation of the trace that is played; when not given, all operations",
        )
        .when(TRACE),
        key(
            "workload.window",
            ValueKind::Table(Window::PARAMS),
            "",
            "the part of the trace that is played, by the time since the trace's first request",
        )
        .when(TRACE),
        key(
            "workload.lenient",
            LENIENT,
            "false",
            "skip damaged records and count them; if they are more than 10 % of the records, or more than the share \
             at_most, the trace is refused",
        )
        .when(TRACE),
        key(
            "workload.time_unit",
            ValueKind::Slot(TimeUnit::CHOICES),
            "",
            "unit of time of a format that does not fix it: `mqsim` (its Time_Unit; ns when not given) and `fio-iolog` (us)",
        )
        .when(TRACE),
        key("workload.requests", REQUESTS, "", "number of requests; when not given, as many as in the trace")
            .when(PROFILE),
        key(
            "workload.arrival",
            ValueKind::Either(&[ValueKind::Slot(ARRIVALS), AT_A_RATE]),
            "",
            "when requests arrive; the default for a synthetic workload is { queue_depth = 32 }, else \"trace\"",
        )
        .follows(Follows::Beside {
            key: "workload.synthetic",
            then: "{ queue_depth = 32 }",
            otherwise: "\"trace\"",
        })
        .when(ONE_ARRIVAL),
        key("workload.time_scale", FACTOR, "1.0", "factor by which arrival times are multiplied")
            .when(When::Is("workload.arrival", &["trace"])),
        key(
            "workload.max_gap",
            ANY_TIME,
            "\"1d\"",
            "the longest accepted time from one record of the trace to the next",
        )
        .when(TRACE),
        key(
            "workload.beyond",
            ValueKind::Slot(Beyond::CHOICES),
            "\"refuse\"",
            "what happens to a request beyond the drive's logical capacity",
        )
        .when(ANY_SOURCE),
        key(
            "workload.whole_pages",
            ValueKind::Bool,
            "false",
            "widen every read, write and TRIM to whole flash pages (drive.page_size), so that no write reads the old page",
        )
        .when(ANY_SOURCE),
        key("workload.requests_max", COUNT, "0", "the run stops after this many requests; 0: never").when(ANY_SOURCE),
        key(
            "workload.warm_up",
            COUNT,
            "0",
            "requests at the start that the results leave out; `nandlab life` and a drive that is operated request by \
             request have no warm-up",
        )
        .when(ANY_SOURCE),
        key("workload.repeat", int(1, 1_000_000), "1", "number of times the workload is played")
            .when(ANY_SOURCE),
    ];

    fn of(values: &Resolved) -> Self {
        Some(WorkloadSpec {
            source: source(values)?,
            arrival: match values.get("workload.arrival") {
                Some(arrival) => Arrival::new(arrival, || values.read("workload.time_scale")),
                // Each client has its own.
                None => Arrival::Trace { time_scale: 1.0 },
            },
            beyond: values.read("workload.beyond"),
            whole_pages: values.read("workload.whole_pages"),
            requests_max: values.read("workload.requests_max"),
            warm_up: values.read("workload.warm_up"),
            repeat: values.read("workload.repeat"),
        })
    }
}

/// The source of the requests; `None` without a workload.
fn source(values: &Resolved) -> Option<Source> {
    if let Some(path) = values.get("workload.trace") {
        return Some(Source::Trace(TraceSpec {
            format: values.get("workload.format").map(TraceFormat::new),
            device: device(values),
            lenient: match values.val("workload.lenient") {
                Val::Bool(lenient) => lenient.then_some(SKIPPED_MAX),
                table => Some(table.read("at_most")),
            },
            time_unit_ns: values.get("workload.time_unit").map(|val| TimeUnit::from_val(val).ns()),
            max_gap_ns: values.read("workload.max_gap"),
            uses_times: values.val("workload.arrival").tag() == "trace"
                || values.get("workload.window").is_some(),
            part: Part {
                only: values.get("workload.only").map(Only::from_val),
                window: values.get("workload.window").map(Window::from_val),
            },
            ..TraceSpec::new(values.file(path.text()))
        }));
    }
    if let Some(name) = values.get("workload.profile") {
        let requests = values.get("workload.requests").map(Val::int);
        return Some(Source::Profile(ProfileSpec { name: name.text().to_string(), requests }));
    }
    if let Some(clients) = values.get("workload.clients") {
        return Some(Source::Clients(clients.list().iter().map(ClientSpec::from_val).collect()));
    }
    values.get("workload.synthetic").map(|synthetic| Source::Synthetic(SyntheticSpec::from_val(synthetic)))
}

/// The devices that are played; `None`: the only device.
fn device(values: &Resolved) -> Option<DeviceChoice> {
    if let Some(names) = values.get("workload.devices") {
        return Some(DeviceChoice::These(names.list().iter().map(|name| name.text().to_string()).collect()));
    }
    values.get("workload.device").map(|val| match val.text() {
        "concatenate" => DeviceChoice::Concatenate,
        name => DeviceChoice::One(name.to_string()),
    })
}

/// Section `[workload]` of the spec.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct WorkloadSpec {
    pub source: Source,
    /// When requests arrive; without a meaning for clients, each of which has its own.
    pub arrival: Arrival,
    pub beyond: Beyond,
    /// Whether every request is widened to whole pages of the drive: its first byte down, its end up.
    pub whole_pages: bool,
    /// The run stops after this many requests; 0: the whole workload.
    pub requests_max: u64,
    /// Requests at the start that the results leave out.
    pub warm_up: u64,
    /// The number of times the source is played.
    pub repeat: u32,
}

impl WorkloadSpec {
    /// The clients; none if the source is another one.
    pub fn clients(&self) -> &[ClientSpec] {
        match &self.source {
            Source::Clients(clients) => clients,
            _ => &[],
        }
    }

    /// Whether every request waits for the completion of an earlier one: a closed loop, or clients that are all closed
    /// loops.
    pub fn is_closed(&self) -> bool {
        let is_closed = |arrival: &Arrival| matches!(arrival, Arrival::QueueDepth(_));
        match &self.source {
            Source::Clients(clients) => clients.iter().all(|client| is_closed(&client.arrival)),
            _ => is_closed(&self.arrival),
        }
    }
}

/// The source of the requests.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Source {
    Trace(TraceSpec),
    Profile(ProfileSpec),
    Synthetic(SyntheticSpec),
    Clients(Vec<ClientSpec>),
}

/// A trace file.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpec {
    /// The file; a relative path starts at the spec's folder.
    pub path: PathBuf,
    /// The trace format; `None`: recognised by its content.
    pub format: Option<TraceFormat>,
    /// The device (ASU, volume, disk) whose requests are played, if the file has several; `None`: the only device.
    pub device: Option<DeviceChoice>,
    /// Whether damaged records are skipped and counted: the largest share of the records that may be damaged; `None`:
    /// the first damaged record is an error.
    pub lenient: Option<f64>,
    /// Time unit in nanoseconds, for a format that does not fix it ([`Format::has_time_unit`]); `None`: the format's
    /// default.
    pub time_unit_ns: Option<f64>,
    /// The longest accepted time from one record to the next.
    pub max_gap_ns: Span,
    /// Whether the times of the records are used, and so checked. A closed loop, for example, needs no times.
    pub uses_times: bool,
    /// The part of the trace that is played.
    pub part: Part,
}

impl TraceSpec {
    /// The trace `path`, with the default of every other setting.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            format: None,
            device: None,
            lenient: None,
            time_unit_ns: None,
            max_gap_ns: DAY,
            uses_times: true,
            part: Part::default(),
        }
    }
}

/// `workload.format`: the format of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// The format with this name.
    Named(String),
    /// Text with these columns, as [`Columns::parse`] reads them.
    Columns(String),
}

impl TraceFormat {
    fn new(val: &Val) -> Self {
        match val {
            Val::Tag("columns", Some(columns)) => Self::Columns(columns.text().to_string()),
            val => Self::Named(val.tag().to_string()),
        }
    }
}

impl<T: Into<String>> From<T> for TraceFormat {
    fn from(name: T) -> Self {
        Self::Named(name.into())
    }
}

/// The choices of `workload.format`: the named formats, and `columns`.
const FORMATS: &[Policy] = &{
    let columns = value(
        "columns",
        &ValueKind::Text,
        "any text: its columns with their units, such as \"time_ms, device, offset, size, op(1=read, 0=write)\"",
    );
    let mut all = [columns; Format::CHOICES.len() + 1];
    let mut i = 0;
    while i < Format::CHOICES.len() {
        all[i] = Format::CHOICES[i];
        i += 1;
    }
    all
};
/// The share of damaged records above which `workload.lenient = true` refuses a trace.
pub const SKIPPED_MAX: f64 = 0.1;

const LENIENT: ValueKind = ValueKind::Either(&[
    ValueKind::Bool,
    ValueKind::Table(&[param(
        "at_most",
        SHARE_ABOVE_0,
        "",
        "the largest share of the records that may be skipped",
    )]),
]);

choices! {
    /// `workload.format`: the named trace formats. The crate `nandlab-trace` has the reader of each.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Format {
        /// Block traces of MSR Cambridge.
        Msr = "msr": "MSR Cambridge block traces (CSV)",
        /// The format of the Storage Performance Council.
        Spc = "spc": "SPC trace format (UMass Financial, WebSearch; CSV)",
        /// The default output of blkparse.
        Blkparse = "blkparse": "blkparse default text (blktrace)",
        /// I/O logs of fio.
        FioIolog = "fio-iolog": "fio I/O log, versions 2 and 3 (written: 3)",
        /// Traces of SSDsim.
        Ssdsim = "ssdsim": "SSDsim ascii",
        /// Traces of MQSim.
        Mqsim = "mqsim": "MQSim ascii",
        /// Traces of DiskSim.
        Disksim = "disksim": "DiskSim ascii",
        /// Block traces of Alibaba Cloud.
        Alibaba = "alibaba": "Alibaba block traces 2020 (CSV)",
        /// Block traces of Tencent Cloud.
        Tencent = "tencent": "Tencent CBS block traces (CSV)",
        /// VDI traces of SYSTOR '17.
        Systor = "systor": "Systor '17 VDI block traces (CSV)",
        /// Traces of VMware vscsiStats.
        Vscsi = "vscsi": "VMware vSCSI traces, versions 1 and 2 (binary; written: 1)",
        /// Traces of Florida International University.
        Fiu = "fiu": "FIU IODedup traces (homes, web, mail; read only)",
        /// Traces of the Fujitsu K5 cloud.
        K5cloud = "k5cloud": "Fujitsu K5 cloud storage traces (CSV; read only)",
        /// Traces of CloudPhysics as text.
        Cloudphysics = "cloudphysics": "CloudPhysics traces as CSV (read only; the binary ones are vscsi)",
        /// Event traces of Windows.
        Etw = "etw": "Windows event traces (Microsoft production traces; CSV; read only)",
        /// The table of biosnoop.
        Biosnoop = "biosnoop": "table of biosnoop (bcc, libbpf-tools; read only)",
        /// The kernel's function tracer.
        Ftrace = "ftrace": "block events of ftrace, trace-cmd and perf script (read only)",
        /// The recording of a live drive.
        Recording = "recording": "recording of a live drive (nandlab serve --record; read only)",
    }
}

impl Format {
    /// Whether `workload.time_unit` states the unit of the format's times.
    pub fn has_time_unit(self) -> bool {
        matches!(self, Self::Mqsim | Self::FioIolog)
    }
}

choices! {
    /// `workload.time_unit`: the unit of time of a trace.
    #[derive(Clone, Copy, Debug)]
    enum TimeUnit {
        Ps = "ps": "picoseconds",
        Ns = "ns": "nanoseconds",
        Us = "us": "microseconds",
        Ms = "ms": "milliseconds",
        S = "s": "seconds",
    }
}

impl TimeUnit {
    /// The unit in nanoseconds.
    fn ns(self) -> f64 {
        match self {
            Self::Ps => 1e-3,
            Self::Ns => 1.0,
            Self::Us => 1e3,
            Self::Ms => 1e6,
            Self::S => 1e9,
        }
    }
}

/// `workload.device`: the device of a trace whose requests are played.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceChoice {
    /// Only the device with this name, as the format has it (`"0"`, `"7,0"`, `"hm_0"`).
    One(String),
    /// All devices, one after another in the address space. A device is as large as its largest address, rounded up to
    /// 1 MiB.
    Concatenate,
    /// These devices, one after another as with [`Self::Concatenate`], in this order.
    These(Vec<String>),
}

/// The largest number of devices in `workload.devices`.
const DEVICES_MAX: usize = 4096;

/// The part of a trace that is played.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Part {
    /// `workload.only`; `None`: all operations.
    pub only: Option<Only>,
    /// `workload.window`; `None`: from the first request to the last.
    pub window: Option<Window>,
}

choices! {
    /// `workload.only`: the operation of a trace that is played.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Only {
        /// Only reads.
        Reads = "reads": "only reads",
        /// Only writes.
        Writes = "writes": "only writes; TRIMs and flushes are left out too",
    }
}

params! {
    /// `workload.window`: the part of a trace that is played, by time since the trace's first request.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Window {
        /// The start of the window.
        pub from: Span = param("from", ANY_TIME, "\"0ns\"", "requests before this time are left out"),
        /// The end of the window, which does not belong to it; `None`: the end of the trace.
        pub to: Option<Span> =
            param("to", TO, "\"end\"", "requests at this time and after it are left out")
                => |val| (val.tag() != "end").then(|| val.span()),
    }
}

const TO: ValueKind =
    ValueKind::Either(&[SOME_TIME, ValueKind::Slot(&[plain("end", "the end of the trace")])]);

/// A synthetic workload calibrated to a published or recorded trace.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileSpec {
    /// The profile's name, such as `msr/hm_0`.
    pub name: String,
    /// Number of requests; `None`: as many as in the trace.
    pub requests: Option<u64>,
}

params! {
    /// `workload.synthetic`: requests drawn at random.
    #[derive(Clone, Debug, PartialEq)]
    #[allow(missing_docs)]
    pub struct SyntheticSpec {
        pub requests: u64 = COUNT_OF_REQUESTS,
        pub read_fraction: f64 = READ_FRACTION,
        /// Share of all requests that are TRIMs.
        pub trim_fraction: f64 = TRIM_FRACTION,
        /// Request sizes in bytes and their weights.
        pub sizes: Vec<(u64, f64)> = SIZES => sizes,
        pub address: Address = param("address", ADDRESS, "\"uniform\"", "distribution of addresses"),
        /// Share of the drive's logical space that is addressed.
        pub span: f64 =
            param("span", SHARE_ABOVE_0, "1.0", "share of the logical space that is addressed"),
        /// Addresses are multiples of this many bytes.
        pub align_bytes: u64 = ALIGN,
    }
}

// The parameters that a client has too.
pub(crate) const COUNT_OF_REQUESTS: Param = param("requests", REQUESTS, "1_000_000", "number of requests");
pub(crate) const READ_FRACTION: Param =
    param("read_fraction", SHARE, "0.3", "share of reads (rwmixread of fio, in percent there)");
pub(crate) const TRIM_FRACTION: Param =
    param("trim_fraction", SHARE, "0.0", "share of TRIMs; all other requests are writes");
pub(crate) const SIZES: Param =
    param("size", ValueKind::Sizes, "\"4KiB\"", "request size, or sizes and their weights");
pub(crate) const ALIGN: Param = param(
    "align",
    ValueKind::Size { min: 512, max: 1 << 30, step: 512 },
    "\"4KiB\"",
    "addresses are multiples of this size",
);

/// The value of [`SIZES`].
pub(crate) fn sizes(val: &Val) -> Vec<(u64, f64)> {
    match val {
        Val::Sizes(sizes) => sizes.clone(),
        _ => val.is_no("table of sizes"),
    }
}

/// The error of a synthetic workload or client whose reads and TRIMs are more than all requests: message and remedy.
pub(crate) fn shares_beyond_1(of: &Val) -> Option<(String, &'static str)> {
    let (reads, trims) = (of.field("read_fraction").num(), of.field("trim_fraction").num());
    let message = format!(
        "the shares {} of reads and {} of TRIMs add up to more than 1",
        show_num(reads),
        show_num(trims)
    );
    (reads + trims > 1.0).then_some((message, "read_fraction + trim_fraction must be at most 1"))
}

/// The error of an arrival in bursts of no request: message and remedy.
pub(crate) fn empty_burst(arrival: &Val) -> Option<(String, String)> {
    let Val::Tag("bursts", Some(bursts)) = arrival else { return None };
    let (requests, at_once) = (bursts.field("requests").int(), bursts.field("at_once").num());
    let message = format!("at_once = {at_once:?} of {requests} requests is less than one request");
    let remedy = format!("at_once must be at least {:?}", 1.0 / requests as f64);
    (burst_requests(bursts) == 0).then_some((message, remedy))
}

/// The number of requests of a workload.
pub(crate) const REQUESTS: ValueKind = int(1, 1_000_000_000_000);

/// The distribution of addresses in a synthetic workload.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Address {
    Sequential,
    Uniform,
    /// Zipf distribution with this exponent; the ranks are scattered over the span.
    Zipf(f64),
    /// The share `share` of the requests goes to the share `hot` of the span.
    Hot {
        hot: f64,
        share: f64,
    },
}

pub(crate) const ADDRESS: ValueKind = ValueKind::Either(&[
    ValueKind::Slot(&[
        plain("uniform", "all addresses equally likely"),
        plain("sequential", "in ascending order, wrapping at the end of the span"),
        value("zipf", &above_0(10.0), "Zipf with this exponent; ranks are scattered over the span"),
    ]),
    ValueKind::Table(&[
        param("hot", SHARE_ABOVE_0, "", "share of the span that is hot"),
        param("share", SHARE, "", "share of the requests that go to the hot part of the span"),
    ]),
]);

impl FromVal for Address {
    fn from_val(val: &Val) -> Self {
        match val {
            Val::Tag("uniform", None) => Self::Uniform,
            Val::Tag("sequential", None) => Self::Sequential,
            Val::Tag("zipf", Some(exponent)) => Self::Zipf(exponent.num()),
            Val::Table(_) => Self::Hot { hot: val.field("hot").num(), share: val.field("share").num() },
            _ => val.is_no("address"),
        }
    }
}

/// `workload.arrival`: the arrival times of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// The workload's own times, multiplied by `time_scale`.
    Trace {
        /// The factor; above 1 it stretches the workload.
        time_scale: f64,
    },
    /// Closed loop: always this many outstanding requests.
    QueueDepth(u32),
    /// Open loop at this constant rate, in requests per second.
    Iops(f64),
    /// Open loop: a Poisson process with this mean rate, in requests per second.
    Poisson(f64),
    /// Open loop in rounds: a burst, then single requests.
    Bursts {
        /// Requests of a round.
        requests: u64,
        /// Requests of the burst at the start of the round, at least 1.
        at_once: u64,
        /// Time between single requests, and from the last single request to the next round.
        idle_ns: Span,
    },
}

/// The choices of `workload.arrival`: the workload's own times, and those that a client has too.
const ARRIVALS: &[Policy] = &[
    plain("trace", "at the workload's own times"),
    value("queue_depth", &int(1, 65_536), "closed loop: always this many outstanding requests"),
    value("iops", &above_0(1e9), "open loop: this many requests per second"),
    with(
        "bursts",
        &[
            param("requests", REQUESTS, "", "requests of a round"),
            param(
                "at_once",
                SHARE_ABOVE_0,
                "",
                "share of the round's requests that arrive at once, at its start",
            ),
            param(
                "idle",
                ValueKind::Time { min: 1, max: IDLE_NS_MAX },
                "",
                "time between single requests, and from the last single request to the next round",
            ),
        ],
        "open loop: rounds of a burst and of single requests with idle times between them",
    ),
];

/// The choices of a client's arrival: all but the times of a trace.
const WITHOUT_TRACE: &[Policy] = ARRIVALS.split_at(1).1;

/// The arrival of a client.
pub(crate) const OF_CLIENT: ValueKind = ValueKind::Either(&[ValueKind::Slot(WITHOUT_TRACE), AT_A_RATE]);

/// An open loop at a rate, with the process of its arrivals. A rate alone is the choice `iops`.
const AT_A_RATE: ValueKind = ValueKind::Table(&[
    param("iops", above_0(1e9), "", "requests per second"),
    param(
        "process",
        ValueKind::Slot(Process::CHOICES),
        "\"even\"",
        "the times between arrivals, as fio's rate_process",
    ),
]);

choices! {
    /// `workload.arrival.process`: the times between the arrivals of an open loop with a rate.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Process {
        /// All the same.
        Even = "even": "the same time between all arrivals",
        /// Those of a Poisson process.
        Poisson = "poisson": "a Poisson process: the times between arrivals are drawn from an exponential distribution",
    }
}

/// The largest `idle`, one day: with longer times a run would be nearly all idle.
const IDLE_NS_MAX: u64 = 86_400_000_000_000;

impl Arrival {
    /// The value of `workload.arrival`; `time_scale` is called only if the workload's own times are used.
    pub fn new(val: &Val, time_scale: impl FnOnce() -> f64) -> Self {
        match val {
            Val::Tag("trace", None) => Self::Trace { time_scale: time_scale() },
            Val::Tag("queue_depth", Some(depth)) => Self::QueueDepth(u32::from_val(depth)),
            Val::Tag("iops", Some(iops)) => Self::Iops(iops.num()),
            Val::Table(_) => match val.read("process") {
                Process::Even => Self::Iops(val.field("iops").num()),
                Process::Poisson => Self::Poisson(val.field("iops").num()),
            },
            Val::Tag("bursts", Some(bursts)) => Self::Bursts {
                requests: bursts.read("requests"),
                at_once: burst_requests(bursts),
                idle_ns: bursts.read("idle"),
            },
            _ => val.is_no("arrival"),
        }
    }

    /// The arrival time of request `number` (from 0), whose time in the workload is `own`; `None` beyond
    /// [`Time::LIMIT`]. In a closed loop the result is always the start of the run; the request then arrives as soon as
    /// fewer requests than the queue depth are outstanding. Of a Poisson process the result is the mean; [`Due`] draws
    /// its times.
    #[inline]
    pub fn at(&self, number: u64, own: Time) -> Option<Time> {
        match *self {
            Arrival::Trace { time_scale: 1.0 } => Some(own).filter(|&at| at <= Time::LIMIT),
            Arrival::Trace { time_scale } => Time::from_ns_f64(own.ns() as f64 * time_scale),
            Arrival::QueueDepth(_) => Some(Time::START),
            Arrival::Iops(rate) => Time::from_ns_f64(number as f64 * (SECOND.ns() as f64 / rate)),
            Arrival::Poisson(rate) => Time::from_ns_f64((number + 1) as f64 * (SECOND.ns() as f64 / rate)),
            Arrival::Bursts { requests, at_once, idle_ns } => {
                let singly = |n: u64| n.saturating_sub(at_once - 1);
                // The burst of a round arrives `idle_ns` after the last request of the round before.
                let pauses = number / requests * singly(requests) + singly(number % requests);
                pauses.checked_mul(idle_ns.ns()).map(Time::from_ns).filter(|&at| at <= Time::LIMIT)
            }
        }
    }
}

/// The arrival times of the requests of one source, in their order.
#[derive(Clone, Debug)]
pub struct Due {
    /// The kind of arrivals.
    pub arrival: Arrival,
    /// Number of requests so far.
    number: u64,
    /// The random stream and the last arrival in nanoseconds; `None` without a Poisson process.
    drawn: Option<Box<(Stream, f64)>>,
}

impl Due {
    /// The arrivals of a source in a run with `seed`. The random stream of a Poisson process has the name `stream`.
    pub fn new(arrival: Arrival, seed: u64, stream: &str) -> Self {
        let is_drawn = matches!(arrival, Arrival::Poisson(_));
        Self { arrival, number: 0, drawn: is_drawn.then(|| Box::new((Stream::new(seed, stream), 0.0))) }
    }

    /// The arrival of the next request, whose time in the workload is `own`; `None` beyond [`Time::LIMIT`].
    #[inline]
    pub fn next(&mut self, own: Time) -> Option<Time> {
        let number = self.number;
        self.number += 1;
        match (&mut self.drawn, self.arrival) {
            (Some(drawn), Arrival::Poisson(rate)) => {
                let (stream, last) = &mut **drawn;
                // The sum is kept unrounded, so that rounding does not change the rate.
                *last -= libm::log(1.0 - stream.unit()) * (SECOND.ns() as f64 / rate);
                Time::from_ns_f64(*last)
            }
            _ => self.arrival.at(number, own),
        }
    }
}

/// Requests of a burst of `workload.arrival.bursts`.
pub fn burst_requests(bursts: &Val) -> u64 {
    (bursts.field("at_once").num() * bursts.field("requests").int() as f64).round() as u64
}

choices! {
    /// `workload.beyond`: what happens to a request beyond the drive's logical capacity.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Beyond {
        /// The run is refused with an error that names the first such request.
        Refuse = "refuse": "the run is refused with an error that names the first such request",
        /// The request's address is taken modulo the logical capacity, and the request is counted as wrapped.
        Wrap = "wrap": "the address is taken modulo the logical capacity; the request counts as wrapped",
    }
}

/// The rules over the keys of `[workload]`.
pub const RULES: &[Rule] = &[columns, time_unit, synthetic, bursts, warm_up, window, clients::rule];

/// The keys that exclude each other.
pub const EXCLUSIVE: &[&str] = &["workload.device", "workload.devices"];

/// Refuses a description of columns that cannot be read.
fn columns(check: &mut Check<'_>) -> Option<()> {
    let Val::Tag("columns", Some(columns)) = check.get("workload.format")? else { return None };
    if let Err(error) = Columns::parse(columns.text()) {
        check.error(&["workload.format"], error.message, error.remedy);
    }
    Some(())
}

/// Refuses a unit of time beside a format that fixes it.
fn time_unit(check: &mut Check<'_>) -> Option<()> {
    check.get("workload.time_unit")?;
    let format = check.tag("workload.format").filter(|format| !format.is_empty())?;
    if !Format::ALL.iter().any(|of| of.has_time_unit() && of.choice().name == format) {
        let message = match format {
            "columns" => "has no effect: the columns state the unit of time".to_string(),
            named => format!("has no effect: the format {named} fixes the unit of time"),
        };
        let takers: Vec<_> =
            Format::ALL.iter().filter(|of| of.has_time_unit()).map(|of| of.choice().name).collect();
        let remedy = format!("leave it out; it is for the formats {}", takers.join(" and "));
        check.error(&["workload.time_unit"], message, remedy);
    }
    Some(())
}

fn window(check: &mut Check<'_>) -> Option<()> {
    let Window { from, to } = Window::from_val(check.get("workload.window")?);
    if from >= to? {
        let remedy = "write a window such as { from = \"1h\", to = \"2h\" }";
        check.error(&["workload.window"], "the window ends before it begins", remedy);
    }
    Some(())
}

fn synthetic(check: &mut Check<'_>) -> Option<()> {
    let synthetic = check.get("workload.synthetic")?;
    if let Some((message, remedy)) = shares_beyond_1(synthetic) {
        check.error(&["workload.synthetic"], message, remedy);
    }
    if check.is("workload.arrival", "trace") {
        let message = "a synthetic workload has no arrival times of its own";
        let remedy = "write arrival = { queue_depth = 32 } or arrival = { iops = 20000 }";
        check.error(&["workload.arrival", "workload.synthetic"], message, remedy);
    }
    Some(())
}

/// Refuses a warm-up that is known to be as long as the workload: no request would be left for the results.
fn warm_up(check: &mut Check<'_>) -> Option<()> {
    let warm_up = check.int("workload.warm_up").filter(|&requests| requests > 0)?;
    let of_source = check
        .get("workload.synthetic")
        .map(|val| val.field("requests").int())
        .or_else(|| check.get("workload.requests").map(Val::int))
        .or_else(|| check.get("workload.clients").and_then(clients::requests))
        .map(|requests| requests.saturating_mul(check.int("workload.repeat").unwrap_or(1)));
    let most = check.int("workload.requests_max").filter(|&most| most > 0);
    let requests = of_source.into_iter().chain(most).min()?;
    if warm_up >= requests {
        let message = format!(
            "a warm-up of {warm_up} requests leaves none of the workload's {requests} for the results"
        );
        let remedy = format!("set workload.warm_up to less than {requests}, or play more requests");
        check.error(&["workload.warm_up"], message, remedy);
    }
    Some(())
}

fn bursts(check: &mut Check<'_>) -> Option<()> {
    let (message, remedy) = empty_burst(check.get("workload.arrival")?)?;
    check.error(&["workload.arrival"], message, remedy);
    Some(())
}
