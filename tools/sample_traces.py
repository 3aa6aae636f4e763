"""The sample traces in examples/: generated workloads calibrated to our own recordings (`recorded/...`).

python tools/sample_traces.py           writes them
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from nandlab import trace

EXAMPLES = Path(__file__).parents[1] / "examples"
REQUESTS = 3_000


def generated(profile: str) -> str:
    """Requests of a profile in the format of MSR."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "sample.csv")
        trace.convert(None, out, to="msr", profile=profile, requests=REQUESTS, drop=True)
        return out.read_text(encoding="ascii")


def in_columns(msr: str) -> str:
    """The same requests as a text of a format of its own: milliseconds, device, offset, size, 1 for a read."""
    rows = [line.split(",") for line in msr.splitlines()]
    first = int(rows[0][0])
    lines = ["ms disk offset size read"]
    for time, _, disk, op, offset, size, _ in rows:
        lines.append(f"{(int(time) - first) / 1e4:.4f} {disk} {offset} {size} {int(op == 'Read')}")
    return "\n".join(lines) + "\n"


def samples() -> dict[str, str]:
    """The text of each sample trace by the name of its file."""
    return {
        "oltp.csv": generated("recorded/oltp"),
        "fileserver.txt": in_columns(generated("recorded/fileserver")),
    }


if __name__ == "__main__":
    for name, text in samples().items():
        (EXAMPLES / name).write_text(text, encoding="ascii")
        print(EXAMPLES / name)
