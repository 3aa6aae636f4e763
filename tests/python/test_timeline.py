"""`timeline.json` agrees with the counters of the run, and `timeline_check` reports a broken timeline."""

import json
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import timeline_check
from timeline_check import CHANNELS, DECODER, DIES, REQUESTS

PAGE = 16384
ALL = 10**6
SOME = 2000

#: Four dies with multi-plane operations on two planes; data so old that reads need retries; full enough for GC.
DRIVE = """\
seed = 7
[drive]
channels = 2
chips_per_channel = 2
planes_per_die = 2
blocks_per_plane = 32
pages_per_block = 32
page_size = "16KiB"
endurance = 9000
op = 0.4
[ftl]
allocation = "PCWD"
[timing]
command = "200ns"
multi_plane = true
[ecc]
levels = "laldpc"
start = "first"
[reliability]
rber.vth = { cell_to_cell = 0.08 }
pe_cycles = 6000
retention = "180d"
[precondition]
used = 0.85
valid = 0.8
"""
CACHE = {"cache.size": "1MiB", "cache.sync": "smart", "cache.dirty_budget": 0.5}
SPARE = {"drive.op": 0.9, "precondition.used": 0.7, "precondition.valid": 0.7}
CUT = {"power.cut_after_requests": 600, "workload.arrival": {"queue_depth": 32}}


def requests(number):
    """A trace with requests of all kinds in bursts: of whole pages, parts of pages, several pages."""
    draw = random.Random(3)
    lines = ["fio version 3 iolog", "0 disk add", "0 disk open"]
    us = 0
    for _ in range(number):
        us += draw.choice((0, 0, 5, 2000, 12000))
        op = draw.choices(("read", "write", "trim", "sync"), (8, 8, 1, 1))[0]
        length = draw.choice((512, 4096, PAGE, 3 * PAGE, 8 * PAGE, 20480))
        offset = draw.randrange(1200) * PAGE + draw.choice((0, 0, 512, 4096))
        lines.append(f"{us} disk sync 0 0" if op == "sync" else f"{us} disk {op} {offset} {length}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def play(tmp_path_factory):
    """A function that runs the trace on `DRIVE` with changed settings, and returns result and timeline. Runs without
    changed settings are kept for the next call.
    """
    import nandlab

    directory, kept = tmp_path_factory.mktemp("timeline"), {}
    (directory / "trace.log").write_text(requests(1500))

    def run(operations=ALL, verify=False, **sets):
        if not sets and not verify and operations in kept:
            return kept[operations]
        spec = directory / "spec.toml"
        output = f"[output]\nrequests = true\ntimeline_operations = {operations}\n"
        spec.write_text(f'{DRIVE}[workload]\ntrace = "trace.log"\n{output}')
        result = nandlab.run(nandlab.load(spec, sets), verify=verify)
        played = result, timeline_check.read(result.timeline)
        if not sets and not verify:
            kept[operations] = played
        return played

    return run


def flash(summary, cause):
    """Flash operations of a cause: pages read, pages programmed, blocks erased and pages copied back."""
    return sum(summary.flash[kind][cause] for kind in ("read", "program", "erase", "copyback"))


def pages_of(one):
    """The number of pages that a request touches."""
    offset, length = one.args["offset"], one.args["len"]
    return (offset + length - 1) // PAGE - offset // PAGE + 1 if length else 0


def partial_pages_of(one):
    """The number of pages that a request covers only partly."""
    first, last = one.args["offset"], one.args["offset"] + one.args["len"]
    pages = {page for page, edge in ((first // PAGE, first), ((last - 1) // PAGE, last)) if edge % PAGE}
    return len(pages)


def test_the_timeline_has_every_request_and_operation_of_a_run(play):
    result, timeline = play()
    summary = result.summary
    assert timeline.problems == []
    counters = summary.counters
    assert min(counters.partial_writes, counters.merge_reads, counters.gc_victims) > 50
    assert min(summary.ecc.retries, summary.host.flush.count, counters.trimmed_pages) > 40

    # Each request is in the timeline, with the times of the table of requests.
    columns = ("arrival_ns", "completed_ns", "offset", "length")
    table = Counter(result.requests.select(columns).iter_rows())
    recorded = timeline.of(REQUESTS)
    assert Counter((one.start, one.end, one.args["offset"], one.args["len"]) for one in recorded) == table
    assert {one.args["request"] for one in recorded} == set(range(summary.requests))
    assert {one.name for one in recorded} >= {"read 512 B", "write 16 KiB", "write 128 KiB", "trim", "flush"}
    assert len({one.track for one in recorded}) > 3, "requests that overlap are not in lanes of their own"
    assert {one.track for one in timeline.of(DECODER)} >= {"level 1", "level 1, lane 1"}

    # Each flash operation is in the timeline.
    operations = {}
    for one in timeline.slices:
        if one.process != REQUESTS:
            operations.setdefault(one.args["operation"], one)
    along = {arrow.operation for arrow in timeline.arrows} - operations.keys()
    assert along, "no operation of a request is the partner of another operation"
    arrays = [one for one in timeline.of(DIES) if one.name != "sense"]
    programs = Counter()
    for one in arrays:
        programs[one.name, one.cause] += one.args.get("pages", 1)
    assert programs["program", "host"] == summary.flash.program.host
    # Background operations may be under way at the end of the run; a die executes one operation at a time.
    done = summary.flash.program.gc, summary.flash.erase.gc
    begun = programs["program", "gc"], programs["erase", "gc"]
    assert all(0 <= more - less <= 8 for more, less in zip(begun, done, strict=True))
    assert {one.args.get("pages", 1) for one in arrays} == {1, 2}
    tries = sum(dict(summary.flash.read).values()) + summary.ecc.retries
    assert 0 <= len(timeline.of(DECODER)) - tries <= 8 * 7
    transfers = sum(one.name == "transfer out" for one in timeline.of(CHANNELS))
    assert 0 <= transfers - len(timeline.of(DECODER)) <= 2

    # Each operation of a request has one arrow, also if it has several tries.
    assert len({arrow.operation for arrow in timeline.arrows}) == len(timeline.arrows) == flash(summary, "host")
    arrows = Counter(arrow.begin.args["request"] for arrow in timeline.arrows)
    merges = 0
    for one in recorded:
        count, op = arrows[one.args["request"]], one.name.split(" ")[0]
        if op == "write":
            assert pages_of(one) <= count <= pages_of(one) + partial_pages_of(one)
            merges += count - pages_of(one)
        else:
            assert count <= (pages_of(one) if op == "read" else 0)
    assert merges == counters.merge_reads
    unread = counters.unmapped_reads + counters.buffered_reads
    reads = [one for one in recorded if one.name.startswith("read")]
    assert sum(pages_of(one) - arrows[one.args["request"]] for one in reads) == unread


@pytest.mark.parametrize(
    "sets",
    [
        {},
        {"timing.multi_plane": False, "timing.scheduler": "fcfs", "timing.command": "0us"},
        {
            "timing.decode": "0us",
            "timing.command": "0us",
            "ecc.levels": "none",
            "timing.off_chip_mb_per_s": 200,
            "reliability.rber": "none",
        },
        {"ftl.map": {"demand": {"cache": "2KiB"}}} | SPARE,
        CACHE,
        {"workload.arrival": {"queue_depth": 8}},
        {"refresh.policy": "partial", "cache.size": "1MiB"},
        {"migration.policy": "rcopyback-greedy"} | SPARE,
        {"reliability.rber": {"vth": {"cell_to_cell": 0.11}}},
    ],
    ids=[
        "plain",
        "one plane",
        "no time",
        "demand map",
        "cache",
        "closed loop",
        "partial refresh",
        "copyback",
        "too old",
    ],
)
def test_each_operation_of_a_request_has_one_arrow(play, sets):
    result, timeline = play(**sets)
    assert timeline.problems == []
    assert len(timeline.arrows) == flash(result.summary, "host")
    assert len(timeline.of(REQUESTS)) == result.summary.requests
    causes = {one.cause for one in timeline.slices if one.process != REQUESTS}
    flashed = dict(result.summary.flash).values()
    assert causes >= {cause for of in flashed for cause, count in of.items() if count > 0}
    failed = Counter(one.args["failed"] for one in timeline.of(REQUESTS) if "failed" in one.args)
    assert failed == Counter(dict(result.summary.requests_failed))


def test_a_limited_timeline_has_the_first_operations_and_the_requests_of_that_time(play):
    _, whole = play()
    for operations in (1, 2, 7, 100, 1000):
        _, timeline = play(operations)
        assert timeline.problems == []
        numbers = {one.args["operation"] for one in timeline.slices if one.process != REQUESTS}
        numbers |= {arrow.operation for arrow in timeline.arrows}
        assert numbers == set(range(operations))
        # The arrows of these operations are those of the timeline of the whole run.
        ends = {(arrow.operation, arrow.begin.args["request"], arrow.end.start) for arrow in whole.arrows}
        here = {(arrow.operation, arrow.begin.args["request"], arrow.end.start) for arrow in timeline.arrows}
        assert here == {end for end in ends if end[0] < operations}
        recorded = [one.args["request"] for one in timeline.of(REQUESTS)]
        idle = set(recorded) - {arrow.begin.args["request"] for arrow in timeline.arrows}
        assert len(idle) <= operations
        if operations >= 100:
            assert sorted(recorded) == list(range(len(recorded))), "requests at the start are not recorded"


@pytest.mark.parametrize("arrival", ["trace", {"queue_depth": 16}])
def test_after_a_warm_up_the_timeline_begins_with_the_results(play, arrival):
    for operations in (100, ALL):
        result, timeline = play(operations, **{"workload.warm_up": 500, "workload.arrival": arrival})
        assert timeline.problems == []
        begin_ns = round(result.summary.warm_up.duration_s * 1e9)
        working = [one for one in timeline.slices if one.process != REQUESTS]
        assert min(one.start for one in working) >= begin_ns
        numbers = {one.args["operation"] for one in working} | {arrow.operation for arrow in timeline.arrows}
        assert max(numbers) - min(numbers) < operations
        # The requests that the results count were outstanding when the warm-up ended, or came later.
        recorded = timeline.of(REQUESTS)
        assert min(one.end for one in recorded) >= begin_ns
        if operations == ALL:
            assert len(recorded) == result.summary.requests == 1000


def test_the_oracle_changes_neither_timeline_nor_summary(play):
    result, _ = play(1000)
    again, _ = play(1000, verify=True)
    assert again.timeline == result.timeline, "the oracle has changed the timeline"
    assert {**again.summary, "verified": None, "spec_hash": None} == {
        **result.summary,
        "verified": None,
        "spec_hash": None,
    }


@pytest.mark.parametrize("capacitance", ["0F", "10mF"])
def test_power_loss_ends_requests_and_operations_in_the_timeline(play, capacitance):
    sets = {**CACHE, **CUT, "capacitor.capacitance": capacitance}
    result, timeline = play(**sets)
    assert timeline.problems == []
    lost = [one for one in timeline.of(REQUESTS) if one.args.get("failed") == "power_lost"]
    (loss,) = result.power.losses
    assert len(lost) == result.summary.requests_failed.power_lost == loss.aborted_requests > 0
    ends = {one.end for one in lost}
    assert len(ends) == 1
    cut = [one for one in timeline.slices if "power_lost" in one.args]
    assert all(one.args["power_lost"] for one in cut)
    if capacitance == "0F":
        assert {one.end for one in cut} == ends
        torn = [one for one in cut if one.name in ("program", "copyback")]
        assert sum(one.args.get("pages", 1) for one in torn) == loss.torn_programs
    else:
        assert {one.process for one in cut} <= {DECODER}, (
            "an operation under way on a die was cut off, with a capacitor"
        )
        assert any(one.cause == "flush" for one in timeline.of(DIES))


def test_the_timeline_of_a_stopped_run_has_the_outstanding_requests(play, tmp_path):
    from nandlab import _core

    spec = tmp_path / "spec.toml"
    (tmp_path / "trace.log").write_text(requests(1500))
    spec.write_text(f'{DRIVE}[workload]\ntrace = "trace.log"\n[output]\ntimeline_operations = {ALL}\n')
    run = _core.Run(_core.Spec.load(spec.read_text(), spec.name, str(tmp_path), []))
    while (state := run.step(1000, until=700))["phase"] != "run" or state["requests"] < 700:
        pass
    timeline = timeline_check.read(run.result().timeline())
    assert timeline.problems == []
    outstanding = [one for one in timeline.of(REQUESTS) if one.args.get("outstanding")]
    assert outstanding
    assert len(timeline.of(REQUESTS)) - len(outstanding) == state["requests"] >= 700
    (end,) = {one.end for one in outstanding}
    assert max(one.end for one in timeline.of(REQUESTS)) == end


#: By change that breaks a valid timeline: a part of the problem that the checker reports.
BREAKAGES = {
    "overlap": "overlaps",
    "nested": "overlaps",
    "no beginning": "does not have one beginning and one end",
    "no end": "does not have one beginning and one end",
    "two ends": "does not have one beginning and one end",
    "an arrow of nothing": "does not have one beginning and one end",
    "end elsewhere": "at no slice",
    "beginning elsewhere": "at no slice",
    "back in time": "back in time",
    "another request": "comes from another request",
    "a later slice": "does not end in the first slice",
    "turned round": "does not lead from a request",
    "no arrow": "no arrow",
    "an arrow too many": "an arrow",
    "request twice": "appears twice",
    "request unknown": "which is missing",
    "unknown field": "unknown or missing fields",
    "unknown argument": "unknown or missing args",
    "missing field": "unknown or missing fields",
    "unknown phase": "unknown phase",
    "unknown slice": "an unknown slice",
    "unknown track": "a track without a name",
    "inexact time": "ts is",
    "negative time": "ts is",
    "not JSON": "not JSON",
}


class Written(str):
    """A number of the JSON text, kept as text, so that it is written as it was read."""

    @property
    def ns(self):
        return int(self.replace(".", ""))

    @staticmethod
    def of(ns):
        return Written(f"{ns // 1000}.{ns % 1000:03}")


def text_of(trace):
    """The JSON text of a trace."""
    return re.sub(r'"(ts|dur)": "([^"]*)"', r'"\1": \2', json.dumps(trace))


def broken(text, how):
    """The text of a timeline after the change `how` of `BREAKAGES`."""
    if how == "not JSON":
        return text[:-4]
    trace = json.loads(text, parse_float=Written)
    events = trace["traceEvents"]
    begins = [event for event in events if event["ph"] == "s"]
    slices = [event for event in events if event["ph"] == "X" and event["pid"] != 4]
    recorded = {event["args"]["request"]: event for event in events if event["ph"] == "X" and event["pid"] == 4}
    dies = [event for event in slices if event["pid"] == 1]
    # An arrow to an operation with several slices: it leads to the first of them.
    begin = begins[50]
    end = next(event for event in events if event["ph"] == "f" and event["id"] == begin["id"])
    of = [event for event in slices if event["args"]["operation"] == begin["id"]]
    match how:
        case "overlap":
            after = next(event for event in dies[101:] if event["tid"] == dies[100]["tid"])
            dies[100]["dur"] = Written.of(after["ts"].ns - dies[100]["ts"].ns + 1)
        case "nested":
            events.append({**dies[100], "dur": Written("0.001"), "ts": Written.of(dies[100]["ts"].ns + 1)})
        case "no beginning":
            events.remove(begin)
        case "no end":
            events.remove(end)
        case "two ends":
            events.append(dict(end))
        case "an arrow of nothing":
            events.append({**begin, "id": 10**9})
        case "end elsewhere":
            end["ts"] = Written("999999999.000")
        case "beginning elsewhere":
            begin["tid"] = max(e["tid"] for e in events if e["ph"] == "X" and e["pid"] == 4)
            begin["ts"] = Written("0.000")
        case "back in time":
            begin["ts"] = Written.of(end["ts"].ns + 1)
        case "another request":
            other = next(e for e in begins if e["ts"].ns < begin["ts"].ns)
            begin.update(ts=other["ts"], tid=other["tid"])
        case "a later slice":
            end.update(ts=of[-1]["ts"], tid=of[-1]["tid"], pid=of[-1]["pid"])
        case "turned round":
            begin["ph"], end["ph"] = "f", "s"
            begin["bp"] = end.pop("bp")
        case "no arrow":
            events.remove(begin)
            events.remove(end)
        case "an arrow too many":
            gc = next(e for e in dies if e["cat"] == "gc")
            events.append({**begin, "id": gc["args"]["operation"]})
            events.append({**end, **{key: gc[key] for key in ("ts", "tid", "pid")}, "id": gc["args"]["operation"]})
        case "request twice":
            recorded[3]["args"]["request"] = 2
        case "request unknown":
            of[-1]["args"]["request"] = of[0]["args"]["request"] = 10**9
        case "unknown field":
            slices[5]["color"] = "red"
        case "unknown argument":
            slices[5]["args"]["plane"] = 1
        case "missing field":
            del slices[5]["cat"]
        case "unknown phase":
            events.append({"ph": "B", "pid": 1, "tid": 0, "name": "sense", "ts": Written("1.000")})
        case "unknown slice":
            slices[5]["name"] = "think"
        case "unknown track":
            slices[5]["tid"] = 4000
        case "inexact time":
            slices[5]["ts"] = Written(f"{slices[5]['ts']}5")
        case "negative time":
            slices[5]["ts"] = Written(f"-{slices[5]['ts']}")
        case _:
            raise AssertionError(how)
    return text_of(trace)


@pytest.mark.parametrize("how", BREAKAGES)
def test_the_checker_reports_a_broken_timeline(play, how):
    # GC begins with the second thousand.
    result, sound = play(SOME if how == "an arrow too many" else SOME // 4)
    assert sound.problems == []
    problems = timeline_check.read(broken(result.timeline, how)).problems
    assert any(BREAKAGES[how] in problem for problem in problems), problems[:5]
    assert len(problems) <= 6


def test_the_checker_runs_as_a_program(play, tmp_path):
    text, file = play(1000)[0].timeline, tmp_path / "timeline.json"
    script = Path(timeline_check.__file__)
    for how, status, message in (("sound", 0, ": 0 problems"), ("no arrow", 1, "no arrow")):
        file.write_text(text if how == "sound" else broken(text, how))
        done = subprocess.run([sys.executable, script, file], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (status, "")
        assert message in done.stdout
