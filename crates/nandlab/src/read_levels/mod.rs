//! A flash read after its transfer from the die: decoding, further tries until a level decodes, and remembering that
//! level. The needed level and the start level are determined when the read is queued (`core/read.rs`).
//!
//! Y. Du et al., "LaLDPC: Latency-aware LDPC for read performance improvement of solid state drives", MSST 2017.
//!
//! The reads that a level decodes are a first-in first-out queue, since the decode time of a level is constant, unless
//! the drive has a limited number of decoders or the levels of a code, whose decode times vary (`decoders.rs`).
//! `Reads::remember` stores the level that has decoded a unit: with a demand map in the entry of the mapping cache,
//! else in `core/levels.rs`, which also has a level per superblock and one of the drive. The level of a translation
//! page is stored beside its PPN, or not at all (`ftl.map.demand.translation_level`). A unit that no level decodes
//! fails its request; GC moves the unit with the mark `AgeStamp::LOST`.

mod decoders;
pub(crate) mod notes;
pub(crate) mod spec;
mod stats;
#[cfg(test)]
mod tests;

use crate::base::state::state;
pub use stats::{ByLevel, EccStats, EccSummary};

use crate::base::units::{Span, Time};
use crate::core::{Core, Map, Mechanism, Offline};
use crate::probe::Probe;
use crate::sched::{Cause, FlashOp, NEVER, Slot, Start, Transaction};
use decoders::Decoders;
use std::collections::VecDeque;

/// Reads that have left their dies and are being decoded.
#[derive(Debug)]
pub(crate) struct Reads {
    /// By read level, the reads being decoded: the end of decoding and the slot, earliest end first.
    decoding: Box<[VecDeque<(Time, Slot)>]>,
    /// Instead of it, the decoders of a drive whose decoders are limited in number, or whose decode times vary.
    decoders: Option<Decoders>,
    pub(crate) stats: EccStats,
}

/// Whether this try of a read fails and another one follows. Without read levels none does.
#[inline(always)]
fn is_tried_again<P: Probe>(core: &Core<P>, read: &Transaction) -> bool {
    core.ecc().has_levels() && read.is_tried_again(core.ecc().levels())
}

impl<P: Probe> Mechanism<P> for Reads {
    fn power_lost(&mut self, _: &mut Offline<'_, P>) {
        self.decoding.iter_mut().for_each(VecDeque::clear);
        self.decoders.iter_mut().for_each(Decoders::clear);
    }
}

impl Reads {
    /// The state in which no read is being decoded. `levels`: number of read levels. `decoders`: their number, if it is
    /// limited. `varies`: decode times are not constant for each level.
    pub(crate) fn new(levels: u8, decoders: Option<u32>, varies: bool) -> Self {
        Self {
            decoding: vec![VecDeque::new(); usize::from(levels)].into(),
            decoders: (varies || decoders.is_some()).then(|| Decoders::new(decoders)),
            stats: EccStats::default(),
        }
    }

    /// A host read has been queued.
    #[inline]
    pub(crate) fn on_host_read<P: Probe>(&mut self, core: &Core<P>, slot: Slot) {
        if core.ecc().has_levels() && !core.operation(slot).goes_along {
            let read = core.operation(slot);
            self.stats.on_host_start(read.level, read.needed);
        }
    }

    /// The data of a read has left its die. Returns the read if its decoding takes no time; if not, [`Reads::on_clock`]
    /// returns it at the end of decoding. The two sub-reads of a pread are decoded together, once the data of both has
    /// left its die.
    #[inline]
    pub(crate) fn on_page_out<P: Probe>(&mut self, core: &mut Core<P>, slot: Slot) -> Option<Slot> {
        let read = core.operation(slot);
        let (superblock, index, cause, die) =
            (core.geometry().superblock_of(read.unit), read.index, read.cause, read.die);
        let (level, is_retry) = (read.level, read.tries > 0);
        let (shape, partner, part_bytes) = (read.shape, read.partner, read.extent);
        let is_last = !is_tried_again(core, read);
        core.count_sensed(superblock, index);
        if is_last {
            core.count_ended(FlashOp::Read, cause, shape);
            if core.ecc().has_levels() {
                self.stats.on_last_try(core.operation(slot));
            }
        }
        let of_shape = &core.flash().shapes()[shape];
        let cost = *of_shape.after_sensing(level, is_retry);
        let sense_ns = || of_shape.read(index, level, is_retry).sense_ns;
        if !core.ecc().has_levels() {
            if cause == Cause::Host {
                self.stats.host_flash_ns += sense_ns();
            }
            // No further try can follow, so the superblock of the unit is unpinned. The superblocks of a pread remain
            // pinned until all sub-reads have left their dies.
            if partner.is_none() {
                core.unpin(superblock);
            }
        } else if cause == Cause::Host {
            self.stats.host_flash_ns +=
                sense_ns() + core.device().timing().of_part(cost.transfer_ns, part_bytes);
        }
        let (slot, level, decode_ns) = if partner.is_some() {
            let first = core.join(slot)?;
            let (mut level, mut next) = (0, Some(first));
            while let Some(sub) = next {
                let read = *core.operation(sub);
                level = read.level.max(level);
                next = read.partner.filter(|&next| next != first);
                if !core.ecc().has_levels() {
                    core.unpin(core.geometry().superblock_of(read.unit));
                }
            }
            (first, level, core.flash().shapes()[shape].after_sensing(level, false).decode_ns)
        } else {
            (slot, level, cost.decode_ns)
        };
        let decode_ns = core.decode_ns(slot, decode_ns);
        self.stats.decoder_busy_ns += decode_ns;
        if core.ecc().has_levels() && cause == Cause::Host {
            self.stats.host_flash_ns += decode_ns;
        }
        if decode_ns > Span::ZERO
            && let Some(decoders) = &mut self.decoders
        {
            let (start, end) = decoders.add(core.now(), decode_ns, slot);
            self.stats.decoder_wait_ns += start - core.now();
            core.tell_decode(start, end, die, level, slot);
            let next = decoders.next().unwrap_or(NEVER);
            core.set_clock(core.first_decoder_clock(), next);
            return None;
        }
        let end = core.now() + decode_ns;
        core.tell_decode(core.now(), end, die, level, slot);
        if decode_ns == Span::ZERO {
            return Some(slot);
        }
        let line = &mut self.decoding[usize::from(level) - 1];
        if line.is_empty() {
            core.set_clock(core.first_decoder_clock() + u32::from(level) - 1, end);
        }
        line.push_back((end, slot));
        None
    }

    /// The decoder clock of a read level, or that of all decoders, has expired. Returns the read whose decoding has ended.
    #[inline]
    pub(crate) fn on_clock<P: Probe>(&mut self, core: &mut Core<P>, clock: u32) -> Slot {
        if let Some(decoders) = &mut self.decoders {
            let slot = decoders.pop().expect("the decode clock is set for a read");
            core.set_clock(clock, decoders.next().unwrap_or(NEVER));
            return slot;
        }
        let line = &mut self.decoding[(clock - core.first_decoder_clock()) as usize];
        let (_, slot) = line.pop_front().expect("the decode clock is set for a read");
        let next = line.front().map_or(NEVER, |&(at, _)| at);
        core.set_clock(clock, next);
        slot
    }

    /// Decoding of a read has ended. If decoding failed and there is a higher level, queues another try and returns
    /// `false`. If not, remembers the level and returns `true`: the read has ended.
    #[inline]
    pub(crate) fn on_decoded<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        map: &mut impl Map<P>,
        slot: Slot,
    ) -> bool {
        if core.operation(slot).partner.is_some() && core.try_again_or_part(slot) {
            return false;
        }
        if is_tried_again(core, core.operation(slot)) {
            core.try_again(slot);
            return false;
        }
        Self::remember(core, map, slot);
        true
    }

    /// With read levels, remembers the level that decoded the unit: for the superblock, for the drive, and for the unit
    /// unless the read belongs to a background job, which is no use of the unit. An uncorrectable read has no such
    /// level, so the next read of its unit starts at level 1 again; superblock and drive keep their levels.
    #[inline(always)]
    pub(crate) fn remember<P: Probe>(core: &mut Core<P>, map: &mut impl Map<P>, slot: Slot) {
        if !core.ecc().has_levels() {
            return;
        }
        let Transaction { unit, lpn, cause, level, start, .. } = *core.operation(slot);
        let is_decoded = !core.operation(slot).is_uncorrectable();
        // A read at full strength always ends at the last level, whatever the needed level, so its level is not
        // remembered for the superblock and the drive.
        if start != Start::Last && is_decoded {
            core.set_superblock_level(core.geometry().superblock_of(unit), level);
            core.set_drive_level(level);
        }
        let is_use = matches!(cause, Cause::Host | Cause::Sync | Cause::Mapping);
        // The LPN may have been written since the read was queued.
        if is_use && core.is_newest(lpn, unit) {
            map.set_level(core, lpn, if is_decoded { level } else { 1 });
        }
    }
}

state! { Reads { decoding, stats } parts { decoders } }
