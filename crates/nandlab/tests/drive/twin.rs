//! A naive twin of the whole drive. It searches plain lists, finds the next event by comparing all events, and shares
//! only the type `Op` with the crate. The twin has a page map, static allocation, host requests of whole pages, erases
//! of dead blocks, dies, planes, channels and the off-chip path. It has no GC: drives that are compared with it have so
//! many blocks that they need none. Planes that read independently are stations: further dies behind the dies, which have
//! reads alone.

use crate::twin_agrees::Setting;
use nandlab::host::Op;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Command cycles, and the transfer of a program's pages.
    In,
    Array,
    Out,
}

/// An operation of kind 0 (read), 1 (program) or 2 (erase). The kind is also the rank of the operation's class.
/// `replaces` is the block of the page that a program replaces.
#[derive(Clone, Copy, Debug)]
struct Operation {
    kind: usize,
    block: usize,
    number: usize,
    request: usize,
    replaces: Option<usize>,
}

#[derive(Clone, Debug, Default)]
struct Die {
    waiting: Vec<usize>,
    batch: Vec<usize>,
    phase: Option<(Phase, Option<u64>)>,
    /// The time since which an operation waits for the reads of stations.
    waits_since: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct Block {
    plane: usize,
    taken: usize,
    programmed: usize,
    valid: usize,
    pins: usize,
    is_dead: bool,
}

#[derive(Default)]
pub(crate) struct Twin {
    set: Setting,
    now: u64,
    blocks: Vec<Block>,
    /// Block and page number of each LPN.
    map: BTreeMap<u64, (usize, usize)>,
    operations: Vec<Operation>,
    /// The dies, and behind them the stations.
    dies: Vec<Die>,
    count: usize,
    /// By channel, the die that uses the channel, and the dies that wait for it.
    channels: Vec<(Option<usize>, Vec<usize>)>,
    path_free_at: u64,
    path_in_free_at: u64,
    decoding: Vec<(u64, usize)>,
    /// By request, the number of pages not completed, and the time of completion.
    pub(crate) requests: Vec<(usize, Option<u64>)>,
    to_start: Vec<usize>,
    dead: Vec<usize>,
    /// Array operations: die, kind, start, end.
    pub(crate) work: Vec<(usize, usize, u64, u64)>,
    /// Number of multi-plane operations.
    pub(crate) multi_plane: usize,
    /// Number of reads that began while another station of the die was at work.
    pub(crate) beside: usize,
    /// Number of times that a station left its read to an operation of the die.
    pub(crate) held: usize,
}

impl Twin {
    pub(crate) fn new(set: Setting) -> Self {
        let [channels, chips, dies, _] = set.sizes;
        let count = channels * chips * dies;
        let stations = if set.groups > 1 { count * set.groups } else { 0 };
        let dies = vec![Die::default(); count + stations];
        Self { set, dies, count, channels: vec![(None, vec![]); channels], ..Self::default() }
    }

    /// Returns the plane of an LPN, counted over the drive; the first letter of the order varies fastest.
    fn plane_of(&self, lpn: u64) -> usize {
        let (mut rest, mut at) = (lpn as usize, [0; 4]);
        for place in self.set.order.chars().map(|letter| "CWDP".find(letter).unwrap()) {
            at[place] = rest % self.set.sizes[place];
            rest /= self.set.sizes[place];
        }
        (0..4).fold(0, |sum, place| sum * self.set.sizes[place] + at[place])
    }

    /// Takes a read, write or TRIM of whole pages at time `now`.
    pub(crate) fn arrive(&mut self, now: u64, op: Op, pages: std::ops::Range<u64>) {
        self.now = now;
        let request = self.requests.len();
        self.requests.push((1, None));
        for lpn in pages {
            let old = self.map.get(&lpn).copied();
            match (op, old) {
                (Op::Read, Some((block, number))) if number < self.blocks[block].programmed => {
                    self.blocks[block].pins += 1;
                    self.queue(Operation { kind: 0, block, number, request, replaces: None });
                }
                (Op::Trim, Some((block, _))) => {
                    self.map.remove(&lpn);
                    self.blocks[block].valid -= 1;
                    self.look(block);
                }
                (Op::Write, _) => self.write(request, lpn, old.map(|(block, _)| block)),
                _ => {}
            }
        }
        self.done(request);
        self.settle();
    }

    fn write(&mut self, request: usize, lpn: u64, replaces: Option<usize>) {
        let plane = self.plane_of(lpn);
        let has_room = |block: &Block| block.plane == plane && block.taken < self.set.pages_per_block;
        let block = self.blocks.iter().position(has_room).unwrap_or(self.blocks.len());
        if block == self.blocks.len() {
            self.blocks.push(Block { plane, ..Block::default() });
        }
        let number = self.blocks[block].taken;
        self.blocks[block].taken += 1;
        self.blocks[block].valid += 1;
        self.map.insert(lpn, (block, number));
        if let Some(old) = replaces {
            self.blocks[old].valid -= 1;
            self.blocks[old].pins += 1;
        }
        self.queue(Operation { kind: 1, block, number, request, replaces });
    }

    fn queue(&mut self, operation: Operation) {
        if operation.kind < 2 {
            self.requests[operation.request].0 += 1;
        }
        let (plane, planes) = (self.blocks[operation.block].plane, self.set.sizes[3]);
        let is_of_station = self.set.groups > 1 && operation.kind == 0;
        let die =
            if is_of_station { self.count + plane / (planes / self.set.groups) } else { plane / planes };
        self.dies[die].waiting.push(self.operations.len());
        self.operations.push(operation);
        self.to_start.push(die);
    }

    fn done(&mut self, request: usize) {
        let (left, end) = &mut self.requests[request];
        *left -= 1;
        *end = (*left == 0).then_some(self.now);
    }

    /// Remembers a block that has just become dead.
    fn look(&mut self, at: usize) {
        let block = &mut self.blocks[at];
        let is_full = block.programmed == self.set.pages_per_block;
        if is_full && block.valid == 0 && block.pins == 0 && !block.is_dead {
            block.is_dead = true;
            self.dead.push(at);
        }
    }

    /// Starts the dies, then erases dead blocks. Called when all operations of an event are queued.
    fn settle(&mut self) {
        loop {
            for die in std::mem::take(&mut self.to_start) {
                self.start(die);
            }
            if self.dead.is_empty() {
                return;
            }
            let block = self.dead.remove(0);
            self.queue(Operation { kind: 2, block, number: 0, request: 0, replaces: None });
        }
    }

    fn die_of(&self, id: usize) -> usize {
        if id < self.count { id } else { (id - self.count) / self.set.groups }
    }

    /// The stations of a die.
    fn stations(&self, die: usize) -> std::ops::Range<usize> {
        let first = self.count + die * self.set.groups;
        first..first + self.set.groups
    }

    fn start(&mut self, id: usize) {
        if self.set.groups == 1 {
            return self.begin(id);
        }
        let die = self.die_of(id);
        if self.dies[die].phase.is_some() {
            return;
        }
        if id != die {
            self.read(id);
            if self.dies[die].waiting.is_empty() {
                return;
            }
        }
        self.stations(die).for_each(|station| self.read(station));
        if self.dies[die].waiting.is_empty() {
            return;
        }
        if self.stations(die).any(|station| self.dies[station].phase.is_some()) {
            self.dies[die].waits_since.get_or_insert(self.now);
        } else {
            self.dies[die].waits_since = None;
            self.begin(die);
        }
    }

    /// A station of a free die begins its next read, if it may.
    fn read(&mut self, id: usize) {
        let (station, die) = (&self.dies[id], &self.dies[self.die_of(id)]);
        let Some(first) = station.waiting.iter().min().filter(|_| station.phase.is_none()) else { return };
        if self.set.is_fcfs && die.waiting.iter().any(|other| other < first) {
            return;
        }
        if die.waits_since.is_some_and(|since| self.now >= since + self.set.hold) {
            self.held += 1;
            return;
        }
        let is_at_work = |station: usize| self.dies[station].phase.is_some();
        self.beside += usize::from(self.stations(self.die_of(id)).any(is_at_work));
        self.begin(id);
    }

    /// A free die or station begins its next operation.
    fn begin(&mut self, die: usize) {
        let waiting = self.dies[die].waiting.clone();
        if self.dies[die].phase.is_some() || waiting.is_empty() {
            return;
        }
        let operation = |n: usize| self.operations[n];
        let rank = |&n: &usize| (if self.set.is_fcfs { 0 } else { operation(n).kind }, n);
        let first = waiting.iter().copied().min_by_key(rank).unwrap();
        let lead = operation(first);
        let plane_of = |n: usize| self.blocks[operation(n).block].plane;
        let mut batch = vec![first];
        let planes = die * self.set.sizes[3]..(die + 1) * self.set.sizes[3];
        let is_multi_plane = self.set.is_multi_plane && die < self.count;
        for plane in planes.filter(|&plane| is_multi_plane && plane != plane_of(first)) {
            let like = |n: &usize| plane_of(*n) == plane && operation(*n).kind == lead.kind;
            let there = || waiting.iter().copied().filter(like);
            let Some(partner) = there().find(|&n| operation(n).number == lead.number) else { continue };
            // The pages of a block are programmed in order.
            let is_before = |n: usize| n < partner && operation(n).block == operation(partner).block;
            if lead.kind != 1 || !there().any(is_before) {
                batch.push(partner);
            }
        }
        self.multi_plane += usize::from(batch.len() > 1);
        self.dies[die].waiting.retain(|n| !batch.contains(n));
        self.dies[die].batch = batch;
        let has_command = lead.kind == 1 || self.command(die) > 0;
        if has_command { self.ask(die, Phase::In) } else { self.array(die) }
    }

    fn channel_of(&self, id: usize) -> usize {
        self.die_of(id) / (self.set.sizes[1] * self.set.sizes[2])
    }

    fn command(&self, die: usize) -> u64 {
        let (planes, kind) = (self.dies[die].batch.len(), self.operations[self.dies[die].batch[0]].kind);
        let multi_plane = self.set.multi_plane_commands.get(kind).copied().flatten().filter(|_| planes > 1);
        multi_plane.unwrap_or(planes as u64 * self.set.commands[kind])
    }

    /// Gives a die its channel for `phase`, or queues the die for the channel.
    fn ask(&mut self, die: usize, phase: Phase) {
        self.dies[die].phase = Some((phase, None));
        let channel = self.channel_of(die);
        self.channels[channel].1.push(die);
        self.grant(channel);
    }

    fn grant(&mut self, channel: usize) {
        if self.channels[channel].0.is_some() || self.channels[channel].1.is_empty() {
            return;
        }
        let die = self.channels[channel].1.remove(0);
        self.channels[channel].0 = Some(die);
        self.transfer(die);
    }

    /// Begins the phase of a die that has its channel.
    fn transfer(&mut self, die: usize) {
        let (phase, batch) = (self.dies[die].phase.unwrap().0, &self.dies[die].batch);
        let (pages, command) = match (phase, self.operations[batch[0]].kind) {
            (Phase::Out, _) => (1, 0),
            (_, 1) => (batch.len() as u64, self.command(die)),
            _ => (0, self.command(die)),
        };
        let mut end = self.now + command + pages * self.set.transfer;
        let (path, free_at) = match (phase, self.set.path_in) {
            (Phase::In, Some(path_in)) => (path_in, &mut self.path_in_free_at),
            _ => (self.set.path, &mut self.path_free_at),
        };
        if pages * path > 0 {
            *free_at = (*free_at).max(self.now + command) + pages * path;
            end = end.max(*free_at);
        }
        self.dies[die].phase = Some((phase, Some(end)));
    }

    fn release(&mut self, die: usize) {
        let channel = self.channel_of(die);
        self.channels[channel].0 = None;
        self.grant(channel);
    }

    fn array(&mut self, die: usize) {
        let Operation { kind, number, .. } = self.operations[self.dies[die].batch[0]];
        // Two bits of a cell: LSB and MSB page; three: LSB, CSB and MSB page.
        let kind_of = |number: usize| if self.set.is_tlc { number % 3 } else { number % 2 * 2 };
        let end = self.now
            + [self.set.read[kind_of(number)], self.set.program[kind_of(number)], self.set.erase][kind];
        self.dies[die].phase = Some((Phase::Array, Some(end)));
        self.work.push((die, kind, self.now, end));
    }

    /// Ends the present phase of a die.
    fn strike(&mut self, die: usize) {
        let kind = self.operations[self.dies[die].batch[0]].kind;
        match self.dies[die].phase.unwrap().0 {
            Phase::In => {
                self.release(die);
                self.array(die);
            }
            Phase::Array if kind == 0 => self.ask(die, Phase::Out),
            Phase::Array => {
                self.dies[die].phase = None;
                let batch = std::mem::take(&mut self.dies[die].batch);
                batch.into_iter().filter(|_| kind == 1).for_each(|n| self.programmed(n));
            }
            Phase::Out => {
                let n = self.dies[die].batch.remove(0);
                if self.dies[die].batch.is_empty() {
                    self.dies[die].phase = None;
                    self.release(die);
                } else {
                    // The transfer of the next page was asked for with that of the first.
                    self.transfer(die);
                }
                let block = self.operations[n].block;
                self.blocks[block].pins -= 1;
                self.look(block);
                self.decoding.push((self.now + self.set.decode, n));
            }
        }
        self.settle();
        self.start(die);
    }

    fn programmed(&mut self, n: usize) {
        let Operation { block, request, replaces, .. } = self.operations[n];
        self.blocks[block].programmed += 1;
        if let Some(old) = replaces {
            self.blocks[old].pins -= 1;
            self.look(old);
        }
        self.done(request);
        self.look(block);
    }

    /// Simulates until `to`. At equal times the dies come in the order of their numbers, then the decoder.
    pub(crate) fn advance(&mut self, to: u64) {
        loop {
            let of_die = |(die, state): (usize, &Die)| state.phase.and_then(|(_, end)| Some((end?, die)));
            let decoder = self.decoding.first().map(|&(end, _)| (end, self.dies.len()));
            let next = self.dies.iter().enumerate().filter_map(of_die).chain(decoder).min();
            let Some((time, clock)) = next.filter(|&(time, _)| time <= to) else { return };
            self.now = time;
            if clock < self.dies.len() {
                self.strike(clock);
            } else {
                let (_, n) = self.decoding.remove(0);
                self.done(self.operations[n].request);
            }
        }
    }
}
