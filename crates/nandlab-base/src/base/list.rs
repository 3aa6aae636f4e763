//! Doubly linked lists of slots, in the order of use.

use super::slab::{Id, Node, Slab};
use super::state::value;

/// The number that stands for "no slot".
const NONE: u32 = u32::MAX;

/// A slot's neighbours in one list.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    before: u32,
    after: u32,
}

impl Link {
    /// The link of a slot that is in no list.
    pub const FREE: Self = Self { before: NONE, after: NONE };

    /// The slot before it in the list, which was used more recently.
    #[inline(always)]
    pub fn before(self) -> Option<u32> {
        (self.before != NONE).then_some(self.before)
    }

    /// The next slot in the list, which was used less recently.
    pub fn after(self) -> Option<u32> {
        (self.after != NONE).then_some(self.after)
    }
}

impl Default for Link {
    fn default() -> Self {
        Self::FREE
    }
}

/// An array with the links of a list's slots.
pub trait ListLinks {
    /// The link of a slot.
    fn link(&mut self, slot: u32) -> &mut Link;
}

/// An element of an array that has the link of its slot.
pub trait Linked {
    /// The link of the element's slot.
    fn link(&mut self) -> &mut Link;
}

impl<T: Linked> ListLinks for Vec<T> {
    #[inline(always)]
    fn link(&mut self, slot: u32) -> &mut Link {
        self[slot as usize].link()
    }
}

impl<T: Node + Linked> ListLinks for Slab<T> {
    #[inline(always)]
    fn link(&mut self, slot: u32) -> &mut Link {
        self[Id::new(slot as usize)].link()
    }
}

/// A list of slots, most recently used first.
#[derive(Clone, Copy, Debug)]
pub struct List {
    first: u32,
    last: u32,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        Self { first: NONE, last: NONE, len: 0 }
    }
}

impl List {
    /// The number of slots in the list.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether no slot is in the list.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The most recently used slot.
    pub fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// The least recently used slot.
    #[inline(always)]
    pub fn last(&self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }

    /// Puts `slot`, which is in no list of `links`, at the beginning of the list.
    #[inline]
    pub fn push_first(&mut self, links: &mut impl ListLinks, slot: u32) {
        *links.link(slot) = Link { before: NONE, after: self.first };
        match self.first {
            NONE => self.last = slot,
            first => links.link(first).before = slot,
        }
        self.first = slot;
        self.len += 1;
    }

    /// Takes `slot`, which must be in the list, out of the list. The link of `slot` keeps its old value.
    #[inline]
    pub fn remove(&mut self, links: &mut impl ListLinks, slot: u32) {
        let Link { before, after } = *links.link(slot);
        match before {
            NONE => self.first = after,
            before => links.link(before).after = after,
        }
        match after {
            NONE => self.last = before,
            after => links.link(after).before = before,
        }
        self.len -= 1;
    }
}

value! { Link { before, after } }
value! { List { first, last, len } }
