"""CEL expressions, compiled and evaluated: in this process, or in the one of evaluator.py."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from scheduler.profiles.gpu.dra.selectors.library import FUNCTIONS

if TYPE_CHECKING:
    from cel import Context, Program

_MOST_PROGRAMS: Final = 512


class Programs:
    """Compiled expressions; those used longest ago are dropped first. A program takes up to 2 KiB per character."""

    def __init__(self, most_characters: int) -> None:
        """most_characters: of all expressions that are kept."""
        self._most_characters, self._characters = most_characters, 0
        self._programs: OrderedDict[str, Program | str] = OrderedDict()

    @cached_property
    def _context(self) -> Context:
        # Imported here: the library comes with a command line of its own, 0.2 s that most clusters never need.
        from cel import Context, stdlib

        made = Context()
        stdlib.add_stdlib_to_context(made)
        for name, function in FUNCTIONS.items():
            made.add_function(name, function)
        return made

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
        from cel import compile

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
