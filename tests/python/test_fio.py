"""Job files of fio as clients (`nandlab run --fio`)."""

from __future__ import annotations

import json

import pytest
from nandlab.errors import OutputError
from nandlab.fio import Places, parse_jobs

DRIVE = 64 << 20


def only(options: str, drive: int = DRIVE) -> dict:
    """The client of a file with one job."""
    [client] = parse_jobs(f"[job]\n{options}", drive).clients
    return client


def test_defaults_are_those_of_fio():
    assert only("") == {
        "name": "job",
        "read_fraction": 1.0,
        "size": "4096B",
        "align": "4096B",
        "address": "sequential",
        "requests": DRIVE // 4096,
        "arrival": {"queue_depth": 1},
        "span": {"from": "0B", "to": f"{DRIVE}B"},
    }


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("4096", 4096),
        ("4k", 4096),
        ("4K", 4096),
        ("4kb", 4096),
        ("1m", 1 << 20),
        ("1MB", 1 << 20),
        ("512b", 512),
        ("64ki", 64_000),
        ("64KiB", 64_000),
        ("0x1000", 4096),
    ],
)
def test_units_are_those_of_fio(text, number):
    assert only(f"size=32m\nbs=512\noffset={text}")["span"]["from"] == f"{number}B"


def test_with_kb_base_1000_the_units_are_those_of_si():
    assert only("kb_base=1000\nbs=4ki\nsize=1m")["span"]["to"] == "1000000B"
    assert only("kb_base=1000\nbs=4ki\nsize=1mi")["span"]["to"] == f"{1 << 20}B"
    assert only("kb_base=1000\nbs=4ki")["size"] == "4096B"


@pytest.mark.parametrize(
    ("options", "reads", "trims", "address"),
    [
        ("rw=read", 1.0, None, "sequential"),
        ("rw=write", 0.0, None, "sequential"),
        ("rw=trim", 0.0, 1.0, "sequential"),
        ("rw=randread", 1.0, None, "uniform"),
        ("readwrite=randwrite", 0.0, None, "uniform"),
        ("rw=rw", 0.5, None, "sequential"),
        ("rw=randrw\nrwmixread=70", 0.7, None, "uniform"),
        ("rw=randrw\nrwmixwrite=70", 0.3, None, "uniform"),
        ("rw=randrw\nrwmixwrite=70\nrwmixread=10", 0.1, None, "uniform"),
        ("rw=randread\nrandom_distribution=zipf:1.2", 1.0, None, {"zipf": 1.2}),
        ("rw=randread\nrandom_distribution=random", 1.0, None, "uniform"),
    ],
)
def test_rw_sets_mix_and_addresses(options, reads, trims, address):
    client = only(options)
    assert (client["read_fraction"], client.get("trim_fraction"), client["address"]) == (reads, trims, address)


def test_sizes():
    assert only("bs=8k,16k\nrw=write")["size"] == "16384B"
    assert only("bs=8k,16k\nrw=read")["size"] == "8192B"
    assert only("bssplit=4k/60:64k/40")["size"] == {"4096B": 60.0, "65536B": 40.0}
    assert only("bssplit=4k/60:8k/:16k/")["size"] == {"4096B": 60.0, "8192B": 20.0, "16384B": 20.0}
    assert only("bsrange=4k-16k")["size"] == {"4096B": 1.0, "8192B": 1.0, "12288B": 1.0, "16384B": 1.0}
    assert only("bs=16k\nblockalign=4k")["align"] == "4096B"
    mixed = parse_jobs("[a]\nrw=randrw\nbs=4k,8k\n", DRIVE)
    assert mixed.clients[0]["size"] == "4096B"
    assert any("bs=4k,8k" in text for text in mixed.without)


def test_amounts_and_times():
    assert only("size=1m\nbs=4k")["requests"] == 256
    assert only("size=1m\nio_size=4m\nbs=4k")["requests"] == 1024
    assert only("size=1m\nbs=4k\nloops=3")["requests"] == 768
    assert only("size=25%\nbs=4k\noffset=50%")["span"] == {"from": f"{DRIVE // 2}B", "to": f"{DRIVE * 3 // 4}B"}
    assert only("number_ios=77")["requests"] == 77
    timed = only("runtime=2m\ntime_based\nstartdelay=5")
    assert (timed["duration"], timed["start"], timed["requests"]) == ("120000000000ns", "5000000000ns", 10**12)
    assert only("runtime=90")["duration"] == "90000000000ns"


def test_loops():
    assert only("iodepth=16\nioengine=libaio")["arrival"] == {"queue_depth": 16}
    thinking = only("thinktime=500")
    assert thinking["think_time"] == "500000ns"
    assert only("thinktime=2ms")["think_time"] == "2000000ns"
    rated = only("rw=randread\nrate_iops=2000\nrate_process=poisson\niodepth=8")
    assert rated["arrival"] == {"iops": 2000.0, "process": "poisson"}
    assert (rated["outstanding"], rated["latency_from"]) == (8, "submission")
    # Reads are limited to 1,000 a second and are a quarter of the requests, writes to 600: the writes are the limit.
    both = parse_jobs("[a]\nrw=randrw\nrwmixread=25\nrate_iops=1000,600\n", DRIVE)
    assert both.clients[0]["arrival"]["iops"] == pytest.approx(800)
    assert any("800 requests per second" in text for text in both.assumed)
    assert only("rw=read\nrate=4m\nbs=8k")["arrival"]["iops"] == 512
    assert only("fsync=32")["flush_every"] == 32
    capped = parse_jobs("[a]\niodepth=8\nioengine=psync\n", DRIVE)
    assert capped.clients[0]["arrival"] == {"queue_depth": 1}
    assert any("caps iodepth=8" in text for text in capped.assumed)


def test_sections_and_clones():
    jobs = parse_jobs(
        "# of all\n[global]\nbs=8k\nsize=1m\n\n[a]\nrw=write\n; next\n[global]\nbs=16k\n[b]\nnumjobs=2\n"
        "offset=1m\noffset_increment=2m\n[a]\n",
        DRIVE,
    )
    found = [(client["name"], client["size"], client["span"]["from"]) for client in jobs.clients]
    assert found == [
        ("a", "8192B", "0B"),
        ("b-0", "16384B", f"{1 << 20}B"),
        ("b-1", "16384B", f"{3 << 20}B"),
        ("a#2", "16384B", "0B"),
    ]


def test_placements_are_those_of_the_indices():
    def placement(options: str, places: Places) -> object:
        jobs = parse_jobs(f"[job]\nrw=write\n{options}", DRIVE, places=places)
        assert not jobs.without and not jobs.ignored, jobs
        return jobs.clients[0].get("placement")

    four = Places(handles=4)
    assert placement("", four) is None
    # Without FDP fio writes without a placement.
    assert parse_jobs("[job]\nplids=2\n", DRIVE, places=four).ignored == ["plids"]
    for options in ("dataplacement=fdp\nplids=2", "fdp=1\nfdp_pli=2", "plids=2-2\nfdp=1\ndataplacement=fdp"):
        assert placement(options, four) == 2
    assert placement("fdp=1\nfdp_pli=0", four) is None
    # Three handles in two groups: the group is the highest of 16 bits. In four groups it has two bits.
    assert [placement(f"fdp=1\nplids={n}", Places(3, 2)) for n in (2, 3, 5)] == [2, 0x8000, 0x8002]
    assert placement("fdp=1\nplids=11", Places(3, 4)) == 0xC002
    assert placement("fdp=1\nplids=4", Places(1, 5)) == 0x8000

    for options, text in [
        ("fdp=1", "[job] fdp=1 (fio takes all placements in turn, a client has one; taken: index 0"),
        ("fdp=1\nfdp_pli=1,2-3", "[job] plids=1,2-3 (fio takes them in turn, a client has one; taken: 1"),
        ("dataplacement=streams\nplids=1", "[job] dataplacement=streams (the drive has placement handles"),
    ]:
        jobs = parse_jobs(f"[job]\nrw=write\n{options}\n", DRIVE, places=four)
        assert len(jobs.without) == 1 and jobs.without[0].startswith(text), jobs.without
    assert jobs.clients[0].get("placement") is None
    for options, error in [
        ("fdp=1\nplids=4", r":3: plids=4: expected indices below 4, as the drive has 4 handles in 1 .*; found 4"),
        ("fdp=1\nplids=1-", r":3: plids=1-: expected indices such as 0,2-4"),
        ("fdp=1\nplids=3-1", r":3: plids=3-1: expected indices such as 0,2-4"),
        ("fdp=1\nplids=0-99999999999", r":3: plids=.*: expected indices such as 0,2-4"),
        ("fdp=1\nplids=", r":3: plids=: expected indices such as 0,2-4"),
        (f"fdp=1\nplids={'9' * 5000}", r":3: plids=.*: expected indices such as 0,2-4"),
        ("dataplacement=fdq", r":2: dataplacement=fdq: expected none, fdp or streams"),
    ]:
        with pytest.raises(OutputError, match=error):
            parse_jobs(f"[job]\n{options}\n", DRIVE, places=four)
    with pytest.raises(OutputError, match=r"expected index 0, as the drive has one placement handle .*; found 1"):
        parse_jobs("[job]\nfdp=1\nplids=1\n", DRIVE)


def test_points_in_names_are_replaced():
    assert parse_jobs("[a.b]\n", DRIVE).clients[0]["name"] == "a-b"


def test_what_has_no_counterpart_is_named():
    jobs = parse_jobs(
        "[job]\nioengine=io_uring\ndirect=1\nfilename=/dev/sda\ngroup_reporting\nstonewall\nramp_time=5\nsync=1\n"
        "rw=randread:8\nno_such_option=3\nrandom_distribution=pareto:0.9\n",
        DRIVE,
    )
    assert jobs.ignored == ["ioengine", "direct", "filename", "group_reporting"]
    for text in (
        "stonewall (all clients run at once",
        "ramp_time=5 (set workload.warm_up",
        "sync=1 (nothing like it",
        "no_such_option=3 (unknown option",
        "rw=randread:8 (the modifier :8",
        "random_distribution=pareto:0.9 (the addresses are uniform",
    ):
        assert any(f"[job] {text}" in line for line in jobs.without), text
    assert len(jobs.notes()) == 7


def test_variables_of_the_environment_are_replaced(monkeypatch):
    monkeypatch.setenv("SIZE", "2m")
    assert only("size=${SIZE}")["span"]["to"] == f"{2 << 20}B"
    with pytest.raises(OutputError, match=r":2: the variable NOTHING is not set\n  remedy: export"):
        only("size=${NOTHING}")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "no job in it\n  remedy: add a section"),
        ("[global]\nbs=4k\n", "no job in it"),
        ("bs=4k\n", ":1: an option before the first section"),
        ("[a\n", ":1: no section"),
        ("[a]\ninclude b.fio\n", ":2: .*files are not included"),
        ("[a]\nrw=reed\n", ":2: rw=reed: expected one of read"),
        ("[a]\nbs=4x\n", ":2: bs=4x: expected a size such as 4k"),
        ("[a]\nbs=1000\n", ":2: bs=1000: expected multiples of 512"),
        ("[a]\nsize=1t\n", ":2: size=1t: expected a part of the 67108864 bytes of the drive"),
        ("[a]\nruntime=soon\n", ":2: runtime=soon: expected a time such as 30s"),
        ("[a]\ntime_based\n", "time_based=: expected a runtime beside it"),
        ("[a]\nrwmixread=70\nrw=randrw\nrwmixwrite=x\n", ":4: rwmixwrite=x: expected a number from 0 to 100"),
        ("[a]\nnumjobs=300\n", "300 jobs, those of numjobs included\n  remedy: at most 256"),
        ("[a]\nnumjobs=4\noffset_increment=32m\nsize=1m\n", "offset_increment=32m: expected offsets within"),
        ("[a]\nkb_base=1001\n", "kb_base=1001: expected 1000 or 1024"),
    ],
)
def test_errors_name_line_and_remedy(text, error):
    with pytest.raises(OutputError, match=error):
        parse_jobs(text, DRIVE)


def test_the_command_plays_a_job_file(command, spec_file, tmp_path):
    job = tmp_path / "mix.fio"
    job.write_text(
        "[global]\nioengine=libaio\nsize=200k\nio_size=2m\n\n[readers]\nrw=randread\niodepth=4\nnumjobs=2\n\n"
        "[writer]\nrw=write\nrate_iops=2000\niodepth=1\nstonewall\n"
    )
    done = command("run", spec_file, "--fio", job, "--out", tmp_path / "out", "--verify")
    assert done.returncode == 0, done.stderr
    assert "fio: without a counterpart: [writer] stonewall" in done.stderr
    assert "fio: without effect on a simulated drive: ioengine" in done.stderr
    assert "readers-0" in done.stdout
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    clients = summary["clients"]
    assert set(clients) == {"readers-0", "readers-1", "writer"}
    assert clients["writer"]["host"]["write"]["count"] == 512
    assert sum(of["host"]["read"]["count"] for of in clients.values()) == summary["host"]["read"]["count"] == 1024
    assert clients["readers-0"]["waiting"] is None
    # The resolved spec of the result makes the same run.
    again = command("run", tmp_path / "out" / "spec.toml", "--out", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    repeated = json.loads((tmp_path / "again" / "summary.json").read_text())
    assert {**repeated, "verified": None} == {**summary, "verified": None}


def test_a_job_file_that_is_absent_is_an_error(command, spec_file):
    done = command("run", spec_file, "--fio", "none.fio")
    assert done.returncode == 2
    assert "cannot read the fio job file" in done.stderr
