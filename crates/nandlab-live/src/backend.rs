//! What the server asks of the drive behind it.
//!
//! A [`Backend`] takes requests and completes them later, in any order. The server calls it from one thread:
//!
//! 1. [`Backend::submit`] for each request that a client has sent;
//! 2. [`Backend::advance`] with the present time;
//! 3. [`Backend::completed`] until it returns `None`, and [`Backend::take`] for each read among them;
//! 4. [`Backend::next_event`], and then it waits for a client or for that time.

use nandlab_base::base::units::{Span, Time};
use serde_json::Value;

/// The operation of a [`Request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Read `len` bytes at `offset`.
    Read,
    /// Write the payload at `offset`.
    Write,
    /// Deallocate `len` bytes at `offset`; what they read as afterwards is the backend's choice.
    Trim,
    /// Make `len` bytes at `offset` read as zeros.
    WriteZeroes {
        /// The bytes must stay allocated: a later write to them must not fail for want of space.
        no_hole: bool,
        /// Fail at once with [`Errno::NotSupported`] unless this is quicker than a write of zeros.
        fast: bool,
    },
    /// Make every write durable that was completed before this request was submitted.
    Flush,
}

/// A request of a client. The range lies within the export, and its length is at least 1 except for a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The operation.
    pub op: Op,
    /// Address of the first byte; 0 for a flush.
    pub offset: u64,
    /// Length in bytes; 0 for a flush.
    pub len: u32,
    /// Force unit access: the data is durable when the request is completed.
    pub fua: bool,
    /// The placement identifier of the connection's writes; 0 unless the client has named it with the export.
    pub placement: u16,
}

/// An error as the protocol has it ("Error values" in the protocol document).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Errno {
    /// The export is read-only.
    NotPermitted = 1,
    /// The data cannot be read or written.
    Io = 5,
    /// The request is invalid.
    Invalid = 22,
    /// No space is left, or a write ends beyond the export.
    NoSpace = 28,
    /// The range is too long for a reply in one piece.
    Overflow = 75,
    /// A fast write of zeros is not possible.
    NotSupported = 95,
    /// The server is being shut down.
    ShuttingDown = 108,
}

/// Why a request has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    /// The error that the client sees.
    pub errno: Errno,
    /// The first byte that could not be read or written, if it is known; an address within the request.
    pub at: Option<u64>,
    /// A text for people, which clients with structured replies receive; at most 4,096 bytes, or it is cut.
    pub text: &'static str,
}

impl Failure {
    /// A failure of the whole request.
    pub const fn new(errno: Errno, text: &'static str) -> Self {
        Self { errno, at: None, text }
    }
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The id with which the request was submitted.
    pub id: u64,
    /// Whether the request succeeded.
    pub result: Result<(), Failure>,
    /// The time at which the reply is due, of a backend with [`Pace::Clock`].
    pub due: Option<Time>,
}

/// What the time of a backend follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Nothing: the backend has no times.
    None,
    /// The clock: the backend needs the present time, and replies are sent when they are due.
    Clock,
    /// The clients: the time of the backend stands still while clients are about to answer a completion. Only
    /// [`Backend::advance`] lets it pass.
    Clients,
}

/// An order from outside the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order<'a> {
    /// State and results so far.
    Stat,
    /// The SMART log.
    Smart,
    /// What the drive does at the moment.
    State,
    /// Power fails.
    Cut,
    /// Power returns.
    Restore,
    /// Power returns, and fails again this time after, if recovery takes longer.
    CutInRecovery(Span),
    /// A detection of the dirty budget begins.
    Detect,
    /// The logs of placement handles (NVMe FDP).
    Fdp,
    /// A placement identifier goes on in another reclaim unit.
    UpdateHandle(u16),
    /// The drive is saved with its data, and its recording begins anew.
    Save,
    /// A mark with this text goes to the recording of the session.
    Mark(&'a str),
}

/// A range of bytes with one allocation status (metadata context `base:allocation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// Length in bytes; at least 1.
    pub len: u64,
    /// The bytes are not allocated.
    pub hole: bool,
    /// The bytes read as zeros.
    pub zero: bool,
}

/// What the server sends to clients about the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Size of the drive in bytes.
    pub size: u64,
    /// The length and alignment in bytes that the drive likes best: a power of two of at least 512.
    pub preferred: u32,
    /// Whether [`Op::Trim`] does anything.
    pub trim: bool,
    /// Whether `fast` of [`Op::WriteZeroes`] is understood.
    pub fast_zero: bool,
}

/// The drive behind the server.
pub trait Backend {
    /// What clients are told about the drive. The answer stays the same while a server runs.
    fn features(&self) -> Features;

    /// What the time of the backend follows. Unless it is the clock, the times that [`Backend::submit`] and
    /// [`Backend::advance`] get may be those of earlier calls. The answer stays the same while a server runs.
    fn pace(&self) -> Pace {
        Pace::Clock
    }

    /// Takes a request that arrives at the time `now`, counted from the first call of `Server::run`. `payload` is the data of a write, of `request.len` bytes, and empty otherwise.
    /// `id` is unique among the requests that are not completed.
    ///
    /// # Errors
    /// When the backend refuses the request; it then has no completion.
    fn submit(&mut self, id: u64, now: Time, request: &Request, payload: &[u8]) -> Result<(), Failure>;

    /// Does the work that is due until `now`. The times that the backend gets never go back.
    fn advance(&mut self, now: Time) {
        let _ = now;
    }

    /// Lets requests complete for which no time has to pass. Called in place of [`Backend::advance`] while a client is waited
    /// for ([`Pace::Clients`]).
    fn settle(&mut self) {}

    /// The next completion. Each submitted request is completed once.
    fn completed(&mut self) -> Option<Completion>;

    /// Appends the data of the read `id` to `out`: as many bytes as the request asked for. The server calls it once for
    /// each read that succeeded, directly after [`Backend::completed`] has returned its completion.
    fn take(&mut self, id: u64, out: &mut Vec<u8>);

    /// The time at which [`Backend::advance`] has work next, if it has any without a further request. A time that has
    /// passed lets the server poll the clients without waiting and call `advance` again.
    fn next_event(&mut self) -> Option<Time> {
        None
    }

    /// Appends to `out` the allocation status of consecutive extents from `offset` on, at most `max` of them, which is at
    /// least 1. They need not cover the whole `len` bytes, and the last one may end beyond them, but within the export.
    /// The server calls this with a range of at least 1 byte within the export.
    fn extents(&mut self, offset: u64, len: u64, max: usize, out: &mut Vec<Extent>) {
        let _ = (offset, max);
        out.push(Extent { len, hole: false, zero: false });
    }

    /// Whether the backend is without power: it takes no requests.
    fn is_off(&self) -> bool {
        false
    }

    /// Whether power has failed since the last call. Requests that are not completed then have no completion any more.
    fn take_power_loss(&mut self) -> bool {
        false
    }

    /// Whether the backend takes no requests any more, for a reason of its own: the server then ends.
    fn has_ended(&self) -> bool {
        false
    }

    /// Takes a line that a program has acknowledged, at the time `now`.
    fn acknowledged(&mut self, now: Time, line: &[u8]) {
        let _ = (now, line);
    }

    /// Fills what a window on the drive shows, with what has happened since the last call.
    fn snapshot(&mut self, snapshot: &mut crate::snapshot::Snapshot) {
        let _ = snapshot;
    }

    /// Carries out an order, at the time `now`.
    ///
    /// # Errors
    /// When the order is not possible now; the text says why.
    fn order(&mut self, now: Time, order: Order<'_>) -> Result<Value, String> {
        let _ = (now, order);
        Err("this drive takes no orders".to_owned())
    }
}
