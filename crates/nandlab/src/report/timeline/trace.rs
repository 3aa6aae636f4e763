//! The timeline in the Chrome / Perfetto trace format: JSON text of processes, tracks and events. A *lane* is here one
//! of the tracks for slices that overlap in time ([`Lanes`]), not a lane of the flash memory.

use super::lanes::Lanes;
use super::{RecordedRequest, Slice, Stage, Timeline};
use crate::base::units::Time;
use crate::base::words::size;
use crate::host::{Op, Request, Tag};
use crate::sched::{FlashOp, Phase};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::ops::Range;

/// The processes, with their `pid` in the trace.
#[derive(Clone, Copy, Debug)]
enum Process {
    Dies = 1,
    Channels = 2,
    Decoder = 3,
    Requests = 4,
}

impl Timeline {
    /// The trace as JSON text; outstanding requests are drawn to `now`, the end of the run.
    pub fn to_json(&self, now: Time) -> String {
        let mut requests = self.requests.clone();
        requests.extend(
            self.slots.iter().flatten().filter(|recorded| recorded.is_recorded && recorded.end.is_none()),
        );
        requests.sort_unstable_by_key(|recorded| (recorded.request.arrival, recorded.id));
        let mut lanes = Lanes::default();
        let end_of = |recorded: &RecordedRequest| recorded.end.unwrap_or(now.max(recorded.request.arrival));
        let request_lanes: Vec<u32> =
            requests.iter().map(|recorded| lanes.take(recorded.request.arrival, end_of(recorded))).collect();
        let mut levels: BTreeMap<u8, Lanes> = BTreeMap::new();
        let decoded = self.slices.iter().filter(|slice| slice.stage == Stage::Decoder);
        let decoder_lanes: Vec<u32> =
            decoded.map(|s| levels.entry(s.level).or_default().take(s.start, s.end)).collect();

        // Track numbers of the decoder: the lanes of a read level are consecutive, the levels in rising order.
        let mut next_track = 1;
        let levels: BTreeMap<u8, Range<u32>> = levels
            .into_iter()
            .map(|(level, lanes)| {
                let tracks = next_track..next_track + lanes.count;
                next_track = tracks.end;
                (level, tracks)
            })
            .collect();

        let mut out = Writer::new();
        self.name_tracks(&mut out, lanes.count, &levels);
        let mut arrows: Vec<(u64, u64)> = self.arrows.iter().map(|a| (a.request, a.operation)).collect();
        arrows.sort_unstable();
        for (recorded, &lane) in requests.iter().zip(&request_lanes) {
            out.request(recorded, lane, end_of(recorded));
            let first = arrows.partition_point(|&(request, _)| request < recorded.id);
            for &(_, operation) in arrows[first..].iter().take_while(|arrow| arrow.0 == recorded.id) {
                out.arrow("\"ph\":\"s\"", Process::Requests, lane, operation, recorded.request.arrival);
            }
        }
        let mut decoder_lanes = decoder_lanes.into_iter();
        let mut arrows = self.arrows.iter().peekable();
        for (index, slice) in self.slices.iter().enumerate() {
            let (process, track) = match slice.stage {
                Stage::Phase(Phase::Array) => (Process::Dies, slice.station),
                Stage::Phase(_) => (Process::Channels, slice.channel),
                Stage::Decoder => {
                    let lane = decoder_lanes.next().expect("each decoding has a lane");
                    (Process::Decoder, levels[&slice.level].start + lane)
                }
            };
            out.slice(slice, process, track);
            while let Some(arrow) = arrows.next_if(|arrow| arrow.slice == index) {
                out.arrow("\"ph\":\"f\",\"bp\":\"e\"", process, track, arrow.operation, slice.start);
            }
        }
        out.end()
    }

    /// Writes the names of processes and tracks and the order in which they are shown.
    fn name_tracks(&self, out: &mut Writer, request_lanes: u32, levels: &BTreeMap<u8, Range<u32>>) {
        let (mut stations, mut channels) = (BTreeMap::new(), BTreeSet::new());
        for slice in &self.slices {
            match slice.stage {
                Stage::Phase(Phase::Array) => {
                    let planes: &mut BTreeSet<u8> = stations.entry((slice.die, slice.station)).or_default();
                    planes.insert(slice.plane);
                }
                Stage::Phase(_) => _ = channels.insert(slice.channel),
                Stage::Decoder => {}
            }
        }
        let processes = [
            (Process::Requests, "host requests"),
            (Process::Dies, "dies"),
            (Process::Channels, "channels"),
            (Process::Decoder, "decoder"),
        ];
        for (index, (process, name)) in processes.into_iter().enumerate() {
            out.name("process", Track(process, None), format_args!("{name}"), index as u32);
        }
        // The planes of a die have its place in the order.
        for ((die, station), planes) in stations {
            let track = Track(Process::Dies, Some(station));
            if station == die {
                out.name("thread", track, format_args!("die {die}"), die);
            } else {
                let planes = planes.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
                out.name("thread", track, format_args!("die {die}, plane {planes}"), die);
            }
        }
        let mut name = |process, track, name: fmt::Arguments| {
            out.name("thread", Track(process, Some(track)), name, track);
        };
        for lane in 0..request_lanes {
            name(Process::Requests, lane, format_args!("lane {lane}"));
        }
        for channel in channels {
            name(Process::Channels, channel, format_args!("channel {channel}"));
        }
        for (level, tracks) in levels {
            name(Process::Decoder, tracks.start, format_args!("level {level}"));
            for (lane, track) in tracks.clone().enumerate().skip(1) {
                name(Process::Decoder, track, format_args!("level {level}, lane {lane}"));
            }
        }
    }
}

/// Writes the events as JSON, one event per line.
struct Writer {
    text: String,
}

impl Writer {
    fn new() -> Self {
        Self { text: "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[".to_owned() }
    }

    fn end(mut self) -> String {
        self.text.pop();
        self.text.push_str("\n]}\n");
        self.text
    }

    fn event(&mut self, event: fmt::Arguments) {
        write!(self.text, "\n{{{event}}},").expect("writing to a string never fails");
    }

    /// Writes the name of a process or track (`kind`), and its place in the order of display.
    fn name(&mut self, kind: &str, track: Track, name: fmt::Arguments, sort_index: u32) {
        self.event(format_args!(
            "\"ph\":\"M\",{track},\"name\":\"{kind}_name\",\"args\":{{\"name\":\"{name}\"}}"
        ));
        self.event(format_args!(
            "\"ph\":\"M\",{track},\"name\":\"{kind}_sort_index\",\"args\":{{\"sort_index\":{sort_index}}}"
        ));
    }

    fn request(&mut self, recorded: &RecordedRequest, lane: u32, end: Time) {
        let RecordedRequest { id, request, failed, .. } = recorded;
        let Request { arrival, op, offset, len, fua, tag } = *request;
        let name = match op {
            Op::Read | Op::Write => format!("{} {}", op.name(), size(len)),
            Op::Trim | Op::Flush => op.name().to_owned(),
        };
        let failed = failed.map_or(String::new(), |reason| format!(",\"failed\":\"{}\"", reason.name()));
        let more = match (fua, recorded.end) {
            (false, Some(_)) => "",
            (true, Some(_)) => ",\"fua\":true",
            (false, None) => ",\"outstanding\":true",
            (true, None) => ",\"fua\":true,\"outstanding\":true",
        };
        let tag = match tag == Tag::default() {
            true => String::new(),
            false => format!(",\"queue\":{},\"placement\":{}", tag.queue, tag.placement),
        };
        self.event(format_args!(
            "\"ph\":\"X\",{},\"name\":\"{name}\",\"cat\":\"request\",\"ts\":{},\"dur\":{},\
             \"args\":{{\"request\":{id},\"offset\":{offset},\"len\":{len}{more}{failed}{tag}}}",
            Track(Process::Requests, Some(lane)),
            Micros(arrival.ns()),
            Micros((end - arrival).ns()),
        ));
    }

    /// Writes a slice. `ppn` and `lpn` are those of the first unit that the operation reads, programs or copies back.
    /// For an erase `ppn` is the first unit that the superblock has on the die, and `lpn` is 0.
    fn slice(&mut self, slice: &Slice, process: Process, track: u32) {
        let name = match (slice.stage, slice.kind) {
            (Stage::Decoder, _) => "decode",
            (Stage::Phase(Phase::Array), FlashOp::Read) => "sense",
            (Stage::Phase(Phase::Array), FlashOp::Program) => "program",
            (Stage::Phase(Phase::Array), FlashOp::Erase) => "erase",
            (Stage::Phase(Phase::Array), FlashOp::Copyback) => "copyback",
            (Stage::Phase(Phase::Command), _) => "command",
            (Stage::Phase(Phase::TransferIn), _) => "transfer in",
            (Stage::Phase(Phase::TransferOut), _) => "transfer out",
            (Stage::Phase(Phase::Idle), _) => unreachable!("an idle die has no phase to record"),
        };
        self.event(format_args!(
            "\"ph\":\"X\",{},\"name\":\"{name}\",\"cat\":\"{}\",\"ts\":{},\"dur\":{},\
             \"args\":{{\"operation\":{},\"die\":{},\"ppn\":{},\"lpn\":{}{}}}",
            Track(process, Some(track)),
            slice.cause.name(),
            Micros(slice.start.ns()),
            Micros((slice.end - slice.start).ns()),
            slice.operation,
            slice.die,
            slice.ppn,
            slice.lpn,
            Details(slice),
        ));
    }

    fn arrow(&mut self, end: &str, process: Process, track: u32, operation: u64, at: Time) {
        let (track, at) = (Track(process, Some(track)), Micros(at.ns()));
        self.event(format_args!(
            "{end},{track},\"name\":\"operation\",\"cat\":\"request\",\"id\":{operation},\"ts\":{at}"
        ));
    }
}

/// A time in nanoseconds, displayed in microseconds with three decimals.
struct Micros(u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A process, or one of its tracks: displayed as `pid` and `tid`.
struct Track(Process, Option<u32>);

impl fmt::Display for Track {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"pid\":{}", self.0 as u32)?;
        self.1.map_or(Ok(()), |track| write!(f, ",\"tid\":{track}"))
    }
}

/// The arguments that only some slices have.
struct Details<'a>(&'a Slice);

impl fmt::Display for Details<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slice = self.0;
        if slice.kind == FlashOp::Read {
            write!(f, ",\"level\":{}", slice.level)?;
        }
        // The number of transactions of a multi-plane operation: page reads, programming units, or superblock erases.
        if slice.pages > 1 {
            write!(f, ",\"pages\":{}", slice.pages)?;
        }
        if let Some(request) = slice.request {
            write!(f, ",\"request\":{request}")?;
        }
        if slice.is_cut {
            f.write_str(",\"power_lost\":true")?;
        }
        Ok(())
    }
}
