"""Placement handles as a user sees them: where identifiers come from, and the numbers by handle."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import nandlab
import pytest
from nandlab import fdp, live
from nandlab.errors import OutputError
from nandlab.spec import read_spec
from nbd_client import Client
from test_fdp import parsed

#: 7 MiB for the host in 224 blocks of 4 lanes; three handles.
SPEC = """\
seed = 1
[drive]
channels = 2
chips_per_channel = 1
dies_per_chip = 1
planes_per_die = 2
blocks_per_plane = 56
pages_per_block = 16
page_size = "4KiB"
op = 0.9
[placement]
handles = 3
isolation = ["initial", "initial", "persistent"]
"""
#: A hot region, which is overwritten at random, and a log, each with a handle of its own; a third client without one.
CLIENTS = """\
[[workload.clients]]
name = "hot"
span = 0.1
size = "4KiB"
read_fraction = 0.0
requests = 6000
placement = 1
[[workload.clients]]
name = "log"
span = { from = 0.1, to = 0.8 }
size = "64KiB"
address = "sequential"
read_fraction = 0.2
requests = 800
placement = 2
[[workload.clients]]
name = "rest"
span = { from = 0.8, to = 1.0 }
size = "4KiB"
read_fraction = 0.5
requests = 2000
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "out"
    return nandlab.run(SPEC + CLIENTS, out=out)


def test_the_summary_has_the_numbers_by_handle(result):
    summary, found = result.summary, result.summary.placement
    assert set(found.handles) == {0, 1, 2}
    assert found.hbmw == summary.host.write.bytes == sum(of.host.write.bytes for of in summary.clients.values())
    # Without a buffer and a cache each unit of a write is programmed. Each client writes with its handle alone.
    by_client = {0: "rest", 1: "hot", 2: "log"}
    for identifier, name in by_client.items():
        of = found.handles[identifier]
        assert of.host_bytes == summary.clients[name].host.write.bytes
        assert of.waf == pytest.approx((of.host_bytes + of.copied_bytes) / of.host_bytes)
        assert summary.by_tag.placements[identifier].host.write.bytes == of.host_bytes
        assert of.isolation == ("persistent" if identifier == 2 else "initial")
    copied = sum(of.copied_bytes for of in found.handles.values())
    assert found.mbmw == found.hbmw + copied and found.waf == pytest.approx(found.mbmw / found.hbmw)
    assert sum(of.copied_share for of in found.handles.values()) == pytest.approx(1.0)
    # All that is programmed is user data: there is neither padding nor a map in flash.
    programmed = sum(value for _, value in summary.flash.program.items())
    assert found.mbmw == programmed * 4096 and (found.padding_bytes, found.map_bytes) == (0, 0)
    assert found.waf == pytest.approx(summary.waf)
    erased = sum(value for _, value in summary.flash.erase.items())
    assert found.mbe == erased * 16 * 4096
    blocks = sum(of.erases for of in found.handles.values()) + sum(of.erases for of in found.mixed.values())
    assert blocks == erased
    assert found.events.invalid_identifier == 0 and found.events.media_reallocated > 0


def test_the_logs_of_a_run_are_those_of_nvme_cli(result, command):
    logs = json.loads((result.path / "fdp.json").read_text())
    assert logs == result.fdp == nandlab.RunResult.read(result.path).fdp
    found = result.summary.placement
    for name in fdp.LOGS:
        done = command("fdp", name, result.path)
        assert done.returncode == 0, done.stderr
        log = parsed(name, done.stdout)
        if name == "configs":
            assert log["configs"] == logs["configs"]["configs"]
            continue
        assert log == logs[name], name
        assert json.loads(command("fdp", name, result.path, "--json").stdout) == logs[name]
    assert logs["stats"] == {"hbmw": found.hbmw, "mbmw": found.mbmw, "mbe": found.mbe}
    [config] = logs["configs"]["configs"]
    # Four lanes of a superblock of 16 units.
    assert (config["nrg"], config["nruh"], config["runs"]) == (1, 3, 4 * 16 * 4096)
    assert [handle["ruht"] for handle in config["ruhs"]] == [1, 1, 2]
    for handle in logs["status"]["ruhss"]:
        assert 0 <= handle["ruamw"] <= config["runs"] // 512
    assert {event["type"] for event in logs["events"]["events"]} <= {0x80, 0x81}
    assert logs["events"]["n"] == min(64, found.events.media_reallocated + found.events.handle_modified)
    assert all(0 < event["nlbam"] <= 16 * 8 for event in logs["events"]["events"] if event["type"] == 0x80)
    assert command("fdp", "events", result.path, "--host-events").stdout.strip() == ""


def test_a_run_without_handles_has_no_such_logs(spec_file, tmp_path, command):
    ran = nandlab.run(spec_file, out=tmp_path / "r")
    assert ran.fdp is None and not (tmp_path / "r/fdp.json").exists()
    assert "placement" not in json.loads(ran.summary_text)
    done = command("fdp", "stats", tmp_path / "r")
    assert done.returncode == 2
    assert "the drive of this run has no placement handles\n  remedy: set placement.handles" in done.stderr


def test_screen_and_page_have_a_table_of_the_handles(result, tmp_path):
    from nandlab.presentation import of_run

    shown = of_run(result)
    section = shown.section("Placement handles")
    assert [row.label for row in section.tables[0].rows][:3] == ["0", "1", "2"]
    assert [row.cells[-1] for row in section.tables[0].rows][:3] == ["rest", "hot", "log"]
    assert len({len(row.cells) for row in section.tables[0].rows} | {len(section.tables[0].heads) - 1}) == 1
    assert len({len(row.cells) for row in section.short.rows} | {len(section.short.heads) - 1}) == 1
    assert any(figure.label == "MBMW / HBMW" for figure in shown.headline)
    page = nandlab.report(result.path, tmp_path / "page.html").read_text()
    assert "Placement handles" in page and "MBMW / HBMW" in page


def trace(path: Path, column: bool) -> str:
    """A trace of writes to two halves of the space; `column`: those of the second have placement 2."""
    lines = []
    for number in range(2000):
        at = number * 7919 % 1024
        placement = 2 if at >= 512 else 0
        lines.append(f"{number / 1e4},{at * 4096},4096,W" + (f",{placement}" if column else ""))
    path.write_text("\n".join(lines) + "\n")
    columns = "time_s, offset, size, op" + ", placement" * column
    return f"[workload]\ntrace = '{path}'\nformat = {{ columns = '{columns}' }}\n"


def test_a_column_and_a_range_of_addresses_name_the_same_placements(tmp_path):
    by_column = nandlab.run(SPEC + trace(tmp_path / "placed.csv", True))
    ranges = "ranges = [{ from = '2MiB', to = '4MiB', placement = 2 }]\n"
    by_range = nandlab.run(SPEC + ranges + trace(tmp_path / "plain.csv", False))
    assert by_column.summary.placement.handles[2].host_bytes == by_column.summary.by_tag.placements[2].host.write.bytes
    assert by_column.summary.placement.handles[2].host_bytes > 1 << 20
    one, other = json.loads(by_column.summary_text), json.loads(by_range.summary_text)
    assert {**one, "spec_hash": "", "notes": 0} == {**other, "spec_hash": "", "notes": 0}
    assert by_column.fdp == by_range.fdp
    # A placement that the request names counts more than that of its address.
    both = nandlab.run(SPEC + ranges.replace("placement = 2", "placement = 1") + trace(tmp_path / "placed.csv", True))
    assert both.fdp == by_column.fdp


def test_requests_in_memory_have_placements():
    requests = {"op": ["write"] * 3, "offset": [0, 4096, 8192], "length": [4096] * 3, "placement": [0, 2, 2]}
    found = nandlab.run(SPEC, requests=requests).summary.placement
    assert [of.host_bytes for of in found.handles.values()] == [4096, 0, 8192]


def test_a_drive_is_asked_for_its_logs_and_handles():
    drive = nandlab.Drive(nandlab.load(SPEC))
    full = drive.fdp()["status"]["ruhss"]
    assert [of["pid"] for of in full] == [0, 1, 2] and len({of["ruamw"] for of in full}) == 1
    drive.write(0, 3 * 4096, placement=1)
    drive.run_until_idle()
    left = {of["pid"]: of["ruamw"] for of in drive.fdp()["status"]["ruhss"]}
    assert left == {0: full[0]["ruamw"], 1: full[0]["ruamw"] - 3 * 8, 2: full[0]["ruamw"]}
    drive.update_handle(1)
    logs = drive.fdp()
    assert {of["pid"]: of["ruamw"] for of in logs["status"]["ruhss"]}[1] == full[0]["ruamw"]
    types = [event["type"] for event in logs["host_events"]["events"]]
    assert set(types) == {0} and types
    drive.write(0, 4096, placement=9)
    drive.run_until_idle()
    [event] = [event for event in drive.fdp()["host_events"]["events"] if event["type"] == 3]
    assert event["pid"] == 9 and "ruhid" not in event
    summary = drive.summary()
    assert summary.placement.events.invalid_identifier == 1
    assert summary.placement.handles[0].host_bytes == 4096
    with pytest.raises(nandlab.RunError, match=r"the drive has no placement 9\n  remedy"):
        drive.update_handle(9)
    assert nandlab.Drive(nandlab.load(SPEC.partition("[placement]")[0])).fdp() is None


def test_a_trace_with_unknown_handles_is_counted_and_bounded(tmp_path):
    """Junk in the column: every identifier once. The results stay small."""
    path = tmp_path / "junk.csv"
    path.write_text("".join(f"{number},{number % 64 * 4096},4096,W,{number * 7}\n" for number in range(9000)))
    form = "format = { columns = 'time_us, offset, size, op, placement' }\n"
    ran = nandlab.run(f"{SPEC}[workload]\ntrace = '{path}'\n{form}arrival = {{ queue_depth = 8 }}\n")
    assert ran.summary.placement.events.invalid_identifier == 8999
    # All count as writes with identifier 0.
    assert ran.summary.by_tag is None and ran.summary.placement.handles[0].host_bytes == 9000 * 4096
    assert len(ran.fdp["host_events"]["events"]) == 64
    from nandlab.presentation import of_run

    assert any("8,999 writes with an unknown placement" in note.text for note in of_run(ran).failures)


def test_a_trace_with_handles_on_a_drive_without_is_refused(tmp_path):
    plain = SPEC.partition("[placement]")[0]
    with pytest.raises(nandlab.NandlabError) as refused:
        nandlab.run(plain + trace(tmp_path / "placed.csv", True))
    text = str(refused.value)
    assert "no placement 2" in text and "remedy" in text and "placement.handles" in text, text


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ("placement.ranges=[{ from = '1MiB', to = '1MiB', placement = 1 }]", "the range ends where it begins"),
        ("placement.ranges=[{ from = '1MiB', to = '9GiB', placement = 1 }]", "beyond"),
        ("placement.ranges=[{ placement = 3 }]", "no placement 3"),
        (
            "placement.ranges=[{ to = '2MiB', placement = 1 }, { from = '1MiB', placement = 2 }]",
            "overlaps",
        ),
    ],
)
def test_ranges_that_cannot_be_meant_are_refused(tmp_path, sets, message):
    path = tmp_path / "d.toml"
    path.write_text(SPEC)
    with pytest.raises(nandlab.SpecError, match=message) as refused:
        read_spec(path, [sets])
    assert "placement.ranges" in str(refused.value) and "remedy" in str(refused.value)


def test_ranges_of_a_drive_without_handles_are_refused(tmp_path):
    path = tmp_path / "d.toml"
    path.write_text(SPEC.partition("[placement]")[0])
    with pytest.raises(nandlab.SpecError, match="has no placement 1"):
        read_spec(path, ["placement.ranges=[{ placement = 1 }]"])


def test_a_fio_job_writes_with_its_index(command, tmp_path):
    (tmp_path / "d.toml").write_text(SPEC)
    (tmp_path / "j.fio").write_text(
        "[global]\nrw=randwrite\nbs=4k\nsize=1m\ndataplacement=fdp\n[a]\nplids=1\n[b]\noffset=1m\nplids=2\n"
    )
    done = command("run", "d.toml", "--fio", "j.fio", "--out", "out")
    assert done.returncode == 0, done.stderr
    handles = json.loads((tmp_path / "out/summary.json").read_text())["placement"]["handles"]
    assert {name: of["host_bytes"] for name, of in handles.items()} == {"0": 0, "1": 1 << 20, "2": 1 << 20}
    (tmp_path / "j.fio").write_text("[a]\nrw=write\nsize=1m\nfdp=1\nfdp_pli=3\n")
    done = command("run", "d.toml", "--fio", "j.fio", "--out", "out")
    assert done.returncode == 2
    assert "j.fio:5: plids=3: expected indices below 3, as the drive has 3 handles" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="drives are served on Linux only")
def test_a_live_drive_has_logs_and_updates_handles(tmp_path, command):
    path = tmp_path / "d.toml"
    path.write_text(SPEC)

    def call(*words, status=0):
        done = command("live", *words, "--socket", drive.path)
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    with live.serve(path, "--record", tmp_path / "r.rec", "--out", tmp_path / "served", speed="max") as drive:
        for name in fdp.LOGS:
            text = call("fdp", name)
            log = parsed(name, text)
            assert log == drive.fdp()[name] or name == "configs"
        assert call("fdp", "update", "1") == ""
        assert "the drive has no placement 7" in call("fdp", "update", "7", status=2)
        assert "MBMW / HBMW  -" in call("stat") and "placement 2  0" in call("stat")
        assert "written MB/s" in call("top", "--times", "1")
        assert drive.stat()["placement"]["handles"]["1"]["host_bytes"] == 0
        # A client names a placement with the export.
        for name, count in (("", 1), ("handle-1", 2), ("handle-2", 3)):
            client = Client(drive.path, name)
            for page in range(count):
                client.write(page << 16, b"x" * 4096)
        with pytest.raises(ConnectionResetError):
            Client(drive.path, "handle-3")
        stat = drive.stat()
        written = {name: of["host_bytes"] for name, of in stat["placement"]["handles"].items()}
        assert written == {"0": 4096, "1": 2 * 4096, "2": 3 * 4096}
        assert stat["by_placement"]["2"]["host"]["write"]["count"] == 3
        assert [of["pid"] for of in drive.fdp()["status"]["ruhss"]] == [0, 1, 2]
    # The recording of the session, with its update of a handle, gives the same results again.
    again = command("run", "r.rec", "--out", "again")
    assert again.returncode == 0, again.stderr
    for file in ("summary.json", "fdp.json"):
        assert (tmp_path / "served" / file).read_bytes() == (tmp_path / "again" / file).read_bytes(), file
    path.write_text(SPEC.partition("[placement]")[0])
    with live.serve(path, speed="max") as drive:
        assert "the drive has no placement handles" in call("fdp", "stats", status=2)
        assert "placement" not in drive.stat()
        with pytest.raises(OutputError, match="no placement handles"):
            drive.update_handle(1)
