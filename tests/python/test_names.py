"""No escape sequence of a name reaches the terminal."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import nandlab
import pytest
from conftest import SPEC
from nandlab import cli
from nandlab.console import Console, Table, escape
from nandlab.errors import shown, visible, visible_data
from nandlab.progress import rich_console
from study_lab import BASE, STUDY

#: Sets the title of the window, clears the screen, turns the text around, and begins a sequence with a C1 code.
HOSTILE = "a\x1b]0;owned\x07\x1b[2J\u202eb\x9b31mc\x7f"
#: The sequences that select a style.
STYLE = re.compile(r"\x1b\[[\d;]*m")
#: The commands, with NAME for a hostile name, which some of them refuse.
COMMANDS = {
    "run": ["run", "NAME.toml", "--out", "out-NAME"],
    "run again": ["run", "NAME.toml", "--out", "NAME.toml"],
    "run json": ["run", "NAME.toml", "--out", "out-NAME", "--json"],
    "life": ["life", "NAME.toml", "--out", "life-NAME", "--windows", "2", "--requests", "500"],
    "report": ["report", "out-NAME"],
    "report elsewhere": ["report", "out-NAME", "--out", "NAME.html"],
    "report of nothing": ["report", "nothing-NAME"],
    "compare": ["compare", "NAME.toml", "gc.victim=fifo", "--seeds", "2", "--out", "compare-NAME"],
    "compare folders": ["compare", "out-NAME", "NAME.toml"],
    "calibrate": ["calibrate", "NAME.toml", "measured-NAME.csv", "--out", "calibrated-NAME", "--workers", "1"],
    "calibrate nothing": ["calibrate", "NAME.toml", "nothing-NAME.csv"],
    "calibrate a key": ["calibrate", "NAME.toml", "measured-NAME.csv", "--fit", "NAME=1..2"],
    "codec": ["codec", "NAME.alist"],
    "check": ["spec", "check", "NAME.toml"],
    "show": ["spec", "show", "NAME.toml", "--set", 'workload.trace="NAME"'],
    "show json": ["spec", "show", "NAME.toml", "--json", "--set", 'workload.trace="NAME"'],
    "fit": ["spec", "fit", "NAME.toml"],
    "policy": ["spec", "check", "NAME.toml", "--set", "gc.victim=NAME"],
    "reliability": [
        "reliability",
        "NAME.toml",
        "--set",
        "reliability.rber=vth",
        "--set",
        "ecc.levels=laldpc",
        "--out",
        "rber-NAME.csv",
    ],
    "trace": ["trace", "stat", "trace-NAME.csv"],
    "trace of nothing": ["trace", "stat", "nothing-NAME"],
    "convert": ["trace", "convert", "trace-NAME.csv", "--to", "mqsim", "--out", "to-NAME"],
    "study": ["study", "study-NAME.toml", "--out", "study-NAME", "--workers", "1"],
    "study check": ["study", "study-NAME.toml", "--check"],
    "no such command": ["NAME"],
    "no such option": ["run", "--NAME"],
}


def call(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli._run(list(arguments)).status
    return status, out.getvalue(), err.getvalue()


def in_toml(text: str) -> str:
    return json.dumps(text)[1:-1].replace("\x7f", "\\u007f")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose files have hostile names."""
    here = tmp_path_factory.mktemp("names")
    wearing = SPEC.replace("op = 0.25", "op = 0.6\nendurance = 60") + "[precondition]\nused = 0.5\nvalid = 0.9\n"
    (here / f"{HOSTILE}.toml").write_text(wearing)
    (here / f"trace-{HOSTILE}.csv").write_text("0,hm,0,Write,0,4096,100\n20,hm,0,Read,0,4096,100\n")
    (here / f"measured-{HOSTILE}.csv").write_text("name,iops\n" + json.dumps(HOSTILE) + ",1000\n")
    (here / "base.toml").write_text(BASE)
    (here / f"study-{HOSTILE}.toml").write_text(STUDY)
    nandlab.run(here / f"{HOSTILE}.toml", here / f"out-{HOSTILE}")
    return here


@pytest.mark.parametrize("is_terminal", [False, True], ids=["pipe", "colours"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_escape_sequence_of_a_name_is_printed(
    here: Path, command: str, is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--out` and the file names of specs were printed as they are."""
    monkeypatch.chdir(here)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv(*(("FORCE_COLOR", "1") if is_terminal else ("NO_COLOR", "1")))
    words = [word.replace('"NAME"', f'"{in_toml(HOSTILE)}"').replace("NAME", HOSTILE) for word in COMMANDS[command]]
    status, out, err = call(*words)
    assert status in (0, 2) and (out or err), err
    for text in (out, err):
        plain = STYLE.sub("", text)
        assert [c for c in plain if not c.isprintable() and c != "\n"] == [], plain
        assert (plain != text) <= is_terminal
    if command in ("run", "life", "report", "compare", "calibrate", "show", "show json", "study", "reliability"):
        assert status == 0, err


def test_the_data_of_a_name_is_unchanged(here: Path) -> None:
    (here / "drive.toml").write_text(SPEC.split("[workload")[0])
    trace = f'workload.trace="{in_toml(HOSTILE)}"'
    status, out, err = call("spec", "show", str(here / "drive.toml"), "--set", trace, "--json")
    assert (status, err) == (0, "") and json.loads(out)["workload"]["trace"] == HOSTILE


def test_what_is_visible() -> None:
    assert visible("a\x1b[2J\n\u202eb\x9bc") == "a\\x1b[2J\n\\u202eb\\x9bc"
    assert visible("plain, \u00fc \u4e2d") == "plain, \u00fc \u4e2d"
    assert shown("a\nb") == "a\\nb"
    assert json.loads(visible_data(json.dumps(HOSTILE, ensure_ascii=False))) == HOSTILE


def test_a_console_prints_texts_in_any_part_visibly() -> None:
    out = io.StringIO()
    console = Console(out, width=200, styles=True)
    table = Table()
    table.add_column(HOSTILE, style="red")
    table.add_row(HOSTILE)
    for part in (HOSTILE, f"[red]{escape(HOSTILE)}[/]", table):
        console.print(part)
    assert "\x1b[31m" in out.getvalue(), "the console has no styles"
    assert [c for c in STYLE.sub("", out.getvalue()) if not c.isprintable() and c != "\n"] == []
    bars = rich_console()
    with bars.capture() as captured:
        bars.print(HOSTILE)
    assert [c for c in STYLE.sub("", captured.get()) if not c.isprintable() and c != "\n"] == []


def test_names_are_visible_in_python(here: Path) -> None:
    spec = repr(nandlab.load(here / f"{HOSTILE}.toml"))
    comparison = str(nandlab.compare(here / f"{HOSTILE}.toml", here / f"out-{HOSTILE}"))
    for text in (spec, comparison):
        assert [c for c in text if not c.isprintable() and c != "\n"] == []
