"""CEL source as the library reads it: `cel.bind` spelled out, and the domains that an expression looks into.

    cel.bind(x, INIT, BODY)  ->  [INIT].map(x, BODY)[0]

The macro is cel-go's (ext.Bindings), which Kubernetes offers to device selectors and the library does not have. What
differs: INIT is evaluated even where BODY does not need it, so an error there is one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from base.errors import InputError

LOOPS: Final = ("all", "exists", "exists_one", "map", "filter")
"""Macros that go through a list or map."""

# Literals first: what looks like code inside of them is none. Raw ones have no escapes.
_TOKEN: Final = re.compile(
    r"""
    (?P<text> (?: [rR][bB]? | [bB][rR] ) (?: \"{3} .*? \"{3} | '{3} .*? '{3} | "[^"\n]*" | '[^'\n]*' )
            | [bB]? (?: \"{3} (?: \\. | [^\\] )*? \"{3} | '{3} (?: \\. | [^\\] )*? '{3}
                      | "(?: \\. | [^"\\\n] )*" | '(?: \\. | [^'\\\n] )*' ) )
  | (?P<space> \s+ | //[^\n]* )
  | (?P<name> [A-Za-z_][A-Za-z0-9_]* )
  | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_OPEN, _CLOSED = frozenset("([{"), frozenset(")]}")
_DEEPEST: Final = 32
_MAPS: Final = ("attributes", "capacity")
_PLAIN: Final = ("driver", "allowMultipleAllocations")


class UnreadableExpression(InputError):
    """It is not CEL, or more of it than is looked at."""


@dataclass(frozen=True, slots=True)
class Lookups:
    """
    attributes, capacity : domains that are looked up by name; None = the map is used in other ways, too, and has to be
                           as it is
    read                 : all that an answer can depend on in addition to what every device has: (attributes or
                           capacity, domain, name); None = unknown
    """

    attributes: frozenset[str] | None
    capacity: frozenset[str] | None
    read: frozenset[tuple[str, str, str]] | None = None


def spelled_out(source: str) -> str:
    """The same without `cel.bind`. Raises UnreadableExpression."""
    if "bind" not in source:
        return source
    return "".join(_without_bind(_tokens(source), 0))


def calls(source: str) -> Counter[str]:
    """How often each name stands before a parenthesis: functions, methods and macros."""
    tokens = [token for token in _tokens(source) if not _is_space(token)]
    return Counter(name for name, then in pairwise(tokens) if then == "(" and name.isidentifier())


def lookups(source: str) -> Lookups:
    """Which domains `device.attributes["..."]` and `device.capacity["..."]` name."""
    tokens = [token for token in _tokens(source) if not _is_space(token)]
    found: dict[str, set[str]] = {name: set() for name in _MAPS}
    otherwise: set[str] = set()
    read: set[tuple[str, str, str]] | None = set()
    for at, token in enumerate(tokens):
        if token != "device" or (at > 0 and tokens[at - 1] == "."):
            continue
        which = tokens[at + 2] if tokens[at + 1 : at + 2] == ["."] and at + 2 < len(tokens) else ""
        if which in _PLAIN:
            continue
        if which not in found:
            otherwise.update(_MAPS)
            read = None
            continue
        rest = tokens[at + 3 : at + 6]
        domain = _plain_text(rest[1]) if len(rest) == 3 and rest[0] == "[" and rest[2] == "]" else None
        if domain is None:
            otherwise.add(which)
            read = None
            continue
        found[which].add(domain)
        name = _member(tokens[at + 6 : at + 10])
        if read is not None and name is not None:
            read.add((which, domain, name))
        else:
            read = None
    made = {name: None if name in otherwise else frozenset(domains) for name, domains in found.items()}
    return Lookups(made["attributes"], made["capacity"], None if read is None else frozenset(read))


def _member(rest: Sequence[str]) -> str | None:
    """The member of a map that is selected next: .name or ["name"]; None = something else happens to the map."""
    if len(rest) > 1 and rest[0] == "." and rest[1].isidentifier():
        return None if rest[2:3] == ["("] else rest[1]
    if len(rest) > 2 and rest[0] == "[" and rest[2] == "]":
        return _plain_text(rest[1])
    return None


def _tokens(source: str) -> list[str]:
    return [match.group() for match in _TOKEN.finditer(source)]


def _is_space(token: str) -> bool:
    return token.isspace() or token.startswith("//")


def _plain_text(token: str) -> str | None:
    """What a literal says that has no escapes; None = it is another token."""
    if len(token) < 2 or token[0] not in "\"'" or token[-1] != token[0] or "\\" in token or token[:3] in ('"""', "'''"):
        return None
    return token[1:-1]


def _without_bind(tokens: Sequence[str], depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        raise UnreadableExpression(f"cel.bind is nested more than {_DEEPEST} times: write the expression out")
    at = 0
    while at < len(tokens):
        opened = _bind_at(tokens, at)
        if opened is None:
            yield tokens[at]
            at += 1
            continue
        arguments, at = _arguments(tokens, opened)
        if len(arguments) != 3:
            raise UnreadableExpression(f"cel.bind has {len(arguments)} arguments: it takes a name, a value and a body")
        name, value, body = ("".join(_without_bind(one, depth + 1)).strip() for one in arguments)
        yield f"[{value}].map({name}, {body})[0]"


def _bind_at(tokens: Sequence[str], at: int) -> int | None:
    """Where the parenthesis of a `cel.bind(` that begins here is; None = none does."""
    if tokens[at] != "cel":
        return None
    places = [place for place in range(at, min(at + 16, len(tokens))) if not _is_space(tokens[place])][:4]
    return places[3] if [tokens[place] for place in places] == ["cel", ".", "bind", "("] else None


def _arguments(tokens: Sequence[str], opened: int) -> tuple[list[Sequence[str]], int]:
    """The arguments of a call, and where it is over."""
    depth, start = 0, opened + 1
    arguments: list[Sequence[str]] = []
    for at in range(opened, len(tokens)):
        token = tokens[at]
        if token in _OPEN:
            depth += 1
        elif token in _CLOSED:
            depth -= 1
            if depth == 0:
                return [*arguments, tokens[start:at]], at + 1
        elif token == "," and depth == 1:
            arguments.append(tokens[start:at])
            start = at + 1
    raise UnreadableExpression("a parenthesis of cel.bind is never closed")
