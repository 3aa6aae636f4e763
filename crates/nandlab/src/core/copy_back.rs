//! The verb that copies pages back.

use super::{Core, Queued};
use crate::base::geometry::{LaneId, UnitId};
use crate::base::units::Span;
use crate::ftl::{AllocatedUnit, StreamId};
use crate::probe::Probe;
use crate::sched::{Cause, Class, FlashOp, Owner, Slot, Transaction};

/// A copyback, which fills the next programming unit of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyBack<'a> {
    pub(crate) lane: LaneId,
    pub(crate) stream: StreamId,
    /// The pages that are copied, by their first units. Each is in the plane of its place in the programming unit, in
    /// whose order they are.
    pub(crate) sources: &'a [UnitId],
    pub(crate) cause: Cause,
}

/// The error that the lane has no unit left for a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoRoom;

impl<P: Probe> Core<P> {
    /// Queues a copyback. The map changes when the copyback has ended. A page is copied as a whole, with its units that
    /// are not valid; the owner of the others is the job of the lane.
    ///
    /// # Errors
    /// [`NoRoom`] when the lane has no unit left for the stream; nothing has changed then.
    pub(crate) fn copy_back(&mut self, copyback: CopyBack<'_>) -> Result<Queued, NoRoom> {
        let CopyBack { lane, stream, sources, cause } = copyback;
        let mut chain: Option<(Slot, Slot, Queued)> = None;
        for &first in sources {
            for source in self.geometry.units_of_page(first) {
                let AllocatedUnit { unit, opened, skips } = match (self.allocate(lane, stream), &chain) {
                    (Some(allocated), _) => allocated,
                    (None, None) => return Err(NoRoom),
                    (None, Some(_)) => unreachable!("a superblock has a whole number of programming units"),
                };
                let lpn = self.array.lpn(source);
                self.array.stage(unit, lpn, self.array.stamp(source));
                self.array.set_handle(unit, self.array.handle(source));
                let is_valid = self.ftl.is_valid(source);
                let owner = if is_valid { Owner::Job(lane) } else { Owner::Padding };
                let mut transaction =
                    self.transaction(FlashOp::Copyback, unit, lpn, owner, cause, Class::Background);
                (transaction.skips, transaction.replaces) = (skips, Some(source));
                transaction.goes_along = chain.is_some();
                debug_assert!(
                    self.shares_plane(source, unit),
                    "{} is copied back to another plane",
                    self.geometry.show(source)
                );
                self.pin(source);
                let slot = self.pool.insert(transaction);
                chain = Some(match chain {
                    None => (slot, slot, Queued { unit, opened }),
                    Some((lead, last, queued)) => {
                        self.pool[last].more = Some(slot);
                        (lead, slot, queued)
                    }
                });
            }
        }
        let (lead, _, queued) = chain.expect("a copyback has a source");
        self.pool[lead].extent = u32::try_from(self.sense_ns(sources).ns()).unwrap_or(u32::MAX);
        self.enqueue(lead);
        Ok(queued)
    }

    /// Ends the copyback of a unit in flash: counts the sensing of its page, and takes over its errors. If the source
    /// still has the newest data of its LPN, maps the LPN to the copy and returns `true`. If the host has written the
    /// LPN meanwhile, or had done so before, the copy is invalid.
    pub(crate) fn end_copyback(&mut self, done: &Transaction, source: UnitId) -> bool {
        if self.geometry.first_of_page(done.unit) == done.unit {
            let (from, index) = self.geometry.split(source);
            self.count_sensed(from, index);
        }
        self.take_over_errors(source, done.unit);
        let is_valid = done.owner != Owner::Padding && self.is_newest(done.lpn, source);
        if is_valid {
            self.ftl.remap(&mut self.array, done.lpn, done.unit);
        }
        is_valid
    }

    /// Whether two units are in the same plane.
    fn shares_plane(&self, a: UnitId, b: UnitId) -> bool {
        let plane = |unit: UnitId| {
            let (superblock, index) = self.geometry.split(unit);
            (self.geometry.lane_of(superblock), self.geometry.member(index))
        };
        plane(a) == plane(b)
    }

    /// The time of sensing these pages: one array operation senses those of the same row in several planes. The pages
    /// of a wordline are sensed one after another.
    fn sense_ns(&self, sources: &[UnitId]) -> Span {
        let row = |source: UnitId| self.geometry.row(self.geometry.split(source).1);
        let mut sum = Span::ZERO;
        for together in sources.chunks(self.geometry.planes_per_lane as usize) {
            for (index, &source) in together.iter().enumerate() {
                if !together[..index].iter().any(|&other| row(other) == row(source)) {
                    let (superblock, index) = self.geometry.split(source);
                    sum += self.array.shape(superblock).read_ns(index);
                }
            }
        }
        sum
    }
}
