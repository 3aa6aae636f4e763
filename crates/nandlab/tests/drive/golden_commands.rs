//! Golden command lists: every flash operation of a small scenario, in order and with its start time, computed by hand.
//!
//! The drive has two dies on two channels. Each die has one plane; in the scenarios with several planes, two. Times are
//! in microseconds: tR 50, tPROG 200, tBERS 1000, transfer of a page 10, command and decode 0. So on an idle die a
//! write takes 210 and a read 60. A line of a list is the start time, the die, the operation, its cause, its LPN (of a
//! read or program) and its flash address.

use crate::common::{US, at, ns, spec};
use nandlab::base::geometry::{DieId, Geometry};
use nandlab::base::units::Time;
use nandlab::drive::{Drive, Failure};
use nandlab::host::{Op, Request};
use nandlab::probe::Probe;
use nandlab::sched::{FlashOp, Transaction, Watcher};

/// Each plane has 7 blocks of 4 pages, and 12 logical pages. 12 logical pages fill 3 blocks, so a plane has 4 blocks
/// more than its data needs. Under the default order CWDP, die 0 holds the even LPNs.
const DRIVE: &str = "[drive]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
     blocks_per_plane = 7\npages_per_block = 4\npage_size = '4KiB'\ncell = 'mlc'\nop = 1.33\nendurance = 1000\n\
     [timing]\nread = '50us'\nprogram = '200us'\nerase = '1ms'\nchannel_ns_per_byte = 2.44140625\ncommand = '0us'\n\
     decode = '0us'\n[gc]\nvictim = 'greedy'\nbackground_free = 0.001\nforeground_free = 0.0\nidle_after = '10ms'\n";

/// Records the operations that the dies start.
struct Recorder {
    geometry: Geometry,
    lines: Vec<String>,
}

impl Watcher for Recorder {
    fn on_issue(&mut self, now: Time, die: DieId, t: &Transaction) {
        assert_eq!(now.ns() % US, 0);
        let at = self.geometry.show(t.unit).to_string();
        let (kind, cause) = (format!("{:?}", t.kind).to_lowercase(), t.cause.name());
        let what = if t.kind == FlashOp::Erase {
            at.trim_end_matches(".pg0").to_owned()
        } else {
            format!("lpn {} {at}", t.lpn.0)
        };
        self.lines.push(format!("{} die {} {kind} {cause} {what}", now.ns() / US, die.0));
    }
}

impl Probe for Recorder {}

struct Scenario(Drive<Recorder>);

impl Scenario {
    fn new(sets: &[&str]) -> Self {
        let spec = spec(DRIVE, sets);
        let recorder = Recorder { geometry: Geometry::new(&spec.drive), lines: Vec::new() };
        Self(Drive::with_probe(&spec, recorder))
    }

    /// Submits a request now.
    fn submit(&mut self, op: Op, offset: u64, len: u64) -> &mut Self {
        let request = Request::new(op, offset, len).at(self.0.now());
        self.0.submit(&request).unwrap();
        self
    }

    fn write(&mut self, lpn: u64) -> &mut Self {
        self.submit(Op::Write, lpn * 4096, 4096)
    }

    fn read(&mut self, lpn: u64) -> &mut Self {
        self.submit(Op::Read, lpn * 4096, 4096)
    }

    /// Simulates until a request is completed.
    fn wait(&mut self) -> &mut Self {
        assert!(self.0.advance_to_completion(Time::NEVER));
        self.0.completions().for_each(drop);
        self
    }

    /// Writes LPNs one after another, each after the completion of the write before.
    fn write_each(&mut self, lpns: &[u64]) -> &mut Self {
        for &lpn in lpns {
            self.write(lpn).wait();
        }
        self
    }

    /// Clears the recorded operations.
    fn forget(&mut self) -> &mut Self {
        self.0.probe_mut().lines.clear();
        self
    }

    /// Lets the drive come to rest, and compares the recorded operations with `expected`.
    #[track_caller]
    fn commands(&mut self, expected: &str) {
        self.0.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        self.0.audit().unwrap();
        let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        assert_eq!(self.0.probe().lines, expected);
    }
}

/// The default order is channel first, then plane: LPNs 0 and 1 go to plane 0 of dies 0 and 1. LPNs 2 and 3 go to plane
/// 1 of the same dies; then follows the next page. Both dies work in parallel, each on one page at a time.
#[test]
fn a_sequential_write_visits_channels_then_planes_then_pages() {
    let mut scenario = Scenario::new(&["drive.planes_per_die=2"]);
    scenario.submit(Op::Write, 0, 8 * 4096).commands(
        "0 die 0 program host lpn 0 c0.d0.p0.b0.pg0
         0 die 1 program host lpn 1 c1.d0.p0.b0.pg0
         210 die 0 program host lpn 2 c0.d0.p1.b0.pg0
         210 die 1 program host lpn 3 c1.d0.p1.b0.pg0
         420 die 0 program host lpn 4 c0.d0.p0.b0.pg1
         420 die 1 program host lpn 5 c1.d0.p0.b0.pg1
         630 die 0 program host lpn 6 c0.d0.p1.b0.pg1
         630 die 1 program host lpn 7 c1.d0.p1.b0.pg1",
    );
}

/// The order is planes first, then channels. One multi-plane program writes the queued pages of both planes if they go
/// to the same page number. With its two transfers it takes 220. The list shows only the first page of each program.
/// All pages of the request are queued before a die starts, so every program is multi-plane.
#[test]
fn multi_plane_write_starts_with_one_command_for_both_planes() {
    let mut scenario =
        Scenario::new(&["drive.planes_per_die=2", "ftl.allocation=PCWD", "timing.multi_plane=true"]);
    scenario.submit(Op::Write, 0, 12 * 4096).commands(
        "0 die 0 program host lpn 0 c0.d0.p0.b0.pg0
         0 die 1 program host lpn 2 c1.d0.p0.b0.pg0
         220 die 0 program host lpn 4 c0.d0.p0.b0.pg1
         220 die 1 program host lpn 6 c1.d0.p0.b0.pg1
         440 die 0 program host lpn 8 c0.d0.p0.b0.pg2
         440 die 1 program host lpn 10 c1.d0.p0.b0.pg2",
    );
}

/// Fills die 0's blocks 0 to 2 with the even LPNs 0 to 22, then overwrites some of them with eight writes into blocks 3
/// and 4. The 20 writes end at 4200. Valid LPNs afterwards:
///   block 0: 2 4 6 (pages 1 2 3)     block 1: 12 14 (pages 2 3)     block 2: 20 22 (pages 2 3)
///   block 3: 0 8 (pages 0 1)         block 4: 16 18 10 (pages 1 2 3)
/// Blocks 5 and 6 are free. A further write of LPN 10 opens block 5. Only block 6, the reserve of GC, is then free, so
/// foreground GC starts. This write also invalidates page 3 of block 4, which leaves two valid pages there.
fn one_write_before_gc(scenario: &mut Scenario) -> &mut Scenario {
    scenario.write_each(&[0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22]);
    scenario.write_each(&[0, 8, 10, 16]).write_each(&[10, 16, 18, 10]);
    assert_eq!(scenario.0.now(), at(4_200 * US));
    scenario.forget()
}

/// The policy `greedy` takes the lowest-numbered block with the fewest valid pages: block 1 with LPNs 12 and 14 (block
/// 0 has three valid pages, blocks 2 to 4 have two as well). GC's two reads wait for the host's program. The first
/// copy's program waits for the second read, which has been queued longer. The copies open block 6. The erase after
/// both programs frees block 1, but the copies took block 6: again only one block is free, so GC goes on with block 2
/// (LPNs 20 and 22). Its copies fill block 6. Now blocks 1 and 2 are free, and GC stops.
#[test]
fn a_write_that_leaves_only_the_reserve_free_triggers_foreground_gc() {
    let mut scenario = Scenario::new(&[]);
    one_write_before_gc(&mut scenario).write(10).commands(
        "4200 die 0 program host lpn 10 c0.d0.p0.b5.pg0
         4410 die 0 read gc lpn 12 c0.d0.p0.b1.pg2
         4470 die 0 read gc lpn 14 c0.d0.p0.b1.pg3
         4530 die 0 program gc lpn 12 c0.d0.p0.b6.pg0
         4740 die 0 program gc lpn 14 c0.d0.p0.b6.pg1
         4950 die 0 erase gc c0.d0.p0.b1
         5950 die 0 read gc lpn 20 c0.d0.p0.b2.pg2
         6010 die 0 read gc lpn 22 c0.d0.p0.b2.pg3
         6070 die 0 program gc lpn 20 c0.d0.p0.b6.pg2
         6280 die 0 program gc lpn 22 c0.d0.p0.b6.pg3
         6490 die 0 erase gc c0.d0.p0.b2",
    );
}

/// After a TRIM of LPN 12, GC copies only LPN 14 from block 1 to block 6. The two pages of block 2 follow, and the last
/// page of block 6 remains erased.
#[test]
fn gc_does_not_copy_trimmed_units() {
    let mut scenario = Scenario::new(&[]);
    one_write_before_gc(&mut scenario).submit(Op::Trim, 12 * 4096, 4096).wait().write(10).commands(
        "4200 die 0 program host lpn 10 c0.d0.p0.b5.pg0
         4410 die 0 read gc lpn 14 c0.d0.p0.b1.pg3
         4470 die 0 program gc lpn 14 c0.d0.p0.b6.pg0
         4680 die 0 erase gc c0.d0.p0.b1
         5680 die 0 read gc lpn 20 c0.d0.p0.b2.pg2
         5740 die 0 read gc lpn 22 c0.d0.p0.b2.pg3
         5800 die 0 program gc lpn 20 c0.d0.p0.b6.pg1
         6010 die 0 program gc lpn 22 c0.d0.p0.b6.pg2
         6220 die 0 erase gc c0.d0.p0.b2",
    );
}

/// One TRIM deallocates LPNs 12 to 14 (LPN 13 on die 1 was never written). Block 1 then has no valid page: it is dead,
/// and is erased at once, because its die is idle. The write submitted after the TRIM waits for the erase, and opens
/// block 5. Blocks 6 and 1 remain free: one more than the reserve, so GC does not start.
#[test]
fn a_superblock_whose_units_are_all_trimmed_is_erased_at_once_without_gc() {
    let mut scenario = Scenario::new(&[]);
    one_write_before_gc(&mut scenario).submit(Op::Trim, 12 * 4096, 3 * 4096).wait().write(10).commands(
        "4200 die 0 erase gc c0.d0.p0.b1
         5200 die 0 program host lpn 10 c0.d0.p0.b5.pg0",
    );
    let gc = scenario.0.stats().counted.gc;
    assert_eq!((gc.dead_blocks, gc.victims), (1, 0));
}

/// All four pages of block 0 are overwritten. The new pages are mapped at admission, but the queued programs pin block
/// 0: it is dead only when the last program has ended.
#[test]
fn a_dead_superblock_is_erased_after_the_writes_that_invalidated_it() {
    let mut scenario = Scenario::new(&[]);
    scenario.write_each(&[0, 2, 4, 6]).forget().write(0).write(2).write(4).write(6).commands(
        "840 die 0 program host lpn 0 c0.d0.p0.b1.pg0
         1050 die 0 program host lpn 2 c0.d0.p0.b1.pg1
         1260 die 0 program host lpn 4 c0.d0.p0.b1.pg2
         1470 die 0 program host lpn 6 c0.d0.p0.b1.pg3
         1680 die 0 erase gc c0.d0.p0.b0",
    );
    let gc = scenario.0.stats().counted.gc;
    assert_eq!((gc.dead_blocks, gc.victims), (1, 0));
}

/// The host overwrites LPN 12 while GC's read of that page is queued. The write is mapped at admission, so the data
/// that GC reads is stale, and GC drops it. (Urgent GC operations and host writes are served by age: GC's reads are
/// older than the host's program of LPN 12, which is older than the copy of LPN 14.)
#[test]
fn gc_drops_the_copy_of_a_unit_that_the_host_has_overwritten() {
    let mut scenario = Scenario::new(&["gc.pacing='none'"]);
    one_write_before_gc(&mut scenario).write(10).write(12).commands(
        "4200 die 0 program host lpn 10 c0.d0.p0.b5.pg0
         4410 die 0 read gc lpn 12 c0.d0.p0.b1.pg2
         4470 die 0 read gc lpn 14 c0.d0.p0.b1.pg3
         4530 die 0 program host lpn 12 c0.d0.p0.b5.pg1
         4740 die 0 program gc lpn 14 c0.d0.p0.b6.pg0
         4950 die 0 erase gc c0.d0.p0.b1
         5950 die 0 read gc lpn 20 c0.d0.p0.b2.pg2
         6010 die 0 read gc lpn 22 c0.d0.p0.b2.pg3
         6070 die 0 program gc lpn 20 c0.d0.p0.b6.pg1
         6280 die 0 program gc lpn 22 c0.d0.p0.b6.pg2
         6490 die 0 erase gc c0.d0.p0.b2",
    );
}

/// A write of 512 bytes to a page with data in flash reads the page, merges, and programs. The same write to LPN 1,
/// which is unmapped, only programs.
#[test]
fn partial_write_reads_merges_and_programs() {
    let mut scenario = Scenario::new(&[]);
    scenario.write(0).wait().submit(Op::Write, 512, 512).submit(Op::Write, 4096 + 512, 512).commands(
        "0 die 0 program host lpn 0 c0.d0.p0.b0.pg0
         210 die 0 read host lpn 0 c0.d0.p0.b0.pg0
         210 die 1 program host lpn 1 c1.d0.p0.b0.pg0
         270 die 0 program host lpn 0 c0.d0.p0.b0.pg1",
    );
}

/// One request writes 24 sectors, from the middle of LPN 0 to the middle of LPN 3: LPNs 0 and 3 are merged, LPNs 1 and
/// 2 only programmed. On each die the read comes first, then the program of the whole page, then the program of the
/// merged page.
#[test]
fn unaligned_write_merges_its_first_and_last_unit_only() {
    let mut scenario = Scenario::new(&[]);
    scenario.write_each(&[0, 1, 2, 3]).forget();
    scenario.submit(Op::Write, 2048, 3 * 4096).commands(
        "840 die 0 read host lpn 0 c0.d0.p0.b0.pg0
         840 die 1 read host lpn 3 c1.d0.p0.b0.pg1
         900 die 0 program host lpn 2 c0.d0.p0.b0.pg2
         900 die 1 program host lpn 1 c1.d0.p0.b0.pg2
         1110 die 0 program host lpn 0 c0.d0.p0.b0.pg3
         1110 die 1 program host lpn 3 c1.d0.p0.b0.pg3",
    );
}

/// LPNs of writes that fill die 0's blocks 0 to 2 with the even LPNs 0 to 22, and then overwrite eight of them in
/// blocks 3 and 4. The 20 writes end at 4200. Valid LPNs afterwards:
///   block 0: 6 (page 3)   block 1: 12 14 (pages 2 3)   block 2: 22 (page 3)   block 3: 0 2 4 8   block 4: 10 16 18 20
/// Of the plane's 28 pages 12 are valid. GC's reserve and GC's open block take 8, so at most 8 pages can be free for
/// the host. Blocks 5 and 6 are free, and one of them is the reserve: 4 pages are free for the host.
const HALF_FREE: [u64; 20] = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 0, 2, 4, 8, 10, 16, 18, 20];

/// 4 of 8 pages is less than the threshold of 80 %. 10 ms after the last completion the drive counts as idle, and GC
/// empties block 0. This opens block 5 and frees block 0: still 4 pages are free for the host. So GC also empties block
/// 2, whose page goes to block 5. Now blocks 6, 0 and 2 are free, and with them all 8 pages.
#[test]
fn background_gc_starts_when_the_drive_is_idle_and_stops_at_its_threshold() {
    let mut scenario = Scenario::new(&["gc.background_free=0.8"]);
    scenario.write_each(&HALF_FREE).forget();
    assert_eq!(scenario.0.now(), at(4_200 * US));
    scenario.commands(
        "14200 die 0 read gc lpn 6 c0.d0.p0.b0.pg3
         14260 die 0 program gc lpn 6 c0.d0.p0.b5.pg0
         14470 die 0 erase gc c0.d0.p0.b0
         15470 die 0 read gc lpn 22 c0.d0.p0.b2.pg3
         15530 die 0 program gc lpn 22 c0.d0.p0.b5.pg1
         15740 die 0 erase gc c0.d0.p0.b2",
    );
}

/// 4 of 8 pages is not less than the threshold of 50 %.
#[test]
fn background_gc_does_not_start_at_its_threshold() {
    let mut scenario = Scenario::new(&["gc.background_free=0.5"]);
    scenario.write_each(&HALF_FREE).forget();
    scenario.commands("");
}

/// `gc.idle_valid_max` allows victims with at most 20 % valid pages; the blocks with the fewest valid
/// pages have 25 %.
#[test]
fn background_gc_does_not_take_victims_above_idle_valid_max() {
    let mut scenario = Scenario::new(&["gc.background_free=0.8", "gc.idle_valid_max=0.2"]);
    scenario.write_each(&HALF_FREE).forget();
    scenario.commands("");
}

/// A request during the 10 ms of idle time restarts the idle time when the request is completed, at 9200 + 60.
#[test]
fn idle_time_counts_from_the_last_completion() {
    let mut scenario = Scenario::new(&["gc.background_free=0.8"]);
    scenario.write_each(&HALF_FREE).forget();
    scenario.0.advance(at(9_200 * US));
    scenario.read(22).commands(
        "9200 die 0 read host lpn 22 c0.d0.p0.b2.pg3
         19260 die 0 read gc lpn 6 c0.d0.p0.b0.pg3
         19320 die 0 program gc lpn 6 c0.d0.p0.b5.pg0
         19530 die 0 erase gc c0.d0.p0.b0
         20530 die 0 read gc lpn 22 c0.d0.p0.b2.pg3
         20590 die 0 program gc lpn 22 c0.d0.p0.b5.pg1
         20800 die 0 erase gc c0.d0.p0.b2",
    );
}

/// Submits writes of LPNs 2 and 4 and a read of LPN 0: a program and a read wait behind the program of LPN 2.
fn overtaking(scheduler: &str) -> Scenario {
    let mut scenario = Scenario::new(&[&format!("timing.scheduler={scheduler}")]);
    scenario.write_each(&[0]).forget().write(2).write(4).read(0);
    scenario
}

#[test]
fn read_first_lets_a_host_read_overtake_a_host_write() {
    overtaking("read-first").commands(
        "210 die 0 program host lpn 2 c0.d0.p0.b0.pg1
         420 die 0 read host lpn 0 c0.d0.p0.b0.pg0
         480 die 0 program host lpn 4 c0.d0.p0.b0.pg2",
    );
}

#[test]
fn fcfs_keeps_a_host_read_in_its_place() {
    overtaking("fcfs").commands(
        "210 die 0 program host lpn 2 c0.d0.p0.b0.pg1
         420 die 0 program host lpn 4 c0.d0.p0.b0.pg2
         630 die 0 read host lpn 0 c0.d0.p0.b0.pg0",
    );
}

/// As in `one_write_before_gc`, but a write of LPN 4 and a read of LPN 2 are submitted together with the write of LPN
/// 10. The host read is served before GC. The write of LPN 4 is younger than GC's two reads and older than the programs
/// of their copies, so it is served between them. The second victim is block 0: the admitted write of LPN 4 has left
/// two valid pages there, LPNs 2 and 6.
#[test]
fn urgent_gc_is_served_after_host_reads_and_by_age_among_host_writes() {
    let mut scenario = Scenario::new(&["gc.pacing='none'"]);
    one_write_before_gc(&mut scenario).write(10).write(4).read(2).commands(
        "4200 die 0 program host lpn 10 c0.d0.p0.b5.pg0
         4410 die 0 read host lpn 2 c0.d0.p0.b0.pg1
         4470 die 0 read gc lpn 12 c0.d0.p0.b1.pg2
         4530 die 0 read gc lpn 14 c0.d0.p0.b1.pg3
         4590 die 0 program host lpn 4 c0.d0.p0.b5.pg1
         4800 die 0 program gc lpn 12 c0.d0.p0.b6.pg0
         5010 die 0 program gc lpn 14 c0.d0.p0.b6.pg1
         5220 die 0 erase gc c0.d0.p0.b1
         6220 die 0 read gc lpn 2 c0.d0.p0.b0.pg1
         6280 die 0 read gc lpn 6 c0.d0.p0.b0.pg3
         6340 die 0 program gc lpn 2 c0.d0.p0.b6.pg2
         6550 die 0 program gc lpn 6 c0.d0.p0.b6.pg3
         6760 die 0 erase gc c0.d0.p0.b0",
    );
}

/// The requests of the scenario above with `gc.foreground = "blocking"`. The write of LPN 10 opens the last block that
/// the host may have, so it waits for the cleaning, and the host's read of LPN 2 and write of LPN 4 wait behind it. The
/// erase starts at 4740 instead of 5220. The plane is still short of space, so the next cleaning follows at once. Its
/// victim has the old page of LPN 4: before the erase the die serves the host until the program of LPN 4 has ended.
#[test]
fn blocking_gc_cleans_its_victim_without_interruption() {
    let mut scenario = Scenario::new(&["gc.pacing='none'", "gc.foreground='blocking'"]);
    one_write_before_gc(&mut scenario).write(10).write(4).read(2).commands(
        "4200 die 0 read gc lpn 12 c0.d0.p0.b1.pg2
         4260 die 0 read gc lpn 14 c0.d0.p0.b1.pg3
         4320 die 0 program gc lpn 12 c0.d0.p0.b6.pg0
         4530 die 0 program gc lpn 14 c0.d0.p0.b6.pg1
         4740 die 0 erase gc c0.d0.p0.b1
         5740 die 0 read gc lpn 2 c0.d0.p0.b0.pg1
         5800 die 0 read gc lpn 6 c0.d0.p0.b0.pg3
         5860 die 0 program gc lpn 2 c0.d0.p0.b6.pg2
         6070 die 0 program gc lpn 6 c0.d0.p0.b6.pg3
         6280 die 0 read host lpn 2 c0.d0.p0.b0.pg1
         6340 die 0 program host lpn 10 c0.d0.p0.b5.pg0
         6550 die 0 program host lpn 4 c0.d0.p0.b5.pg1
         6760 die 0 erase gc c0.d0.p0.b0",
    );
}

/// LPN 12 is written while GC's read of it is queued. The program of this write pins the victim, so the erase of the
/// victim has to wait for the program. So the host operations are served during the cleaning up to this program: the
/// read of LPN 0 and the writes of LPNs 10 and 12.
#[test]
fn blocking_gc_serves_operations_that_its_erase_waits_for() {
    let mut scenario = Scenario::new(&["gc.pacing='none'", "gc.foreground='blocking'"]);
    one_write_before_gc(&mut scenario).write(10).read(0).write(12).commands(
        "4200 die 0 read gc lpn 12 c0.d0.p0.b1.pg2
         4260 die 0 read gc lpn 14 c0.d0.p0.b1.pg3
         4320 die 0 program gc lpn 14 c0.d0.p0.b6.pg0
         4530 die 0 read host lpn 0 c0.d0.p0.b3.pg0
         4590 die 0 program host lpn 10 c0.d0.p0.b5.pg0
         4800 die 0 program host lpn 12 c0.d0.p0.b5.pg1
         5010 die 0 erase gc c0.d0.p0.b1
         6010 die 0 read gc lpn 20 c0.d0.p0.b2.pg2
         6070 die 0 read gc lpn 22 c0.d0.p0.b2.pg3
         6130 die 0 program gc lpn 20 c0.d0.p0.b6.pg1
         6340 die 0 program gc lpn 22 c0.d0.p0.b6.pg2
         6550 die 0 erase gc c0.d0.p0.b2",
    );
}

/// A drive that is not at rest within the limit reports its outstanding requests, and can continue afterwards.
#[test]
fn a_drive_not_at_rest_in_time_reports_its_outstanding_requests() {
    let mut scenario = Scenario::new(&[]);
    scenario.write(0).write(2);
    let failure = scenario.0.run_until_idle(ns(250 * US)).unwrap_err();
    assert!(matches!(failure, Failure::Restless { .. }));
    assert_eq!(
        failure.to_string(),
        "after 0.00025 s of simulated time the drive is not at rest: 1 requests are outstanding"
    );
    assert_eq!(scenario.0.failure(), None, "the drive has not failed");
    scenario.0.run_until_idle(ns(300 * US)).unwrap();
    assert_eq!((scenario.0.outstanding(), scenario.0.completions().count()), (0, 2));
}
