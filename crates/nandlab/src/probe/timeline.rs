//! The timeline: every phase of the first operations, as a Chrome / Perfetto trace.
//!
//! Open it in ui.perfetto.dev or chrome://tracing. One track a die (array work) and one a channel (transfers);
//! times in microseconds.

use super::Probe;
use crate::geometry::DieId;
use crate::sched::{Kind, Phase, Transaction};
use crate::units::Time;

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

/// Records the phases of the operations submitted first; of a multi-plane batch, of its first one.
#[derive(Debug)]
pub struct Timeline {
    operations: u64,
    events: Vec<Event>,
}

impl Timeline {
    /// Records the first `operations` operations.
    pub fn new(operations: u64) -> Self {
        Self { operations, events: Vec::new() }
    }

    /// The trace as JSON text.
    pub fn to_json(&self) -> String {
        let mut tracks: Vec<(u32, u32)> =
            self.events.iter().flat_map(|e| [(1, e.die), (2, e.channel)]).collect();
        tracks.sort_unstable();
        tracks.dedup();
        let processes = [(1, "dies"), (2, "channels")].map(|(process, name)| {
            format!(
                "{{\"ph\":\"M\",\"pid\":{process},\"name\":\"process_name\",\"args\":{{\"name\":\"{name}\"}}}}"
            )
        });
        let tracks = tracks.into_iter().map(|(process, track)| {
            let name = if process == 1 { "die" } else { "channel" };
            format!(
                "{{\"ph\":\"M\",\"pid\":{process},\"tid\":{track},\"name\":\"thread_name\",\
                 \"args\":{{\"name\":\"{name} {track}\"}}}}"
            )
        });
        let lines = processes.into_iter().chain(tracks).chain(self.events.iter().map(Event::json));
        let lines: Vec<String> = lines.collect();
        format!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{}\n]}}\n", lines.join(",\n"))
    }
}

impl Event {
    fn json(&self) -> String {
        let (process, track, name) = match (self.phase, self.kind) {
            (Phase::Array, Kind::Read) => (1, self.die, "sense"),
            (Phase::Array, Kind::Program) => (1, self.die, "program"),
            (Phase::Array, Kind::Erase) => (1, self.die, "erase"),
            (Phase::Array, Kind::Copyback) => (1, self.die, "copyback"),
            (Phase::Command, _) => (2, self.channel, "command"),
            (Phase::TransferIn, _) => (2, self.channel, "transfer in"),
            (Phase::TransferOut, _) => (2, self.channel, "transfer out"),
            (Phase::Idle, _) => unreachable!("an idle die has no phase to record"),
        };
        format!(
            "{{\"ph\":\"X\",\"pid\":{process},\"tid\":{track},\"name\":\"{name}\",\"cat\":\"{}\",\
             \"ts\":{}.{:03},\"dur\":{}.{:03},\"args\":{{\"die\":{},\"ppn\":{},\"lpn\":{}}}}}",
            self.cause.name(),
            self.start / 1000,
            self.start % 1000,
            (self.end - self.start) / 1000,
            (self.end - self.start) % 1000,
            self.die,
            self.ppn,
            self.lpn,
        )
    }
}

impl Probe for Timeline {
    fn on_phase(&mut self, start: Time, end: Time, die: DieId, channel: u32, phase: Phase, t: &Transaction) {
        if t.order >= self.operations {
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
