//! The erased superblocks of a lane, and the choice of the superblock that is opened next.
//!
//! Dynamic wear levelling uses the free superblock with the fewest P/E cycles.

use crate::base::state::{State, StateError, StateReader, StateWriter, Value};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// `ftl.wear_levelling`: how the choice of free superblocks and victims depends on wear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WearLevelling {
    /// Free superblocks are used in the order in which they were freed.
    None,
    /// The free superblock with the fewest P/E cycles is used next.
    Dynamic,
    /// As `Dynamic`. In addition the data of cold superblocks is moved.
    Static,
}

/// A lane's erased superblocks.
#[derive(Clone, Debug, Default)]
pub struct FreeSuperblocks {
    /// `Reverse((P/E cycles, order of freeing, superblock in the lane))`. Without wear levelling the P/E cycles are 0
    /// here.
    heap: BinaryHeap<Reverse<(u32, u32, u32)>>,
    freed: u32,
}

impl FreeSuperblocks {
    /// The number of free superblocks.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.heap.len() as u32
    }

    /// Bytes of the entries for which there is memory.
    pub fn bytes(&self) -> u64 {
        (self.heap.capacity() * size_of::<Reverse<(u32, u32, u32)>>()) as u64
    }

    /// Whether there is no free superblock.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Adds an erased superblock.
    pub fn push(&mut self, levelling: WearLevelling, superblock: u32, pe_cycles: u32) {
        let wear = if levelling == WearLevelling::None { 0 } else { pe_cycles };
        self.heap.push(Reverse((wear, self.freed, superblock)));
        self.freed = self.freed.wrapping_add(1);
    }

    /// The superblock that will be opened next.
    pub fn next(&self) -> Option<u32> {
        self.heap.peek().map(|&Reverse((.., superblock))| superblock)
    }

    /// Takes the superblock that will be opened next.
    pub fn pop(&mut self) -> Option<u32> {
        self.heap.pop().map(|Reverse((.., superblock))| superblock)
    }

    /// Takes the most worn superblock, which suits data that is expected to stay unchanged.
    pub fn pop_most_worn(&mut self) -> Option<u32> {
        let &Reverse(worn) = self.heap.iter().min()?;
        self.heap.retain(|&Reverse(entry)| entry != worn);
        Some(worn.2)
    }

    /// Updates the order after the P/E cycles of free superblocks have risen without an erase. `pe_cycles` returns the
    /// new P/E cycles of a superblock.
    pub fn on_worn(&mut self, levelling: WearLevelling, pe_cycles: impl Fn(u32) -> u32) {
        if levelling != WearLevelling::None {
            let worn = |Reverse((_, freed, superblock))| Reverse((pe_cycles(superblock), freed, superblock));
            self.heap = std::mem::take(&mut self.heap).into_iter().map(worn).collect();
        }
    }

    /// Whether the order is based on the P/E cycles that `pe_cycles` returns. Always true without wear levelling.
    pub fn agrees(&self, levelling: WearLevelling, pe_cycles: impl Fn(u32) -> u32) -> bool {
        let is_right = |&Reverse((worn, _, superblock)): &_| worn == pe_cycles(superblock);
        levelling == WearLevelling::None || self.heap.iter().all(is_right)
    }

    /// All free superblocks, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.heap.iter().map(|&Reverse((.., superblock))| superblock)
    }
}

/// The memory of the heap counts in [`FreeSuperblocks::bytes`], so its size belongs to the state.
impl State for FreeSuperblocks {
    fn save_state(&self, out: &mut StateWriter<'_>) {
        let Self { heap, freed } = self;
        heap.capacity().save(out);
        heap.save(out);
        freed.save(out);
    }

    fn load_state(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        let capacity = usize::load(from)?;
        // All superblocks of a fresh drive are free.
        if capacity > 4 * self.heap.capacity() {
            return Err(StateError::Damaged("a lane has more free superblocks than superblocks"));
        }
        let mut free = Vec::with_capacity(capacity);
        free.load_state(from)?;
        self.heap = free.into();
        self.freed.load_state(from)
    }
}
