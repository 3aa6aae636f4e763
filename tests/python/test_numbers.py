"""Scalars of numpy wherever the interface takes a number."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import nandlab
import numpy as np
import pytest
from conftest import SPEC
from nandlab.spec import fit, toml_value
from study_lab import BASE, STUDY

REAL = [np.float64, np.float32, np.float16]
WHOLE = [np.int64, np.int32, np.uint8]
WORN = {"drive.endurance": 60, "drive.op": 0.6, "precondition.used": 0.5, "precondition.valid": 0.9}


@pytest.mark.parametrize("kind", REAL)
def test_a_setting_may_be_a_real_of_numpy(kind: type) -> None:
    """`np.float64` was printed as `np.float64(0.5)`, which is no TOML; other types raised `TypeError`."""
    spec = nandlab.load(SPEC, {"drive.op": kind(0.5), "workload.synthetic.read_fraction": kind(1)})
    assert spec == nandlab.load(SPEC, {"drive.op": 0.5, "workload.synthetic.read_fraction": 1.0})
    assert spec.with_({"drive.op": kind(0.25)}).logical_bytes == nandlab.load(SPEC, {"drive.op": 0.25}).logical_bytes


@pytest.mark.parametrize("kind", WHOLE)
def test_a_setting_may_be_an_integer_of_numpy(kind: type) -> None:
    sets = {"seed": kind(7), "workload.synthetic.size": {"4KiB": kind(1), "8KiB": np.float32(3)}}
    assert nandlab.load(SPEC, sets) == nandlab.load(
        SPEC, {"seed": 7, "workload.synthetic.size": {"4KiB": 1, "8KiB": 3.0}}
    )


def test_values_in_toml() -> None:
    assert toml_value(np.bool_(True)) == "true" and toml_value(np.bool_(False)) == "false"
    assert toml_value(np.str_("fifo")) == '"fifo"'
    assert toml_value(np.array(3)) == "3"
    assert toml_value(np.array([1.5, 2.0])) == "[1.5, 2.0]"
    assert toml_value(Fraction(1, 4)) == "0.25"
    assert toml_value(np.float64(1) / 3) == repr(1 / 3)
    assert toml_value(np.float32(0.1)) == repr(float(np.float32(0.1)))
    assert toml_value([{"pe": np.int64(1)}]) == "[{ pe = 1 }]"
    with pytest.raises(TypeError, match="a value of a spec cannot be of type complex"):
        toml_value(np.complex128(1))


def test_runs_lives_comparisons_and_studies_take_numbers_of_numpy(tmp_path: Path) -> None:
    sets = {"workload.synthetic.requests": np.int64(100)}
    assert nandlab.run(SPEC, sets=sets).summary.requests == 100
    numbers = {"windows": np.int64(2), "requests": np.int32(500)}
    lived = nandlab.life(SPEC, tmp_path / "np", sets=WORN, **numbers)
    plain = nandlab.life(SPEC, tmp_path / "plain", sets=WORN, windows=2, requests=500)
    assert lived.facts == plain.facts
    assert (tmp_path / "np" / "life.json").read_bytes() == (tmp_path / "plain" / "life.json").read_bytes()
    compared = nandlab.compare(SPEC, {"drive.op": np.float64(0.5)}, seeds=np.int64(2), workers=np.int64(1), sets=sets)
    assert compared.to_dict() == nandlab.compare(SPEC, {"drive.op": 0.5}, seeds=2, workers=1, sets=sets).to_dict()
    assert fit(nandlab.load(SPEC), np.float32(5.0)) == fit(nandlab.load(SPEC), 5.0)
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "s.toml").write_text(STUDY)
    study = nandlab.Study.load(tmp_path / "s.toml", seeds=np.int64(2))
    assert len(study.runs) == len(nandlab.Study.load(tmp_path / "s.toml", seeds=2).runs)


def test_the_error_model_takes_numbers_of_numpy() -> None:
    spec = nandlab.load(SPEC, {"reliability.rber": "vth", "ecc.levels": "laldpc"})
    cycles, ages = np.array([0, 3000]), np.array([0.0, 86_400.0], dtype=np.float32)
    found = nandlab.reliability(spec, list(cycles), list(ages), reads=np.int64(5), copybacks=np.uint8(1))
    same = nandlab.reliability(spec, [0, 3000], [0.0, 86_400.0], reads=5, copybacks=1)
    assert found.to_dict() == same.to_dict()


def test_a_stepped_drive_takes_numbers_of_numpy() -> None:
    drive, same = (nandlab.Drive(nandlab.load(SPEC)) for _ in range(2))
    assert drive.write(np.int64(4096), np.uint32(4096), fua=np.bool_(True)) == same.write(4096, 4096, fua=True)
    drive.advance(np.int64(1_000_000))
    same.advance(1_000_000)
    drive.run_until_idle(np.float32(10.0))
    same.run_until_idle(10.0)
    assert drive.completions() == same.completions() and drive.now_ns == same.now_ns
