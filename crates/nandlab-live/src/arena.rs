//! Memory in slots of one size. Slots are taken from slabs; a slab without used slots is given back.
//!
//! A slab is 8 MiB of address space, which the kernel backs with huge pages where it can: a store that is read and written
//! at random finds few of its small pages in the processor's cache of addresses.

use nandlab_base::base::huge::Huge;

/// Bytes of a slab, or of one slot if that is larger.
const SLAB_BYTES: usize = 8 << 20;

/// A slab of slots.
#[derive(Debug)]
struct Slab {
    /// The memory; `None` while no slot is used.
    bytes: Option<Huge<u8>>,
    /// Slots that were used and are free again.
    free: Vec<u32>,
    /// Slots from this one on were never used since the memory was allocated.
    fresh: u32,
    /// Number of used slots.
    used: u32,
}

/// Slots of `slot_bytes` bytes each, numbered from 0.
#[derive(Debug)]
pub(crate) struct Arena {
    slot_bytes: usize,
    slots_per_slab: u32,
    slabs: Vec<Slab>,
    /// Slabs that may have a free slot. Each slab with a free slot is here once.
    open: Vec<u32>,
    /// The memory of one slab without used slots, so that a store at the edge of a slab does not allocate at each step.
    spare: Option<Huge<u8>>,
    used: u64,
}

impl Arena {
    /// No slots yet. `slot_bytes` is at least 1.
    pub(crate) fn new(slot_bytes: usize) -> Self {
        let slots_per_slab = (SLAB_BYTES / slot_bytes).max(1) as u32;
        Self { slot_bytes, slots_per_slab, slabs: Vec::new(), open: Vec::new(), spare: None, used: 0 }
    }

    /// Number of used slots.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Bytes of memory that are allocated for slots.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        let of_slabs = self.slabs.iter().filter_map(|slab| slab.bytes.as_ref());
        of_slabs.chain(&self.spare).map(|bytes| bytes.len() as u64).sum()
    }

    /// A slot, whose bytes are what they happen to be. `None` when all 2^32 - 2 numbers are used.
    pub(crate) fn take(&mut self) -> Option<u32> {
        let number = match self.open.last() {
            Some(&number) => number,
            None => {
                let number = self.slabs.len() as u32;
                if (u64::from(number) + 1) * u64::from(self.slots_per_slab) >= u64::from(u32::MAX) {
                    return None;
                }
                self.slabs.push(Slab { bytes: None, free: Vec::new(), fresh: 0, used: 0 });
                self.open.push(number);
                number
            }
        };
        let slab = &mut self.slabs[number as usize];
        if slab.bytes.is_none() {
            let fresh = || Huge::zeroed(self.slots_per_slab as usize * self.slot_bytes);
            slab.bytes = Some(self.spare.take().unwrap_or_else(fresh));
        }
        let slot = slab.free.pop().unwrap_or_else(|| {
            slab.fresh += 1;
            slab.fresh - 1
        });
        slab.used += 1;
        if slab.used == self.slots_per_slab {
            self.open.pop();
        }
        self.used += 1;
        Some(number * self.slots_per_slab + slot)
    }

    /// Frees a used slot.
    pub(crate) fn give_back(&mut self, slot: u32) {
        let number = slot / self.slots_per_slab;
        let slab = &mut self.slabs[number as usize];
        if slab.used == self.slots_per_slab {
            self.open.push(number);
        }
        slab.used -= 1;
        self.used -= 1;
        if slab.used == 0 {
            slab.free = Vec::new();
            slab.fresh = 0;
            self.spare = slab.bytes.take();
        } else {
            slab.free.push(slot % self.slots_per_slab);
        }
    }

    /// Where the slot is in its slab.
    fn range(&self, slot: u32) -> (usize, std::ops::Range<usize>) {
        let start = (slot % self.slots_per_slab) as usize * self.slot_bytes;
        ((slot / self.slots_per_slab) as usize, start..start + self.slot_bytes)
    }

    /// The bytes of a used slot.
    pub(crate) fn bytes(&self, slot: u32) -> &[u8] {
        let (slab, range) = self.range(slot);
        let bytes = self.slabs[slab].bytes.as_deref().expect("a slab with a used slot has memory");
        &bytes[range]
    }

    /// The bytes of a used slot, to be changed.
    pub(crate) fn bytes_mut(&mut self, slot: u32) -> &mut [u8] {
        let (slab, range) = self.range(slot);
        let bytes = self.slabs[slab].bytes.as_deref_mut().expect("a slab with a used slot has memory");
        &mut bytes[range]
    }
}
