//! The times of the device to the nanosecond: dies, channels and the off-chip path, without a drive.
//!
//! A test issues operations at chosen times. [`Rig::probe`] returns the end of one more operation that is issued now;
//! for this it replays all issued operations on a fresh device.

use crate::common::spec;
use nandlab::base::geometry::{DieId, Geometry, LaneId, Layout, Lpn, ProgramOrder, Superblock, SuperblockId};
use nandlab::base::rng::Stream;
use nandlab::base::slab::Node;
use nandlab::base::units::{Span, Time};
use nandlab::drive::spec::{Cell, CommandTimes, Retry, Scheduler, Spec, SuspendSpec, SuspendTimes};
use nandlab::flash::{Ageing, CellTimes, ProgramTime, Shape, ShapeId};
use nandlab::probe::NoProbe;
use nandlab::sched::{
    Agenda, Cause, Class, Device, Ended, FlashOp, Owner, Phase, Slot, Start, Transaction, Transactions,
};
use nandlab::sched::{CopybackGap, OffChipRate, Timing, Watcher, Way};

/// tR in nanoseconds.
const R: u64 = 50_000;
/// Transfer of a page of 4096 bytes at 2.5 ns per byte.
const T: u64 = 10_240;
/// tPROG.
const P: u64 = 900_000;
/// tBERS.
const E: u64 = 3_500_000;

/// Two channels of two dies of two planes: dies 0 and 1 share channel 0, dies 2 and 3 channel 1.
const FOUR_DIES: &str = "[drive]\nchannels = 2\nchips_per_channel = 2\ndies_per_chip = 1\nplanes_per_die = 2\n\
     blocks_per_plane = 16\npages_per_block = 8\npage_size = '4KiB'\ncell = 'mlc'\nop = 0.5\n\
     [timing]\nread = '50us'\nprogram = '900us'\nerase = '3.5ms'\nchannel_ns_per_byte = 2.5\n\
     command = '0us'\ndecode = '15us'\nscheduler = 'fcfs'\n";

#[derive(Clone, Copy, Debug)]
struct Op {
    kind: FlashOp,
    class: Class,
    die: u32,
    plane: u32,
    block: u32,
    page: u32,
    /// Read level at which the first try reads.
    level: u8,
    /// Lowest read level that decodes the page.
    needed: u8,
    /// The page of block 0 that a copyback copies; `None`: the page that it programs.
    source: Option<u32>,
    /// Array operations that sense the pages of a copyback.
    senses: u8,
}

fn op(kind: FlashOp, die: u32) -> Op {
    let (class, source) = (Class::Background, None);
    Op { kind, class, die, plane: 0, block: 0, page: 0, level: 1, needed: 1, source, senses: 1 }
}

fn read(die: u32) -> Op {
    op(FlashOp::Read, die)
}

fn program(die: u32) -> Op {
    op(FlashOp::Program, die)
}

fn erase(die: u32) -> Op {
    op(FlashOp::Erase, die)
}

fn copyback(die: u32) -> Op {
    op(FlashOp::Copyback, die)
}

impl Op {
    fn plane(self, plane: u32) -> Self {
        Self { plane, ..self }
    }

    fn block(self, block: u32) -> Self {
        Self { block, ..self }
    }

    fn page(self, page: u32) -> Self {
        Self { page, ..self }
    }

    fn class(self, class: Class) -> Self {
        Self { class, ..self }
    }

    fn source(self, source: u32) -> Self {
        Self { source: Some(source), ..self }
    }

    fn levels(self, level: u8, needed: u8) -> Self {
        Self { level, needed, ..self }
    }
}

/// Returns the number of an operation in the order of issue.
fn number_of(transaction: &Transaction) -> usize {
    match transaction.owner {
        Owner::FlushUnit(number) => number as usize,
        other => panic!("the rig issues no operations of {other:?}"),
    }
}

/// Every phase, as (number of the operation in the order of issue, phase, start, end).
#[derive(Default)]
struct Phases(Vec<(usize, Phase, u64, u64)>);

impl Watcher for Phases {
    fn on_phase(&mut self, start: Time, end: Time, _: DieId, _: u32, phase: Phase, t: &Transaction) {
        self.0.push((number_of(t), phase, start.ns(), end.ns()));
    }
}

/// A watcher for which the device may reserve its channels.
struct Unobserved;

impl Watcher for Unobserved {
    fn sees_phases(&self) -> bool {
        false
    }
}

struct Rig {
    spec: Spec,
    superblock: Superblock,
    gap: Option<CopybackGap>,
    issued: Vec<(u64, Op)>,
    promoted: Vec<u32>,
    now: u64,
}

/// The result of a replay.
struct Run {
    device: Device,
    ends: Vec<Option<u64>>,
    phases: Vec<(usize, Phase, u64, u64)>,
}

impl Run {
    fn die_busy_ns(&self, die: u32, now: u64) -> u64 {
        self.device.die_busy_ns(DieId(die), Time::from_ns(now)).ns()
    }

    fn channel_busy_ns(&self, channel: u32, now: u64) -> u64 {
        self.device.channel_busy_ns(channel, Time::from_ns(now)).ns()
    }

    fn phases_of(&self, operation: usize) -> Vec<(Phase, u64, u64)> {
        self.phases.iter().filter(|p| p.0 == operation).map(|&(_, phase, a, b)| (phase, a, b)).collect()
    }
}

impl Rig {
    fn new(text: &str, sets: &[&str]) -> Self {
        let (superblock, issued, promoted) = (Superblock::Plane, Vec::new(), Vec::new());
        Self { spec: spec(text, sets), superblock, gap: None, issued, promoted, now: 0 }
    }

    fn geometry(&self) -> Geometry {
        Geometry::with(&self.spec.drive, Layout { units_per_page: 1, superblock: self.superblock })
    }

    /// Sets the time at which the next operations are issued.
    fn at(&mut self, time: u64) -> &mut Self {
        assert!(time >= self.now);
        self.now = time;
        self
    }

    fn issue(&mut self, op: Op) -> &mut Self {
        self.issued.push((self.now, op));
        self
    }

    /// Replays the operations `issued` on a fresh device up to the time `until`. A device whose phases nobody observes
    /// ends every operation at the same time.
    fn replay(&self, issued: &[(u64, Op)], until: u64) -> Run {
        let mut phases = Phases::default();
        let (device, ends) = self.replay_before(issued, until, &mut phases);
        let (reserving, its_ends) = self.replay_before(issued, until, &mut Unobserved);
        assert_eq!(ends, its_ends);
        let run = Run { device, ends, phases: phases.0 };
        let geometry = self.geometry();
        let now = Time::from_ns(until.min(run.ends.iter().flatten().copied().max().unwrap_or(0)));
        for channel in 0..geometry.channels {
            let of = |device: &Device| device.channel_busy_ns(channel, now);
            assert_eq!(of(&run.device), of(&reserving), "channel {channel}");
        }
        for die in (0..geometry.dies).map(DieId) {
            assert_eq!(run.device.die_busy_ns(die, now), reserving.die_busy_ns(die, now), "{die:?}");
        }
        run
    }

    fn replay_before<W: Watcher>(
        &self,
        issued: &[(u64, Op)],
        until: u64,
        watcher: &mut W,
    ) -> (Device, Vec<Option<u64>>) {
        let geometry = self.geometry();
        let timing = Timing::new(&self.spec.timing, &geometry, self.spec.shapes(&geometry));
        let dies = &self.spec.timing;
        let mut device = Device::new(&geometry, timing, dies.scheduler, dies.multi_plane, self.gap, false);
        for &die in &self.promoted {
            device.promote(DieId(die));
        }
        let (mut pool, mut agenda) = (Transactions::default(), Agenda::new(geometry.dies as usize));
        let mut ends = vec![None; issued.len()];
        let mut pending = issued.iter().enumerate().peekable();
        loop {
            let (next, clock) = agenda.first();
            let time = next.ns();
            if let Some(&(number, &(at, op))) = pending.peek()
                && (at < time)
            {
                pending.next();
                let members = geometry.planes_per_lane;
                let lane = op.die * geometry.lanes_per_die + op.plane / members;
                let index = op.page * members + op.plane % members;
                let unit =
                    geometry.unit(SuperblockId(lane * geometry.superblocks_per_lane + op.block), index);
                let first = SuperblockId(lane * geometry.superblocks_per_lane);
                let source = op.source.map(|page| geometry.unit(first, page * members));
                let (_, sensed) = geometry.split(source.unwrap_or(unit));
                let extent = u64::from(op.senses) * device.timing().shapes().first().read_ns(sensed).ns();
                let slot = pool.insert(Transaction {
                    order: 0,
                    shape: ShapeId::FIRST,
                    unit,
                    lpn: Lpn(0),
                    owner: Owner::FlushUnit(number as u32),
                    replaces: source,
                    next: None,
                    kind: op.kind,
                    cause: Cause::Host,
                    class: op.class,
                    start: Start::Policy,
                    level: op.level,
                    needed: op.needed,
                    is_beyond: false,
                    tries: 0,
                    skips: 0,
                    partner: None,
                    more: None,
                    goes_along: false,
                    has_part: false,
                    extent: if op.kind == FlashOp::Copyback { extent as u32 } else { 0 },
                    has_arrived: false,
                    index,
                    plane_in_die: op.plane as u8,
                    die: DieId(op.die),
                });
                device.submit(&mut pool, slot);
                // Operations issued at the same time belong to one request: dies start after the last of these
                // operations.
                if pending.peek().is_none_or(|&(_, &(after, _))| after > at) {
                    device.start(&mut pool, &mut agenda, watcher, Time::from_ns(at));
                }
                continue;
            }
            if time > until || time == u64::MAX {
                break;
            }
            let mut done = |pool: &mut Transactions, slot: Slot| {
                let next = pool[slot].next;
                ends[number_of(&pool.remove(slot))] = Some(time);
                next
            };
            match device.on_clock(&mut pool, &mut agenda, watcher, next, DieId(clock)) {
                Ended::Nothing | Ended::Sense(_) => continue,
                // Decoding takes no time here: after a failed try the read returns to its die before the die starts its
                // next operation.
                Ended::Page(slot) if pool[slot].level < pool[slot].needed => {
                    pool[slot].level += 1;
                    pool[slot].tries += 1;
                    device.submit_again(&mut pool, slot);
                }
                Ended::Page(slot) => {
                    done(&mut pool, slot);
                }
                Ended::Batch(first) => {
                    let mut rest = Some(first);
                    while let Some(slot) = rest {
                        rest = done(&mut pool, slot);
                    }
                }
            }
            device.start(&mut pool, &mut agenda, watcher, next);
            device.start_next(&mut pool, &mut agenda, watcher, next, DieId(clock));
        }
        if until == u64::MAX {
            assert_eq!(pool.live(), 0, "an operation never ended");
        }
        (device, ends)
    }

    fn run(&self) -> Run {
        self.replay(&self.issued, u64::MAX)
    }

    fn ends(&self) -> Vec<u64> {
        self.run().ends.into_iter().map(|end| end.expect("every operation ends")).collect()
    }

    /// Returns the end of `op` if it is issued now.
    fn probe(&self, op: Op) -> u64 {
        let mut issued = self.issued.clone();
        issued.push((self.now, op));
        self.replay(&issued, u64::MAX).ends.last().copied().flatten().expect("the last operation ends")
    }

    #[track_caller]
    fn assert_earliest_ready_at(&self, op: Op, time: u64) -> &Self {
        assert_eq!(self.probe(op), time, "{op:?} issued at {}", self.now);
        self
    }
}

#[test]
fn single_operations_take_the_sum_of_their_phases() {
    let mut rig = Rig::new(FOUR_DIES, &[]);
    for start in [0, 12_345] {
        rig.at(start)
            .assert_earliest_ready_at(read(0), start + R + T)
            .assert_earliest_ready_at(program(0), start + T + P)
            .assert_earliest_ready_at(erase(0), start + E)
            .assert_earliest_ready_at(copyback(0), start + R + P);
    }
}

#[test]
fn every_operation_takes_the_command_time_once() {
    let rig = Rig::new(FOUR_DIES, &["timing.command=700ns"]);
    rig.assert_earliest_ready_at(read(1), 700 + R + T)
        .assert_earliest_ready_at(program(1), 700 + T + P)
        .assert_earliest_ready_at(erase(1), 700 + E)
        .assert_earliest_ready_at(copyback(1), 700 + R + P);
}

#[test]
fn each_operation_has_its_command_time() {
    let command = "timing.command={ read = '1us', program = '2us', erase = '4us', copyback = '8us' }";
    let rig = Rig::new(FOUR_DIES, &[command]);
    rig.assert_earliest_ready_at(read(1), 1_000 + R + T)
        .assert_earliest_ready_at(program(1), 2_000 + T + P)
        .assert_earliest_ready_at(erase(1), 4_000 + E)
        .assert_earliest_ready_at(copyback(1), 8_000 + R + P);
    // An operation without a command time in the spec has none.
    let rig = Rig::new(FOUR_DIES, &["timing.command={ erase = '4us' }"]);
    rig.assert_earliest_ready_at(read(1), R + T).assert_earliest_ready_at(erase(1), 4_000 + E);
}

/// The command of a multi-plane operation on two and on three planes takes a time of its own, or the time of one
/// command per plane. A multi-plane erase has no time of its own.
#[test]
fn a_multi_plane_command_takes_its_own_time_or_one_command_time_per_plane() {
    let of_each = "timing.command={ read = '1us', program = '2us', erase = '4us' }";
    let in_all = "timing.command={ read = '1us', program = '2us', erase = '4us', multi_plane_read = '3us', \
                  multi_plane_program = '7us' }";
    for (command, read_ns, program_ns) in
        [(of_each, [2_000, 3_000], [4_000, 6_000]), (in_all, [3_000; 2], [7_000; 2])]
    {
        for planes in [2, 3] {
            let at = planes as usize - 2;
            let last = |op: Op| {
                let mut rig = multi_plane(4, &[command]);
                for plane in 0..planes {
                    rig.issue(op.plane(plane));
                }
                rig.ends().into_iter().max().unwrap() - 4_000 - E
            };
            assert_eq!(last(read(0)), read_ns[at] + R + u64::from(planes) * T);
            assert_eq!(last(program(0)), program_ns[at] + u64::from(planes) * T + P);
            assert_eq!(last(erase(0)), 4_000 * u64::from(planes) + E);
        }
    }
}

#[test]
fn phases_follow_one_another_on_their_resources() {
    let mut rig = Rig::new(FOUR_DIES, &["timing.command=1us"]);
    rig.issue(read(0)).issue(program(2)).issue(erase(3)).issue(copyback(1));
    let run = rig.run();
    use Phase::{Array, Command, TransferIn, TransferOut};
    let read = [(Command, 0, 1_000), (Array, 1_000, 1_000 + R), (TransferOut, 1_000 + R, 1_000 + R + T)];
    assert_eq!(run.phases_of(0), read);
    assert_eq!(run.phases_of(1), [(TransferIn, 0, 1_000 + T), (Array, 1_000 + T, 1_000 + T + P)]);
    // Die 3 waits for channel 1, which die 2 uses, and die 1 waits for channel 0, which die 0 uses.
    let after = 1_000 + T;
    assert_eq!(
        run.phases_of(2),
        [(Command, after, after + 1_000), (Array, after + 1_000, after + 1_000 + E)]
    );
    assert_eq!(run.phases_of(3), [(Command, 1_000, 2_000), (Array, 2_000, 2_000 + R + P)]);
}

#[test]
fn program_time_follows_the_page_kind() {
    let rig = Rig::new(FOUR_DIES, &["timing.program={ lsb = '1300us', msb = '2600us' }"]);
    for page in 0..8 {
        let program_ns = if page % 2 == 0 { 1_300_000 } else { 2_600_000 };
        rig.assert_earliest_ready_at(program(0).page(page), T + program_ns)
            .assert_earliest_ready_at(copyback(0).page(page), R + program_ns);
    }
    // The middle one of the three pages of a TLC wordline takes the mean time.
    let sets = ["timing.program={ lsb = '1ms', msb = '3ms' }", "drive.cell='3d-tlc'", "drive.layers=2"];
    let rig = Rig::new(FOUR_DIES, &sets);
    for (page, ms) in [(0, 1), (1, 2), (2, 3), (3, 1), (4, 2), (5, 3)] {
        rig.assert_earliest_ready_at(program(0).page(page), T + ms * 1_000_000);
    }
}

#[test]
fn tr_follows_the_page_kind() {
    let read_by_kind = "timing.read={ lsb = '40us', csb = '90us', msb = '60us' }";
    let sets = [read_by_kind, "timing.program={ lsb = '1ms', csb = '5ms', msb = '3ms' }", "drive.cell=tlc"];
    let rig = Rig::new(FOUR_DIES, &sets);
    for (page, us, ms) in [(0, 40, 1), (1, 90, 5), (2, 60, 3), (3, 40, 1), (4, 90, 5), (5, 60, 3)] {
        rig.assert_earliest_ready_at(read(0).page(page), us * 1_000 + T)
            .assert_earliest_ready_at(program(0).page(page), T + ms * 1_000_000)
            // The source of a copyback is sensed.
            .assert_earliest_ready_at(copyback(0).source(page), us * 1_000 + 1_000_000)
            .assert_earliest_ready_at(copyback(0).page(page).source(0), 40_000 + ms * 1_000_000);
    }
    // Without a time of its own a CSB page takes the mean; a cell of two bits has no CSB pages.
    let mean = "timing.read={ lsb = '40us', msb = '60us' }";
    let tlc = Rig::new(FOUR_DIES, &[mean, "drive.cell=tlc"]);
    tlc.assert_earliest_ready_at(read(0).page(1), 50_000 + T);
    Rig::new(FOUR_DIES, &[mean]).assert_earliest_ready_at(read(0).page(1), 60_000 + T);
    // The planes of a multi-plane read sense pages of the same number.
    let mut planes = multi_plane(2, &[mean]);
    planes.issue(read(0).page(1)).issue(read(0).plane(1).page(1));
    assert_eq!(planes.ends(), [E, E + 60_000 + T, E + 60_000 + 2 * T]);
}

#[test]
fn program_time_rises_by_layer_from_fastest_to_slowest() {
    // Eight pages on four layers, two pages per layer: 1000, 1200, 1400, 1600 us by layer.
    let sets = [
        "drive.cell='3d-mlc'",
        "drive.layers=4",
        "timing.program={ fastest = '1000us', slowest = '1600us' }",
    ];
    let rig = Rig::new(FOUR_DIES, &sets);
    for page in 0..8 {
        rig.assert_earliest_ready_at(program(0).page(page), T + 1_000_000 + u64::from(page / 2) * 200_000);
    }
}

#[test]
fn a_die_executes_one_operation_at_a_time() {
    let mut rig = Rig::new(FOUR_DIES, &[]);
    rig.issue(erase(0));
    // Operations on the other plane also wait, and so does the transfer of a program.
    rig.assert_earliest_ready_at(program(0).plane(1), E + T + P)
        .assert_earliest_ready_at(read(0).plane(1), E + R + T)
        .assert_earliest_ready_at(copyback(0), E + R + P);
}

#[test]
fn programs_of_two_dies_of_a_channel_overlap_except_for_their_transfers() {
    let mut rig = Rig::new(FOUR_DIES, &[]);
    rig.issue(program(0)).assert_earliest_ready_at(program(1), T + T + P);
    // The channel is free after the transfer, while the die still programs.
    rig.at(T).assert_earliest_ready_at(program(1), T + T + P);
    rig.at(T + 1).assert_earliest_ready_at(program(1), T + 1 + T + P);
}

#[test]
fn a_die_is_busy_until_its_transfer_out_ends() {
    let mut rig = Rig::new(FOUR_DIES, &[]);
    rig.issue(read(0)).issue(read(1));
    assert_eq!(
        rig.ends(),
        [R + T, R + 2 * T],
        "the reads are not sensed at the same time, or not transferred one after the other"
    );
    // Die 1 has sensed at R and waits for the channel until R + T. Its page register is occupied until R + 2 T; only
    // then can the die sense again. Die 0 is free at R + T.
    rig.at(R + 1)
        .assert_earliest_ready_at(erase(1), R + 2 * T + E)
        .assert_earliest_ready_at(erase(0), R + T + E)
        .assert_earliest_ready_at(read(1), R + 2 * T + R + T);
}

#[test]
fn a_channel_serves_dies_in_the_order_of_their_requests() {
    let three = FOUR_DIES.replace("chips_per_channel = 2", "chips_per_channel = 3");
    let mut rig = Rig::new(&three, &[]);
    // Die 0 transfers in from 45 to 55.24 us. Die 2 requests the channel at 46 us, die 1 at 50 us, after its sense.
    rig.issue(read(1)).at(45_000).issue(program(0)).at(46_000).issue(program(2));
    let first = 45_000 + T;
    assert_eq!(rig.ends(), [first + 2 * T, first + P, first + T + P]);
}

#[test]
fn dies_that_request_a_channel_at_the_same_time_are_served_by_number() {
    let mut rig = Rig::new(FOUR_DIES, &[]);
    rig.issue(read(1)).issue(read(0));
    assert_eq!(rig.ends(), [R + 2 * T, R + T]);
}

#[test]
fn channels_are_independent() {
    let mut rig = Rig::new(FOUR_DIES, &["timing.command=1us"]);
    rig.issue(read(0)).issue(program(0).plane(1)).issue(read(1));
    let alone = Rig::new(FOUR_DIES, &["timing.command=1us"]);
    for op in [read(2), program(2), erase(3), copyback(3)] {
        rig.assert_earliest_ready_at(op, alone.probe(op));
    }
}

/// A page takes 20480 ns over an off-chip path of 200 MB/s, twice its time on a channel.
#[test]
fn a_slow_off_chip_path_is_shared_by_the_channels_and_keeps_them_busy() {
    let mut rig = Rig::new(FOUR_DIES, &["timing.off_chip_mb_per_s=200"]);
    let off_chip = 20_480;
    rig.assert_earliest_ready_at(read(0), R + off_chip)
        .assert_earliest_ready_at(program(0), off_chip + P)
        .assert_earliest_ready_at(erase(0), E)
        .assert_earliest_ready_at(copyback(0), R + P);
    rig.issue(read(0)).issue(read(2));
    assert_eq!(rig.ends(), [R + off_chip, R + 2 * off_chip]);
    // Channel 1 transfers die 2's page from R on, and remains busy until the off-chip path has transferred the page as
    // well.
    rig.at(R + 1).assert_earliest_ready_at(program(3), R + 2 * off_chip + off_chip + P);
    let run = rig.run();
    let end = R + 2 * off_chip;
    assert_eq!((run.channel_busy_ns(0, end), run.channel_busy_ns(1, end)), (off_chip, 2 * off_chip));
    // Idle time of the off-chip path does not make later transfers faster.
    rig.at(1_000_000).assert_earliest_ready_at(read(2), 1_000_000 + R + off_chip);
}

/// A page takes 8192 ns over the off-chip path and 10240 ns on a channel. The channel limits a single transfer; the
/// path limits two transfers at the same time.
#[test]
fn a_transfer_ends_at_the_slower_of_channel_and_off_chip_path() {
    let mut rig = Rig::new(FOUR_DIES, &["timing.off_chip_mb_per_s=500"]);
    rig.assert_earliest_ready_at(read(0), R + T).assert_earliest_ready_at(program(0), T + P);
    rig.issue(read(0)).issue(read(2));
    assert_eq!(rig.ends(), [R + T, R + 2 * 8_192]);
}

/// A page takes 20480 ns out of the flash memory and 40960 ns into it.
#[test]
fn reads_and_programs_do_not_wait_for_each_other_on_separate_paths() {
    let mut rig = Rig::new(FOUR_DIES, &["timing.off_chip_mb_per_s={ read = 200, write = 100 }"]);
    let (out, into) = (20_480, 40_960);
    let sent = R - 10 + into;
    rig.issue(read(0)).at(R - 10).issue(program(2)).issue(read(3));
    // The program on channel 1 takes the path until the read on channel 0 has ended. The read of die 3 waits for its
    // channel only.
    assert!(sent > R + out);
    assert_eq!(rig.ends(), [R + out, sent + P, R - 10 + R + out]);
    let mut shared = Rig::new(FOUR_DIES, &["timing.off_chip_mb_per_s=100"]);
    shared.issue(read(0)).at(R - 10).issue(program(2));
    assert_eq!(shared.ends(), [sent + into, sent + P]);
}

#[test]
fn copyback_uses_the_channel_for_its_command_only() {
    let mut rig = Rig::new(FOUR_DIES, &["timing.off_chip_mb_per_s=200"]);
    rig.issue(program(1)).issue(copyback(0));
    assert_eq!(rig.ends()[1], R + P, "the copyback waits for the other die's transfer");
    assert_eq!(rig.run().channel_busy_ns(0, R + P), 20_480, "the copyback uses the channel");
    let mut rig = Rig::new(FOUR_DIES, &["timing.command=1us"]);
    rig.issue(copyback(0));
    assert_eq!(rig.run().channel_busy_ns(0, R + P), 1_000);
    rig.issue(read(1));
    assert_eq!(
        rig.ends()[1],
        1_000 + 1_000 + R + T,
        "the read's command does not wait for the copyback's command"
    );
}

fn multi_plane(planes: u32, sets: &[&str]) -> Rig {
    let text = FOUR_DIES.replace("planes_per_die = 2", &format!("planes_per_die = {planes}"));
    let mut rig = Rig::new(&text, &[&["timing.multi_plane=true"], sets].concat());
    // The erase keeps the die busy, so that the operations issued next are queued together.
    rig.issue(erase(0)).at(1);
    rig
}

#[test]
fn multi_plane_read_senses_once_and_transfers_page_by_page() {
    let mut rig = multi_plane(4, &[]);
    for plane in 0..4 {
        rig.issue(read(0).plane(plane).page(3));
    }
    let sensed = E + R;
    assert_eq!(rig.ends()[1..], [sensed + T, sensed + 2 * T, sensed + 3 * T, sensed + 4 * T]);
    // The die is occupied until the last page has been transferred.
    rig.assert_earliest_ready_at(erase(0), sensed + 4 * T + E);
}

#[test]
fn multi_plane_program_transfers_every_page_then_programs_once() {
    let mut rig = multi_plane(2, &["timing.program={ lsb = '500us', msb = '1500us' }"]);
    rig.issue(program(0).plane(1).page(5)).issue(program(0).plane(0).page(5));
    assert_eq!(rig.ends()[1..], [E + 2 * T + 1_500_000; 2]);
}

#[test]
fn multi_plane_erase_takes_one_erase_time_whatever_the_pages() {
    let mut rig = multi_plane(2, &[]);
    rig.issue(erase(0).plane(1)).issue(erase(0).plane(0).page(7));
    assert_eq!(rig.ends()[1..], [2 * E; 2]);
}

#[test]
fn multi_plane_needs_equal_kinds_at_equal_page_numbers_of_different_planes() {
    let mut rig = multi_plane(2, &[]);
    rig.issue(program(0).plane(0).page(2)).issue(program(0).plane(1).page(3));
    assert_eq!(rig.ends()[1..], [E + T + P, E + 2 * (T + P)], "programs of pages 2 and 3 are multi-plane");
    let mut rig = multi_plane(2, &[]);
    rig.issue(program(0).plane(0).page(2)).issue(read(0).plane(1).page(2));
    assert_eq!(rig.ends()[1..], [E + T + P, E + T + P + R + T], "a program and a read are multi-plane");
    let mut rig = multi_plane(2, &[]);
    rig.issue(copyback(0).plane(0).page(2)).issue(copyback(0).plane(1).page(2));
    assert_eq!(rig.ends()[1..], [E + R + P, E + 2 * (R + P)], "copybacks are multi-plane");
    let mut rig = multi_plane(2, &[]);
    rig.issue(program(0).plane(1).page(2)).issue(program(0).plane(1).page(2));
    assert_eq!(rig.ends()[1..], [E + T + P, E + 2 * (T + P)], "two programs on one plane are multi-plane");
}

#[test]
fn multi_plane_keeps_the_order_within_a_plane() {
    let mut rig = multi_plane(2, &[]);
    // The third program has the page number of the first. But the second program is ahead of the third on its plane, in
    // the same block.
    rig.issue(program(0).plane(0).page(1));
    rig.issue(program(0).plane(1).page(0));
    rig.issue(program(0).plane(1).page(1));
    assert_eq!(rig.ends()[1..], [E + T + P, E + 2 * (T + P), E + 3 * (T + P)]);
}

/// A partner is found behind a read of its plane and behind a program of another block of its plane.
#[test]
fn multi_plane_takes_the_first_program_with_an_equal_page_number() {
    let mut rig = multi_plane(2, &[]);
    rig.issue(program(0).plane(0).page(1));
    rig.issue(read(0).plane(1)).issue(program(0).plane(1).page(0));
    rig.issue(program(0).plane(1).block(1).page(1));
    let together = E + 2 * T + P;
    assert_eq!(rig.ends()[1..], [together, together + R + T, together + R + T + T + P, together]);
}

#[test]
fn operations_issued_at_the_same_time_are_queued_before_a_die_starts() {
    let mut rig = Rig::new(FOUR_DIES, &["timing.multi_plane=true"]);
    rig.issue(program(0).plane(0)).issue(program(0).plane(1));
    assert_eq!(rig.ends(), [2 * T + P; 2]);
    let mut rig = Rig::new(FOUR_DIES, &["timing.scheduler=read-first"]);
    rig.issue(program(0).class(Class::HostWrite)).issue(read(0).class(Class::HostRead));
    assert_eq!(rig.ends(), [R + T + T + P, R + T]);
}

#[test]
fn multi_plane_does_not_mix_classes() {
    let mut rig = multi_plane(2, &["timing.scheduler=read-first"]);
    rig.issue(read(0).plane(0).page(1)).issue(read(0).plane(1).page(1).class(Class::HostRead));
    assert_eq!(rig.ends()[1..], [E + 2 * (R + T), E + R + T]);
}

/// Die 0 requests the channel for both pages when they are sensed, 1 ns before die 1 requests it for its page or for
/// its program. With an off-chip path the channel carries both pages as well.
#[test]
fn no_other_die_gets_the_channel_between_the_pages_of_a_multi_plane_read() {
    for (sets, page) in [(&[][..], T), (&["timing.off_chip_mb_per_s=200"], 2 * T)] {
        let mut rig = multi_plane(2, sets);
        rig.issue(read(0).plane(0)).issue(read(0).plane(1));
        let sensed = E + R;
        rig.at(E + 1).issue(read(1));
        assert_eq!(rig.ends()[1..], [1, 2, 3].map(|nth| sensed + nth * page));
        assert_eq!(rig.run().channel_busy_ns(0, sensed + 3 * page), 3 * page);
        let mut rig = multi_plane(2, sets);
        rig.issue(read(0).plane(0)).issue(read(0).plane(1));
        rig.at(sensed + 1).issue(program(1));
        assert_eq!(rig.ends()[1..], [sensed + page, sensed + 2 * page, sensed + 3 * page + P]);
    }
}

#[test]
fn without_multi_plane_planes_program_one_after_the_other() {
    let mut rig = Rig::new(FOUR_DIES, &[]);
    rig.issue(erase(0)).at(1).issue(program(0).plane(0)).issue(program(0).plane(1));
    assert_eq!(rig.ends()[1..], [E + T + P, E + 2 * (T + P)]);
}

/// Returns the ends of a background erase, a host write and a host read, which wait in this order behind a running
/// program. The times count from the end of that program.
fn queued(scheduler: &str, promoted: bool) -> Vec<u64> {
    let mut rig = Rig::new(FOUR_DIES, &[&format!("timing.scheduler={scheduler}")]);
    if promoted {
        rig.promoted.push(0);
    }
    rig.issue(program(0)).at(10);
    rig.issue(erase(0));
    rig.issue(program(0).page(1).class(Class::HostWrite));
    rig.issue(read(0).class(Class::HostRead));
    rig.ends().into_iter().skip(1).map(|end| end - (T + P)).collect()
}

#[test]
fn fcfs_serves_in_order_of_submission() {
    let expected = [E, E + T + P, E + T + P + R + T];
    assert_eq!(queued("fcfs", false), expected);
    assert_eq!(queued("fcfs", true), expected, "promotion has an effect under fcfs");
}

#[test]
fn read_first_serves_host_reads_then_host_writes_then_background_work() {
    assert_eq!(queued("read-first", false), [R + T + T + P + E, R + T + T + P, R + T]);
}

#[test]
fn promoted_background_work_is_served_before_younger_host_writes_but_after_host_reads() {
    assert_eq!(queued("read-first", true), [R + T + E, R + T + E + T + P, R + T]);
    // An older host write is served first: its page is already allocated, so it takes no more space.
    let mut rig = Rig::new(FOUR_DIES, &["timing.scheduler=read-first"]);
    rig.promoted.push(0);
    rig.issue(program(0)).at(10).issue(program(0).page(1).class(Class::HostWrite)).issue(erase(0));
    assert_eq!(rig.ends()[1..], [2 * (T + P), 2 * (T + P) + E]);
}

/// Returns the ends of a refresh erase of `class`, a background erase, a host write and a host read, which wait in this
/// order behind a running program. The times count from the end of that program.
fn queued_with_refresh(class: Class, promoted: bool) -> [u64; 4] {
    let mut rig = Rig::new(FOUR_DIES, &["timing.scheduler=read-first"]);
    if promoted {
        rig.promoted.push(0);
    }
    rig.issue(program(0)).at(10);
    rig.issue(erase(0)).issue(erase(0).class(class));
    rig.issue(program(0).page(1).class(Class::HostWrite));
    rig.issue(read(0).class(Class::HostRead));
    let ends: Vec<u64> = rig.ends().into_iter().skip(1).map(|end| end - (T + P)).collect();
    [ends[1], ends[0], ends[2], ends[3]]
}

#[test]
fn refresh_before_writes_is_served_after_host_reads_and_before_host_writes() {
    let (read, refresh, write) = (R + T, R + T + E, R + T + E + T + P);
    assert_eq!(queued_with_refresh(Class::BeforeWrites, false), [refresh, write + E, write, read]);
    // Promoted background work is older than the write, but younger classes of refresh and host reads precede it.
    let background = refresh + E;
    let last = background + T + P;
    assert_eq!(queued_with_refresh(Class::BeforeWrites, true), [refresh, background, last, read]);
}

#[test]
fn refresh_that_is_first_is_served_before_host_reads() {
    let (refresh, read) = (E, E + R + T);
    let write = read + T + P;
    assert_eq!(queued_with_refresh(Class::First, false), [refresh, write + E, write, read]);
    let background = read + E;
    assert_eq!(queued_with_refresh(Class::First, true), [refresh, background, background + T + P, read]);
}

/// One operation on a superblock of each plane of a die. A superblock has the shape of the drive, MLC, or that of SLC
/// blocks with other times. Operations on superblocks of the same shape run on both planes at once.
#[test]
fn an_operation_takes_the_time_of_its_shape_and_has_partners_of_this_shape() {
    const SLC_PROGRAM: u64 = 100_000;
    const SLC_ERASE: u64 = 2_000_000;
    let rig = Rig::new(FOUR_DIES, &[]);
    let geometry = rig.geometry();
    let steps = ProgramTime::Uniform(Span::from_ns(SLC_PROGRAM)).steps(Cell::Slc, 4, 1, 1);
    let times = CellTimes {
        read: rig.spec.timing.read,
        transfer_ns: Span::from_ns(T),
        decode_ns: rig.spec.timing.decode_ns,
        erase_ns: Span::from_ns(SLC_ERASE),
    };
    const AGEING: Ageing = Ageing { endurance_of_first: 1, endurance: 1, rber_factor: 1.0 };
    let mut shapes = rig.spec.shapes(&geometry);
    let slc = Shape::new(&geometry, Cell::Slc, ProgramOrder::Page, &steps, &times, &rig.spec.ecc);
    let (mlc, slc) = (ShapeId::FIRST, shapes.add(slc, AGEING));
    let ends = |kind: FlashOp, of_planes: [ShapeId; 2]| -> [u64; 2] {
        let timing = Timing::new(&rig.spec.timing, &geometry, shapes.clone());
        let mut device = Device::new(&geometry, timing, Scheduler::ReadFirst, true, None, false);
        let (mut pool, mut agenda) = (Transactions::default(), Agenda::new(geometry.dies as usize));
        for (plane, shape) in (0..).zip(of_planes) {
            let unit = geometry.unit(geometry.first_superblock(LaneId(u32::from(plane))), 0);
            let of = Transaction { unit, kind, shape, plane_in_die: plane, ..Transaction::EMPTY };
            let slot = pool.insert(of);
            device.submit(&mut pool, slot);
        }
        device.start(&mut pool, &mut agenda, &mut NoProbe, Time::START);
        let mut ends = Vec::new();
        while ends.len() < 2 {
            let (now, _) = agenda.first();
            let ended = device.on_clock(&mut pool, &mut agenda, &mut NoProbe, now, DieId(0));
            if let Ended::Batch(first) = ended {
                let batch = std::iter::successors(Some(first), |&slot| pool[slot].next);
                ends.extend(batch.map(|_| now.ns()));
                device.start_next(&mut pool, &mut agenda, &mut NoProbe, now, DieId(0));
            }
        }
        ends.try_into().unwrap()
    };
    for (shape, program, erase) in [(mlc, P, E), (slc, SLC_PROGRAM, SLC_ERASE)] {
        assert_eq!(ends(FlashOp::Program, [shape; 2]), [2 * T + program; 2]);
        assert_eq!(ends(FlashOp::Erase, [shape; 2]), [erase; 2]);
    }
    assert_eq!(ends(FlashOp::Program, [mlc, slc]), [T + P, T + P + T + SLC_PROGRAM]);
    assert_eq!(ends(FlashOp::Erase, [mlc, slc]), [E, E + SLC_ERASE]);
}

#[test]
fn promotions_can_be_nested_and_affect_only_their_die() {
    let mut rig = Rig::new(FOUR_DIES, &["timing.scheduler=read-first"]);
    let geometry = Geometry::new(&rig.spec.drive);
    let timing = Timing::new(&rig.spec.timing, &geometry, rig.spec.shapes(&geometry));
    let mut device = Device::new(&geometry, timing, Scheduler::ReadFirst, false, None, false);
    // Two promotions are ended by two demotions.
    device.promote(DieId(0));
    device.promote(DieId(0));
    device.demote(DieId(0));
    device.demote(DieId(0));
    // The promotion of die 1 has no effect on die 0.
    rig.promoted.push(1);
    rig.issue(program(0)).at(10).issue(erase(0)).issue(program(0).class(Class::HostWrite));
    assert_eq!(rig.ends()[1..], [2 * (T + P) + E, 2 * (T + P)]);
}

#[test]
fn operations_of_a_class_are_served_in_the_order_of_submission() {
    let mut rig = Rig::new(FOUR_DIES, &["timing.scheduler=read-first"]);
    rig.issue(erase(0)).at(5);
    for page in [4, 2, 6] {
        rig.issue(read(0).page(page).class(Class::HostRead));
    }
    assert_eq!(rig.ends()[1..], [E + R + T, E + 2 * (R + T), E + 3 * (R + T)]);
}

#[test]
fn without_suspension_a_running_operation_is_not_interrupted() {
    let mut rig = Rig::new(FOUR_DIES, &["timing.scheduler=read-first"]);
    rig.issue(erase(0)).at(5);
    rig.assert_earliest_ready_at(read(0).class(Class::HostRead), E + R + T);
}

#[test]
fn a_die_is_busy_from_its_first_phase_to_its_last() {
    let mut rig = Rig::new(FOUR_DIES, &[]);
    rig.issue(read(0)).issue(read(1)).at(1_000_000).issue(erase(0));
    let run = rig.run();
    let end = 1_000_000 + E;
    assert_eq!(run.die_busy_ns(0, end), R + T + E);
    assert_eq!(run.die_busy_ns(1, end), R + 2 * T, "the wait for the channel does not count as busy");
    assert_eq!(run.die_busy_ns(2, end), 0);
    assert_eq!(run.channel_busy_ns(0, end), 2 * T);
    // During an operation, its time so far counts as busy.
    let half = rig.replay(&rig.issued, R / 2);
    assert_eq!(half.die_busy_ns(1, R / 2), R / 2);
    let idle = rig.replay(&rig.issued[..2], 500_000);
    assert_eq!(idle.die_busy_ns(1, 500_000), R + 2 * T);
    // During a transfer, its time so far counts as busy: die 0 transfers from R to R + T, then die 1.
    for (now, busy) in [(R, 0), (R + T / 4, T / 4), (R + T, T), (R + T + T / 2, T + T / 2)] {
        assert_eq!(rig.replay(&rig.issued, now).channel_busy_ns(0, now), busy);
    }
}

#[test]
fn load_counts_waiting_and_running_operations() {
    let mut rig = Rig::new(FOUR_DIES, &[]);
    rig.issue(read(0)).issue(read(0)).issue(erase(0)).issue(program(3));
    let load = |until: u64| {
        let run = rig.replay(&rig.issued, until);
        [0, 1, 2, 3].map(|die| run.device.load(DieId(die)))
    };
    assert_eq!(load(0), [3, 0, 0, 1]);
    assert_eq!(load(R + T), [2, 0, 0, 1]);
    assert_eq!(load(2 * (R + T)), [1, 0, 0, 1]);
    assert_eq!(load(T + P), [1, 0, 0, 0]);
    assert_eq!(load(2 * (R + T) + E), [0; 4]);
}

#[test]
fn host_reads_come_between_the_sense_and_the_program_of_a_copyback() {
    use CopybackGap::{AllPlanes, OtherPlanes};
    let class = |op: Op, class| op.class(class);
    let phases = |gap, plane, arrival: u64, op: Op| {
        let mut rig = Rig::new(FOUR_DIES, &["drive.planes_per_die=2"]);
        rig.gap = gap;
        rig.issue(copyback(0)).at(arrival).issue(op.plane(plane));
        let run = rig.run();
        (run.phases_of(0), run.phases_of(1)[0].1)
    };
    let read = || class(read(0), Class::HostRead);
    let whole = vec![(Phase::Array, 0, R + P)];
    let unbroken = vec![(Phase::Array, 0, R), (Phase::Array, R, R + P)];
    let broken = vec![(Phase::Array, 0, R), (Phase::Array, 2 * R + T, 2 * R + T + P)];
    assert_eq!(phases(None, 1, 1, read()), (whole, R + P));
    // The register of the copyback's plane is taken, unless the plane has a second one.
    assert_eq!(phases(Some(OtherPlanes), 0, 1, read()), (unbroken.clone(), R + P));
    assert_eq!(phases(Some(OtherPlanes), 1, 1, read()), (broken.clone(), R));
    assert_eq!(phases(Some(AllPlanes), 0, 1, read()), (broken, R));
    // A read that comes during the program waits, and so do the host's writes and reads of background work.
    assert_eq!(phases(Some(AllPlanes), 1, R + 1, read()), (unbroken.clone(), R + P));
    assert_eq!(phases(Some(AllPlanes), 1, 1, class(program(0), Class::HostWrite)).0, unbroken);
    assert_eq!(phases(Some(AllPlanes), 1, 1, class(read(), Class::Background)), (unbroken, R + P));
}

/// A suspension takes 9 us until the die is ready, and 4 us until it has taken the operation up again.
const ENTER: u64 = 9_000;
const RESUME: u64 = 4_000;

/// A rig that suspends programs and erases with these limits.
fn suspending(min_progress_us: u64, max: u32, sets: &[&str]) -> Rig {
    let times =
        format!("{{ enter = '9us', resume = '4us', min_progress = '{min_progress_us}us', max = {max} }}");
    let suspend = format!("timing.suspend={{ program = {times}, erase = {times} }}");
    Rig::new(FOUR_DIES, &[&["timing.scheduler=read-first", &suspend], sets].concat())
}

fn host_read() -> Op {
    read(0).class(Class::HostRead)
}

/// The read waits for `enter`. The operation ends later by `enter`, the read and `resume`.
#[test]
fn a_host_read_suspends_a_program_or_an_erase() {
    for (operation, before, length) in [(program(0), T, P), (erase(0), 0, E)] {
        for class in [Class::HostWrite, Class::BeforeWrites, Class::Background] {
            let arrival = before + 300_000;
            let mut rig = suspending(0, 1, &[]);
            rig.issue(operation.class(class)).at(arrival).issue(host_read());
            let read_end = arrival + ENTER + R + T;
            assert_eq!(rig.ends(), [read_end + RESUME + length - 300_000, read_end]);
            let run = rig.run();
            let slices = [
                (Phase::Array, before, before + length),
                (Phase::Array, read_end, read_end + RESUME + length - 300_000),
            ];
            assert_eq!(run.phases_of(0)[run.phases_of(0).len() - 2..], slices);
            let counted = run.device.suspensions();
            assert_eq!(counted.programs, u64::from(operation.kind == FlashOp::Program));
            assert_eq!(counted.erases, u64::from(operation.kind == FlashOp::Erase));
            assert_eq!(counted.suspended_ns.ns(), ENTER + R + T + RESUME);
            // The die is busy all the time; it has two transactions until the read has ended.
            let end = run.ends[0].unwrap();
            assert_eq!(run.die_busy_ns(0, end), end);
            assert_eq!(rig.replay(&rig.issued, arrival).device.load(DieId(0)), 2);
            assert_eq!(rig.replay(&rig.issued, read_end).device.load(DieId(0)), 1);
        }
    }
}

/// A suspension lets the read start after `enter`, 9 us. A read that comes 9 us or less before the end of the operation
/// waits for the end, and the operation is not delayed. So does a read that comes earlier, if the operation has made
/// its least progress only that late.
#[test]
fn a_read_that_would_start_later_by_suspending_waits() {
    for (operation, before, length) in [(program(0), T, P), (erase(0), 0, E)] {
        for min_progress in [0, length - ENTER] {
            for left in [1, 5_000, ENTER] {
                let mut rig = suspending(min_progress / 1000, 1, &[]);
                rig.issue(operation).at(before + length - left).issue(host_read());
                assert_eq!(
                    rig.ends(),
                    [before + length, before + length + R + T],
                    "{left} ns before the end"
                );
                assert_eq!(rig.run().device.suspensions().suspended_ns.ns(), 0);
            }
        }
        let mut rig = suspending(0, 1, &[]);
        rig.issue(operation).at(before + length - ENTER - 1).issue(host_read());
        let read_end = before + length - 1 + R + T;
        assert_eq!(rig.ends(), [read_end + RESUME + ENTER + 1, read_end]);
        // When the operation has made its least progress, 9 us are left.
        let mut rig = suspending((length - ENTER) / 1000, 1, &[]);
        rig.issue(operation).at(before + 10).issue(host_read());
        assert_eq!(rig.ends(), [before + length, before + length + R + T]);
    }
}

#[test]
fn only_host_reads_suspend() {
    for op in [read(0), program(0).class(Class::HostWrite), erase(0), read(0).class(Class::BeforeWrites)] {
        let mut rig = suspending(0, 1, &[]);
        rig.issue(program(0)).at(T + 10).issue(op);
        assert_eq!(rig.ends()[0], T + P, "{op:?}");
    }
    // Each half of the key stands alone, and a program or erase of another die is not suspended.
    let times = "{ enter = '9us', resume = '4us', min_progress = '0us', max = 1 }";
    for (half, is_program) in [("program", true), ("erase", false)] {
        let suspend = format!("timing.suspend.{half}={times}");
        let mut rig = Rig::new(FOUR_DIES, &["timing.scheduler=read-first", &suspend]);
        rig.issue(program(0)).issue(erase(2)).at(500_000).issue(host_read());
        rig.issue(read(2).class(Class::HostRead));
        let longer = ENTER + R + T + RESUME;
        let [of_program, of_erase] = if is_program { [longer, 0] } else { [0, longer] };
        assert_eq!(rig.ends()[..2], [T + P + of_program, E + of_erase]);
    }
}

/// Refresh with `refresh.priority = "first"` precedes host reads: it is not suspended, and it ends a suspension.
#[test]
fn an_operation_that_precedes_host_reads_is_not_delayed_by_a_suspension() {
    let first = |op: Op| op.class(Class::First);
    let mut rig = suspending(0, 1, &[]);
    rig.issue(first(program(0))).at(T + 10).issue(host_read());
    assert_eq!(rig.ends(), [T + P, T + P + R + T]);
    let mut rig = suspending(0, 1, &[]);
    rig.issue(program(0)).at(T + 5).issue(first(erase(0))).at(T + 10).issue(host_read());
    assert_eq!(rig.ends(), [T + P, T + P + E, T + P + E + R + T]);
    // The refresh arrives during the first of two reads.
    let mut rig = suspending(0, 2, &[]);
    rig.issue(program(0)).at(T + 10).issue(host_read()).issue(host_read());
    rig.at(T + 10 + ENTER + 5).issue(first(erase(0)));
    let read_end = T + 10 + ENTER + R + T;
    let end = read_end + RESUME + P - 10;
    assert_eq!(rig.ends(), [end, read_end, end + E + R + T, end + E]);
}

#[test]
fn all_waiting_host_reads_are_served_in_one_suspension() {
    let mut rig = suspending(0, 9, &["timing.multi_plane=true"]);
    rig.issue(program(0)).at(T + 100_000).issue(host_read()).issue(host_read().plane(1).page(3));
    // This read arrives during the first one; a host write waits for the program.
    rig.at(T + 120_000).issue(host_read().plane(1)).issue(program(0).class(Class::HostWrite).page(1));
    let ready = T + 100_000 + ENTER;
    let read_ends = [1, 2, 3].map(|nth| ready + nth * (R + T));
    let end = read_ends[2] + RESUME + P - 100_000;
    assert_eq!(rig.ends(), [end, read_ends[0], read_ends[1], read_ends[2], end + T + P]);
    assert_eq!(rig.run().device.suspensions().programs, 1);
}

#[test]
fn an_operation_makes_progress_between_its_suspensions() {
    // The read comes 100 us after the start of the program, which may be suspended after 300 us.
    let mut rig = suspending(300, 9, &[]);
    rig.issue(program(0)).at(T + 100_000).issue(host_read());
    let first_end = T + 300_000 + ENTER + R + T;
    let resumed = first_end + RESUME;
    // The second read comes while the die takes the program up again.
    rig.at(first_end + 10).issue(host_read());
    let second_end = resumed + 300_000 + ENTER + R + T;
    // After the second suspension 300 us are left. The third read would have to wait until the program ends.
    rig.at(second_end + RESUME + 10).issue(host_read());
    let end = second_end + RESUME + 300_000;
    assert_eq!(rig.ends(), [end, first_end, second_end, end + R + T]);
}

/// A read that comes during the transfer of the page suspends the program as soon as it may be suspended.
#[test]
fn a_host_read_that_came_before_the_program_suspends_it() {
    for min_progress_us in [0, 300] {
        let mut rig = suspending(min_progress_us, 1, &[]);
        rig.issue(program(0)).at(10).issue(host_read());
        let (progress, read) = (min_progress_us * 1_000, ENTER + R + T);
        assert_eq!(rig.ends(), [T + P + read + RESUME, T + progress + read]);
    }
}

#[test]
fn an_operation_is_suspended_at_most_max_times() {
    for max in 1..4 {
        let mut rig = suspending(0, max, &[]);
        rig.issue(erase(0));
        let (mut now, mut done) = (0, 0);
        for _ in 0..max {
            rig.at(now + 1_000).issue(host_read());
            (now, done) = (now + 1_000 + ENTER + R + T + RESUME, done + 1_000);
        }
        rig.at(now + 1_000).issue(host_read());
        let end = now + E - done;
        assert_eq!([rig.ends()[0], rig.ends()[max as usize + 1]], [end, end + R + T], "max = {max}");
        assert_eq!(rig.run().device.suspensions().erases, u64::from(max));
    }
}

/// The planes of a multi-plane program are suspended together; reads of the same planes are served.
#[test]
fn a_multi_plane_operation_is_suspended_as_a_whole() {
    let mut rig = suspending(0, 1, &["timing.multi_plane=true"]);
    rig.issue(program(0)).issue(program(0).plane(1)).at(2 * T + 100_000);
    rig.issue(host_read()).issue(host_read().plane(1));
    let ready = 2 * T + 100_000 + ENTER;
    let end = ready + R + 2 * T + RESUME + P - 100_000;
    assert_eq!(rig.ends(), [end, end, ready + R + T, ready + R + 2 * T]);
    assert_eq!(rig.run().device.suspensions().programs, 1);
}

/// The sense of a copyback is not suspended, its program is: after the sense at the earliest.
#[test]
fn the_program_of_a_copyback_is_suspended() {
    for (gap, plane, before) in [(None, 0, 0), (Some(CopybackGap::OtherPlanes), 0, 0)] {
        let mut rig = suspending(100, 1, &[]);
        rig.gap = gap;
        rig.issue(copyback(0)).at(before + 10).issue(host_read().plane(plane));
        let read_end = R + 100_000 + ENTER + R + T;
        assert_eq!(rig.ends(), [read_end + RESUME + P - 100_000, read_end], "{gap:?}");
    }
    // The first read comes between sense and program, the second one suspends the program.
    let mut rig = suspending(100, 1, &[]);
    rig.gap = Some(CopybackGap::OtherPlanes);
    rig.issue(copyback(0)).at(10).issue(host_read().plane(1)).at(2 * R).issue(host_read());
    let begun = R + R + T;
    let read_end = begun + 100_000 + ENTER + R + T;
    assert_eq!(rig.ends(), [read_end + RESUME + P - 100_000, begun, read_end]);
    // The next copyback is sensed again.
    rig.issue(copyback(0).block(1));
    assert_eq!(rig.ends()[3], read_end + RESUME + P - 100_000 + R + P);
}

/// The next try of a read is a host read as well.
#[test]
fn every_try_of_a_host_read_is_served_in_the_suspension() {
    let levels = "ecc.levels=[{ rber_max = 0.001, sense = '50us', transfer = '10240ns', decode = '1ns' }, \
                  { rber_max = 0.002, sense = '60us', transfer = '10240ns', decode = '1ns' }]";
    let mut rig = suspending(0, 1, &[levels]);
    rig.issue(program(0)).at(T + 100_000).issue(host_read().levels(1, 2));
    let read_end = T + 100_000 + ENTER + R + T + 60_000 + T;
    assert_eq!(rig.ends(), [read_end + RESUME + P - 100_000, read_end]);
}

// The twin: an independent implementation of the rules of the device, stepped nanosecond by nanosecond.

#[derive(Clone, Default)]
struct NaiveDie {
    /// Waiting operations, in the order of service within a class; a read after a failed try comes first.
    waiting: Vec<usize>,
    batch: Vec<usize>,
    phase: Option<(Phase, Option<u64>)>,
    /// The copyback that has been sensed and not programmed, also while its program is under way.
    sensed: Option<usize>,
    /// The suspended operation, while the die serves host reads.
    suspended: Option<Vec<usize>>,
    /// Suspensions of the operation so far.
    suspensions: u32,
    /// The time at which the die is ready for reads; `None` unless the die is suspending its operation.
    ready: Option<u64>,
    /// Work in the array that the operation still has to do: time in which it can only sense or be taken up again,
    /// progress that it has to make before its next suspension, all progress that is left.
    work: [u64; 3],
}

struct Naive<'a> {
    ops: &'a [(u64, Op)],
    dies: Vec<NaiveDie>,
    channels: Vec<(Option<usize>, Vec<usize>)>,
    path_free_at: [u64; 2],
    has_two_paths: bool,
    ends: Vec<Option<u64>>,
    timing: Timing,
    spec: &'a Spec,
    command: CommandTimes,
    scheduler: Scheduler,
    promoted: Vec<u32>,
    multi_plane: bool,
    planes: u32,
    superblock: Superblock,
    /// Pages that a program or copyback of one superblock writes, and blocks that an erase of a superblock erases.
    width: [u64; 2],
    dies_per_channel: usize,
    /// Number of failed tries of each operation.
    tries: Vec<u8>,
    gap: Option<CopybackGap>,
    /// Number of reads between the sense and the program of a copyback.
    reads_in_gaps: u32,
    suspend: SuspendSpec,
    /// Number of suspensions of programs, of copybacks and of erases.
    suspensions: [u32; 3],
}

impl Naive<'_> {
    /// Returns the read level of the operation's next try, and whether a try at the level below has failed.
    fn level(&self, n: usize) -> (u8, bool) {
        (self.ops[n].1.level + self.tries[n], self.tries[n] > 0)
    }

    /// Time of sensing page `page` of a block, from the text of the spec: the time of the page's kind at the level,
    /// less that at the level below if the controller keeps the result of a failed try.
    fn sense_ns(&self, page: u32, level: u8, is_retry: bool) -> u64 {
        let (timing, ecc) = (&self.spec.timing, &self.spec.ecc);
        let at = |level: u8| {
            let of_level = ecc.levels.get(usize::from(level) - 1).and_then(|level| level.sense);
            let times = of_level.or(timing.read).expect("level or [timing] has a tR");
            match (self.spec.drive.cell, page % 2, page % 3) {
                (Cell::Mlc, 0, _) | (Cell::Tlc, _, 0) => times.lsb_ns.ns(),
                (Cell::Tlc, _, 1) => times.csb_ns.ns(),
                _ => times.msb_ns.ns(),
            }
        };
        if is_retry && ecc.retry == Retry::Incremental { at(level) - at(level - 1) } else { at(level) }
    }

    fn commands_ns(&self, die: usize) -> u64 {
        let (pages, command) = (self.pages(die), &self.command);
        let batch = &self.dies[die].batch;
        let (each, together) = match self.ops[batch[0]].1.kind {
            FlashOp::Read => (command.read_ns, command.multi_plane_read_ns),
            FlashOp::Program => (command.program_ns, command.multi_plane_program_ns),
            FlashOp::Erase => (command.erase_ns, None),
            FlashOp::Copyback => (command.copyback_ns, None),
        };
        if pages > 1 { together.map_or(pages * each.ns(), Span::ns) } else { each.ns() }
    }

    /// Pages or blocks of a die's operation.
    fn pages(&self, die: usize) -> u64 {
        let batch = &self.dies[die].batch;
        let [pages, blocks] = self.width;
        batch.len() as u64
            * match self.ops[batch[0]].1.kind {
                FlashOp::Read => 1,
                FlashOp::Program | FlashOp::Copyback => pages,
                FlashOp::Erase => blocks,
            }
    }

    fn grant(&mut self, now: u64, channel: usize) {
        let (holder, queue) = &mut self.channels[channel];
        if holder.is_some() || queue.is_empty() {
            return;
        }
        let die = queue.remove(0);
        *holder = Some(die);
        self.transfer(now, die);
    }

    /// Begins the phase of a die that has its channel.
    fn transfer(&mut self, now: u64, die: usize) {
        let pages = self.pages(die);
        let out = self.dies[die].batch[0];
        let (level, is_retry) = self.level(out);
        // Only the data of a try that decodes takes the off-chip path.
        let decodes = u64::from(level >= self.ops[out].1.needed);
        let transfer_in_ns = self.timing.transfer_ns.ns();
        let commands = self.commands_ns(die);
        let transfer_out_ns = self.timing.shapes().first().read(0, level, is_retry).transfer_ns.ns();
        let (phase, end) = self.dies[die].phase.as_mut().expect("the die waits for the channel in a phase");
        let (mut until, mut path) = match phase {
            Phase::Command => (now + commands, 0),
            Phase::TransferIn => (now + commands + pages * transfer_in_ns, pages),
            _ => (now + transfer_out_ns, decodes),
        };
        let way = if *phase == Phase::TransferIn { Way::In } else { Way::Out } as usize;
        path *= self.timing.off_chip_ns[way].ns();
        if path > 0 {
            // Data follows the command cycles.
            let commands = if *phase == Phase::TransferIn { commands } else { 0 };
            let free_at = &mut self.path_free_at[if self.has_two_paths { way } else { 0 }];
            *free_at = (*free_at).max(now + commands) + path;
            until = until.max(*free_at);
        }
        *end = Some(until);
    }

    fn ask(&mut self, now: u64, die: usize, phase: Phase) {
        self.dies[die].phase = Some((phase, None));
        let channel = die / self.dies_per_channel;
        self.channels[channel].1.push(die);
        self.grant(now, channel);
    }

    fn array(&mut self, now: u64, die: usize) {
        let number = self.dies[die].batch[0];
        let (level, is_retry) = self.level(number);
        let first = self.ops[number].1;
        let is_sensed = self.dies[die].sensed == Some(number);
        let members = if self.superblock == Superblock::Die { self.planes } else { 1 };
        let program_ns = self.timing.shapes().first().program_ns(first.page * members).ns();
        let copied_ns = u64::from(first.senses) * self.sense_ns(first.source.unwrap_or(first.page), 1, false);
        let (sense_ns, work_ns) = match first.kind {
            FlashOp::Read => (self.sense_ns(first.page, level, is_retry), 0),
            FlashOp::Program => (0, program_ns),
            FlashOp::Erase => (0, self.timing.shapes().first().erase_ns.ns()),
            FlashOp::Copyback if self.gap.is_none() => (copied_ns, program_ns),
            FlashOp::Copyback if is_sensed => (0, program_ns),
            FlashOp::Copyback => (copied_ns, 0),
        };
        let end = if work_ns == 0 { Some(now + sense_ns) } else { None };
        self.dies[die].phase = Some((Phase::Array, end));
        if work_ns > 0 {
            let progress = self.times(number).map_or(0, |times| times.min_progress_ns.ns());
            (self.dies[die].work, self.dies[die].suspensions) = ([sense_ns, progress, work_ns], 0);
            self.suspend_for_read(now, die);
        }
    }

    /// The times of the suspensions of an operation; `None` if it runs to its end.
    fn times(&self, n: usize) -> Option<SuspendTimes> {
        match self.ops[n].1.kind {
            _ if self.ops[n].1.class == Class::First => None,
            FlashOp::Read => None,
            FlashOp::Erase => self.suspend.erase,
            FlashOp::Program | FlashOp::Copyback => self.suspend.program,
        }
    }

    /// Whether the die programs or erases, and is not suspending this operation.
    fn is_working(&self, die: usize) -> bool {
        self.dies[die].phase == Some((Phase::Array, None)) && self.dies[die].ready.is_none()
    }

    /// One nanosecond of work in the array. Returns whether the operation has ended.
    fn work(&mut self, die: usize) -> bool {
        if !self.is_working(die) {
            return false;
        }
        let [overhead, progress, left] = &mut self.dies[die].work;
        if *overhead > 0 {
            *overhead -= 1;
        } else {
            (*progress, *left) = (progress.saturating_sub(1), *left - 1);
        }
        *left == 0
    }

    /// Suspends the operation of a die if a host read is next, the operation has made enough progress, and the die is
    /// ready for the read before the operation would have ended.
    fn suspend_for_read(&mut self, now: u64, die: usize) {
        if !self.is_working(die) || self.dies[die].work[..2] != [0, 0] {
            return;
        }
        let n = self.dies[die].batch[0];
        let is_read_next = self.next(die).is_some_and(|n| self.ops[n].1.class == Class::HostRead);
        let Some(times) =
            self.times(n).filter(|times| is_read_next && self.dies[die].suspensions < times.max)
        else {
            return;
        };
        if times.enter_ns.ns() >= self.dies[die].work[2] {
            return;
        }
        self.dies[die].suspensions += 1;
        self.dies[die].ready = Some(now + times.enter_ns.ns());
        self.suspensions[match self.ops[n].1.kind {
            FlashOp::Erase => 2,
            FlashOp::Copyback => 1,
            _ => 0,
        }] += 1;
    }

    /// The next operation of a die, if it were free: the first waiting operation of each class is a candidate. The
    /// candidate of the best rank is served, and among equal ranks the oldest.
    fn next(&self, die: usize) -> Option<usize> {
        let rank = |class: Class| match (self.scheduler, class, self.promoted.contains(&(die as u32))) {
            (Scheduler::Fcfs, ..) | (_, Class::First, _) => 0,
            (_, Class::HostRead, _) => 1,
            (_, Class::BeforeWrites, _) => 2,
            (_, Class::HostWrite, _) => 3,
            (_, Class::Background, promoted) => 4 - u32::from(promoted),
        };
        let NaiveDie { sensed, suspended, phase, .. } = &self.dies[die];
        // Between the sense and the program of a copyback, not while the program is under way or suspended.
        let in_gap = sensed.is_some() && suspended.is_none() && phase.is_none();
        let waiting = &self.dies[die].waiting;
        let heads = Class::ALL
            .into_iter()
            .filter(|&class| !in_gap || class == Class::HostRead)
            .filter_map(|class| waiting.iter().copied().find(|&n| self.ops[n].1.class == class));
        heads.min_by_key(|&n| (rank(self.ops[n].1.class), n))
    }

    fn start(&mut self, now: u64, die: usize) {
        if self.dies[die].phase.is_some() {
            self.suspend_for_read(now, die);
            return;
        }
        let mut closed_plane = None;
        if let Some(suspended) = &self.dies[die].suspended {
            let n = suspended[0];
            if self.next(die).is_none_or(|n| self.ops[n].1.class != Class::HostRead) {
                let times = self.times(n).expect("the operation has been suspended");
                let node = &mut self.dies[die];
                node.batch = node.suspended.take().unwrap_or_default();
                node.phase = Some((Phase::Array, None));
                (node.work[0], node.work[1]) = (times.resume_ns.ns(), times.min_progress_ns.ns());
                return;
            }
        } else if let Some(copyback) = self.dies[die].sensed {
            let held_plane = self.ops[copyback].1.plane;
            let mut reads =
                self.dies[die].waiting.iter().filter(|&&n| self.ops[n].1.class == Class::HostRead);
            let may_read = |&n: &usize| match self.gap {
                Some(CopybackGap::OtherPlanes) => self.ops[n].1.plane != held_plane,
                Some(CopybackGap::AllPlanes) => true,
                None => false,
            };
            if !reads.next().is_some_and(may_read) {
                self.dies[die].batch = vec![copyback];
                self.array(now, die);
                return;
            }
            self.reads_in_gaps += 1;
            closed_plane = (self.gap == Some(CopybackGap::OtherPlanes)).then_some(held_plane);
        }
        if self.dies[die].waiting.is_empty() {
            return;
        }
        let ops = self.ops;
        let first = self.next(die).expect("an operation waits");
        let lead = ops[first].1;
        let mut batch = vec![first];
        if self.multi_plane && lead.kind != FlashOp::Copyback {
            let of_class: Vec<usize> =
                self.dies[die].waiting.iter().copied().filter(|&n| ops[n].1.class == lead.class).collect();
            for plane in (0..self.planes).filter(|&plane| plane != lead.plane && Some(plane) != closed_plane)
            {
                let on_plane = of_class.iter().copied().filter(|&n| ops[n].1.plane == plane);
                let alike = |n: &usize| {
                    ops[*n].1.kind == lead.kind
                        && (lead.kind == FlashOp::Erase || ops[*n].1.page == lead.page)
                };
                let Some(partner) = on_plane.clone().find(alike) else { continue };
                // The pages of a block are programmed in order.
                let is_of_die = self.superblock == Superblock::Die;
                let earlier = of_class.iter().copied().take_while(|&n| n != partner);
                let mut earlier =
                    earlier.filter(|n| !batch.contains(n) && (is_of_die || ops[*n].1.plane == plane));
                let overtakes = lead.kind == FlashOp::Program
                    && earlier.any(|n| {
                        ops[n].1.kind != FlashOp::Read
                            && ops[n].1.kind != FlashOp::Erase
                            && ops[n].1.block == ops[partner].1.block
                    });
                if self.level(partner) == self.level(first) && !overtakes {
                    batch.push(partner);
                }
            }
        }
        self.dies[die].waiting.retain(|n| !batch.contains(n));
        self.dies[die].batch = batch;
        match lead.kind {
            FlashOp::Program => self.ask(now, die, Phase::TransferIn),
            _ if self.commands_ns(die) > 0 => self.ask(now, die, Phase::Command),
            _ => self.array(now, die),
        }
    }

    fn end_phase(&mut self, now: u64, die: usize) {
        let (phase, _) = self.dies[die].phase.expect("the die is in a phase");
        let kind = self.ops[self.dies[die].batch[0]].1.kind;
        let channel = die / self.dies_per_channel;
        match phase {
            Phase::Array if kind == FlashOp::Read => self.ask(now, die, Phase::TransferOut),
            Phase::Array
                if kind == FlashOp::Copyback && self.gap.is_some() && self.dies[die].sensed.is_none() =>
            {
                self.dies[die].sensed = self.dies[die].batch.pop();
                self.dies[die].phase = None;
            }
            Phase::Array => {
                if kind == FlashOp::Copyback {
                    self.dies[die].sensed = None;
                }
                for n in std::mem::take(&mut self.dies[die].batch) {
                    self.ends[n] = Some(now);
                }
                self.dies[die].phase = None;
            }
            Phase::TransferOut => {
                let n = self.dies[die].batch.remove(0);
                if self.level(n).0 < self.ops[n].1.needed {
                    self.tries[n] += 1;
                    self.dies[die].waiting.insert(0, n);
                } else {
                    self.ends[n] = Some(now);
                }
                if self.dies[die].batch.is_empty() {
                    self.dies[die].phase = None;
                    self.channels[channel].0 = None;
                    self.grant(now, channel);
                } else {
                    // The transfer of the next page was asked for with that of the first.
                    self.transfer(now, die);
                }
            }
            _ => {
                self.channels[channel].0 = None;
                self.grant(now, channel);
                self.array(now, die);
            }
        }
        self.start(now, die);
    }

    fn run(&mut self) {
        let mut next = 0;
        for now in 0.. {
            // A phase lasts at least 1 ns, so each die ends at most one phase in a nanosecond.
            for die in 0..self.dies.len() {
                if self.work(die) || self.dies[die].phase.is_some_and(|(_, end)| end == Some(now)) {
                    self.end_phase(now, die);
                } else if self.dies[die].ready == Some(now) {
                    let node = &mut self.dies[die];
                    (node.ready, node.phase) = (None, None);
                    node.suspended = Some(std::mem::take(&mut node.batch));
                    self.start(now, die);
                } else {
                    self.suspend_for_read(now, die);
                }
            }
            let issued = self.ops[next..].iter().take_while(|op| op.0 == now).count();
            for n in next..next + issued {
                self.dies[self.ops[n].1.die as usize].waiting.push(n);
            }
            for n in next..next + issued {
                self.start(now, self.ops[n].1.die as usize);
            }
            next += issued;
            if self.ends.iter().all(Option::is_some) {
                return;
            }
        }
    }
}

#[test]
fn device_agrees_with_a_nanosecond_by_nanosecond_twin() {
    let (mut operations, mut retries, mut reads_in_gaps, mut suspensions) = (0, 0, 0, [0; 3]);
    for case in 0..2000 {
        let mut stream = Stream::new(case, "device twin");
        let mut by_page = Stream::new(case, "page kinds");
        let cell = ["mlc", "mlc", "tlc"][by_page.below(3) as usize];
        let by_kind = by_page.below(2) == 0;
        let mut below = |n: u64| stream.below(n);
        // Half of the cases have four read levels, each slower than the level below; the others have one read level.
        let levels = |below: &mut dyn FnMut(u64) -> u64| {
            if below(2) == 0 {
                return ["ecc.levels='none'".to_owned(), "ecc.retry='full'".to_owned()];
            }
            let (mut sense, mut transfer) = (0, 0);
            let mut level = |number| {
                let (lsb, csb) = (sense + 1, sense + 3);
                (sense, transfer) = (sense + 1 + below(15), transfer + 1 + below(8));
                let times = match (by_kind, cell) {
                    (false, _) => format!("'{sense}ns'"),
                    (true, "mlc") => format!("{{ lsb = '{lsb}ns', msb = '{sense}ns' }}"),
                    (true, _) => format!("{{ lsb = '{lsb}ns', csb = '{csb}ns', msb = '{sense}ns' }}"),
                };
                format!(
                    "{{ rber_max = 0.00{number}, sense = {times}, transfer = '{transfer}ns', decode = '1ns' }}"
                )
            };
            let table: Vec<String> = (1..=4).map(&mut level).collect();
            let retry = ["full", "incremental"][below(2) as usize];
            [format!("ecc.levels=[{}]", table.join(", ")), format!("ecc.retry='{retry}'")]
        };
        let command = if below(2) == 0 {
            format!("timing.command={}ns", below(3))
        } else {
            let names = ["read", "program", "erase", "copyback", "multi_plane_read", "multi_plane_program"];
            let named: Vec<_> = names.into_iter().filter(|_| below(3) > 0).collect();
            let each: Vec<_> = named.into_iter().map(|name| format!("{name} = '{}ns'", below(4))).collect();
            if each.is_empty() {
                "timing.command=0ns".to_owned()
            } else {
                format!("timing.command={{ {} }}", each.join(", "))
            }
        };
        let dims = [1 + below(3), 1 + below(3), 1 + below(4)];
        let mut divided = Stream::new(case, "superblocks and one-shot programs");
        let [one_shot, of_die] = [0, 1].map(|_| divided.below(3) == 0);
        let pick = |of: &[&str], n: u64| of[n as usize].to_owned();
        let sets = [
            format!("drive.channels={}", dims[0]),
            format!("drive.chips_per_channel={}", dims[1]),
            format!("drive.planes_per_die={}", dims[2]),
            "drive.page_size=512B".to_owned(),
            format!("drive.cell='{cell}'"),
            match (by_kind, cell, 1 + below(20)) {
                (false, _, read) => format!("timing.read={read}ns"),
                (true, "mlc", read) => format!("timing.read={{ lsb = '{read}ns', msb = '{}ns' }}", 21 - read),
                (true, _, read) => {
                    format!("timing.read={{ lsb = '{read}ns', csb = '{}ns', msb = '9ns' }}", 2 * read)
                }
            },
            if one_shot {
                format!("timing.program={}ns", 1 + below(60))
            } else {
                format!("timing.program={{ lsb = '{}ns', msb = '{}ns' }}", 1 + below(40), 1 + below(60))
            },
            format!("drive.program_order={}", if one_shot { "one-shot" } else { "page" }),
            format!("drive.pages_per_block={}", if one_shot { 6 } else { 8 }),
            "drive.op=2".to_owned(),
            format!("timing.erase={}ns", 1 + below(100)),
            // A page takes 1 to 10 ns on the channel, and up to some ns on the off-chip path.
            format!("timing.channel_ns_per_byte={}", (1 + below(10)) as f64 / 512.0),
            format!(
                "timing.off_chip_mb_per_s={}",
                pick(&["'unlimited'", "100000", "512000", "{ read = 100000, write = 256000 }"], below(4))
            ),
            command,
            format!("timing.scheduler={}", pick(&["fcfs", "read-first"], below(2))),
            format!("timing.multi_plane={}", below(2) == 0),
        ];
        let levels = levels(&mut below);
        // The read levels have sensing times of their own.
        let has_levels = levels[0] != "ecc.levels='none'";
        let acts = |set: &&String| !has_levels || !set.starts_with("timing.read=");
        let sets: Vec<&str> = sets.iter().filter(acts).chain(&levels).map(String::as_str).collect();
        let mut rig = Rig::new(FOUR_DIES, &sets);
        let of_die = of_die && rig.spec.timing.multi_plane;
        if of_die {
            rig.superblock = Superblock::Die;
        }
        let dies = dims[0] * dims[1];
        // A case may omit some kinds of operations.
        let kinds: Vec<FlashOp> = [FlashOp::Read, FlashOp::Program, FlashOp::Erase, FlashOp::Copyback]
            .into_iter()
            .filter(|_| below(4) > 0)
            .collect();
        let kinds = if kinds.is_empty() { vec![FlashOp::Read] } else { kinds };
        if rig.spec.timing.scheduler == Scheduler::ReadFirst {
            let gaps = [None, Some(CopybackGap::OtherPlanes), Some(CopybackGap::AllPlanes)];
            rig.gap = gaps[below(3) as usize];
            if of_die && rig.gap == Some(CopybackGap::OtherPlanes) {
                rig.gap = Some(CopybackGap::AllPlanes);
            }
            let mut of_kind = || {
                (below(3) > 0).then(|| SuspendTimes {
                    enter_ns: Span::from_ns(1 + below(6)),
                    resume_ns: Span::from_ns(below(5)),
                    min_progress_ns: Span::from_ns(below(2) * below(12)),
                    max: 1 + below(4) as u32,
                })
            };
            rig.spec.timing.suspend = SuspendSpec { program: of_kind(), erase: of_kind() };
        }
        let members = if of_die { dims[2] } else { 1 };
        let bits = rig.spec.drive.cell.bits();
        let width = [if one_shot { u64::from(bits) * members } else { 1 }, members];
        let between = 1 + below(30);
        let most = rig.spec.ecc.levels.len().max(1) as u64;
        for _ in 0..60 {
            let class = Class::ALL[below(Class::ALL.len() as u64) as usize];
            let kind = kinds[below(kinds.len() as u64) as usize];
            // For a gap or a suspension, the class of host reads has reads only.
            let serves_reads = rig.gap.is_some() || rig.spec.timing.suspend != SuspendSpec::default();
            let is_read = class == Class::HostRead && serves_reads;
            let mut op = op(if is_read { FlashOp::Read } else { kind }, below(dies) as u32)
                .plane(below(dims[2]) as u32)
                // Each block is programmed by only one class.
                .block(3 * class as u32 + below(3) as u32)
                .page(below(3) as u32)
                .class(class)
                .levels(1 + below(most) as u8, 1 + below(most) as u8)
                .source(by_page.below(6) as u32);
            // An operation of a superblock, or a program of a wordline, begins in its first page.
            let programs = op.kind.programs();
            if of_die && (op.kind == FlashOp::Erase || one_shot && programs) {
                op.plane = 0;
            }
            if one_shot && programs {
                op.page = op.page / bits * bits;
            }
            op.senses = if op.kind == FlashOp::Copyback { 1 + divided.below(width[0]) as u8 } else { 1 };
            let now = rig.now + below(between);
            rig.at(now).issue(op);
        }
        rig.promoted = (0..dies as u32).filter(|_| below(3) == 0).collect();
        let geometry = rig.geometry();
        let mut naive = Naive {
            ops: &rig.issued,
            dies: vec![NaiveDie::default(); dies as usize],
            channels: vec![(None, Vec::new()); dims[0] as usize],
            path_free_at: [0; 2],
            has_two_paths: matches!(rig.spec.timing.off_chip, OffChipRate::Separate { .. }),
            ends: vec![None; rig.issued.len()],
            timing: Timing::new(&rig.spec.timing, &geometry, rig.spec.shapes(&geometry)),
            spec: &rig.spec,
            command: rig.spec.timing.command,
            scheduler: rig.spec.timing.scheduler,
            promoted: rig.promoted.clone(),
            multi_plane: rig.spec.timing.multi_plane,
            planes: dims[2] as u32,
            superblock: rig.superblock,
            width,
            dies_per_channel: dims[1] as usize,
            tries: vec![0; rig.issued.len()],
            gap: rig.gap,
            reads_in_gaps: 0,
            suspend: rig.spec.timing.suspend,
            suspensions: [0; 3],
        };
        naive.run();
        reads_in_gaps += naive.reads_in_gaps;
        suspensions.iter_mut().zip(naive.suspensions).for_each(|(sum, more)| *sum += more);
        retries += naive.tries.iter().map(|&tries| u64::from(tries)).sum::<u64>();
        let (run, suspend) = (rig.run(), rig.spec.timing.suspend);
        let told = format!("case {case}: {sets:?} {:?} {suspend:?}\n{:?}", rig.gap, rig.issued);
        assert_eq!(run.ends, naive.ends, "{told}");
        let [programs, copybacks, erases] = naive.suspensions.map(u64::from);
        let counted = run.device.suspensions();
        assert_eq!([counted.programs, counted.erases], [programs + copybacks, erases], "{told}");
        operations += rig.issued.len();
    }
    assert!(retries > 1500, "only {retries} tries have failed");
    assert!(
        reads_in_gaps > 500,
        "only {reads_in_gaps} reads come between the sense and the program of a copyback"
    );
    assert!(
        suspensions.iter().all(|&count| count > 200),
        "only so many programs, copybacks and erases are suspended: {suspensions:?}"
    );
    println!("{operations} operations with {retries} retries end at the same nanosecond");
}
