"""The options by which `render` and `canary` say what they work on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TemplatesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--templates",
        metavar="FILE-or-DIR",
        help="Templates and bindings (YAML), instead of those in the cluster; may be given several times.",
    ),
]
