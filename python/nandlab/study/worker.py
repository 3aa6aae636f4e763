"""A worker process of a local study: `python -m nandlab.study.worker FD` receives tasks from a socket, one at a time.

The worker is a module started by name, so that it does not execute the script or notebook that runs the study.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from multiprocessing.connection import Connection

from nandlab._core import SharedDrives
from nandlab.study.plan import Task, program_identity
from nandlab.study.work import Done, Files, Progressed, do


def main() -> None:
    """Serve until the study closes the connection."""
    # The process of the study handles Ctrl-C and a closed terminal, and ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    connection = Connection(int(sys.argv[1]))
    files = Files()
    shared = SharedDrives()
    try:
        import polars  # noqa: F401  # the time of the import is not part of the first run

        connection.send(("ready", program_identity()))
        while True:
            task: Task = connection.recv()

            def tell(phase: str, share: float, task: Task = task) -> bool:
                connection.send(Progressed(task.identity, phase, share))
                return True

            for file in task.files:
                files.link(file)
            outcome = do(task, files, tell, shared)
            if isinstance(outcome, Done):
                outcome = replace(outcome, worker=f"process {os.getpid()}")
            connection.send(outcome)
    except (EOFError, OSError):
        pass  # the study has ended, or was killed
    finally:
        files.close()
        # Skip the cleanup of the interpreter, because the study waits for this process.
        os._exit(0)


if __name__ == "__main__":
    main()
