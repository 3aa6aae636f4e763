"""Kept traces: a run of a kept trace has the results of the text, and `nandlab doctor` names the folder."""

import json
import os

import pytest
from conftest import SPEC, run_two_at_once

LINES = 6000
#: Files of a result that differ between equal runs.
MEASURED = "sim.json"


@pytest.fixture
def workload(tmp_path):
    """A trace with damaged lines, and the specs that play it."""
    lines = [f"{1000 + 50 * i},h,0,{'Read' if i % 3 else 'Write'},{i * 7 % 300 * 4096},4096,0" for i in range(LINES)]
    lines[5] = lines[4500] = "damaged"
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    drive = SPEC.partition("[workload")[0]
    for name, keys in {"s": "lenient = true", "strict": "", "part": "lenient = true\nrequests_max = 4800"}.items():
        (tmp_path / f"{name}.toml").write_text(f'{drive}[workload]\ntrace = "t.csv"\n{keys}\n')
    return tmp_path


def result(command, here, spec, cache):
    out = here / f"{spec}-{len(list(here.iterdir()))}"
    ended = command("run", f"{spec}.toml", "--out", out, env=os.environ | {"NANDLAB_CACHE": cache})
    assert ended.returncode == 0, ended.stderr
    return {file.name: file.read_bytes() for file in out.iterdir() if file.name != MEASURED}


def kept(command, cache):
    return json.loads(command("doctor", "--json", env=os.environ | {"NANDLAB_CACHE": cache}).stdout)["kept_traces"]


def test_runs_of_a_kept_trace_have_the_same_results(command, workload):
    cache = str(workload / "cache")
    whole = result(command, workload, "s", "off")
    part = result(command, workload, "part", "off")
    assert json.loads(whole["summary.json"])["requests"] != json.loads(part["summary.json"])["requests"]
    assert result(command, workload, "part", cache) == part
    for _ in range(2):
        assert result(command, workload, "s", cache) == whole
        assert kept(command, cache)["traces"] == 1
    assert result(command, workload, "part", cache) == part


def test_an_error_is_reported_in_each_run(command, workload):
    cache = str(workload / "cache")
    texts = set()
    for folder in ("off", cache, cache):
        ended = command("run", "strict.toml", env=os.environ | {"NANDLAB_CACHE": folder})
        assert ended.returncode == 2 and "t.csv:6: " in ended.stderr
        texts.add(ended.stderr)
    assert len(texts) == 1
    assert kept(command, cache)["traces"] == 0


def test_two_runs_at_once(command, workload):
    cache = str(workload / "cache")
    run_two_at_once(workload, "s.toml", cache)
    assert kept(command, cache)["traces"] == 1


def test_doctor_names_the_folder(command, tmp_path):
    cache = tmp_path / "cache"
    assert kept(command, str(cache)) == {
        "folder": str(cache / "traces"),
        "traces": 0,
        "bytes": 0,
        "bytes_max": 4 << 30,
    }
    assert kept(command, "off") is None
    text = command("doctor", env=os.environ | {"NANDLAB_CACHE": str(cache)}).stdout
    assert f"{cache / 'traces'}: 0 (0 B of 4 GiB)" in text
