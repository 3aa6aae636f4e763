//! `gc.foreground = "blocking"`: a naive twin of a die and its planes, with the rule of DiskSim's SSD model: a write
//! that makes a plane of the die short of space waits until blocks have been cleaned, each from its first copy to its
//! erase, and no plane is short; so do the operations behind it. The twin shares only the type `Op` with the crate. The
//! drive agrees with it on every array operation and on the end of every request, to the nanosecond.

use crate::common::{at, spec};
use nandlab::base::geometry::{DieId, LaneId};
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::{Drive, IDLE_LIMIT};
use nandlab::host::{Op, Request};
use nandlab::probe::Probe;
use nandlab::sched::{FlashOp, Phase, Transaction, Watcher};
use std::collections::VecDeque;

/// Bytes of a page, the smallest page size.
const BYTES: u64 = 512;
/// Pages of a block.
const PAGES: usize = 4;
/// tR, tPROG and tBERS, and the transfer of a page, in nanoseconds.
const R: u64 = 25;
const P: u64 = 200;
const E: u64 = 1500;
const T: u64 = 3;

/// Where a page is: its block and its number in the block.
type Place = (usize, usize);

#[derive(Clone, Debug)]
enum Work {
    HostRead(usize, Place),
    /// The request, the place of the page, and the block of the page that it replaces.
    HostWrite(usize, Place, Option<usize>),
    CopyRead(u64, Place),
    CopyWrite(Place, usize),
    Erase(usize),
}

#[derive(Clone, Debug, Default)]
struct Block {
    plane: usize,
    lpns: Vec<Option<u64>>,
    programmed: usize,
    pins: usize,
    is_victim: bool,
}

#[derive(Clone, Debug)]
struct Cleaning {
    victim: usize,
    next: usize,
    copies: usize,
    is_erasing: bool,
    /// Host operations from this number on wait for the cleaning.
    from: u64,
}

#[derive(Clone, Debug, Default)]
struct Plane {
    free: VecDeque<usize>,
    /// The open blocks of the host and of GC.
    open: [Option<usize>; 2],
    cleaning: Option<Cleaning>,
    /// A write has opened a block while the plane is short of space, or the last cleaning has left it short: the number
    /// from which on host operations wait. It is decided next whether a cleaning follows.
    due: Option<u64>,
    /// Whether the cleaning has the die to itself.
    blocks: bool,
    /// Pages that wait for room: request and LPN.
    waiting: VecDeque<(usize, u64)>,
}

#[derive(Default)]
struct Twin {
    now: u64,
    reserve: usize,
    /// A plane is short of space if the host can write less than this share of the pages that are not valid, without
    /// the number of pages that the drive keeps for itself.
    share: f64,
    kept_pages: usize,
    /// Planes of which a block has been opened or closed, or in which a page has found no room.
    changed: Vec<usize>,
    map: Vec<Option<Place>>,
    blocks: Vec<Block>,
    planes: Vec<Plane>,
    queue: Vec<(u64, Work)>,
    submitted: u64,
    /// Host operations from this number on wait.
    kept_from: Option<u64>,
    /// Operations have been queued or released since the die last looked for its next one.
    may_start: bool,
    /// The operation of the die and its end.
    under_way: Option<(u64, Work)>,
    /// By request, the number of pages not completed, and the time of completion.
    requests: Vec<(usize, Option<u64>)>,
    /// Array operations: kind (0 read, 1 program, 2 erase), start, end.
    work: Vec<(usize, u64, u64)>,
    cleanings: usize,
    /// Writes that found the die idle and waited for a cleaning.
    waited_on_idle_die: usize,
}

impl Twin {
    fn new(planes: usize, blocks: usize, logical_pages: u64) -> Self {
        let of = |plane: usize| plane * blocks..(plane + 1) * blocks;
        let block = |plane| Block { plane, ..Block::default() };
        Self {
            map: vec![None; logical_pages as usize],
            blocks: (0..planes).flat_map(|plane| of(plane).map(move |_| block(plane))).collect(),
            planes: (0..planes)
                .map(|plane| Plane { free: of(plane).collect(), ..Plane::default() })
                .collect(),
            ..Self::default()
        }
    }

    fn submit(&mut self, work: Work) {
        self.queue.push((self.submitted, work));
        self.submitted += 1;
        self.may_start = true;
    }

    fn valid(&self, block: usize) -> usize {
        self.blocks[block].lpns.iter().flatten().count()
    }

    fn is_at_reserve(&self, plane: usize) -> bool {
        self.planes[plane].free.len() <= self.reserve
    }

    fn is_short(&self, plane: usize) -> bool {
        let Plane { free, open, .. } = &self.planes[plane];
        let left = open[0].map_or(0, |block| PAGES - self.blocks[block].lpns.len());
        let room = free.len().saturating_sub(self.reserve) * PAGES + left;
        let of_plane = self.map.iter().skip(plane).step_by(self.planes.len());
        let valid = of_plane.flatten().count();
        let pages = self.blocks.len() / self.planes.len() * PAGES;
        let spare = pages.saturating_sub(valid + self.kept_pages);
        self.is_at_reserve(plane) || (room as f64) < self.share * spare as f64
    }

    /// Takes the next page of the host (0) or of GC (1). Returns its place and whether it has opened a block.
    fn take(&mut self, plane: usize, stream: usize, lpn: u64) -> Option<(Place, bool)> {
        let opens = self.planes[plane].open[stream].is_none();
        if opens {
            if stream == 0 && self.is_at_reserve(plane) {
                return None;
            }
            self.planes[plane].open[stream] = self.planes[plane].free.pop_front();
        }
        let block = self.planes[plane].open[stream].expect("GC has a reserve");
        let number = self.blocks[block].lpns.len();
        self.blocks[block].lpns.push(Some(lpn));
        if number + 1 == PAGES {
            self.planes[plane].open[stream] = None;
        }
        Some(((block, number), opens))
    }

    /// Maps an LPN and returns the block of the page that is replaced, which is pinned.
    fn remap(&mut self, lpn: u64, to: Place) -> Option<usize> {
        let old = self.map[lpn as usize].replace(to);
        old.map(|(block, number)| {
            self.blocks[block].lpns[number] = None;
            self.blocks[block].pins += 1;
            block
        })
    }

    /// Takes a read or a write of whole pages at time `now`.
    fn arrive(&mut self, now: u64, op: Op, lpns: std::ops::Range<u64>) {
        self.now = now;
        let request = self.requests.len();
        self.requests.push((1, None));
        for lpn in lpns {
            let place = self.map[lpn as usize];
            if op == Op::Write {
                self.requests[request].0 += 1;
                let plane = lpn as usize % self.planes.len();
                self.planes[plane].waiting.push_back((request, lpn));
                self.give_room(plane);
                if !self.planes[plane].waiting.is_empty() {
                    self.changed.push(plane);
                }
            } else if let Some((block, number)) =
                place.filter(|&(b, number)| number < self.blocks[b].programmed)
            {
                self.requests[request].0 += 1;
                self.blocks[block].pins += 1;
                self.submit(Work::HostRead(request, (block, number)));
            }
        }
        self.done(request);
        self.settle();
    }

    /// Writes pages that wait for room. A page that opens the last block that the host may have keeps the die for the
    /// cleaning that follows.
    fn give_room(&mut self, plane: usize) {
        while let Some(&(request, lpn)) = self.planes[plane].waiting.front() {
            let Some((place, opens)) = self.take(plane, 0, lpn) else { return };
            self.planes[plane].waiting.pop_front();
            let replaced = self.remap(lpn, place);
            if opens {
                self.changed.push(plane);
            }
            if opens && self.is_short(plane) && self.planes[plane].due.is_none() {
                self.planes[plane].due = Some(self.submitted);
                let idle = self.under_way.is_none() && self.queue.is_empty() && self.kept_from.is_none();
                self.waited_on_idle_die += usize::from(idle);
                self.keep();
            }
            self.submit(Work::HostWrite(request, place, replaced));
        }
    }

    fn done(&mut self, request: usize) {
        let (left, end) = &mut self.requests[request];
        *left -= 1;
        *end = (*left == 0).then_some(self.now);
    }

    /// Host operations wait from the first number of the cleanings that follow each other without a gap.
    fn keep(&mut self) {
        let mut first = None;
        for plane in &mut self.planes {
            let blocks = plane.cleaning.as_ref().is_some_and(|c| c.copies > 0 || c.is_erasing);
            self.may_start |= plane.blocks && !blocks;
            plane.blocks = blocks;
            let of_cleaning = plane.cleaning.as_ref().filter(|_| blocks).map(|cleaning| cleaning.from);
            first = first.or(plane.due).or(of_cleaning);
        }
        self.kept_from = first.and(self.kept_from).or(first);
    }

    /// Begins what an event has made possible. The die starts its next operation last, or, if operations have been
    /// queued or released, before it is looked at the next plane.
    fn settle(&mut self) {
        self.start_if_due();
        for plane in 0..self.planes.len() {
            self.continue_cleaning(plane);
        }
        self.start_if_due();
        while !self.changed.is_empty() {
            let plane = self.changed.remove(0);
            self.look(plane);
            self.start_if_due();
        }
        self.start();
    }

    fn start_if_due(&mut self) {
        if self.may_start {
            self.start();
        }
    }

    /// Starts the next operation of an idle die.
    fn start(&mut self) {
        self.may_start = false;
        if self.under_way.is_some() {
            return;
        }
        let is_host = |work: &Work| matches!(work, Work::HostRead(..) | Work::HostWrite(..));
        let mut candidates: Vec<u64> = self.queue.iter().map(|&(number, _)| number).collect();
        if let Some(from) = self.kept_from {
            let came_before = self.queue.iter().any(|(number, work)| is_host(work) && *number < from);
            let may =
                |(number, work): &&(u64, Work)| if came_before { *number < from } else { !is_host(work) };
            candidates = self.queue.iter().filter(may).map(|&(number, _)| number).collect();
        }
        let Some(next) = candidates.into_iter().min() else { return };
        let at = self.queue.iter().position(|&(number, _)| number == next).unwrap();
        let (_, work) = self.queue.remove(at);
        let (kind, into, array, out) = match work {
            Work::HostRead(..) | Work::CopyRead(..) => (0, 0, R, T),
            Work::HostWrite(..) | Work::CopyWrite(..) => (1, T, P, 0),
            Work::Erase(_) => (2, 0, E, 0),
        };
        self.work.push((kind, self.now + into, self.now + into + array));
        self.under_way = Some((self.now + into + array + out, work));
    }

    /// Begins the cleaning of a plane that is short of space, if a write waits for it.
    fn look(&mut self, plane: usize) {
        let due = self.planes[plane].due.take();
        self.may_start |= due.is_some();
        let waits = self.planes.iter().any(|plane| !plane.waiting.is_empty());
        let is_due = due.is_some() || self.is_at_reserve(plane) || waits;
        if is_due && self.is_short(plane) && self.planes[plane].cleaning.is_none() {
            self.clean(plane, due.unwrap_or(self.submitted));
        }
        self.continue_cleaning(plane);
    }

    /// Begins the cleaning of the full block with the fewest valid pages, the one with the lowest number among several.
    fn clean(&mut self, plane: usize, from: u64) {
        let may = |&b: &usize| {
            let block = &self.blocks[b];
            block.plane == plane && block.programmed == PAGES && !block.is_victim && self.valid(b) < PAGES
        };
        let Some(victim) = (0..self.blocks.len()).filter(may).min_by_key(|&b| self.valid(b)) else { return };
        self.blocks[victim].is_victim = true;
        self.cleanings += 1;
        self.planes[plane].cleaning = Some(Cleaning { victim, next: 0, copies: 0, is_erasing: false, from });
    }

    /// Reads the next valid page of a victim, one at a time; erases the victim when nothing needs it.
    fn continue_cleaning(&mut self, plane: usize) {
        if let Some(cleaning) = &mut self.planes[plane].cleaning
            && cleaning.copies == 0
            && !cleaning.is_erasing
        {
            let victim = cleaning.victim;
            let lpns = &self.blocks[victim].lpns;
            if let Some(number) = (cleaning.next..PAGES).find(|&number| lpns[number].is_some()) {
                (cleaning.next, cleaning.copies) = (number + 1, 1);
                let lpn = lpns[number].unwrap();
                self.submit(Work::CopyRead(lpn, (victim, number)));
            } else if self.blocks[victim].pins == 0 {
                cleaning.is_erasing = true;
                self.submit(Work::Erase(victim));
            }
        }
        self.keep();
    }

    /// A page of a victim has been copied or is no longer valid.
    fn copied(&mut self, plane: usize) {
        self.planes[plane].cleaning.as_mut().unwrap().copies = 0;
        self.continue_cleaning(plane);
    }

    fn programmed(&mut self, block: usize) {
        self.blocks[block].programmed += 1;
        if self.blocks[block].programmed == PAGES {
            self.changed.push(self.blocks[block].plane);
        }
    }

    fn end(&mut self, work: Work) {
        match work {
            Work::HostRead(request, (block, _)) => {
                self.blocks[block].pins -= 1;
                self.done(request);
            }
            Work::HostWrite(request, (block, _), replaced) => {
                self.programmed(block);
                if let Some(old) = replaced {
                    self.blocks[old].pins -= 1;
                }
                self.done(request);
            }
            Work::CopyRead(lpn, from) => {
                let plane = self.blocks[from.0].plane;
                if self.map[lpn as usize] == Some(from) {
                    let (to, _) = self.take(plane, 1, lpn).expect("GC has a reserve");
                    self.remap(lpn, to);
                    self.submit(Work::CopyWrite(to, from.0));
                } else {
                    self.copied(plane);
                }
            }
            Work::CopyWrite((block, _), victim) => {
                self.programmed(block);
                self.blocks[victim].pins -= 1;
                self.copied(self.blocks[victim].plane);
            }
            Work::Erase(block) => {
                let plane = self.blocks[block].plane;
                self.blocks[block] = Block { plane, ..Block::default() };
                self.planes[plane].free.push_back(block);
                let Cleaning { from, .. } = self.planes[plane].cleaning.take().unwrap();
                self.planes[plane].due = self.is_short(plane).then_some(from);
                self.keep();
                self.give_room(plane);
                self.start_if_due();
                self.look(plane);
            }
        }
        self.settle();
    }

    /// Simulates until `to`.
    fn advance(&mut self, to: u64) {
        while let Some((end, work)) = self.under_way.clone().filter(|&(end, _)| end <= to) {
            (self.now, self.under_way) = (end, None);
            self.end(work);
        }
    }
}

/// Array operations: kind (0 read, 1 program, 2 erase), start, end.
#[derive(Default)]
struct Watch(Vec<(usize, u64, u64)>);

impl Watcher for Watch {
    fn on_phase(&mut self, start: Time, end: Time, _: DieId, _: u32, phase: Phase, t: &Transaction) {
        let kind = match t.kind {
            FlashOp::Read => 0,
            FlashOp::Program => 1,
            FlashOp::Erase => 2,
            FlashOp::Copyback => panic!("the spec has no copybacks"),
        };
        if phase == Phase::Array {
            self.0.push((kind, start.ns(), end.ns()));
        }
    }
}

impl Probe for Watch {}

#[test]
fn blocking_gc_agrees_with_a_naive_twin_of_disksims_rule() {
    let (mut cleanings, mut waited_on_idle_die, mut operations) = (0, 0, 0);
    for case in 0..400 {
        let mut stream = Stream::new(case, "blocking twin");
        let planes = 1 + stream.below(3) as usize;
        let blocks = 14 + stream.below(8) as usize;
        let share = [0.0, 0.2, 0.5][stream.below(3) as usize];
        let text = format!(
            "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = {planes}\n\
             blocks_per_plane = {blocks}\npages_per_block = {PAGES}\npage_size = '{BYTES}B'\ncell = 'slc'\nop = 1.2\n\
             endurance = 1000000\n[timing]\nread = '{R}ns'\nprogram = '{P}ns'\nerase = '{E}ns'\n\
             channel_ns_per_byte = {}\ncommand = '0ns'\ndecode = '0ns'\nscheduler = 'fcfs'\nmulti_plane = false\n\
             [ftl]\nallocation = 'CWDP'\nwear_levelling = 'none'\n[migration]\nin_flight = 1\n\
             [gc]\nforeground = 'blocking'\npacing = 'none'\nforeground_free = {share}\nbackground_free = 0.9\n\
             idle_after = '10h'\n",
            T as f64 / BYTES as f64,
        );
        let mut drive = Drive::with_probe(&spec(&text, &[]), Watch::default());
        let logical_pages = u64::from(drive.geometry().logical_units);
        let mut twin = Twin::new(planes, blocks, logical_pages);
        let spare = drive.ftl().host_spare_units(LaneId(0)) as usize;
        (twin.share, twin.kept_pages) = (share, blocks * PAGES - spare);
        twin.reserve = drive.ftl().reserve_superblocks as usize;
        let (gap, most, reads) = (1 + stream.below(2 * P), 1 + stream.below(3), stream.below(4));
        // Writes go to a part of the drive more often than to the rest, so that blocks have different numbers of valid
        // pages.
        let hot = 1 + stream.below(logical_pages);
        let mut requests = Vec::new();
        let mut now = 0;
        for _ in 0..300 {
            now += stream.below(gap + 1) * if stream.below(8) == 0 { 20 } else { 1 };
            let op = if stream.below(10) < reads { Op::Read } else { Op::Write };
            let span = if stream.below(3) > 0 { hot } else { logical_pages };
            let first = stream.below(span);
            let pages = (1 + stream.below(most)).min(logical_pages - first);
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
        let context = || format!("case {case}: {text}\n{requests:?}");
        assert_eq!(drive.probe().0, twin.work, "{}", context());
        assert_eq!(ends, twin.requests, "{}", context());
        assert_eq!(drive.stats().gc.victims, twin.cleanings as u64, "{}", context());
        cleanings += twin.cleanings;
        waited_on_idle_die += twin.waited_on_idle_die;
        operations += twin.work.len();
    }
    println!(
        "{operations} operations, {cleanings} cleanings, {waited_on_idle_die} waits for one on an idle die"
    );
    assert!(cleanings > 10_000 && waited_on_idle_die > 500, "{cleanings} {waited_on_idle_die}");
}
