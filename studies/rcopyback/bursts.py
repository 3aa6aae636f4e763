"""The bursts of the rcopyback paper, Section 5.2: High, Mid and Low, for bursts.toml.

    python bursts.py FOLDER

A round is a part of its requests at once and the rest with idle times between them: 70, 50 or 30 % at once. Requests are
random writes of 16 KiB over the whole drive.
"""

import gzip
import random
import sys
from pathlib import Path

PAGE = 16 * 1024
PAGES = 370_000  # the logical space of the drive in bursts.toml
ROUND = 200_000  # requests of a round
ROUNDS = 4
IDLE_US = 20_000  # more than gc.idle_after, so that the drive collects in between
SHARES = {"high": 0.7, "mid": 0.5, "low": 0.3}


def write(path: Path, at_once: float) -> None:
    random_page = random.Random(1)
    with gzip.GzipFile(path, "wb", mtime=0) as out:
        out.write(b"fio version 3 iolog\n0 bursts add\n0 bursts open\n")
        now_us = 0
        for _ in range(ROUNDS):
            for number in range(ROUND):
                now_us += 1 if number < at_once * ROUND else IDLE_US
                out.write(f"{now_us} bursts write {random_page.randrange(PAGES) * PAGE} {PAGE}\n".encode())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, share in SHARES.items():
        write(folder / f"{name}.iolog.gz", share)
