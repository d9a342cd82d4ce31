"""YAML from any client -> plain values, in bounded time and memory.

PyYAML's C parser is quick, but its composer recurses without a limit (half a million `[` end the process), holds the
interpreter for as long as it takes, and lets an alias stand for any number of values. So nodes are put together from
the parser's events here, with their depth and size in view.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final

import yaml

from placement.policies.mistakes import DocumentMistake

MAX_BYTES: Final = 1 << 20
"""As much as a ConfigMap can hold."""

_MAX_DEPTH: Final = 32
_MAX_VALUES: Final = 200_000
_NUMBERS: Final = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_LONGEST_NUMBER: Final = 40
"""Characters. PyYAML takes quadratic time for base 60 (1:30:00), and Python refuses to show very long ones."""

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INVALID: Final = (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError)


def read_yaml(text: str) -> Any:
    """The one document in the text. Raises DocumentMistake, with the line where it is known."""
    if (size := len(text.encode(errors="surrogatepass"))) > MAX_BYTES:
        raise DocumentMistake(
            "", f"the document has {size} bytes, {MAX_BYTES} are allowed: leave policies or rules out"
        )
    try:
        node = _Composer().compose(text)
        return None if node is None else _Constructor().construct_document(node)
    except _INVALID as error:
        raise DocumentMistake("", f"this is not valid YAML: {_reason(error)}") from error


class _Constructor(yaml.constructor.SafeConstructor):
    """Refuses keys that are there twice: the second would win without a word."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge" or not isinstance(key_node, yaml.ScalarNode):
                continue
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise _at(f"key {key!r} is there twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


@dataclass(slots=True)
class _Read:
    """A value. size: of all in it, aliases written out; 0 = it has not ended yet. key: that waits for its value."""

    node: Any
    size: int = 0
    key: _Read | None = None
    inside: int = 0


class _Composer:
    """As yaml.composer.Composer, without recursion."""

    def __init__(self) -> None:
        self._resolver: Any = yaml.resolver.Resolver()
        self._anchors: dict[str, _Read] = {}
        self._open: list[_Read] = []
        self._root: _Read | None = None

    def compose(self, text: str) -> Any:
        """The node of the document; None = there is none."""
        events: Any = yaml.parse(text, Loader=_Parser)
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent) and self._root is not None:
                raise _at("there is another document", event.start_mark)
            if isinstance(event, yaml.AliasEvent):
                self._alias(event)
            elif isinstance(event, yaml.ScalarEvent):
                tag = self._tag(event, yaml.ScalarNode, event.value)
                if tag in _NUMBERS and len(event.value) > _LONGEST_NUMBER:
                    raise _at(f"a number has {len(event.value)} characters: put it in quotes", event.start_mark)
                node = yaml.ScalarNode(tag, event.value, *_marks(event), event.style)
                self._put(self._anchored(event, _Read(node, 1)))
            elif isinstance(event, yaml.CollectionStartEvent):
                self._begin(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                read = self._open.pop()
                read.size = read.inside + 1
                self._put(read)
        return None if self._root is None else self._root.node

    def _begin(self, event: Any) -> None:
        if len(self._open) == _MAX_DEPTH:
            raise _at(f"lists and maps are nested more than {_MAX_DEPTH} deep", event.start_mark)
        kind: Any = yaml.SequenceNode if isinstance(event, yaml.SequenceStartEvent) else yaml.MappingNode
        node = kind(self._tag(event, kind, None), [], *_marks(event))
        self._open.append(self._anchored(event, _Read(node)))

    def _alias(self, event: Any) -> None:
        meant = self._anchors.get(event.anchor)
        if meant is None:
            raise _at(f"there is no anchor {event.anchor!r} before this alias", event.start_mark)
        if not meant.size:
            raise _at("an alias stands for something that contains it", event.start_mark)
        self._put(meant)

    def _put(self, read: _Read) -> None:
        """Into the list or map that it is in."""
        if not self._open:
            self._root = read
            return
        around = self._open[-1]
        around.inside += read.size
        if around.inside > _MAX_VALUES:
            raise _at(f"there are more than {_MAX_VALUES} values, aliases written out", read.node.start_mark)
        if isinstance(around.node, yaml.SequenceNode):
            around.node.value.append(read.node)
        elif around.key is None:
            around.key = read
        else:
            around.node.value.append((around.key.node, read.node))
            around.key = None

    def _anchored(self, event: Any, read: _Read) -> _Read:
        if event.anchor is not None:
            self._anchors[event.anchor] = read
        return read

    def _tag(self, event: Any, kind: Any, value: str | None) -> str:
        if event.tag is not None and event.tag != "!":
            return str(event.tag)
        return str(self._resolver.resolve(kind, value, event.implicit))


def _marks(event: Any) -> tuple[Any, Any]:
    """Where it begins and ends."""
    return event.start_mark, event.end_mark


def _at(problem: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def _reason(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or " ".join(str(error).split())
    return f"{problem}, line {mark.line + 1}" if mark is not None else str(problem)
