//! The path of a request, followed back from its end.

use super::Step;
use super::log::{ARRAY, COMMAND, DECODE, HELD, Log, OUT, Operation, Stretch, Trigger, has_phases};
use super::part::{Own, PARTS, Part, Parts};
use crate::sched::FlashOp;

/// The most holds and operations that the path of one request looks at; the rest is `other`.
const LOOKS_MAX: u32 = 4096;

/// A part has a bit in [`Path::used`].
const _: () = assert!(PARTS <= 64);

/// The path of a request. One is used for all requests, so that its times are 0 again without being written each time.
#[derive(Debug)]
pub(super) struct Path {
    /// The beginning and the arrival.
    pub(super) begun: u64,
    pub(super) arrival: u64,
    /// The number of the request.
    pub(super) request: u64,
    /// The number of operations of the request.
    operations: u32,
    looks: u32,
    pub(super) steps: Option<Vec<Step>>,
    /// By bit whether there is a time of the part.
    used: u64,
    /// By part; 0 where `used` says that there is none.
    parts: [u64; 64],
}

impl Path {
    pub(super) fn new() -> Self {
        Self {
            begun: 0,
            arrival: 0,
            request: super::NOBODY,
            operations: 0,
            looks: 0,
            steps: None,
            used: 0,
            parts: [0; 64],
        }
    }

    /// The path of another request begins. It has no times.
    #[inline]
    pub(super) fn begin(&mut self, request: u64, operations: u32, steps: Option<Vec<Step>>) {
        debug_assert!(self.used == 0 && self.steps.is_none());
        (self.request, self.operations, self.steps, self.looks) = (request, operations, steps, 0);
    }

    /// Whether the path ends at the limit. Holds that [`Log::add_whole`] has not looked at are then not counted exactly.
    pub(super) fn is_cut(&self) -> bool {
        self.looks >= LOOKS_MAX
    }

    /// Takes the times of all parts that have one, by number.
    #[inline]
    pub(super) fn end(&mut self, mut each: impl FnMut(usize, u64)) {
        while self.used > 0 {
            let part = self.used.trailing_zeros() as usize;
            each(part, std::mem::take(&mut self.parts[part]));
            self.used &= self.used - 1;
        }
    }

    /// The times by part.
    pub(super) fn parts(&self) -> Parts {
        Parts(std::array::from_fn(|part| self.parts[part]))
    }

    /// Adds a time of a part.
    #[inline(always)]
    pub(super) fn put(&mut self, part: u8, ns: u64) {
        self.parts[usize::from(part) % 64] += ns;
        self.used |= 1 << (part % 64);
    }

    /// Adds a stretch, as far as it is after the beginning. Most requests keep no steps, and most stretches are empty.
    #[inline(always)]
    pub(super) fn add(&mut self, (from, to): Stretch, part: u8, of: Option<(u32, u32)>) {
        let from = from.max(self.begun);
        if from < to {
            self.put(part, to - from);
            if self.steps.is_some() {
                self.step((from, to), part, of);
            }
        }
    }

    /// Adds a step.
    #[cold]
    #[inline(never)]
    fn step(&mut self, (from, to): Stretch, part: u8, of: Option<(u32, u32)>) {
        let arrival = self.arrival;
        let Some(steps) = &mut self.steps else { return };
        let step = Step {
            from_ns: from - arrival,
            to_ns: to - arrival,
            part: Some(Part::of(part.into())),
            die: of.map(|(die, _)| die),
            lpn: of.map(|(_, lpn)| lpn),
        };
        match steps.last_mut() {
            Some(last) if last.part == step.part && last.die == step.die && last.lpn == step.lpn => {
                last.from_ns = step.from_ns;
            }
            _ => steps.push(step),
        }
    }

    #[inline(always)]
    pub(super) fn own(&mut self, stretch: Stretch, own: Own) {
        self.add(stretch, own as u8, None);
    }
}

impl Log {
    /// Follows a request back from `done`, at which the drive has completed it.
    #[inline]
    pub(super) fn follow(&self, path: &mut Path, done: u64, mut trigger: Trigger) {
        let mut at = done;
        while at > path.begun {
            path.looks += 1;
            let number = match trigger {
                Trigger::REQUEST => return path.own((path.begun, at), Own::Gather),
                Trigger::TIMER => return path.own((path.begun, at), Own::Timer),
                Trigger::UNKNOWN => return path.own((path.begun, at), Own::Other),
                Trigger(number) if path.looks < LOOKS_MAX => number,
                Trigger(_) => return path.own((path.begun, at), Own::Other),
            };
            let Some(operation) = self.operation(number).filter(|operation| operation.ended <= at) else {
                return path.own((path.begun, at), Own::Other);
            };
            path.own((operation.ended, at), Own::Other);
            self.work(path, operation);
            let wait = (operation.queued.max(path.begun), operation.issued.min(operation.ended));
            if wait.0 < wait.1 && !self.add_whole(path, operation, wait) {
                self.blame(path, operation, 0, wait);
            }
            (at, trigger) = (operation.queued, operation.trigger);
        }
    }

    /// Adds the wait of an operation without looking at each hold, if the request needs no steps and no hold is its own.
    #[inline(always)]
    fn add_whole(&self, path: &mut Path, operation: &Operation, wait: Stretch) -> bool {
        let is_other = path.operations == u32::from(operation.request == path.request);
        if !is_other || path.steps.is_some() || wait != (operation.queued, operation.issued) {
            return false;
        }
        let mut held = [0; HELD];
        let Some(looks) = self.add_wait(operation, &mut held).filter(|looks| path.looks + looks < LOOKS_MAX)
        else {
            return false;
        };
        path.looks += looks;
        for (part, ns) in self.parts_of(&held) {
            if ns > 0 {
                path.put(part, ns);
            }
        }
        true
    }

    /// Divides the wait of an operation in its queue, after the beginning of the path, among what held its die. What no
    /// hold of the list with this number explains, those of the next list may ([`Log::list`]).
    #[inline(always)]
    fn blame(&self, path: &mut Path, operation: &Operation, list: usize, wait: Stretch) {
        match (self.list(operation, list), path.steps.is_some()) {
            (None, _) => path.own(wait, Own::Kept),
            (Some(last), false) => self.blame_list::<false>(path, operation, list, last, wait),
            (Some(last), true) => self.blame_list::<true>(path, operation, list, last, wait),
        }
    }

    /// [`Log::blame`] for what no hold of a list explains.
    #[cold]
    #[inline(never)]
    fn blame_next(&self, path: &mut Path, operation: &Operation, list: usize, wait: Stretch) {
        self.blame(path, operation, list + 1, wait);
    }

    /// [`Log::blame`] for a list with this last hold. Explaining takes most of its time in this loop: what it needs is in
    /// registers.
    #[inline(never)]
    fn blame_list<const HAS_STEPS: bool>(
        &self,
        path: &mut Path,
        operation: &Operation,
        list: usize,
        mut next: u64,
        (from, mut to): Stretch,
    ) {
        let (request, mut looks, mut used) = (path.request, path.looks, 0);
        while from < to {
            looks += 1;
            let hold = match self.hold_before(next) {
                Some(hold) if looks < LOOKS_MAX => hold,
                of => {
                    (path.looks, path.used) = (looks, path.used | used);
                    if of.is_none() && next == 0 && looks < LOOKS_MAX {
                        return self.blame_next(path, operation, list, (from, to));
                    }
                    return path.own((from, to), Own::Other);
                }
            };
            next = hold.before;
            if hold.start >= to {
                continue;
            }
            if hold.end < to {
                let end = hold.end.max(from);
                path.looks = looks;
                self.blame_next(path, operation, list, (end, to));
                looks = path.looks;
                if end == from {
                    break;
                }
                to = end;
            }
            let part = if hold.request == request { Own::Units as u8 } else { hold.part };
            let start = hold.start.max(from);
            path.parts[usize::from(part) % 64] += to - start;
            used |= 1 << (part % 64);
            if HAS_STEPS {
                path.step((start, to), part, Some((hold.die, hold.lpn)));
            }
            to = start;
        }
        (path.looks, path.used) = (looks, path.used | used);
    }

    /// Adds the time for which an operation was under way, from its end back to its beginning.
    #[inline(always)]
    fn work(&self, path: &mut Path, operation: &Operation) {
        let of = Some((operation.die, operation.lpn));
        let issued = operation.issued.min(operation.ended);
        let all = (issued, operation.ended);
        let Some(kind) = operation.kind else { return path.own(all, Own::Dram) };
        let of_kind = Part::Operation(kind, operation.cause).index() as u8;
        if !has_phases(operation.cause) {
            return path.add(all, of_kind, of);
        }
        let (is_read, is_retry) = (kind == FlashOp::Read, operation.tries > 0);
        let part = |own: Own| if is_retry { Own::Retry as u8 } else { own as u8 };
        let mut at = operation.ended;
        // The latest of the phases not looked at yet, and the wait after it.
        let phase = |path: &mut Path, at: &mut u64, number: usize, wait: Own| {
            let (from, to) = operation.phases[number];
            path.own((to, *at), wait);
            let stretch = (from, to.min(*at));
            *at = from.min(*at);
            stretch
        };
        if operation.has_phase(DECODE) {
            let stretch = phase(path, &mut at, DECODE, Own::Other);
            path.add(stretch, part(Own::Decode), of);
        }
        if operation.has_phase(OUT) {
            let stretch = phase(path, &mut at, OUT, Own::Decoder);
            path.add(stretch, part(Own::Transfer), of);
        }
        if operation.has_phase(ARRAY) {
            let stretch = phase(path, &mut at, ARRAY, if is_read { Own::Bus } else { Own::Other });
            if is_read {
                path.add(stretch, part(Own::Sense), of);
            } else {
                let is_own = operation.request == path.request;
                let program = if is_own { Own::Program as u8 } else { of_kind };
                self.array(path, operation, stretch, program);
            }
        }
        if operation.has_phase(COMMAND) {
            let stretch = phase(path, &mut at, COMMAND, Own::Other);
            path.add(stretch, part(Own::Transfer), of);
        }
        path.own((issued, at), Own::Bus);
    }

    /// Adds the array operation of a program, without the times for which it was suspended.
    fn array(&self, path: &mut Path, operation: &Operation, (from, mut to): Stretch, part: u8) {
        let of = Some((operation.die, operation.lpn));
        let mut next = operation.hold.wrapping_add(1);
        while from < to {
            path.looks += 1;
            let hold = self.hold_before(next).filter(|_| path.looks < LOOKS_MAX);
            let Some(hold) = hold.filter(|hold| hold.end > from) else {
                // Of a multi-plane operation, the first transaction alone has holds.
                return path.add((from, to), part, of);
            };
            let (start, end) = (hold.start.max(from), hold.end.min(to));
            next = hold.before;
            path.own((end, to), Own::Kept);
            if hold.operation == operation.number {
                path.add((start, end), part, of);
            } else if hold.part == Own::Suspend as u8 {
                path.own((start, end), Own::Suspend);
            } else {
                path.add((start, end), hold.part, Some((hold.die, hold.lpn)));
            }
            to = start;
        }
    }
}
