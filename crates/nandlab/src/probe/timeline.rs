//! The timeline: every phase of the first operations, as a Chrome / Perfetto trace.
//!
//! Open it in ui.perfetto.dev or chrome://tracing. One track a die (array work), one a channel (transfers) and one a
//! read level (decoding); times in microseconds.

use super::Probe;
use crate::geometry::DieId;
use crate::sched::{Kind, Phase, Transaction};
use crate::units::Time;

/// Where something happens.
#[derive(Clone, Copy, Debug)]
enum Place {
    Phase(Phase),
    Decoder,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    start: Time,
    end: Time,
    die: u32,
    channel: u32,
    place: Place,
    kind: Kind,
    level: u8,
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
        let tracks_of = |e: &Event| {
            let decoder = matches!(e.place, Place::Decoder).then_some((3, u32::from(e.level)));
            [Some((1, e.die)), Some((2, e.channel)), decoder].into_iter().flatten()
        };
        let mut tracks: Vec<(u32, u32)> = self.events.iter().flat_map(tracks_of).collect();
        tracks.sort_unstable();
        tracks.dedup();
        let processes = [(1, "dies"), (2, "channels"), (3, "decoder")].map(|(process, name)| {
            format!(
                "{{\"ph\":\"M\",\"pid\":{process},\"name\":\"process_name\",\"args\":{{\"name\":\"{name}\"}}}}"
            )
        });
        let tracks = tracks.into_iter().map(|(process, track)| {
            let name = ["die", "channel", "level"][process as usize - 1];
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
        let (process, track, name) = match (self.place, self.kind) {
            (Place::Decoder, _) => (3, u32::from(self.level), "decode"),
            (Place::Phase(Phase::Array), Kind::Read) => (1, self.die, "sense"),
            (Place::Phase(Phase::Array), Kind::Program) => (1, self.die, "program"),
            (Place::Phase(Phase::Array), Kind::Erase) => (1, self.die, "erase"),
            (Place::Phase(Phase::Array), Kind::Copyback) => (1, self.die, "copyback"),
            (Place::Phase(Phase::Command), _) => (2, self.channel, "command"),
            (Place::Phase(Phase::TransferIn), _) => (2, self.channel, "transfer in"),
            (Place::Phase(Phase::TransferOut), _) => (2, self.channel, "transfer out"),
            (Place::Phase(Phase::Idle), _) => unreachable!("an idle die has no phase to record"),
        };
        let level =
            if self.kind == Kind::Read { format!(",\"level\":{}", self.level) } else { String::new() };
        format!(
            "{{\"ph\":\"X\",\"pid\":{process},\"tid\":{track},\"name\":\"{name}\",\"cat\":\"{}\",\
             \"ts\":{}.{:03},\"dur\":{}.{:03},\"args\":{{\"die\":{},\"ppn\":{},\"lpn\":{}{level}}}}}",
            self.cause.name(),
            self.start.ns() / 1000,
            self.start.ns() % 1000,
            (self.end - self.start).ns() / 1000,
            (self.end - self.start).ns() % 1000,
            self.die,
            self.ppn,
            self.lpn,
        )
    }
}

impl Timeline {
    fn record(&mut self, start: Time, end: Time, die: DieId, channel: u32, place: Place, t: &Transaction) {
        if t.order < self.operations {
            let (ppn, lpn) = (t.ppn.0, t.lpn.0);
            let (kind, level, cause) = (t.kind, t.level, t.cause);
            self.events.push(Event { start, end, die: die.0, channel, place, kind, level, cause, ppn, lpn });
        }
    }
}

impl Probe for Timeline {
    fn on_phase(&mut self, start: Time, end: Time, die: DieId, channel: u32, phase: Phase, t: &Transaction) {
        self.record(start, end, die, channel, Place::Phase(phase), t);
    }

    fn on_decode(&mut self, start: Time, end: Time, channel: u32, _level: u8, t: &Transaction) {
        self.record(start, end, t.die, channel, Place::Decoder, t);
    }
}
