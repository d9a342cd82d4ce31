"""The text of a policy document, of which any client may have written it: from a file, whatever its path turns out to
be, and its YAML.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from base.yaml_reader import YamlMistake, decoded_text
from base.yaml_reader import read_yaml as read_any_yaml
from placement.policies.mistakes import DocumentMistake

MAX_BYTES: Final = 1 << 20
"""As much as a ConfigMap can hold."""


def read_yaml(text: str) -> Any:
    """The one document in the text. Raises DocumentMistake, with the line where it is known."""
    check_size(len(text.encode(errors="surrogatepass")))
    try:
        return read_any_yaml(text)
    except YamlMistake as error:
        raise DocumentMistake("", f"this is not valid YAML: {error}") from error


def check_size(n_bytes: int) -> None:
    """Raises DocumentMistake for a document that is too large."""
    if n_bytes > MAX_BYTES:
        raise DocumentMistake(
            "", f"the document has {n_bytes} bytes, {MAX_BYTES} are allowed: leave policies or rules out"
        )


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
