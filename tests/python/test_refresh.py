"""Refresh in the summary, on the screen and in the report."""

import io
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "partial-refresh.toml"


def shown(policy, tmp_path):
    import nandlab
    from nandlab.console import Console
    from nandlab.screen import show_run

    result = nandlab.run(
        EXAMPLE, sets={"refresh.policy": policy, "workload.synthetic.requests": 60_000, "gc.victim": "greedy"}
    )
    screen = io.StringIO()
    console = Console(screen, width=200)
    show_run(result, console)
    return result, screen.getvalue(), nandlab.report(result, tmp_path / "r.html").read_text()


def test_partial_refresh_is_counted_and_shown(tmp_path):
    result, screen, page = shown({"partial": {"min_free_blocks": 0.1}}, tmp_path)
    refresh = result.summary.refresh
    partial = refresh.partial
    assert refresh.late_blocks == 0
    outcomes = ("pages", "hot_pages", "too_susceptible_pages", "pages_without_room")
    assert 0 < partial.pages <= sum(partial[outcome] for outcome in outcomes) <= refresh.pages
    # The susceptible data that is not in combination pages is in the VSM of at most 4 pages.
    page_bytes = 16 * 1024
    held = partial.combination_pages * page_bytes - partial.padding_bytes
    waiting = partial.susceptible_bytes - held
    assert 0 <= waiting <= 4 * page_bytes
    # Refresh programs combination pages, and the pages that are written as a whole.
    whole = result.summary.flash.program.refresh - partial.combination_pages
    assert 0 < whole <= refresh.pages - partial.pages
    assert partial.linked_pages <= partial.linked_pages_max <= partial.pages
    assert partial.mapping_bytes * 8 >= 52 * partial.linked_pages_max
    assert 0 < partial.vsm_bytes <= 4 * page_bytes
    assert f"{refresh['blocks']:,} blocks" in screen and "combination pages" in screen
    assert ">Refresh</h2>" in page and "susceptible bits moved, page kept in place" in page


def test_conventional_and_no_refresh_are_counted_and_shown(tmp_path):
    result, screen, page = shown("fcr", tmp_path)
    refresh = result.summary.refresh
    assert refresh.partial is None and refresh.blocks > 0
    assert result.summary.flash.program.refresh <= refresh.pages
    assert f"refresh  {refresh['blocks']:,} blocks" in screen and ">Refresh</h2>" in page
    result, screen, page = shown("none", tmp_path)
    assert result.summary.refresh is None
    assert "refresh  " not in screen and ">Refresh</h2>" not in page
