"""Cuts a watch stream into lines: one JSON document each, however the bytes arrive."""

from __future__ import annotations


class LineSplitter:
    r"""Feed it chunks, get back the lines that are complete, without their ends and without empty ones.

    It works on bytes: a line feed byte is never part of a longer UTF-8 sequence, so a chunk may end inside a character.
    A line that arrives in many chunks is joined once, when it is complete: time is linear in its length.
    """

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in this chunk, in order."""
        if b"\n" not in chunk:
            if chunk:
                self._parts.append(chunk)
            return []
        first, *rest = chunk.split(b"\n")
        self._parts.append(first)
        lines = [b"".join(self._parts), *rest[:-1]]
        self._parts = [rest[-1]] if rest[-1] else []
        return [line for line in lines if line]

    @property
    def unfinished(self) -> int:
        """Bytes of a line whose end has not arrived."""
        return sum(map(len, self._parts))
