//! A map from a page number to a number, dense where it is used and free where it is not.

use nandlab_base::base::huge::prefetch;
use nandlab_base::base::state::{State, StateError, StateReader, StateWriter, Value};

/// Entries of a leaf.
const LEAF: usize = 1024;

/// The entries of `LEAF` consecutive keys.
#[derive(Debug)]
struct Leaf {
    entries: [u32; LEAF],
    /// Number of entries that are not 0.
    used: u32,
}

/// A map from `u64` to `u32`, in which 0 stands for no entry.
#[derive(Debug)]
pub(crate) struct Table {
    leaves: Vec<Option<Box<Leaf>>>,
    len: u64,
}

impl Table {
    /// An empty map with the keys 0 to `len` - 1. Takes 8 bytes for each 1,024 keys.
    pub(crate) fn new(len: u64) -> Self {
        let leaves =
            usize::try_from(len.div_ceil(LEAF as u64)).expect("a table has at most 2^64 / 1,024 leaves");
        Self { leaves: std::iter::repeat_with(|| None).take(leaves).collect(), len }
    }

    /// The entry of `key`; 0 without one, and for keys beyond the table.
    #[inline]
    pub(crate) fn get(&self, key: u64) -> u32 {
        match self.leaves.get((key / LEAF as u64) as usize) {
            Some(Some(leaf)) => leaf.entries[key as usize % LEAF],
            _ => 0,
        }
    }

    /// Prefetches the entry of `key` into the CPU's cache.
    #[inline]
    pub(crate) fn prefetch(&self, key: u64) {
        if let Some(Some(leaf)) = self.leaves.get((key / LEAF as u64) as usize) {
            prefetch(&raw const leaf.entries[key as usize % LEAF]);
        }
    }

    /// Sets the entry of `key`, a key of the table, and returns the one before it.
    #[inline]
    pub(crate) fn set(&mut self, key: u64, entry: u32) -> u32 {
        let place = &mut self.leaves[(key / LEAF as u64) as usize];
        let leaf = match place {
            Some(leaf) => leaf,
            None if entry == 0 => return 0,
            None => place.insert(Box::new(Leaf { entries: [0; LEAF], used: 0 })),
        };
        let before = std::mem::replace(&mut leaf.entries[key as usize % LEAF], entry);
        leaf.used += u32::from(entry != 0);
        leaf.used -= u32::from(before != 0);
        if leaf.used == 0 {
            *place = None;
        }
        before
    }

    /// The first key from `from` on, and below `end`, that has an entry. Skips 1,024 keys at a time where there is none.
    pub(crate) fn next_used(&self, from: u64, end: u64) -> Option<u64> {
        let end = end.min(self.len);
        let mut key = from;
        while key < end {
            let first = key / LEAF as u64 * LEAF as u64;
            if let Some(leaf) = &self.leaves[(key / LEAF as u64) as usize] {
                let rest = &leaf.entries[(key - first) as usize..];
                if let Some(skipped) = rest.iter().position(|&entry| entry != 0) {
                    let found = key + skipped as u64;
                    return (found < end).then_some(found);
                }
            }
            key = first + LEAF as u64;
        }
        None
    }
}

impl State for Table {
    fn save_state(&self, out: &mut StateWriter<'_>) {
        self.len.save(out);
        let leaves = || self.leaves.iter().zip(0u64..).filter_map(|(leaf, at)| Some((leaf.as_ref()?, at)));
        (leaves().count() as u64).save(out);
        for (leaf, at) in leaves() {
            at.save(out);
            Value::save_all(&leaf.entries, out);
        }
    }

    fn load_state(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        if u64::load(from)? != self.len {
            return Err(StateError::Damaged("it has a table of another length"));
        }
        *self = Self::new(self.len);
        for _ in 0..u64::load(from)? {
            let at = u64::load(from)?;
            let mut leaf = Box::new(Leaf { entries: [0; LEAF], used: 0 });
            Value::load_all(&mut leaf.entries, from)?;
            leaf.used = leaf.entries.iter().map(|&entry| u32::from(entry != 0)).sum();
            let place = usize::try_from(at).ok().and_then(|at| self.leaves.get_mut(at));
            *place.ok_or(StateError::Damaged("it has an entry beyond its table"))? = Some(leaf);
        }
        Ok(())
    }
}
