"""Job files of fio as clients of a workload (`workload.clients`).

Each job is a client, and a job with `numjobs` is so many. Numbers have the units that fio gives them: `k` is 1,024 and
`ki` is 1,000, or the other way round with `kb_base=1000`; a time without a unit is in microseconds, or in seconds for
`runtime` and `startdelay`.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nandlab.errors import OutputError, shown
from nandlab.spec import Spec, read_spec, toml_value

#: The most bytes of a job file that are read, since a device may have no end.
_BYTES_MAX = 1 << 20
#: The most clients of a workload.
_CLIENTS_MAX = 256
#: The largest index of a placement.
_PLACEMENTS_MAX = 65_535
#: The largest number of requests of a client.
_REQUESTS_MAX = 10**12


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Options that change nothing on a simulated drive: how the host does its work, what the data is, and what fio reports.
_WITHOUT_EFFECT = _words(
    """
    allow_file_create allow_mounted_write allrandrepeat bs_is_seq_rand buffer_compress_chunk
    buffer_compress_percentage buffer_pattern buffered bwavgtime clat_percentiles clocksource continue_on_error
    cpumask cpus_allowed cpus_allowed_policy create_fsync create_on_open create_only create_serialize
    dedupe_percentage description direct directory disable_bw disable_clat disable_lat disable_slat disk_util
    do_verify error_dump exec_postrun exec_prerun fadvise_hint fallocate file_append file_service_type filename
    filename_format filesize fixedbufs group_reporting gtod_cpu gtod_reduce hipri hugepage-size ignore_error
    initrd invalidate iomem ioprio ioprio_class iopsavgtime ioscheduler kb_base lat_percentiles lockfile lockmem
    log_avg_msec log_compression log_entries log_hist_msec log_max_value log_offset log_unix_epoch
    max_open_zones mem mem_align name new_group nice nonvectored norandommap nrfiles numa_cpu_nodes
    numa_mem_policy opendir openfiles overwrite per_job_logs percentile_list pre_read prio prioclass
    random_generator randrepeat randseed read_iolog_chunked refill_buffers registerfiles replay_align rwmixcycle
    scramble_buffers significant_figures slat_percentiles softrandommap sqthread_poll status-interval thread
    unified_rw_reporting unique_filename unit_base unlink unlink_each_loop verify verify_async verify_backlog
    verify_dump verify_fatal verify_interval verify_pattern verify_state_save write_bw_log write_hist_log
    write_iops_log write_lat_log zero_buffers
    """
)
#: Known options that change what fio does, and that clients do not have.
_KNOWN = _words(
    """
    atomic bs_unaligned cmdprio cmdprio_class cmdprio_hint cmdprio_percentage cuda_io dp_scheme end_fsync
    exit_what exitall experimental_verify filetype fill_fs flow flow_sleep flow_watermark
    fsync_on_close io_submit_mode iodepth_batch iodepth_batch_complete iodepth_batch_complete_max
    iodepth_batch_complete_min iodepth_batch_submit iodepth_low job_max_open_zones latency_percentile
    latency_run latency_target latency_window max_latency mem_policy min_latency number_ios offset_align
    percentage_random rate_cycle rate_ignore_thinktime rate_iops_min rate_min read_iolog
    replay_no_stall replay_redirect replay_scale replay_time_scale rw_sequencer serialize_overlap size_increment
    startdelay steadystate steadystate_check_interval steadystate_duration steadystate_ramp_time sync
    sync_file_range thinkcycles thinktime_blocks thinktime_blocks_type thinktime_iotime thinktime_spin
    trim_backlog trim_backlog_batch trim_percentage trim_verify_zero verify_offset verify_only verifysort
    verifysort_nr wait_for write_barrier write_hint write_iolog zone_reset_frequency zone_reset_threshold
    zonecapacity zonemode zonerange zonesize zoneskip
    """
)
#: Options that clients have, but that have no effect beside other options.
_MAPPED = _words(
    """
    ba bs bsrange filesize io_size iodepth loops plid_select plids rate random_distribution rate_process rwmixread
    rwmixwrite thinktime_blocks
    """
)
#: Engines that have one request outstanding, whatever `iodepth` says.
_SYNCHRONOUS = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"})
#: Other names of options.
_ALIASES = {
    "readwrite": "rw",
    "blocksize": "bs",
    "blocksize_range": "bsrange",
    "blockalign": "ba",
    "io_limit": "io_size",
    "fill_device": "fill_fs",
    "wait_for_previous": "stonewall",
    "fdatasync": "fsync",
    "fdp_pli": "plids",
    "fdp_pli_select": "plid_select",
}
#: The kinds of `rw`: shares of reads and TRIMs (`None`: by `rwmixread`), and whether the addresses are random.
_KINDS: dict[str, tuple[float | None, float, bool]] = {
    "read": (1.0, 0.0, False),
    "write": (0.0, 0.0, False),
    "trim": (0.0, 1.0, False),
    "rw": (None, 0.0, False),
    "readwrite": (None, 0.0, False),
    "randread": (1.0, 0.0, True),
    "randwrite": (0.0, 0.0, True),
    "randtrim": (0.0, 1.0, True),
    "randrw": (None, 0.0, True),
}
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_TIMES_NS = {
    "ns": 1,
    "us": 1000,
    "usec": 1000,
    "ms": 10**6,
    "msec": 10**6,
    "s": 10**9,
    "sec": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86_400 * 10**9,
}


@dataclass(frozen=True)
class Places:
    """The placement identifiers of a drive, which fio names by their index."""

    handles: int = 1
    groups: int = 1

    @property
    def count(self) -> int:
        """The number of identifiers."""
        return self.handles * self.groups

    def identifier(self, index: int) -> int:
        """The identifier with an index: its upper bits are the reclaim group, as NVMe's RGIF has them."""
        group, handle = divmod(index, self.handles)
        return group << (16 - (self.groups - 1).bit_length()) | handle

    def __str__(self) -> str:
        if self.count == 1:
            return "index 0, as the drive has one placement handle (placement.handles = 1)"
        return f"indices below {self.count}, as the drive has {self.handles} handles in {self.groups} reclaim group(s)"


#: The places of a drive without placement handles.
ONE_PLACE = Places()


@dataclass(frozen=True)
class Jobs:
    """The clients of a job file, and what of the file has no counterpart."""

    #: `workload.clients`, each client with its parameters as in a spec.
    clients: list[dict[str, object]]
    #: Options that have no counterpart, each with its job, value and reason.
    without: list[str] = field(default_factory=list)
    #: Options that change nothing on a simulated drive.
    ignored: list[str] = field(default_factory=list)
    #: What had to be assumed.
    assumed: list[str] = field(default_factory=list)

    def notes(self) -> list[str]:
        """What of the job file is not, or not exactly, what the clients do."""
        lines = [f"without a counterpart: {text}" for text in self.without]
        lines += [f"assumed: {text}" for text in self.assumed]
        if self.ignored:
            lines.append(f"without effect on a simulated drive: {', '.join(self.ignored)}")
        return lines


def read_jobs(path: str | os.PathLike[str], logical_bytes: int, places: Places = ONE_PLACE) -> Jobs:
    """The jobs of the file `path` on a drive of `logical_bytes` bytes with these `places`.

    Raises `OutputError` for a file that cannot be read, and for an option whose value fio or the drive would refuse.
    """
    path = Path(path)
    try:
        with open(path, "rb") as file:
            data = file.read(_BYTES_MAX + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"cannot read the fio job file {shown(path)}: {reason}\n  remedy: check the path") from None
    if len(data) > _BYTES_MAX:
        raise OutputError(f"{shown(path)}: a job file has at most 1 MiB\n  remedy: check that this is the right file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise OutputError(f"{shown(path)}: not UTF-8 text\n  remedy: check that this is a fio job file") from None
    return parse_jobs(text, logical_bytes, shown(path), places)


def parse_jobs(text: str, logical_bytes: int, name: str = "the fio job file", places: Places = ONE_PLACE) -> Jobs:
    """As `read_jobs`, for the text of a job file; `name` is its name in errors."""
    found = Jobs([])
    names: dict[str, int] = {}
    for section, options in _sections(text, name):
        job = _Job(section, options, logical_bytes, name, found, places)
        for number in range(job.count):
            # fio too names its clones alike; results need a name each.
            # A name is part of the paths of results.
            plain = section.replace(".", "-")
            base = plain if job.count == 1 else f"{plain}-{number}"
            names[base] = names.get(base, 0) + 1
            unique = base if names[base] == 1 else f"{base}#{names[base]}"
            found.clients.append({"name": unique, **job.client(number)})
    if not found.clients:
        raise OutputError(f"{name}: no job in it\n  remedy: add a section such as [job] with rw=randread")
    if len(found.clients) > _CLIENTS_MAX:
        raise OutputError(
            f"{name}: {len(found.clients)} jobs, those of numjobs included\n"
            f"  remedy: at most {_CLIENTS_MAX} jobs, each with a larger iodepth"
        )
    for texts in (found.without, found.ignored, found.assumed):
        texts[:] = list(dict.fromkeys(texts))
    return found


@dataclass(frozen=True)
class _Option:
    """The value of an option, and the line that has it."""

    value: str
    line: int


def _sections(text: str, name: str) -> list[tuple[str, dict[str, _Option]]]:
    """The jobs of a file with their options, those of the `[global]` sections before them included."""
    jobs: list[tuple[str, dict[str, _Option]]] = []
    of_all: dict[str, _Option] = {}
    options: dict[str, _Option] | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        place = f"{name}:{number}"
        if line[0] == "[":
            section, bracket, rest = line[1:].partition("]")
            if not bracket or not section.strip() or rest.strip()[:1] not in ("", "#", ";"):
                raise OutputError(f"{place}: no section: {shown(line)}\n  remedy: write [NAME] on a line of its own")
            if section.strip() == "global":
                options = of_all
            else:
                options = dict(of_all)
                jobs.append((section.strip(), options))
            continue
        if re.match(r"include\s", line):
            raise OutputError(f"{place}: {shown(line)}: files are not included\n  remedy: paste the file here")
        if options is None:
            raise OutputError(
                f"{place}: an option before the first section: {shown(line)}\n"
                "  remedy: begin with [global] or [NAME]; check that this is a fio job file"
            )
        key, _, value = line.partition("=")
        key = key.strip().lower()
        options[_ALIASES.get(key, key)] = _Option(_expand(value.strip(), place), number)
    return jobs


def _expand(value: str, place: str) -> str:
    """The value with `${NAME}` replaced by the variable of the environment, as fio does."""

    def of(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if found is None:
            raise OutputError(f"{place}: the variable {match[1]} is not set\n  remedy: export {match[1]}=...")
        return found

    return re.sub(r"\$\{(\w+)\}", of, value)


class _Job:
    """A job of the file."""

    def __init__(
        self,
        name: str,
        options: Mapping[str, _Option],
        logical_bytes: int,
        file: str,
        found: Jobs,
        places: Places,
    ) -> None:
        self._name = name
        self._options = options
        self._logical_bytes = logical_bytes
        self._file = file
        self._places = places
        self._found = found
        self._used: set[str] = set()
        self._kb_base = 1024
        if (base := self._text("kb_base")) is not None:
            if base not in ("1000", "1024"):
                raise self._wrong("kb_base", "1000 or 1024")
            self._kb_base = int(base)
        self.count = self._count("numjobs", 1)
        self._increment = self._bytes("offset_increment") or 0
        self._client = self._mapped()
        self._name_others()

    def client(self, number: int) -> dict[str, object]:
        """The client of clone `number`, from 0."""
        begin, end = self._span
        begin, end = begin + number * self._increment, end + number * self._increment
        end = min(end, self._logical_bytes)
        return {**self._client, "span": {"from": f"{begin}B", "to": f"{end}B"}}

    # The values of options.

    def _text(self, key: str) -> str | None:
        option = self._options.get(key)
        if option is None:
            return None
        self._used.add(key)
        return option.value

    def _wrong(self, key: str, wants: str) -> OutputError:
        option = self._options[key]
        return OutputError(
            f"{self._file}:{option.line}: {key}={shown(option.value)}: expected {wants}\n  remedy: correct the line"
        )

    def _without(self, key: str, why: str) -> None:
        self._used.add(key)
        value = self._options[key].value
        self._found.without.append(f"[{self._name}] {key}{f'={value}' if value else ''} ({why})")

    def _assume(self, text: str) -> None:
        self._found.assumed.append(f"[{self._name}] {text}")

    def _flag(self, key: str) -> bool:
        value = self._text(key)
        return value is not None and value not in ("0", "false", "no")

    def _count(self, key: str, default: int, least: int = 1) -> int:
        value = self._text(key)
        if value is None:
            return default
        number = self._number(value)
        if number is None or not least <= number <= _REQUESTS_MAX:
            raise self._wrong(key, f"a whole number of at least {least}")
        return number

    def _number(self, text: str) -> int | None:
        """A number with the suffix of a size."""
        match = re.fullmatch(r"(0x[0-9a-f]+|\d+(?:\.\d+)?)\s*(?:([kmgtp])(i?)b?|b)?", text.strip().lower())
        if match is None:
            return None
        number, prefix, opposite = match[1], match[2], match[3]
        base = self._kb_base
        if opposite:
            base = 1000 if base == 1024 else 1024
        factor = base ** _POWERS[prefix] if prefix else 1
        return int(number, 16) if number.startswith("0x") else round(float(number) * factor)

    def _bytes(self, key: str) -> int | None:
        """A size, or a share of the drive in whole sectors of 512 bytes."""
        value = self._text(key)
        if value is None:
            return None
        if match := re.fullmatch(r"(\d+(?:\.\d+)?)%", value):
            return int(self._logical_bytes * min(float(match[1]), 100.0) / 100) // 512 * 512
        number = self._number(value)
        if number is None:
            raise self._wrong(key, "a size such as 4k or a share such as 20%")
        return number

    def _time_ns(self, key: str, unit_ns: int) -> int | None:
        value = self._text(key)
        if value is None:
            return None
        total, rest = 0, value.lower().replace(" ", "")
        while match := re.match(r"(\d+(?:\.\d+)?)([a-z]*):?", rest):
            factor = _TIMES_NS.get(match[2], unit_ns if not match[2] else 0)
            if not factor:
                break
            total += round(float(match[1]) * factor)
            rest = rest[match.end() :]
        if rest or not value:
            raise self._wrong(key, "a time such as 30s")
        return total

    # What the options mean.

    def _mapped(self) -> dict[str, object]:
        kind, colon, after = (self._text("rw") or "read").partition(":")
        if kind in ("trimwrite", "randtrimwrite"):
            self._without("rw", "a write does not follow each TRIM here; the client writes and TRIMs half each")
            reads, trims, is_random = 0.0, 0.5, kind.startswith("rand")
        elif kind in _KINDS:
            of_kind, trims, is_random = _KINDS[kind]
            reads = self._mix() if of_kind is None else of_kind
        else:
            raise self._wrong("rw", f"one of {', '.join(_KINDS)}, trimwrite, randtrimwrite")
        if colon:
            self._without("rw", f"the modifier :{after} of the addresses")
        client: dict[str, object] = {"read_fraction": reads}
        if trims:
            client["trim_fraction"] = trims
        sizes = self._sizes(reads, trims)
        client["size"] = f"{next(iter(sizes))}B" if len(sizes) == 1 else {f"{n}B": w for n, w in sizes.items()}
        align = self._bytes("ba") or min(sizes)
        if align % 512 or align > 1 << 30:
            raise self._wrong("ba" if "ba" in self._options else "bs", "a multiple of 512 bytes, of at most 1 GiB")
        client["align"] = f"{align}B"
        client["address"] = self._address(is_random)
        mean = sum(size * weight for size, weight in sizes.items()) / sum(sizes.values())
        self._amount(client, mean)
        self._arrival(client, reads, trims, mean)
        if every := self._count("fsync", 0, 0):
            client["flush_every"] = every
        if placement := self._placement():
            client["placement"] = placement
        return client

    def _placement(self) -> int:
        """The placement identifier of the job's writes; 0 without data placement."""
        kind = self._text("dataplacement") or ("fdp" if self._flag("fdp") else "none")
        self._text("fdp")
        if kind not in ("none", "fdp", "streams"):
            raise self._wrong("dataplacement", "none, fdp or streams")
        if kind == "streams":
            self._without("dataplacement", "the drive has placement handles (fdp), and no streams directive")
        if kind != "fdp":
            return 0
        if "plids" not in self._options:
            key = "dataplacement" if "dataplacement" in self._options else "fdp"
            if self._places.count > 1:
                self._without(key, "fio takes all placements in turn, a client has one; taken: index 0; set plids")
            return 0
        ranges = self._ranges("plids")
        count, taken = self._places.count, ranges[0][0]
        if beyond := [max(of[0], count) for of in ranges if of[-1] >= count]:
            raise self._wrong("plids", f"{self._places}; found {beyond[0]}")
        if sum(map(len, ranges)) > 1:
            self._without("plids", f"fio takes them in turn, a client has one; taken: {taken}; write a job each")
        return self._places.identifier(taken)

    def _ranges(self, key: str) -> list[range]:
        """Whole numbers and ranges of them, such as `0,2-4`; none is empty."""
        ranges: list[range] = []
        for part in (self._text(key) or "").split(","):
            match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part.strip())
            found = range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)
            if not found or found[-1] > _PLACEMENTS_MAX:
                raise self._wrong(key, "indices such as 0,2-4")
            ranges.append(found)
        return ranges

    def _mix(self) -> float:
        both = [name for name in ("rwmixread", "rwmixwrite") if self._text(name) is not None]
        if not both:
            return 0.5
        # Of both options fio takes the one that comes last.
        key = max(both, key=lambda name: self._options[name].line)
        value = self._text(key) or ""
        if not value.isdigit() or int(value) > 100:
            raise self._wrong(key, "a number from 0 to 100")
        return int(value) / 100 if key == "rwmixread" else (100 - int(value)) / 100

    def _parts(self, key: str) -> list[str]:
        """The values for reads, writes and TRIMs; of absent ones the last that is given."""
        parts = [part.strip() for part in (self._text(key) or "").split(",")]
        parts += [""] * (3 - len(parts))
        for i in (1, 2):
            parts[i] = parts[i] or parts[i - 1]
        return parts[:3]

    def _used_part(self, key: str, reads: float, trims: float) -> str:
        """The value of an option for the operations of the job."""
        parts = self._parts(key)
        is_used = (reads > 0, reads + trims < 1, trims > 0)
        used = [part for part, used in zip(parts, is_used, strict=True) if used]
        if len(set(used)) > 1:
            self._without(
                key, f"reads, writes and TRIMs of one client have one distribution of sizes; taken: {used[0]}"
            )
        return used[0]

    def _sizes(self, reads: float, trims: float) -> dict[int, float]:
        """The sizes of requests with their weights."""
        sizes: dict[int, float] = {}
        if "bssplit" in self._options:
            key = "bssplit"
            entries = [entry.split("/") for entry in self._used_part(key, reads, trims).split(":")]
            given = sum(float(entry[1]) for entry in entries if len(entry) > 1 and entry[1].isdigit())
            open_ended = sum(1 for entry in entries if len(entry) < 2 or not entry[1])
            for entry in entries:
                size = self._number(entry[0])
                weight = (
                    float(entry[1]) if len(entry) > 1 and entry[1].isdigit() else (100 - given) / max(open_ended, 1)
                )
                if size is None:
                    raise self._wrong(key, "sizes and shares such as 4k/60:64k/40")
                if weight > 0:
                    sizes[size] = sizes.get(size, 0.0) + weight
        elif "bsrange" in self._options:
            key = "bsrange"
            ends = [self._number(end) for end in self._used_part(key, reads, trims).split("-")]
            low, high = (ends[0], ends[-1]) if ends else (None, None)
            if low is None or high is None or not 0 < low <= high:
                raise self._wrong(key, "a range such as 4k-64k")
            step = low * -(-(high // low) // 4096)
            sizes = dict.fromkeys(range(low, high + 1, step), 1.0)
        else:
            key = "bs"
            text = self._used_part(key, reads, trims) if key in self._options else "4096"
            size = self._number(text)
            if size is None:
                raise self._wrong(key, "a size such as 4k")
            sizes[size] = 1.0
        if not sizes or any(size == 0 or size % 512 or size > 1 << 30 for size in sizes):
            raise self._wrong(key, "multiples of 512 bytes, of at most 1 GiB")
        return sizes

    def _address(self, is_random: bool) -> object:
        if not is_random:
            return "sequential"
        kind, *parameters = (self._text("random_distribution") or "random").split(":")
        if kind == "random":
            return "uniform"
        if kind == "zipf" and parameters:
            if len(parameters) > 1:
                self._without("random_distribution", "the centre of the distribution")
            try:
                return {"zipf": float(parameters[0])}
            except ValueError:
                raise self._wrong("random_distribution", "an exponent such as zipf:1.2") from None
        self._without("random_distribution", "the addresses are uniform")
        return "uniform"

    def _amount(self, client: dict[str, object], mean: float) -> None:
        """The span, the number of requests and the duration."""
        begin = self._bytes("offset") or 0
        size = self._bytes("size") or self._bytes("filesize")
        end = self._logical_bytes if size is None else begin + size
        if end > self._logical_bytes or begin >= end:
            key = next(key for key in ("size", "filesize", "offset") if key in self._options)
            raise self._wrong(key, f"a part of the {self._logical_bytes} bytes of the drive")
        last = begin + self._increment * (self.count - 1)
        if last >= self._logical_bytes:
            raise self._wrong("offset_increment", f"offsets within the {self._logical_bytes} bytes of the drive")
        self._span = (begin, end)
        moved = self._bytes("io_size") or end - begin
        requests = self._count("number_ios", max(1, int(moved / mean)))
        requests = min(requests * self._count("loops", 1), _REQUESTS_MAX)
        runtime = self._time_ns("runtime", 10**9)
        if self._flag("time_based"):
            if not runtime:
                raise self._wrong("time_based", "a runtime beside it")
            requests = _REQUESTS_MAX
        client["requests"] = requests
        if runtime:
            client["duration"] = f"{runtime}ns"
        if "-" in (self._text("startdelay") or ""):
            self._without("startdelay", "a random delay")
        elif start := self._time_ns("startdelay", 10**9):
            client["start"] = f"{start}ns"

    def _arrival(self, client: dict[str, object], reads: float, trims: float, mean: float) -> None:
        depth = self._count("iodepth", 1)
        engine = (self._text("ioengine") or "").partition(",")[0]
        if engine in _SYNCHRONOUS and depth > 1:
            self._assume(f"one request outstanding, as ioengine={engine} caps iodepth={depth}")
            depth = 1
        if engine:
            self._found.ignored.append("ioengine")
        rate = self._rate(client, reads, trims, mean)
        think = self._time_ns("thinktime", 1000)
        process = self._text("rate_process") or "linear"
        if process not in ("linear", "poisson"):
            raise self._wrong("rate_process", "linear or poisson")
        if rate is None:
            client["arrival"] = {"queue_depth": depth}
            if think:
                client["think_time"] = f"{think}ns"
                if self._count("thinktime_blocks", 1) != 1:
                    self._without("thinktime_blocks", "the client thinks after each request")
                if depth > 1:
                    self._assume("each of the outstanding requests is followed by a think time of its own")
            return
        if think:
            self._without("thinktime", "an open loop does not think")
        client["arrival"] = {"iops": rate, "process": "poisson" if process == "poisson" else "even"}
        client["outstanding"] = depth
        client["latency_from"] = "submission"

    def _rate(self, client: dict[str, object], reads: float, trims: float, mean: float) -> float | None:
        """The rate of an open loop, in requests per second."""
        key = next((key for key in ("rate_iops", "rate") if self._text(key)), None)
        if key is None:
            return None
        shares = (reads, max(0.0, 1 - reads - trims), trims)
        # The last part that is given counts for those after it; an empty part is no limit.
        given = [part.strip() for part in (self._text(key) or "").split(",")]
        given += given[-1:] * (3 - len(given))
        rates: list[float | None] = []
        for part in given[:3]:
            number = self._number(part) if part else None
            if part and number is None:
                raise self._wrong(key, "a rate such as 500 or 500,200")
            rates.append(None if not number else number / (mean if key == "rate" else 1))
        limits = [rate / share for rate, share in zip(rates, shares, strict=True) if rate is not None and share > 0]
        if not limits:
            return None
        if len([share for share in shares if share > 0]) > 1:
            # fio limits reads and writes each; the mix decides which limit is reached.
            self._assume(f"{min(limits):g} requests per second of reads and writes together, by {key} and the mix")
        return min(limits)

    def _name_others(self) -> None:
        """Name the options that have not been used."""
        for key in self._options:
            if key in self._used:
                continue
            if key in _WITHOUT_EFFECT or key in _MAPPED:
                self._found.ignored.append(key)
            elif key == "stonewall":
                self._without(key, "all clients run at once; use start, or a run for each job")
            elif key == "ramp_time":
                self._without(key, "set workload.warm_up, a number of requests")
            elif key == "percentage_random" and self._options[key].value in ("100", ""):
                self._found.ignored.append(key)
            else:
                self._without(key, "nothing like it" if key in _KNOWN else "unknown option")


def places_of(drive: Spec) -> Places:
    """The placement identifiers of the drive of a spec."""
    placement = tomllib.loads(drive.to_toml())["placement"]
    return Places(placement["handles"], placement["groups"])


def read_spec_with(path: Path, sets: list[str], job: str | os.PathLike[str]) -> tuple[Spec, Jobs]:
    """The spec in the file `path` with the jobs of the file `job` as its workload."""
    # The size of the drive depends on the spec, and what the jobs address on this size.
    drive = read_spec(path, [*sets, 'workload.clients=[{ name = "fio" }]'])
    jobs = read_jobs(job, drive.logical_bytes, places_of(drive))
    return read_spec(path, [*sets, f"workload.clients={toml_value(jobs.clients)}"]), jobs
