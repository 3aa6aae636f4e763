"""Given generated specs and traces, the `nandlab` command must end in a result or in an error with a remedy.

A case is generated from its number, so a case that fails can be generated again. `NANDLAB_INPUTS=2000,500` sets the
number of specs and the number of traces; this is the size of `make inputs`.
"""

import contextlib
import gzip
import io
import json
import lzma
import os
import random
import shutil
import struct
import subprocess
import time

import pytest

SPECS, TRACES = map(int, os.environ.get("NANDLAB_INPUTS", "200,60").split(","))

#: The largest error output allowed: lines, characters per line, bytes.
LINES_MAX, LINE_MAX, BYTES_MAX = 25, 400, 4000
#: The most CPU time that a command may use.
SECONDS_MAX = 2.0
#: A drive with more raw pages is not simulated: its spec is only checked.
PAGES_MAX = 4096

SPEC = """\
seed = 1
[drive]
channels = 2
chips_per_channel = 1
planes_per_die = 1
blocks_per_plane = 64
pages_per_block = 16
page_size = "4KiB"
cell = "mlc"
op = 1.0
"""
WORKLOAD = """\
[workload]
synthetic = { requests = 40, read_fraction = 0.4, size = { "4KiB" = 0.5, "16KiB" = 0.5 } }
arrival = { queue_depth = 4 }
"""
#: Sections that may be added to `SPEC`; the spec is valid with any one of them.
PARTS = [
    "[gc]\nvictim = { random = { k = 8 } }\nbackground_free = 0.2\nforeground_free = 0.1\n",
    '[timing]\nread = "50us"\nprogram = { lsb = "300us", msb = "1ms" }\nscheduler = "fcfs"\n',
    '[ecc]\nlevels = "laldpc"\nstart = "block-level"\n[reliability]\nrber = { vth = { dvpp = 0.3 } }\n',
    '[cache]\nsize = "64KiB"\nsync = "greedy"\ndirty_budget = 0.5\n',
    '[capacitor]\ncapacitance = "75mF"\nflush = "csw"\n[power]\ncut_after_requests = 20\n',
    "[precondition]\nused = 0.6\nvalid = 0.7\nmap_reads = true\n",
    '[refresh]\npolicy = "fcr"\ninterval = [{ pe = 1000, every = "30d" }]\n',
    '[ftl]\nmap = { demand = { cache = "8KiB" } }\nallocation = "dynamic"\nwear_levelling = "static"\n',
    "[migration]\npolicy = { rcopyback = { limit = 3 } }\n",
    "[output]\nrequests = true\ntimeline_operations = 100\n",
    '[energy]\nread = "50uJ"\nidle = "50mW"\n',
]

ODD_TEXTS = [
    "",
    " ",
    "\u202egc\u202c",
    "\u2028\u2029",
    "\u0000",
    "\x1b[31mred",
    "\ufeff",
    "\U0001f4be" * 50,
    "\ud7ff\ue000",
    "e\u0301" * 60,
    "../" * 40,
    "/dev/null",
    "/proc/self/mem",
    ".",
    "spec.toml",
    "%s%n{0}{}",
    "[bold]x[/]",
    "a" * 5000,
    "b/" * 3000,
    "1e999s",
    "99999999999999999999999999d",
    "0.0000000000000000000000000001ns",
    "16EiB",
    "-4KiB",
    "4 KiB ",
    "\u0664KiB",
    "NaN",
    "concatenate",
]
ODD_VALUES = [
    "0", "-1", "1", "2", "1_000_000", "9223372036854775807", "-9223372036854775808", "9" * 400, "0x7fffffffffffffff",
    "1e308", "-1e308", "1e-308", "5e-324", "inf", "-inf", "nan", "-0.0", "0.1", "0.5", "1.0000000001", "true", "false",
    "1979-05-27", "1979-05-27T07:32:00Z", "07:32:00", "[]", "{}", "[[]]", "[1, 2, 3]", "[{}]", "{ a = 1 }", "''", '""',
    "[" * 60 + "]" * 60, "[" * 500 + "]" * 500, "{ a = " * 60 + "1" + " }" * 60, "a.b", "'''", "\u00bd", "=", "",
    '{ "4KiB" = 0.5, "4096B" = 0.5 }', '{ "4KiB" = 1e12, "8KiB" = 1e-300 }', '{ "1GiB" = 1 }', "{ zipf = 9.99 }",
    "{ hot = 1e-12, share = 1.0 }", "{ queue_depth = 65536 }", "{ iops = 1e-9 }", "{ iops = 1e9 }", '"trace"',
    '[{ age = "0s", share = 1 }]', "[{ pe = 0, copybacks = 0 }, { pe = 0, copybacks = 1 }]",
]  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ the specs


#: Units of the values whose pattern in the schema contains the key.
UNITS = {
    "min": "ns us ms s min h d",
    "iB": "B KiB MiB GiB TiB kB",
    "J": "J uJ nJ",
    "W": "mW W",
    "F": "mF F",
    "V": "V mV",
}


def toml_text(text):
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def value_of(schema, rng):
    """A value as TOML: mostly one that the schema allows, often at the ends of its range; sometimes an invalid one."""
    if rng.random() < 0.02:
        return rng.choice(ODD_VALUES)
    if "anyOf" in schema:
        return value_of(rng.choice(schema["anyOf"]), rng)
    if "const" in schema:
        return toml_text(schema["const"])
    if "enum" in schema:
        return toml_text(rng.choice(schema["enum"]))
    kind = schema.get("type")
    if kind == "boolean":
        return rng.choice(["true", "false"])
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        high = schema.get("maximum", schema.get("exclusiveMaximum", 1))
        near = low + (high - low) * rng.random() ** 8
        picked = rng.choice([low, high, low + 1, high - 1, near, near, near, near])
        return repr(int(picked)) if kind == "integer" else repr(float(picked))
    if kind == "array":
        return "[" + ", ".join(value_of(schema["items"], rng) for _ in range(rng.choice([1, 1, 2, 3, 70]))) + "]"
    if kind == "object":
        if not schema.get("properties"):
            sizes = [f'"{512 * rng.randint(1, 40)}B" = {rng.random()!r}' for _ in range(rng.choice([0, 1, 2, 5000]))]
            return "{ " + ", ".join(sizes) + " }"
        required = schema.get("required", [])
        names = [name for name in schema["properties"] if name in required or rng.random() < 0.5]
        return "{ " + ", ".join(f"{name} = {value_of(schema['properties'][name], rng)}" for name in names) + " }"
    pattern = schema.get("pattern")
    if pattern is not None:
        units = next((units for mark, units in UNITS.items() if mark in pattern), "m")
        amount = rng.choice(["0", "1", "50", "0.5", "1.5", "999999999", "4", "16", str(rng.randint(0, 10**6))])
        return toml_text(f"{amount}{rng.choice(units.split())}")
    return toml_text(rng.choice([*ODD_TEXTS, "no-such-file", "msr/hm_0", "demo-128g"]))


def whole_spec(rng, parts=3):
    return SPEC + "".join(rng.sample(PARTS, rng.randint(0, parts))) + WORKLOAD


def worn(rng, _schema):
    """A drive that wears out soon, maybe while it is preconditioned."""
    left = rng.randint(1, 10)
    endurance = rng.choice([left, 3000])
    spec = SPEC.replace("op = 1.0", f"op = {rng.choice([0.3, 0.5, 1.0])}\nendurance = {endurance}")
    maps = ['"page"', "{ demand = { cache = '4KiB' } }"]
    spec += f"[ftl]\nallocation = {toml_text(rng.choice(['CWDP', 'dynamic']))}\nmap = {rng.choice(maps)}\n"
    if endurance > left:
        spec += f"[reliability]\npe_cycles = {endurance - left}\n"
    methods = ['method = "pts"\n', f"used = {rng.choice([0.5, 0.7])}\nvalid = 0.7\nmap_reads = true\n"]
    requests = rng.choice([40, 20_000])
    return (
        f"{spec}[precondition]\n{rng.choice(methods)}"
        f"[workload]\nsynthetic = {{ requests = {requests}, read_fraction = 0.4, size = '4KiB' }}\n"
        "arrival = { queue_depth = 4 }\n"
    )


def by_schema(rng, schema):
    """A spec with random values of some keys: most values are valid alone, but may be invalid together."""
    sections = {name: part for name, part in schema["properties"].items() if part.get("type") == "object"}
    chosen: dict[str, dict[str, str]] = {"drive": dict(line.split(" = ") for line in SPEC.splitlines()[2:])}
    for _ in range(rng.choice([1, 1, 2, 3, 6])):
        section = rng.choice([*sections, "drive", "workload", "precondition", "capacitor", "refresh"])
        key = rng.choice(list(sections[section]["properties"]))
        chosen.setdefault(section, {})[key] = value_of(sections[section]["properties"][key], rng)
    if not {"synthetic", "trace", "profile"} & chosen.setdefault("workload", {}).keys():
        chosen["workload"]["synthetic"] = "{ requests = 40 }"
    return "".join(
        f"[{section}]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())
        for section, keys in chosen.items()
    )


def odd_value(rng, _schema):
    lines = whole_spec(rng).split("\n")
    for _ in range(rng.randint(1, 3)):
        at = rng.choice([i for i, line in enumerate(lines) if " = " in line])
        key = lines[at].split(" = ")[0]
        value = rng.choice([rng.choice(ODD_VALUES), toml_text(rng.choice(ODD_TEXTS))])
        lines[at] = f"{key} = {value}"
    return "\n".join(lines)


def odd_key(rng, _schema):
    lines = whole_spec(rng).split("\n")
    at = rng.randrange(len(lines))
    name = rng.choice(
        [toml_text(rng.choice(ODD_TEXTS)), "x" * rng.choice([1, 70, 4000]), "a." * 40 + "b", "a." * 90 + "b", "victm"]
    )
    if rng.random() < 0.5:
        lines.insert(at, f"{name} = {rng.choice(ODD_VALUES)}")
    else:
        lines[at] = f"{rng.choice(['[{}]', '[[{}]]']).format(name)}"
    return "\n".join(lines)


def moved_lines(rng, _schema):
    lines = whole_spec(rng).split("\n")
    for _ in range(rng.randint(1, 4)):
        what, at = rng.choice(["double", "drop", "swap", "cut"]), rng.randrange(len(lines))
        if what == "double":
            lines.insert(rng.randrange(len(lines)), lines[at])
        elif what == "drop" and len(lines) > 1:
            del lines[at]
        elif what == "swap":
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        else:
            lines[at] = lines[at][: rng.randint(0, len(lines[at]))]
    return rng.choice(["\n", "\r\n", "\r"]).join(lines) if rng.random() < 0.2 else "\n".join(lines)


def broken_bytes(rng, _schema):
    data = bytearray(whole_spec(rng).encode())
    how = rng.randrange(5)
    if how == 0:
        return bytes(rng.randbytes(rng.randint(0, 3000)))
    if how == 1:
        return bytes(data[: rng.randint(0, len(data))])
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(data))
        if how == 2:
            data[at] = rng.randrange(256)
        elif how == 3:
            data[at:at] = rng.choice([b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"'''", b"#", b"[", b"{", b"\x1b[2J"])
        else:
            del data[at : at + rng.randint(1, 20)]
    if rng.random() < 0.1:
        return bytes(data).decode("utf-8", "replace").encode("utf-16")
    return bytes(data)


def too_much(rng, _schema):
    count = rng.choice([100, 3000, 30_000])
    return rng.choice(
        [
            lambda: SPEC + "".join(f"chanel{i} = {i}\n" for i in range(count)),
            lambda: "".join(f"[gc{i}]\n" for i in range(count)) + SPEC,
            lambda: SPEC + "op = 0.1\n" * count,
            lambda: SPEC + "[gc]\nvictim.random = { " + ", ".join(f"k{i} = 1" for i in range(count)) + " }\n",
            lambda: SPEC + "[reliability]\nretention = [" + '{ age = "1d", share = 0.1 }, ' * count + "]\n",
            lambda: SPEC + "[refresh]\ninterval = [" + "{ pee = 1 }, " * min(count, 64) + "]\n",
            lambda: (
                SPEC
                + "[workload]\nsynthetic.size = { "
                + ", ".join(f'"{512 * i}B" = 1' for i in range(1, count))
                + " }\n"
            ),
            lambda: SPEC + "[workload]\n" + "k" * 20 * count + " = 1\n",
            lambda: SPEC + f'[workload]\ntrace = "{"t" * 20 * count}"\n',
            lambda: SPEC + "seed" + " = [" * count,
            lambda: SPEC + "\n" * 40 * count,
            lambda: SPEC + "# " + "x" * 60 * count,
            lambda: SPEC + "".join(f"[{'.'.join('abcdefghij')}.k{i}]\n" for i in range(count)),
        ]
    )()


def geometry(rng, _schema):
    big = [1, 2, 3, 31, 32, 63, 64, 1024, 32_768, 1 << 20, (1 << 20) + 1, 1 << 32, 1 << 62]
    counts = ("channels", "chips_per_channel", "dies_per_chip", "planes_per_die", "blocks_per_plane", "pages_per_block")
    lines = [f"{name} = {rng.choice(big)}" for name in counts if rng.random() < 0.5]
    size, op = (
        rng.choice(["512B", "1KiB", "3KiB", "1MiB", "1GiB", "0B"]),
        rng.choice(["0.0", "1e-9", "0.07", "9.0", "100.0"]),
    )
    return "[drive]\n" + "\n".join(lines) + f'\npage_size = "{size}"\nop = {op}\n' + rng.choice(["", *PARTS]) + WORKLOAD


MAKERS = [by_schema, by_schema, by_schema, odd_value, odd_key, moved_lines, broken_bytes, too_much, geometry, worn]


def some_sets(rng, schema):
    """Arguments `--set KEY=VALUE`; in most cases none."""
    if rng.random() < 0.8:
        return []
    sections = {name: part for name, part in schema["properties"].items() if part.get("type") == "object"}
    sets = []
    for _ in range(rng.randint(1, 3)):
        section = rng.choice(list(sections))
        key, part = rng.choice(list(sections[section]["properties"].items()))
        path = rng.choice([f"{section}.{key}", f"{section}.{key}.below", section, "", "x" * 500, rng.choice(ODD_TEXTS)])
        value = rng.choice([value_of(part, rng), rng.choice(ODD_VALUES), rng.choice(ODD_TEXTS)])
        # An argument of a command cannot contain a zero byte.
        sets.append(f"{path}={value}".replace("\0", "\x01"))
    return [argument for text in sets for argument in ("--set", text)]


# ----------------------------------------------------------------------------------------------------------- the traces

#: By format: the header, a line, and the values of its `op` for read and write. `t` is the time in units of the format,
#: `at` is the time in seconds, `s` and `n` are address and length in sectors, `offset` and `length` are in bytes, `d`
#: is the device.
FORMATS = {
    "msr": ("", "{ticks},hm,{d},{op},{offset},{length},26", ("Read", "Write")),
    "spc": ("", "{d},{s},{length},{op},{at:.6f}", ("R", "W")),
    "blkparse": ("", "  8,{d} 0 1 {at:.9f} 7 D {op} {s} + {n} [fio]", ("R", "W")),
    "fio-iolog": ("fio version 3 iolog\n", "{t} /dev/sd{d} {op} {offset} {length}", ("read", "write")),
    "ssdsim": ("", "{t} {d} {s} {n} {op}", (1, 0)),
    "mqsim": ("", "{t} {d} {s} {n} {op}", (1, 0)),
    "disksim": ("", "{at:.6f} {d} {s} {n} {op}", (1, 0)),
    "alibaba": ("", "{d},{op},{offset},{length},{t}", ("R", "W")),
    "tencent": ("", "{whole},{s},{n},{op},{d}", (0, 1)),
    "systor": (
        "Timestamp,Response,IOType,LUN,Offset,Size\n",
        "{whole}.{fraction:09},0.1,{op},{d},{offset},{length}",
        ("R", "W"),
    ),
}


def line_of(name, t, s, n, is_write, d):
    _, line, ops = FORMATS[name]
    times = {
        "t": t,
        "at": t / 1000,
        "ticks": 128_166_372_000_000_000 + t,
        "whole": 1_456_095_145 + t // 10**9,
        "fraction": t % 10**9,
    }
    return line.format(**times, s=s, n=n, offset=512 * s, length=512 * n, op=ops[is_write], d=d)


def vscsi(t, s, n, w):
    return struct.pack("<IIIHHQQ", 1, n * 512 % 2**32, 1, 0x2A if w else 0x28, 0x0100, s % 2**64, t % 2**64)


def damaged(line, rng):
    """A line with one defect."""
    columns = line.replace(",", " ").split()
    column = rng.choice(columns) if columns else ""
    far = str(10 ** rng.randint(6, 25))
    odd = rng.choice(
        ["", "-1", "x", far, "1e9", "0", "\u0664", "\0", "nan", "9" * 40, "0x10", " ", column * 2, "Z" * 3000]
    )
    return rng.choice(
        [
            lambda: line.replace(column, odd, 1),
            lambda: line.replace(column, odd, 1),
            lambda: line[: rng.randint(0, len(line))],
            lambda: line + rng.choice([",", " 7", ",x", "\t"]),
            lambda: "\0" * rng.randint(1, 600),
            lambda: "".join(map(chr, rng.choices(range(256), k=rng.randint(1, 80)))),
            lambda: "# a comment",
            lambda: line + line,
            lambda: "y" * rng.choice([1000, 70_000, 300_000, 2 << 20]),
        ]
    )()


def trace_bytes(rng):
    """The format and the content of a trace, in most cases with defects."""
    name = rng.choice([*FORMATS, "vscsi"])
    devices = rng.choice([1, 1, 1, 1, 1, 2, 40])
    rows, t = [], 0
    for _ in range(rng.choice([0, 1, 5, 60, 60, 60, 60, 60, 60])):
        t += rng.choice([0, 1, 10, 1000])
        if rng.random() < 0.003:
            t += 10 ** rng.randint(6, 15)
        sector, sectors = rng.randrange(10_000), rng.choice([1, 8, 64])
        if rng.random() < 0.005:
            sector, sectors = rng.choice([(2**40, 8), (8, 0), (8, 2**23), (2**63 // 512, 8), (8, 2**50)])
        rows.append((t, sector, sectors, rng.random() < 0.5, rng.randrange(devices)))
    if name == "vscsi":
        data = b"".join(vscsi(*row[:4]) for row in rows)
        for _ in range(rng.choice([0, 1, 3])):
            if data:
                at = rng.randrange(len(data))
                data = data[:at] + rng.randbytes(rng.choice([1, 4, 32])) + data[at + rng.choice([0, 1, 4, 32]) :]
    else:
        lines = [*FORMATS[name][0].splitlines(), *(line_of(name, *row) for row in rows)]
        for _ in range(rng.choice([0, 0, 1, 1, 2, 10])):
            if lines:
                at = rng.choice([0, 1, rng.randrange(len(lines))]) % len(lines)
                lines[at] = damaged(lines[at], rng)
        ends = rng.choice([["\n"], ["\n"], ["\r\n"], ["\n", "\r\n"], ["\n", "\r\n", "\n\n", "\r", "\n \n"]])
        text = "".join(line + rng.choice(ends) for line in lines)
        data = text.encode(rng.choice(["utf-8"] * 6 + ["utf-8-sig"] * 2 + ["utf-16"]), "surrogatepass")
    pack = rng.choice([None, None, None, gzip.compress, lzma.compress, zstd])
    if pack is not None:
        data = pack(data)
    if rng.random() < 0.1:
        data = data[: rng.randint(0, len(data))]
    if rng.random() < 0.05:
        data = rng.randbytes(rng.randint(0, 2000))
    return name, data


def zstd(data):
    if shutil.which("zstd") is None:
        return gzip.compress(data)
    return subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True, check=True).stdout


def trace_command(rng, name):
    """The arguments of a command that reads the file `trace`, a trace in format `name`."""
    options = {
        "format": rng.choice([None, name, name, name, name, rng.choice([*FORMATS, "vscsi", "zip"])]),
        "device": rng.choice([None] * 8 + ["concatenate"] * 3 + [rng.choice(["0", "hm_0", "/dev/sd1", *ODD_TEXTS])]),
        "time_unit": rng.choice([None] * 5 + ["us", "ns", "s"]),
        "max_gap": rng.choice([None] * 5 + ["30d", "36500d"] * 2 + [rng.choice(["1ns", "106751d", "146a"])]),
    }
    lenient = rng.random() < 0.7
    # An argument of a command cannot contain a zero byte.
    given = {key: value.replace("\0", "\x01") for key, value in options.items() if value}
    if rng.random() < 0.6:
        sets = {f"workload.{key}": value for key, value in given.items()} | {
            "workload.lenient": str(lenient).lower(),
            "workload.beyond": rng.choice(["wrap", "refuse"]),
            "workload.whole_pages": rng.choice(["true", "false"]),
            "workload.repeat": rng.choice(["1", "2", "3"]),
            "workload.arrival": rng.choice(["trace", "{ queue_depth = 2 }", "{ iops = 1000 }"]),
            "precondition.map_reads": rng.choice(["true", "false"]),
            "output.requests": rng.choice(["true", "false"]),
        }
        return ["run", "spec.toml", "--out", "r", *(a for k, v in sets.items() for a in ("--set", f"{k}={v}"))]
    arguments = [a for k, v in given.items() for a in (f"--{k.replace('_', '-')}", v)] + ["--lenient"] * lenient
    if rng.random() < 0.6:
        return ["trace", "stat", "trace", *arguments]
    to = rng.choice([*FORMATS, "vscsi"])
    return ["trace", "convert", "trace", "--to", to, "--out", "converted", *["--drop"] * rng.randrange(2), *arguments]


# ----------------------------------------------------------------------------------------------------------- the checks


def left_behind(directory, before):
    """Files that are neither in `before` nor part of a complete result in `r`."""
    there = {str(path.relative_to(directory)) for path in directory.rglob("*")} - before
    marker = directory / "r" / "nandlab-result.json"
    if marker.exists():
        files = json.loads(marker.read_text())["files"]
        there -= {"r", "r/nandlab-result.json", *(f"r/{name}" for name in files)}
    return there


def call(arguments):
    """Runs the command in this process; returns exit status, stdout and stderr."""
    from nandlab import cli

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli._run(arguments).status
    return status, out.getvalue(), err.getvalue()


def problems_of(arguments, directory, monkeypatch):
    """Runs a command in `directory`; returns its exit status and a list of problems, with the output at the end."""
    monkeypatch.chdir(directory)
    before = {str(path.relative_to(directory)) for path in directory.rglob("*")}
    begin, begin_wall = time.process_time(), time.monotonic()
    status, out, err = call(arguments)
    used, waited = time.process_time() - begin, time.monotonic() - begin_wall
    found = []
    if status not in (0, 2):
        found.append(f"exit status {status}")
    if "Traceback" in err or "a bug in nandlab" in err:
        found.append("stderr reports a bug")
    left = left_behind(directory, before)
    if status == 0:
        left -= {"converted", "drive"}
    else:
        lines = err.split("\n")[:-1]
        if out:
            found.append("refused, but wrote to stdout")
        if not 1 <= len(lines) <= LINES_MAX or max(map(len, lines)) > LINE_MAX or len(err.encode()) > BYTES_MAX:
            found.append("the error is empty or too long for a screen")
        if "remedy: " not in err:
            found.append("the error has no remedy")
        if not all(character.isprintable() or character == "\n" for character in err):
            found.append("the error has unprintable characters")
    if left:
        found.append(f"files left behind: {sorted(left)[:5]}")
    if used > SECONDS_MAX or waited > 20 * SECONDS_MAX:
        found.append(f"took too long: {used:.1f} s of CPU time, {waited:.1f} s elapsed")
    return status, found and [*found, out[-2000:] + err[:3000]]


def failure(number, arguments, found, data):
    """The report of a failed case: what is wrong, the command, its output, the input file."""
    what = ", ".join(found[:-1])
    shown = data if len(data) < 3000 else data[:1500] + b" ... " + data[-500:]
    return f"case {number}: {what}\n{arguments}\n{found[-1]}\n{shown!r}"


class Tally:
    """Counts exit statuses and collects the failures of all generated specs, or of all generated traces."""

    def __init__(self):
        self.failures = []
        self.statuses = {0: 0, 2: 0}

    def add(self, number, arguments, status, found, data):
        if found:
            self.failures.append(failure(number, arguments, found, data))
        self.statuses[status] = self.statuses.get(status, 0) + 1

    def judge(self, what, count):
        assert not self.failures, f"{len(self.failures)} of {count} {what} failed\n\n" + "\n\n".join(self.failures[:5])
        print(f"{count} {what}: {self.statuses[0]} accepted, {self.statuses[2]} refused")
        assert min(self.statuses.values()) > count / 20, "too few accepted or too few refused cases"


@pytest.fixture
def no_exit(monkeypatch):
    """Raises an error instead of ending the process in `os._exit`; and sets the width of the screen."""

    def leave(status):
        raise AssertionError(f"the command called os._exit({status})")

    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setenv("COLUMNS", "100")
    return monkeypatch


@pytest.mark.parametrize("part", ["", *PARTS])
def test_each_section_that_generated_specs_add_is_valid(part):
    import nandlab

    nandlab.load(SPEC + part + WORKLOAD)


def test_generated_specs_end_in_a_result_or_an_error_with_a_remedy(tmp_path, no_exit):
    import nandlab

    schema = json.loads(nandlab.schema())
    tally = Tally()
    for number in range(SPECS):
        rng = random.Random(f"spec {number}")
        text = rng.choice(MAKERS)(rng, schema)
        data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
        directory = tmp_path / str(number)
        directory.mkdir()
        (directory / "spec.toml").write_bytes(data)
        sets = some_sets(rng, schema)
        arguments = ["spec", rng.choice(["check", "show"]), "spec.toml", *sets]
        status, found = problems_of(arguments, directory, no_exit)
        if status == 0 and not found and is_small(directory, sets):
            sets += ["--set", "workload.requests_max=40"]
            arguments = rng.choice(
                [
                    ["run", "spec.toml", *sets, "--out", "r"],
                    ["run", "spec.toml", *sets, "--out", "r", "--verify", "--json"],
                    ["run", "spec.toml", *sets, "--out", "r", "--save-drive", "drive"],
                    ["spec", "fit", "spec.toml", *sets],
                    ["reliability", "spec.toml", *sets, "--json"],
                ]
            )
            status, found = problems_of(arguments, directory, no_exit)
        tally.add(number, arguments, status, found, data)
        no_exit.chdir(tmp_path)
        shutil.rmtree(directory)
    tally.judge("specs", SPECS)


def is_small(directory, sets):
    """Whether the drive of a spec is small enough to simulate: at most `PAGES_MAX` raw pages and less than 64 MiB."""
    from nandlab import spec

    checked = spec.read_spec(directory / "spec.toml", sets[1::2])
    return checked.raw_bytes <= PAGES_MAX * checked.page_bytes and checked.raw_bytes < 64 << 20


def test_generated_traces_end_in_a_result_or_an_error_with_a_remedy(tmp_path, no_exit):
    tally = Tally()
    for number in range(TRACES):
        rng = random.Random(f"trace {number}")
        name, data = trace_bytes(rng)
        directory = tmp_path / str(number)
        directory.mkdir()
        (directory / "trace").write_bytes(data)
        (directory / "spec.toml").write_text(SPEC + '[workload]\ntrace = "trace"\n')
        arguments = trace_command(rng, name)
        status, found = problems_of(arguments, directory, no_exit)
        tally.add(number, arguments, status, found, data)
        no_exit.chdir(tmp_path)
        shutil.rmtree(directory)
    tally.judge("traces", TRACES)
