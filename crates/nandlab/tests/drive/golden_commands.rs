//! Golden command lists: every flash command of a small scenario, in order and with its time, worked out by hand.
//!
//! The drive has two dies, each the only one of its channel, of one plane (two where a scenario says so). Times are
//! microseconds: tR 50, tPROG 200, tBERS 1000, a page takes 10 on the channel, command and decode nothing. So on an
//! idle die a write takes 210 and a read 60. A line is when and where a die takes up which operation, and why.

use crate::common::{US, at, ns, spec};
use nandlab::base::geometry::{DieId, Geometry};
use nandlab::base::units::Time;
use nandlab::drive::{Drive, Failure};
use nandlab::host::{Op, Request};
use nandlab::probe::Probe;
use nandlab::sched::{FlashOp, Transaction, Watcher};

/// Each plane has 7 blocks of 4 pages and 12 logical pages, that is 3 blocks: at least 4 blocks are spare. Under the
/// default order CWDP, die 0 holds the even LPNs.
const DRIVE: &str = "[drive]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
     blocks_per_plane = 7\npages_per_block = 4\npage_size = '4KiB'\ncell = 'mlc'\nop = 1.33\nendurance = 1000\n\
     [timing]\nread = '50us'\nprogram = '200us'\nerase = '1ms'\nchannel_ns_per_byte = 2.44140625\ncommand = '0us'\n\
     decode = '0us'\n[gc]\nvictim = 'greedy'\nbackground_free = 0.001\nforeground_free = 0.0\nidle_after = '10ms'\n";

/// Writes down what each die takes up.
struct Recorder {
    geometry: Geometry,
    lines: Vec<String>,
}

impl Watcher for Recorder {
    fn on_issue(&mut self, now: Time, die: DieId, t: &Transaction) {
        assert_eq!(now.ns() % US, 0);
        let at = self.geometry.show(t.ppn).to_string();
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
        let request = Request { arrival: self.0.now(), op, fua: false, offset, len };
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

    /// Writes LPNs one after another, each when the one before is done.
    fn write_each(&mut self, lpns: &[u64]) -> &mut Self {
        for &lpn in lpns {
            self.write(lpn).wait();
        }
        self
    }

    /// Forgets the commands so far.
    fn forget(&mut self) -> &mut Self {
        self.0.probe_mut().lines.clear();
        self
    }

    /// Lets everything end, and compares.
    #[track_caller]
    fn commands(&mut self, expected: &str) {
        self.0.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        self.0.audit().unwrap();
        let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        assert_eq!(self.0.probe().lines, expected);
    }
}

/// Channel first, then plane: LPNs 0, 1 go to plane 0 of dies 0, 1; LPNs 2, 3 to their plane 1; then the next page.
/// Both dies work side by side, each on one page at a time.
#[test]
fn sequential_write_goes_round_channels_then_planes_then_pages() {
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

/// Planes first, then channels. With multi-plane on, what waits on the two planes at one page number is one operation,
/// and two transfers: 220. All pages of the request are queued before a die starts, so none goes alone.
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

/// Fills die 0's blocks 0 to 2 with the even LPNs 0 to 22, then overwrites in blocks 3 and 4: 20 writes, until 4200.
/// Valid afterwards:
///   block 0: 2 4 6 (pages 1 2 3)     block 1: 12 14 (pages 2 3)     block 2: 20 22 (pages 2 3)
///   block 3: 0 8 (pages 0 1)         block 4: 16 18 10 (pages 1 2 3)
/// Blocks 5 and 6 are free. A write of LPN 10 then opens block 5, which leaves one free block, GC's reserve: that is
/// when foreground GC starts. It also takes block 4 down to two valid pages.
fn on_the_brink(scenario: &mut Scenario) -> &mut Scenario {
    scenario.write_each(&[0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22]);
    scenario.write_each(&[0, 8, 10, 16]).write_each(&[10, 16, 18, 10]);
    assert_eq!(scenario.0.now(), at(4_200 * US));
    scenario.forget()
}

/// Greedy takes the lowest-numbered block with the fewest valid pages: block 1 with LPNs 12 and 14 (block 0 has three
/// valid pages, blocks 2 to 4 have two as well). Its two reads wait for the write; the first program waits for the
/// second read, which has been queued longer. The copies open block 6. The erase comes when both are programmed, and
/// gives a block back, but block 6 took one: still one free block, so GC goes on with block 2 (20 and 22), whose
/// copies fill block 6. With blocks 1 and 2 free it stops.
#[test]
fn overwrite_that_takes_the_last_free_block_triggers_foreground_gc() {
    let mut scenario = Scenario::new(&[]);
    on_the_brink(&mut scenario).write(10).commands(
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

/// TRIM of LPN 12 leaves block 1 with LPN 14 alone: that is all GC copies from it. Block 6 then has room for the two
/// pages of block 2, and one over.
#[test]
fn gc_does_not_copy_what_was_trimmed() {
    let mut scenario = Scenario::new(&[]);
    on_the_brink(&mut scenario).submit(Op::Trim, 12 * 4096, 4096).wait().write(10).commands(
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

/// With LPNs 12 and 14 trimmed (12 to 14 is one TRIM of three pages, of which die 1's LPN 13 was never written)
/// block 1 holds nothing: it is dead, and erased at once, since the die has nothing else to do. The write that comes with it
/// waits for that. It opens block 5, which leaves blocks 6 and 1: one more than the reserve, and no GC.
#[test]
fn a_wholly_trimmed_block_is_erased_at_once_and_without_gc() {
    let mut scenario = Scenario::new(&[]);
    on_the_brink(&mut scenario).submit(Op::Trim, 12 * 4096, 3 * 4096).wait().write(10).commands(
        "4200 die 0 erase gc c0.d0.p0.b1
         5200 die 0 program host lpn 10 c0.d0.p0.b5.pg0",
    );
    let gc = scenario.0.stats().gc;
    assert_eq!((gc.dead_blocks, gc.victims), (1, 0));
}

/// All four pages of block 0 are overwritten. Their new copies are mapped at once, but the old ones are what is in flash until
/// the programs end: block 0 is dead when the last of them does.
#[test]
fn a_dead_block_is_erased_behind_the_writes_that_have_killed_it() {
    let mut scenario = Scenario::new(&[]);
    scenario.write_each(&[0, 2, 4, 6]).forget().write(0).write(2).write(4).write(6).commands(
        "840 die 0 program host lpn 0 c0.d0.p0.b1.pg0
         1050 die 0 program host lpn 2 c0.d0.p0.b1.pg1
         1260 die 0 program host lpn 4 c0.d0.p0.b1.pg2
         1470 die 0 program host lpn 6 c0.d0.p0.b1.pg3
         1680 die 0 erase gc c0.d0.p0.b0",
    );
    let gc = scenario.0.stats().gc;
    assert_eq!((gc.dead_blocks, gc.victims), (1, 0));
}

/// The host overwrites LPN 12 while GC's read of it waits: the write is mapped when it is admitted, so the copy that
/// GC has read is stale and is dropped. (GC is urgent and takes turns with host writes by age: its reads are older than
/// the host's program of LPN 12, which is older than the copy of LPN 14.)
#[test]
fn gc_drops_a_copy_the_host_has_overwritten() {
    let mut scenario = Scenario::new(&["gc.pacing='none'"]);
    on_the_brink(&mut scenario).write(10).write(12).commands(
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

/// 512 bytes into a page that is in flash: read, merge, program. LPN 1's page was never written: program only.
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

/// Six sectors from the middle of LPN 0 over the whole of LPNs 1 and 2 into LPN 3 is one request of four pages: the
/// first and last are merged, the middle ones only programmed. On each die the read goes first, then the program of the
/// page that needs none, then that of the merged page.
#[test]
fn unaligned_write_merges_its_first_and_last_page_only() {
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

/// Fills blocks 0 to 2 with the even LPNs 0 to 22 and overwrites eight of them in blocks 3 and 4: 20 writes, until 4200.
/// Valid afterwards:
///   block 0: 6 (page 3)   block 1: 12 14 (pages 2 3)   block 2: 22 (page 3)   block 3: 0 2 4 8   block 4: 10 16 18 20
/// Of the 28 pages 12 are valid, and GC's reserve and the block that it may open take 8: 8 can be free for the host. With
/// blocks 5 and 6 free, one of them the reserve, 4 are.
const HALF_FREE: [u64; 20] = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 0, 2, 4, 8, 10, 16, 18, 20];

/// Half is less than the 80 % wanted. 10 ms after the last completion the drive counts as idle and empties block 0. That opens
/// block 5 and gains block 0: still 4 pages. So it empties block 2, too. With blocks 6, 0 and 2 all 8 are free.
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

/// Half is not less than half.
#[test]
fn background_gc_does_not_start_at_its_threshold() {
    let mut scenario = Scenario::new(&["gc.background_free=0.5"]);
    scenario.write_each(&HALF_FREE).forget();
    scenario.commands("");
}

/// The best victim may be at most 20 % valid, and one page in four is more.
#[test]
fn background_gc_leaves_victims_that_are_too_full_alone() {
    let mut scenario = Scenario::new(&["gc.background_free=0.8", "gc.idle_valid_max=0.2"]);
    scenario.write_each(&HALF_FREE).forget();
    scenario.commands("");
}

/// A request within the 10 ms starts them anew: its completion is at 4200 + 5000 + 60.
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

/// Behind the program of LPN 2 wait a program of LPN 4, then a read of LPN 0.
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

/// As in the foreground GC scenario, but with the write come a second one, of LPN 4, and a read of LPN 2. The read
/// goes ahead of all. The write of LPN 4 is younger than GC's two reads and older than the programs that follow them, so
/// it is served between. The second victim is block 0 now, since that write, once admitted, left LPNs 2 and 6 there.
#[test]
fn urgent_gc_goes_behind_host_reads_and_takes_turns_with_host_writes_by_age() {
    let mut scenario = Scenario::new(&["gc.pacing='none'"]);
    on_the_brink(&mut scenario).write(10).write(4).read(2).commands(
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

/// The same burst with `gc.foreground = "blocking"`. The write of LPN 10 was there before the cleaning; the read and the
/// write that came after it wait for the whole of it. Its erase runs at 4950, where it was 5220, and the read ends at 6010,
/// where it was 4470. What waits has its turn before the next cleaning.
#[test]
fn blocking_gc_cleans_its_victim_in_one_piece() {
    let mut scenario = Scenario::new(&["gc.pacing='none'", "gc.foreground='blocking'"]);
    on_the_brink(&mut scenario).write(10).write(4).read(2).commands(
        "4200 die 0 program host lpn 10 c0.d0.p0.b5.pg0
         4410 die 0 read gc lpn 12 c0.d0.p0.b1.pg2
         4470 die 0 read gc lpn 14 c0.d0.p0.b1.pg3
         4530 die 0 program gc lpn 12 c0.d0.p0.b6.pg0
         4740 die 0 program gc lpn 14 c0.d0.p0.b6.pg1
         4950 die 0 erase gc c0.d0.p0.b1
         5950 die 0 read host lpn 2 c0.d0.p0.b0.pg1
         6010 die 0 program host lpn 4 c0.d0.p0.b5.pg1
         6220 die 0 read gc lpn 2 c0.d0.p0.b0.pg1
         6280 die 0 read gc lpn 6 c0.d0.p0.b0.pg3
         6340 die 0 program gc lpn 2 c0.d0.p0.b6.pg2
         6550 die 0 program gc lpn 6 c0.d0.p0.b6.pg3
         6760 die 0 erase gc c0.d0.p0.b0",
    );
}

/// LPN 12 is written while its copy is under way. The victim, which holds what that write replaces, cannot be erased before
/// the write is in flash: so the write goes first, and the read of LPN 0, which has come before it, too.
#[test]
fn blocking_gc_lets_by_what_its_erase_has_to_wait_for() {
    let mut scenario = Scenario::new(&["gc.pacing='none'", "gc.foreground='blocking'"]);
    on_the_brink(&mut scenario).write(10).read(0).write(12).commands(
        "4200 die 0 program host lpn 10 c0.d0.p0.b5.pg0
         4410 die 0 read gc lpn 12 c0.d0.p0.b1.pg2
         4470 die 0 read gc lpn 14 c0.d0.p0.b1.pg3
         4530 die 0 program gc lpn 14 c0.d0.p0.b6.pg0
         4740 die 0 read host lpn 0 c0.d0.p0.b3.pg0
         4800 die 0 program host lpn 12 c0.d0.p0.b5.pg1
         5010 die 0 erase gc c0.d0.p0.b1
         6010 die 0 read gc lpn 20 c0.d0.p0.b2.pg2
         6070 die 0 read gc lpn 22 c0.d0.p0.b2.pg3
         6130 die 0 program gc lpn 20 c0.d0.p0.b6.pg1
         6340 die 0 program gc lpn 22 c0.d0.p0.b6.pg2
         6550 die 0 erase gc c0.d0.p0.b2",
    );
}

/// A drive that is not at rest when the time is up says what it still does, and goes on when it is let.
#[test]
fn what_is_not_at_rest_in_time_says_so() {
    let mut scenario = Scenario::new(&[]);
    scenario.write(0).write(2);
    let failure = scenario.0.run_until_idle(ns(250 * US)).unwrap_err();
    assert!(matches!(failure, Failure::Restless { .. }));
    assert_eq!(
        failure.to_string(),
        "after 0.00025 s of simulated time the drive is not at rest: 1 requests are outstanding"
    );
    assert_eq!(scenario.0.failure(), None, "nothing is wrong with it");
    scenario.0.run_until_idle(ns(300 * US)).unwrap();
    assert_eq!((scenario.0.outstanding(), scenario.0.completions().count()), (0, 2));
}
