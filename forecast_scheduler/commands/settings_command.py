"""`settings`: which settings there are, found by words; and documents of earlier versions, brought up to date."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from base.errors import InputError
from forecast_scheduler.commands.command_options import JsonOption, VerboseOption
from forecast_scheduler.commands.output_format import reporting
from forecast_scheduler.commands.shell import check_writable, open_shell, write_figures, write_text

if TYPE_CHECKING:
    from rich.table import Table

    from forecast_scheduler.settings.known_keys import KnownKey

_LIST = "list"


class _WordsOrCommand(TyperGroup):
    """`settings WORD` is `settings list WORD`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return what click is to parse: `list` stands before words that are no command."""
        is_command = bool(args) and (args[0] in self.commands or args[0] == "--help")
        return super().parse_args(ctx, args if is_command else [_LIST, *args])


settings = typer.Typer(
    cls=_WordsOrCommand,
    help="Find settings by words, as in `settings tls port`; rewrite an old document with `settings migrate`.",
)


@settings.command(_LIST)
@reporting
def list_settings(
    words: Annotated[list[str] | None, typer.Argument(metavar="[WORD]...", help="All must match. None: all.")] = None,
    json: JsonOption = None,
    verbose: VerboseOption = False,
) -> None:
    """List the settings whose name, description or group matches all words, with default, allowed values and meaning.

    `list` may be left out: forecast-scheduler settings lease duration. The values are defaults, whatever is set.
    """
    shell = open_shell(None, verbose=verbose, json_file=json, environment={})
    check_writable(json)

    from forecast_scheduler.settings.key_search import former_keys_named, matching_keys

    found = matching_keys(words or [])
    if not found:
        former = "; ".join(map(str, former_keys_named(words or [])))
        hint = former or "try fewer words; docs/README.md lists all pages, and EMERGENCY.md is for trouble"
        raise InputError(f"no setting matches {' '.join(words or [])!r}: {hint}")
    shell.show(_table(found))
    write_figures(json, {"settings": [asdict(one) for one in found]})


def _table(found: list[KnownKey]) -> Table:
    from forecast_scheduler.reports.table_format import Column, table_of

    columns = (
        Column("key", lambda one: one.key),
        Column("default", lambda one: one.default.strip("`")),
        Column("allowed", lambda one: one.allowed),
        Column("meaning", lambda one: " ".join(one.meaning.split())),
    )
    return table_of("Settings", columns, found, wrap_first=False)


@settings.command("migrate")
def migrate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Settings document (YAML) of an earlier version.")],
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Replace the file. Without it, print the new document.")
    ] = False,
    verbose: VerboseOption = False,
) -> None:
    """Rewrite a settings document of an earlier version with the keys of this one; values stay as they are.

    Comments are not kept. Standard error lists the keys that exist no more, and why, and those that now count for more.
    """
    shell = open_shell(None, verbose=verbose, environment={})

    import yaml

    from base.yaml_reader import decoded_text
    from forecast_scheduler.settings.document import read_document, settings_of
    from forecast_scheduler.settings.migration import migrated

    values = read_document(file)
    new = migrated(values)
    for one in (*new.removed, *new.notes):
        shell.err.print(str(one), highlight=False, markup=False, soft_wrap=True)
    if new.values == values:
        shell.err.print(f"{file} has no key of an earlier version", highlight=False, markup=False, soft_wrap=True)
        text = decoded_text(file.read_bytes())
    else:
        text = yaml.safe_dump(new.values, sort_keys=False, allow_unicode=True, width=110)
    if not in_place:
        sys.stdout.write(text)
    settings_of(new.values, f"the new document of {file}")  # a file with a mistake stays as it is
    if in_place and new.values != values:
        write_text(file, text)
