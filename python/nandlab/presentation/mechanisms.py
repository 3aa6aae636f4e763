"""The sections on the drive's mechanisms: read levels, mapping cache, write cache, copybacks, refresh."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

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
    SlcSummary,
)
from nandlab.units import count, duration, number, part, share, size


class Levels(msgspec.Struct, frozen=True):
    """Page reads by the read level that decoded them."""

    #: `all reads` or `host reads`.
    name: str
    #: Page reads decoded by each level, from level 1.
    counts: tuple[int, ...]
    uncorrectable: int
    retries: int
    #: Page reads whose first try was above level 1; `None` for all reads, where they are not counted.
    soft_starts: int | None

    @property
    def total(self) -> int:
        """All page reads."""
        return sum(self.counts) + self.uncorrectable


def levels(ecc: EccSummary) -> list[Levels]:
    """The levels of all page reads and of host reads, for a drive with counted read levels and at least one read."""
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
    # Unused levels at the end are left out.
    last = max((level for of in rows for level, reads in enumerate(of.counts, 1) if reads), default=1)
    is_lost = any(of.uncorrectable for of in rows)
    is_soft = any(of.soft_starts is not None for of in rows)
    heads = ["read level", *map(str, range(1, last + 1))]
    heads += [*(["lost"] if is_lost else []), "retries per read", *(["start above 1"] if is_soft else [])]
    short = []
    for of in rows:
        cells = [part(reads, of.total) if reads else "-" for reads in of.counts[:last]]
        cells += [part(of.uncorrectable, of.total)] if is_lost else []
        cells += [number(of.retries / of.total)]
        cells += ["" if of.soft_starts is None else part(of.soft_starts, of.total)] if is_soft else []
        short.append(Row(of.name, tuple(cells)))
    facts: list[tuple[str, Callable[[Levels], str]]] = [
        ("page reads", lambda of: count(of.total)),
        ("retries", lambda of: count(of.retries)),
        ("retries per read", lambda of: number(of.retries / of.total)),
        ("not decoded by any level", lambda of: count(of.uncorrectable)),
        ("started above level 1", lambda of: "-" if of.soft_starts is None else part(of.soft_starts, of.total)),
    ]
    table = [Row(name, tuple(value(of) for of in rows)) for name, value in facts]
    caption = "A retry senses, transfers and decodes again, one level higher."
    if len(rows) == 2:
        table.append(Row("flash time per read, µs", ("-", number(ecc.host.flash_read_us))))
        caption += " The flash time includes all tries, and no waiting."
    if ecc.decoder_wait_s:
        reads = rows[0].total
        table.append(
            Row("wait for a decoder per read, µs", (number(1e6 * ecc.decoder_wait_s / reads), "-")[: len(rows)])
        )
    whole = Table(("", *(of.name for of in rows)), tuple(table), caption)
    return Section("Read levels", Table(tuple(heads), tuple(short)), (whole,))


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
        text += f"; {count(found.write_backs)} write-backs of {number(carried)} changed entries each"
    rows = [
        Row(
            f"page {op}s of the host",
            (count(of.hits + of.misses), count(of.hits), count(of.misses), part(of.hits, of.hits + of.misses)),
            op,
        )
        for op, of in asked
    ]
    caption = "A miss reads a translation page from flash before the request continues."
    table = Table(("", "lookups", "hits", "misses", "hit ratio"), tuple(rows), caption)
    figures = (
        Figure("entries cached / at most", f"{count(found.cached)} / {count(found.entries)}"),
        Figure("evictions, of them dirty", f"{count(found.evictions)}, {count(found.dirty_evictions)}"),
        Figure("translation pages written back", count(found.write_backs)),
        Figure("changed entries per write-back", number(carried)),
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
    caption = "A read hits when all its sectors are cached, a write when its page is cached."
    table = Table(("", "hits", "misses", "hit ratio"), tuple(rows), caption)
    figures = (
        Figure("capacity, dirty budget, in pages", f"{count(found.pages)}, {count(found.budget_pages)}"),
        Figure("dirty pages: maximum, at the end", f"{count(found.dirty_pages_max)}, {count(found.dirty_pages)}"),
        Figure(
            "pages written back, of them for a flush or in idle time",
            f"{count(found.write_backs)}, {count(found.syncs)}",
        ),
        Figure("evictions of clean pages, of dirty pages", f"{count(found.evictions)}, {count(found.dirty_evictions)}"),
        Figure("writes that waited for a slot or the budget", count(found.waiting_writes)),
        Figure("reads that waited for a slot", count(found.waiting_reads)),
        Figure("updates that waited for their page's write-back", count(found.blocked_updates)),
    )
    return with_table("Write cache", (Figure("write cache", text),), table, "The host read and wrote nothing.", figures)


def slc_cache(found: SlcSummary | None) -> Section | None:
    if found is None:
        return None
    written = found.cached + found.direct
    text = f"{count(found.cached)} of {count(written)} units in SLC mode; {count(found.blocks)} superblocks folded"
    folded = found.folded
    reasons = (
        ("idle time", folded.idle),
        ("cache filled above the watermark, or a write waited", folded.full),
        ("space was short", folded.space),
    )
    total = sum(pages for _, pages in reasons)
    rows = [Row(name, (count(pages), part(pages, total))) for name, pages in reasons] if total else []
    table = Table(
        ("reason to fold", "valid units", "share"), tuple(rows), "A fold moves the valid units of a superblock."
    )
    figures = (
        Figure("units written in SLC mode, without it", f"{count(found.cached)}, {count(found.direct)}"),
        Figure(
            "superblocks in SLC mode at the end, and up to which further ones open",
            f"{count(found.slc_blocks)}, {count(found.slc_blocks_max)}",
        ),
        Figure("valid units in SLC mode at the end", count(found.valid_pages)),
        Figure("wear by cycles in SLC mode, by others", f"{share(found.wear.slc)}, {share(found.wear.native)}"),
    )
    return with_table("SLC cache", (Figure("SLC cache", text),), table, "No block was folded.", figures)


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
    caption = "A copyback moves a page within its plane with its bit errors; a move off-chip corrects the data."
    table = Table(("copyback in a row", "pages", "share"), tuple(rows), caption)
    figures = (
        Figure("victims copied back", count(found.victims_copied_back)),
        Figure("victims that the policy moved off-chip", count(found.victims_off_chip)),
        Figure("victims moved off-chip because free blocks were few", count(found.victims_without_room)),
        Figure("pages moved off-chip because of their limit", count(found.refused)),
        Figure("RAM of copyback counters, one per block", size(found.counter_bytes_by_block)),
        Figure("RAM of copyback counters, if one per page", size(found.counter_bytes_by_page)),
    )
    return with_table("Migration", (Figure("copybacks", text),), table, "No page was copied back.", figures)


def refresh(found: RefreshSummary | None) -> Section | None:
    if found is None:
        return None
    text = f"{count(found.blocks)} blocks, {count(found.pages)} pages"
    figures = [
        Figure("blocks refreshed, valid pages in them", f"{count(found.blocks)}, {count(found.pages)}"),
        Figure("mean time to refresh a block", duration(found.block_mean_s) if found.blocks else "-"),
        Figure("longest overdue, on the scaled clock", duration(found.overdue_max_s)),
        Figure("blocks refreshed later than their grace allows", count(found.late_blocks)),
        Figure("blocks overdue by more than their grace at the end", count(found.overdue_blocks)),
        Figure(
            "blocks that came due, relative to blocks refreshed in that time",
            "-" if found.load is None else f"{found.load:.2g} x",
        ),
        Figure("refreshes before host writes, because their grace was running out", count(found.promoted)),
    ]
    late = f"; {count(found.late_blocks)} blocks were late" if found.late_blocks else ""
    partial = found.partial
    if partial is None:
        return Section("Refresh", (Figure("refresh", text + late),), figures=tuple(figures))
    text += f", {count(partial.pages)} of them partially, to {count(partial.combination_pages)} combination pages"
    fates = [
        ("susceptible bits moved, page kept in place", partial.pages),
        ("hot page: written elsewhere", partial.hot_pages),
        ("too many susceptible bits: written elsewhere", partial.too_susceptible_pages),
        ("no room in the VSM: written elsewhere", partial.pages_without_room),
    ]
    rest = found.pages - sum(pages for _, pages in fates)
    fates.append(("block refreshed conventionally, or page written meanwhile", max(rest, 0)))
    rows = [Row(name, (count(pages), part(pages, found.pages))) for name, pages in fates] if found.pages else []
    caption = "A partially refreshed page is read together with its part of a combination page."
    table = Table(("valid pages of due blocks", "pages", "share"), tuple(rows), caption)
    figures += [
        Figure("blocks refreshed partially", count(partial.blocks)),
        Figure("blocks refreshed conventionally because free blocks were few", count(partial.blocks_while_off)),
        Figure("share of the time with enough free blocks", share(partial.on_share)),
        Figure("susceptible data", size(partial.susceptible_bytes)),
        Figure(
            "combination pages, padding in them", f"{count(partial.combination_pages)}, {size(partial.padding_bytes)}"
        ),
        Figure("host reads of a base and a combination page", count(partial.host_preads)),
        Figure("of these, to complete partly written pages", count(partial.merge_preads)),
        Figure("pages merged by GC, wear levelling or refresh", count(partial.promoted_pages)),
        Figure(
            "linked pages: at the end, maximum", f"{count(partial.linked_pages)}, {count(partial.linked_pages_max)}"
        ),
        Figure("peak RAM: links, VSM", f"{size(partial.mapping_bytes)}, {size(partial.vsm_bytes)}"),
    ]
    short = (Figure("refresh", text + late),)
    return with_table("Refresh", short, table, "No block with data was due.", tuple(figures))
