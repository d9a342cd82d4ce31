"""Bytes of a file that a user hands us -> UTF-8, whatever the editor or the shell wrote.

Windows PowerShell writes UTF-16 with `>`, editors of Windows put a byte-order mark before UTF-8. A text of YAML or JSON
begins with two ASCII characters, so its null bytes show UTF-16 and UTF-32 without a mark, too (RFC 4627, section 3).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from typing import Final

from base.errors import InputError

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
