//! How long each phase of a flash operation takes on the resource it needs.

use crate::geometry::{Geometry, PageKind};
use crate::spec::{ProgramTime, TimingSpec};
use crate::units::{Span, transfer_ns};

/// Phase times of one drive, worked out once. All in nanoseconds.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Sense a page into the page register (tR).
    pub read_ns: Span,
    /// Erase a block (tBERS).
    pub erase_ns: Span,
    /// One page over the channel.
    pub transfer_ns: Span,
    /// One page over the off-chip path; 0 when it is unlimited.
    pub off_chip_ns: Span,
    /// Command and address cycles, channel time in front of every operation.
    pub command_ns: Span,
    /// ECC decode of a page.
    pub decode_ns: Span,
    program_ns: Box<[Span]>,
}

impl Timing {
    /// The times of a validated `[timing]` section.
    pub fn new(spec: &TimingSpec, geometry: &Geometry) -> Self {
        let bytes = u64::from(geometry.page_bytes);
        Self {
            read_ns: spec.read_ns,
            erase_ns: spec.erase_ns,
            transfer_ns: transfer_ns(bytes, spec.channel_ns_per_byte),
            off_chip_ns: spec.off_chip_bytes_per_s.map_or(0, |rate| transfer_ns(bytes, 1e9 / rate)),
            command_ns: spec.command_ns,
            decode_ns: spec.decode_ns,
            program_ns: (0..geometry.pages_per_block).map(|page| program_ns(spec, geometry, page)).collect(),
        }
    }

    /// Program page `page` of a block (tPROG).
    #[inline(always)]
    pub fn program_ns(&self, page: u32) -> Span {
        self.program_ns[page as usize]
    }
}

fn program_ns(spec: &TimingSpec, geometry: &Geometry, page: u32) -> Span {
    match spec.program {
        ProgramTime::Uniform(ns) => ns,
        ProgramTime::ByKind { lsb_ns, msb_ns } => match geometry.kind(page) {
            PageKind::Slc | PageKind::Lsb => lsb_ns,
            PageKind::Csb => lsb_ns.midpoint(msb_ns),
            PageKind::Msb => msb_ns,
        },
        ProgramTime::ByLayer { fastest_ns, slowest_ns } => {
            let top = u64::from(geometry.layers.max(2) - 1);
            fastest_ns + (slowest_ns - fastest_ns) * u64::from(geometry.layer(page)) / top
        }
    }
}
