//! The pages of a job that wait for a copyback: a copyback fills a programming unit, which may need several pages of
//! every plane of a die.

use crate::base::geometry::{Geometry, UnitId};
use crate::flash::Shape;
use std::collections::VecDeque;
use std::ops::Range;

/// The pages of a victim that are going to be copied back, by their first units.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    /// By plane of the superblock.
    planes: Box<[VecDeque<UnitId>]>,
    /// The pages of the next copyback, in the order of the programming unit.
    sources: Vec<UnitId>,
}

impl Waiting {
    pub(super) fn new(geometry: &Geometry) -> Self {
        let planes = vec![VecDeque::new(); geometry.blocks_per_superblock() as usize];
        Self { planes: planes.into(), sources: Vec::new() }
    }

    pub(super) fn push(&mut self, geometry: &Geometry, page: UnitId) {
        self.planes[Self::plane(geometry, page)].push_back(page);
    }

    fn plane(geometry: &Geometry, unit: UnitId) -> usize {
        geometry.member(geometry.split(unit).1) as usize
    }

    /// Takes the pages that fill the programming unit that begins with `next`, in a superblock of this shape; `None` if a
    /// plane has too few.
    pub(super) fn take(&mut self, geometry: &Geometry, shape: &Shape, next: UnitId) -> Option<&[UnitId]> {
        let pages = shape.pages_per_program as usize;
        // A programming unit begins in the first plane of its die.
        let first = Self::plane(geometry, next);
        let count = if pages == 1 { 1 } else { geometry.planes_per_lane as usize };
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
    pub(super) fn give_back(&mut self, geometry: &Geometry, refused: UnitId) {
        while let Some(page) = self.sources.pop() {
            if page != refused {
                self.planes[Self::plane(geometry, page)].push_front(page);
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

/// The numbers in its superblock of the units of the page that begins with `first`.
pub(super) fn numbers(geometry: &Geometry, first: UnitId) -> Range<u32> {
    let (_, number) = geometry.split(first);
    number..number + geometry.units_per_page
}
