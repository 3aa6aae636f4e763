"""Choosing a part of a trace, damaged traces, and drives of the size of a trace."""

import json

import nandlab
import pytest
from nandlab import trace

DRIVE = """
[drive]
channels = 2
chips_per_channel = 1
blocks_per_plane = 64
pages_per_block = 16
op = 0.3
[workload]
trace = "t.csv"
"""


def msr(records):
    """An MSR trace; a record has a time in ms, a disk, an operation and a page."""
    return "".join(
        f"{128166372000000000 + 10_000 * at},hm,{disk},{op},{4096 * page},4096,0\n" for at, disk, op, page in records
    )


@pytest.fixture
def lab(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.toml").write_text(DRIVE)
    records = [(at, at % 3, "Read" if at % 2 else "Write", at % 50) for at in range(300)]
    (tmp_path / "t.csv").write_text(msr(records))
    return tmp_path


def test_devices_are_listed_and_chosen(lab, command):
    rows = trace.stat_by_device("t.csv")
    assert [row["device"] for row in rows] == ["hm_0", "hm_1", "hm_2"]
    assert sum(row["requests"] for row in rows) == 300
    shown = command("trace", "stat", "t.csv", "--by-device")
    assert shown.stdout.startswith("t.csv: 3 devices\n") and "working set" in shown.stdout
    assert json.loads(command("trace", "stat", "t.csv", "--by-device", "--json").stdout) == rows
    refused = command("trace", "stat", "t.csv", "--by-device", "--only", "reads")
    assert refused.returncode == 2 and "leave --only out" in refused.stderr
    several = command("trace", "stat", "t.csv")
    assert "the file holds 3 devices: hm_0, hm_1, hm_2" in several.stderr
    assert "--device hm_0" in several.stderr and "--by-device" in several.stderr
    facts = json.loads(command("trace", "stat", "t.csv", "--json", "--device", "hm_2", "--device", "hm_0").stdout)
    assert (facts["requests"], sorted(facts["devices"])) == (200, ["hm_0", "hm_2"])
    result = nandlab.run("spec.toml", sets={"workload.devices": ["hm_2", "hm_0"]})
    assert result.summary.requests == 200


def test_a_part_of_a_trace(lab, command):
    facts = trace.stat("t.csv", device="concatenate", only="reads", window=("100ms", "200ms"))
    assert (facts["requests"], facts["read_ratio"]) == (50, 1.0)
    shown = command(
        "trace", "stat", "t.csv", "--json", "--device", "concatenate", "--only", "reads", "--window", "100ms..200ms"
    )
    assert json.loads(shown.stdout) == facts
    sets = {"workload.device": "concatenate", "workload.only": "writes", "workload.window": {"from": "200ms"}}
    summary = nandlab.run("spec.toml", sets=sets).summary
    assert (summary.requests, summary.host.write.count) == (50, 50)
    for arguments, text in (
        (("--window", "5ms"), "--window: expected two times"),
        (("--window", "5ms..1ms"), "the window ends before it begins"),
        (("--only", "trims"), "expected reads or writes"),
        (("--window", "1h.."), "no request in --window"),
    ):
        refused = command("trace", "stat", "t.csv", "--device", "concatenate", *arguments)
        assert refused.returncode == 2 and text in refused.stderr, refused.stderr


def test_the_loss_of_records_has_a_limit(lab, command):
    lines = msr([(at, 0, "Write", at % 50) for at in range(17)])
    (lab / "t.csv").write_text(lines + "damaged\n" * 3)
    refused = command("run", "spec.toml", "--set", "workload.lenient=true")
    assert refused.returncode == 2
    assert "t.csv: 3 of 20 records are damaged (15.0 %)" in refused.stderr
    assert "workload.lenient = { at_most = 0.15 }" in refused.stderr
    refused = command("trace", "stat", "t.csv", "--lenient")
    assert "--lenient --at-most 0.15" in refused.stderr
    facts = trace.stat("t.csv", lenient=0.15)
    assert (facts["requests"], facts["skipped"], facts["skipped_by"]) == (17, 3, {"malformed": 3})
    assert [note["code"] for note in facts["notes"]] == ["skipped-records"]
    shown = command("trace", "stat", "t.csv", "--lenient", "--at-most", "0.15")
    assert "warning: 3 of the 20 records of the trace (15.0 %) were skipped: 3 malformed." in shown.stdout
    (note,) = (
        note
        for note in nandlab.run("spec.toml", sets={"workload.lenient": {"at_most": 0.2}}).summary.notes
        if note.code == "skipped-records"
    )
    assert note.severity == "warning" and "3 malformed" in note.text
    with pytest.raises(nandlab.NandlabError, match="lenient: expected True, False or a share"):
        trace.stat("t.csv", lenient=3.0)
    assert command("trace", "stat", "t.csv", "--at-most", "0.2").returncode == 2


def test_a_drive_grows_to_its_trace(lab, command):
    # 4,000 writes of 4 KiB to addresses up to 256 MiB; the drive has 24 MiB.
    (lab / "t.csv").write_text(
        msr([(at, 0, "Write", 7919 * at % 65_536) for at in range(4000)] + [(4000, 0, "Write", 65_535)])
    )
    spec = nandlab.load("spec.toml")
    assert spec.logical_bytes < 1 << 28
    found = nandlab.spec.fit(spec)
    assert "workload.beyond" not in found.sets
    grown = spec.with_(found.sets)
    assert 1 << 28 <= grown.logical_bytes < (1 << 28) + (1 << 20)
    assert found.written_bytes >= 5 * found.spare_bytes == 5 * (grown.raw_bytes - grown.logical_bytes)
    assert found.written_bytes == 4001 * 4096 * found.sets["workload.repeat"]
    played = command(
        "run", "spec.toml", "--json", "--set", f"drive.blocks_per_plane={found.sets['drive.blocks_per_plane']}"
    )
    assert json.loads(played.stdout)["requests_wrapped"] == 0, played.stderr

    wrapped = nandlab.run("spec.toml", sets={"workload.beyond": "wrap"})
    assert wrapped is not None
    (note,) = (note for note in wrapped.summary.notes if note.code == "wrapped")
    share = 100 * wrapped.summary.requests_wrapped / 4001
    assert f"{wrapped.summary.requests_wrapped:,} of 4,001 requests ({share:.1f} %) end beyond" in note.text
    assert "drive.capacity" in note.text
    # A spec that wraps is scaled as before.
    assert nandlab.spec.fit(spec.with_({"workload.beyond": "wrap"})).spare_bytes * 5 <= 4001 * 4096


def test_a_capacity_sets_the_blocks(lab, command):
    shown = command("spec", "check", "spec.toml", "--set", "drive.capacity=1GB")
    blocks = json.loads(nandlab.load("spec.toml", ["drive.capacity=1GB"]).canonical_json())["drive"]["blocks_per_plane"]
    assert f"1.00 GB, {blocks:,} blocks per plane)" in shown.stdout, shown.stdout
    (lab / "both.toml").write_text(DRIVE.replace("op = 0.3", 'op = 0.3\ncapacity = "1GB"'))
    refused = command("spec", "check", "both.toml")
    assert refused.returncode == 2 and "conflicts with drive.blocks_per_plane" in refused.stderr
