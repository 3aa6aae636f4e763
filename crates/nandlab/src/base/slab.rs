//! Slabs, and first-in first-out lists threaded through what they hold.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;

/// The place of a `T` in its [`Slab`]. An `Option` of it is no larger: four bytes.
pub struct Id<T>(NonZeroU32, PhantomData<fn() -> T>);

impl<T> Id<T> {
    #[inline(always)]
    fn new(index: usize) -> Self {
        let number = NonZeroU32::new(index as u32 + 1).expect("a slab has fewer than 2^32 - 1 places");
        Self(number, PhantomData)
    }

    /// As an array index.
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

/// What a slab holds: it carries the link of the one list it is in.
pub trait Node: Sized {
    /// What a place holds before anything has been put there; in no list.
    const EMPTY: Self;

    /// The next one in whatever list this one is in.
    fn next(&mut self) -> &mut Option<Id<Self>>;
}

/// Places that are reused: the free ones form a list.
#[derive(Debug)]
pub struct Slab<T> {
    places: Vec<T>,
    free: Option<Id<T>>,
    live: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: None, live: 0 }
    }
}

impl<T: Node + Copy> Slab<T> {
    /// Puts one in.
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> Id<T> {
        self.live += 1;
        // One way to the place, so that the value is built there instead of on the stack.
        let place = self.free.unwrap_or_else(|| self.grow());
        self.free = *self[place].next();
        self[place] = value;
        place
    }

    #[cold]
    fn grow(&mut self) -> Id<T> {
        self.places.push(T::EMPTY);
        Id::new(self.places.len() - 1)
    }

    /// Takes one out.
    #[inline(always)]
    pub fn remove(&mut self, place: Id<T>) -> T {
        let value = self[place];
        *self[place].next() = self.free;
        self.free = Some(place);
        self.live -= 1;
        value
    }

    /// How many there are.
    pub fn live(&self) -> u32 {
        self.live
    }

    /// Drops all of them.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl<T> std::ops::Index<Id<T>> for Slab<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, place: Id<T>) -> &T {
        &self.places[place.index()]
    }
}

impl<T> std::ops::IndexMut<Id<T>> for Slab<T> {
    #[inline(always)]
    fn index_mut(&mut self, place: Id<T>) -> &mut T {
        &mut self.places[place.index()]
    }
}

/// A first-in first-out list, threaded through [`Node::next`].
pub struct Fifo<T> {
    /// The first and the last one.
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
        Self { ends: None }
    }
}

impl<T> Fifo<T> {
    /// Whether the list is empty.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.ends.is_none()
    }

    /// The first one.
    #[inline(always)]
    pub fn first(&self) -> Option<Id<T>> {
        self.ends.map(|(first, _)| first)
    }

    /// The last one.
    #[inline(always)]
    pub fn last(&self) -> Option<Id<T>> {
        self.ends.map(|(_, last)| last)
    }
}

impl<T: Node + Copy> Fifo<T> {
    /// A list of one, which is in no other.
    #[inline(always)]
    pub fn of(slab: &mut impl std::ops::IndexMut<Id<T>, Output = T>, place: Id<T>) -> Self {
        *slab[place].next() = None;
        Self { ends: Some((place, place)) }
    }

    /// Appends one.
    #[inline(always)]
    pub fn push(&mut self, slab: &mut impl std::ops::IndexMut<Id<T>, Output = T>, place: Id<T>) {
        *slab[place].next() = None;
        let first = match self.ends {
            None => place,
            Some((first, last)) => {
                *slab[last].next() = Some(place);
                first
            }
        };
        self.ends = Some((first, place));
    }

    /// Puts one first.
    #[inline]
    pub fn push_front(&mut self, slab: &mut impl std::ops::IndexMut<Id<T>, Output = T>, place: Id<T>) {
        *slab[place].next() = self.first();
        self.ends = Some((place, self.ends.map_or(place, |(_, last)| last)));
    }

    /// Takes the first one.
    #[inline(always)]
    pub fn pop(&mut self, slab: &mut impl std::ops::IndexMut<Id<T>, Output = T>) -> Option<Id<T>> {
        let (first, last) = self.ends?;
        self.ends = slab[first].next().map(|next| (next, last));
        Some(first)
    }

    /// Takes `place`, which follows `before` (or is the first).
    pub fn remove(
        &mut self,
        slab: &mut impl std::ops::IndexMut<Id<T>, Output = T>,
        before: Option<Id<T>>,
        place: Id<T>,
    ) {
        let next = *slab[place].next();
        let Some((first, last)) = self.ends else { return };
        match before {
            None => self.ends = next.map(|next| (next, last)),
            Some(before) => {
                *slab[before].next() = next;
                self.ends = Some((first, if last == place { before } else { last }));
            }
        }
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
    fn an_option_of_a_place_takes_four_bytes() {
        assert_eq!((size_of::<Id<Item>>(), size_of::<Option<Id<Item>>>()), (4, 4));
        assert_eq!(size_of::<Fifo<Item>>(), 8);
    }

    /// The twins: queues of numbers.
    #[test]
    fn lists_agree_with_queues_of_numbers_and_places_are_used_again() {
        let (mut slab, mut lists) = (Slab::default(), [Fifo::default(); 3]);
        let mut twins: [VecDeque<u64>; 3] = Default::default();
        let mut stream = Stream::new(1, "slab");
        let (mut most, mut removed_within) = (0, 0);
        for number in 0..20_000 {
            let at = stream.below(3) as usize;
            let (list, twin) = (&mut lists[at], &mut twins[at]);
            match stream.below(8) {
                0..3 => {
                    let place = slab.insert(Item { number, next: None });
                    list.push(&mut slab, place);
                    twin.push_back(number);
                }
                3 => {
                    let place = slab.insert(Item { number, next: None });
                    list.push_front(&mut slab, place);
                    twin.push_front(number);
                }
                4 if !twin.is_empty() => {
                    // Any of them, which has to be found from the first one on.
                    let nth = stream.below(twin.len() as u64) as usize;
                    let (mut before, mut place) = (None, list.first().unwrap());
                    for _ in 0..nth {
                        (before, place) = (Some(place), slab[place].next.unwrap());
                    }
                    list.remove(&mut slab, before, place);
                    assert_eq!(Some(slab.remove(place).number), twin.remove(nth));
                    removed_within += u64::from(nth > 0);
                }
                5 if twin.is_empty() => {
                    let place = slab.insert(Item { number, next: None });
                    *list = Fifo::of(&mut slab, place);
                    twin.push_back(number);
                }
                _ => {
                    let taken = list.pop(&mut slab).map(|place| slab.remove(place).number);
                    assert_eq!(taken, twin.pop_front());
                }
            }
            for (list, twin) in lists.iter().zip(&twins) {
                let (mut rest, mut numbers) = (list.first(), twin.iter());
                while let Some(place) = rest {
                    assert_eq!(Some(&slab[place].number), numbers.next());
                    rest = slab[place].next;
                }
                assert_eq!((numbers.next(), list.is_empty()), (None, twin.is_empty()));
            }
            let live = twins.iter().map(VecDeque::len).sum::<usize>();
            assert_eq!(slab.live() as usize, live);
            most = most.max(live);
        }
        assert_eq!(slab.places.len(), most, "a free place is used before a new one");
        assert!(removed_within > 500, "{removed_within}");
    }
}
