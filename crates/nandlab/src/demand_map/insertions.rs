//! `write_back = "before-insert"`: a dirty entry is in flash before the entry that takes its place is used.
//!
//! LaLDPC, Algorithm 1, line 5: the item to evict is flushed to flash before the requested one is inserted. The evicted
//! entry leaves the cache when its write-back begins. Until this write-back has ended, lookups of the new entry miss.

use super::{Tvpn, WriteBack};
use crate::base::geometry::Lpn;
use crate::base::state::{state, value};
use crate::core::{Core, Queue, Waiter, Wake};
use crate::probe::Probe;
use std::collections::BTreeMap;

/// The write-back that brings an evicted entry into flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flush {
    page: Tvpn,
    /// Whether it is the write-back after the present one, whose program was queued before the eviction.
    is_next: bool,
}

impl Flush {
    /// The write-back of `page`, which was in this stage when the entry was evicted.
    pub(super) fn new(page: Tvpn, stage: WriteBack) -> Self {
        Self { page, is_next: stage == WriteBack::Program }
    }
}

/// The misses that wait until the dirty entries that they evicted are in flash.
#[derive(Debug)]
pub(super) struct Insertions {
    /// By translation page, the misses that wait for its present write-back, and those that wait for the next one.
    waiting: Box<[[Queue; 2]]>,
    /// The entries for which these misses wait.
    entries: BTreeMap<Lpn, Flush>,
}

impl Insertions {
    /// Bytes of RAM of a translation page.
    pub(super) const BYTES_PER_PAGE: u64 = size_of::<[Queue; 2]>() as u64;

    pub(super) fn new(translation_pages: usize) -> Self {
        Self { waiting: vec![[Queue::EMPTY; 2]; translation_pages].into(), entries: BTreeMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.waiting.iter().flatten().all(Queue::is_empty)
    }

    /// Whether the entry of `lpn` is being inserted.
    #[inline]
    pub(super) fn has(&self, lpn: Lpn) -> bool {
        !self.entries.is_empty() && self.entries.contains_key(&lpn)
    }

    /// The entry of a miss has taken a place in the cache, that of a dirty entry if there is a `flush`. Returns whether
    /// the miss may go on; if not, it waits, as does every miss of an entry that is being inserted.
    pub(super) fn insert<P: Probe>(
        &mut self,
        core: &mut Core<P>,
        waiter: Waiter,
        flush: Option<Flush>,
    ) -> bool {
        if let Some(flush) = flush {
            self.entries.insert(waiter.lpn, flush);
        }
        let Some(&Flush { page, is_next }) = self.entries.get(&waiter.lpn) else { return true };
        let waiter = core.waiters.insert(waiter);
        self.waiting[page.index()][usize::from(is_next)].push(&mut core.waiters, waiter);
        false
    }

    /// A write-back of `page` has ended. The misses that have waited for it continue.
    pub(super) fn end_write_back<P: Probe>(&mut self, core: &mut Core<P>, page: Tvpn) {
        let [mut ended, next] = std::mem::take(&mut self.waiting[page.index()]);
        let flush = Flush { page, is_next: false };
        while let Some(waiter) = ended.pop(&mut core.waiters) {
            let waiter = core.waiters.remove(waiter);
            if self.entries.get(&waiter.lpn) == Some(&flush) {
                self.entries.remove(&waiter.lpn);
            }
            core.wake(Wake::MapEntry { waiter, is_lost: false });
        }
        if !next.is_empty() {
            self.waiting[page.index()][0] = next;
            for other in self.entries.values_mut().filter(|other| other.page == page) {
                other.is_next = false;
            }
        }
    }
}

value! { Flush { page, is_next } }
state! { Insertions { waiting, entries } }
