"""The Python types of results agree with the declarations of the core and with the files that it writes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import result_types as tool
from conftest import reseal

ROOT = Path(__file__).resolve().parents[2]
SMALL = """
seed = 3
[drive]
channels = 2
dies_per_chip = 2
blocks_per_plane = 32
pages_per_block = 16
page_size = "4KiB"
op = 0.4
[output]
series_rows = 64
[precondition]
used = 0.8
[workload]
synthetic = { requests = 4000, read_fraction = 0.3, size = "4KiB" }
"""
REFRESHED = {
    "ecc.levels": "laldpc",
    "reliability.rber": "vth",
    "drive.endurance": 10_000,
    "reliability.pe_cycles": 8000,
    "reliability.retention": "30d",
    "reliability.clock_scale": 864_000.0,
}
#: Runs that together have every section of the summary.
RUNS = {
    "plain": {},
    "levels, map, copybacks, known errors": {
        **REFRESHED,
        "ftl.map.demand": {"cache": "4KiB", "eviction": "lru"},
        "migration.policy.rcopyback-greedy.limit": 2,
        "refresh.policy.ec-cache": {"size": "16KiB", "hot_reads": 2},
    },
    "partial refresh": {**REFRESHED, "refresh.policy.partial.min_free_blocks": 0.0},
    "power loss": {
        "cache.size": "256KiB",
        "capacitor.capacitance": "1mF",
        "power.cut_after_requests": 2000,
    },
    "link": {"host.link": {"mb_per_s": 20, "latency": "10us"}},
    "controller": {"host.controller": {"read": "5us", "write": "5us"}},
    "clients": {
        "workload.clients": [
            {"name": "a", "requests": 900, "arrival": {"iops": 4000}, "outstanding": 2},
            {"name": "b", "requests": 900, "read_fraction": 1.0},
        ]
    },
    "suspensions": {"timing.suspend.program": {"enter": "9us", "resume": "4us", "min_progress": "0us", "max": 3}},
}


def test_the_module_equals_the_declarations_of_the_core():
    from nandlab import _core

    written = tool.TARGET.read_text()
    assert written == tool.generate(_core.result_schema()), "run `make result-types`"
    ruff = Path(sys.executable).with_name("ruff")
    if ruff.exists():
        subprocess.run([ruff, "format", "--check", "--quiet", tool.TARGET], check=True, cwd=ROOT)


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("name", RUNS)
def test_written_keys_and_declared_keys_are_the_same(name, verify):
    import nandlab

    result = nandlab.run(SMALL, sets=RUNS[name], verify=verify)
    for text, record in ((result.summary_text, result.summary), (result.power_text, result.power)):
        if text is not None:
            assert json.dumps(json.loads(msgspec.json.encode(record))) == json.dumps(json.loads(text))
    seen = {key for key, value in result.summary.items() if value is not None}
    assert (
        seen
        >= {
            "plain": {"waf", "space"},
            "levels, map, copybacks, known errors": {"map", "migration", "refresh"},
            "partial refresh": {"refresh"},
            "power loss": {"power", "capacitor"},
            "link": {"link"},
            "controller": {"controller"},
            "clients": {"clients", "by_tag"},
            "suspensions": {"suspensions"},
        }[name]
    )


def test_results_of_examples_are_read_by_the_types(tmp_path):
    import nandlab

    for example in ("combined", "power-loss"):
        result = nandlab.run(ROOT / "examples" / f"{example}.toml", sets={"workload.synthetic.requests": 20_000})
        assert result.summary.requests == 20_000


def test_a_value_is_found_by_its_path():
    import nandlab

    summary = nandlab.run(SMALL, sets=RUNS["levels, map, copybacks, known errors"]).summary
    assert summary["cache"] is summary.cache
    assert summary["map.read.hits"] == summary.map.read.hits > 0
    assert summary["ecc.levels.1"] == summary.ecc.levels[1]
    assert dict(summary.erases) == {"mean": summary.erases.mean, "max": summary.erases.max, "min": summary.erases.min}
    for path in ("nothing", "cache.nothing", "waf.nothing", "requests.1"):
        with pytest.raises(KeyError, match=re.escape(path)):
            _ = summary[path]
    with pytest.raises(AttributeError):
        summary.waf = 1.0


@pytest.mark.parametrize("change", ["a key less", "a key more", "another type"])
def test_a_result_of_another_version_is_refused(tmp_path, change):
    import nandlab

    nandlab.run(SMALL, tmp_path / "r")
    path = tmp_path / "r" / "summary.json"
    summary = json.loads(path.read_text())
    if change == "a key less":
        del summary["cache"]["write_hits"]
    elif change == "a key more":
        summary["colour"] = "blue"
    else:
        summary["requests"] = "many"
    path.write_text(json.dumps(summary))
    reseal(tmp_path / "r")
    message = r"summary\.json is from another version of nandlab .*: run the command again"
    with pytest.raises(nandlab.OutputError, match=message):
        nandlab.RunResult.read(tmp_path / "r")


def test_a_notebook_shows_the_screen_output():
    import nandlab

    result = nandlab.run(SMALL, sets=RUNS["power loss"])
    shown = result._repr_mimebundle_()["text/html"]
    for text in ("IOPS", "write cache", "power loss", "latency, µs"):
        assert text in shown, text
