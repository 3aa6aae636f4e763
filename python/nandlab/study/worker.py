"""A worker process of a local study: `python -m nandlab.study.worker FD` takes tasks from a socket, one at a time.

A module of its own, started by name, so that a script or notebook that runs a study is not run again in the workers.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from multiprocessing.connection import Connection

from nandlab.study.plan import Task, build_identity
from nandlab.study.work import At, Done, Files, do


def main() -> None:
    """Serve until the study goes away."""
    # Ctrl-C and a terminal that closes are for the study; it ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    connection = Connection(int(sys.argv[1]))
    files = Files()
    try:
        import polars  # noqa: F401  # paid once, not by the first run

        connection.send(("ready", build_identity()))
        while True:
            task: Task = connection.recv()

            def tell(phase: str, share: float, task: Task = task) -> bool:
                connection.send(At(task.identity, phase, share))
                return True

            for file in task.files:
                files.link(file)
            outcome = do(task, files, tell)
            if isinstance(outcome, Done):
                outcome = replace(outcome, worker=f"process {os.getpid()}")
            connection.send(outcome)
    except (EOFError, OSError):
        pass  # the study is over, or was killed
    finally:
        files.close()
        # Nothing is left to tidy up; the study waits for this process.
        os._exit(0)


if __name__ == "__main__":
    main()
