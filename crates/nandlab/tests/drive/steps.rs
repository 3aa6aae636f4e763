//! No cost of a page operation grows with a backlog: the steps of a page operation (`base/steps.rs`) are the same at a queue
//! depth of 4,096 as at 64, and those of a page in a read of 128 MiB as in one of 1 MiB. `make instructions` compares the
//! instructions.

use crate::common::wait_for_fewer;
use crate::mechanisms::{DEPTHS, MECHANISMS, MOST, Mechanism, SIZES_MIB, large_reads, operations};
use nandlab::base::steps::taken;
use nandlab::drive::Drive;
use nandlab::host::Request;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Requests of a run: five times the greatest depth.
const REQUESTS: usize = 20_000;

/// Plays requests at a queue depth; returns the steps of a page operation.
fn steps(drive: &mut Drive, requests: &[Request], depth: u32) -> f64 {
    let before = taken().expect("steps are counted in debug builds");
    for request in requests {
        wait_for_fewer(drive, depth);
        drive.submit(&request.at(drive.now())).unwrap();
    }
    wait_for_fewer(drive, 1);
    (taken().unwrap() - before) as f64 / operations(drive) as f64
}

/// Returns the steps of a page operation of a mechanism at both depths.
fn at_depths(mechanism: &Mechanism) -> [f64; 2] {
    DEPTHS.map(|depth| {
        let mut drive = mechanism.drive();
        let requests = mechanism.requests(REQUESTS, drive.geometry().logical_bytes());
        let steps = steps(&mut drive, &requests, depth);
        assert!((mechanism.acts)(&drive.stats()) > 0, "{}: the load does not make it work", mechanism.name);
        steps
    })
}

/// The end of each program once searched all units that waited for room in the write buffer, and the end of each
/// program in a detection of the dirty budget all queued operations.
#[test]
fn the_steps_of_a_page_operation_do_not_grow_with_the_queue_depth() {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(mechanism) = MECHANISMS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let [few, many] = at_depths(mechanism);
                    println!("{:>50} {few:8.1} {many:8.1} {:6.3}", mechanism.name, many / few);
                    if many > MOST * few {
                        failed.lock().expect("no run has failed").push((mechanism.name, few, many));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no run has failed");
    assert!(failed.is_empty(), "steps of a page operation at depths {DEPTHS:?}: {failed:.1?}");
}

/// A read once searched all reads of its event for one of the same page.
#[test]
fn the_steps_of_a_page_do_not_grow_with_the_size_of_a_read() {
    let of_size = SIZES_MIB.map(|mib| {
        let mut drive = Mechanism::named("write buffer").drive();
        steps(&mut drive, &large_reads(mib, 128), 1)
    });
    let most = of_size.iter().fold(0.0, |most: f64, steps| most.max(steps / of_size[0]));
    assert!(most <= MOST, "steps of a page in reads of {SIZES_MIB:?} MiB: {of_size:.1?}");
}
