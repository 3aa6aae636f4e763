//! Partial refresh: what of a page is moved, where it is put, and how it is found again.
//!
//! J. Cui et al., "Leveraging partial-refresh for performance and lifetime improvement of 3D NAND flash memory in
//! cyber-physical systems", Journal of Systems Architecture 2020. A page whose data has aged stays where it is; only its
//! susceptible bits, corrected, are written anew, with those of other pages, to a combination page.

use crate::base::geometry::{Lpn, Ppn};

/// The susceptible bits of one page, as a combination page holds them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SusceptibleBits {
    /// The page whose bits these are, its LPN and the sequence number in its OOB.
    pub base: Ppn,
    /// See `base`.
    pub lpn: Lpn,
    /// See `base`.
    pub sequence: u64,
    /// P/E cycles of its block: after an erase it is another page.
    pub pe_cycles: u32,
    /// Their place in the combination page, in bytes.
    pub offset: u32,
    /// Their size, in bytes.
    pub bytes: u32,
    /// The RBER of the page when its bits were corrected: those errors it has no longer.
    pub rber: f64,
}
