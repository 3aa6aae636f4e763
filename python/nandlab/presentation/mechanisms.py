"""What a run says of the drive's mechanisms: read levels, mapping cache, write cache, copybacks, refresh."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nandlab.presentation.model import Figure, Row, Section, Table, with_table
from nandlab.result_types import (
    CacheSummary,
    EccSummary,
    HostEccSummary,
    MapRead,
    MapSummary,
    MapWrite,
    MigrationSummary,
    RefreshSummary,
)
from nandlab.units import count, duration, number, part, share, size


@dataclass(frozen=True)
class Levels:
    """Page reads by the read level that decoded them."""

    #: Whose.
    name: str
    #: By level, from level 1.
    counts: tuple[int, ...]
    uncorrectable: int
    retries: int
    #: First tries above level 1; `None` where that was not counted.
    soft_starts: int | None

    @property
    def total(self) -> int:
        """All page reads."""
        return sum(self.counts) + self.uncorrectable


def levels(ecc: EccSummary) -> list[Levels]:
    """All page reads and those of the host, when the drive has several read levels and read something."""
    if len(ecc.levels) < 2:
        return []
    host: HostEccSummary = ecc.host
    found = [
        Levels("all reads", tuple(ecc.levels.values()), ecc.uncorrectable, ecc.retries, None),
        Levels("host reads", tuple(host.levels.values()), host.uncorrectable, host.retries, host.soft_starts),
    ]
    return [of for of in found if of.total]


def read_levels(ecc: EccSummary) -> Section | None:
    rows = levels(ecc)
    if not rows:
        return None
    # Levels that nothing needed are left out at the end.
    last = max((level for of in rows for level, reads in enumerate(of.counts, 1) if reads), default=1)
    is_lost = any(of.uncorrectable for of in rows)
    is_soft = any(of.soft_starts is not None for of in rows)
    heads = ["read level", *map(str, range(1, last + 1))]
    heads += [*(["lost"] if is_lost else []), "retries a read", *(["start above 1"] if is_soft else [])]
    glance = []
    for of in rows:
        cells = [part(reads, of.total) if reads else "-" for reads in of.counts[:last]]
        cells += [part(of.uncorrectable, of.total)] if is_lost else []
        cells += [number(of.retries / of.total)]
        cells += ["" if of.soft_starts is None else part(of.soft_starts, of.total)] if is_soft else []
        glance.append(Row(of.name, tuple(cells)))
    facts: list[tuple[str, Callable[[Levels], str]]] = [
        ("page reads", lambda of: count(of.total)),
        ("retries", lambda of: count(of.retries)),
        ("retries a read", lambda of: number(of.retries / of.total)),
        ("not decoded by any level", lambda of: count(of.uncorrectable)),
        ("started above level 1", lambda of: "-" if of.soft_starts is None else part(of.soft_starts, of.total)),
    ]
    table = [Row(name, tuple(value(of) for of in rows)) for name, value in facts]
    caption = "A retry senses, transfers and decodes again, one level higher."
    if len(rows) == 2:
        table.append(Row("flash time a read, us", ("-", number(ecc.host.flash_read_us))))
        caption += " The flash time is that of all tries, without waiting."
    whole = Table(("", *(of.name for of in rows)), tuple(table), caption)
    return Section("Read levels", Table(tuple(heads), tuple(glance)), (whole,))


def _hits(op: str, hits: int, misses: int) -> str:
    return f"{part(hits, hits + misses)} of {op}s"


def mapping(found: MapSummary | None) -> Section | None:
    if found is None:
        return None
    asked: list[tuple[str, MapRead | MapWrite]] = [("read", found.read), ("write", found.write)]
    asked = [(op, of) for op, of in asked if of.hits + of.misses]
    hits = ", ".join(_hits(op, of.hits, of.misses) for op, of in asked) or "not used"
    text = f"{count(found.entries)} entries; hits: {hits}"
    carried = None
    if found.write_backs:
        # Changed entries that were evicted, and those still cached.
        carried = (found.dirty_evictions + found.written_entries) / found.write_backs
        text += f"; {count(found.write_backs)} write-backs of {number(carried)} changed entries"
    rows = [
        Row(
            f"page {op}s of the host",
            (count(of.hits + of.misses), count(of.hits), count(of.misses), part(of.hits, of.hits + of.misses)),
            op,
        )
        for op, of in asked
    ]
    caption = "A miss reads a translation page from flash before the request can go on."
    table = Table(("", "lookups", "hits", "misses", "hit ratio"), tuple(rows), caption)
    figures = (
        Figure("entries cached / at most", f"{count(found.cached)} / {count(found.entries)}"),
        Figure("evictions, of them dirty", f"{count(found.evictions)}, {count(found.dirty_evictions)}"),
        Figure("translation pages written back", count(found.write_backs)),
        Figure("changed entries a write-back", number(carried)),
        Figure("misses that waited for write-backs", count(found.waiting_misses)),
    )
    return with_table(
        "Mapping cache", (Figure("mapping cache", text),), table, "The host read and wrote nothing.", figures
    )


def write_cache(found: CacheSummary) -> Section | None:
    if not found.pages:
        return None
    by_op = (("read", found.read_hits, found.read_misses), ("write", found.write_hits, found.write_misses))
    asked = [(op, hits, misses) for op, hits, misses in by_op if hits + misses]
    text = (
        f"{count(found.pages)} pages; hits: {', '.join(_hits(*of) for of in asked) or 'not used'}; "
        f"{count(found.write_backs)} written back, {count(found.dirty_pages_max)} dirty at most"
    )
    rows = [
        Row(f"page {op}s", (count(hits), count(misses), part(hits, hits + misses)), op) for op, hits, misses in asked
    ]
    caption = "A read hits when all its sectors are there, a write when its page is."
    table = Table(("", "hits", "misses", "hit ratio"), tuple(rows), caption)
    figures = (
        Figure("pages that fit, that may be dirty", f"{count(found.pages)}, {count(found.budget_pages)}"),
        Figure("dirty pages at most, at the end", f"{count(found.dirty_pages_max)}, {count(found.dirty_pages)}"),
        Figure(
            "pages written back, of them for a flush or in idle time",
            f"{count(found.write_backs)}, {count(found.syncs)}",
        ),
        Figure("evictions of clean, of dirty pages", f"{count(found.evictions)}, {count(found.dirty_evictions)}"),
        Figure("writes that waited for room", count(found.waiting_writes)),
        Figure("updates that waited for their page's write-back", count(found.blocked_updates)),
    )
    return with_table("Write cache", (Figure("write cache", text),), table, "The host read and wrote nothing.", figures)


def migration(found: MigrationSummary | None) -> Section | None:
    if found is None:
        return None
    longest = max((number_ for number_, pages in found.by_count.items() if pages), default=0)
    text = (
        f"{count(found.copybacks)} pages of {count(found.victims_copied_back)} victims, "
        f"{longest} in a row at most; refused by their limit: {count(found.refused)}"
    )
    rows = [
        Row(f"number {number_}", (count(pages), part(pages, found.copybacks)))
        for number_, pages in found.by_count.items()
    ]
    rows = [*rows, Row("all", (count(found.copybacks), ""))] if found.copybacks else []
    caption = "A copyback moves a page inside its plane, errors and all; off-chip it is corrected, and begins anew."
    table = Table(("copyback in a row", "pages", "share"), tuple(rows), caption)
    figures = (
        Figure("victims copied back", count(found.victims_copied_back)),
        Figure("victims that the policy moved off-chip", count(found.victims_off_chip)),
        Figure("victims moved off-chip for want of free blocks", count(found.victims_without_room)),
        Figure("pages that their limit sent off-chip", count(found.refused)),
        Figure("counters, one a block", size(found.counter_bytes_by_block)),
        Figure("counters, were there one a page", size(found.counter_bytes_by_page)),
    )
    return with_table("Migration", (Figure("copybacks", text),), table, "No page was copied back.", figures)


def refresh(found: RefreshSummary | None) -> Section | None:
    if found is None:
        return None
    text = f"{count(found.blocks)} blocks, {count(found.pages)} pages"
    figures = [
        Figure("blocks refreshed, valid pages in them", f"{count(found.blocks)}, {count(found.pages)}"),
        Figure("a block takes, on average", duration(found.block_mean_s) if found.blocks else "-"),
        Figure("longest overdue, on the scaled clock", duration(found.overdue_max_s)),
        Figure("blocks refreshed later than their grace", count(found.late_blocks)),
        Figure("blocks overdue by more than their grace at the end", count(found.overdue_blocks)),
        Figure(
            "blocks come due, to blocks refreshed in that time", "-" if found.load is None else f"{found.load:.2g} x"
        ),
        Figure("put before host writes, their grace running out", count(found.promoted)),
    ]
    late = f"; {count(found.late_blocks)} blocks were late" if found.late_blocks else ""
    partial = found.partial
    if partial is None:
        return Section("Refresh", (Figure("refresh", text + late),), figures=tuple(figures))
    text += f", {count(partial.pages)} of them partially, to {count(partial.combination_pages)} combination pages"
    fates = [
        ("susceptible bits moved, page stays", partial.pages),
        ("read often: written elsewhere", partial.hot_pages),
        ("too many susceptible bits: written elsewhere", partial.too_susceptible_pages),
        ("no room in the VSM: written elsewhere", partial.pages_without_room),
    ]
    rest = found.pages - sum(pages for _, pages in fates)
    fates.append(("their block was not refreshed partially, or they were written meanwhile", max(rest, 0)))
    rows = [Row(name, (count(pages), part(pages, found.pages))) for name, pages in fates] if found.pages else []
    caption = "A partially refreshed page is read together with its part of a combination page."
    table = Table(("valid pages of due blocks", "pages", "share"), tuple(rows), caption)
    figures += [
        Figure("blocks refreshed partially", count(partial.blocks)),
        Figure("not, because free blocks were few", count(partial.blocks_while_off)),
        Figure("share of the time with enough free blocks", share(partial.on_share)),
        Figure("susceptible data", size(partial.susceptible_bytes)),
        Figure(
            "combination pages, of that empty", f"{count(partial.combination_pages)}, {size(partial.padding_bytes)}"
        ),
        Figure("host reads of two pages", count(partial.host_preads)),
        Figure("pages made whole again by GC or refresh", count(partial.promoted_pages)),
        Figure("pages linked at the end, at most", f"{count(partial.linked_pages)}, {count(partial.linked_pages_max)}"),
        Figure("RAM of links, of the VSM, at most", f"{size(partial.mapping_bytes)}, {size(partial.vsm_bytes)}"),
    ]
    glance = (Figure("refresh", text + late),)
    return with_table("Refresh", glance, table, "No block with data was due.", tuple(figures))
