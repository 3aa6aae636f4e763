//! Requests of clients that are several requests of the drive, one after another.

use nandlab::host::{Request, Tag};
use nandlab_base::base::units::Time;

use crate::backend::{Failure, Request as Asked};

/// Zeros that are written at a time, in bytes.
const ZEROS_MAX: u64 = 4 << 20;

/// What a [`Job`] does with its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Deallocates whole units and writes zeros to the bytes before and after them.
    ZerosWithHoles,
    /// Writes zeros.
    ZerosWithoutHoles,
    /// Deallocates whole units.
    Trim,
}

/// A request of a client that is several requests of the drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    /// The id that the server gave the request.
    pub(super) id: u64,
    kind: Kind,
    at: u64,
    end: u64,
    /// The placement of its writes.
    placement: u16,
    /// Whether the end of the request is durable.
    pub(super) fua: bool,
    is_flushed: bool,
    /// The simulated time at which the last step has ended, or the request has arrived.
    pub(super) due: Time,
    pub(super) failure: Option<Failure>,
}

impl Job {
    pub(super) fn new(id: u64, kind: Kind, of: &Asked, due: Time) -> Self {
        let (at, end) = (of.offset, of.offset + u64::from(of.len));
        let (placement, fua) = (of.placement, of.fua);
        Self { id, kind, at, end, placement, fua, is_flushed: false, due, failure: None }
    }

    /// The next request of the drive; `None` when the job is done.
    pub(super) fn next(&mut self, unit_bytes: u64) -> Option<Request> {
        if self.failure.is_some() {
            return None;
        }
        if self.at < self.end {
            let first = self.at.next_multiple_of(unit_bytes);
            let last = self.end / unit_bytes * unit_bytes;
            let (at, end) = (self.at, self.end);
            let write = |len| Request::write(at, len).with_tag(Tag { queue: 0, placement: self.placement });
            let (request, next) = match self.kind {
                Kind::Trim => (Request::trim(at, end - at), end),
                Kind::ZerosWithHoles if at == first && at < last => (Request::trim(at, last - at), last),
                Kind::ZerosWithHoles => {
                    let until = if at < first { first.min(end) } else { end };
                    (write(until - at), until)
                }
                Kind::ZerosWithoutHoles => {
                    let until = (at / ZEROS_MAX * ZEROS_MAX + ZEROS_MAX).min(end);
                    (write(until - at), until)
                }
            };
            self.at = next;
            return Some(request);
        }
        let flushes = self.fua && !std::mem::replace(&mut self.is_flushed, true);
        flushes.then(Request::flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandlab::host::Op;

    fn steps(kind: Kind, offset: u64, len: u64, fua: bool) -> Vec<(Op, u64, u64)> {
        let of = Asked { op: crate::backend::Op::Trim, offset, len: len as u32, fua, placement: 3 };
        let mut job = Job::new(0, kind, &of, Time::START);
        let steps = std::iter::from_fn(|| job.next(4096));
        let steps =
            steps.inspect(|step| assert_eq!(step.tag.placement, if step.op == Op::Write { 3 } else { 0 }));
        steps.map(|step| (step.op, step.offset, step.len)).collect()
    }

    #[test]
    fn zeros_are_holes_where_they_cover_whole_units() {
        use Op::{Flush, Trim, Write};
        let holes = Kind::ZerosWithHoles;
        assert_eq!(steps(holes, 8192, 8192, false), [(Trim, 8192, 8192)]);
        assert_eq!(
            steps(holes, 100, 9000, true),
            [(Write, 100, 3996), (Trim, 4096, 4096), (Write, 8192, 908), (Flush, 0, 0)]
        );
        assert_eq!(steps(holes, 100, 200, false), [(Write, 100, 200)]);
        assert_eq!(steps(holes, 100, 3996, false), [(Write, 100, 3996)]);
        assert_eq!(steps(holes, 4096, 10, false), [(Write, 4096, 10)]);
        assert_eq!(steps(holes, 4000, 200, false), [(Write, 4000, 96), (Write, 4096, 104)]);
        assert_eq!(steps(Kind::Trim, 5, 9000, true), [(Trim, 5, 9000), (Flush, 0, 0)]);
        assert_eq!(
            steps(Kind::ZerosWithoutHoles, ZEROS_MAX - 1, ZEROS_MAX + 2, false),
            [(Write, ZEROS_MAX - 1, 1), (Write, ZEROS_MAX, ZEROS_MAX), (Write, 2 * ZEROS_MAX, 1)]
        );
    }
}
