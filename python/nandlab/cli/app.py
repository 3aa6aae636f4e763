"""The app to which the modules add their commands, and the options that several commands share."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from cyclopts import App, Group, Parameter

import nandlab
from nandlab.ends import Stop


def examples(*lines: str) -> str:
    """The epilogue of a help text."""
    return "\n".join(["Examples:" if len(lines) > 1 else "Example:", "", *(f"    {line}" for line in lines)])


app = App(
    name="nandlab",
    help="A laboratory for SSD controllers: simulate a flash drive, change a policy, see its effect.",
    help_epilogue=examples(
        "nandlab examples demo                    copy an example: demo.toml",
        "nandlab run demo.toml                    simulate; results in out/demo",
        "nandlab run demo.toml --set gc.victim=fifo",
        "nandlab report out/demo                  one HTML file: tables, plots",
        "nandlab spec show demo.toml              every setting with its default",
    )
    + "\n\nExit status:\n\n"
    "    0                done\n"
    "    1                a bug in nandlab\n"
    "    2                an error in the input, the arguments or the file system\n"
    "    3                done, but the output could not be written to stdout\n"
    "    129, 130, 143    stopped by SIGHUP, Ctrl-C, SIGTERM\n"
    "    141              done, but the reader of the output has closed the pipe",
    help_format="plaintext",
    version=lambda: f"nandlab {nandlab.version()}",
    version_flags=["--version"],
    help_flags=["--help", "-h"],
    default_parameter=Parameter(show_default=False, negative=()),
    suppress_keyboard_interrupt=False,
)
app.register_install_completion_command(
    help="Install the completion of commands and options in bash, zsh or fish.",
    help_epilogue=examples("nandlab --install-completion --shell bash"),
)
_OPTIONS = Group("Options")
for _option in ("--help", "--version", "--install-completion"):
    app[_option].group = _OPTIONS

Sets = Annotated[
    list[str] | None,
    Parameter(name="--set", help="Override one key of the spec, as KEY=VALUE; may be repeated."),
]
Json = Annotated[bool, Parameter(name="--json", help="Print JSON on stdout instead of tables.")]
Force = Annotated[bool, Parameter(name="--force", help="Replace an existing file or directory, whatever its content.")]

#: Handles Ctrl-C, SIGTERM and SIGHUP for every command.
stop = Stop()


class End(NamedTuple):
    """The end of a command."""

    status: int = 0
    #: What is on the disk, for the message when stdout cannot be written.
    kept: str = ""
