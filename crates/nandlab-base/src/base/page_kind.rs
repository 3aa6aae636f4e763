//! The kinds of pages, by the bit of the cells that a page holds.

use super::units::Span;

/// The kind of a page: which bit of its cells it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PageKind {
    /// The only page of an SLC cell.
    Slc,
    /// Least significant bit: programmed first, fast.
    Lsb,
    /// Centre bit of a TLC cell.
    Csb,
    /// Most significant bit: programmed last, slow.
    Msb,
}

/// A time of an operation on a page, for each page kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindTimes {
    /// SLC and LSB pages.
    pub lsb_ns: Span,
    /// CSB pages.
    pub csb_ns: Span,
    /// MSB pages.
    pub msb_ns: Span,
}

impl KindTimes {
    /// The same time for every page.
    pub fn uniform(ns: Span) -> Self {
        Self { lsb_ns: ns, csb_ns: ns, msb_ns: ns }
    }

    /// Times of LSB and MSB pages, and their mean for CSB pages.
    pub fn new(lsb_ns: Span, msb_ns: Span) -> Self {
        Self { lsb_ns, csb_ns: Span::from_ns(lsb_ns.ns().midpoint(msb_ns.ns())), msb_ns }
    }

    /// The time of a page of this kind.
    pub fn of(&self, kind: PageKind) -> Span {
        match kind {
            PageKind::Slc | PageKind::Lsb => self.lsb_ns,
            PageKind::Csb => self.csb_ns,
            PageKind::Msb => self.msb_ns,
        }
    }
}
