"""The logs of a drive with placement handles (NVMe FDP), as nvme-cli prints them.

`fdp.json` has the logs with the names that `nvme fdp ... -o json` gives to their fields; `lines` prints one of them as
`nvme fdp configs`, `usage`, `stats`, `events` and `status` do, in the layout of nvme-cli 2.5 to 2.13, so that scripts
that read the output of nvme-cli read that of a simulated drive. A logical block has 512 bytes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

#: The logs, by the names of nvme-cli's commands.
LOGS = {
    "configs": "The configuration: reclaim groups, handles, their isolation, the size of a reclaim unit.",
    "usage": "Which handles are in use.",
    "stats": "Bytes written by the host, written to the media, and erased.",
    "events": "What happened to reclaim units and handles: the controller's events, or those of the host.",
    "status": "The space left in the reclaim unit of each placement identifier.",
}
#: The events of the NVMe base specification 2.1, figure 289, by their type.
EVENTS = {
    0x00: "Reclaim Unit Not Fully Written",
    0x01: "Reclaim Unit Active Time Limit Exceeded",
    0x02: "Controller Level Reset Modified Reclaim Unit Handles",
    0x03: "Invalid Placement Identifier",
    0x80: "Media Reallocated",
    0x81: "Implicitly Modified Reclaim Unit Handle",
}
#: In the flags of an event: the field with the placement identifier, the namespace, the location is valid.
_IDENTIFIER, _NAMESPACE, _LOCATION = 1, 2, 4
_ISOLATION = {1: "Initially Isolated", 2: "Persistently Isolated"}
_ATTRIBUTES = {0: "Unused", 1: "Host Specified", 2: "Controller Specified"}

Log = Mapping[str, Any]


def lines(name: str, logs: Log, *, host_events: bool = False) -> Iterator[str]:
    """The lines of the log `name` of `fdp.json`; of the events those of the controller, or with `host_events` those of
    the host."""
    log = logs["host_events" if name == "events" and host_events else name]
    return {"configs": _configs, "usage": _usage, "stats": _stats, "events": _events, "status": _status}[name](log)


def _configs(log: Log) -> Iterator[str]:
    for config in log["configs"]:
        yield f"FDP Attributes: {_hex(config['fdpa'])}"
        yield f"Vendor Specific Size: {config['vss']}"
        yield f"Number of Reclaim Groups: {config['nrg']}"
        yield f"Number of Reclaim Unit Handles: {config['nruh']}"
        yield f"Number of Namespaces Supported: {config['nnss']}"
        yield f"Reclaim Unit Nominal Size: {config['runs']}"
        yield f"Estimated Reclaim Unit Time Limit: {config['erutl']}"
        yield "Reclaim Unit Handle List:"
        for number, handle in enumerate(config["ruhs"]):
            yield f"  [{number}]: {_ISOLATION[handle['ruht']]}"


def _usage(log: Log) -> Iterator[str]:
    for number, handle in enumerate(log["ruhus"]):
        attributes = handle["ruha"]
        yield f"Reclaim Unit Handle {number} Attributes: {_hex(attributes)} ({_ATTRIBUTES.get(attributes, 'Unknown')})"


def _stats(log: Log) -> Iterator[str]:
    yield f"Host Bytes with Metadata Written (HBMW): {log['hbmw']}"
    yield f"Media Bytes with Metadata Written (MBMW): {log['mbmw']}"
    yield f"Media Bytes Erased (MBE): {log['mbe']}"


def _events(log: Log) -> Iterator[str]:
    for number, event in enumerate(log["events"]):
        at_ms, flags = event["timestamp"], event["fdpef"]
        # The clock of the drive begins with the epoch.
        date = time.strftime("%c UTC", time.gmtime(at_ms // 1000))
        yield f"Event[{number}]"
        yield f"  Event Type: {_hex(event['type'])} ({EVENTS.get(event['type'], 'Unknown')})"
        yield f"  Event Timestamp: {at_ms} ({date})"
        if flags & _IDENTIFIER:
            yield f"  Placement Identifier (PID): {_hex(event['pid'])}"
        if flags & _NAMESPACE:
            yield f"  Namespace Identifier (NSID): {event['nsid']}"
        if "nlbam" in event:
            yield f"  Number of LBAs Moved (NLBAM): {event['nlbam']}"
        if "lba" in event:
            yield f"  Logical Block Address (LBA): {_hex(event['lba'])}"
        if flags & _LOCATION:
            yield f"  Reclaim Group Identifier: {event['rgid']}"
            yield f"  Reclaim Unit Handle Identifier {event['ruhid']}"
        yield ""


def _status(log: Log) -> Iterator[str]:
    for of in log["ruhss"]:
        yield f"Placement Identifier {of['pid']}; Reclaim Unit Handle Identifier {of['ruhid']}"
        yield f"  Estimated Active Reclaim Unit Time Remaining (EARUTR): {of['earutr']}"
        yield f"  Reclaim Unit Available Media Writes (RUAMW): {of['ruamw']}"
        yield ""


def _hex(number: int) -> str:
    """A number as `%#x` of C prints it."""
    return f"{number:#x}" if number else "0"
