//! `timing.multi_plane`: one operation on several planes of a die.
//!
//! The die executes the first transaction of a queue together with at most one partner from each other plane of the
//! die. The partner is the plane's first waiting transaction in the same queue with the same kind and row, the number
//! of the page in its block; the partner of an erase is an erase of any superblock. A read with other read references
//! cannot be a partner, and neither can an operation on a superblock of another shape. A program cannot be a partner while an earlier program of its superblock waits on the die,
//! because the units of a superblock on a die are programmed in order. A transaction on several planes is
//! found by the first of them.
//!
//! No queue is searched for a partner. Each waiting transaction except a copyback is in a second list, that of its
//! class, plane, kind and row. Programs and copybacks are in a list of their superblock, except programs in place.
//! These lists have the order of the queue, so only the first transaction of a list is examined.

use super::transaction::{Class, FlashOp, Slot, Transaction, Transactions};
use crate::base::geometry::{Divisor, Geometry, Stripes};
use crate::base::number_map::NumberMap;
use crate::base::slab::Fifo;
use crate::base::state::{state, value};
use crate::flash::Shapes;
use std::collections::hash_map::Entry;

/// The first and the last transaction of a list that is threaded through [`QueueLinks`].
type Ends = Option<(Slot, Slot)>;

/// The neighbours of a waiting transaction in its lists.
#[derive(Clone, Copy, Debug, Default)]
struct QueueLinks {
    /// The transaction before this one in the queue.
    before: Option<Slot>,
    /// The next transaction with the same class, plane, kind and row.
    alike: Option<Slot>,
    /// The next program or copyback of the same superblock on the die.
    in_superblock: Option<Slot>,
}

/// The lists that find the partners of a multi-plane operation.
#[derive(Debug)]
pub(super) struct Partners {
    planes_per_die: usize,
    /// Rows of a superblock of the shape with the most.
    rows: usize,
    stripes: Stripes,
    superblock_of: Divisor,
    /// The lists that are not empty, by the number of their die, class, plane, kind and row. There are as many as
    /// waiting transactions at most, so that they fit the processor's cache.
    alike: NumberMap<(Slot, Slot)>,
    /// For each superblock and each of its dies the list of the waiting programs and copybacks. Programs in place are
    /// in no such list, because they need no order.
    in_superblock: Box<[Ends]>,
    /// The neighbours of each waiting transaction, by its slot.
    links: Vec<QueueLinks>,
}

impl Partners {
    pub(super) fn new(geometry: &Geometry, shapes: &Shapes) -> Self {
        Self {
            planes_per_die: geometry.planes_per_die() as usize,
            rows: shapes.iter().map(|shape| shape.rows).max().unwrap_or_default() as usize,
            stripes: geometry.stripes,
            superblock_of: geometry.by_superblock(),
            alike: NumberMap::default(),
            in_superblock: vec![None; geometry.superblocks_on_dies()].into(),
            links: Vec::new(),
        }
    }

    /// Bytes of memory for the ends of the lists by superblock.
    pub(super) fn bytes(superblocks_on_dies: usize) -> u64 {
        (superblocks_on_dies * size_of::<Ends>()) as u64
    }

    /// [`Partners::bytes`] of these lists.
    pub(super) fn bytes_of_ends(&self) -> u64 {
        Self::bytes(self.in_superblock.len())
    }

    /// Empties all lists.
    pub(super) fn clear(&mut self) {
        self.alike.clear();
        self.in_superblock.fill(None);
    }

    /// The number in `alike` of the list of transactions that are like `of`, but on plane `plane` of the die. `None` for
    /// a copyback, which has no partners.
    fn list(&self, of: &Transaction, plane: usize) -> Option<u32> {
        let rows = self.rows;
        let row = self.stripes.row(of.index) as usize;
        let within = match of.kind {
            FlashOp::Read => row,
            FlashOp::Program => rows + row,
            FlashOp::Erase => 2 * rows,
            FlashOp::Copyback => return None,
        };
        let queue = Class::ALL.len() * of.die.index() + of.class as usize;
        // By class and plane, reads and programs by row, and erases.
        Some(((queue * self.planes_per_die + plane) * (2 * rows + 1) + within) as u32)
    }

    /// The index in `in_superblock` of the list of the programs with which `of` must be in order; `None` for reads,
    /// erases and programs in place.
    fn superblock(&self, of: &Transaction) -> Option<usize> {
        let is_in_order = of.kind.programs() && !of.is_in_place();
        is_in_order.then(|| {
            let superblock = self.superblock_of.divide(of.unit.0);
            let dies = self.stripes.dies;
            (if dies == 1 { superblock } else { superblock * dies + of.die.0 }) as usize
        })
    }

    /// Queues a transaction at the end.
    pub(super) fn push(&mut self, pool: &mut Transactions, queue: &mut Fifo<Transaction>, slot: Slot) {
        let before = queue.last();
        queue.push(pool, slot);
        let of = &pool[slot];
        if self.links.len() <= slot.index() {
            self.links.resize(slot.index() + 1, QueueLinks::default());
        }
        self.links[slot.index()] = QueueLinks { before, alike: None, in_superblock: None };
        if let Some(list) = self.list(of, of.plane_in_die.into()) {
            match self.alike.entry(list) {
                Entry::Vacant(empty) => _ = empty.insert((slot, slot)),
                Entry::Occupied(mut ends) => {
                    let (_, last) = ends.get_mut();
                    self.links[last.index()].alike = Some(slot);
                    *last = slot;
                }
            }
        }
        if let Some(superblock) = self.superblock(of) {
            let ends = &mut self.in_superblock[superblock];
            if let Some((_, last)) = *ends {
                self.links[last.index()].in_superblock = Some(slot);
            }
            *ends = Some((ends.map_or(slot, |(first, _)| first), slot));
        }
    }

    /// Queues a read at the front.
    pub(super) fn push_front(&mut self, pool: &mut Transactions, queue: &mut Fifo<Transaction>, slot: Slot) {
        let of = pool[slot];
        assert!(of.kind == FlashOp::Read, "only a read can be tried again, not {:?}", of.kind);
        if let Some(next) = queue.first() {
            self.links[next.index()].before = Some(slot);
        }
        queue.push_front(pool, slot);
        let list = self.list(&of, of.plane_in_die.into()).expect("a read may have partners");
        let ends = self.alike.get(&list).copied();
        let alike = ends.map(|(first, _)| first);
        self.links[slot.index()] = QueueLinks { before: None, alike, in_superblock: None };
        self.alike.insert(list, (slot, ends.map_or(slot, |(_, last)| last)));
    }

    /// Takes the first transaction out of a queue, and its partners in planes other than `without`. Returns them as a
    /// list: the first transaction, then the partners in the order of their planes.
    pub(super) fn take(
        &mut self,
        pool: &mut Transactions,
        queue: &mut Fifo<Transaction>,
        without: Option<u8>,
    ) -> Fifo<Transaction> {
        let first = queue.first().expect("the scheduler picked a class that waits");
        self.remove(pool, queue, first);
        let mut batch = Fifo::of(pool, first);
        let lead = pool[first];
        let without = without.map(usize::from);
        let others = |&plane: &usize| plane != usize::from(lead.plane_in_die) && Some(plane) != without;
        for plane in (0..self.planes_per_die).filter(others) {
            if let Some(partner) = self.partner(pool, &lead, plane) {
                self.remove(pool, queue, partner);
                batch.push(pool, partner);
            }
        }
        batch
    }

    /// The partner of `lead` on plane `plane`, another one than its own.
    fn partner(&self, pool: &Transactions, lead: &Transaction, plane: usize) -> Option<Slot> {
        let &(slot, _) = self.alike.get(&self.list(lead, plane)?)?;
        let other = &pool[slot];
        // One command serves all planes, so the reads in them must have the same references, and the cells of all planes
        // are used in the same way.
        let command = |of: &Transaction| (of.level, of.tries > 0, of.shape);
        let matches = command(other) == command(lead);
        let superblock = self.superblock(other);
        let is_next = superblock
            .is_none_or(|superblock| self.in_superblock[superblock].is_some_and(|(first, _)| first == slot));
        (matches && is_next).then_some(slot)
    }

    /// Takes a transaction out of the queue and the other lists. It must be the first in the other lists.
    fn remove(&mut self, pool: &mut Transactions, queue: &mut Fifo<Transaction>, slot: Slot) {
        let QueueLinks { before, alike, in_superblock } = self.links[slot.index()];
        if let Some(next) = pool[slot].next {
            self.links[next.index()].before = before;
        }
        queue.remove(pool, before, slot);
        let of = &pool[slot];
        let check = |first: Slot| assert!(first == slot, "a list is not in the order of its queue");
        if let Some(list) = self.list(of, of.plane_in_die.into()) {
            let Entry::Occupied(mut ends) = self.alike.entry(list) else {
                unreachable!("a waiting transaction is in its lists")
            };
            check(ends.get().0);
            match alike {
                Some(next) => ends.get_mut().0 = next,
                None => _ = ends.remove(),
            }
        }
        if let Some(superblock) = self.superblock(of) {
            let (first, last) =
                self.in_superblock[superblock].expect("a waiting transaction is in its lists");
            check(first);
            self.in_superblock[superblock] = in_superblock.map(|next| (next, last));
        }
    }
}

value! { QueueLinks { before, alike, in_superblock } }
state! { Partners { alike, in_superblock, links } fixed { planes_per_die, rows, stripes, superblock_of } }
