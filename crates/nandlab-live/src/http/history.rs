//! The last minute and the last hour of a drive, and the log of events.

use crate::snapshot::{Bins, Snapshot};
use nandlab::drive::DieWork;
use nandlab::report::{Explained, PARTS, Part, Parts};
use nandlab_base::base::units::Time;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;

/// Seconds of the last minute, and minutes of the last hour.
const POINTS: usize = 60;
/// The most events of the log.
const EVENTS_MAX: usize = 200;
/// The most explained requests.
const EXPLAINED_MAX: usize = 2 * POINTS + EVENTS_MAX;
/// A request is a spike when it takes at least so many times the 99th percentile of the last minute, and so long.
const SPIKE: u64 = 3;
const SPIKE_NS: u64 = 1_000_000;
/// GC is a burst while at least this share of the pages are programmed for it.
const BURST: f64 = 0.5;

/// A second, or a minute.
#[derive(Clone, Debug, Default)]
struct Point {
    /// The end, in seconds of the server.
    at_s: f64,
    /// Time of this machine, in seconds.
    took_s: f64,
    latency: [Bins; 2],
    /// Pages programmed and copied back, by name of the cause.
    programmed: Map<String, Value>,
    /// Units that the host wrote in SLC mode, and without it.
    slc_written: [u64; 2],
    /// Superblocks in SLC mode at the end; `None` without this mode.
    slc_blocks: Option<u64>,
    /// What the requests waited for that were explained in this time, and the number of reads and writes among them.
    parts: Parts,
    explained: u64,
    /// The slowest request, by its number in `explained`, with its latency.
    slowest: Option<(u64, u64)>,
}

impl Point {
    /// Adds the next point.
    fn add(&mut self, next: &Self) {
        self.at_s = next.at_s;
        self.took_s += next.took_s;
        self.latency.iter_mut().zip(&next.latency).for_each(|(sum, more)| sum.add_all(more));
        for (cause, pages) in &next.programmed {
            let sum = self.programmed.get(cause).and_then(Value::as_u64).unwrap_or(0);
            self.programmed.insert(cause.clone(), (sum + pages.as_u64().unwrap_or(0)).into());
        }
        self.slc_written.iter_mut().zip(next.slc_written).for_each(|(sum, units)| *sum += units);
        self.slc_blocks = next.slc_blocks;
        self.parts.0.iter_mut().zip(next.parts.0).for_each(|(sum, ns)| *sum += ns);
        self.explained += next.explained;
        if next.slowest.map(|(_, ns)| ns) > self.slowest.map(|(_, ns)| ns) {
            self.slowest = next.slowest;
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "at_s": self.at_s,
            "took_s": self.took_s,
            "read": self.latency[0].to_json(),
            "write": self.latency[1].to_json(),
            "programmed": self.programmed,
            "slc": self.slc_blocks.map(|blocks| {
                let [cached, direct] = self.slc_written;
                json!({ "cached": cached, "direct": direct, "blocks": blocks })
            }),
            "slowest": self.slowest.map(|(id, ns)| json!({ "id": id, "us": ns as f64 * 1e-3 })),
        })
    }
}

/// Something worth a line.
#[derive(Clone, Debug)]
struct Event {
    id: u64,
    at_s: f64,
    kind: &'static str,
    text: String,
    /// The number of the explained request.
    explained: Option<u64>,
}

/// What the window has seen.
#[derive(Debug, Default)]
pub(super) struct History {
    last: Option<Box<Snapshot>>,
    seconds: VecDeque<Point>,
    minutes: VecDeque<Point>,
    /// The minute that has begun.
    minute: Point,
    events: VecDeque<Event>,
    events_seen: u64,
    explained: VecDeque<(u64, Value)>,
    explained_seen: u64,
    is_bursting: bool,
}

/// The number at a path of a JSON value; 0 if there is none.
pub(super) fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or(0.0)
}

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or("")
}

impl History {
    /// The last snapshot.
    pub(super) fn last(&self) -> Option<&Snapshot> {
        self.last.as_deref()
    }

    /// Takes a snapshot, and returns the one before.
    pub(super) fn take(&mut self, snapshot: Box<Snapshot>) -> Option<Box<Snapshot>> {
        let before = self.last.take();
        let point = self.point(&snapshot, before.as_deref());
        if let Some(before) = &before {
            self.look(before, &snapshot, &point);
        }
        self.minute.add(&point);
        if self.minute.took_s >= 60.0 {
            keep(&mut self.minutes, std::mem::take(&mut self.minute), POINTS);
        }
        keep(&mut self.seconds, point, POINTS);
        self.last = Some(snapshot);
        before
    }

    fn point(&mut self, snapshot: &Snapshot, before: Option<&Snapshot>) -> Point {
        let since = before.map_or(Time::START, |before| before.at);
        let mut programmed = Map::new();
        for kind in ["program", "copyback"] {
            let path = format!("/flash/{kind}");
            for (cause, pages) in
                snapshot.state.pointer(&path).and_then(Value::as_object).into_iter().flatten()
            {
                let path = format!("{path}/{cause}");
                let pages = pages.as_f64().unwrap_or(0.0);
                // The first snapshot is only what the next one is compared with.
                let old = before.map_or(pages, |before| number(&before.state, &path));
                let new = (pages - old).max(0.0) as u64;
                let sum = programmed.get(cause).and_then(Value::as_u64).unwrap_or(0);
                programmed.insert(cause.clone(), (sum + new).into());
            }
        }
        let since_before = |path: &str| {
            let now = number(&snapshot.state, path);
            (now - before.map_or(now, |before| number(&before.state, path))).max(0.0) as u64
        };
        let mut parts = snapshot.parts;
        let old = before.map_or(snapshot.parts, |before| before.parts);
        parts.0.iter_mut().zip(old.0).for_each(|(new, old)| *new = new.saturating_sub(old));
        let slowest =
            snapshot.slowest.first().map(|slowest| (self.keep_explained(slowest), slowest.latency_ns));
        Point {
            at_s: snapshot.at.seconds(),
            took_s: snapshot.at.saturating_sub(since).seconds(),
            latency: snapshot.latency.clone(),
            programmed,
            slc_written: ["/slc/cached", "/slc/direct"].map(since_before),
            slc_blocks: snapshot.state.pointer("/slc/blocks").and_then(Value::as_u64),
            parts,
            explained: since_before("/explained"),
            slowest,
        }
    }

    fn keep_explained(&mut self, explained: &Explained) -> u64 {
        let id = self.explained_seen;
        self.explained_seen += 1;
        keep(&mut self.explained, (id, explained.to_json()), EXPLAINED_MAX);
        id
    }

    /// Logs what has changed between two snapshots.
    fn look(&mut self, before: &Snapshot, now: &Snapshot, point: &Point) {
        let at_s = now.at.seconds();
        let (old, new) = (&before.state, &now.state);
        let mut found: Vec<(&'static str, String, Option<u64>)> = Vec::new();
        if text(old, "/power") != text(new, "/power") {
            let is_off = text(new, "/power") == "off";
            found.push((
                "power",
                if is_off { "Power has failed." } else { "Power is back." }.to_owned(),
                None,
            ));
        }
        let more_losses = number(&now.stat, "/power_losses") - number(&before.stat, "/power_losses");
        if more_losses > 0.0 && text(old, "/power") == text(new, "/power") {
            found.push(("power", format!("Power has failed and returned, {more_losses} times."), None));
        }
        let lost =
            |kind: &str| number(new, &format!("/losses/{kind}")) - number(old, &format!("/losses/{kind}"));
        let [covered, acknowledged, in_flight] = ["covered", "acknowledged", "in_flight"].map(lost);
        if covered + acknowledged + in_flight > 0.0 {
            let text = format!(
                "Lost units: {covered} covered by a flush, {acknowledged} acknowledged, {in_flight} in flight."
            );
            found.push(("loss", text, None));
        }
        for (path, name) in
            [("/dirty/budget", "dirty budget"), ("/buffer/budget", "budget of the write buffer")]
        {
            let (was, is) = (number(old, path), number(new, path));
            if was != is {
                found.push(("budget", format!("The {name} changes from {was} to {is} units."), None));
            }
        }
        if text(old, "/capacitor/stage") != text(new, "/capacitor/stage") {
            found.push(("budget", format!("The capacitor is {}.", text(new, "/capacitor/stage")), None));
        }
        let waiting = number(new, "/waiting_writes") - number(old, "/waiting_writes");
        if waiting > 0.0 && number(old, "/waiting_writes") >= 0.0 {
            found.push(("throttle", format!("{waiting} units waited for room in flash."), None));
        }
        let uncorrectable = number(new, "/uncorrectable") - number(old, "/uncorrectable");
        if uncorrectable > 0.0 {
            found.push(("loss", format!("{uncorrectable} pages could not be decoded."), None));
        }
        let pages = |cause: &str| point.programmed.get(cause).and_then(Value::as_f64).unwrap_or(0.0);
        let all: f64 = point.programmed.values().filter_map(Value::as_f64).sum();
        let is_bursting = all > 0.0 && pages("gc") >= BURST * all;
        if is_bursting != self.is_bursting {
            self.is_bursting = is_bursting;
            let share = if all > 0.0 { 100.0 * pages("gc") / all } else { 0.0 };
            let text = match is_bursting {
                true => format!("GC burst: {share:.0} % of the pages are programmed for GC."),
                false => "The GC burst is over.".to_owned(),
            };
            found.push(("gc", text, None));
        }
        let usual = self.merged(&self.seconds);
        let usual_ns = usual.iter().map(|bins| bins.quantile_ns(0.99)).max().unwrap_or(0);
        let is_spike = |ns: u64| ns >= SPIKE_NS && usual_ns > 0 && ns >= SPIKE * usual_ns;
        let (longest_op, longest_ns) =
            [("read", point.latency[0].max_ns), ("write", point.latency[1].max_ns)]
                .into_iter()
                .max_by_key(|&(_, ns)| ns)
                .unwrap_or_default();
        if let Some((id, ns)) = point.slowest
            && let Some(slowest) = now.slowest.first()
            && is_spike(ns)
        {
            let longest = (0..PARTS).max_by_key(|&part| slowest.parts.0[part]).unwrap_or(0);
            let text = format!(
                "Latency spike: a {} took {:.2} ms, most of it: {}.",
                slowest.request.op.name(),
                ns as f64 * 1e-6,
                words(Part::of(longest)),
            );
            found.push(("spike", text, Some(id)));
        }
        // Longer than each request that is explained.
        if longest_ns > point.slowest.map_or(0, |(_, ns)| ns) && is_spike(longest_ns) {
            let text = format!(
                "Latency spike: a {longest_op} took {:.2} ms. Requests were not explained at the time.",
                longest_ns as f64 * 1e-6
            );
            found.push(("spike", text, None));
        }
        for (kind, text, explained) in found {
            let id = self.events_seen;
            self.events_seen += 1;
            keep(&mut self.events, Event { id, at_s, kind, text, explained }, EVENTS_MAX);
        }
    }

    /// The latencies of several points.
    fn merged(&self, points: &VecDeque<Point>) -> [Bins; 2] {
        let mut sum: [Bins; 2] = Default::default();
        for point in points {
            sum.iter_mut().zip(&point.latency).for_each(|(sum, more)| sum.add_all(more));
        }
        sum
    }

    fn stretch(&self, points: &VecDeque<Point>, with_begun: bool) -> Value {
        let mut latency = self.merged(points);
        let mut took_s: f64 = points.iter().map(|point| point.took_s).sum();
        let (mut parts, mut explained) = (Parts::default(), 0);
        let begun = with_begun.then_some(&self.minute);
        for point in points.iter().chain(begun) {
            parts.0.iter_mut().zip(point.parts.0).for_each(|(sum, ns)| *sum += ns);
            explained += point.explained;
        }
        if let Some(begun) = begun {
            latency.iter_mut().zip(&begun.latency).for_each(|(sum, more)| sum.add_all(more));
            took_s += begun.took_s;
        }
        let parts: Map<String, Value> = (0..PARTS)
            .filter(|&part| parts.0[part] > 0)
            .map(|part| (Part::of(part).name(), parts.0[part].into()))
            .collect();
        let mut shown: Vec<Value> = points.iter().map(Point::to_json).collect();
        shown.extend(begun.filter(|begun| begun.took_s > 0.0).map(Point::to_json));
        json!({
            "took_s": took_s,
            "read": latency[0].to_json(),
            "write": latency[1].to_json(),
            "parts_ns": parts,
            "explained": explained,
            "points": shown,
        })
    }

    /// What a slow request waited for.
    pub(super) fn explained(&self, id: u64) -> Option<&Value> {
        self.explained.iter().find(|of| of.0 == id).map(|of| &of.1)
    }

    /// State and history; `None` before the first snapshot.
    pub(super) fn to_json(&self) -> Option<Value> {
        let last = self.last()?;
        let events: Vec<Value> = self
            .events
            .iter()
            .rev()
            .map(|event| {
                json!({
                    "id": event.id,
                    "at_s": event.at_s,
                    "kind": event.kind,
                    "text": event.text,
                    "explained": event.explained,
                })
            })
            .collect();
        let clients: Vec<Value> = last
            .clients
            .iter()
            .map(|client| {
                json!({
                    "number": client.number,
                    "reads": client.reads,
                    "writes": client.writes,
                    "others": client.others,
                    "bytes_read": client.bytes_read,
                    "bytes_written": client.bytes_written,
                    "outstanding": client.outstanding,
                    "placement": client.placement,
                })
            })
            .collect();
        Some(json!({
            "at_s": last.at.seconds(),
            "version": env!("CARGO_PKG_VERSION"),
            "stat": last.stat,
            "smart": last.smart,
            "state": last.state,
            "die_states": DieWork::ALL.map(|(_, name)| name),
            "dies": last.dies,
            "shares": last.shares,
            "clients": clients,
            "minute": self.stretch(&self.seconds, false),
            "hour": self.stretch(&self.minutes, true),
            "events": events,
        }))
    }
}

/// A part of a latency in words.
fn words(part: Part) -> String {
    let name = part.name();
    match (part, name.split_once('_')) {
        (Part::Operation(_, cause), Some((kind, _))) => format!("{kind}s for {}", cause.words()),
        _ => name,
    }
}

/// Adds to a list that forgets its oldest.
fn keep<T>(list: &mut VecDeque<T>, value: T, most: usize) {
    if list.len() == most {
        list.pop_front();
    }
    list.push_back(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandlab::host::Request;
    use nandlab::report::Own;
    use nandlab::sched::{Cause, FlashOp};

    /// The snapshot at a second, with so many pages programmed so far for the host and for GC.
    fn snapshot(at_s: u64, [host, gc]: [u64; 2]) -> Box<Snapshot> {
        let programmed = json!({ "host": host, "gc": gc });
        Box::new(Snapshot {
            at: Time::from_ns(at_s * 1_000_000_000),
            stat: json!({ "power_losses": 0 }),
            state: json!({
                "power": "on",
                "flash": { "program": programmed, "copyback": { "host": 0, "gc": 0 } },
                "dirty": { "budget": 100 },
                "capacitor": { "stage": "charged" },
                "losses": { "covered": 0, "acknowledged": 0, "in_flight": 0 },
                "waiting_writes": 0,
                "uncorrectable": 0,
            }),
            ..Snapshot::default()
        })
    }

    fn slow(id: u64, ns: u64) -> Explained {
        let mut parts = Parts::default();
        parts.0[Part::Operation(FlashOp::Erase, Cause::Gc).index()] = ns - 1000;
        parts.0[Part::Own(Own::Sense).index()] = 1000;
        Explained { id, request: Request::read(0, 4096), latency_ns: ns, parts, steps: Vec::new() }
    }

    fn texts(history: &History) -> Vec<&str> {
        history.events.iter().map(|event| event.text.as_str()).collect()
    }

    #[test]
    fn what_changes_between_snapshots_is_in_the_log() {
        let mut history = History::default();
        history.take(snapshot(1, [10, 0]));
        let mut off = snapshot(2, [20, 0]);
        off.state["power"] = json!("off");
        history.take(off);
        let mut on = snapshot(3, [20, 0]);
        on.state["losses"] = json!({ "covered": 1, "acknowledged": 2, "in_flight": 3 });
        on.state["dirty"]["budget"] = json!(80);
        on.state["waiting_writes"] = json!(5);
        history.take(on.clone());
        let mut same = on;
        same.at = Time::from_ns(4_000_000_000);
        history.take(same);
        assert_eq!(
            texts(&history),
            [
                "Power has failed.",
                "Power is back.",
                "Lost units: 1 covered by a flush, 2 acknowledged, 3 in flight.",
                "The dirty budget changes from 100 to 80 units.",
                "5 units waited for room in flash.",
            ]
        );
        let value = history.to_json().expect("there are snapshots");
        let newest = &value["events"][0];
        assert_eq!(
            (&newest["id"], &newest["kind"], &newest["explained"]),
            (&json!(4), &json!("throttle"), &Value::Null)
        );
    }

    #[test]
    fn a_burst_of_gc_begins_and_ends_once() {
        let mut history = History::default();
        let mut so_far = [0, 0];
        // Pages for the host and for GC in each second.
        for (second, pages) in [[10, 1], [10, 10], [10, 30], [10, 9], [0, 0]].into_iter().enumerate() {
            so_far = [so_far[0] + pages[0], so_far[1] + pages[1]];
            history.take(snapshot(second as u64 + 1, so_far));
        }
        let expected = ["GC burst: 50 % of the pages are programmed for GC.", "The GC burst is over."];
        assert_eq!(texts(&history), expected);
        let shown: Vec<u64> =
            history.seconds.iter().filter_map(|point| point.programmed["gc"].as_u64()).collect();
        assert_eq!(shown, [0, 10, 30, 9, 0]);
    }

    #[test]
    fn a_spike_is_in_the_log_and_explained() {
        let mut history = History::default();
        let requests = |at_s: u64, ns: u64| {
            let mut snapshot = snapshot(at_s, [0, 0]);
            snapshot.latency[0].add(ns, 4096);
            snapshot.slowest = vec![slow(at_s, ns)];
            snapshot
        };
        history.take(requests(1, 400_000));
        // Three times as long as usual, but too short; then long enough, but not three times as long.
        history.take(requests(2, 999_000));
        history.take(requests(3, 2_000_000));
        assert!(texts(&history).is_empty());
        history.take(requests(4, 7_000_000));
        assert_eq!(
            texts(&history),
            ["Latency spike: a read took 7.00 ms, most of it: erases for garbage collection."]
        );
        let id = history.events[0].explained.expect("the spike is explained");
        let explained = history.explained(id).expect("it is kept");
        assert_eq!((&explained["request"], &explained["latency_ns"]), (&json!(4), &json!(7_000_000)));
        assert!(history.explained(99).is_none());
        // A spike at a time at which requests were not explained.
        let mut other = requests(5, 500_000);
        other.latency[1].add(30_000_000, 4096);
        history.take(other);
        assert_eq!(
            texts(&history)[1..],
            ["Latency spike: a write took 30.00 ms. Requests were not explained at the time."]
        );
        assert_eq!(history.events[1].explained, None);
        // One beside a spike that is explained.
        let mut both = requests(6, 200_000_000);
        both.latency[0].add(400_000_000, 4096);
        history.take(both);
        let expected = [
            "Latency spike: a read took 200.00 ms, most of it: erases for garbage collection.",
            "Latency spike: a read took 400.00 ms. Requests were not explained at the time.",
        ];
        assert_eq!(texts(&history)[2..], expected);
    }

    #[test]
    fn the_hour_has_every_request_of_a_long_session_by_minute() {
        let mut history = History::default();
        for second in 1..=150 {
            let mut snapshot = snapshot(second, [2 * second, second]);
            snapshot.latency[1].add(second * 1000, 512);
            let before = history.take(snapshot);
            assert_eq!(before.is_some(), second > 1, "the memory of the one before is given back");
        }
        let value = history.to_json().expect("there are snapshots");
        let counts = |range: &str| -> Vec<u64> {
            let points = value[range]["points"].as_array().expect("points");
            points.iter().filter_map(|point| point["write"]["count"].as_u64()).collect()
        };
        assert_eq!(counts("hour"), [60, 60, 30]);
        assert_eq!(counts("minute"), [1; 60]);
        assert_eq!(value["hour"]["write"]["count"], 150);
        assert_eq!(value["hour"]["write"]["bytes"], 150 * 512);
        assert_eq!(value["hour"]["write"]["max"], 150.0);
        assert_eq!(value["hour"]["took_s"], 150.0);
        assert_eq!(value["hour"]["points"][0]["programmed"]["host"], 118);
    }
}
