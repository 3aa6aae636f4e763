//! An entry of a combination page: the susceptible bits of a base unit.
//!
//! J. Cui et al., "Leveraging partial-refresh for performance and lifetime improvement of 3D NAND flash memory in
//! cyber-physical systems", Journal of Systems Architecture 2020. A unit whose data has aged stays where it is; only
//! its susceptible bits, corrected, are written to a combination page, together with the susceptible bits of other
//! units.

use crate::base::geometry::{Lpn, UnitId};
use crate::base::state::value;

/// The susceptible bits of one base unit, as an entry of a combination page or of the VSM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SusceptibleBits {
    /// The base unit.
    pub base: UnitId,
    /// LPN in the OOB of the base unit.
    pub lpn: Lpn,
    /// Sequence number in the OOB of the base unit.
    pub sequence: u64,
    /// P/E cycles of the base unit's superblock when the bits were read; if the superblock has more, it has been erased
    /// since.
    pub pe_cycles: u32,
    /// Offset of the encoded bits in the combination page, in bytes; 0 while the entry belongs to no line.
    pub offset: u32,
    /// Size of the encoded bits, in bytes.
    pub bytes: u32,
    /// The RBER of the base unit when its bits were corrected; a pread corrects these errors.
    pub rber: f64,
}

value! { SusceptibleBits { base, lpn, sequence, pe_cycles, offset, bytes, rber } }
