"""`nandlab codec`: frames are counted once, in any order; what is extrapolated is said; wrong input has a remedy."""

import json
import math
import os
import signal
import subprocess
import sys
import time

import nandlab
import numpy as np
import pytest
from nandlab import _core
from nandlab.ldpc.measure import UNSEEN, _below, _mixed
from nandlab.ldpc.parts import PART, At, Counts, Parts

#: Rate 1/2, 6 bits: each check has three bits. Two columns share one check.
ALIST = "6 3\n2 3\n2 2 2 1 1 1\n3 3 3\n1 2\n2 3\n1 3\n1\n2\n3\n1 3 4\n1 2 5\n2 3 6\n"


def whole(folder, **options):
    """A small measurement."""
    given = {"references": (1, 3), "frames": 250, "out": folder, "workers": 2, **options}
    return nandlab.codec("8/9", size=2048, **given)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    return whole(tmp_path_factory.mktemp("codec") / "a")


def test_boundaries_are_those_of_the_shipped_tables(measured):
    hard, soft = measured.curves
    # The tables have 0.00761 and 0.01202; 250 frames a point leave a standard error of about 1 %.
    assert hard.boundary == pytest.approx(0.00761, rel=0.05)
    assert soft.boundary == pytest.approx(0.01202, rel=0.05)
    assert (measured.bits, measured.data_bits) == (18_432, 16_385)
    assert hard.unknown == pytest.approx(-sum(p * math.log2(p) for p in (hard.boundary, 1 - hard.boundary)), rel=1e-9)
    for curve in measured.curves:
        rates = [point.rate for point in curve.points]
        assert rates[0] == 0 and rates[-1] > 0.2
        for point in curve.points:
            low, high = point.interval
            assert low <= point.rate <= high and point.counts.frames == 250
        easy = curve.points[0].iterations[0]
        assert 1 < easy < curve.points[6].iterations[0]


def test_a_measurement_does_not_depend_on_threads_or_interruptions(measured, tmp_path):
    again = whole(tmp_path / "b", workers=1)
    assert again.to_dict() == measured.to_dict()
    path = tmp_path / "b" / "parts.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    # A stop in the middle of a line.
    path.write_text("".join(lines[: len(lines) // 2]) + lines[-1][:7])
    third = whole(tmp_path / "b")
    assert third.to_dict() == measured.to_dict()
    assert 0 < third.parts_done < again.parts_done
    fourth = whole(tmp_path / "b")
    assert fourth.parts_done == 0 and fourth.parts_kept == len(lines) - 1
    with pytest.raises(nandlab.OutputError, match="frames of another code, placement, seed or number of iterations"):
        whole(tmp_path / "b", seed=2)


def test_the_mixture_is_the_binomial_sum_and_says_what_it_extrapolates(measured):
    mixture = measured.mixture
    assert mixture is not None
    # A naive sum over the measured numbers of errors, by linear interpolation.
    errors = np.array([one for one, _ in mixture.points])
    failed = np.maximum.accumulate([at.failed / at.frames for _, at in mixture.points])
    k = np.arange(errors[0], 2 * errors[-1])
    rate_of = np.interp(k, errors, failed)
    bits = measured.bits
    logs = [math.lgamma(bits + 1) - math.lgamma(one + 1) - math.lgamma(bits - one + 1) for one in k.tolist()]
    for rber, rate, known in zip(mixture.rbers, mixture.rates, mixture.known, strict=True):
        naive = float(np.exp(np.array(logs) + k * math.log(rber) + (bits - k) * math.log1p(-rber)) @ rate_of)
        if known:
            assert rate == pytest.approx(naive, rel=2 * UNSEEN)
    # The rates rise, the lowest ones are extrapolated, and what is called measured does not go below what frames allow.
    assert (np.diff(mixture.rates) > 0).all()
    assert not mixture.known[0] and mixture.known[-1]
    assert 0.001 < mixture.rate_min < 0.05
    data = json.loads((measured.path / "codec.json").read_text())
    assert [row["extrapolated"] for row in data["mixture"]["curve"]] == (~mixture.known).tolist()


def test_no_failures_give_no_measured_rate():
    points = [(10, Counts(1000, 0)), (20, Counts(1000, 3))]
    assert np.isinf(_below(points, 1000, np.array([0.01]))).all()
    # FER(k) = exp(k - 40) exactly: the extension is the sum of the binomial terms below 34.
    points = [(one, Counts(10**9, round(10**9 * math.exp(one - 40)))) for one in range(34, 40)]
    found = _below(points, 1000, np.array([0.02]))[0]
    terms = (math.comb(1000, one) * 0.02**one * 0.98 ** (1000 - one) * math.exp(one - 40) for one in range(34))
    assert found == pytest.approx(sum(terms), rel=1e-4)
    assert callable(_mixed)


def test_the_page_has_intervals_and_a_dashed_extrapolation(measured):
    text = (measured.path / "codec.html").read_text()
    for part in ("extrapolated", "no measured capability", "Iterations of decoded frames", "95 % interval"):
        assert part in text, part
    table = (measured.path / "codec.csv").read_text().splitlines()
    assert len(table) == 1 + sum(len(curve.points) for curve in measured.curves)


def test_the_command_measures_a_file_and_refuses_wrong_input(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    done = command("codec", "8/9", "--size", "2KiB", "--references", "1", "--frames", "250", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["code"] == "8_9-2KiB"
    for arguments, said in (
        (["7/8"], "no code of rate 7/8 with 4 KiB of data"),
        (["8/9", "--references", "0"], "expected numbers from 1 to 7"),
        (["8/9", "--references", "a"], "expected numbers from 1 to 7 separated by commas"),
        (["8/9", "--frames", "10"], "expected a number from 250"),
        (["8/9", "--size", "3MB"], "expected a size such as 4KiB"),
        (["8/9", "--spacing", "9"], "from 0.01 to 2"),
        (["8/9", "--placement", "mmi", "--spacing", "0.2"], "--spacing has no effect"),
        (["nothing.alist"], "nothing.alist"),
        (["nothing.alist", "--size", "2KiB"], "--size has no effect with the file nothing.alist"),
        (["mine.txt"], "a file whose name ends in .alist or .qc"),
    ):
        done = command("codec", *arguments)
        assert done.returncode == 2 and said in done.stderr, (arguments, done.stderr)


def test_parts_of_a_file_add_up(tmp_path):
    file = tmp_path / "small.alist"
    file.write_text(ALIST)
    code = _core.Codec("small", 0, file)
    assert code.bits == (6, 3)
    parts = Parts(tmp_path / "out", code, {}, spacing=0.25, seed=5, workers=2)
    at = At(1, 0.1, 0)
    found = parts.measure([(at, 4 * PART)], lambda _done, _total: None)[at]
    sums = [code.measure(0.1, 1, 0.25, 5, frames) for frames in ((0, 500), (500, 1000))]
    assert found == tuple(map(sum, zip(*sums, strict=True)))
    assert 0 < found.failed < found.frames == 1000


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_keeps_finished_parts(tmp_path):
    arguments = [sys.executable, "-m", "nandlab", "codec", "8/9", "--frames", "100000", "--workers", "1"]
    process = subprocess.Popen(arguments, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    path = tmp_path / "out" / "8_9-4KiB-codec" / "parts.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (path.exists() and path.read_text().count("\n") > 3):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "kept" in said
    assert path.read_text().count("\n") > 3


def test_a_code_of_seven_bits_is_measured(tmp_path):
    """Numbers of errors beyond the bits of a codeword ended in a panic of the channel."""
    file = tmp_path / "hamming.alist"
    columns = ["1", "2", "1 2", "3", "1 3", "2 3", "1 2 3"]
    lists = [*(f"{column} 0 0"[:5] for column in columns), "1 3 5 7", "2 3 6 7", "4 5 6 7"]
    file.write_text("\n".join(["7 3", "3 4", "1 1 2 1 2 2 3", "4 4 4", *lists]) + "\n")
    found = nandlab.codec(file, references=[1], frames=PART, out=tmp_path / "out")
    assert (found.bits, found.data_bits) == (7, 4) and found.mixture is not None
    assert [errors for errors, _ in found.mixture.points] == list(range(1, 8))


def test_the_levels_of_a_code_name_the_boundary_of_their_limits(tmp_path, command):
    spec = tmp_path / "worn.toml"
    spec.write_text('[drive]\npreset = "modern-tlc-1t"\n[reliability]\nrber = "vth-tlc"\n[ecc]\nlevels = "codec"\n')
    done = command("reliability", spec)
    assert done.returncode == 0, done.stderr
    assert "at a Gaussian boundary" in done.stdout
    done = command("reliability", spec, "--set", "ecc.levels=[{ rber_max = 0.01 }]")
    assert "Gaussian" not in done.stdout
