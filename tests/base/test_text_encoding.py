"""One place decodes every document that a user hands us."""

from __future__ import annotations

import codecs
import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from base import yaml_reader
from base.yaml_reader import UndecodableText, as_utf8, decoded_text

TEXT = "time_zone: Europe/Berlin # größer als früher\r\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_a_text_is_decoded_by_its_mark_or_its_null_bytes(encoding: str) -> None:
    assert decoded_text(TEXT.encode(encoding)) == TEXT


@pytest.mark.parametrize("mark", [codecs.BOM_UTF16_BE + "a: ä".encode("utf-16-be"), codecs.BOM_UTF8 + "a: ä".encode()])
def test_the_mark_is_no_part_of_the_text(mark: bytes) -> None:
    assert decoded_text(mark) == "a: ä"


def test_marks_of_joined_files_go_and_those_in_values_stay() -> None:
    assert decoded_text("\ufeff{}\n\ufeff{}".encode()) == "{}\n{}"
    assert decoded_text('\ufeff{"a": "\ufeff"}'.encode()) == '{"a": "\ufeff"}'


def test_plain_utf_8_is_not_copied() -> None:
    content = TEXT.encode()
    assert as_utf8(content) is content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: größer".encode("cp1252"), r"not UTF-8: byte 5 \(0xf6\).*Windows-1252.*save it as UTF-8"),
        (codecs.BOM_UTF16_LE + "a: 1".encode("utf-16-le") + b"x", "begins as UTF-16 but byte 10 .*save it as UTF-8"),
        (codecs.BOM_UTF32_LE + b"\xff\xff\xff\xff", "begins as UTF-32"),
        (b"a: 1\0", "byte 4 is null"),
        (gzip.compress(b"a: 1", mtime=0), r"compressed \(gzip\): unpack it first"),
    ],
)
def test_what_is_no_such_text_is_named(content: bytes, message: str) -> None:
    with pytest.raises(UndecodableText, match=message) as refused:
        decoded_text(content)
    assert "\n" not in str(refused.value)


def test_a_character_across_two_chunks_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_reader, "_CHUNK", 3)
    assert decoded_text("abäcdöß".encode()) == "abäcdöß"
    with pytest.raises(UndecodableText, match=r"byte 5 \(0xe4\)"):
        decoded_text("abäc".encode() + b"\xe4x")
    with pytest.raises(UndecodableText, match=r"byte 2 \(0xc3\)"):
        decoded_text(b"ab\xc3")


@given(st.binary(max_size=64))
def test_any_bytes_are_text_or_refused(content: bytes) -> None:
    try:
        found = as_utf8(content)
    except UndecodableText:
        return
    assert b"\0" not in found
    found.decode()
