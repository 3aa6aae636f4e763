//! The tags of requests: placements and queues.

use crate::common::{TINY, request, spec, wait_for_fewer};
use nandlab::base::geometry::{LaneId, Lpn, SuperblockId};
use nandlab::base::rng::Stream;
use nandlab::drive::spec::Spec;
use nandlab::drive::{Drive, IDLE_LIMIT, Refused};
use nandlab::flash::COPYBACKS_MAX;
use nandlab::ftl::StreamId;
use nandlab::host::{ByOp, Op, Oracle, Tag};
use nandlab::probe::Probe;
use nandlab::report::{RunFacts, summary};

const PAGE: u64 = 4096;

/// A tiny drive with two placements. Consecutive pages are in the four lanes in turn.
fn two_placements(settings: &[&str]) -> Spec {
    let of_two = ["placement.handles=2"];
    spec(TINY, &[&of_two, settings].concat())
}

fn submit<P: Probe>(drive: &mut Drive<P>, op: Op, lpn: u64, pages: u64, queue: u16, placement: u16) {
    let request = request(drive, op, lpn * PAGE, pages * PAGE).with_tag(Tag { queue, placement });
    drive.submit(&request).unwrap();
}

fn finish<P: Probe>(drive: &mut Drive<P>) {
    drive.submit(&request(drive, Op::Flush, 0, 0)).unwrap();
    drive.run_until_idle(IDLE_LIMIT).unwrap();
}

#[test]
fn writes_with_two_placements_go_to_two_open_superblocks() {
    let buffer = ["drive.op=1.0", "drive.page_size=16KiB", "ftl.mapping_unit=4KiB", "ftl.buffer=64KiB"];
    for settings in [&[][..], &buffer, &["cache.size=64KiB", "cache.flush_to=flash"]] {
        let mut drive = Drive::with_probe(&two_placements(settings), Oracle::default());
        // Every LPN is in lane 0. The newest write of the last one has placement 1.
        let stride = 4 * drive.geometry().units_per_page;
        for (number, placement) in [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0), (4, 1)] {
            submit(&mut drive, Op::Write, u64::from(number * stride), 1, 0, placement);
        }
        finish(&mut drive);
        let (geometry, ftl) = (drive.geometry(), drive.ftl());
        let superblock = |number| geometry.superblock_of(ftl.map.get(Lpn(number * stride)).unwrap());
        let [a, b] = [superblock(0), superblock(1)];
        assert!(a != b, "{settings:?}");
        assert_eq!([2, 3, 4].map(superblock), [a, b, b], "{settings:?}");
        let mark = |superblock: SuperblockId| drive.array().superblock(superblock).mark;
        assert_eq!([a, b].map(mark), [COPYBACKS_MAX + 1, COPYBACKS_MAX + 2]);
        let open = [0, 1].map(|placement| {
            let next = ftl.next_unit(LaneId(0), ftl.streams.host(placement).unwrap());
            geometry.superblock_of(next.unwrap())
        });
        assert_eq!(open, [a, b], "{settings:?}");
        drive.audit().unwrap();
        drive.probe().verdict().unwrap();
    }
}

#[test]
fn without_a_tag_all_writes_go_to_the_first_stream() {
    let mut drive = Drive::new(&two_placements(&[]));
    for lpn in [0, 4, 8] {
        submit(&mut drive, Op::Write, lpn, 1, 0, 0);
    }
    finish(&mut drive);
    let open = |placement| {
        let stream = drive.ftl().streams.host(placement).unwrap();
        drive.ftl().latest_superblock(LaneId(0), stream)
    };
    assert_eq!((open(0).map(|(_, allocated)| allocated), open(1)), (Some(3), None));
    assert_eq!(drive.ftl().streams.host(0), Some(StreamId::HOST));
}

#[test]
fn a_drive_without_handles_refuses_a_placement_with_the_remedy() {
    let mut drive = Drive::new(&spec(TINY, &[]));
    let tag = Tag { queue: 0, placement: 1 };
    let refused = drive.submit(&request(&drive, Op::Write, 0, PAGE).with_tag(tag)).unwrap_err();
    assert_eq!(refused, Refused::Placement { placement: 1 });
    let text = "the drive has no placement 1: submit the request with placement 0, or set placement.handles";
    assert_eq!(refused.to_string(), text);
    assert_eq!(drive.outstanding(), 0);
}

/// By operation (read, write, TRIM, flush): number and bytes of requests.
fn counts(by: &ByOp) -> [(u64, u64); 4] {
    by.0.each_ref().map(|op| op.as_ref().map_or((0, 0), |op| (op.count, op.bytes)))
}

#[test]
fn requests_are_counted_by_queue_and_by_placement_once_a_tag_is_not_0() {
    let mut drive = Drive::new(&two_placements(&[]));
    submit(&mut drive, Op::Write, 0, 1, 0, 0);
    submit(&mut drive, Op::Write, 1, 1, 0, 0);
    drive.run_until_idle(IDLE_LIMIT).unwrap();
    let summary_of = |drive: &mut Drive| {
        drive.finish_stats();
        summary(drive, &RunFacts::default())
    };
    assert!(drive.stats().by_tag.is_none());
    assert!(summary_of(&mut drive).get("by_tag").is_none());
    submit(&mut drive, Op::Read, 0, 1, 3, 0);
    submit(&mut drive, Op::Write, 8, 2, 3, 1);
    submit(&mut drive, Op::Write, 12, 1, 0, 1);
    drive.run_until_idle(IDLE_LIMIT).unwrap();
    let by_tag = drive.stats().by_tag.expect("a request has had a tag").clone();
    let queues: Vec<_> = by_tag.queues.iter().map(|(&queue, by)| (queue, counts(by))).collect();
    let none = (0, 0);
    assert_eq!(queues, [(0, [none, (3, 3 * PAGE), none, none]), (3, [(1, PAGE), (1, 2 * PAGE), none, none])]);
    let placements: Vec<_> =
        by_tag.placements.iter().map(|(&placement, by)| (placement, counts(by))).collect();
    assert_eq!(
        placements,
        [(0, [(1, PAGE), (2, 2 * PAGE), none, none]), (1, [none, (2, 3 * PAGE), none, none])]
    );
    let summary = summary_of(&mut drive);
    assert_eq!(summary["by_tag"]["queues"]["3"]["host"]["write"]["bytes"], 2 * PAGE);
    assert_eq!(summary["by_tag"]["placements"]["1"]["host"]["write"]["count"], 2);
    let of_read = &summary["latency_us"]["read"];
    assert_eq!(&summary["by_tag"]["queues"]["3"]["latency_us"]["read"], of_read, "the only read");
}

#[test]
fn a_drive_with_two_placements_collects_garbage_and_keeps_all_data() {
    let mut drive = Drive::with_probe(&two_placements(&[]), Oracle::default());
    let mut stream = Stream::new(1, "tags");
    let pages = drive.geometry().logical_bytes() / PAGE;
    for _ in 0..4000 {
        submit(&mut drive, Op::Write, stream.below(pages), 1, 0, stream.below(2) as u16);
        wait_for_fewer(&mut drive, 9);
    }
    finish(&mut drive);
    assert!(drive.stats().gc.victims > 100 && drive.failure().is_none());
    drive.audit().unwrap();
    drive.probe().verdict().unwrap();
}
