"""The command `nandlab`.

Exit status:

0    done
1    a bug in nandlab
2    refused: an error in the input, the arguments or the file system
3    done, but the output could not be written to stdout
130  stopped by Ctrl-C; 143 by SIGTERM, 129 by SIGHUP
141  done, but the reader of the output has closed the pipe

`app.py` has the parser, an `argparse.ArgumentParser` whose errors have a correction, and the table of the commands.
Each command is a module of its name: its function `add` declares its arguments. Only the module of the given command is
imported, and a module imports rich, numpy or polars where it uses them; `tests/python/test_start.py` has the budgets.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

from nandlab import _core
from nandlab.cli.app import End, parse, stop
from nandlab.cli.output import fail
from nandlab.ends import standard_streams
from nandlab.errors import os_error_text

_BUG = (
    "This is a bug in nandlab, not in your input. Please report it where nandlab is developed (CONTRIBUTING.md,\n"
    '"Reporting a bug"), with the text above, the command and the spec.'
)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command and exit with its status."""
    if arguments is None:
        # The process makes few cycles of objects, and collecting them takes a tenth of the time of a short run.
        gc.set_threshold(100_000)
    with standard_streams() as out, stop:
        end = _run(sys.argv[1:] if arguments is None else arguments)
        status = end.status
        if out.error is not None:
            has_reader = not isinstance(out.error, BrokenPipeError)
            if has_reader or end.kept:
                fail(f"cannot write to stdout: {out.error.strerror}" + (f"; {end.kept}" if end.kept else ""))
            status = status or (3 if has_reader else 141)
        if stop or arguments is None:
            # Do not wait for the thread of the core, nor for a reader of the output that does not read. Everything is
            # written; to take the interpreter apart is a tenth of the time of a short run.
            sys.stderr.flush()
            os._exit(status)
    sys.exit(status)


def _run(arguments: list[str]) -> End:
    try:
        end = _do(arguments)
        sys.stdout.flush()
        return end
    except KeyboardInterrupt:
        fail(f"{stop}: unfinished work is not kept")
        return End(stop.status)


def _do(arguments: list[str]) -> End:
    try:
        try:
            options = parse(arguments)
        except SystemExit:
            # A help text or the version is printed.
            return End()
        end: End = options.command(options)
        return end
    except _core.NandlabError as error:
        fail(str(error))
        return End(2)
    except OSError as error:
        fail(os_error_text("continue with" if error.filename else "continue", error.filename, error))
        return End(2)
    except UnicodeEncodeError as error:
        # Only file names and arguments can contain bytes that are not UTF-8.
        fail(f"{error.object!r}: not UTF-8 text\n  remedy: choose another name")
        return End(2)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        if isinstance(error, SystemExit) and getattr(error, "nandlab_policy", None) is None:
            raise
        # A panic in the core is a `BaseException`.
        policy = getattr(error, "nandlab_policy", None)
        if policy is not None:
            from nandlab.python_policies import traceback_in_policy

            print(traceback_in_policy(error), file=sys.stderr)
            fail(f"the policy {policy} has raised this exception\n  remedy: correct the policy")
            return End(2)
        import traceback

        traceback.print_exc()
        fail("\n" + _BUG)
        return End(1)
