"""YAML of a policy document, of which any client may have written it."""

from __future__ import annotations

from typing import Any, Final

from base.yaml_reader import YamlMistake
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
