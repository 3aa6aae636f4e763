"""An error in a spec, a trace or on the disk gives a message that fits on a screen, and leaves no partial result.

The tests run the command. Bad study files are in test_study_file.py, wrong command lines in test_cli.py.
"""

import contextlib
import gzip
import json
import lzma
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import forks
import pytest
from study_lab import wait_for

#: Lines of the longest error message.
SCREEN_LINES = 25

SPEC = """\
seed = 1
[drive]
channels = 2
chips_per_channel = 1
planes_per_die = 1
blocks_per_plane = 64
pages_per_block = 32
page_size = "4KiB"
cell = "slc"
op = 0.25
[workload]
trace = "trace.csv"
"""

#: Number of requests in the valid trace, and number of the line in its middle that `with_line` edits.
LINES = 5000
BAD = 2500
#: A FILETIME in the week in which the MSR traces were recorded.
TICKS = 128_166_372_000_000_000


def command_line(*arguments):
    """The command line that runs nandlab with the Python of these tests."""
    return [sys.executable, "-m", "nandlab", *map(str, arguments)]


ENVIRONMENT = os.environ | {"NO_COLOR": "1", "COLUMNS": "100"}


def listing(directory):
    return sorted(str(path.relative_to(directory)) for path in Path(directory).rglob("*"))


def msr_lines(count=LINES):
    return [
        f"{TICKS + 1000 * i},hm,0,{'Write' if i % 3 else 'Read'},{i * 7919 % 3000 * 4096},4096,26" for i in range(count)
    ]


@pytest.fixture
def lab(tmp_path):
    """A directory with a valid spec and a valid trace."""
    (tmp_path / "spec.toml").write_text(SPEC)
    (tmp_path / "trace.csv").write_text("\n".join(msr_lines()) + "\n")
    return tmp_path


def run(lab, *arguments, **options):
    return forks.run(
        command_line(*arguments), cwd=lab, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, **options
    )


def refused(lab, *arguments, names, remedy, **options):
    """Asserts that the command exits with 2, prints a short error with `names` and `remedy`, and writes no file."""
    before = listing(lab)
    done = run(lab, *arguments, **options)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert 1 <= len(done.stderr.splitlines()) <= SCREEN_LINES, done.stderr
    assert max(map(len, done.stderr.splitlines())) < 400, done.stderr
    for name in (*names, remedy):
        assert name in done.stderr, done.stderr
    assert listing(lab) == before, "the refused command has written files"
    return done.stderr


def with_spec(lab, old, new):
    assert old in SPEC
    (lab / "spec.toml").write_text(SPEC.replace(old, new))


def with_line(lab, edit, name="trace.csv"):
    """Writes the trace with `edit` applied to its line in the middle."""
    lines = msr_lines()
    lines[BAD - 1] = edit(lines[BAD - 1])
    (lab / name).write_text("\n".join(lines) + "\n")


def column(number, value):
    """An edit for `with_line` that replaces a column by `value`."""

    def edit(line):
        columns = line.split(",")
        columns[number] = value
        return ",".join(columns)

    return edit


def test_the_valid_spec_and_trace_run(lab):
    done = run(lab, "run", "spec.toml")
    assert done.returncode == 0, done.stderr
    assert json.loads((lab / "out/spec/summary.json").read_text())["requests"] == LINES


# ------------------------------------------------------------------------------------------------------------ the spec


def test_unknown_key(lab):
    with_spec(lab, "channels = 2", "chanels = 2")
    refused(lab, "run", "spec.toml", names=["spec.toml:3", "drive.chanels", "unknown key"], remedy="drive.channels?")


def test_unknown_section(lab):
    with_spec(lab, "[workload]", "[worklaod]")
    refused(lab, "run", "spec.toml", names=["spec.toml:11", "worklaod"], remedy="did you mean [workload]?")


def test_unknown_key_on_the_command_line(lab):
    arguments = ("run", "spec.toml", "--set", "gc.victm=fifo")
    refused(lab, *arguments, names=["--set", "gc.victm"], remedy="gc.victim?")


def test_unknown_policy(lab):
    arguments = ("run", "spec.toml", "--set", "gc.victim=gredy")
    refused(lab, *arguments, names=["gc.victim", "gredy"], remedy="greedy")


@pytest.mark.parametrize(
    ("line", "what", "remedy"),
    [
        ('[timing]\nread = "50KiB"', "found a size", '"50us"'),
        ("[timing]\nread = 50", "without a unit", '"50us"'),
        ('[timing]\nread = "50usec"', "50usec", "units: ns, us"),
        ('[timing]\noff_chip_mb_per_s = "1GB/s"', "1GB/s", "unlimited"),
    ],
)
def test_wrong_unit(lab, line, what, remedy):
    with_spec(lab, "[workload]", f"{line}\n[workload]")
    refused(lab, "run", "spec.toml", names=["spec.toml:12", "timing.", what], remedy=remedy)


def test_wrong_unit_of_a_size(lab):
    with_spec(lab, '"4KiB"', '"4us"')
    refused(lab, "run", "spec.toml", names=["spec.toml:8", "drive.page_size", "4us"], remedy="KiB")


@pytest.mark.parametrize(
    ("link", "what", "remedy"),
    [
        ('"on"', 'host.link: unknown value "on"', 'choices: "none"'),
        (
            "3500",
            "host.link: expected one of its choices or a table, found the number 3500",
            '{ mb_per_s = 1, latency = "0us" }',
        ),
        ("{ mb_per_s = 0 }", "host.link.mb_per_s: the number 0 is out of range", "above 0 and at most 1000000000"),
        ('{ mb_per_s = "3.5GB/s" }', 'found "3.5GB/s"', "a number above 0"),
        (
            "{ mb_per_s = 3500, latency = 4 }",
            "host.link.latency: expected a time, found the number 4",
            '"50us"',
        ),
        ('{ mb_per_s = 3500, latency = "1min" }', 'host.link.latency: "1min" is out of range', "from 0ns to 10s"),
        ('{ latency = "4us" }', "host.link.mb_per_s: missing", "add mb_per_s = 1"),
    ],
)
def test_an_invalid_host_link(lab, link, what, remedy):
    with_spec(lab, "[workload]", f"[host]\nlink = {link}\n[workload]")
    refused(lab, "run", "spec.toml", names=["spec.toml:12", what], remedy=remedy)


@pytest.mark.parametrize(
    ("old", "new", "names", "remedy"),
    [
        ("channels = 2", "channels = 0", ["spec.toml:3", "drive.channels", "out of range"], "from 1 to 64"),
        ('"4KiB"', '"3000B"', ["spec.toml:8", "drive.page_size"], "the nearest is"),
        ("op = 0.25", "op = 0.001", ["spec.toml:10", "drive.op", "a plane has"], "set drive.op ="),
        ("op = 0.25", "op = -0.1", ["spec.toml:10", "drive.op", "out of range"], "a value"),
        ("blocks_per_plane = 64", "blocks_per_plane = 2", ["spec.toml:6", "a plane has"], "drive.blocks_per_plane ="),
        ("blocks_per_plane = 64", "blocks_per_plane = 64000000000", ["spec.toml:6", "out of range"], "a value from"),
        ('"slc"', '"3d-tlc"\nlayers = 64', ["spec.toml:10", "drive.layers", "has 32 pages"], "at most 32"),
    ],
)
def test_impossible_geometry(lab, old, new, names, remedy):
    with_spec(lab, old, new)
    refused(lab, "run", "spec.toml", names=names, remedy=remedy)


@pytest.mark.parametrize(
    ("line", "names", "remedy"),
    [
        ("foreground_free = 0.2", ["gc.foreground_free", "found 0.2 and 0.1"], "set gc.foreground_free"),
        ("background_free = 0.01", ["gc.background_free", "found 0.05 and 0.01"], "set gc.foreground_free below"),
        ("foreground_free = 1.2", ["gc.foreground_free", "out of range"], "a value from 0"),
        ("background_free = -1", ["gc.background_free", "out of range"], "a value from 0"),
    ],
)
def test_gc_thresholds_that_cannot_work(lab, line, names, remedy):
    with_spec(lab, "[workload]", f"[gc]\n{line}\n[workload]")
    refused(lab, "run", "spec.toml", names=["spec.toml:12", *names], remedy=remedy)


def test_a_preconditioning_that_does_not_fit(lab):
    with_spec(lab, "[workload]", "[precondition]\nused = 0.99\nvalid = 0.9\n[workload]")
    refused(lab, "run", "spec.toml", names=["spec.toml:", "precondition."], remedy="at most")


def test_many_mistakes_still_fit_on_a_screen(lab):
    (lab / "spec.toml").write_text(SPEC + "".join(f"bogus_{i} = {i}\n" for i in range(100)))
    refused(lab, "run", "spec.toml", names=["spec.toml:13", "bogus_0"], remedy="remedy")


def test_a_spec_that_is_no_toml(lab):
    with_spec(lab, "channels = 2", "channels = [2")
    refused(lab, "run", "spec.toml", names=["spec.toml:"], remedy="remedy")


@pytest.mark.parametrize(
    ("text", "names", "remedy"),
    [
        (SPEC + "chips = 1\n" * 100_000, ["spec.toml:14", "duplicate key"], "correct the line, which reads: chips = 1"),
        (SPEC + "".join(f"victm{i} = 1\n" for i in range(60_000)), ["workload.victm0", "more"], "[workload] has"),
        (
            SPEC.replace('trace = "trace.csv"', "synthetic.size = { ")
            + ", ".join(f'"{512 * i}B" = 1' for i in range(1, 40_000))
            + " }",
            ["spec.toml:12", "a table of 39999 sizes"],
            "write at most 4096",
        ),
        (SPEC + "[" * 100_000, ["spec.toml:13", "not TOML"], "correct the line"),
        (SPEC + "k" * 1_000_000 + " = 1\n", ["spec.toml:13", "unknown key"], "[workload] has"),
        (SPEC + "\n" * (1 << 20), ["spec.toml: a spec has at most 1 MiB"], "the right file"),
        (SPEC + '[gc]\nvictim = "\\u202e\\u001b[31m"\n', ['"\\u{202e}\\u{1b}[31m"'], "choices"),
    ],
)
def test_an_oversized_spec_is_refused_within_seconds(lab, text, names, remedy):
    (lab / "spec.toml").write_text(text)
    begin = time.monotonic()
    message = refused(lab, "run", "spec.toml", names=names, remedy=remedy)
    # Some of these specs took minutes before. Starting the command takes most of the measured time.
    assert time.monotonic() - begin < 10
    assert all(character.isprintable() or character == "\n" for character in message)


def test_a_spec_without_an_end(lab):
    refused(lab, "run", "/dev/zero", names=["/dev/zero: a spec has at most 1 MiB"], remedy="the right file")


def test_long_names_are_shortened_in_messages(lab):
    long = "x" * 100_000
    for arguments in (
        ["run", long],
        ["run", "spec.toml", "--out", long],
        ["run", "spec.toml", "--set", f"workload.trace={long}"],
        ["run", "spec.toml", "--set", f"precondition.load={long}"],
        ["run", "spec.toml", "--set", f"workload.device={long}"],
        ["run", "spec.toml", "--set", f"reliability.rber.table={long}"],
        ["run", "spec.toml", "--set", f"gc.{long}=1"],
        ["run", "spec.toml", "--set", long],
        ["run", "spec.toml", f"--{long}"],
        ["trace", "stat", long],
        ["trace", "stat", "trace.csv", "--max-gap", long],
        ["trace", "stat", "trace.csv", "--time-unit", long],
        ["trace", "stat", "--profile", long],
        [long],
    ):
        text = refused(lab, *arguments, names=["xxx"], remedy="remedy: ")
        assert "x" * 201 not in text


def test_a_file_name_that_is_not_utf_8(lab):
    name = os.fsdecode(b"\xff\x1b.toml")
    (lab / name).write_text(SPEC)
    refused(lab, "run", name, names=["not UTF-8"], remedy="choose another name")


# ----------------------------------------------------------------------------------------------------------- the trace


@pytest.mark.parametrize("op", ["Read", "Write"])
def test_a_drive_too_small_for_the_trace(lab, op):
    with_line(lab, lambda line: f"{line.split(',')[0]},hm,0,{op},{1 << 40},4096,26")
    refused(
        lab,
        "run",
        "spec.toml",
        names=["trace.csv", f"request {BAD}", str(1 << 40), op.lower()],
        remedy='workload.beyond = "wrap"',
    )
    done = run(lab, "run", "spec.toml", "--set", "workload.beyond=wrap", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["requests_wrapped"] == 1


def packed(kind, data):
    """`data`, compressed; skips the test if no program here can compress it."""
    if kind == "gz":
        return gzip.compress(data)
    if kind == "xz":
        return lzma.compress(data)
    if shutil.which("zstd") is None:
        pytest.skip("zstd is not installed")
    return subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True, check=True).stdout


@pytest.mark.parametrize("kind", ["zst", "gz", "xz"])
@pytest.mark.parametrize("cut", ["half", "tail", "head"])
def test_a_truncated_compressed_trace(lab, kind, cut):
    whole = packed(kind, (lab / "trace.csv").read_bytes())
    name = f"trace.csv.{kind}"
    (lab / name).write_bytes(whole)
    setting = ("--set", f"workload.trace={name}")
    done = run(lab, "run", "spec.toml", *setting, "--json", "--out", "whole")
    assert json.loads(done.stdout)["requests"] == LINES, done.stderr
    (lab / name).write_bytes(whole[: {"half": len(whole) // 2, "tail": len(whole) - 3, "head": 12}[cut]])
    refused(lab, "run", "spec.toml", *setting, names=[name, "cut short"], remedy="fetch the file again")


def test_a_damaged_compressed_trace(lab):
    whole = bytearray(gzip.compress((lab / "trace.csv").read_bytes()))
    whole[len(whole) // 2] ^= 0x55
    (lab / "trace.csv.gz").write_bytes(whole)
    arguments = ("run", "spec.toml", "--set", "workload.trace=trace.csv.gz")
    refused(lab, *arguments, names=["trace.csv.gz"], remedy="remedy")


#: By the defect of the line in the middle: the edit, the field that the message names, and a part of the message.
MALFORMED = {
    "a column is missing": (lambda line: line.replace("hm,0,", "hm,"), "Type", "expected Read or Write, found"),
    "the line is cut": (lambda line: line[:40], "", ""),
    "no number": (column(5, "4k"), "Size", 'expected a number of bytes, found "4k"'),
    "negative address": (column(4, "-4096"), "Offset", 'expected a byte address, found the negative number "-4096"'),
    "negative time": (column(0, f"-{TICKS}"), "Timestamp", "expected a time, found the negative number"),
    "non-monotone time": (column(0, str(TICKS)), "time", "earlier than that of the request before"),
    "zero-length request": (column(5, "0"), "length", "expected a length above 0, found 0"),
    "unknown op letter": (column(3, "X"), "Type", 'expected Read or Write, found "X"'),
    "too large an address": (column(4, "9" * 30), "Offset", "expected a byte address below 2^64, found"),
    "not a record at all": (lambda _: "lost+found", "Timestamp", 'expected a time, found "lost+found"'),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_line_in_the_middle(lab, what):
    edit, field, text = MALFORMED[what]
    with_line(lab, edit)
    names = [f"trace.csv:{BAD}", f"field {field}", text]
    refused(lab, "run", "spec.toml", names=names, remedy="workload.lenient = true")
    refused(lab, "trace", "stat", "trace.csv", names=names, remedy="--lenient")


@pytest.mark.parametrize("what", MALFORMED)
def test_lenient_skips_and_counts(lab, what):
    with_line(lab, MALFORMED[what][0])
    done = run(lab, "run", "spec.toml", "--set", "workload.lenient=true")
    assert done.returncode == 0, done.stderr
    summary = json.loads((lab / "out/spec/summary.json").read_text())
    assert (summary["requests"], summary["records_skipped"], summary["complete"]) == (LINES - 1, 1, True)
    assert f"1 of the {LINES:,} records of the trace (<0.1 %) were skipped: 1 " in " ".join(done.stdout.split())
    facts = json.loads(run(lab, "trace", "stat", "trace.csv", "--lenient", "--json").stdout)
    assert (facts["requests"], facts["skipped"]) == (LINES - 1, 1)


def test_a_binary_line_in_a_text_trace(lab):
    """For example a sector of zeros after a crash. The format cannot be detected from such content."""
    with_line(lab, lambda _: "\x00\x01\x7f" * 30)
    settings = ("--set", "workload.format=msr")
    text = refused(lab, "run", "spec.toml", *settings, names=[f"trace.csv:{BAD}"], remedy="workload.lenient")
    assert all(character.isprintable() or character == "\n" for character in text)
    done = run(lab, "run", "spec.toml", *settings, "--set", "workload.lenient=true", "--json")
    assert json.loads(done.stdout)["records_skipped"] == 1, done.stderr


def test_unknown_op_letter_of_other_formats(lab):
    for name, line, bad in [
        ("spc", "0,{at},4096,W,{i}.5", "0,8,4096,Q,3.5"),
        ("alibaba", "0,W,{at},4096,{i}", "0,Q,8,4096,3"),
        ("mqsim", "{i} 0 {at} 8 0", "3 0 8 8 7"),
        ("tencent", "{i},{at},8,1,9", "3,8,8,7,9"),
    ]:
        lines = [line.format(at=i * 8 % 64, i=i) for i in range(100)]
        lines[2] = bad
        (lab / name).write_text("\n".join(lines) + "\n")
        settings = ("--set", f"workload.trace={name}", "--set", f"workload.format={name}")
        refused(lab, "run", "spec.toml", *settings, names=[f"{name}:3", "field "], remedy="workload.lenient")


def test_several_devices_in_one_file_without_a_choice(lab):
    with_line(lab, column(2, "1"))
    names = [f"trace.csv:{BAD}", "hm_0", "hm_1"]
    text = refused(lab, "run", "spec.toml", names=names, remedy='workload.device = "hm_0"')
    assert 'workload.device = "concatenate"' in text
    refused(lab, "trace", "stat", "trace.csv", names=names, remedy="--device hm_0")
    for device, requests in [("hm_0", LINES - 1), ("hm_1", 1), ("concatenate", LINES)]:
        done = run(lab, "run", "spec.toml", "--json", "--set", f"workload.device={device}", "--set", "drive.channels=4")
        assert json.loads(done.stdout)["requests"] == requests, done.stderr


def test_a_device_that_is_not_in_the_file(lab):
    arguments = ("run", "spec.toml", "--set", "workload.device=hm_7")
    refused(lab, *arguments, names=["trace.csv", "hm_7"], remedy='workload.device = "hm_0"')


@pytest.mark.parametrize("text", ["", "\n\n\n"])
def test_an_empty_trace(lab, text):
    (lab / "trace.csv").write_text(text)
    refused(lab, "run", "spec.toml", names=["trace.csv"], remedy="workload.format")
    refused(lab, "trace", "stat", "trace.csv", names=["trace.csv"], remedy="--format")


def test_a_trace_with_only_malformed_lines_is_refused_as_empty_with_lenient(lab):
    (lab / "trace.csv").write_text("\n".join(line.replace("4096,26", "0,26") for line in msr_lines(60)))
    settings = ("--set", "workload.lenient=true", "--set", "workload.format=msr")
    refused(lab, "run", "spec.toml", *settings, names=["trace.csv", "60 skipped"], remedy="workload.format")


def test_a_file_of_no_known_format(lab):
    (lab / "trace.csv").write_text("Lorem ipsum dolor sit amet\n" * 100)
    refused(lab, "run", "spec.toml", names=["trace.csv", "no known format"], remedy="workload.format")


def test_an_unreadable_file(lab):
    (lab / "folder").mkdir()
    for name, what in [("nowhere.csv", "No such file"), ("folder", "folder"), ("trace.csv/below", "Not a directory")]:
        arguments = ("run", "spec.toml", "--set", f"workload.trace={name}")
        refused(lab, *arguments, names=[name, what], remedy="trace")
    if os.geteuid() != 0:
        (lab / "trace.csv").chmod(0)
        refused(lab, "run", "spec.toml", names=["trace.csv", "Permission denied"], remedy="trace")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs /proc/self/mem")
def test_a_file_whose_disk_fails(lab):
    arguments = ("run", "spec.toml", "--set", "workload.trace=/proc/self/mem")
    refused(lab, *arguments, names=["/proc/self/mem", "Input/output error"], remedy="remedy")


def test_an_unreadable_spec(lab):
    refused(lab, "run", "spek.toml", names=["no spec spek.toml"], remedy="spec.toml")
    refused(lab, "run", ".", names=["is a directory"], remedy="spec.toml")


STUDY = """\
[study]
title = "Pipe"
question = "Is it read again?"
base = "spec.toml"
[variants.a]
title = "a"
set = { "gc.victim" = "fifo" }
"""


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["run", "spec.toml", "--set", "workload.repeat=2"], "workload.repeat = 2"),
        (["run", "spec.toml", "--set", "precondition.map_reads=true"], "precondition.map_reads = true"),
        (["run", "spec.toml", "--set", "workload.device=concatenate"], 'workload.device = "concatenate"'),
        (["trace", "stat", "trace.csv", "--device", "concatenate"], "--device concatenate"),
        (["spec", "fit", "spec.toml"], "spec fit"),
        (["life", "spec.toml"], "a life"),
        (["study", "study.toml"], "a study"),
    ],
)
def test_a_command_that_reads_a_trace_again_refuses_a_pipe(lab, arguments, key):
    """These commands waited for ever."""
    (lab / "study.toml").write_text(STUDY)
    (lab / "trace.csv").unlink()
    os.mkfifo(lab / "trace.csv")
    names = ["trace.csv", f"can be read only once, like a pipe, and {key} reads it again"]
    refused(lab, *arguments, names=names, remedy="save it in a file first")


def test_a_command_that_reads_a_trace_once_accepts_a_pipe(lab):
    lines = (lab / "trace.csv").read_text()
    (lab / "trace.csv").unlink()
    os.mkfifo(lab / "trace.csv")
    for arguments in (["run", "spec.toml", "--json"], ["trace", "stat", "trace.csv", "--json"]):
        writer = threading.Thread(target=(lab / "trace.csv").write_text, args=(lines,), daemon=True)
        writer.start()
        done = run(lab, *arguments)
        writer.join(10)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["requests"] == LINES


def test_a_drive_is_not_saved_in_a_pipe(lab):
    os.mkfifo(lab / "pipe")
    refused(lab, "run", "spec.toml", "--save-drive", "pipe", names=["pipe exists"], remedy="name another file")


@pytest.mark.parametrize("damage", ["lost+found", "\0" * 20, "\ufeff\ufeff", "128166372,hm"])
def test_a_damaged_first_line(lab, damage):
    (lab / "trace.csv").write_text("\n".join([damage, *msr_lines()[1:]]) + "\n")
    settings = ("--set", "workload.format=msr")
    refused(lab, "run", "spec.toml", *settings, names=["trace.csv:1", "field "], remedy="workload.lenient")
    done = run(lab, "run", "spec.toml", *settings, "--set", "workload.lenient=true", "--json")
    summary = json.loads(done.stdout)
    assert (summary["requests"], summary["records_skipped"]) == (LINES - 1, 1), done.stderr


# ---------------------------------------------------------------------------------------------------------- the output


@pytest.fixture
def small_disk(tmp_path_factory):
    """A disk of 128 KiB."""
    disk = tmp_path_factory.mktemp("disk")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small disk is not permitted")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


#: Settings whose output does not fit on the small disk.
BULKY = ("--set", "output.requests=true", "--set", "output.timeline_operations=5000")


def test_a_full_disk_on_output(lab, small_disk):
    out = small_disk / "deep" / "result"
    refused(lab, "run", "spec.toml", *BULKY, "--out", out, names=[f"{out}/", "No space left"], remedy="free some space")
    assert listing(small_disk) == []
    target = small_disk / "t.log"
    arguments = ("trace", "convert", "trace.csv", "--to", "fio-iolog", "--out", target)
    refused(lab, *arguments, names=[str(target), "No space left"], remedy="space")
    assert listing(small_disk) == []
    saved = small_disk / "drive.bin"
    filled = ("--set", "precondition.used=0.9", "--set", "precondition.valid=0.8", "--set", "drive.channels=32")
    arguments = ("run", "spec.toml", *filled, "--save-drive", saved)
    refused(lab, *arguments, names=[str(saved), "No space left"], remedy="space")
    assert listing(small_disk) == []


def test_a_full_disk_keeps_the_earlier_result(lab, small_disk):
    done = run(lab, "run", "spec.toml", "--set", "workload.requests_max=10", "--out", small_disk / "r")
    assert done.returncode == 0, done.stderr
    before = (small_disk / "r/summary.json").read_bytes()
    arguments = ("run", "spec.toml", *BULKY, "--out", small_disk / "r")
    refused(lab, *arguments, names=["No space left"], remedy="free some space")
    assert (small_disk / "r/summary.json").read_bytes() == before


def test_a_limit_of_file_size(lab):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    arguments = ("run", "spec.toml", "--out", "deep/result")
    refused(lab, *arguments, names=["deep/result/", "File too large"], remedy="ulimit", preexec_fn=limit)


def test_a_saved_drive_replaces_only_a_saved_drive(lab):
    """--save-drive with the name of another file must not overwrite that file."""
    before = (lab / "spec.toml").read_bytes()
    arguments = ("run", "spec.toml", "--out", "r", "--save-drive")
    refused(lab, *arguments, "spec.toml", names=["spec.toml"], remedy="--force")
    assert (lab / "spec.toml").read_bytes() == before
    refused(lab, *arguments, "nowhere/drive", names=["nowhere/drive", "nowhere"], remedy="directory")
    for _ in range(2):  # the second run replaces the saved drive of the first run
        assert run(lab, *arguments, "drive.bin").returncode == 0
    assert run(lab, "run", "spec.toml", "--out", "r", "--set", "precondition.load=drive.bin").returncode == 0


def test_a_file_that_is_no_saved_drive(lab):
    settings = ("--set", "precondition.load=trace.csv")
    refused(lab, "run", "spec.toml", *settings, names=["trace.csv"], remedy="--save-drive")
    assert run(lab, "run", "spec.toml", "--out", "r", "--save-drive", "drive.bin").returncode == 0
    whole = (lab / "drive.bin").read_bytes()
    (lab / "drive.bin").write_bytes(whole[: len(whole) // 2])
    settings = ("--set", "precondition.load=drive.bin")
    refused(lab, "run", "spec.toml", *settings, names=["drive.bin"], remedy="remedy")


# ----------------------------------------------------------------------------------------------------------------- time

BURSTS = "workload.arrival={ bursts = { requests = 1, at_once = 1.0, idle = '1d' } }"
#: Settings and traces with times that overflowed 64 bits, or with which a run never ended. By case: settings, the
#: trace, parts of the error, a part of its remedy.
TIMES = {
    "a rate": (
        ["workload.synthetic={ requests = 200 }", "workload.arrival={ iops = 1e-9 }"],
        None,
        ["workload.arrival", "of 200 requests only 3 arrive before the end"],
        "at least iops = 9.32e-8",
    ),
    "bursts": (
        ["workload.synthetic={ requests = 300_000 }", BURSTS],
        None,
        ["workload.arrival", "only 24856 arrive before the end"],
        "a shorter idle, or fewer requests",
    ),
    "two lines of a trace": (
        [],
        "1,hm,0,Write,0,4096,26\n180000000000000000,hm,0,Write,0,4096,26\n",
        ["trace.csv:2", "field time", "571 years later than that of line 1"],
        "workload.lenient = true",
    ),
    "the first line of a trace": (
        [],
        "0,hm,0,Write,0,4096,26\n" + "".join(f"{TICKS + 1000 * i},hm,0,Write,0,4096,26\n" for i in range(100)),
        ["trace.csv:2", "field time", "406 years later than that of line 1"],
        "workload.lenient = true",
    ),
    "far times": (
        ["workload.format=spc"],
        "0,0,4096,W,0\n0,8,4096,W,18446744072\n0,8,4096,W,18446744073\n",
        ["trace.csv:2", "585 years later than that of line 1"],
        "workload.lenient = true",
    ),
    "the scale of a trace's times": (
        ["workload.format=spc", "workload.time_scale=1e9"],
        "0,0,4096,W,0\n0,8,4096,W,10\n",
        ["trace.csv: request 2", "arrives too late", "2^31 s"],
        "workload.time_scale",
    ),
    "an interval on a slow clock": (
        ["refresh.policy=fcr", "reliability.clock_scale=1e-3"],
        None,
        ["reliability.clock_scale", "365d", "1,000 years", "2^62 ns"],
        "a higher reliability.clock_scale",
    ),
    "a slow path": (
        ["timing.off_chip_mb_per_s=1e-300"],
        None,
        ["timing.off_chip_mb_per_s", "1.3e290 years"],
        "at least 4.1e-4",
    ),
    "a slow link": (
        ["host.link={ mb_per_s = 1e-9 }"],
        None,
        ["host.link", "mb_per_s = 0.000000001", "47.4 days"],
        "at least 4.1e-4",
    ),
}


@pytest.mark.parametrize("case", TIMES)
def test_times_that_cannot_be_simulated(lab, case):
    settings, trace, names, remedy = TIMES[case]
    if trace is not None:
        (lab / "trace.csv").write_text(trace)
    if any("synthetic" in setting for setting in settings):
        with_spec(lab, 'trace = "trace.csv"\n', "")
    sets = [part for setting in settings for part in ("--set", setting)]
    refused(lab, "run", "spec.toml", *sets, names=names, remedy=remedy)


def test_spec_fit_refuses_a_spec_without_a_workload(lab):
    with_spec(lab, '[workload]\ntrace = "trace.csv"\n', "")
    refused(lab, "spec", "fit", "spec.toml", names=["the spec has no [workload]"], remedy="remedy: add one")


def test_a_damaged_first_time_is_skipped_and_a_gap_allowed(lab):
    lines = msr_lines()
    (lab / "trace.csv").write_text("\n".join(["0,hm,0,Write,0,4096,26", *lines]) + "\n")
    done = run(lab, "run", "spec.toml", "--out", "r", "--set", "workload.lenient=true", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["requests"], summary["records_skipped"]) == (LINES, 1)
    # The second half of the trace is 30 days later than the first half.
    later = TICKS + 1000 * BAD + 30 * 86_400 * 10_000_000
    moved = [line.replace(str(TICKS + 1000 * i), str(later + 1000 * i)) for i, line in enumerate(lines)]
    (lab / "trace.csv").write_text("\n".join([*lines[:BAD], *moved[BAD:]]) + "\n")
    lenient = ("--set", "workload.lenient=true")
    names = [f"trace.csv:{BAD + 1}", "30 days later", "the next record is no earlier"]
    refused(lab, "run", "spec.toml", *lenient, names=names, remedy='workload.max_gap = "31d"')
    done = run(lab, "run", "spec.toml", "--out", "gap", "--set", "workload.max_gap=31d", "--json")
    assert json.loads(done.stdout)["requests"] == LINES
    refused(lab, "trace", "stat", "trace.csv", names=["30 days later"], remedy="--max-gap 31d")
    done = run(lab, "trace", "stat", "trace.csv", "--max-gap", "31d")
    assert done.returncode == 0, done.stderr


# -------------------------------------------------------------------------------------------------------------- Ctrl-C

LONG = ("--set", "workload.repeat=1000000")


def interrupted(lab, *arguments, after):
    """Sends Ctrl-C `after` seconds into the run; returns status, stdout, stderr and the seconds until its end."""
    process = subprocess.Popen(
        command_line(*arguments), cwd=lab, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: list(lab.rglob(".result.partial-*")), process=process)
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err, time.monotonic() - begin


def test_ctrl_c_keeps_the_finished_part_and_marks_it_incomplete(lab):
    settings = ("--set", "workload.arrival={ queue_depth = 8 }", "--set", "output.requests=true")
    arguments = ("run", "spec.toml", *LONG, *settings, "--out", "deep/result")
    status, out, err, waited = interrupted(lab, *arguments, after=0.7)
    assert status == 130, err
    assert waited < 20
    assert "Traceback" not in err
    assert "stopped by Ctrl-C" in err
    assert '"complete": false' in err
    assert "IOPS" in out
    result = lab / "deep/result"
    summary = json.loads((result / "summary.json").read_text())
    assert summary["complete"] is False
    assert summary["requests"] > 0
    assert json.loads((result / "nandlab-result.json").read_text())["complete"] is False
    assert sum(summary["host"][op]["count"] for op in summary["host"]) == summary["requests"]
    import polars as pl

    # Closed loop: at most queue_depth requests are outstanding.
    assert summary["requests_unfinished"] <= 8
    assert pl.read_parquet(result / "requests.parquet").height == summary["requests"]
    assert not list(lab.rglob(".*"))
    done = run(lab, "report", "deep/result")
    assert done.returncode == 0, done.stderr
    page = (result / "report.html").read_text()
    assert "not complete" in page or "incomplete" in page or "stopped" in page


def test_ctrl_c_before_the_first_request_leaves_no_output(lab):
    slow = ("--set", "precondition.method=pts", "--set", "precondition.rounds_max=20", *LONG)
    big = ("--set", "drive.blocks_per_plane=8192", "--set", "drive.pages_per_block=256")
    before = listing(lab)
    status, out, err, waited = interrupted(lab, "run", "spec.toml", *slow, *big, "--out", "deep/result", after=0.5)
    assert status == 130, err
    assert waited < 20
    assert "before the first request: there is no result" in err
    assert out == ""
    assert listing(lab) == before


def reads(process, name):
    """Whether the process has the file open; without /proc, waits two seconds and returns true."""
    descriptors = Path(f"/proc/{process.pid}/fd")
    if not descriptors.exists():
        time.sleep(2.0)
        return True
    with contextlib.suppress(FileNotFoundError):
        return any(os.readlink(entry).endswith(name) for entry in descriptors.iterdir())
    return False


def test_ctrl_c_while_reading_a_trace_prints_no_statistics(lab):
    """Statistics of a part of the trace would look like those of the whole trace."""
    (lab / "long.csv").write_text("\n".join(msr_lines(1_000_000)) + "\n")
    process = subprocess.Popen(
        command_line("trace", "stat", *["long.csv"] * 40),
        cwd=lab,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: reads(process, "long.csv"), process=process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert out == ""
