"""`nandlab examples`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from nandlab.cli.app import End, Json, app
from nandlab.cli.app import examples as lines
from nandlab.cli.output import show_rows
from nandlab.errors import OutputError


@app.command(
    help_epilogue=lines(
        "nandlab examples                         their names",
        "nandlab examples small                   copies small.toml; then: nandlab run small.toml",
        "nandlab examples presets/laldpc-32g --to my",
        "nandlab examples studies/laldpc          copies a folder; then: nandlab study laldpc",
    ),
)
def examples(
    name: Annotated[str | None, Parameter(name="NAME")] = None,
    /,
    *,
    to: Path | None = None,
    json_: Json = False,
) -> End:
    """List the examples, presets and studies that come with nandlab, or copy one of them.

    A copy is a start for a spec or a study of your own. Nothing is replaced.

    Parameters
    ----------
    name
        The example, preset or study to copy; when absent, all are listed.
    to
        The folder for the copy; the current folder when absent.
    """
    from nandlab import shipped

    if name is None:
        if to is not None:
            raise OutputError("--to names the folder for a copy\n  remedy: name an example, too")
        rows = [{"name": item.name, "kind": item.kind, "description": item.description} for item in shipped.items()]
        show_rows(rows, json_)
        return End()
    item = shipped.named(name)
    copied = shipped.copy(item, Path(".") if to is None else to)
    if json_:
        print(json.dumps({"name": item.name, "kind": item.kind, "path": str(copied)}, indent=2))
    else:
        print(copied)
        beside = [other for other in shipped.needed_beside(item) if not (copied.parent / other).exists()]
        if beside:
            print(f"some of its files need {', '.join(beside)} beside it: nandlab examples studies/{beside[0]}")
    return End(kept=f"{copied} is written")
