"""A document in a file, whatever the path turns out to be and whichever editor wrote it."""

from __future__ import annotations

import os
from pathlib import Path

from base.text_encoding import decoded_text
from placement.policies.yaml_text import MAX_BYTES, check_size


def read_document_file(path: Path, *, waits: bool = False) -> bytes:
    """At most a byte more than is allowed, so that it is refused for its size. Raises OSError, ValueError.

    waits : for a pipe's writer to end, if there is one; a pipe without any is empty in either case
    """
    # An opener rather than os.fdopen: what it opened is closed again if it is a directory.
    with open(path, "rb", opener=_open) as file:
        os.set_blocking(file.fileno(), waits)
        return file.read(MAX_BYTES + 1) or b""


def document_text(content: bytes) -> str:
    """The text of these bytes. Raises DocumentMistake for their size, and UndecodableText."""
    check_size(len(content))  # what was cut off there would be blamed on the encoding
    return decoded_text(content)


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
