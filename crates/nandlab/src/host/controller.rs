//! The firmware of the controller (`host.controller`): a time a command, and a number of commands at once.
//!
//! A command is taken by a free processor when it has reached the drive, and otherwise waits. A processor works on a
//! command for the time of its operation (`read`, or `write` for a write, TRIM or flush); then the drive begins the
//! request, and the processor takes the next command that waits. Waiting commands are taken in the order of their arrival
//! (`arbitration = "arrival"`), or the queues of the host take turns, each command of its queue in the order of arrival
//! (`"round-robin"`, the default arbitration of NVMe Base Specification 2.0, 3.4.4.1). Commands that end at the same time
//! begin in the order in which they were taken.
//!
//! The drive has room for `commands_max` commands: a command takes its place when a processor takes it, and leaves it when
//! the drive has completed the request, which is before the completion crosses the link. At saturation the writes that
//! wait for the write buffer occupy all places, and later reads wait in the queues of the host behind other writes.
//!
//! The time stands for all work of the firmware on a command, that of its completion included. Reads and writes whose data
//! flash answers at once from a buffer take it too. As with the link, flush epochs, the map and the oracle see a request
//! only once the drive begins it (`Drive::begin`). The twin in the tests is a drive without a controller, to which a list
//! of processors submits the requests.

use super::spec::{Arbitration, ControllerSpec};
use super::{Host, Op};
use crate::base::geometry::RequestId;
use crate::base::state::{state, value};
use crate::base::units::{Span, Time};
use crate::core::Core;
use crate::probe::Probe;
use crate::sched::NEVER;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The present state of the controller's processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerState {
    /// Number of commands that wait for a processor.
    pub waiting: u32,
    /// Number of commands on which a processor works.
    pub at_work: u32,
    /// Time so far for which processors have worked, summed over the processors.
    pub busy: Span,
}

/// A command that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    request: RequestId,
    time: Span,
}

/// The commands that wait, in queues that take turns.
#[derive(Debug)]
struct Queues {
    /// Whether the queues of the host are kept apart; otherwise all commands are in one queue.
    are_kept_apart: bool,
    /// By queue of the host, the commands that wait.
    queues: Vec<VecDeque<Waiting>>,
    /// The queues with a command, in the order of their turns.
    turns: VecDeque<u16>,
    count: u32,
}

impl Queues {
    fn push(&mut self, queue: u16, command: Waiting) {
        let queue = if self.are_kept_apart { queue } else { 0 };
        if self.queues.len() <= usize::from(queue) {
            self.queues.resize_with(usize::from(queue) + 1, VecDeque::new);
        }
        let commands = &mut self.queues[usize::from(queue)];
        if commands.is_empty() {
            self.turns.push_back(queue);
        }
        commands.push_back(command);
        self.count += 1;
    }

    /// The next command of the queue whose turn it is.
    fn pop(&mut self) -> Option<Waiting> {
        let queue = self.turns.pop_front()?;
        let commands = &mut self.queues[usize::from(queue)];
        let command = commands.pop_front();
        if !commands.is_empty() {
            self.turns.push_back(queue);
        }
        self.count -= 1;
        command
    }

    fn clear(&mut self) {
        self.queues.clear();
        self.turns.clear();
        self.count = 0;
    }
}

/// The processors of the controller, and the commands that wait for them.
#[derive(Debug)]
pub(crate) struct Controller {
    /// By operation, the time of a command.
    times: [Span; 4],
    /// Number of processors without a command.
    free: u32,
    processors: u32,
    /// Number of further commands for which the drive has room.
    room: u32,
    commands_max: u32,
    /// The end, the number and the request of each command on which a processor works.
    at_work: BinaryHeap<Reverse<(Time, u64, RequestId)>>,
    waiting: Queues,
    /// Number of commands that processors have taken.
    taken: u64,
    /// The time of all commands taken so far.
    busy: Span,
}

impl Controller {
    pub(crate) fn new(spec: &ControllerSpec) -> Self {
        let commands_max = spec.commands_max.unwrap_or(u32::MAX);
        let time = |op| if op == Op::Read { spec.read_ns } else { spec.write_ns };
        Self {
            times: Op::ALL.map(time),
            free: spec.commands_at_once,
            processors: spec.commands_at_once,
            room: commands_max,
            commands_max,
            at_work: BinaryHeap::new(),
            waiting: Queues {
                are_kept_apart: spec.arbitration == Arbitration::RoundRobin,
                queues: Vec::new(),
                turns: VecDeque::new(),
                count: 0,
            },
            taken: 0,
            busy: Span::ZERO,
        }
    }

    /// Drops all commands at power loss.
    pub(crate) fn clear(&mut self, now: Time) {
        self.busy = self.state(now).busy;
        (self.free, self.room) = (self.processors, self.commands_max);
        self.at_work.clear();
        self.waiting.clear();
    }

    /// Whether no command waits, is worked on or has a place.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.count == 0 && self.at_work.is_empty() && self.room == self.commands_max
    }

    pub(crate) fn state(&self, now: Time) -> ControllerState {
        let left: Span = self.at_work.iter().map(|Reverse((end, ..))| *end - now).sum();
        ControllerState {
            waiting: self.waiting.count,
            at_work: self.at_work.len() as u32,
            busy: self.busy - left,
        }
    }

    fn work_on<P: Probe>(&mut self, core: &mut Core<P>, command: Waiting) {
        let end = core.now().saturating_add(command.time).min(Host::LATEST);
        self.busy += end - core.now();
        self.at_work.push(Reverse((end, self.taken, command.request)));
        self.taken += 1;
    }

    fn set_clock<P: Probe>(&self, core: &mut Core<P>) {
        let next = self.at_work.peek().map_or(NEVER, |Reverse((end, ..))| *end);
        core.set_clock(core.controller_clock(), next);
    }

    /// A command has reached the drive.
    pub(crate) fn take<P: Probe>(&mut self, core: &mut Core<P>, request: RequestId, op: Op, queue: u16) {
        let command = Waiting { request, time: self.times[op as usize] };
        if self.free == 0 || self.room == 0 {
            self.waiting.push(queue, command);
            return;
        }
        self.begin(core, command);
        self.set_clock(core);
    }

    /// A free processor begins a command, for which the drive has room.
    fn begin<P: Probe>(&mut self, core: &mut Core<P>, command: Waiting) {
        self.free -= 1;
        self.room -= 1;
        self.work_on(core, command);
    }

    /// Begins the next command that waits, if a processor is free and the drive has room for a command.
    fn begin_next<P: Probe>(&mut self, core: &mut Core<P>) {
        if self.free > 0
            && self.room > 0
            && let Some(command) = self.waiting.pop()
        {
            self.begin(core, command);
        }
    }

    /// The controller's clock has expired. Returns the request whose command has ended, and gives its processor the next
    /// command.
    pub(crate) fn end<P: Probe>(&mut self, core: &mut Core<P>) -> RequestId {
        let Reverse((_, _, request)) = self.at_work.pop().expect("the clock is set for a command");
        self.free += 1;
        self.begin_next(core);
        self.set_clock(core);
        request
    }

    /// The drive has completed a request, which leaves its place to the next command.
    pub(crate) fn leave<P: Probe>(&mut self, core: &mut Core<P>) {
        self.room += 1;
        if self.waiting.count > 0 {
            self.begin_next(core);
            self.set_clock(core);
        }
    }
}

value! { Waiting { request, time } }
state! { Queues { queues, turns, count } fixed { are_kept_apart } }
state! { Controller { free, room, at_work, waiting, taken, busy } fixed { times, processors, commands_max } }
