"""Reads a `timeline.json` and says what is wrong with it: `python tests/python/timeline_check.py FILE`.

What is checked: the fields of every event; slices of one track that overlap; arrows without both ends, back in time, or
with an end where no slice is, or another one than the arrow's; operations of a request without their arrow. Times are
compared in nanoseconds, as integers.
"""

import json
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from nandlab.result_types import CAUSES

REQUESTS, DIES, CHANNELS, DECODER = "host requests", "dies", "channels", "decoder"
#: The slices of each process, a request's without its size.
NAMES = {
    REQUESTS: {"read", "write", "trim", "flush"},
    DIES: {"sense", "program", "erase", "copyback"},
    CHANNELS: {"command", "transfer in", "transfer out"},
    DECODER: {"decode"},
}
FAILURES = {"uncorrectable", "worn_out", "power_lost"}
FLOW = {"ph", "pid", "tid", "name", "cat", "id", "ts"}
#: The fields of an event by its phase: those that it must have, those that it may have.
FIELDS = {
    "M": ({"ph", "pid", "name", "args"}, {"tid"}),
    "X": ({"ph", "pid", "tid", "name", "cat", "ts", "dur", "args"}, set()),
    "s": (FLOW, set()),
    "f": (FLOW | {"bp"}, set()),
}
REQUEST_ARGS = ({"request", "offset", "len"}, {"fua", "outstanding", "failed"})
OPERATION_ARGS = ({"operation", "die", "ppn", "lpn"}, {"level", "pages", "request", "power_lost"})


class Time(int):
    """Nanoseconds."""

    @staticmethod
    def of(text: str) -> "Time | str":
        """A number that is not an integer: a time in microseconds, to the nanosecond."""
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
    """What a timeline holds, and what is wrong with it."""

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
    """Whether an object has all that it must have, and nothing that it may not have."""
    return isinstance(given, dict) and must <= given.keys() <= must | may


def _malformed(event) -> str | None:
    """What is wrong with an event by itself."""
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
    """What is wrong with a slice by itself."""
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
    """Slices of a track that overlap, whether one lies in the other or not: nothing here is a part of anything."""
    for (process, track), slices in timeline.tracks().items():
        last = None
        for one in slices:
            if last is not None and one.start < last.end:
                timeline.problems.append(f"{process}, {track}: {one} overlaps {last}")
            if last is None or one.end >= last.end:
                last = one


def _at(slices: list[Slice], time: int, operation: int) -> Slice | None:
    """The slice of a track that an arrow meets; of those that take no time, that of its operation."""
    here = [one for one in slices if one.start == time or one.start < time < one.end]
    return here[0] if len(here) == 1 else next((one for one in here if one.args.get("operation") == operation), None)


def _arrow(timeline: Timeline, operation: int, ends: dict[str, list[tuple[int, Slice | None]]]) -> None:
    """An arrow, of which there is to be one of each end."""
    if sorted(ends) != ["f", "s"] or any(len(times) != 1 for times in ends.values()):
        timeline.problems.append(f"arrow {operation} has not one beginning and one end")
        return
    (begun, begin), (ended, end) = ends["s"][0], ends["f"][0]
    if begun > ended:
        timeline.problems.append(f"arrow {operation} goes back in time, from {begun} to {ended} ns")
    if begin is None or end is None:
        timeline.problems.append(f"arrow {operation} has an end where no slice is, or several are")
    elif begin.process != REQUESTS or end.process == REQUESTS:
        timeline.problems.append(f"arrow {operation} does not lead from a request to an operation")
    else:
        timeline.arrows.append(Arrow(operation, begin, end))


def _of_requests(timeline: Timeline) -> None:
    """Every operation of a request has the request's arrow to its first slice, and nothing else has one."""
    requests: dict[int, Slice] = {}
    for one in timeline.of(REQUESTS):
        if requests.setdefault(one.args["request"], one) is not one:
            timeline.problems.append(f"request {one.args['request']} is there twice")
    first: dict[int, Slice] = {}
    for one in sorted(timeline.slices, key=lambda one: one.start):
        if one.process != REQUESTS:
            first.setdefault(one.args["operation"], one)
            if ("request" in one.args) != (one.cause == "host"):
                timeline.problems.append(f"{one}: a request's operation has cause host, and no other one")
    arrows = {arrow.operation: arrow for arrow in timeline.arrows}
    for operation, one in first.items():
        request, arrow = one.args.get("request"), arrows.get(operation)
        if request is not None and request not in requests:
            timeline.problems.append(f"operation {operation} belongs to request {request}, which is not there")
        elif (request is None) != (arrow is None):
            timeline.problems.append(f"operation {operation}, {one}: {'no' if arrow is None else 'an'} arrow")
        elif arrow is not None and arrow.begin is not requests[request]:
            timeline.problems.append(f"operation {operation}: its arrow comes from another request")
    for operation, arrow in arrows.items():
        # A page that goes along with another one has its arrow to the common slice, which has the other's number.
        is_along = arrow.end.args.get("pages", 1) > 1 and arrow.end.args["operation"] != operation
        if not is_along and first.get(operation) is not arrow.end:
            timeline.problems.append(f"arrow {operation} does not end in the first slice of its operation")


def read(text: str) -> Timeline:
    """Reads a timeline; `problems` says what is wrong with it."""
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
                timeline.problems.append(f"two names of one track: {event}")
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
