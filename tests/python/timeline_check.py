"""Reads a `timeline.json` and prints its problems: `python tests/python/timeline_check.py FILE`.

Problems are: unknown or missing fields of an event; slices of one track that overlap; arrows that lack an end, go back
in time, or have an end at no slice or at a slice of another request or operation; operations of a request without an
arrow. Times are compared in nanoseconds, as integers.
"""

import json
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from nandlab.result_types import CAUSES

REQUESTS, DIES, CHANNELS, DECODER = "host requests", "dies", "channels", "decoder"
#: Names of the slices of each process; the name of a request is followed by its size.
NAMES = {
    REQUESTS: {"read", "write", "trim", "flush"},
    DIES: {"sense", "program", "erase", "copyback"},
    CHANNELS: {"command", "transfer in", "transfer out"},
    DECODER: {"decode"},
}
FAILURES = {"uncorrectable", "worn_out", "power_lost"}
FLOW = {"ph", "pid", "tid", "name", "cat", "id", "ts"}
#: By phase of an event: the fields that it must have, and further fields that it may have.
FIELDS = {
    "M": ({"ph", "pid", "name", "args"}, {"tid"}),
    "X": ({"ph", "pid", "tid", "name", "cat", "ts", "dur", "args"}, set()),
    "s": (FLOW, set()),
    "f": (FLOW | {"bp"}, set()),
}
REQUEST_ARGS = ({"request", "offset", "len"}, {"fua", "outstanding", "failed"})
OPERATION_ARGS = ({"operation", "die", "ppn", "lpn"}, {"level", "pages", "request", "power_lost"})


class Time(int):
    """A time in nanoseconds."""

    @staticmethod
    def of(text: str) -> "Time | str":
        """The time of a JSON number in microseconds with three decimals; a text for any other number."""
        return Time(text.replace(".", "")) if re.fullmatch(r"\d+\.\d{3}", text) else f"number {text}"


@dataclass(eq=False, slots=True)
class Slice:
    """A slice; times in nanoseconds."""

    process: str
    track: str
    name: str
    cause: str
    start: int
    end: int
    args: dict

    def __str__(self):
        return f"{self.name} on {self.track}, {self.start} to {self.end} ns"


@dataclass
class Arrow:
    """A flow event with both ends: the slices where it begins and ends."""

    operation: int
    begin: Slice
    end: Slice


@dataclass
class Timeline:
    """The slices and arrows of a timeline, and its problems."""

    slices: list[Slice] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def of(self, process: str) -> list[Slice]:
        """The slices of a process."""
        return [one for one in self.slices if one.process == process]

    def tracks(self) -> dict[tuple[str, str], list[Slice]]:
        """The slices of each track, by process and name, in the order of their start."""
        tracks = defaultdict(list)
        for one in sorted(self.slices, key=lambda one: (one.start, one.end)):
            tracks[one.process, one.track].append(one)
        return dict(tracks)


def has_fields(given, must, may=frozenset()):
    """Whether `given` is an object that has all keys of `must`, and no keys other than those of `must` and `may`."""
    return isinstance(given, dict) and must <= given.keys() <= must | may


def _malformed(event) -> str | None:
    """The problem of an event, regardless of other events; `None` if it has none."""
    if not isinstance(event, dict) or event.get("ph") not in FIELDS:
        return "an event of an unknown phase"
    must, may = FIELDS[event["ph"]]
    if not has_fields(event, must, may):
        return "unknown or missing fields"
    for key, value in event.items():
        wanted = {"ts": Time, "dur": Time, "args": dict, "pid": int, "tid": int, "id": int}.get(key, str)
        if type(value) is not wanted or (wanted is int and value < 0):
            return f"{key} is {value!r}"
    if event["ph"] in "sf" and (event["name"], event["cat"], event.get("bp", "e")) != ("operation", "request", "e"):
        return "an unknown arrow"
    if event["ph"] == "M":
        what, _, of = event["name"].partition("_")
        wanted = {"name": str, "sort_index": int}.get(of)
        if what not in ("process", "thread") or wanted is None or (what == "thread") != ("tid" in event):
            return "an unknown name"
        if not has_fields(event["args"], {of}) or type(event["args"][of]) is not wanted:
            return "unknown or missing args"
    return None


def _misnamed(one: Slice) -> str | None:
    """The problem of a slice, regardless of other slices; `None` if it has none."""
    is_request = one.process == REQUESTS
    name = one.name.split(" ")[0] if is_request else one.name
    if name not in NAMES[one.process] or not (one.cause == "request" if is_request else one.cause in CAUSES):
        return "an unknown slice"
    must, may = REQUEST_ARGS if is_request else OPERATION_ARGS
    if not has_fields(one.args, must, may) or one.args.get("failed", "worn_out") not in FAILURES:
        return "unknown or missing args"
    for key, value in one.args.items():
        wanted = {"failed": str, "fua": bool, "outstanding": bool, "power_lost": bool}.get(key, int)
        if type(value) is not wanted:
            return f"{key} is {value!r}"
    return None


def _overlaps(timeline: Timeline) -> None:
    """Adds a problem for every two slices of a track that overlap, also if one is within the other."""
    for (process, track), slices in timeline.tracks().items():
        last = None
        for one in slices:
            if last is not None and one.start < last.end:
                timeline.problems.append(f"{process}, {track}: {one} overlaps {last}")
            if last is None or one.end >= last.end:
                last = one


def _at(slices: list[Slice], time: int, operation: int) -> Slice | None:
    """The slice at an end of an arrow; of several slices at this time, the slice of the arrow's operation."""
    here = [one for one in slices if one.start == time or one.start < time < one.end]
    return here[0] if len(here) == 1 else next((one for one in here if one.args.get("operation") == operation), None)


def _arrow(timeline: Timeline, operation: int, ends: dict[str, list[tuple[int, Slice | None]]]) -> None:
    """Adds the arrow of an operation, or the problems of its ends."""
    if sorted(ends) != ["f", "s"] or any(len(times) != 1 for times in ends.values()):
        timeline.problems.append(f"arrow {operation} does not have one beginning and one end")
        return
    (begun, begin), (ended, end) = ends["s"][0], ends["f"][0]
    if begun > ended:
        timeline.problems.append(f"arrow {operation} goes back in time, from {begun} to {ended} ns")
    if begin is None or end is None:
        timeline.problems.append(f"arrow {operation} has an end at no slice or at several slices")
    elif begin.process != REQUESTS or end.process == REQUESTS:
        timeline.problems.append(f"arrow {operation} does not lead from a request to an operation")
    else:
        timeline.arrows.append(Arrow(operation, begin, end))


def _of_requests(timeline: Timeline) -> None:
    """Checks that every operation of a request has an arrow to its first slice, and no other operation has one."""
    requests: dict[int, Slice] = {}
    for one in timeline.of(REQUESTS):
        if requests.setdefault(one.args["request"], one) is not one:
            timeline.problems.append(f"request {one.args['request']} appears twice")
    first: dict[int, Slice] = {}
    for one in sorted(timeline.slices, key=lambda one: one.start):
        if one.process != REQUESTS:
            first.setdefault(one.args["operation"], one)
            if ("request" in one.args) != (one.cause == "host"):
                timeline.problems.append(
                    f"{one}: expected cause host for an operation of a request, and only for such an operation"
                )
    arrows = {arrow.operation: arrow for arrow in timeline.arrows}
    for operation, one in first.items():
        request, arrow = one.args.get("request"), arrows.get(operation)
        if request is not None and request not in requests:
            timeline.problems.append(f"operation {operation} belongs to request {request}, which is missing")
        elif (request is None) != (arrow is None):
            timeline.problems.append(
                f"operation {operation}, {one}: has {'no arrow' if arrow is None else 'an arrow without a request'}"
            )
        elif arrow is not None and arrow.begin is not requests[request]:
            timeline.problems.append(f"operation {operation}: its arrow comes from another request")
    for operation, arrow in arrows.items():
        # In a multi-plane operation the arrow of a partner leads to the common slice, which has another operation
        # number.
        is_along = arrow.end.args.get("pages", 1) > 1 and arrow.end.args["operation"] != operation
        if not is_along and first.get(operation) is not arrow.end:
            timeline.problems.append(f"arrow {operation} does not end in the first slice of its operation")


def read(text: str) -> Timeline:
    """Reads and checks a timeline."""
    timeline = Timeline()
    try:
        trace = json.loads(text, parse_float=Time.of)
    except ValueError as error:
        timeline.problems.append(f"not JSON: {error}")
        return timeline
    if not has_fields(trace, {"displayTimeUnit", "traceEvents"}) or not isinstance(trace["traceEvents"], list):
        timeline.problems.append("unknown or missing fields of the trace")
        return timeline
    events = []
    for event in trace["traceEvents"]:
        problem = _malformed(event)
        if problem:
            timeline.problems.append(f"{problem}: {event}")
        else:
            events.append(event)

    names: dict[tuple[int, int | None], str] = {}
    for event in events:
        if event["ph"] == "M" and "name" in event["args"]:
            place = event["pid"], event.get("tid")
            if names.setdefault(place, event["args"]["name"]) is not event["args"]["name"]:
                timeline.problems.append(f"a track with two names: {event}")
    for event in events:
        process, track = names.get((event["pid"], None)), names.get((event["pid"], event.get("tid")))
        if process not in NAMES or track is None:
            timeline.problems.append(f"a track without a name: {event}")
        elif event["ph"] == "X":
            start, args = int(event["ts"]), event["args"]
            one = Slice(process, track, event["name"], event["cat"], start, start + event["dur"], args)
            problem = _misnamed(one)
            if problem:
                timeline.problems.append(f"{problem}: {event}")
            else:
                timeline.slices.append(one)

    _overlaps(timeline)
    starting: dict[tuple[str, str, int], list[Slice]] = defaultdict(list)
    for one in timeline.slices:
        starting[one.process, one.track, one.start].append(one)
    tracks = timeline.tracks()
    arrows: dict[int, dict[str, list[tuple[int, Slice | None]]]] = defaultdict(lambda: defaultdict(list))
    for event in events:
        if event["ph"] in "sf":
            place = names.get((event["pid"], None), ""), names.get((event["pid"], event["tid"]), "")
            here = starting.get((*place, event["ts"])) or tracks.get(place, [])
            met = _at(here, event["ts"], event["id"])
            arrows[event["id"]][event["ph"]].append((int(event["ts"]), met))
    for operation, ends in arrows.items():
        _arrow(timeline, operation, ends)
    _of_requests(timeline)
    return timeline


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    timeline = read(Path(arguments[0]).read_text(encoding="utf-8"))
    for problem in timeline.problems[:50]:
        print(problem)
    requests = len(timeline.of(REQUESTS))
    print(
        f"{requests} requests, {len(timeline.slices) - requests} slices of operations, {len(timeline.arrows)} arrows: "
        f"{len(timeline.problems)} problems"
    )
    return bool(timeline.problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
