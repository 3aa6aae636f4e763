"""A stand-in for `nandlab._core`: the same names, made-up numbers, and faults on demand.

A spec may hold a table `[fake]`: `seed`, `requests`, `step_s` (wall time a step takes), `steps`, `precondition_s`,
`bug` (a step raises an exception of no known kind), `fail` (a step raises RunError), `per_request` (a requests table),
`intervals`, `channels`, `dies_per_channel`, `blocks`, `reads = false`, `gc = false`.
"""

import json
import math
import time
import tomllib
from pathlib import Path

import numpy as np


class NandlabError(Exception):
    pass


class SpecError(NandlabError):
    errors = ()


class TraceError(NandlabError):
    pass


class RunError(NandlabError):
    pass


class PanicException(BaseException):
    """What a panic of the compiled core looks like."""


def version():
    return "0.0.0"


def schema():
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"})


def memory_needed(spec, verify=False):
    return 1 << 20, 1 << 20, "a smaller drive"


def presets():
    return [("fake-mlc", "a drive for tests")]


def policies():
    return [{"slot": "gc.victim", "name": "greedy", "description": "the block with the fewest valid pages"}]


class Spec:
    def __init__(self, data):
        self._data = data
        self._fake = {
            "seed": 1,
            "requests": 1_000_000,
            "steps": 3,
            "step_s": 0.0,
            "precondition_s": 0.0,
            "intervals": 200,
            "channels": 4,
            "dies_per_channel": 2,
            "blocks": 256,
            "reads": True,
            "gc": True,
            "per_request": False,
            "bug": False,
            "fail": False,
        } | data.get("fake", {})

    @staticmethod
    def load(text, name, dir, sets):
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise _spec_error(name, 1, "", str(error), "write TOML") from None
        for entry in sets:
            key, _, value = entry.partition("=")
            table = data
            *path, last = key.split(".")
            for part in path:
                table = table.setdefault(part, {})
            try:
                table[last] = tomllib.loads(f"x = {value}")["x"]
            except tomllib.TOMLDecodeError:
                table[last] = value
        for key in data:
            if key not in ("seed", "drive", "timing", "ftl", "gc", "workload", "fake"):
                line = 1 + next((i for i, row in enumerate(text.splitlines()) if row.startswith(key)), 0)
                raise _spec_error(name, line, key, f"unknown key `{key}`", "remove it")
        spec = Spec(data)
        spec._source = (text, name, dir, list(sets))
        return spec

    def with_(self, sets):
        from nandlab.spec import set_arguments

        text, name, dir, before = self._source
        return Spec.load(text, name, dir, before + set_arguments(sets))

    def to_toml(self):
        lines = [f"{key} = {_toml(value)}" for key, value in self._data.items() if not isinstance(value, dict)]
        for key, value in self._data.items():
            if isinstance(value, dict):
                lines += [f"[{key}]"] + [f"{name} = {_toml(entry)}" for name, entry in value.items()]
        return "\n".join(lines) + "\n"

    def canonical_json(self):
        return json.dumps(self._data, sort_keys=True)

    @property
    def hash(self):
        import hashlib

        return hashlib.sha256(self.canonical_json().encode()).hexdigest()[:16]

    logical_bytes = property(lambda self: 30 << 30)
    raw_bytes = property(lambda self: 32 << 30)
    page_bytes = property(lambda self: 4096)


def _toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(entry)}" for key, entry in value.items()) + " }"
    return json.dumps(value)


def _spec_error(name, line, key, message, remedy):
    error = SpecError(f"{name}:{line}: {message}\n  {remedy}")
    error.errors = [{"origin": name, "line": line, "key": key, "message": message, "remedy": remedy}]
    return error


class Run:
    def __init__(self, spec, verify=False, save_drive=None):
        self._spec = spec
        self._done = 0
        time.sleep(spec._fake["precondition_s"])
        if save_drive is not None:
            Path(save_drive).write_bytes(b"drive")

    def step(self, ms):
        fake = self._spec._fake
        time.sleep(fake["step_s"])
        if fake["bug"] == "panic":
            raise PanicException("a bug")
        if fake["bug"]:
            raise ZeroDivisionError("a bug")
        if fake["fail"]:
            raise RunError("the drive is full: no block can be freed in plane 3\n  give it more op")
        self._done = min(self._done + 1, fake["steps"])
        share = self._done / fake["steps"]
        return {
            "phase": "done" if share == 1 else "run",
            "done": share == 1,
            "progress": share,
            "requests": int(fake["requests"] * share),
            "sim_time_s": 100 * share,
            "page_operations": int(3 * fake["requests"] * share),
        }

    def result(self):
        return Result(self._spec, self._done / self._spec._fake["steps"])


class Result:
    def __init__(self, spec, share):
        self._fake = spec._fake
        self.spec_toml = spec.to_toml()
        self.spec_hash = spec.hash
        self._share = share
        self._columns = _tables(spec._fake, share)
        self.sim = json.dumps({"page_operations": 3_000_000, "events": 9_000_000})
        self.summary = json.dumps(_summary(spec, share, self._columns), indent=2)
        self.smart = json.dumps(
            {
                "nvme_smart_log": {
                    "critical_warning": 0,
                    "temperature": 318,
                    "available_spare": 100,
                    "percentage_used": 31,
                    "data_units_read": 8123456,
                    "data_units_written": 1923456,
                    "media_errors": 0,
                    "unsafe_shutdowns": 0,
                },
                "ocp_smart_log": {
                    "RefreshCount": 0,
                    "SoftECCErrorCount": 1823,
                    "CapacitorHealth": 100,
                    "PLPStartCount": 0,
                },
            },
            indent=2,
        )

    def tables(self):
        out = {}
        for table, columns in self._columns.items():
            out[table] = {}
            for name, column in columns.items():
                if column.dtype == object:
                    out[table][name] = ("str", "\n".join(column).encode())
                else:
                    kind = column.dtype.newbyteorder("<")
                    out[table][name] = (kind.str, column.astype(kind).tobytes())
        return out

    power = None

    def timeline(self):
        return None


def _lognormal_bins(rng, median_us, sigma, count):
    edges = np.unique(np.round(10 ** np.linspace(0.5, 5.2, 400), 3))
    samples = rng.lognormal(math.log(median_us), sigma, 60_000)
    slow = rng.random(60_000) < 0.012
    samples[slow] += rng.exponential(3500, int(slow.sum()))
    histogram, _ = np.histogram(samples, edges)
    keep = histogram > 0
    return edges[:-1][keep], edges[1:][keep], (histogram[keep] * (count / 60_000)).astype(np.uint64)


def _tables(fake, share):
    rng = np.random.default_rng(fake["seed"])
    n = max(int(fake["intervals"] * share), 1)
    t = np.arange(1, n + 1) * 0.5
    fade = np.exp(-t / 20)
    noise = rng.normal(1, 0.03, n)
    reads = (fake["reads"] * 9000 * (0.6 + 0.5 * fade) * noise).astype(np.uint64)
    writes = (21000 * (0.55 + 0.45 * fade) * rng.normal(1, 0.03, n)).astype(np.uint64)
    gc = fake["gc"] * (1 - fade) * 1.6
    program_host = writes.astype(float)
    program_gc = program_host * gc * rng.normal(1, 0.02, n)
    program_wear = program_host * 0.03 * (rng.random(n) < 0.3)
    burst = 1 + 0.5 * np.sin(t / 7)
    nothing = np.full(n, np.nan)
    series = {
        "time_s": t,
        "interval_s": np.full(n, 0.5),
        "requests_read": reads,
        "requests_write": writes,
        "requests_trim": np.zeros(n, np.uint64),
        "bytes_read": reads * np.uint64(4096),
        "bytes_write": writes * np.uint64(4096),
        "latency_us_read_mean": 180 * (1 + 0.7 * (1 - fade)) * burst * noise if fake["reads"] else nothing,
        "latency_us_write_mean": 900 * (1 + 1.2 * (1 - fade)) * burst * noise,
        "latency_us_read_max": 5200 * (1 + rng.random(n)) if fake["reads"] else nothing,
        "latency_us_write_max": 16000 * (1 + rng.random(n)),
        "iops": (reads + writes) / 0.5,
        "mb_per_s": (reads + writes) * 4096 / 0.5 / 1e6,
        "pages_written": writes,
        "program_host": program_host.astype(np.uint64),
        "program_gc": program_gc.astype(np.uint64),
        "program_wear": program_wear.astype(np.uint64),
        "erases": (program_gc / 64).astype(np.uint64),
        "waf": (program_host + program_gc + program_wear) / program_host,
        "gc_victims": (program_gc / 40).astype(np.uint64),
        "gc_victim_valid_mean": np.where(gc > 0.05, 0.62 * (1 - fade) + rng.normal(0, 0.01, n), np.nan),
        "free_share_min": np.maximum(0.05, 0.3 * fade + rng.normal(0, 0.004, n) + 0.05),
        "free_share_mean": 0.32 * fade + 0.07 + rng.normal(0, 0.002, n),
        "outstanding_mean": 32 * rng.normal(1, 0.01, n),
        "die_busy_mean": np.minimum(1, 0.83 * noise),
    }
    dies = fake["channels"] * fake["dies_per_channel"]
    intervals = min(n, 64)
    step = n * 0.5 / intervals
    busy = np.clip(
        0.8
        + rng.normal(0, 0.05, (intervals, dies))
        - 0.25 * rng.random(dies) * np.sin(np.arange(intervals) / 9)[:, None],
        0,
        1,
    )
    die = np.tile(np.arange(dies), intervals)
    table_dies = {
        "time_s": np.repeat((np.arange(intervals) + 1) * step, dies),
        "interval_s": np.full(intervals * dies, step),
        "die": die.astype(np.uint32),
        "channel": (die % fake["channels"]).astype(np.uint32),
        "busy_share": busy.ravel(),
    }
    parts = []
    for op, median, sigma, total in (("read", 190, 0.42, int(reads.sum())), ("write", 1100, 0.55, int(writes.sum()))):
        if total:
            low, high, counts = _lognormal_bins(rng, median, sigma, total)
            parts.append((np.array([op] * len(low), dtype=object), low, high, counts))
    latency = {
        key: np.concatenate([part[i] for part in parts]) for i, key in enumerate(("op", "low_us", "high_us", "count"))
    }
    planes = dies * 2
    pe = rng.normal(1000 + 12 * fake["gc"], 4, (planes, fake["blocks"])) + 6 * np.sin(np.arange(planes))[:, None]
    valid = rng.integers(20, 64, (planes, fake["blocks"]))
    states = np.where(rng.random(planes * fake["blocks"]) < 0.1, "free", "full").astype(object)
    blocks = {
        "plane": np.repeat(np.arange(planes, dtype=np.uint32), fake["blocks"]),
        "block": np.tile(np.arange(fake["blocks"], dtype=np.uint32), planes),
        "pe_cycles": pe.ravel().astype(np.uint32),
        "valid_pages": valid.ravel().astype(np.uint32),
        "state": states,
    }
    tables = {"series": series, "dies": table_dies, "latency": latency, "blocks": blocks}
    if fake["per_request"]:
        m = int(fake["requests"] * share)
        arrival = np.arange(m, dtype=np.uint64) * np.uint64(1000)
        tables["requests"] = {
            "arrival_ns": arrival,
            "completed_ns": arrival + np.uint64(90_000),
            "op": rng.integers(0, 2, m).astype(np.uint8),
            "offset": arrival * np.uint64(4096),
            "length": np.full(m, 4096, np.uint32),
        }
    return tables


def _percentiles(latency, op):
    mask = latency["op"] == op if op != "all" else np.ones(len(latency["op"]), bool)
    if not mask.any():
        return None
    order = np.argsort(latency["high_us"][mask], kind="stable")
    high, counts = latency["high_us"][mask][order], latency["count"][mask][order].astype(float)
    share = np.cumsum(counts) / counts.sum()
    at = {
        f"p{q}".replace(".", ""): float(high[np.searchsorted(share, float(q) / 100)])
        for q in ("50", "95", "99", "99.9")
    }
    return {"mean": float((high * counts).sum() / counts.sum()), **at, "max": float(high[-1])}


def _summary(spec, share, columns):
    series, latency = columns["series"], columns["latency"]
    reads, writes = int(series["requests_read"].sum()), int(series["requests_write"].sum())
    host, gc, wear = (int(series[f"program_{cause}"].sum()) for cause in ("host", "gc", "wear"))
    pe = columns["blocks"]["pe_cycles"]
    seconds = float(series["time_s"][-1])
    latencies = {op: _percentiles(latency, op) for op in ("read", "write", "all")}
    nothing = dict.fromkeys(("mean", "p50", "p95", "p99", "p999", "max"), 0.0)
    return {
        "nandlab": version(),
        "spec_hash": spec.hash,
        "complete": share >= 1,
        "requests": int(spec._fake["requests"] * share),
        "requests_unfinished": 0,
        "requests_failed": {"uncorrectable": 0, "worn_out": 0, "power_lost": 0},
        "requests_wrapped": 0,
        "records_skipped": 0,
        "duration_s": seconds,
        "host": {
            "read": {"count": reads, "bytes": reads * 4096},
            "write": {"count": writes, "bytes": writes * 4096},
            "trim": {"count": 0, "bytes": 0},
            "flush": {"count": 0, "bytes": 0},
        },
        "latency_us": {op: latencies.get(op) or nothing for op in ("read", "write", "trim", "flush", "all")},
        "iops": (reads + writes) / seconds,
        "mb_per_s": (reads + writes) * 4096 / seconds / 1e6,
        "waf": (host + gc + wear) / host,
        "waf_pages": (host + gc + wear) / host,
        "flash": {
            "read": {"host": reads, "gc": gc, "wear": wear, "refresh": 0, "mapping": 0, "sync": 0, "flush": 0},
            "program": {"host": host, "gc": gc, "wear": wear, "refresh": 0, "mapping": 0, "sync": 0, "flush": 0},
            "erase": {"host": 0, "gc": gc // 64, "wear": wear // 64, "refresh": 0, "mapping": 0, "sync": 0, "flush": 0},
        },
        "erases": {"mean": float(pe.mean()), "max": int(pe.max()), "min": int(pe.min())},
        "gc": {"victims": gc // 40, "victim_valid_mean": 0.61 if gc else 0.0},
        "energy_j": {"read": 61.2, "program": 913.4, "erase": 40.1, "transfer": 83.0, "idle": 21.9, "total": 1119.6},
        "ecc": {"levels": {"1": reads + gc}, "retries": 0, "uncorrectable": 0},
        "counters": {"host_pages_written": host, "merge_reads": 12, "gc_victims": gc // 40, "waiting_writes": 0},
        "steady_state": {
            "verdict": "steady",
            "rounds": 10,
            "round_host_bytes_min": 1 << 30,
            "round_bytes_min": 3 << 30,
            "window_begin_s": 0.5 * seconds,
            "window_end_s": seconds,
            "erased_share": 0.99,
            "requests_needed": None,
            "repeat_needed": None,
            "bytes_per_s": {
                "met": True,
                "mean": 8.6e7,
                "range": 0.043,
                "slope": 0.021,
                "rounds": [1.61e8, 1.2e8, 1.01e8, 9.2e7, 8.9e7, 8.8e7, 8.5e7, 8.6e7, 8.7e7, 8.6e7],
            },
            "waf": {"met": True, "mean": 2.55, "range": 0.03, "slope": 0.01, "rounds": [2.6, 2.5] * 5},
        },
    }


class Drive:
    def __init__(self, spec, verify=False):
        self.now = 0
        self._spec = spec
        self._waiting = []
        self._done = []
        self._ids = 0

    def submit(self, op, offset, length=0, fua=False):
        self._ids += 1
        self._waiting.append((self._ids, op, self.now, self.now + 90_000, None))
        return self._ids

    def advance(self, to_ns):
        self.now = to_ns
        self._done += [entry for entry in self._waiting if entry[3] <= to_ns]
        self._waiting = [entry for entry in self._waiting if entry[3] > to_ns]

    def run_until_idle(self, limit_s=60.0):
        if self._waiting:
            self.advance(max(entry[3] for entry in self._waiting))

    def completions(self):
        done, self._done = self._done, []
        return done

    @property
    def outstanding(self):
        return len(self._waiting)

    capacitor = None
    cache_pages = (0, 0, 0)

    def power(self):
        return None

    def cut_power(self):
        raise RunError("the drive cannot recover from a power loss")

    def detect_budget(self):
        raise RunError("there is no dirty page budget to be detected")

    def smart(self):
        return Result(self._spec, 1.0).smart

    def summary(self):
        return Result(self._spec, 1.0).summary

    def tables(self):
        return Result(self._spec, 1.0).tables()

    def audit(self):
        pass

    def save(self, path):
        Path(path).write_bytes(b"drive")


def trace_stat(path, options):
    if path and b"malformed" in Path(path).read_bytes():
        raise TraceError(f"{path}:3: field `size`: `malformed` is not a number")
    return json.dumps(
        {"requests": 12, "read_fraction": 0.25, "sizes": [{"bytes": 4096, "share": 1.0}], "options": options}
    )


def trace_convert(src, dst, format, options):
    if src and b"malformed" in Path(src).read_bytes():
        Path(dst).write_text("half")
        raise TraceError(f"{src}:3: field `size`: `malformed` is not a number")
    Path(dst).write_text("whole\n")
    return json.dumps({"requests": 12, "lost": []})


def trace_formats():
    return [("msr", "MSR Cambridge CSV"), ("spc", "UMass SPC"), ("fio-iolog", "fio iolog version 2")]


def profiles():
    return [{"name": "msr/hm_0", "requests": 3_993_316, "read_fraction": 0.355}]
