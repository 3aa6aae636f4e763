//! The sums of a request whose path is one operation, without following it.

use super::log::{ARRAY, COMMAND, DECODE, Log, OUT, Operation, Stretch, Trigger, has_phases};
use super::part::{Own, Part};
use super::{Outstanding, Total};
use crate::sched::FlashOp;

/// By bit the phases of a read, of one without command cycles, and of a program.
const READ: u8 = READ_ALONE | 1 << COMMAND;
const READ_ALONE: u8 = 1 << ARRAY | 1 << OUT | 1 << DECODE;
const PROGRAM: u8 = 1 << COMMAND | 1 << ARRAY;

/// The time from one time to another one: negative if its highest bit is set, of several if that of one of them is.
#[inline(always)]
fn span(from: u64, to: u64) -> u64 {
    to.wrapping_sub(from)
}

#[inline(always)]
fn length(of: Stretch) -> u64 {
    span(of.0, of.1)
}

#[inline(always)]
fn is_negative(spans: u64) -> bool {
    spans >> 63 != 0
}

impl Log {
    /// Adds the parts of a request that the drive has done at an event, and that completes now. Returns whether it has
    /// done so: if the path of the request is anything but one operation, queued when the drive began the request or
    /// later, whose phases follow each other, nothing is added. What is added is what [`Log::follow`] finds.
    #[inline(always)]
    pub(super) fn add_quick(
        &self,
        request: &Outstanding,
        trigger: Trigger,
        completed: u64,
        total: &mut Total,
    ) -> bool {
        if trigger.0 >= Trigger::TIMER.0 {
            return false;
        }
        let Some(operation) = self.operation(trigger.0) else { return false };
        let is_one = operation.trigger == Trigger::REQUEST && operation.ended == request.done;
        let on_way = span(request.begun, operation.queued)
            | span(request.reached, request.begun)
            | span(request.arrival, request.reached);
        if !is_one || operation.tries > 0 || !has_phases(operation.cause) || is_negative(on_way) {
            return false;
        }
        let is_added = match operation.kind {
            Some(FlashOp::Read) => self.add_read(request, operation, total),
            Some(FlashOp::Program) => self.add_program(request, operation, total),
            Some(_) => false,
            None => self.add_access(request, operation, total),
        };
        if is_added {
            let parts = &mut total.sums.parts.0;
            parts[Own::Gather as usize] += operation.queued - request.begun;
            parts[Own::Controller as usize] += request.begun - request.reached;
            parts[Own::Link as usize] += request.reached - request.arrival + (completed - request.done);
        }
        is_added
    }

    #[inline(always)]
    fn add_read(&self, request: &Outstanding, operation: &Operation, total: &mut Total) -> bool {
        let [mut command, array, out, decode] = operation.phases;
        if operation.seen == READ_ALONE {
            command = (array.0, array.0);
        } else if operation.seen != READ {
            return false;
        }
        let spans = span(operation.queued, operation.issued)
            | span(operation.issued, command.0)
            | length(command)
            | length(array)
            | span(array.1, out.0)
            | length(out)
            | span(out.1, decode.0)
            | length(decode);
        let is_dense = command.1 == array.0 && decode.1 == operation.ended;
        if is_negative(spans) || !is_dense || !self.add_alone(request, operation, total) {
            return false;
        }
        let parts = &mut total.sums.parts.0;
        parts[Own::Bus as usize] += command.0 - operation.issued + (out.0 - array.1);
        parts[Own::Transfer as usize] += length(command) + length(out);
        parts[Own::Sense as usize] += length(array);
        parts[Own::Decoder as usize] += decode.0 - out.1;
        parts[Own::Decode as usize] += length(decode);
        true
    }

    #[inline(always)]
    fn add_program(&self, request: &Outstanding, operation: &Operation, total: &mut Total) -> bool {
        let [command, array, ..] = operation.phases;
        let spans = span(operation.queued, operation.issued)
            | span(operation.issued, command.0)
            | length(command)
            | length(array);
        let is_dense = command.1 == array.0 && array.1 == operation.ended;
        if operation.seen != PROGRAM || is_negative(spans) || !is_dense || !self.is_at_once(operation) {
            return false;
        }
        if !self.add_alone(request, operation, total) {
            return false;
        }
        let of_kind = Part::Operation(FlashOp::Program, operation.cause).index();
        let program = if operation.request == request.id { Own::Program as usize } else { of_kind };
        let parts = &mut total.sums.parts.0;
        parts[Own::Bus as usize] += command.0 - operation.issued;
        parts[Own::Transfer as usize] += length(command);
        parts[program] += length(array);
        true
    }

    /// An access to DRAM, which is none of the operations of its request.
    #[inline(always)]
    fn add_access(&self, request: &Outstanding, access: &Operation, total: &mut Total) -> bool {
        if request.operations > 0 || is_negative(span(access.queued, access.ended)) {
            return false;
        }
        total.sums.parts.0[Own::Dram as usize] += access.ended - access.queued;
        true
    }

    /// Adds the wait of an operation for its die, unless other operations of the request may have held the die.
    #[inline(always)]
    fn add_alone(&self, request: &Outstanding, operation: &Operation, total: &mut Total) -> bool {
        request.operations == u32::from(operation.request == request.id)
            && (operation.queued == operation.issued || self.add_wait(operation, &mut total.held).is_some())
    }
}
