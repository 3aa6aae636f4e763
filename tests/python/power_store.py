"""A small store, a file a key, with bugs that can be planted: the workload and the check of power tests.

power_store.py put NUMBER [--no-fsync-file] [--no-fsync-dir]
power_store.py check
"""

import os
import sys
from pathlib import Path

#: Bytes of a value.
SIZE = 9000


def value(key):
    """The value of a key; its end says that it is whole."""
    return (f"value {key} " * SIZE)[:SIZE].encode() + b"END"


def put(key, *, fsync_file=True, fsync_dir=True):
    """Store a value: after this the key is durable."""
    with open("part", "wb") as file:
        file.write(value(key))
        file.flush()
        if fsync_file:
            os.fsync(file.fileno())
    os.rename("part", f"key-{key}")
    if fsync_dir:
        folder = os.open(".", os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


def check():
    """Every acknowledged key is there, and every key that is there is whole."""
    acked = Path(os.environ["NANDLAB_ACKED"]).read_text().split()
    missing = [key for key in acked if not Path(f"key-{key}").exists()]
    torn = [path.name for path in Path().glob("key-*") if path.read_bytes() != value(path.name.removeprefix("key-"))]
    if missing or torn:
        sys.exit(f"missing {missing}, torn {torn}")


def main(mode, *words):
    """Run the workload, or the check."""
    if mode == "check":
        check()
        return
    with open(os.environ["NANDLAB_ACK"], "w", buffering=1) as ack:
        for key in range(int(words[0])):
            put(key, fsync_file="--no-fsync-file" not in words, fsync_dir="--no-fsync-dir" not in words)
            ack.write(f"{key}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
