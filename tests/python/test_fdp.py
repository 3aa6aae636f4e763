"""The logs of drives with placement handles, in nvme-cli's layout.

The parser here is written from nvme-cli's layout, and reads samples of it first: so what it makes of our text is what a
script made for nvme-cli makes of it.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from nandlab import fdp

# Samples in the layout that nvme-cli 2.x prints (`stdout_fdp_*` of its nvme-print-stdout.c); numbers are ours.
CONFIGS = """\
FDP Attributes: 0x80
Vendor Specific Size: 0
Number of Reclaim Groups: 1
Number of Reclaim Unit Handles: 3
Number of Namespaces Supported: 2
Reclaim Unit Nominal Size: 13079937024
Estimated Reclaim Unit Time Limit: 0
Reclaim Unit Handle List:
  [0]: Initially Isolated
  [1]: Initially Isolated
  [2]: Persistently Isolated
"""
USAGE = """\
Reclaim Unit Handle 0 Attributes: 0x1 (Host Specified)
Reclaim Unit Handle 1 Attributes: 0 (Unused)
Reclaim Unit Handle 2 Attributes: 0x2 (Controller Specified)
"""
STATS = """\
Host Bytes with Metadata Written (HBMW): 12288
Media Bytes with Metadata Written (MBMW): 340282366920938463463374607431768211455
Media Bytes Erased (MBE): 0
"""
EVENTS = """\
Event[0]
  Event Type: 0x80 (Media Reallocated)
  Event Timestamp: 1500 (Thu Jan  1 00:00:01 1970 UTC)
  Placement Identifier (PID): 0x2
  Namespace Identifier (NSID): 1
  Number of LBAs Moved (NLBAM): 64
  Logical Block Address (LBA): 0x1f40
  Reclaim Group Identifier: 0
  Reclaim Unit Handle Identifier 2

Event[1]
  Event Type: 0x3 (Invalid Placement Identifier)
  Event Timestamp: 86400000 (Fri Jan  2 00:00:00 1970 UTC)
  Placement Identifier (PID): 0x8002
  Namespace Identifier (NSID): 1

Event[2]
  Event Type: 0 (Reclaim Unit Not Fully Written)
  Event Timestamp: 0 (Thu Jan  1 00:00:00 1970 UTC)

"""
STATUS = """\
Placement Identifier 0; Reclaim Unit Handle Identifier 1
  Estimated Active Reclaim Unit Time Remaining (EARUTR): 0
  Reclaim Unit Available Media Writes (RUAMW): 3193344

Placement Identifier 1; Reclaim Unit Handle Identifier 2
  Estimated Active Reclaim Unit Time Remaining (EARUTR): 0
  Reclaim Unit Available Media Writes (RUAMW): 1197504

"""
SAMPLES = {"configs": CONFIGS, "usage": USAGE, "stats": STATS, "events": EVENTS, "status": STATUS}

_KEYS = {
    "FDP Attributes": "fdpa",
    "Vendor Specific Size": "vss",
    "Number of Reclaim Groups": "nrg",
    "Number of Reclaim Unit Handles": "nruh",
    "Number of Namespaces Supported": "nnss",
    "Reclaim Unit Nominal Size": "runs",
    "Estimated Reclaim Unit Time Limit": "erutl",
    "Host Bytes with Metadata Written (HBMW)": "hbmw",
    "Media Bytes with Metadata Written (MBMW)": "mbmw",
    "Media Bytes Erased (MBE)": "mbe",
    "Event Type": "type",
    "Event Timestamp": "timestamp",
    "Placement Identifier (PID)": "pid",
    "Namespace Identifier (NSID)": "nsid",
    "Number of LBAs Moved (NLBAM)": "nlbam",
    "Logical Block Address (LBA)": "lba",
    "Reclaim Group Identifier": "rgid",
    "Estimated Active Reclaim Unit Time Remaining (EARUTR)": "earutr",
    "Reclaim Unit Available Media Writes (RUAMW)": "ruamw",
}
#: The flag of an event that says that a field is valid.
_FLAGS = {"pid": 1, "nsid": 2, "rgid": 4}


def parsed(name: str, text: str) -> dict[str, Any]:
    """A log from nvme-cli's text, with the names of its JSON. Raises for a line that is not of the layout."""
    assert text.endswith("\n")
    found: list[dict[str, Any]] = []
    handles: list[dict[str, int]] = []
    for line in text.splitlines():
        if match := re.fullmatch(r"  \[(\d+)\]: (Initially|Persistently) Isolated", line):
            assert int(match[1]) == len(handles)
            handles.append({"ruht": 1 if match[2] == "Initially" else 2})
        elif match := re.fullmatch(r"Reclaim Unit Handle (\d+) Attributes: (0|0x[0-9a-f]+) \(([A-Za-z ]+)\)", line):
            assert int(match[1]) == len(found)
            assert match[3] == ["Unused", "Host Specified", "Controller Specified"][int(match[2], 0)]
            found.append({"ruha": int(match[2], 0)})
        elif match := re.fullmatch(r"Placement Identifier (\d+); Reclaim Unit Handle Identifier (\d+)", line):
            found.append({"pid": int(match[1]), "ruhid": int(match[2])})
        elif match := re.fullmatch(r"Event\[(\d+)\]", line):
            assert int(match[1]) == len(found)
            found.append({"fdpef": 0})
        elif match := re.fullmatch(r"  Reclaim Unit Handle Identifier (\d+)", line):
            found[-1]["ruhid"] = int(match[1])
        elif match := re.fullmatch(r"( *)([A-Z][^:]+): (0x[0-9a-f]+|\d+)(?: \((.+)\))?", line):
            key = _KEYS[match[2]]
            if not match[1] and not found:
                found.append({})
            assert len(match[1]) == (2 if name in ("events", "status") else 0)
            found[-1][key] = int(match[3], 0)
            if key in _FLAGS and name == "events":
                found[-1]["fdpef"] |= _FLAGS[key]
            assert (match[4] is not None) == (key in ("type", "timestamp"))
            if key == "type":
                assert match[4] == fdp.EVENTS[found[-1]["type"]]
        else:
            assert line in ("", "Reclaim Unit Handle List:"), line
    if name == "configs":
        return {"configs": [{**found[0], "ruhs": handles}]}
    if name == "stats":
        return found[0]
    lists = {"usage": ("nruh", "ruhus"), "events": ("n", "events"), "status": ("nruhsd", "ruhss")}
    number, of = lists[name]
    return {number: len(found), of: found}


def printed(name: str, log: dict[str, Any], **how: bool) -> str:
    return "".join(f"{line}\n" for line in fdp.lines(name, {name: log}, **how))


@pytest.mark.parametrize("name", fdp.LOGS)
def test_the_text_of_a_log_is_that_of_nvme_cli(name):
    """A sample of nvme-cli, parsed and printed again, has the same characters."""
    log = parsed(name, SAMPLES[name])
    assert printed(name, log) == SAMPLES[name]


def test_the_parser_reads_what_the_samples_state():
    assert parsed("stats", STATS) == {"hbmw": 12288, "mbmw": (1 << 128) - 1, "mbe": 0}
    events = parsed("events", EVENTS)["events"]
    assert [(event["type"], event["fdpef"]) for event in events] == [(0x80, 7), (3, 3), (0, 0)]
    assert events[0]["nlbam"] == 64 and events[0]["lba"] == 8000 and events[0]["ruhid"] == 2
    assert parsed("status", STATUS)["ruhss"][1] == {"pid": 1, "ruhid": 2, "earutr": 0, "ruamw": 1197504}
    assert parsed("configs", CONFIGS)["configs"][0]["ruhs"] == [{"ruht": 1}, {"ruht": 1}, {"ruht": 2}]
    with pytest.raises(AssertionError):
        parsed("usage", "Reclaim Unit Handle 0 Attributes: 0x0 (Unused)\nsomething else\n")
