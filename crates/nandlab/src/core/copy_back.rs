//! The verb that copies flash pages back.

use super::{Core, Queued};
use crate::base::geometry::{PlaneId, Ppn};
use crate::base::units::Span;
use crate::ftl::{AllocatedPage, WriteStream};
use crate::probe::Probe;
use crate::sched::{Cause, Class, FlashOp, Owner, Slot};

/// A copyback, which fills the next programming unit of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyBack<'a> {
    pub(crate) plane: PlaneId,
    pub(crate) stream: WriteStream,
    /// The flash pages that are copied, by their first pages. Each is in the flash plane of its place in the programming
    /// unit, in whose order they are.
    pub(crate) sources: &'a [Ppn],
    pub(crate) cause: Cause,
}

/// The error that the plane has no page left for a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoRoom;

impl<P: Probe> Core<P> {
    /// Queues a copyback. The map changes when the copyback has ended. A flash page is copied as a whole, with its pages
    /// that are not valid; the owner of the others is the job of the plane.
    ///
    /// # Errors
    /// [`NoRoom`] when the plane has no page left for the stream; nothing has changed then.
    pub(crate) fn copy_back(&mut self, copyback: CopyBack<'_>) -> Result<Queued, NoRoom> {
        let CopyBack { plane, stream, sources, cause } = copyback;
        let mut chain: Option<(Slot, Slot, Queued)> = None;
        for &first in sources {
            for source in self.geometry.units(first) {
                let AllocatedPage { ppn, opened, skips } = match (self.allocate(plane, stream), &chain) {
                    (Some(page), _) => page,
                    (None, None) => return Err(NoRoom),
                    (None, Some(_)) => unreachable!("a block has a whole number of programming units"),
                };
                let lpn = self.array.lpn(source);
                self.array.stage(ppn, lpn, self.array.stamp(source));
                let is_valid = self.ftl.is_valid(&self.geometry, source);
                let owner = if is_valid { Owner::Job(plane) } else { Owner::Padding };
                let mut transaction =
                    self.transaction(FlashOp::Copyback, ppn, lpn, owner, cause, Class::Background);
                (transaction.skips, transaction.replaces) = (skips, Some(source));
                transaction.goes_along = chain.is_some();
                debug_assert!(
                    self.shares_plane(source, ppn),
                    "{} is copied back to another plane",
                    self.geometry.show(source)
                );
                self.pin(source);
                let slot = self.pool.insert(transaction);
                chain = Some(match chain {
                    None => (slot, slot, Queued { ppn, opened }),
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

    /// Whether two pages are in the same flash plane.
    fn shares_plane(&self, a: Ppn, b: Ppn) -> bool {
        let plane = |page: Ppn| {
            let (block, page) = self.geometry.split(page);
            (self.geometry.plane_of(block), self.geometry.member(page))
        };
        plane(a) == plane(b)
    }

    /// The time of sensing these flash pages: one array operation senses those of the same row in several planes. The
    /// pages of a wordline are sensed one after another.
    fn sense_ns(&self, sources: &[Ppn]) -> Span {
        let row = |source: Ppn| self.geometry.row(self.geometry.split(source).1);
        let mut sum = Span::ZERO;
        for together in sources.chunks(self.geometry.planes_per_block as usize) {
            for (index, &source) in together.iter().enumerate() {
                if !together[..index].iter().any(|&other| row(other) == row(source)) {
                    sum += self.device.timing().copied_ns(source);
                }
            }
        }
        sum
    }
}
