//! `workload.clients`: several sources of requests at once, each a synthetic workload with arrivals of its own.
//!
//! Client i has the queue i in the tag of its requests, by which the drive keeps results and the controller takes turns.
//! Its random numbers come from streams of its own, named after i; client 0 has the streams of `workload.synthetic`, so
//! one client makes the requests of the synthetic workload with the same settings, and a client that is added at the end of
//! the list changes no request of the others.
//!
//! When a client submits its requests:
//!
//! - A closed loop (`arrival = { queue_depth = N }`) keeps N requests outstanding. After the completion of a request it
//!   waits for `think_time` before it submits the next one in place of it.
//! - An open loop submits each request when it is due. With `outstanding = N` a request that is due while N requests of
//!   the client are outstanding waits at the client, until one of them completes. Requests that wait are not stored: the
//!   client knows when the next one was due, and draws the request when it reads ahead.
//!
//! The latency of a request that has waited begins when it was due, or when it was submitted (`latency_from`).

use crate::base::units::Span;
use crate::spec::{
    ANY_TIME, COUNT, Check, Choices, FromVal, SHARE, SHARE_ABOVE_0, SOME_TIME, Val, ValueKind, choices, int,
    param, params, plain, show_num, show_size,
};
use crate::workload::{
    ADDRESS, ALIGN, Address, Arrival, COUNT_OF_REQUESTS, OF_CLIENT, READ_FRACTION, SIZES, SyntheticSpec,
    TRIM_FRACTION, empty_burst, shares_beyond_1, sizes,
};

/// The largest number of clients.
pub const CLIENTS_MAX: usize = 256;

params! {
    /// A client of `workload.clients`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ClientSpec {
        /// The name in results, unique among the clients.
        pub name: String =
            param("name", ValueKind::Text, "", "the client's name in results") => |val| val.text().to_string(),
        /// Number of requests; flushes do not count.
        pub requests: u64 = COUNT_OF_REQUESTS,
        /// Share of reads.
        pub read_fraction: f64 = READ_FRACTION,
        /// Share of all requests that are TRIMs.
        pub trim_fraction: f64 = TRIM_FRACTION,
        /// Request sizes in bytes and their weights.
        pub sizes: Vec<(u64, f64)> = SIZES => sizes,
        /// Distribution of addresses within the span.
        pub address: Address = param("address", ADDRESS, "\"uniform\"", "distribution of addresses within the span"),
        /// The part of the logical space that the client addresses.
        pub span: ClientSpan = param("span", SPAN, "1.0", "the part of the logical space that is addressed: its first \
            share, or { from, to } as shares or sizes"),
        /// Addresses are multiples of this many bytes.
        pub align_bytes: u64 = ALIGN,
        /// A flush follows each time after this many writes; 0: never.
        pub flush_every: u64 = param("flush_every", COUNT, "0", "a flush follows after this many writes; 0: never"),
        /// When requests are due: a closed or an open loop.
        pub arrival: Arrival = param("arrival", OF_CLIENT, "{ queue_depth = 32 }", "when requests are due")
            => |val| Arrival::new(val, || 1.0),
        /// Time of the first arrival; an open loop counts from it.
        pub start: Span = param("start", ANY_TIME, "\"0ns\"", "time at which the client begins"),
        /// The client submits nothing after this time from its start; `None`: it ends with its last request.
        pub duration: Option<Span> = param("duration", DURATION, "\"unlimited\"", "time from its start after which the \
            client submits nothing") => |val| (val.tag() != "unlimited").then(|| val.span()),
        /// Of a closed loop: the time from a completion to the next request in its place.
        pub think_time: Span = param("think_time", ANY_TIME, "\"0ns\"", "of a closed loop: time from a completion to \
            the next request"),
        /// Of an open loop: the most requests that are outstanding; `None`: no limit.
        pub outstanding: Option<u32> = param("outstanding", OUTSTANDING, "\"unlimited\"", "of an open loop: at most so \
            many requests are outstanding; later ones wait at the client")
            => |val| (val.tag() != "unlimited").then(|| u32::from_val(val)),
        /// Of an open loop with `outstanding`: where the latency of a request begins.
        pub latency_from: LatencyFrom = param("latency_from", ValueKind::Slot(LatencyFrom::CHOICES), "\"due\"",
            "of requests that wait at the client: where their latency begins"),
        /// The placement in the tag of the requests.
        pub placement: u16 = param("placement", int(0, u16::MAX as u64), "0", "placement of the client's writes")
            => |val| val.int() as u16,
    }
}

choices! {
    /// `latency_from` of a client: where the latency of a request begins that waits at the client.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LatencyFrom {
        /// When the request was due.
        Due = "due": "when the request was due: the wait at the client is part of the latency",
        /// When the client submits the request.
        Submission = "submission": "when the client submits the request, as fio measures it",
    }
}

const OUTSTANDING: ValueKind = ValueKind::Either(&[
    int(1, 65_536),
    ValueKind::Slot(&[plain("unlimited", "no request waits at the client")]),
]);

const DURATION: ValueKind =
    ValueKind::Either(&[SOME_TIME, ValueKind::Slot(&[plain("unlimited", "until its last request")])]);

/// An end of a client's span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// A share of the logical space.
    Share(f64),
    /// A number of bytes.
    Bytes(u64),
}

impl Bound {
    /// The bytes of a drive of `logical_bytes` up to here, rounded down.
    pub fn bytes(self, logical_bytes: u64) -> u64 {
        match self {
            Self::Share(share) => libm::floor(logical_bytes as f64 * share) as u64,
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The bound as the spec has it.
    pub fn show(self) -> String {
        match self {
            Self::Share(share) => show_num(share),
            Self::Bytes(bytes) => show_size(bytes),
        }
    }
}

impl FromVal for Bound {
    fn from_val(val: &Val) -> Self {
        match val {
            Val::Num(share) => Self::Share(*share),
            Val::Size(bytes) => Self::Bytes(*bytes),
            _ => val.is_no("end of a span"),
        }
    }
}

/// The part of the logical space that a client addresses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientSpan {
    /// The beginning.
    pub from: Bound,
    /// The end, which does not belong to the span.
    pub to: Bound,
}

impl FromVal for ClientSpan {
    fn from_val(val: &Val) -> Self {
        match val {
            Val::Num(share) => Self { from: Bound::Share(0.0), to: Bound::Share(*share) },
            Val::Table(_) => Self { from: val.read("from"), to: val.read("to") },
            _ => val.is_no("span"),
        }
    }
}

impl ClientSpan {
    /// The first byte and the number of bytes of the span on a drive of `logical_bytes`. Both are multiples of `align`:
    /// the span is the largest that lies within its ends.
    pub fn bytes(self, logical_bytes: u64, align: u64) -> (u64, u64) {
        let begin = self.from.bytes(logical_bytes).next_multiple_of(align);
        let end = self.to.bytes(logical_bytes).min(logical_bytes) / align * align;
        (begin, end.saturating_sub(begin))
    }
}

/// An end of a span: a share of the logical space, or a size.
pub const BOUND: ValueKind = ValueKind::Either(&[SHARE, ValueKind::Size { min: 0, max: 1 << 62, step: 512 }]);

const SPAN: ValueKind = ValueKind::Either(&[
    SHARE_ABOVE_0,
    ValueKind::Table(&[
        param("from", BOUND, "0.0", "beginning of the span, as a share of the logical space or a size"),
        param("to", BOUND, "1.0", "end of the span, as a share of the logical space or a size"),
    ]),
]);

impl ClientSpec {
    /// The synthetic workload of the client, whose span begins where that of the client does.
    pub fn synthetic(&self) -> SyntheticSpec {
        SyntheticSpec {
            requests: self.requests,
            read_fraction: self.read_fraction,
            trim_fraction: self.trim_fraction,
            sizes: self.sizes.clone(),
            address: self.address,
            span: 1.0,
            align_bytes: self.align_bytes,
        }
    }

    /// The most requests of the client that are outstanding; `u32::MAX` without a limit.
    pub fn outstanding_max(&self) -> u32 {
        match self.arrival {
            Arrival::QueueDepth(depth) => depth,
            _ => self.outstanding.unwrap_or(u32::MAX),
        }
    }
}

/// The name of the random stream `of` of client `client`.
pub fn stream_name(client: usize, of: &str) -> String {
    match (client, of) {
        (0, "arrival") => "workload.arrival".to_owned(),
        (0, _) => format!("workload.synthetic.{of}"),
        (client, _) => format!("workload.clients[{client}].{of}"),
    }
}

/// The number of requests of all clients; `None` if it depends on their durations.
pub(crate) fn requests(clients: &Val) -> Option<u64> {
    let of = |client: &Val| {
        (client.field("duration").tag() == "unlimited").then(|| client.field("requests").int())
    };
    clients.list().iter().map(of).try_fold(0u64, |sum, requests| Some(sum.saturating_add(requests?)))
}

/// The rules within `workload.clients`.
pub(crate) fn rule(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "workload.clients";
    let clients = check.get(KEY)?.list();
    let repeats = check.int("workload.repeat").is_some_and(|repeat| repeat > 1);
    let mut names = std::collections::BTreeMap::new();
    for (i, client) in clients.iter().enumerate() {
        let name = client.field("name").text();
        if let Some(first) = names.insert(name, i) {
            let message = format!("\"{name}\" is also the name of client {first}");
            check.error_in_list(KEY, i, "name", message, "give each client a name of its own");
        }
        if name.contains('.') {
            let message =
                format!("\"{name}\" contains a point, which separates the parts of a result's path");
            check.error_in_list(KEY, i, "name", message, format!("write \"{}\"", name.replace('.', "-")));
        }
        if let Some((message, remedy)) = shares_beyond_1(client) {
            check.error_in_list(KEY, i, "trim_fraction", message, remedy);
        }
        arrival(check, i, client);
        let span = ClientSpan::from_val(client.field("span"));
        let is_empty = match (span.from, span.to) {
            (Bound::Share(from), Bound::Share(to)) => from >= to,
            (Bound::Bytes(from), Bound::Bytes(to)) => from >= to,
            // The capacity decides.
            _ => false,
        };
        if is_empty {
            let message = format!("the span from {} to {} is empty", span.from.show(), span.to.show());
            check.error_in_list(KEY, i, "span", message, "write a span such as { from = 0.25, to = 0.5 }");
        }
        if repeats && client.field("duration").tag() != "unlimited" {
            let message = "a client with a duration is not repeated, but workload.repeat is above 1";
            check.error_in_list(
                KEY,
                i,
                "duration",
                message,
                "set workload.repeat = 1, or a number of requests",
            );
        }
    }
    Some(())
}

/// The rules on a client's arrival.
fn arrival(check: &mut Check<'_>, i: usize, client: &Val) {
    const KEY: &str = "workload.clients";
    let arrival = client.field("arrival");
    let is_closed = arrival.tag() == "queue_depth";
    let is_limited = client.field("outstanding").tag() != "unlimited";
    if let Some((message, remedy)) = empty_burst(arrival) {
        check.error_in_list(KEY, i, "arrival", message, remedy);
    }
    if !is_closed && client.field("think_time").int() > 0 {
        let message = "has no effect on an open loop, whose requests are due at their own times";
        let remedy = "leave think_time out, or write arrival = { queue_depth = 1 }";
        check.error_in_list(KEY, i, "think_time", message, remedy);
    }
    if is_closed && is_limited {
        let message =
            "has no effect on a closed loop, whose queue_depth is the number of outstanding requests";
        let remedy = "leave outstanding out, or write arrival = { iops = 20000 }";
        check.error_in_list(KEY, i, "outstanding", message, remedy);
    }
    if client.field("latency_from").tag() == "submission" && (is_closed || !is_limited) {
        let message = "\"submission\" has no effect on a client whose requests never wait at it";
        let remedy = "leave latency_from out, or limit an open loop with outstanding = 32";
        check.error_in_list(KEY, i, "latency_from", message, remedy);
    }
}
