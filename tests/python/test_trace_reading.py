"""What commands say of a trace: how it is understood, and what is refused."""

import json

import pytest
from test_cli import refused

COLUMNS = "time_ms, device, offset, size, op(1=read, 0=write)"
#: DiskSim's columns in ms, which are MQSim's in seconds too.
DISKSIM = "".join(f"{i}.250 0 {i * 8} 8 {i % 2}\n" for i in range(20))
#: Milliseconds, device, address and length in bytes, and the operation.
BYTES = "".join(f"{i}.5 0 {i * 4096} 4096 {i % 2}\n" for i in range(20))
MSR = "".join(f"{128166372003061629 + i},hm,0,Read,0,4096,26\n" for i in range(20))


@pytest.fixture
def traces(tmp_path):
    for name, text in (("disksim", DISKSIM), ("bytes", BYTES), ("bytes.csv", BYTES), ("msr", MSR)):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_stat_shows_format_units_and_first_record_and_warns_of_other_formats(command, traces):
    done = command("trace", "stat", "disksim", cwd=traces)
    shown = " ".join(done.stdout.split())
    assert done.returncode == 0 and "format disksim units time (ms, decimal), device" in shown
    assert "first_record 0.00025 s, device 0, write, offset 0, length 4096" in shown
    assert "but mqsim with times in s reads the same lines as other requests" in done.stderr
    assert "first record as mqsim with times in s: 0.25 s, device 0" in done.stderr
    for options in (["disksim", "--format", "disksim"], ["msr"]):
        assert command("trace", "stat", *options, cwd=traces).stderr == ""


def test_columns_describe_any_text(command, traces):
    refused(command("trace", "stat", "bytes", cwd=traces), "bytes:1: field block", "like bytes", "--columns")
    done = command("trace", "stat", "bytes", "--columns", COLUMNS, "--json", cwd=traces)
    found = json.loads(done.stdout)
    assert (found["requests"], found["bytes"], found["duration_s"]) == (20, 20 * 4096, 0.019)
    assert found["read_as"]["format"] == "columns" and found["read_as"]["units"] == COLUMNS
    wrong = command("trace", "stat", "bytes", "--columns", "time, offset, size, op", cwd=traces)
    refused(wrong, "--columns: column 1: time has no unit", "time_ms")
    both = command("trace", "stat", "bytes", "--columns", COLUMNS, "--format", "msr", cwd=traces)
    refused(both, "either a format or the columns")


def test_a_run_shows_how_its_trace_is_understood(command, traces):
    spec = "[drive]\npages_per_block = 64\nblocks_per_plane = 64\n[workload]\nbeyond = 'wrap'\n"
    (traces / "run.toml").write_text(spec + "trace = 'disksim'\n")
    done = command("run", "run.toml", cwd=traces)
    assert "trace  disksim (detected): time (ms, decimal), device" in done.stdout
    assert "first record  0.00025 s, device 0, write, offset 0, length 4096" in done.stdout
    assert "remedy: name the format with workload.format" in done.stderr
    (traces / "run.toml").write_text(spec + f"trace = 'bytes'\nformat = {{ columns = '{COLUMNS}' }}\n")
    done = command("run", "run.toml", cwd=traces)
    assert "trace  columns (named): time_ms" in done.stdout and "warning: the trace" not in done.stderr


def test_options_without_effect_are_refused(command, traces):
    given = command("trace", "stat", "msr", "--time-unit", "us", cwd=traces)
    refused(given, "--time-unit has no effect: the format msr fixes the unit of time")
    for format in ("'msr'", "{ columns = 'time_ms, offset, size, op' }"):
        (traces / "run.toml").write_text(f"[workload]\ntrace = 'msr'\nformat = {format}\ntime_unit = 'us'\n")
        refused(command("spec", "check", "run.toml", cwd=traces), "workload.time_unit", "has no effect", "mqsim")
    (traces / "run.toml").write_text("[workload]\ntrace = 'msr'\nformat = { columns = 'time_ms, lba, size, op' }\n")
    refused(command("spec", "check", "run.toml", cwd=traces), "workload.format", "lba has no unit", "lba*512")


def test_a_trace_in_place_of_a_spec_is_told_apart(command, traces):
    ran = command("run", "bytes.csv", cwd=traces)
    refused(ran, "bytes.csv:1: not TOML", "a trace is no spec", "nandlab trace stat")


def test_a_check_notes_that_the_trace_is_missing(command, traces):
    (traces / "run.toml").write_text("[drive]\nblocks_per_plane = 64\n[workload]\ntrace = 'nowhere.csv'\n")
    checked = command("spec", "check", "run.toml", cwd=traces)
    assert checked.returncode == 0 and "workload.trace: there is no file nowhere.csv" in checked.stderr
    (traces / "run.toml").write_text("[drive]\nblocks_per_plane = 64\n[workload]\ntrace = 'msr'\n")
    assert command("spec", "check", "run.toml", cwd=traces).stderr == ""


@pytest.mark.parametrize("option", ["--seed", "--requests", "--logical-bytes"])
@pytest.mark.parametrize("number", ["-1", "99999999999999999999999"])
def test_a_number_out_of_range_is_one_line_with_a_remedy(command, option, number):
    ran = command("trace", "stat", "--profile", "msr/hm_0", option, number)
    assert ran.returncode == 2 and f"{number} is out of range" in ran.stderr
    assert "remedy: a whole number from 0" in ran.stderr and "Traceback" not in ran.stderr
