"""`nandlab --install-completion`."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from argcomplete.shell_integration import shellcode

from nandlab.cli.app import End
from nandlab.errors import OutputError, os_error_text
from nandlab.whole import whole_file, write_file, write_synced

#: By shell: the script in the home directory, the file that is read at the start of the shell, and the line in it.
_SHELLS = {
    "bash": (".local/share/bash-completion/completions/nandlab", ".bashrc", '[ -f "{0}" ] && . "{0}"'),
    "zsh": (
        ".zsh/completions/_nandlab",
        ".zshrc",
        'autoload -Uz compinit && {{ (( $+functions[compdef] )) || compinit; }} && [ -f "{0}" ] && . "{0}"',
    ),
    # fish reads the scripts of this folder itself.
    "fish": (".config/fish/completions/nandlab.fish", "", ""),
}


def install(options: argparse.Namespace) -> End:
    """Write the script that lets a shell ask `nandlab` for completions, and the line that loads the script."""
    shell = options.shell or Path(os.environ.get("SHELL", "")).name
    if shell not in _SHELLS:
        raise OutputError(f"no completion for the shell {shell!r}\n  remedy: --shell bash, --shell zsh or --shell fish")
    place, start, line = _SHELLS[shell]
    script = Path.home() / place if options.output is None else Path(options.output)
    try:
        script.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(os_error_text("write", script, error)) from None
    write_file(script, shellcode(["nandlab"], shell=shell).encode())
    print(f"{script} is written")
    if start and options.output is None:
        _add_line(Path.home() / start, line.format(script))
    if options.output is None:
        print(f"the completion works in each {shell} that starts from now on")
    return End(kept=f"{script} is written")


def _add_line(path: Path, line: str) -> None:
    """Add a line to a file that does not have it yet."""
    # The file may be a link to a file elsewhere.
    file = path.resolve()
    try:
        text = file.read_bytes() if file.exists() else b""
        if line.encode() in text.splitlines():
            return
        begin = b"" if text.endswith(b"\n") or not text else b"\n"
        with whole_file(file) as partial:
            write_synced(partial, text + begin + f"# Completion of nandlab\n{line}\n".encode())
            if file.exists():
                shutil.copymode(file, partial)
    except OSError as error:
        raise OutputError(os_error_text("write", path, error)) from None
    print(f"{path} has a line more, which loads it")
