//! Slabs, and first-in first-out lists threaded through the values of a slab.
//!
//! An index into a slab has a niche, so an `Option` of an index takes four bytes.

use super::state::{State, StateError, StateReader, StateWriter, Value, state_of_value};
use super::steps::step;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;

/// The slot of a `T` in its [`Slab`]. Takes four bytes, as does an `Option<Id<T>>`.
pub struct Id<T>(NonZeroU32, PhantomData<fn() -> T>);

impl<T> Id<T> {
    /// The slot with this array index.
    #[inline(always)]
    pub fn new(index: usize) -> Self {
        let number = NonZeroU32::new(index as u32 + 1).expect("a slab has fewer than 2^32 slots");
        Self(number, PhantomData)
    }

    /// The slot as an array index.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl<T> Clone for Id<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Id<T> {}

impl<T> PartialEq for Id<T> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Id<T> {}

impl<T> fmt::Debug for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.index())
    }
}

/// A value of a slab, with the link of the one list that the value may be in.
pub trait Node: Sized {
    /// The content of a slot before its first use: a value that is in no list.
    const EMPTY: Self;

    /// The next value in the list that this value is in.
    fn next(&mut self) -> &mut Option<Id<Self>>;
}

/// Values in slots that are reused: the free slots form a list.
#[derive(Debug)]
pub struct Slab<T> {
    slots: Vec<T>,
    free: Option<Id<T>>,
    live: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: None, live: 0 }
    }
}

impl<T: Node + Copy> Slab<T> {
    /// Puts a value into a free slot.
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> Id<T> {
        self.live += 1;
        // A reused and a new slot are assigned by the same statement, so that the value is built in the slot instead of
        // on the stack.
        let slot = self.free.unwrap_or_else(|| self.grow());
        self.free = *self[slot].next();
        self[slot] = value;
        slot
    }

    #[cold]
    fn grow(&mut self) -> Id<T> {
        self.slots.push(T::EMPTY);
        Id::new(self.slots.len() - 1)
    }

    /// Takes a value out and frees its slot.
    #[inline(always)]
    pub fn remove(&mut self, slot: Id<T>) -> T {
        let value = self[slot];
        *self[slot].next() = self.free;
        self.free = Some(slot);
        self.live -= 1;
        value
    }

    /// The number of values.
    pub fn live(&self) -> u32 {
        self.live
    }

    /// Drops all values.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl<T> std::ops::Index<Id<T>> for Slab<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, slot: Id<T>) -> &T {
        step();
        &self.slots[slot.index()]
    }
}

impl<T> std::ops::IndexMut<Id<T>> for Slab<T> {
    #[inline(always)]
    fn index_mut(&mut self, slot: Id<T>) -> &mut T {
        step();
        &mut self.slots[slot.index()]
    }
}

/// A first-in first-out list, threaded through [`Node::next`].
pub struct Fifo<T> {
    /// The slots of the first and the last value.
    ends: Option<(Id<T>, Id<T>)>,
}

impl<T> Clone for Fifo<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Fifo<T> {}

impl<T> fmt::Debug for Fifo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fifo").field("ends", &self.ends).finish()
    }
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<T> Fifo<T> {
    /// An empty list.
    pub const EMPTY: Self = Self { ends: None };

    /// Whether the list is empty.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.ends.is_none()
    }

    /// The slot of the first value.
    #[inline(always)]
    pub fn first(&self) -> Option<Id<T>> {
        self.ends.map(|(first, _)| first)
    }

    /// The slot of the last value.
    #[inline(always)]
    pub fn last(&self) -> Option<Id<T>> {
        self.ends.map(|(_, last)| last)
    }
}

impl<T: Node + Copy> Fifo<T> {
    /// A list of one value. The value must be in no other list.
    #[inline(always)]
    pub fn of(slab: &mut impl std::ops::IndexMut<Id<T>, Output = T>, slot: Id<T>) -> Self {
        *slab[slot].next() = None;
        Self { ends: Some((slot, slot)) }
    }

    /// Appends a value.
    #[inline(always)]
    pub fn push(&mut self, slab: &mut impl std::ops::IndexMut<Id<T>, Output = T>, slot: Id<T>) {
        *slab[slot].next() = None;
        let first = match self.ends {
            None => slot,
            Some((first, last)) => {
                *slab[last].next() = Some(slot);
                first
            }
        };
        self.ends = Some((first, slot));
    }

    /// Puts a value at the front.
    #[inline]
    pub fn push_front(&mut self, slab: &mut impl std::ops::IndexMut<Id<T>, Output = T>, slot: Id<T>) {
        *slab[slot].next() = self.first();
        self.ends = Some((slot, self.ends.map_or(slot, |(_, last)| last)));
    }

    /// Takes out the first value.
    #[inline(always)]
    pub fn pop(&mut self, slab: &mut impl std::ops::IndexMut<Id<T>, Output = T>) -> Option<Id<T>> {
        let (first, last) = self.ends?;
        self.ends = slab[first].next().map(|next| (next, last));
        Some(first)
    }

    /// Takes out the value in `slot`. `before` is the slot of the preceding value, `None` for the first value.
    pub fn remove(
        &mut self,
        slab: &mut impl std::ops::IndexMut<Id<T>, Output = T>,
        before: Option<Id<T>>,
        slot: Id<T>,
    ) {
        let next = *slab[slot].next();
        let Some((first, last)) = self.ends else { return };
        match before {
            None => self.ends = next.map(|next| (next, last)),
            Some(before) => {
                *slab[before].next() = next;
                self.ends = Some((first, if last == slot { before } else { last }));
            }
        }
    }
}

impl<T> Value for Id<T> {
    fn save(&self, out: &mut StateWriter<'_>) {
        self.0.get().save(out);
    }

    fn load(from: &mut StateReader<'_>) -> Result<Self, StateError> {
        let number = NonZeroU32::new(u32::load(from)?);
        number.map(|number| Self(number, PhantomData)).ok_or(StateError::Damaged("a slot has no number"))
    }
}

state_of_value! { Id<T> where T }

impl<T> Value for Fifo<T> {
    fn save(&self, out: &mut StateWriter<'_>) {
        self.ends.save(out);
    }

    fn load(from: &mut StateReader<'_>) -> Result<Self, StateError> {
        Ok(Self { ends: Value::load(from)? })
    }
}

state_of_value! { Fifo<T> where T }

impl<T: Value> State for Slab<T> {
    fn save_state(&self, out: &mut StateWriter<'_>) {
        let Self { slots, free, live } = self;
        slots.save(out);
        free.save(out);
        live.save(out);
    }

    fn load_state(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        let Self { slots, free, live } = self;
        slots.load_state(from)?;
        free.load_state(from)?;
        live.load_state(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Stream;
    use std::collections::VecDeque;

    #[derive(Clone, Copy, Debug)]
    struct Item {
        number: u64,
        next: Option<Id<Item>>,
    }

    impl Node for Item {
        const EMPTY: Self = Self { number: 0, next: None };

        fn next(&mut self) -> &mut Option<Id<Self>> {
            &mut self.next
        }
    }

    #[test]
    fn an_option_of_a_slot_takes_four_bytes() {
        assert_eq!((size_of::<Id<Item>>(), size_of::<Option<Id<Item>>>()), (4, 4));
        assert_eq!(size_of::<Fifo<Item>>(), 8);
    }

    /// The naive twin of each list is a queue of numbers.
    #[test]
    fn lists_agree_with_queues_of_numbers_and_slots_are_reused() {
        let (mut slab, mut lists) = (Slab::default(), [Fifo::default(); 3]);
        let mut twins: [VecDeque<u64>; 3] = Default::default();
        let mut stream = Stream::new(1, "slab");
        let (mut most, mut removed_within) = (0, 0);
        for number in 0..20_000 {
            let at = stream.below(3) as usize;
            let (list, twin) = (&mut lists[at], &mut twins[at]);
            match stream.below(8) {
                0..3 => {
                    let slot = slab.insert(Item { number, next: None });
                    list.push(&mut slab, slot);
                    twin.push_back(number);
                }
                3 => {
                    let slot = slab.insert(Item { number, next: None });
                    list.push_front(&mut slab, slot);
                    twin.push_front(number);
                }
                4 if !twin.is_empty() => {
                    // A random value of the list. A search from the front finds its predecessor.
                    let nth = stream.below(twin.len() as u64) as usize;
                    let (mut before, mut slot) = (None, list.first().unwrap());
                    for _ in 0..nth {
                        (before, slot) = (Some(slot), slab[slot].next.unwrap());
                    }
                    list.remove(&mut slab, before, slot);
                    assert_eq!(Some(slab.remove(slot).number), twin.remove(nth));
                    removed_within += u64::from(nth > 0);
                }
                5 if twin.is_empty() => {
                    let slot = slab.insert(Item { number, next: None });
                    *list = Fifo::of(&mut slab, slot);
                    twin.push_back(number);
                }
                _ => {
                    let taken = list.pop(&mut slab).map(|slot| slab.remove(slot).number);
                    assert_eq!(taken, twin.pop_front());
                }
            }
            for (list, twin) in lists.iter().zip(&twins) {
                let (mut rest, mut numbers) = (list.first(), twin.iter());
                while let Some(slot) = rest {
                    assert_eq!(Some(&slab[slot].number), numbers.next());
                    rest = slab[slot].next;
                }
                assert_eq!((numbers.next(), list.is_empty()), (None, twin.is_empty()));
            }
            let live = twins.iter().map(VecDeque::len).sum::<usize>();
            assert_eq!(slab.live() as usize, live);
            most = most.max(live);
        }
        assert_eq!(slab.slots.len(), most, "the slab has grown although it had a free slot");
        assert!(removed_within > 500, "only {removed_within} values behind the first have been removed");
    }
}
