"""The presentation of placement handles (NVMe FDP)."""

from __future__ import annotations

from nandlab.presentation.model import Figure, Part, Row, Section, Table, counted
from nandlab.result_types import HandleSummary, PlacementSummary, Summary
from nandlab.units import count, number, size

#: The events of the summary, in words.
_EVENTS = {
    "unit_not_full": "reclaim unit left by the host before it was full",
    "time_limit": "reclaim unit open for too long",
    "controller_reset": "handle changed by a power loss",
    "invalid_identifier": "write with an unknown identifier",
    "media_reallocated": "move of data between reclaim units",
    "handle_modified": "handle changed by the drive",
}


def placement(summary: Summary, spec_toml: str) -> Section | None:
    """The section of placement handles; `None` for a drive without."""
    found = summary.placement
    if found is None:
        return None
    clients = _clients(spec_toml)
    has_groups = any(of.group for of in found.handles.values())
    heads = ["handle", "written", "copied", "WAF", "erases", "of copies", "p50, µs", "p99, µs"]
    full = ["handle", "isolation", *heads[1:5], "padding", *heads[5:], *(["clients"] if clients else [])]
    short: list[Row] = []
    rows: list[Row] = []
    for identifier, of in found.handles.items():
        label = _label(identifier, of, has_groups)
        written, copied, waf = size(of.host_bytes), size(of.copied_bytes), number(of.waf)
        share = Part(f"{of.copied_share:.1%}", of.copied_share)
        p50, p99 = _latencies(summary, identifier)
        if of.host_bytes or of.copied_bytes:
            short.append(Row(label, (written, copied, waf, count(of.erases), share.text, p50, p99)))
        cells: list[str | Part] = [
            of.isolation,
            written,
            copied,
            waf,
            count(of.erases),
            size(of.padding_bytes),
            share,
            p50,
            p99,
        ]
        rows.append(Row(label, (*cells, *([", ".join(clients.get(identifier, ())) or "-"] if clients else []))))
    mixed = {group: of for group, of in found.mixed.items() if of.copied_bytes or of.erases or of.padding_bytes}
    for group, by_gc in mixed.items():
        label = f"moved by GC, group {group}" if has_groups else "moved by GC"
        erases, copied, padding = count(by_gc.erases), size(by_gc.copied_bytes), size(by_gc.padding_bytes)
        # The handles' own rows have these copies.
        short.append(Row(label, ("-", "-", "-", erases, "-", "-", "-")))
        dashes = ("-",) * (4 if clients else 3)
        rows.append(Row(label, ("-", "-", copied, "-", erases, padding, *dashes)))
    groups = " (reclaim group/handle)" if has_groups else ""
    caption = (
        f"By placement identifier{groups}. Written: programmed for the host; copied: programmed again because GC or "
        "another mechanism moved the data; WAF: both over written; of copies: the share of all copies of the drive. "
        "Erases are superblocks with data of this handle alone. Latencies are those of writes."
    )
    if mixed:
        caption += (
            " Moved by GC: superblocks with what GC has moved of the initially isolated handles; copies out of "
            "them count above too."
        )
    figures = (
        Figure("host bytes written (HBMW)", size(found.hbmw)),
        Figure("media bytes written (MBMW)", size(found.mbmw)),
        Figure("MBMW / HBMW", number(found.waf)),
        Figure("media bytes erased (MBE)", size(found.mbe)),
        Figure("padding", size(found.padding_bytes)),
        Figure("translation pages", size(found.map_bytes)),
        *(Figure(f"events: {_EVENTS[name]}", count(value)) for name, value in _counts(found).items() if value),
    )
    table = Table(tuple(full), tuple(rows), caption)
    # On the screen a drive whose handles nobody has used is its headline alone.
    at_a_glance = Table(tuple(heads), tuple(short)) if short else ()
    return Section("Placement handles", at_a_glance, (table,), figures)


def invalid(found: PlacementSummary) -> str:
    """The failure of writes with unknown identifiers; empty without such writes."""
    writes = found.events.invalid_identifier
    return f"{counted(writes, 'write')} with an unknown placement, written to placement 0" if writes else ""


def _counts(found: PlacementSummary) -> dict[str, int]:
    return {name: value for name, value in found.events.items() if isinstance(value, int)}


def _label(identifier: int, of: HandleSummary, has_groups: bool) -> str:
    return f"{identifier} ({of.group}/{of.handle})" if has_groups else str(of.handle)


def _latencies(summary: Summary, identifier: int) -> tuple[str, str]:
    """p50 and p99 of the writes with an identifier."""
    if summary.by_tag is not None:
        of = summary.by_tag.placements.get(identifier)
        writes, latency = (0, None) if of is None else (of.host.write.count, of.latency_us.write)
    else:
        # All requests have identifier 0.
        writes, latency = (0 if identifier else summary.host.write.count), summary.latency_us.write
    return (number(latency.p50), number(latency.p99)) if writes and latency is not None else ("-", "-")


def _clients(spec_toml: str) -> dict[int, list[str]]:
    """The names of the clients that write with each identifier; none if the address of a write decides."""
    import tomllib

    spec = tomllib.loads(spec_toml)
    found: dict[int, list[str]] = {}
    if spec.get("placement", {}).get("ranges"):
        return found
    for client in spec.get("workload", {}).get("clients", ()):
        found.setdefault(client.get("placement", 0), []).append(client["name"])
    return found
