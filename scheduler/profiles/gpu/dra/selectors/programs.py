"""CEL expressions, compiled and evaluated: in this process, or in the one of evaluator.py."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from cel import Context, Program, compile, stdlib

from scheduler.profiles.gpu.dra.selectors.library import FUNCTIONS

_MOST_PROGRAMS: Final = 512


class Programs:
    """Compiled expressions; those used longest ago are dropped first. A program takes up to 2 KiB per character."""

    def __init__(self, most_characters: int) -> None:
        """most_characters: of all expressions that are kept."""
        self._most_characters, self._characters = most_characters, 0
        self._programs: OrderedDict[str, Program | str] = OrderedDict()
        self._context = Context()
        stdlib.add_stdlib_to_context(self._context)
        for name, function in FUNCTIONS.items():
            self._context.add_function(name, function)

    def answer(self, source: str, device: Mapping[str, Any], name: str) -> bool | str:
        """Whether the device matches, or what is wrong. device: the variable of that name; name: for messages."""
        program = self._program(source)
        if isinstance(program, str):
            return program
        try:
            self._context.add_variable("device", dict(device))
            result = program.execute(self._context)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of the library is no Exception
            return f"CEL runtime error for {name}: {_one_line(error)}"
        if not isinstance(result, bool):
            return f"CEL runtime error for {name}: the result is a {type(result).__name__}, no bool"
        return result

    def _program(self, source: str) -> Program | str:
        known = self._programs.get(source)
        if known is not None:
            self._programs.move_to_end(source)
            return known
        made: Program | str
        try:
            made = compile(source)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            made = f"CEL compile error: {_one_line(error)}"
        self._programs[source] = made
        self._characters += len(source)
        while len(self._programs) > 1 and (
            self._characters > self._most_characters or len(self._programs) > _MOST_PROGRAMS
        ):
            self._characters -= len(self._programs.popitem(last=False)[0])
        return made


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
