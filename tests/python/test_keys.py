"""Every key of the spec acts: on a drive on which it is meant to act, another value gives another result or an error.

A key that neither changes the result nor is refused would be a setting that a user changes in vain.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import nandlab
import pytest

#: A drive of 6 MiB with 16 pages a block and GC, 1,200 requests.
DRIVE = """
[drive]
channels = 2
chips_per_channel = 1
planes_per_die = 2
blocks_per_plane = 24
pages_per_block = 16
op = 0.5
endurance = 100_000
[precondition]
used = 0.8
valid = 0.7
"""
RANDOM = """
[workload]
synthetic = { requests = 1_200, read_fraction = 0.3, size = "4KiB", address = { zipf = 0.9 } }
arrival = { queue_depth = 8 }
"""
READS = RANDOM.replace("0.3", "1.0")
#: Overrides.
IDLE = ('workload.arrival={ bursts = { requests = 100, at_once = 0.9, idle = "50ms" } }',)
#: Writes of a tenth of the data, ten times over.
SKEWED = (
    "workload.synthetic.address={ hot = 0.1, share = 0.98 }",
    "workload.synthetic.read_fraction=0",
    "workload.repeat=8",
)
#: Data of a year on a worn drive: read levels 1 to 5.
OLD = (
    "ecc.levels=laldpc",
    "reliability.rber.vth.cell_to_cell=0.05",
    "reliability.pe_cycles=9000",
    'reliability.retention="365d"',
)
#: Data of a month on 3D TLC, with a read-retry table.
AGED = (
    "drive.cell=3d-tlc",
    "drive.layers=8",
    "ecc.levels.retry={ rber_max = 0.0088, entries = { steps = 32, size = 1.3 } }",
    "reliability.rber.vth-tlc={ sigma = 0.92, shift = 0.2, early = { loss = 3.0 }, layers = { ratio = 1.5 } }",
    "reliability.pe_cycles=1000",
    'reliability.retention="30d"',
)
#: Data of a year on worn TLC with the levels of a code: read levels 1 to 3.
CODED = (
    "drive.cell=3d-tlc",
    "drive.layers=8",
    "ecc.levels.codec={ levels = 7 }",
    "reliability.rber=vth-tlc",
    "reliability.pe_cycles=8000",
    'reliability.retention="365d"',
)
#: Copybacks, up to four in a row.
COPYBACK = (
    "migration.policy.rcopyback-greedy.limit=4",
    "drive.blocks_per_plane=32",
    "drive.op=1.2",
    "precondition.used=0.5",
    "workload.repeat=4",
)
#: Three days of ageing in a run.
FAST = (
    "reliability.clock_scale=1_000_000",
    'refresh.interval=[{ pe = 100000, every = "4d" }]',
    "precondition.used=0.5",
)
#: An SLC cache of a third of the free half of the drive.
SLC = ("slc.dynamic=1.0", "precondition.used=0.5")
CACHE = ('cache.size="256KiB"', "cache.sync=smart", "cache.dirty_budget=0.5")
CAPACITOR = (
    *CACHE,
    'capacitor.capacitance="2mF"',
    "drive.blocks_per_plane=32",
    "drive.op=1.0",
    "precondition.used=0.5",
)
#: A write cache whose budget is measured: seven detections in a run.
MEASURED = (*CAPACITOR[:2], *CAPACITOR[3:], "cache.dirty_budget=measured", "reliability.clock_scale=1_000_000", *IDLE)
MEASURED += ('capacitor.detect_every="6h"', 'capacitor.detect_grace="1h"', 'capacitor.recharge="1h"')
CUT = (*CAPACITOR, "power.cut_after_requests=900")
#: Two clients, each with a handle, that write the same addresses.
HANDLES = (
    "placement.handles=2",
    "precondition.used=0.6",
    "workload.clients=[{ name = 'a', requests = 4_000, read_fraction = 0, arrival = { queue_depth = 4 } }, "
    "{ name = 'b', requests = 4_000, read_fraction = 0, arrival = { queue_depth = 4 }, placement = 1 }]",
)
BY_KIND = ("timing.program={ lsb = '300us', msb = '900us' }",)


class Case(NamedTuple):
    """A drive, and the overrides that change the key."""

    changed: tuple[str, ...]
    base: tuple[str, ...] = ()
    workload: str = RANDOM
    #: The text of a trace for `workload.trace`.
    trace: str = ""


def case(*changed: str, base: tuple[str, ...] = (), workload: str = RANDOM, trace: str = "") -> Case:
    """A case; the last override changes the key."""
    return Case(changed, base, workload, trace)


def msr(times: list[int], disk: int = 0, offset: int = 0) -> str:
    """A trace of writes in the format of the MSR traces, with times in microseconds."""
    lines = (f"{128166372000000000 + 10 * at},hm,{disk},Write,{offset + 4096 * (at % 7)},4096,100\n" for at in times)
    return "".join(lines)


TRACE = '[workload]\ntrace = "t.trace"\n'
TIMES = list(range(0, 40_000, 400))
FLUSHES = "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n" + 50 * "/dev/sda write 0 4096\n/dev/sda sync 0 0\n"
MQSIM = "".join(f"{at} 0 {8 * (at % 7)} 8 1\n" for at in TIMES)
PROFILE = '[workload]\nprofile = "msr/hm_0"\nrequests = 300\nbeyond = "wrap"\n'
WINDOW = "{ enter = '9us', resume = '4us', min_progress = '0us', max = 3 }"

CASES: dict[str, Case] = {
    "seed": case("seed=2"),
    "drive.preset": case("drive.preset=rcopyback-64g"),
    "drive.channels": case("drive.channels=1"),
    "drive.chips_per_channel": case("drive.chips_per_channel=2"),
    "drive.dies_per_chip": case("drive.dies_per_chip=2"),
    "drive.planes_per_die": case("drive.planes_per_die=1"),
    "drive.blocks_per_plane": case("drive.blocks_per_plane=32"),
    "drive.capacity": case("drive.capacity=6MB"),
    "drive.pages_per_block": case("drive.pages_per_block=32"),
    "drive.page_size": case("drive.page_size=8KiB"),
    "drive.cell": case("drive.cell=tlc", base=BY_KIND),
    "drive.layers": case(
        "drive.layers=4",
        base=("drive.cell=3d-mlc", "drive.layers=8", "timing.program={ fastest = '300us', slowest = '900us' }"),
    ),
    "drive.op": case("drive.op=0.6"),
    "drive.bad_blocks": case("drive.bad_blocks=0.05", base=("precondition.used=0.6",)),
    "drive.endurance": case("drive.endurance=12", base=("reliability.pe_cycles=10",)),
    "drive.registers": case("drive.registers=2", base=(*COPYBACK, "migration.copyback=split")),
    "drive.program_order": case("drive.program_order=one-shot"),
    "host.link": case("host.link={ mb_per_s = 500, latency = '3us' }"),
    "host.controller": case("host.controller={ read = '4us', write = '6us' }"),
    "timing.read": case("timing.read=75us"),
    "timing.program": case("timing.program=600us"),
    "timing.erase": case("timing.erase=5ms"),
    "timing.channel_ns_per_byte": case("timing.channel_ns_per_byte=5"),
    "timing.command": case("timing.command=1us"),
    "timing.decode": case("timing.decode=5us"),
    "timing.off_chip_mb_per_s": case("timing.off_chip_mb_per_s=100"),
    "timing.scheduler": case("timing.scheduler=fcfs"),
    "timing.multi_plane": case("timing.multi_plane=true"),
    "timing.plane_reads": case("timing.plane_reads=independent"),
    "timing.read_hold": case("timing.read_hold=5ms", base=("timing.plane_reads=independent",)),
    "timing.suspend": case(f"timing.suspend.program={WINDOW}"),
    "ftl.map": case("ftl.map.demand.cache=1KiB", base=("precondition.used=0.6",)),
    "ftl.mapping_unit": case("ftl.mapping_unit=1KiB"),
    "ftl.buffer": case("ftl.buffer=64KiB", base=("ftl.mapping_unit=1KiB",)),
    "ftl.superblock": case("ftl.superblock=die", base=("timing.multi_plane=true",)),
    "ftl.allocation": case("ftl.allocation=PDWC"),
    "ftl.streams": case("ftl.streams=sepbit", base=SKEWED),
    "ftl.wear_levelling": case("ftl.wear_levelling=static", base=("ftl.wear_gap=1", *SKEWED)),
    "ftl.wear_gap": case("ftl.wear_gap=1", base=("ftl.wear_levelling=static", *SKEWED)),
    "placement.handles": case("placement.handles=2"),
    "placement.groups": case("placement.groups=2", base=("ftl.allocation=dynamic", "workload.synthetic.span=0.2")),
    "placement.isolation": case("placement.isolation=persistent", base=HANDLES),
    "placement.reclaim_unit": case("placement.reclaim_unit=4"),
    "placement.ranges": case("placement.ranges=[{ to = 0.5, placement = 1 }]", base=("placement.handles=2",)),
    "gc.victim": case("gc.victim=fifo"),
    "gc.pacing": case("gc.pacing=none"),
    "gc.foreground": case("gc.foreground=blocking", base=("gc.pacing=none",)),
    "gc.background_free": case("gc.background_free=0.3", base=IDLE),
    "gc.foreground_free": case("gc.foreground_free=0.3", base=("gc.background_free=0.5",)),
    "gc.idle_valid_max": case("gc.idle_valid_max=0.2", base=(*IDLE, "gc.background_free=0.6")),
    "gc.idle_after": case("gc.idle_after=40ms", base=(*IDLE, "gc.background_free=0.6")),
    "ecc.levels": case("ecc.levels=[{ rber_max = 0.02 }]", base=OLD),
    "ecc.start": case("ecc.start=last-level", base=OLD),
    "ecc.retry": case("ecc.retry=incremental", base=OLD),
    "ecc.decoders": case("ecc.decoders=1", "timing.decode=200us", "ecc.decoders=2", workload=READS),
    "reliability.rber": case("reliability.rber.vth.cell_to_cell=0.04", base=OLD),
    "reliability.read_disturb": case("reliability.read_disturb=1e-4", base=OLD),
    "reliability.copyback": case("reliability.copyback=propagate", base=(*OLD, *COPYBACK)),
    "reliability.copyback_error": case("reliability.copyback_error=1e-3", base=(*OLD, *COPYBACK)),
    "reliability.page_variation": case("reliability.page_variation=0.3", base=OLD),
    "reliability.pe_cycles": case("reliability.pe_cycles=5000", base=OLD),
    "reliability.retention": case("reliability.retention=1d", base=OLD),
    "reliability.clock_scale": case("reliability.clock_scale=100_000", base=(*FAST, "refresh.policy=fcr")),
    "refresh.policy": case("refresh.policy=fcr", base=FAST),
    "refresh.interval": case('refresh.interval=[{ pe = 100000, every = "2d" }]', base=(*FAST, "refresh.policy=fcr")),
    "refresh.priority": case("refresh.priority=first", base=(*FAST, "refresh.policy=fcr")),
    "refresh.grace": case("refresh.grace=0.5", base=(*FAST, "refresh.policy=fcr")),
    "reclaim.policy": case("reclaim.policy.reads.limit=20", workload=READS),
    "slc.static": case("slc.static=64KiB", base=("precondition.used=0.5",)),
    "slc.dynamic": case("slc.dynamic=1.0", base=("precondition.used=0.5",)),
    "slc.when_full": case("slc.when_full=fold", base=SLC),
    "slc.idle_after": case("slc.idle_after=40ms", base=(*SLC, *IDLE)),
    "slc.watermark": case("slc.watermark=0.1", base=SLC),
    "slc.read": case("slc.read=10us", base=SLC),
    "slc.program": case("slc.program=40us", base=SLC),
    "slc.erase": case("slc.erase=1ms", base=(*SLC, *IDLE)),
    "slc.endurance": case("slc.endurance=1000", base=(*SLC, *IDLE)),
    "slc.rber_factor": case("slc.rber_factor=1.0", base=(*OLD, *SLC, "slc.filled=1.0")),
    "slc.filled": case("slc.filled=0.5", base=SLC),
    "migration.policy": case("migration.policy=off-chip", base=COPYBACK),
    "migration.in_flight": case("migration.in_flight=1"),
    "migration.valid_min": case(
        "migration.valid_min=0.25", base=(*COPYBACK, "drive.page_size=16KiB", "ftl.mapping_unit=4KiB")
    ),
    "migration.first_block": case("migration.first_block=shared", base=("gc.pacing=none",)),
    "migration.copyback": case("migration.copyback=split", base=COPYBACK),
    "cache.size": case("cache.size=128KiB", base=CACHE),
    "cache.access": case("cache.access=3us", base=CACHE),
    "cache.sync": case("cache.sync=punctual", base=CACHE),
    "cache.eviction": case("cache.eviction=cflru", base=('cache.size="256KiB"',)),
    "cache.dirty_budget": case("cache.dirty_budget=0.2", base=CACHE),
    "cache.read_room": case("cache.read_room=wait", base=('cache.size="32KiB"',)),
    "cache.flush_to": case(
        "cache.flush_to=flash", base=(*CAPACITOR, "workload.arrival.queue_depth=4"), workload=TRACE, trace=FLUSHES
    ),
    "capacitor.capacitance": case("capacitor.capacitance=1mF", base=CUT),
    "capacitor.flush_mode": case("capacitor.flush_mode=slc", base=CUT),
    "capacitor.voltage": case("capacitor.voltage=5V", base=CUT),
    "capacitor.voltage_min": case("capacitor.voltage_min=3V", base=CUT),
    "capacitor.esr": case("capacitor.esr=1ohm", base=CUT),
    "capacitor.efficiency": case("capacitor.efficiency=0.8", base=CUT),
    "capacitor.temperature": case("capacitor.temperature=60", base=(*CUT, 'capacitor.age="1000d"')),
    "capacitor.age": case("capacitor.age=1000d", base=CUT),
    "capacitor.controller_power": case("capacitor.controller_power=2W", base=CUT),
    "capacitor.program_power": case("capacitor.program_power=0.2W", base=CUT),
    "capacitor.detect_every": case("capacitor.detect_every=12h", base=MEASURED),
    "capacitor.detect_grace": case("capacitor.detect_grace=1min", base=MEASURED),
    "capacitor.recharge": case("capacitor.recharge=2h", base=MEASURED),
    "capacitor.margin": case("capacitor.margin=0.3", base=(*MEASURED, "capacitor.steps=continuous")),
    "capacitor.steps": case("capacitor.steps=continuous", base=MEASURED),
    "capacitor.flush": case("capacitor.flush=csw", base=(*CUT, *BY_KIND)),
    "capacitor.flush_concurrency": case("capacitor.flush_concurrency=1", base=CUT),
    "capacitor.flush_order": case("capacitor.flush_order=newest", base=(*CUT, 'capacitor.capacitance="200uF"')),
    "capacitor.metadata": case(
        "capacitor.metadata=64KiB",
        base=(*CUT, "capacitor.flush_order=metadata", 'capacitor.metadata="4KiB"', 'capacitor.capacitance="200uF"'),
    ),
    "power.cut_after_requests": case("power.cut_after_requests=600", base=CUT),
    "power.cut_at": case("power.cut_at=50ms", base=CAPACITOR),
    "power.cut_in_recovery": case("power.cut_in_recovery=1ms", base=CUT),
    "power.gc_in_flush": case("power.gc_in_flush=true", base=CUT),
    "energy.read": case("energy.read=5uJ"),
    "energy.program": case("energy.program=80uJ"),
    "energy.erase": case("energy.erase=300uJ"),
    "energy.transfer_per_byte": case("energy.transfer_per_byte=90pJ"),
    "energy.idle": case("energy.idle=60mW"),
    "precondition.method": case("precondition.method=pts"),
    "precondition.used": case("precondition.used=0.7"),
    "precondition.valid": case("precondition.valid=0.6"),
    "precondition.order": case("precondition.order=sequential"),
    "precondition.rounds_max": case("precondition.rounds_max=0", base=("precondition.rounds_max=2",)),
    "precondition.load": case("precondition.load=saved.drive"),
    "precondition.map_reads": case("precondition.map_reads=true", base=("precondition.method=none",)),
    "workload.trace": case("workload.trace=other.trace", workload=TRACE, trace=msr(TIMES)),
    "workload.profile": case("workload.profile=msr/hm_1", workload=PROFILE),
    "workload.synthetic": case("workload.synthetic.read_fraction=0.5"),
    "workload.clients": case("workload.clients=[{ name = 'a', requests = 300, arrival = { queue_depth = 2 } }]"),
    "workload.format": case("workload.format=disksim", workload=TRACE, trace=MQSIM),
    "workload.device": case("workload.device=hm_0", workload=TRACE, trace=msr(TIMES) + msr([90_000], 1)),
    "workload.devices": case(
        "workload.devices=['hm_1', 'hm_0']", workload=TRACE, trace=msr(TIMES) + msr([90_000], 1)
    ),
    "workload.only": case("workload.only=writes", workload=TRACE, trace=FLUSHES),
    "workload.window": case("workload.window={ to = '20ms' }", workload=TRACE, trace=msr(TIMES)),
    "workload.lenient": case("workload.lenient=true", workload=TRACE, trace=msr(TIMES) + "damaged\n"),
    "workload.time_unit": case("workload.time_unit=us", base=("workload.format=mqsim",), workload=TRACE, trace=MQSIM),
    "workload.requests": case("workload.requests=200", workload=PROFILE),
    "workload.arrival": case("workload.arrival.queue_depth=2"),
    "workload.time_scale": case("workload.time_scale=2", workload=TRACE, trace=msr(TIMES)),
    "workload.max_gap": case("workload.max_gap=1s", workload=TRACE, trace=msr([*TIMES, 2_000_000])),
    "workload.beyond": case("workload.beyond=wrap", workload=TRACE, trace=msr(TIMES) + msr([50_000], offset=1 << 40)),
    "workload.whole_pages": case(
        "workload.whole_pages=true",
        base=("drive.page_size=16KiB", "ftl.mapping_unit=4KiB"),
    ),
    "workload.requests_max": case("workload.requests_max=500"),
    "workload.warm_up": case("workload.warm_up=500"),
    "workload.repeat": case("workload.repeat=2"),
    "output.timeline_operations": case("output.timeline_operations=100"),
    "output.explain": case("output.explain=5"),
    "output.requests": case("output.requests=true"),
    "output.series_rows": case("output.series_rows=10"),
}  # fmt: skip


#: Parameters of policies, which the schema does not list as keys.
PARAMETERS: dict[str, Case] = {
    "workload.arrival.process": case("workload.arrival.process=poisson", base=("workload.arrival={ iops = 3000 }",)),
    "reliability.rber.vth.unworn_loss": case("reliability.rber.vth.unworn_loss=1000", base=OLD),
    "reliability.rber.vth-tlc.early": case("reliability.rber.vth-tlc.early=none", base=AGED),
    "reliability.rber.vth-tlc.early.loss": case("reliability.rber.vth-tlc.early.loss=2.5", base=AGED),
    "reliability.rber.vth-tlc.early={ loss = 3.0, from": case(
        "reliability.rber.vth-tlc.early={ loss = 3.0, from = '1h' }", base=AGED
    ),
    "reliability.rber.vth-tlc.layers": case("reliability.rber.vth-tlc.layers=none", base=AGED),
    "reliability.rber.vth-tlc.layers.ratio": case("reliability.rber.vth-tlc.layers.ratio=3.0", base=AGED),
    "reliability.rber.vth-tlc.layers={ ratio = 1.5, worst": case(
        "reliability.rber.vth-tlc.layers={ ratio = 1.5, worst = 1.0 }", base=AGED
    ),
    "ecc.levels.retry.entries={ steps = 32, size": case(
        "ecc.levels.retry.entries={ steps = 32, size = 2.0 }", base=AGED
    ),
    "ecc.levels.retry.entries": case('ecc.levels.retry.entries=[{ age = "60d" }]', base=AGED),
    "ecc.levels.codec={ rate": case('ecc.levels.codec={ rate = "16/17" }', base=CODED, workload=READS),
    "ecc.levels.codec={ size": case('ecc.levels.codec={ size = "2KiB" }', base=CODED, workload=READS),
    "ecc.levels.codec={ spacing": case("ecc.levels.codec={ spacing = 5.0 }", base=CODED, workload=READS),
    "ecc.levels.codec={ centre": case('ecc.levels.codec={ centre = "default" }', base=CODED, workload=READS),
    "ecc.levels.codec={ shifts": case('ecc.levels.codec={ shifts = [{ age = "90d" }] }', base=CODED, workload=READS),
    "ecc.levels.codec={ levels": case("ecc.levels.codec={ levels = 1 }", base=CODED, workload=READS),
    "ecc.levels.codec={ fer": case("ecc.levels.codec={ fer = 0.4 }", base=CODED, workload=READS),
    "ecc.levels.codec={ sense": case('ecc.levels.codec={ sense = "90us" }', base=CODED, workload=READS),
    "ecc.levels.codec={ further": case('ecc.levels.codec={ further = "30us" }', base=CODED, workload=READS),
    "ecc.levels.codec={ transfer": case('ecc.levels.codec={ transfer = "regions" }', base=CODED, workload=READS),
    "ecc.levels.codec={ iteration": case('ecc.levels.codec={ iteration = "9us" }', base=CODED, workload=READS),
    "ecc.levels.codec={ references = { mmi-at = { pe": case(
        'ecc.levels.codec={ references = { mmi-at = { pe = 500, age = "1d" } } }', base=CODED, workload=READS
    ),
    "ecc.levels.codec={ references": case(
        'ecc.levels.codec={ references = { mmi-at = { pe = 8000, age = "365d" } } }', base=CODED, workload=READS
    ),
    "migration.policy.rcopyback.occupancy": case(
        "migration.policy.rcopyback.occupancy=occupied",
        base=(
            *COPYBACK[1:],
            *IDLE,
            "migration.policy.rcopyback.limit=4",
            "cache.size=256KiB",
            "gc.background_free=0.6",
        ),
    ),
    "ftl.map.demand.write_back": case(
        "ftl.map.demand.write_back=before-insert", base=("precondition.used=0.6", "ftl.map.demand.cache=1KiB")
    ),
}


def keys() -> list[str]:
    """The paths of all keys, from the schema, which is made of the table of keys."""
    found = []
    for name, value in json.loads(nandlab.schema())["properties"].items():
        inner = value.get("properties")
        found += [name] if inner is None else [f"{name}.{key}" for key in inner]
    return found


def outcome(folder: Path, of: Case, sets: tuple[str, ...]) -> dict[str, Any] | str:
    """What a run writes, by file, without what names the spec; or the error that refuses it."""
    folder.mkdir()
    (folder / "t.trace").write_text(of.trace)
    (folder / "other.trace").write_text(msr([2 * at for at in TIMES]))
    drive = DRIVE.partition("[precondition]")[0] if "[workload]\ntrace" in of.workload else DRIVE
    (folder / "spec.toml").write_text(drive + of.workload)
    if any("saved.drive" in one for one in sets):
        nandlab.Drive(nandlab.load(DRIVE.replace("0.7", "0.5"))).save(folder / "saved.drive")
    try:
        result = nandlab.run(folder / "spec.toml", sets=list(sets), out=folder / "out")
    except nandlab.NandlabError as refused:
        return str(refused)
    files: dict[str, Any] = {}
    for path in sorted((folder / "out").iterdir()):
        if path.name in ("sim.json", "spec.toml", "nandlab-result.json"):
            continue
        if path.name == "summary.json":
            summary = json.loads(path.read_text())
            files[path.name] = {name: value for name, value in summary.items() if name not in ("spec_hash", "notes")}
        else:
            files[path.name] = path.read_bytes()
    assert result is not None and files["summary.json"]["complete"] is not None
    return files


@pytest.mark.parametrize("key", keys())
def test_another_value_of_a_key_gives_another_result_or_is_refused(tmp_path, key):
    assert key in CASES, f"a new key: give it a case here, a drive on which {key} acts"
    of = CASES[key]
    assert any(one.startswith(key) for one in of.changed)
    before = outcome(tmp_path / "before", of, of.base)
    after = outcome(tmp_path / "after", of, (*of.base, *of.changed))
    # Whether the drive is refused with the base of the case, and with the key changed.
    refused = dict.fromkeys(
        ("workload.beyond", "workload.device", "workload.devices", "workload.lenient"), (True, False)
    )
    refused["workload.max_gap"] = (False, True)
    assert (isinstance(before, str), isinstance(after, str)) == refused.get(key, (False, False)), (before, after)
    assert before != after, f"{key} acts on nothing"


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_another_value_of_a_parameter_gives_another_result(tmp_path, parameter):
    of = PARAMETERS[parameter]
    assert of.changed[-1].startswith(parameter)
    before = outcome(tmp_path / "before", of, of.base)
    after = outcome(tmp_path / "after", of, (*of.base, *of.changed))
    assert not isinstance(before, str) and not isinstance(after, str), (before, after)
    assert before != after, f"{parameter} acts on nothing"


def test_every_case_is_of_a_key():
    assert set(CASES) == set(keys())


def test_the_outcome_does_not_depend_on_a_key_without_effect(tmp_path):
    """The comparison can fail: without writes, GC has nothing to do, and the outcomes are equal."""
    of = case("gc.victim=fifo", "gc.background_free=0.5", workload=READS)
    assert outcome(tmp_path / "before", of, ()) == outcome(tmp_path / "after", of, of.changed)


#: A small `modern-tlc-1t` without controller times, whose read levels have the times of [timing].
MODERN = """
[drive]
preset = "modern-tlc-1t"
blocks_per_plane = 48
pages_per_block = 96
layers = 32
op = 1.0
[host]
controller = "none"
[precondition]
used = 0.3
valid = 0.9
map_reads = true
[workload]
synthetic = { requests = 2_000, read_fraction = 1.0, size = "4KiB" }
arrival = { queue_depth = 1 }
"""


def test_the_read_levels_of_the_preset_have_the_times_of_timing():
    """They repeated the numbers of [timing], which therefore acted on nothing, or on writes alone."""

    def mean_us(*sets: str) -> float:
        found = nandlab.run(nandlab.load(MODERN, ("timing.read=50us", *sets))).summary.latency_us.read
        assert found.mean == pytest.approx(found.p50, abs=0.01)
        return found.mean

    # At queue depth 1 a read is tR, the transfer of the unit's share of a page, and decoding.
    transfer_us = 4_096 * 0.625 / 1_000
    assert mean_us() == pytest.approx(50 + transfer_us + 5, abs=0.01)
    assert mean_us('host.controller={ read = "6us", write = "0us" }') == pytest.approx(56 + transfer_us + 5, abs=0.01)
    assert mean_us("timing.read=80us") == pytest.approx(80 + transfer_us + 5, abs=0.01)
    assert mean_us("timing.decode=9us") == pytest.approx(50 + transfer_us + 9, abs=0.01)
    assert mean_us("timing.channel_ns_per_byte=2.5") == pytest.approx(50 + 4 * transfer_us + 5, abs=0.01)


TIMES_OF_READS = ("timing.read=75us", "timing.decode=9us")


@pytest.mark.parametrize("setting", TIMES_OF_READS)
@pytest.mark.parametrize("levels", ["laldpc", "[{ rber_max = 0.02, sense = '60us', decode = '1us' }]"])
def test_a_time_that_every_read_level_states_itself_is_refused_beside_it(setting, levels):
    key = setting.partition("=")[0]
    for sets in [(setting, f"ecc.levels={levels}"), (f"ecc.levels={levels}", setting)]:
        with pytest.raises(nandlab.NandlabError, match=f"{key}: no effect, because ecc.levels gives every read level"):
            nandlab.load(DRIVE, sets)
    section, name = key.split(".")
    value = setting.partition("=")[2]
    quoted = levels if levels.startswith("[") else f'"{levels}"'
    with pytest.raises(nandlab.NandlabError, match=f"spec:2: {key}: no effect"):
        nandlab.load(f'[{section}]\n{name} = "{value}"\n[ecc]\nlevels = {quoted}\n')
    # The remedies work.
    nandlab.load(f"[ecc]\nlevels = {quoted}\n")
    nandlab.load(DRIVE, ("ecc.levels=[{ rber_max = 0.005 }]", setting))
    # A preset's time is dropped, and so is a file's beside levels that --set names: `spec show` states it.
    for text, sets in [
        (f'[drive]\npreset = "rcopyback-64g"\n[ecc]\nlevels = {quoted}\n', ()),
        (f'[{section}]\n{name} = "{value}"\n', (f"ecc.levels={levels}",)),
    ]:
        shown = nandlab.load(text, sets).to_toml()
        assert f"\n# {name} =  #" in shown
        assert nandlab.load(shown).hash == nandlab.load(text, sets).hash
