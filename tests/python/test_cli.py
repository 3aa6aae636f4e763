"""The command `nandlab`, run as a process."""

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SPEC, hidden, over

RESULT = {
    "nandlab-result.json",
    "summary.json",
    "smart.json",
    "sim.json",
    "spec.toml",
    "series.parquet",
    "dies.parquet",
    "latency.parquet",
    "blocks.parquet",
}


def names(directory):
    return {path.name for path in Path(directory).iterdir()}


def refused(done, *parts):
    """Asserts exit status 2, the `parts` on stderr, no traceback, and nothing on stdout."""
    assert done.returncode == 2, done
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    for part in parts:
        assert part in done.stderr, done.stderr


def test_a_run_writes_a_complete_result_and_shows_its_summary(command, spec_file, tmp_path):
    done = command("run", spec_file)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert names(tmp_path / "out" / "small") == RESULT
    for word in ("IOPS", "WAF", "p99.9", "out/small"):
        assert word in done.stdout
    assert json.loads((tmp_path / "out/small/summary.json").read_text())["complete"] is True
    sim = json.loads((tmp_path / "out/small/sim.json").read_text())
    assert {"wall_s", "requests_per_s", "page_ops_per_s", "peak_rss_mb"} <= sim.keys()
    assert hidden(tmp_path) == []


def test_json_prints_the_bytes_of_the_summary(command, spec_file, tmp_path):
    done = command("run", spec_file, "--json", "--out", "here")
    assert done.stdout == (tmp_path / "here" / "summary.json").read_text()
    assert json.loads(done.stdout)["requests"] == 3000


def test_set_overrides_a_key(command, spec_file):
    done = command("run", spec_file, "--json", "--set", "workload.synthetic.requests=77")
    assert json.loads(done.stdout)["requests"] == 77


def test_settings_after_the_spec_need_no_option(command, spec_file):
    for words in (
        ["seed=3", "workload.synthetic.requests=77"],
        ["--json", "workload.synthetic.requests=77", "drive.op=0.3"],
    ):
        done = command("run", spec_file, *words)
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["requests"] == 77
    twice = command(
        "run", spec_file, "--set", "workload.synthetic.requests=5", "workload.synthetic.requests=6", "--json"
    )
    assert json.loads(twice.stdout)["requests"] == 6


def test_policies_fit_the_screen(command):
    # Processes of their own list the built-in policies alone, not those that other tests have declared.
    shown, listed = command("spec", "policies", columns=80), command("spec", "policies", "--json")
    assert (shown.returncode, listed.returncode) == (0, 0), shown.stderr + listed.stderr
    lines, rows = shown.stdout.splitlines(), json.loads(listed.stdout)
    assert max(map(len, lines)) <= 80 and len(lines) < 300
    assert {row["slot"] for row in rows} <= set(lines)
    # The static orders of allocation are one entry.
    assert sum("23 orders; " in line for line in lines) == 1
    names = {line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "}
    assert {row["name"] for row in rows if row["slot"] != "ftl.allocation"} <= names


def test_two_runs_write_the_same_bytes_except_sim_json(command, spec_file, tmp_path):
    for out in ("a", "b"):
        assert command("run", spec_file, "--out", out, "--set", "output.requests=true").returncode == 0
    assert names(tmp_path / "a") == RESULT | {"requests.parquet"}
    for name in names(tmp_path / "a") - {"sim.json"}:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_a_refused_spec_leaves_no_output(command, spec_file, tmp_path):
    spec_file.write_text(SPEC + "[bogus]\n")
    refused(command("run", spec_file), "small.toml:15: bogus: unknown section")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        ("_core.RunError('the drive is full')", 2, "the drive is full"),
        ("ZeroDivisionError('a bug')", 1, "ZeroDivisionError: a bug"),
        ("BaseException('a panic')", 1, "BaseException: a panic"),
    ],
)
def test_a_failed_run_leaves_no_output(command, spec_file, tmp_path, error, status, message):
    """A panic of the core is a `BaseException`, no `Exception`. A bug shows a traceback and where to report it."""
    failing = over(f"class Run:\n    def __init__(self, *_): pass\n    def step(self, ms): raise {error}\n")
    done = command("run", spec_file, "--out", "r", program=failing)
    assert done.returncode == status and message in done.stderr
    for text in ("Traceback", "This is a bug in nandlab"):
        assert (text in done.stderr) == (status == 1)
    assert not (tmp_path / "r").exists()
    assert hidden(tmp_path) == []


def test_a_spec_that_is_not_found_suggests_a_similar_name(command, spec_file, tmp_path):
    refused(command("run", tmp_path / "smal.toml"), "no spec", "did you mean", "small.toml")
    refused(command("run", tmp_path / "nowhere" / "small.toml"), "no spec")


def test_a_directory_is_not_a_spec(command, spec_file, tmp_path):
    refused(command("run", tmp_path), "is a directory", "small.toml")


def test_a_spec_that_is_no_text_is_refused_with_its_line(command, spec_file):
    spec_file.write_bytes(b"seed = 1\n\xff\xfe\n")
    refused(command("run", spec_file), "small.toml:2", "UTF-8")


def test_an_earlier_result_is_replaced(command, spec_file, tmp_path):
    command("run", spec_file, "--out", "r", "--set", "workload.synthetic.requests=5")
    command("report", "r")
    assert command("run", spec_file, "--out", "r").returncode == 0
    assert json.loads((tmp_path / "r/summary.json").read_text())["requests"] == 3000
    assert names(tmp_path / "r") == RESULT, "the report of the earlier result is still there"


def test_a_directory_without_a_result_is_replaced_only_with_force(command, spec_file, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    refused(command("run", spec_file, "--out", "mine"), "thesis.tex", "--force")
    assert (tmp_path / "mine" / "thesis.tex").exists()
    assert command("run", spec_file, "--out", "mine", "--force").returncode == 0
    assert names(tmp_path / "mine") == RESULT


def test_a_result_with_foreign_files_in_it_is_kept(command, spec_file, tmp_path):
    command("run", spec_file, "--out", "r")
    (tmp_path / "r" / "notes.txt").write_text("mine")
    refused(command("run", spec_file, "--out", "r"), "notes.txt")


@pytest.mark.parametrize("out", [".", "small.toml", "small.toml/below"])
def test_an_impossible_output_is_refused_before_the_run(command, spec_file, tmp_path, out):
    before = spec_file.read_bytes()
    refused(command("run", spec_file, "--out", out, "--force", "--set", "workload.repeat=1000000"), "choose a")
    assert spec_file.read_bytes() == before
    assert hidden(tmp_path) == []


def test_a_directory_without_permission_is_refused(command, spec_file, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write to every directory")
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    refused(command("run", spec_file, "--out", locked / "r"), "no permission")


def test_a_limit_of_file_size_is_reported_with_the_path(command, spec_file, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

    done = command("run", spec_file, "--out", "r", preexec_fn=limit)
    refused(done, "cannot write r/", "exceed the size limit")
    assert not (tmp_path / "r").exists()
    assert hidden(tmp_path) == []


def test_a_full_disk_is_reported_with_the_path(command, spec_file, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small disk is not permitted")
    try:
        done = command("run", spec_file, "--out", disk / "r")
        refused(done, f"cannot write {disk}/r/", "No space left", "free some space")
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_no_progress_on_stderr_of_a_short_run(command, spec_file):
    assert command("run", spec_file, "--json").stderr == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--help"], ["run", "report", "trace", "spec", "Examples", "nandlab run"]),
        (["run", "--help"], ["--set", "--out", "--json", "--verify", "--save-drive", "--force", "Examples"]),
        (["reliability", "--help"], ["--pe", "--retention", "--susceptible", "--out", ".svg", "--json", "Examples"]),
        (["report", "--help"], ["DIR", "network", "Example"]),
        (["compare", "--help"], ["DIR|SPEC.toml", "--seeds", "--set", "--out", "--json", "baseline", "Examples"]),
        (["trace", "--help"], ["stat", "convert", "formats", "profiles"]),
        (["trace", "stat", "--help"], ["--profile", "--lenient", "--device", "--json", "Examples"]),
        (["trace", "convert", "--help"], ["--to", "--out", "--force", "Examples"]),
        (["spec", "--help"], ["check", "show", "schema", "presets", "policies"]),
        (["spec", "show", "--help"], ["default", "Examples"]),
    ],
)
def test_help_lists_commands_and_options(command, arguments, words):
    done = command(*arguments)
    assert done.returncode == 0
    for word in words:
        assert word in done.stdout


def test_version(command):
    assert re.fullmatch(r"nandlab \d+\.\d+\.\d+\n", command("--version").stdout)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["rnu"], "run"),
        (["run"], "SPEC.toml"),
        (["run", "small.toml", "--sett", "a=1"], "--set"),
        (["trace", "convert", "small.toml"], "--to"),
        (["trace", "stat"], "--profile"),
        (["trace", "stat", "small.toml", "--requests", "many"], "many"),
        (["spec", "check"], "spec"),
        (["spec", "chek"], "did you mean check?"),
        (["run", "small.toml", "--js"], "did you mean --json?"),
        (["run", "small.toml", "more.toml"], "more.toml"),
        # `compare` takes settings without --set.
        (["run", "small.toml", "gc.victim=fifo", "more"], "unexpected argument more"),
        (["report", "out", "gc.victim=fifo"], "expected one result directory, found 2"),
        (["run", "gc.victim=fifo"], "remedy: to override a key of a spec, write --set gc.victim=fifo"),
        (["--json", "run", "small.toml"], "has to follow `nandlab run`"),
        (["study", "laldpc", "--traces", "sent"], "did you mean send?"),
        (["--install-completion", "--shell", "dash"], "bash, zsh, fish"),
    ],
)
def test_a_wrong_command_line_is_refused_with_a_correction(command, spec_file, arguments, word):
    refused(command(*arguments), word)


def test_a_group_without_a_command_shows_its_help(command):
    for arguments in ([], ["trace"], ["spec"]):
        done = command(*arguments)
        assert done.returncode == 0 and done.stdout == command(*arguments, "--help").stdout


def test_options_may_stand_between_files_and_numbers_may_have_underscores(command, spec_file, tmp_path):
    (tmp_path / "b.toml").write_text(SPEC)
    rows = json.loads(command("spec", "check", spec_file, "--json", "b.toml").stdout)
    assert [row["spec"] for row in rows] == [str(spec_file), "b.toml"]
    (tmp_path / "a.csv").write_text(MSR)
    facts = command("trace", "stat", "--json", "--requests", "1_000", "a.csv", "--device", "hm_0")
    assert json.loads(facts.stdout)["requests"] == 1


def test_the_completion_is_installed_once_and_completes(command, tmp_path):
    """The shell that asks for completions gives the command line in COMP_LINE, and reads the answer from a file."""
    (tmp_path / ".bashrc").write_text("alias l=ls")
    (tmp_path / ".bashrc").chmod(0o600)
    home = {**os.environ, "HOME": str(tmp_path), "SHELL": "/bin/bash"}
    for _ in range(2):
        assert command("--install-completion", env=home).returncode == 0
    script = tmp_path / ".local/share/bash-completion/completions/nandlab"
    first, _, line = (tmp_path / ".bashrc").read_text().splitlines()
    assert first == "alias l=ls" and str(script) in line and (tmp_path / ".bashrc").stat().st_mode & 0o777 == 0o600
    assert "complete -o nospace" in script.read_text()
    assert command("--install-completion", "--shell", "fish", "--output", "nandlab.fish", env=home).returncode == 0
    assert "complete --command nandlab" in (tmp_path / "nandlab.fish").read_text()
    for typed, words in (
        ("", {"run", "trace"}),
        ("trace c", {"convert "}),
        ("run x.toml --sa", {"--save-drive "}),
        ("run x.toml --set gc.vi", {"gc.victim="}),
        ("run x.toml --set workload.synthetic.req", {"workload.synthetic.requests="}),
        ("run x.toml --set gc.victim=f", {"gc.victim=fifo "}),
        ("life x.toml --set drive.cell=", {"drive.cell=slc", "drive.cell=mlc", "drive.cell=tlc"}),
        ("run x.toml --set timing.multi_plane=t", {"timing.multi_plane=true "}),
    ):
        asked = f"nandlab {typed}"
        shell = {"COMP_LINE": asked, "COMP_POINT": str(len(asked)), "_ARGCOMPLETE_STDOUT_FILENAME": "words"}
        command(env={**home, **shell, "_ARGCOMPLETE": "1"})
        assert words <= set((tmp_path / "words").read_text().split("\013")), typed


def test_a_report_of_two_results_and_an_unknown_study_are_refused_with_a_remedy(command, tmp_path):
    refused(command("report", "a", "b"), "expected one result directory, found 2", "`nandlab compare`")
    refused(command("report"), "name a result directory")
    refused(command("study", "gabage"), "no study gabage", "garbage-collection", "name a file or its folder")
    for name in ("garbage-collection", "my-study"):
        (tmp_path / "studies" / name).mkdir(parents=True)
        (tmp_path / "studies" / name / "study.toml").touch()
    refused(command("study", "garbage-colection"), "did you mean garbage-collection?")
    refused(command("study", "x"), "choose from: ", "garbage-collection, laldpc, my-study")


def test_report_writes_one_file_and_prints_its_path(command, spec_file, tmp_path):
    command("run", spec_file, "--out", "r")
    done = command("report", "r")
    assert done.stdout == "r/report.html\n"
    assert (tmp_path / "r/report.html").read_text().startswith("<!doctype html>")
    assert command("report", "r", "--out", "other.html").stdout == "other.html\n"
    before = Path(spec_file).read_text()
    refused(command("report", "r", "--out", spec_file), "expected a file name that ends in .html")
    assert Path(spec_file).read_text() == before


def test_a_report_of_a_directory_without_a_result_is_refused(command, spec_file, tmp_path):
    refused(command("report", "nothing"), "no result directory nothing")
    refused(command("report", tmp_path), "has no nandlab result")
    refused(command("report", spec_file), "not a directory")
    command("run", spec_file, "--out", "r")
    (tmp_path / "r/series.parquet").write_bytes(b"PAR1 no longer")
    refused(command("report", "r"), "series.parquet is damaged", "run the spec again")
    command("compare", spec_file, "gc.victim=fifo", "--out", "both")
    refused(command("report", "both"), "its page is both/compare.html")


def test_spec_subcommands(command, spec_file):
    assert "ok, 1.6 MiB drive (2 MiB raw; " in command("spec", "check", spec_file).stdout
    assert "requests = 3000" in command("spec", "show", spec_file).stdout
    assert json.loads(command("spec", "show", spec_file, "--json").stdout)["seed"] == 1
    assert json.loads(command("spec", "schema").stdout)["type"] == "object"
    assert "laldpc-32g" in command("spec", "presets").stdout
    assert "gc.victim" in command("spec", "policies").stdout
    assert "msr" in [row["name"] for row in json.loads(command("trace", "formats", "--json").stdout)]
    assert "msr/hm_0" in command("trace", "profiles").stdout


def test_spec_check_continues_after_an_invalid_spec(command, spec_file, tmp_path):
    bad = tmp_path / "bad.toml"
    bad.write_text("[bogus]\n")
    done = command("spec", "check", bad, spec_file)
    assert done.returncode == 2
    assert "bogus" in done.stderr
    assert "small.toml: ok" in done.stdout


MSR = "128166372003061629,hm,0,Write,0,4096,100\n128166372003071629,hm,1,Read,4096,4096,100\n"


def test_trace_stat(command, tmp_path):
    (tmp_path / "a.csv").write_text(MSR)
    facts = json.loads(command("trace", "stat", "a.csv", "--json", "--device", "hm_0").stdout)
    assert facts["requests"] == 1
    assert "working_set_bytes" in command("trace", "stat", "--profile", "msr/hm_0", "--requests", "9").stdout
    (tmp_path / "b.csv").write_text(MSR + "malformed\n")
    refused(command("trace", "stat", "b.csv", "--device", "concatenate"), "b.csv:3")
    refused(command("trace", "stat", "c.csv"), "no trace c.csv")


def test_trace_convert_leaves_no_partial_file(command, tmp_path):
    (tmp_path / "a.csv").write_text(MSR.splitlines(keepends=True)[0])
    assert command("trace", "convert", "a.csv", "--to", "spc", "--out", "a.spc").returncode == 0
    assert (tmp_path / "a.spc").read_text().count("\n") == 1
    refused(command("trace", "convert", "a.csv", "--to", "spc", "--out", "a.spc"), "--force")
    refused(command("trace", "convert", "a.csv", "--to", "spd"), "did you mean spc")
    refused(command("trace", "convert", "a.csv", "--to", "msr", "--out", "a.csv", "--force"), "the source trace itself")
    (tmp_path / "bad.csv").write_text(MSR.splitlines(keepends=True)[0] + "malformed\n")
    refused(command("trace", "convert", "bad.csv", "--to", "spc", "--out", "b.spc"), "bad.csv:2")
    assert not (tmp_path / "b.spc").exists()
    many = command("trace", "convert", "a.csv", "a.spc", "--to", "fio-iolog", "--out", "d/")
    refused(many, "same file")
    assert hidden(tmp_path) == []


def test_a_reader_that_closes_the_pipe_early_causes_no_error(spec_file, tmp_path):
    script = f"{sys.executable} -m nandlab spec show {spec_file} | true"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert done.stderr == ""
