"""Every command line of ours that a page shows: the command is there, and so is each of its options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from forecast_scheduler.cli import app
from tests.docs.pages import PAGES, ROOT, blocks, commands, text_of

_PROGRAM = "forecast-scheduler"
_RUN = re.compile(rf"^(?:[A-Z_]+=\S* )*(?:\S*/)?{_PROGRAM}(?: |$)")
_INLINE = re.compile(rf"`({_PROGRAM} [^`]*)`")
_OTHERWISE = re.compile(r" *\| *(?!-)[^\s\]|]+")  # the second of two values
_SYNOPSIS = re.compile(r"[\[\]|]|\.\.\.")  # of what may be left out, chosen or repeated
_OPTION = re.compile(r"^--?[a-z][a-z-]*")
_SCRIPT = re.compile(r"python -m benchmarks\.([a-z_]+)")
_MAKE = re.compile(r"`make ([a-z][a-z-]*)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_a_page_are_there_with_their_options(page: Path) -> None:
    wrong = [said for line in _command_lines(text_of(page)) if (said := _mistake(line))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_make_targets_of_a_page_are_there(page: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = text_of(page)
    lines = [line for block in blocks(text) if block.language == "console" for line in commands(block)]
    named = _MAKE.findall(text) + [line.split()[1] for line in lines if line.startswith("make ") and " " in line]
    assert {one for one in named if "=" not in one} <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_benchmarks_of_a_page_are_there(page: Path) -> None:
    named = set(_SCRIPT.findall(text_of(page)))
    assert not [name for name in named if not (ROOT / "benchmarks" / f"{name}.py").exists()]


def _command_lines(text: str) -> Iterator[str]:
    for block in blocks(text):
        for line in commands(block):
            # What a shell does besides: other commands, a pipe.
            parts = re.split(r"\|\||&&|;|(?<=\s)\|(?=\s*[a-z])", line)
            yield from (part.strip() for part in parts if _RUN.match(part.strip()))
    for line in _INLINE.findall(text):  # also names that begin so, of which a command has no options
        if " -" in line:
            yield line


def _mistake(line: str) -> str:
    """What is wrong with a command line; "" = nothing."""
    words = shlex.split(_SYNOPSIS.sub(" ", _OTHERWISE.sub("", _RUN.sub("", line))), comments=True)
    words = words[: next((i for i, word in enumerate(words) if word.startswith((">", "<", "&", "2>"))), len(words))]
    command = typer.main.get_command(app)
    while isinstance(command, TyperGroup) and words and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return f"{line!r}: there is no command {words[0]!r}"
        command, words = command.commands[words[0]], words[1:]
    assert isinstance(command, TyperCommand | TyperGroup)
    return f"{line!r}: {said}" if (said := _wrong_words(command, words)) else ""


def _wrong_words(command: TyperCommand | TyperGroup, words: list[str]) -> str:
    options = {name: one for one in command.params for name in (*one.opts, *one.secondary_opts)}
    room = sum(one.nargs if one.nargs > 0 else 1_000 for one in command.params if isinstance(one, TyperArgument))
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not _OPTION.match(word):
            room -= 1
            if room < 0:
                return f"{command.name} takes no {word!r}"
            continue
        name, _, value = word.partition("=")
        if name not in options and name != "--help":
            return f"{command.name} has no option {name}"
        option = options.get(name)
        if isinstance(option, TyperOption) and not option.is_flag and not value:
            if not rest or rest[0].startswith("--"):
                return f"{name} lacks its value"
            rest.pop(0)
    return ""
