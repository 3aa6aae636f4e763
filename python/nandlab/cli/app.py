"""The parser of the command line, to which each module adds the arguments of its command."""

from __future__ import annotations

import argparse
import functools
import importlib
import os
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

import nandlab
from nandlab.ends import Stop
from nandlab.errors import OutputError
from nandlab.spec import is_setting

#: The commands with their help. Each has a module of its name here, whose function `add` declares its arguments.
COMMANDS = {
    "calibrate": "Fit keys of a spec to a measurement of a drive; predict the rows that are held out.",
    "codec": "Measure frame error rates and iterations of an LDPC code against RBER, by number of read references.",
    "compare": "Compare two or more runs: what was set differently, and which outcomes differ, the largest difference "
    "first.",
    "doctor": "Check the installation: versions, processors, memory, and what is missing and what for.",
    "examples": "List the examples, presets and studies that come with nandlab, or copy one of them.",
    "fdp": "Print the logs of placement handles (NVMe FDP) of a result, as nvme-cli prints them.",
    "life": "Simulate the life of a drive until it is worn out: windows are simulated, the time between them is "
    "skipped.",
    "live": "Give orders to a drive that is served: results so far, power off and on, end.",
    "powertest": "Cut the power under a program at many instants, and say which promise broke and whose fault it was.",
    "reliability": "Print RBER and read level over retention and P/E cycles, and read latency by level, without a "
    "simulation.",
    "report": "Write one HTML file with tables and plots of a result directory. The file opens without a network.",
    "run": "Simulate a spec; print a summary and write a result directory.",
    "serve": "Make a simulated drive a block device, which real programs use over NBD.",
    "spec": "Check specs, show specs with all defaults, list presets and policies.",
    "study": "Do the runs of a study, draw its figures, and give a verdict on each claim.",
    "trace": "Statistics of traces, and conversion between formats.",
}

#: Handles Ctrl-C, SIGTERM and SIGHUP for every command.
stop = Stop()


class End(NamedTuple):
    """The end of a command."""

    status: int = 0
    #: What is on the disk, for the message when stdout cannot be written.
    kept: str = ""


class _Formatter(argparse.HelpFormatter):
    """Wraps the paragraphs of a help text, and keeps the lines of indented blocks."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        blocks = text.split("\n\n")
        return "\n\n".join(block if block.startswith(" ") else fill(block, width, indent) for block in blocks)


class Parser(argparse.ArgumentParser):
    """A parser that raises `OutputError`, with a correction where there is one.

    The parsed options have the function of the command, `command`, and the parser of its arguments, `parser`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=_Formatter, allow_abbrev=False, **options)
        self.set_defaults(parser=self, command=self._show_help)

    @functools.cached_property
    def _commands(self) -> argparse._SubParsersAction[Parser]:
        return self.add_subparsers(title="commands", metavar="COMMAND")

    @property
    def commands(self) -> Mapping[str, Parser]:
        """The parsers of the commands that are added so far, by name."""
        return self._commands.choices if "_commands" in vars(self) else {}

    def add_command(self, name: str, summary: str) -> Parser:
        """Add a command, and return the parser of its arguments."""
        return self._commands.add_parser(name, help=summary, description=summary)

    def define(self, command: Callable[[argparse.Namespace], End], *paragraphs: str, examples: str = "") -> None:
        """Set the function of the command, the paragraphs after the first of its help, and its examples, one a line."""
        self.set_defaults(command=command)
        self.description = "\n\n".join([self.description or "", *paragraphs])
        if examples:
            lines = examples.strip("\n").splitlines()
            self.epilog = "\n\n".join(["Examples:" if len(lines) > 1 else "Example:", _indented(lines)])

    def add_sets(self, what: str = "the spec", *, bare: bool = True) -> None:
        """Add the option --set; with `bare`, settings after the other arguments need no --set."""
        text = f"Override one key of {what}, as KEY=VALUE; may be repeated."
        if bare:
            text += " At the end KEY=VALUE needs no --set, and comes last."
        option = self.add_argument("--set", dest="sets", metavar="KEY=VALUE", action="append", default=[], help=text)
        option.completer = _complete_settings  # type: ignore[attr-defined]

    def add_policies(self) -> None:
        """Add the option --policy."""
        text = "Import this file, whose policies the spec may then name; may be repeated."
        self.add_argument("--policy", dest="policies", metavar="FILE", action="append", default=[], help=text)

    def add_json(self) -> None:
        """Add the option --json."""
        self.add_argument("--json", action="store_true", help="Print JSON on stdout instead of tables.")

    def add_force(self) -> None:
        """Add the option --force."""
        text = "Replace an existing directory, or file where a file is written, whatever its content."
        self.add_argument("--force", action="store_true", help=text)

    def parse(self, arguments: list[str]) -> argparse.Namespace:
        """The options of a command line; raises `SystemExit` after a help text or the version."""
        options, rest = self.parse_known_args(arguments)
        parser: Parser = options.parser
        for name in (word.partition("=")[0] for word in rest if word.startswith("-")):
            if name in parser._option_string_actions:
                parser.error(f"option {name} has to follow `{parser.prog}`")
            parser.error(f"unknown option {name}{_near(name, parser._option_string_actions)}")
        # argparse takes a list of positional arguments only up to the next option.
        if rest and isinstance(getattr(options, "names", None), list):
            options.names += rest
        elif rest:
            others = [word for word in rest if not (hasattr(options, "sets") and is_setting(word))]
            if others:
                parser.error(f"unexpected argument {others[0]}")
            options.sets += rest
        return options

    def error(self, message: str) -> NoReturn:
        raise OutputError(f"{message}\n  remedy: see `{self.prog} --help`")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = ", ".join(action.choices)
            text = f"there is no {value!r}{_near(value, action.choices)}\n  choose from: {choices}"
            raise argparse.ArgumentError(action, text)

    def _show_help(self, _options: argparse.Namespace) -> End:
        self.print_help()
        return End()


def make_parser(used: Container[str]) -> Parser:
    """The parser of the command line, with the arguments of the commands in `used`; the others are not imported."""
    parser = Parser(
        prog="nandlab",
        description="A laboratory for SSD controllers: simulate a flash drive, change a policy, see its effect.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"nandlab {nandlab.__version__}")
    completion = parser.add_argument_group("completion")
    completion.add_argument(
        "--install-completion",
        dest="command",
        action="store_const",
        const=_install_completion,
        help="Install the completion of commands and options in bash, zsh or fish.",
    )
    completion.add_argument("--shell", choices=["bash", "zsh", "fish"], help="The shell; that of $SHELL when absent.")
    completion.add_argument("--output", "-o", metavar="FILE", help="Only write the script, to this file.")
    for name, summary in COMMANDS.items():
        command = parser.add_command(name, summary)
        if name in used:
            importlib.import_module(f"nandlab.cli.{name}").add(command)
    return parser


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options of a command line; raises `OutputError`, and `SystemExit` after a help text or the version."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        # The shell asks for completions; the process ends here.
        argcomplete.autocomplete(make_parser(COMMANDS))
    return make_parser(arguments).parse(arguments)


def _install_completion(options: argparse.Namespace) -> End:
    from nandlab.cli.completion import install

    return install(options)


def _complete_settings(prefix: str, **more: object) -> list[str]:
    from nandlab.cli.keys import complete

    return complete(prefix, **more)


def _near(word: str, names: Iterable[str]) -> str:
    """The correction of a word, if there is one."""
    import difflib

    bare = {name.lstrip("-"): name for name in names}
    near = difflib.get_close_matches(word.lstrip("-"), bare, n=1)
    return f"; did you mean {bare[near[0]]}?" if near else ""


def _indented(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


_EPILOG = """\
Examples:

    nandlab examples demo                    copy an example: demo.toml
    nandlab run demo.toml                    simulate; results in out/demo
    nandlab run demo.toml gc.victim=fifo     the same with another policy
    nandlab report out/demo                  one HTML file: tables, plots
    nandlab spec show demo.toml              every setting with its default
    nandlab --install-completion --shell bash

Exit status:

    0                done
    1                a bug in nandlab
    2                an error in the input, the arguments or the file system
    3                done, but the output could not be written to stdout
    4                done, and a power cut broke the check (powertest)
    129, 130, 143    stopped by SIGHUP, Ctrl-C, SIGTERM
    141              done, but the reader of the output has closed the pipe"""
