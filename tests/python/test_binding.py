"""Every public name of the compiled core is in its stub, and the package exposes it."""

import ast
import json
import pkgutil
from pathlib import Path

import nandlab
import pytest
from nandlab import _core

STUB = Path(__file__).parents[2] / "python" / "nandlab" / "_core.pyi"

# Where the package exposes each name of the core. These tests fail for a new name of the core until it is listed here.
WRAPPED = {
    "NandlabError": "NandlabError",
    "SpecError": "SpecError",
    "TraceError": "TraceError",
    "RunError": "RunError",
    "toml_lines": "study.source.parse",
    "version": "version",
    "Spec": "Spec",
    "schema": "schema",
    "result_schema": "RunResult.summary",
    "memory_needed": "memory.check",
    "workload_facts": "spec.fit",
    "fit_to_writes": "spec.fit",
    "presets": "presets",
    "policies": "policies",
    "Policy": "policy",
    "declare_policy": "policy",
    "declared_policies": "python_policies.load_files",
    "Random": "python_policies.policy",
    "Lane": "Lane",
    "Cache": "Cache",
    "CacheCounts": "CacheCounts",
    "FlashRead": "FlashRead",
    "parquet_file": "RunResult.save",
    "Run": "run",
    "Result": "RunResult",
    "SharedDrives": "simulate.run_sharing",
    "Drive": "Drive",
    "serve": "live.serve",
    "Replay": "simulate.replay",
    "recording_header": "simulate.recorded_spec",
    "recording_moments": "powertest",
    "Cutter": "powertest",
    "ImageServer": "powertest",
    "Codec": "codec",
    "reliability": "reliability",
    "voltages": "reliability",
    "trace_stat": "trace.stat",
    "trace_stat_by_device": "trace.stat_by_device",
    "trace_convert": "trace.convert",
    "trace_formats": "trace.formats",
    "profiles": "trace.profiles",
    "kept_traces": "trace.kept",
    "kept_drives": "cli.doctor.kept_drives",
    "build_identity": "study.plan.build_identity",
}


def stub_names():
    names = {}
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            names[node.name] = None
        elif isinstance(node, ast.ClassDef):
            inside = (item for item in node.body if isinstance(item, (ast.FunctionDef, ast.AnnAssign)))
            names[node.name] = {item.name if isinstance(item, ast.FunctionDef) else item.target.id for item in inside}
    return names


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def reach(path):
    return pkgutil.resolve_name(f"nandlab.{path}")


def test_every_name_of_the_stub_is_exposed_by_the_package():
    assert stub_names().keys() == WRAPPED.keys()
    for path in WRAPPED.values():
        assert reach(path) is not None
    for name in nandlab.__all__:
        assert reach(name) is not None


def test_the_core_and_its_stub_have_the_same_names():
    stub = stub_names()
    assert public(_core) == stub.keys()
    for name, members in stub.items():
        thing = getattr(_core, name)
        if isinstance(thing, type) and issubclass(thing, Exception):
            continue
        if members is not None:
            assert public(thing) == {member for member in members if not member.startswith("_")}, name
    for path in WRAPPED.values():
        assert reach(path) is not None


def test_the_errors_of_the_core_have_one_base_class():
    for name in ("SpecError", "TraceError", "RunError"):
        assert issubclass(getattr(_core, name), _core.NandlabError)
    with pytest.raises(_core.SpecError) as caught:
        _core.Spec.load("no_such_key = 1\n", "bad.toml", ".", [])
    assert "bad.toml" in str(caught.value)
    assert {"origin", "line", "key", "message", "remedy"} <= caught.value.errors[0].keys()


def test_lists_of_the_core_have_the_types_of_the_stub():
    json.loads(_core.schema())
    assert all(isinstance(name, str) and isinstance(text, str) for name, text in _core.presets())
    assert all({"slot", "name", "description"} <= row.keys() for row in _core.policies())
    assert all(isinstance(name, str) and isinstance(text, str) for name, text in _core.trace_formats())
    assert all("name" in row for row in _core.profiles())
