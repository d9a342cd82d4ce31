"""Files that people or programs hand us -> UTF-8 text, and YAML in it -> plain values, in bounded time and memory."""

from __future__ import annotations

import codecs
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from base.errors import InputError

_MAX_DEPTH: Final = 32
_MAX_VALUES: Final = 200_000
_NUMBERS: Final = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")

_LONGEST_NUMBER: Final = 40
"""Characters. PyYAML takes quadratic time for base 60 (1:30:00), and Python refuses to show very long ones."""

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INVALID: Final = (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError)

_MARKS: Final = (  # that of UTF-32 LE begins with that of UTF-16 LE
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_NULLS: Final[Mapping[tuple[bool, ...], str]] = {  # where the first four bytes are null
    (True, True, True, False): "utf-32-be",
    (False, True, True, True): "utf-32-le",
    (True, False, True, False): "utf-16-be",
    (False, True, False, True): "utf-16-le",
}
_SPOKEN: Final = {"utf-32-le": "UTF-32", "utf-32-be": "UTF-32", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16"}
_COMPRESSED: Final = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ": "xz"}
_MARK_AT_LINE_START: Final = re.compile(rb"^" + codecs.BOM_UTF8, re.MULTILINE)
_CHUNK: Final = 1 << 24  # bytes; a cluster file has a gigabyte


class YamlMistake(InputError):
    """The text is no YAML, or not in these bounds. line: where, from 1; None = not known."""

    def __init__(self, error: Exception) -> None:
        mark = getattr(error, "problem_mark", None)
        self.problem = str(getattr(error, "problem", None) or " ".join(str(error).split()))
        self.line: int | None = None if mark is None else mark.line + 1
        super().__init__(self.problem if self.line is None else f"{self.problem}, line {self.line}")


def read_yaml(text: str) -> Any:
    """The one document in the text; None = there is none. Raises YamlMistake."""
    try:
        return next(iter(list(_Documents(text, _MAX_DEPTH, _MAX_VALUES, most=1))), None)
    except _INVALID as error:
        raise YamlMistake(error) from error


def read_yaml_documents(text: str, *, max_depth: int) -> Iterator[Any]:
    """All documents in the text, of any size, one after the other. Raises YamlMistake."""
    try:
        # A text has no more values than characters: this bounds what aliases add.
        yield from _Documents(text, max_depth, len(text) + _MAX_VALUES)
    except _INVALID as error:
        raise YamlMistake(error) from error


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


class _Documents:
    """As yaml.composer.Composer and yaml.constructor.SafeConstructor, without recursion in the former."""

    def __init__(self, text: str, max_depth: int, max_values: int, most: int | None = None) -> None:
        """most: documents that are allowed; None = any number"""
        self._text, self._max_depth, self._max_values, self._most = text, max_depth, max_values, most
        self._resolver: Any = yaml.resolver.Resolver()
        self._anchors: dict[str, _Read] = {}
        self._open: list[_Read] = []
        self._root: _Read | None = None
        self._values = 0

    def __iter__(self) -> Iterator[Any]:
        n_documents = 0
        events: Any = yaml.parse(self._text, Loader=_Parser)
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                n_documents += 1
                if self._most is not None and n_documents > self._most:
                    raise _at("there is another document", event.start_mark)
                self._anchors, self._root = {}, None
            elif isinstance(event, yaml.DocumentEndEvent):
                assert self._root is not None
                yield _Constructor().construct_document(self._root.node)
            elif isinstance(event, yaml.AliasEvent):
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

    def _begin(self, event: Any) -> None:
        if len(self._open) == self._max_depth:
            raise _at(f"lists and maps are nested more than {self._max_depth} deep", event.start_mark)
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
            self._values += read.size
            if self._values > self._max_values:
                raise self._too_many(read)
            return
        around = self._open[-1]
        around.inside += read.size
        if around.inside > self._max_values:
            raise self._too_many(read)
        if isinstance(around.node, yaml.SequenceNode):
            around.node.value.append(read.node)
        elif around.key is None:
            around.key = read
        else:
            around.node.value.append((around.key.node, read.node))
            around.key = None

    def _too_many(self, read: _Read) -> yaml.MarkedYAMLError:
        return _at(f"there are more than {self._max_values} values, aliases written out", read.node.start_mark)

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


# Bytes of a file that a user hands us -> UTF-8, whatever the editor or the shell wrote.
#
# Windows PowerShell writes UTF-16 with `>`, editors of Windows put a byte-order mark before UTF-8. A text of YAML or
# JSON begins with two ASCII characters, so its null bytes show UTF-16 and UTF-32 without a mark, too (RFC 4627, section
# 3).


class UndecodableText(InputError):
    """The bytes are no text in an encoding that is known. The message begins with `it`, the file."""


def as_utf8(content: bytes) -> bytes:
    """The text in valid UTF-8 without byte-order marks; the same bytes if they are that. Raises UndecodableText.

    Files that were joined have a mark within. Neither JSON nor YAML has one in a value at the start of a line.
    """
    for magic, name in _COMPRESSED.items():
        if content.startswith(magic):
            raise UndecodableText(f"it is compressed ({name}): unpack it first")
    encoding = _encoding_of(content)
    if encoding is not None:
        try:
            content = content.decode(encoding).encode()
        except UnicodeError as error:
            raise UndecodableText(
                f"it begins as {_SPOKEN[encoding]} but byte {getattr(error, 'start', 0)} is none of such a text (were "
                "two files joined?): save it as UTF-8"
            ) from error
    else:
        _check_utf8(content)
    if codecs.BOM_UTF8 in content:
        content = _MARK_AT_LINE_START.sub(b"", content)
    if (null := content.find(b"\0")) >= 0:
        raise UndecodableText(f"it is no text: byte {null} is null; save it as UTF-8")
    return content


def decoded_text(content: bytes) -> str:
    """The same as text."""
    return as_utf8(content).decode()


def _encoding_of(content: bytes) -> str | None:
    """None = UTF-8, with a mark or without."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return encoding
    return _NULLS.get(tuple(byte == 0 for byte in content[:4]))


def _check_utf8(content: bytes) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(content), _CHUNK):
        chunk = content[start : start + _CHUNK]
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(chunk, final=start + _CHUNK >= len(content))
        except UnicodeDecodeError as error:
            at = start - pending + error.start
            raise UndecodableText(
                f"it is not UTF-8: byte {at} (0x{content[at]:02x}) is none of such a text (Windows-1252 or another "
                "code page?); save it as UTF-8"
            ) from error
