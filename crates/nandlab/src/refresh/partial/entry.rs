//! An entry of a combination page: the susceptible bits of a base page.
//!
//! J. Cui et al., "Leveraging partial-refresh for performance and lifetime improvement of 3D NAND flash memory in
//! cyber-physical systems", Journal of Systems Architecture 2020. A page whose data has aged stays where it is; only
//! its susceptible bits, corrected, are written to a combination page, together with the susceptible bits of other
//! pages.

use crate::base::geometry::{Lpn, Ppn};

/// The susceptible bits of one base page, as an entry of a combination page or of the VSM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SusceptibleBits {
    /// The base page.
    pub base: Ppn,
    /// LPN in the OOB of the base page.
    pub lpn: Lpn,
    /// Sequence number in the OOB of the base page.
    pub sequence: u64,
    /// P/E cycles of the base page's block when the bits were read; if the block has more, it has been erased since.
    pub pe_cycles: u32,
    /// Offset of the encoded bits in the combination page, in bytes; 0 while the entry belongs to no line.
    pub offset: u32,
    /// Size of the encoded bits, in bytes.
    pub bytes: u32,
    /// The RBER of the base page when its bits were corrected; a pread corrects these errors.
    pub rber: f64,
}
