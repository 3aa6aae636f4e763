//! The timeline: every phase of the first operations, as a Chrome / Perfetto trace.
//!
//! Open it in ui.perfetto.dev or chrome://tracing. One track a die (array work) and one a channel (transfers);
//! times in microseconds.

use super::Probe;
use crate::geometry::DieId;
use crate::sched::{Kind, Phase, Transaction};
use crate::units::Time;
use std::fmt::Write;

#[derive(Clone, Copy, Debug)]
struct Event {
    start: Time,
    end: Time,
    die: u32,
    channel: u32,
    phase: Phase,
    kind: Kind,
    cause: crate::sched::Cause,
    ppn: u32,
    lpn: u32,
}

/// Records the phases of operations, up to a number of operations.
#[derive(Debug)]
pub struct Timeline {
    operations_left: u64,
    events: Vec<Event>,
}

impl Timeline {
    /// Records the first `operations` operations.
    pub fn new(operations: u64) -> Self {
        Self { operations_left: operations, events: Vec::new() }
    }

    /// The trace as JSON text.
    pub fn to_json(&self) -> String {
        let mut out = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        let mut tracks: Vec<(u32, u32)> =
            self.events.iter().flat_map(|e| [(1, e.die), (2, e.channel)]).collect();
        tracks.sort_unstable();
        tracks.dedup();
        for (process, name) in [(1, "dies"), (2, "channels")] {
            let _ = writeln!(
                out,
                "{{\"ph\":\"M\",\"pid\":{process},\"name\":\"process_name\",\"args\":{{\"name\":\"{name}\"}}}},"
            );
        }
        for (process, track) in tracks {
            let name = if process == 1 { "die" } else { "channel" };
            let _ = writeln!(
                out,
                "{{\"ph\":\"M\",\"pid\":{process},\"tid\":{track},\"name\":\"thread_name\",\
                 \"args\":{{\"name\":\"{name} {track}\"}}}},"
            );
        }
        for (index, event) in self.events.iter().enumerate() {
            let (process, track, name) = match (event.phase, event.kind) {
                (Phase::Array, Kind::Read) => (1, event.die, "sense"),
                (Phase::Array, Kind::Program) => (1, event.die, "program"),
                (Phase::Array, Kind::Erase) => (1, event.die, "erase"),
                (Phase::Array, Kind::Copyback) => (1, event.die, "copyback"),
                (Phase::Command, _) => (2, event.channel, "command"),
                (Phase::TransferIn, _) => (2, event.channel, "transfer in"),
                (Phase::TransferOut, _) => (2, event.channel, "transfer out"),
                (Phase::Idle, _) => continue,
            };
            let comma = if index + 1 == self.events.len() { "" } else { "," };
            let _ = writeln!(
                out,
                "{{\"ph\":\"X\",\"pid\":{process},\"tid\":{track},\"name\":\"{name}\",\"cat\":\"{}\",\
                 \"ts\":{}.{:03},\"dur\":{}.{:03},\"args\":{{\"die\":{},\"ppn\":{},\"lpn\":{}}}}}{comma}",
                event.cause.name(),
                event.start / 1000,
                event.start % 1000,
                (event.end - event.start) / 1000,
                (event.end - event.start) % 1000,
                event.die,
                event.ppn,
                event.lpn,
            );
        }
        out.push_str("]}\n");
        out
    }
}

impl Probe for Timeline {
    fn on_issue(&mut self, _now: Time, _die: DieId, _transaction: &Transaction) {
        self.operations_left = self.operations_left.saturating_sub(1);
    }

    fn on_phase(&mut self, start: Time, end: Time, die: DieId, channel: u32, phase: Phase, t: &Transaction) {
        if self.operations_left == 0 {
            return;
        }
        let (ppn, lpn) = (t.ppn.0, t.lpn.0);
        self.events.push(Event {
            start,
            end,
            die: die.0,
            channel,
            phase,
            kind: t.kind,
            cause: t.cause,
            ppn,
            lpn,
        });
    }
}
