//! Measures the bytes of memory per simulated physical page and the number of allocations per page operation. The
//! allocator of this program counts both.
//!
//! This program has only one test, so that no other test allocates memory at the same time. A zeroed allocation counts
//! in full, although the system provides its memory only when it is written.

// An allocator that counts is unsafe by its trait.
#![allow(unsafe_code)]

mod common;

use common::spec;
use nandlab::base::rng::Stream;
use nandlab::drive::Drive;
use nandlab::drive::spec::{Arrival, Beyond};
use nandlab::host::{Op, Request};
use nandlab::runner::{Runner, Source};
use std::alloc::{GlobalAlloc, Layout, System};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

fn added(bytes: usize) {
    CALLS.fetch_add(1, Relaxed);
    MOST.fetch_max(LIVE.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        added(layout.size());
        // SAFETY: the caller keeps the contract of this method.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        added(layout.size());
        // SAFETY: the caller keeps the contract of this method.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of this method.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        added(size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of this method.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A source of random requests of whole pages, half of them writes.
struct Random {
    stream: Stream,
    units: u64,
    left: u64,
}

impl Source for Random {
    type Error = Infallible;

    fn next_request(&mut self) -> Option<Result<Request, Infallible>> {
        self.left = self.left.checked_sub(1)?;
        let op = if self.stream.below(2) == 0 { Op::Read } else { Op::Write };
        let offset = self.stream.below(self.units) * 4096;
        Some(Ok(Request::new(op, offset, 4096)))
    }
}

#[test]
fn a_simulated_unit_takes_at_most_16_bytes() {
    // 1 GiB of 4 KiB pages: 4 channels x 4 chips x 2 planes of 128 blocks of 64 pages.
    let spec = spec(
        "[drive]\nchannels = 4\nchips_per_channel = 4\ndies_per_chip = 1\nplanes_per_die = 2\nblocks_per_plane = 128\n\
         pages_per_block = 64\npage_size = '4KiB'\nop = 0.15\n\
         [precondition]\nused = 0.9\nvalid = 0.9\n",
        &[],
    );
    let before = LIVE.load(Relaxed);
    MOST.store(before, Relaxed);
    let mut drive = Drive::new(&spec);
    let units = f64::from(drive.geometry().units);
    assert_eq!(units, 262_144.0);
    let per_unit = |bytes: usize| (bytes - before) as f64 / units;
    println!("fresh: {:.2} bytes per page", per_unit(LIVE.load(Relaxed)));
    assert!(drive.precondition(&mut |_| true).0);
    println!(
        "preconditioned: {:.2} bytes per page, {:.2} at most while preconditioning",
        per_unit(LIVE.load(Relaxed)),
        per_unit(MOST.load(Relaxed)),
    );
    assert!(per_unit(MOST.load(Relaxed)) <= 16.0, "preconditioning needs more than 16 bytes per page");
    let logical = u64::from(drive.geometry().logical_units);
    let source = Random { stream: Stream::new(1, "memory"), units: logical, left: 200_000 };
    let mut runner = Runner::new(source, Arrival::QueueDepth(32), Beyond::Refuse);
    let mut play = |requests| {
        let (calls, operations) = (CALLS.load(Relaxed), drive.stats().page_operations());
        runner.run(&mut drive, requests, |_| {}).unwrap_or_else(|e| panic!("{e:?}"));
        (CALLS.load(Relaxed) - calls, drive.stats().page_operations() - operations)
    };
    play(100_000);
    let (calls, operations) = play(u64::MAX);
    println!("{calls} allocations in {operations} page operations");
    // The remaining allocations are those of the series, which grows row by row.
    assert!((calls as u64) < operations / 1000, "the event loop allocates memory");
    let (after, most) = (per_unit(LIVE.load(Relaxed)), per_unit(MOST.load(Relaxed)));
    println!("after 200000 requests: {after:.2} bytes per page, {most:.2} at most");
    assert!(drive.stats().gc.victims > 100, "GC has hardly worked");
    assert!(after <= 16.0 && most <= 16.0, "{after} and at most {most} bytes per page");
    drop((drive, runner));
    // The drive and the runner have freed their memory, except for less than 0.1 bytes per page.
    assert!(per_unit(LIVE.load(Relaxed)) < 0.1);
}
