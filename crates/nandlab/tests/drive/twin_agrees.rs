//! The drive and its twin (`twin.rs`) agree on every array operation and on the end of every request, to the
//! nanosecond.

use crate::common::{at, spec};
use crate::twin::Twin;
use nandlab::base::geometry::DieId;
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::{Drive, IDLE_LIMIT};
use nandlab::host::{Op, Request};
use nandlab::probe::Probe;
use nandlab::sched::{FlashOp, Phase, Transaction, Watcher};

/// The settings of drive and twin. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setting {
    /// Channels, chips per channel, dies per chip, planes per die.
    pub(crate) sizes: [usize; 4],
    pub(crate) pages_per_block: usize,
    pub(crate) order: &'static str,
    pub(crate) is_fcfs: bool,
    pub(crate) is_multi_plane: bool,
    /// Whether a cell has three bits, not two.
    pub(crate) is_tlc: bool,
    /// tR and tPROG of LSB, CSB and MSB pages.
    pub(crate) read: [u64; 3],
    pub(crate) program: [u64; 3],
    pub(crate) erase: u64,
    pub(crate) transfer: u64,
    /// Transfer of a page over the off-chip path; 0: unlimited.
    pub(crate) path: u64,
    /// Transfer of a page over the path of programs, if it is not that of reads.
    pub(crate) path_in: Option<u64>,
    pub(crate) decode: u64,
    /// Command times of a read, a program and an erase.
    pub(crate) commands: [u64; 3],
    /// Command times of a multi-plane read and a multi-plane program.
    pub(crate) multi_plane_commands: [Option<u64>; 2],
    /// Groups of planes of a die that read independently; 1: planes read together.
    pub(crate) groups: usize,
    /// The time for which such reads hold off another operation of their die.
    pub(crate) hold: u64,
}

/// Bytes of a page, the smallest page size.
const BYTES: u64 = 512;

/// Array operations: die, kind (0 read, 1 program, 2 erase), start, end.
#[derive(Default)]
struct Watch(Vec<(usize, usize, u64, u64)>);

impl Watcher for Watch {
    fn on_phase(&mut self, start: Time, end: Time, die: DieId, _: u32, phase: Phase, t: &Transaction) {
        let kind = match t.kind {
            FlashOp::Read => 0,
            FlashOp::Program => 1,
            FlashOp::Erase => 2,
            FlashOp::Copyback => panic!("the spec has no copybacks"),
        };
        if phase == Phase::Array {
            self.0.push((die.index(), kind, start.ns(), end.ns()));
        }
    }
}

impl Probe for Watch {}

fn draw(stream: &mut Stream) -> Setting {
    // A third of the drives has cells of three bits; half of the drives has tR by page kind.
    let is_tlc = stream.below(3) == 0;
    let csb = 1 + stream.below(50);
    let read =
        if stream.below(2) == 0 { [1 + stream.below(20); 3] } else { [(); 3].map(|()| 1 + stream.below(20)) };
    let mut from = |low: u64, high: u64| low + stream.below(high - low + 1);
    let sizes = [(1, 3), (1, 2), (1, 2), (1, 4)].map(|(low, high)| from(low, high) as usize);
    let multi_plane_commands = [(); 2].map(|()| (from(0, 1) == 0).then(|| from(0, 5)));
    let path = [0, 0, 1, 2, 4, 8][from(0, 5) as usize];
    let groups = [1, sizes[3], if sizes[3] == 4 { 2 } else { 1 }][from(0, 2) as usize];
    Setting {
        sizes,
        pages_per_block: [2, 4, 6][from(0, 2) as usize],
        order: ["CWDP", "PDWC", "WPCD", "DCPW"][from(0, 3) as usize],
        is_fcfs: from(0, 1) == 0,
        is_multi_plane: from(0, 2) > 0,
        is_tlc,
        read,
        program: [from(1, 40), csb, from(1, 60)],
        erase: from(1, 100),
        transfer: from(1, 10),
        path,
        path_in: (path > 0 && from(0, 1) == 0).then(|| [1, 2, 4, 8][from(0, 3) as usize]),
        decode: from(1, 10),
        commands: [from(0, 3), from(0, 3), from(0, 3)],
        multi_plane_commands,
        groups,
        hold: [0, from(0, 100), 100_000][from(0, 2) as usize],
    }
}

fn text(set: &Setting) -> String {
    let [channels, chips, dies, planes] = set.sizes;
    let [read, program, erase] = set.commands;
    let multi_plane: String = ["multi_plane_read", "multi_plane_program"]
        .iter()
        .zip(set.multi_plane_commands)
        .filter_map(|(name, time)| Some(format!(", {name} = '{}ns'", time?)))
        .collect();
    let rate = |page_ns: u64| (BYTES * 1000).checked_div(page_ns);
    let path = match (rate(set.path), set.path_in.and_then(rate)) {
        (Some(read), Some(write)) => format!("{{ read = {read}, write = {write} }}"),
        (shared, _) => shared.map_or("'unlimited'".into(), |rate| rate.to_string()),
    };
    let times = |[lsb, csb, msb]: [u64; 3]| {
        let csb = if set.is_tlc { format!("csb = '{csb}ns', ") } else { String::new() };
        format!("{{ lsb = '{lsb}ns', {csb}msb = '{msb}ns' }}")
    };
    let reads = match (set.groups, set.hold) {
        (1, _) => String::new(),
        (groups, hold) if groups == planes => {
            format!("plane_reads = 'independent'\nread_hold = '{hold}ns'\n")
        }
        (groups, hold) => format!("plane_reads = {{ groups = {groups} }}\nread_hold = '{hold}ns'\n"),
    };
    // 240 blocks are so many that GC is never needed.
    format!(
        "[drive]\nchannels = {channels}\nchips_per_channel = {chips}\ndies_per_chip = {dies}\nplanes_per_die = {planes}\n\
         blocks_per_plane = 240\npages_per_block = {}\npage_size = '{BYTES}B'\ncell = '{}'\nop = 1.0\n[timing]\n\
         read = {}\nprogram = {}\nerase = '{}ns'\nchannel_ns_per_byte = {}\n\
         off_chip_mb_per_s = {path}\ndecode = '{}ns'\nscheduler = '{}'\nmulti_plane = {}\n\
         command = {{ read = '{read}ns', program = '{program}ns', erase = '{erase}ns'{multi_plane} }}\n{reads}\
         [ftl]\nallocation = '{}'\n[gc]\nbackground_free = 0.001\nforeground_free = 0.0\n",
        set.pages_per_block,
        if set.is_tlc { "tlc" } else { "mlc" },
        times(set.read),
        times(set.program),
        set.erase,
        set.transfer as f64 / BYTES as f64,
        set.decode,
        if set.is_fcfs { "fcfs" } else { "read-first" },
        set.is_multi_plane,
        set.order,
    )
}

#[test]
fn drive_agrees_with_a_naive_twin_to_the_nanosecond() {
    let (cases, mut done, mut multi_plane, mut beside, mut held) = (5000, [0; 3], 0, 0, 0);
    for case in 0..cases {
        let mut stream = Stream::new(case, "drive twin");
        let set = draw(&mut stream);
        let mut drive = Drive::with_probe(&spec(&text(&set), &[]), Watch::default());
        let mut twin = Twin::new(set.clone());
        let (span, most, gap) = (8 + stream.below(56), 1 + stream.below(12), stream.below(40));
        let weights = [1 + stream.below(5), 1 + stream.below(5), stream.below(3)];
        let (mut now, mut requests) = (0, Vec::new());
        for _ in 0..30 {
            now += stream.below(gap + 1);
            let draw = stream.below(weights.iter().sum());
            let op = [Op::Read, Op::Write, Op::Trim]
                [usize::from(draw >= weights[0]) + usize::from(draw >= weights[0] + weights[1])];
            let (first, pages) = (stream.below(span), 1 + stream.below(most));
            requests.push((now, op, first..first + pages));
        }
        for (arrival, op, pages) in &requests {
            drive.advance(at(*arrival));
            let (offset, len) = (pages.start * BYTES, (pages.end - pages.start) * BYTES);
            drive.submit(&Request::new(*op, offset, len).at(at(*arrival))).unwrap();
            twin.advance(*arrival);
            twin.arrive(*arrival, *op, pages.clone());
        }
        drive.run_until_idle(IDLE_LIMIT).unwrap();
        drive.audit().unwrap();
        twin.advance(u64::MAX);
        let mut ends = vec![(0, None); requests.len()];
        for completion in drive.completions() {
            ends[completion.id as usize].1 = Some(completion.completed.ns());
        }
        let context = || format!("case {case}: {set:?}\n{requests:?}");
        assert_eq!(drive.stats().gc.victims, 0, "{}", context());
        assert_eq!(drive.probe().0, twin.work, "{}", context());
        assert_eq!(ends, twin.requests, "{}", context());
        twin.work.iter().for_each(|&(_, kind, ..)| done[kind] += 1);
        multi_plane += twin.multi_plane;
        beside += twin.beside;
        held += twin.held;
    }
    let counts = format!(
        "{cases} cases: {done:?} reads, programs and erases, {multi_plane} of them multi-plane, {beside} reads beside \
         another read of the die, {held} held back for an operation of the die"
    );
    println!("{counts}");
    let enough = [20_000, 150_000, 15_000];
    assert!(done.iter().zip(enough).all(|(&done, enough)| done > enough), "{counts}");
    assert!(multi_plane > 30_000 && beside > 1_500 && held > 1_000, "{counts}");
}
