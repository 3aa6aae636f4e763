//! The pages of a job that wait for a copyback: a copyback fills a programming unit, which may need several pages of
//! every plane of a die.

use crate::base::geometry::UnitId;
use crate::base::state::state;
use crate::core::Core;
use crate::probe::Probe;
use std::collections::VecDeque;

/// The pages of a victim that are going to be copied back, by their first units.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    /// By plane of the superblock.
    planes: Box<[VecDeque<UnitId>]>,
    /// The pages of the next copyback, in the order of the programming unit.
    sources: Vec<UnitId>,
}

impl Waiting {
    pub(super) fn new<P: Probe>(core: &Core<P>) -> Self {
        let planes = vec![VecDeque::new(); core.geometry().blocks_per_superblock() as usize];
        Self { planes: planes.into(), sources: Vec::new() }
    }

    pub(super) fn push<P: Probe>(&mut self, core: &Core<P>, page: UnitId) {
        self.planes[Self::plane(core, page)].push_back(page);
    }

    fn plane<P: Probe>(core: &Core<P>, unit: UnitId) -> usize {
        core.geometry().member(core.geometry().split(unit).1) as usize
    }

    /// Takes the pages that fill the programming unit that begins with `next`, `None` if a plane has too few.
    pub(super) fn take<P: Probe>(&mut self, core: &Core<P>, next: UnitId) -> Option<&[UnitId]> {
        let pages = core.shape(core.geometry().superblock_of(next)).pages_per_program as usize;
        // A programming unit begins in the first plane of its die.
        let first = Self::plane(core, next);
        let count = if pages == 1 { 1 } else { core.geometry().planes_per_lane as usize };
        let planes = &mut self.planes[first..first + count];
        let rows = pages / planes.len();
        if planes.iter().any(|plane| plane.len() < rows) {
            return None;
        }
        self.sources.clear();
        for _ in 0..rows {
            self.sources.extend(planes.iter_mut().filter_map(VecDeque::pop_front));
        }
        Some(&self.sources)
    }

    /// Takes back the pages that [`Waiting::take`] has returned, except the one that begins with `refused`.
    pub(super) fn give_back<P: Probe>(&mut self, core: &Core<P>, refused: UnitId) {
        while let Some(page) = self.sources.pop() {
            if page != refused {
                self.planes[Self::plane(core, page)].push_front(page);
            }
        }
    }

    /// Takes a page that no copyback has room for.
    pub(super) fn pop(&mut self) -> Option<UnitId> {
        self.planes.iter_mut().find_map(VecDeque::pop_front)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.planes.iter().all(VecDeque::is_empty)
    }

    /// Drops all pages at power loss.
    pub(super) fn clear(&mut self) {
        self.planes.iter_mut().for_each(VecDeque::clear);
    }
}

state! { Waiting { planes, sources } }
