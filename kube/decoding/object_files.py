"""Files of Kubernetes objects, in the forms in which people have them -> the JSON of each object.

    one object, a List, a list of one kind         kubectl get -o json, -o yaml
    several JSON or YAML documents, JSON lines     two calls of kubectl, the second with >>; jq -c
    an array of objects or of lists                jq -s
    documents with logs of containers in between   kubectl cluster-info dump
    a folder of such files                         kubectl cluster-info dump --output-directory

What it is shows in the content; the ending of the name only decides what an error is about. Time and memory are linear
in the size of the file, whatever it holds: a log may say anything, and so may an annotation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Raw

from base.errors import InputError
from base.yaml_reader import YamlMistake, as_utf8, read_yaml_documents
from kube.decoding.decoding import WATCHED, Kind

_ENDINGS: Final = (".json", ".yaml", ".yml")
_MAX_DEPTH: Final = 100  # of YAML; an object of the API has 30
_LISTS_IN_LISTS: Final = 8
"""Lists and arrays within each other: each is read once more than the one around it."""

# Kubernetes: staging/src/k8s.io/kubectl/pkg/cmd/clusterinfo/clusterinfo_dump.go
_LOG_START: Final = re.compile(rb"^==== START logs(?P<of>.*?) ?====\r?$", re.MULTILINE)
_TABLE: Final = re.compile(rb"(NAME|NAMESPACE) +[A-Z]")
_OBJECT_START: Final = re.compile(r"^(?:---|apiVersion:)", re.MULTILINE)
_BYTE: Final = re.compile(r"\(byte (\d+)\)")
_SHOWN: Final = 60


class NoObjects(InputError):
    """The text is no JSON or YAML of objects. The message begins with what it is not."""


@dataclass(frozen=True, slots=True)
class ObjectInFile:
    """An object of the API. kind, api_version: what it says, else the list around it; '' = neither does."""

    api_version: str
    kind: str
    json: Raw

    @property
    def group(self) -> str:
        """API group, '' = the core group."""
        return self.api_version.rpartition("/")[0]


class _Typed(msgspec.Struct, rename="camel"):
    """What says which type an object is of. Items of a NodeList and the like do not; then the list does."""

    kind: str | None = None
    api_version: str | None = None
    items: Raw = Raw(b"null")
    metadata: Raw = Raw(b"null")


class _Named(msgspec.Struct):
    name: str | None = None
    namespace: str | None = None


_documents: Final = msgspec.json.Decoder(Raw)
_typed: Final = msgspec.json.Decoder(_Typed)
_array: Final = msgspec.json.Decoder(list[Raw])
_named: Final = msgspec.json.Decoder(_Named | None)


def objects_of_path(path: Path) -> list[ObjectInFile]:
    """All objects of a file, or of the files of a folder and those below it. Raises OSError, InputError.

    An error of a file in a folder begins with its name.
    """
    if not path.is_dir():
        return objects_of(path.read_bytes(), is_json=path.suffix == ".json")
    files = [file for file in sorted(path.rglob("*")) if file.suffix in _ENDINGS and file.is_file()]
    if not files:
        raise InputError(f"the folder holds no file that ends in {', '.join(_ENDINGS)}")
    found: list[ObjectInFile] = []
    for file in files:
        try:
            content = file.read_bytes()
            if content.strip():  # kubectl writes an empty file for what it may not list
                found += objects_of(content, is_json=file.suffix == ".json", of_items=_KIND_OF_FILE.get(file.stem))
        except InputError as error:
            raise type(error)(f"{file.relative_to(path)}: {error}") from error
    return found


def objects_of(content: bytes, *, is_json: bool = False, of_items: tuple[str, str] | None = None) -> list[ObjectInFile]:
    """All objects of these bytes. Raises InputError.

    is_json  : its name says that it is JSON
    of_items : apiVersion and kind of the items of a list that does not say its own, as of old versions of kubectl
    """
    found: list[ObjectInFile] = []
    for document in _documents_of(_without_logs(as_utf8(content)), is_json=is_json):
        try:
            found += _opened(document, *(of_items or ("", "")), depth=0)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise NoObjects(f"not objects in JSON or YAML ({error}): {_excerpt(bytes(document))!r}") from error
    return found


def _documents_of(content: bytes, *, is_json: bool) -> Sequence[Raw]:
    """The documents, as JSON."""
    start = content[:1024].lstrip()
    if not start:
        raise NoObjects("it is empty")
    if _TABLE.match(start):
        raise NoObjects("it is the table that kubectl prints for people: add -o json")
    seems_json = start[:1] in (b"{", b"[")
    if seems_json:
        try:
            return _documents.decode_lines(content)
        except (msgspec.DecodeError, RecursionError) as error:
            if is_json:
                raise NoObjects(f"not JSON of objects ({_mistake(error, content)})") from error
    try:
        documents = list(read_yaml_documents(_separated(content.decode()), max_depth=_MAX_DEPTH))
        # Written as JSON: what YAML alone knows (dates, keys that are no text) is no object of the API.
        return [Raw(msgspec.json.encode(document)) for document in documents if document is not None]
    except YamlMistake as error:
        if is_json and not seems_json:
            begin = _excerpt(content.lstrip().partition(b"\n")[0])
            raise NoObjects(f"neither JSON nor YAML of objects: it begins with {begin!r}") from error
        what = "JSON or YAML" if seems_json else "YAML"
        raise NoObjects(f"not {what} of objects ({error})") from error
    except (msgspec.EncodeError, TypeError, ValueError, RecursionError) as error:
        raise NoObjects(f"not YAML of objects ({' '.join(str(error).split())})") from error


def _separated(text: str) -> str:
    """YAML with a line --- before each object that begins with its apiVersion, as kubectl writes it: >> adds none."""
    begins, position, kept = False, 0, []
    for mark in _OBJECT_START.finditer(text):
        if begins and mark[0] != "---":
            kept += [text[position : mark.start()], "---\n"]
            position = mark.start()
        begins = mark[0] != "---"
    return "".join([*kept, text[position:]]) if kept else text


def _opened(raw: Raw, api_version: str, kind: str, *, depth: int) -> Iterator[ObjectInFile]:
    """Objects of a document, lists within lists opened. api_version, kind: what the list around it says."""
    if depth > _LISTS_IN_LISTS:
        raise InputError(f"lists are more than {_LISTS_IN_LISTS} deep within each other: {_excerpt(bytes(raw))!r}")
    if bytes(memoryview(raw)[:1]) == b"[":
        for item in _array.decode(raw):
            yield from _opened(item, api_version, kind, depth=depth + 1)
        return
    typed = _typed.decode(raw)
    said, has_items = typed.kind or "", bytes(typed.items) != b"null"
    is_list = (said.endswith("List") or (not said and has_items)) and _is_unnamed(typed.metadata)
    # Of a list, without its items: these are checked one by one, so that the error names the object.
    _check_keys(bytes(raw).replace(bytes(typed.items), b"null", 1) if is_list else bytes(raw), said or kind, typed)
    if not is_list:
        yield ObjectInFile(typed.api_version or api_version, said or kind, raw)
    elif has_items:  # Go writes null for none
        of_items = said.removesuffix("List") if said else kind
        version = (typed.api_version or api_version) if of_items else ""
        for item in _array.decode(typed.items):
            yield from _opened(item, version, of_items, depth=depth + 1)


def _check_keys(content: bytes, kind: str, typed: _Typed) -> None:
    """Refuse a key that is there twice: readers take the last one without a word."""
    try:
        json.loads(content, object_pairs_hook=_without_doubles)
    except _DoubledKey as error:
        found = _named.decode(typed.metadata) or _Named()
        where = "/".join(part for part in (found.namespace, found.name) if part)
        raise InputError(f"{f'{kind} {where}'.strip() or 'an object'} has the key {error.key!r} twice") from error


class _DoubledKey(Exception):
    def __init__(self, key: str) -> None:
        self.key = key


def _without_doubles(pairs: list[tuple[str, Any]]) -> None:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise _DoubledKey(next(key for key in keys if keys.count(key) > 1))


def _is_unnamed(metadata: Raw) -> bool:
    """A resource may have a kind that ends in List; then it has a name."""
    found = _named.decode(metadata)
    return found is None or not found.name


def _without_logs(content: bytes) -> bytes:
    """Without what containers wrote, between the marks of kubectl. Raises InputError if a log has these marks, too.

    A mark of a log that ends early would make objects of what the container says. Then its own end is left over, which
    is no JSON, or its start is there twice, or its end is missing.
    """
    kept, position = [], 0
    seen: set[bytes] = set()
    while (start := _LOG_START.search(content, position)) is not None:
        whose = start["of"]
        shown = _excerpt(whose.strip() or b"a container")
        if whose and whose in seen:
            raise InputError(f"the log {shown!r} is there twice: export with kubectl get instead")
        seen.add(whose)
        kept.append(content[position : start.start()])
        end = re.compile(rb"==== END logs(" + re.escape(whose) + rb")? ====\r?$", re.MULTILINE)
        ended = end.search(content, start.end())
        if ended is None:
            raise InputError(f"the log {shown!r} has no end: was the dump cut off?")
        position = ended.end()
    return b"".join([*kept, content[position:]]) if seen else content


def _mistake(error: Exception, content: bytes) -> str:
    """What msgspec says, and the text at that place."""
    found = _BYTE.search(str(error))
    if found is None:
        return str(error)
    at = int(found[1])
    line = content.count(b"\n", 0, at) + 1
    start = content.rfind(b"\n", 0, at) + 1
    start = start if at - start < _SHOWN else at
    return f"{_BYTE.sub('', str(error)).strip()}, line {line}: {_excerpt(content[start : start + 4 * _SHOWN])!r}"


def _excerpt(content: bytes) -> str:
    text = " ".join(content[: 4 * _SHOWN].decode(errors="replace").split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _type_of(kind: Kind) -> tuple[str, str]:
    """apiVersion and kind."""
    parts = WATCHED[kind].path.split("/")
    return ("/".join(parts[2:-1]), kind.singular)


_KIND_OF_FILE: Final = {kind.value: _type_of(kind) for kind in Kind}
"""By the name of its file in the folder of a dump."""
