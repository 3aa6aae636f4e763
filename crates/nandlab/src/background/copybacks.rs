//! The flash pages of a job that wait for a copyback: a copyback fills a programming unit, which may need several flash
//! pages of every flash plane of a die.

use crate::base::geometry::{Geometry, Ppn};
use std::collections::VecDeque;
use std::ops::Range;

/// The flash pages of a victim that are going to be copied back, by their first pages.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    /// By flash plane of the block.
    planes: Box<[VecDeque<Ppn>]>,
    /// The flash pages of the next copyback, in the order of the programming unit.
    sources: Vec<Ppn>,
}

impl Waiting {
    pub(super) fn new(geometry: &Geometry) -> Self {
        let planes = vec![VecDeque::new(); geometry.flash_blocks_per_block() as usize];
        Self { planes: planes.into(), sources: Vec::new() }
    }

    pub(super) fn push(&mut self, geometry: &Geometry, flash_page: Ppn) {
        self.planes[Self::plane(geometry, flash_page)].push_back(flash_page);
    }

    fn plane(geometry: &Geometry, page: Ppn) -> usize {
        geometry.member(geometry.split(page).1) as usize
    }

    /// Takes the flash pages that fill the programming unit that begins with `next`; `None` if a plane has too few.
    pub(super) fn take(&mut self, geometry: &Geometry, next: Ppn) -> Option<&[Ppn]> {
        let pages = geometry.flash_pages_per_program as usize;
        // A programming unit begins in the first plane of its die.
        let first = Self::plane(geometry, next);
        let count = if pages == 1 { 1 } else { geometry.planes_per_block as usize };
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

    /// Takes back the flash pages that [`Waiting::take`] has returned, except the one that begins with `refused`.
    pub(super) fn give_back(&mut self, geometry: &Geometry, refused: Ppn) {
        while let Some(flash_page) = self.sources.pop() {
            if flash_page != refused {
                self.planes[Self::plane(geometry, flash_page)].push_front(flash_page);
            }
        }
    }

    /// Takes a flash page that no copyback has room for.
    pub(super) fn pop(&mut self) -> Option<Ppn> {
        self.planes.iter_mut().find_map(VecDeque::pop_front)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.planes.iter().all(VecDeque::is_empty)
    }

    /// Drops all flash pages at power loss.
    pub(super) fn clear(&mut self) {
        self.planes.iter_mut().for_each(VecDeque::clear);
    }
}

/// The numbers in its block of the pages of the flash page that begins with `first`.
pub(super) fn numbers(geometry: &Geometry, first: Ppn) -> Range<u32> {
    let (_, number) = geometry.split(first);
    number..number + geometry.units_per_page
}
