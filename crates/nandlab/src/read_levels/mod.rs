//! The way of a flash read once it has left its die: decoding, the tries until it decodes, the level that is remembered of it. The
//! level that it needs and the one it starts at are worked out when it is queued (`core/read.rs`).
//!
//! Y. Du et al., "LaLDPC: Latency-aware LDPC for read performance improvement of solid state drives", MSST 2017.

pub(crate) mod notes;
pub(crate) mod spec;
mod stats;
#[cfg(test)]
mod tests;

pub use stats::{ByLevel, EccStats};

use crate::base::units::{Span, Time};
use crate::core::{Core, Map};
use crate::probe::Probe;
use crate::sched::{Cause, FlashOp, NEVER, Slot, Start, Transaction};
use std::collections::VecDeque;

/// Reads that have left their dies.
#[derive(Debug)]
pub(crate) struct Reads {
    /// By read level, pages that are being decoded, in the order in which they will be done.
    decoding: Box<[VecDeque<(Time, Slot)>]>,
    pub(crate) stats: EccStats,
}

impl Reads {
    /// `levels`: how many read levels there are.
    pub(crate) fn new(levels: u8) -> Self {
        Self { decoding: vec![VecDeque::new(); usize::from(levels)].into(), stats: EccStats::default() }
    }

    /// Power is gone, and what was being decoded.
    pub(crate) fn forget(&mut self) {
        self.decoding.iter_mut().for_each(VecDeque::clear);
    }

    /// A read of the host's is queued.
    #[inline]
    pub(crate) fn on_host_read<P: Probe>(&mut self, core: &Core<P>, slot: Slot) {
        if core.physics.ecc.has_levels() {
            let read = &core.pool[slot];
            self.stats.on_host_start(read.level, read.needed);
        }
    }

    /// A page has left its die. Returns the read whose decoding takes no time and is over; else it follows.
    #[inline]
    pub(crate) fn on_page_out<P: Probe>(&mut self, core: &mut Core<P>, slot: Slot) -> Option<Slot> {
        let read = &core.pool[slot];
        let (block, page, cause, die) =
            (core.geometry.block_of(read.ppn), u32::from(read.page), read.cause, read.die);
        let (level, is_retry) = (read.level, read.tries > 0);
        let (partner, part_bytes) = (read.partner, read.part_bytes);
        core.array.read(block, page);
        if !read.is_uncorrectable() || level == core.physics.ecc.levels() {
            core.operations.on_ended(FlashOp::Read, cause);
            if core.physics.ecc.has_levels() {
                self.stats.on_last_try(read);
            }
        }
        let cost = *core.device.timing().read(level, is_retry);
        if !core.physics.ecc.has_levels() {
            // No other try can follow: the data in flash is not needed any more, unless the other half of a pread is to come.
            if partner.is_none() {
                core.unpin(block);
            }
        } else if cause == Cause::Host {
            self.stats.host_flash_ns +=
                cost.sense_ns + core.device.timing().of_part(cost.transfer_ns, part_bytes);
        }
        let (slot, level, decode_ns) = if let Some(other) = partner {
            let first = core.join(slot, other)?;
            let (read, part) = (core.pool[first], core.pool[if first == slot { other } else { slot }]);
            if !core.physics.ecc.has_levels() {
                core.unpin(core.geometry.block_of(read.ppn));
                core.unpin(core.geometry.block_of(part.ppn));
            }
            let level = read.level.max(part.level);
            (first, level, core.device.timing().read(level, false).decode_ns)
        } else {
            (slot, level, cost.decode_ns)
        };
        if core.physics.ecc.has_levels() && cause == Cause::Host {
            self.stats.host_flash_ns += decode_ns;
        }
        let end = core.now + decode_ns;
        core.probe.on_decode(core.now, end, core.geometry.channel_of(die), level, &core.pool[slot]);
        if decode_ns == Span::ZERO {
            return Some(slot);
        }
        let line = &mut self.decoding[usize::from(level) - 1];
        if line.is_empty() {
            core.agenda.set(core.geometry.dies + u32::from(level) - 1, end);
        }
        line.push_back((end, slot));
        None
    }

    /// The clock of a decoder has struck; returns the read whose decoding is over.
    #[inline]
    pub(crate) fn on_clock<P: Probe>(&mut self, core: &mut Core<P>, clock: u32) -> Slot {
        let line = &mut self.decoding[(clock - core.geometry.dies) as usize];
        let (_, slot) = line.pop_front().expect("the decode clock is set for a page");
        let next = line.front().map_or(NEVER, |&(at, _)| at);
        core.agenda.set(clock, next);
        slot
    }

    /// Decoding has ended: with the data, its level remembered, or with another try one level higher. Whether the read is over.
    #[inline]
    pub(crate) fn on_decoded<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        map: &mut impl Map<P>,
        slot: Slot,
    ) -> bool {
        if let Some(partner) = core.pool[slot].partner
            && core.try_again_or_part(slot, partner)
        {
            return false;
        }
        if core.physics.ecc.has_levels() {
            let read = &core.pool[slot];
            if read.is_uncorrectable() && read.level < core.physics.ecc.levels() {
                core.try_again(slot);
                return false;
            }
            Self::remember(core, map, slot);
        }
        true
    }

    /// Remembers the level at which a read has been decoded. What GC and wear levelling read is left out: it is not
    /// a use of the page, and moves it.
    fn remember<P: Probe>(core: &mut Core<P>, map: &mut impl Map<P>, slot: Slot) {
        let Transaction { ppn, lpn, cause, level, start, .. } = core.pool[slot];
        // A read at full strength says nothing of the level that its block needs.
        if start != Start::Last {
            core.levels.set_block(core.geometry.block_of(ppn), level);
        }
        let is_use = matches!(cause, Cause::Host | Cause::Sync | Cause::Mapping);
        // It may have been written since.
        if is_use && core.ftl.map.get(lpn) == Some(ppn) {
            map.set_level(core, lpn, level);
        }
    }
}
