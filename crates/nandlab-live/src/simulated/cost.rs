//! What a start would cost: the processor time that the drive took for what it would have to do again.

use nandlab_base::base::units::Span;
use rustix::time::ClockId;

/// Bytes of a recording that are read in a nanosecond: 1 GB/s. An assumption for the disk; what it changes is only when a
/// checkpoint is written.
const READ_BYTES_PER_NS: u64 = 1;

/// The processor time of this thread so far.
pub(super) fn processor_time() -> Span {
    let time = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
    Span::from_ns(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// The time of this machine so far, for what clients wait for.
pub(super) fn machine_time() -> Span {
    let time = rustix::time::clock_gettime(ClockId::Monotonic);
    Span::from_ns(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// The time of reading a recording.
pub(super) fn reading(bytes: u64) -> Span {
    Span::from_ns(bytes / READ_BYTES_PER_NS)
}
