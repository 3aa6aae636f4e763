//! Quantities whose unit matters, as types: time in nanoseconds, sizes in bytes.

/// Simulated time: nanoseconds since the drive was switched on.
///
/// A plain `u64` alias: every name that holds one ends in `_ns` or is typed `Time`.
/// The range is 584 years.
pub type Time = u64;

/// A length of simulated time in nanoseconds.
pub type Span = u64;

/// One microsecond in nanoseconds.
pub const US: Span = 1_000;
/// One millisecond in nanoseconds.
pub const MS: Span = 1_000_000;
/// One second in nanoseconds.
pub const SECOND: Span = 1_000_000_000;
/// One day in nanoseconds.
pub const DAY: Span = 86_400 * SECOND;

/// One KiB in bytes.
pub const KIB: u64 = 1 << 10;
/// One MiB in bytes.
pub const MIB: u64 = 1 << 20;
/// One GiB in bytes.
pub const GIB: u64 = 1 << 30;
/// The unit of block addresses in traces, in bytes.
pub const SECTOR: u64 = 512;

/// The time to move `bytes` at `ns_per_byte`, rounded up once per transfer.
pub fn transfer_ns(bytes: u64, ns_per_byte: f64) -> Span {
    libm::ceil(bytes as f64 * ns_per_byte) as Span
}
