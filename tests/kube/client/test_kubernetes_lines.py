from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from kube.client.kubernetes_watcher import LineSplitter

DOCUMENTS = st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=30), max_size=3), max_size=8)


@given(DOCUMENTS, st.data())
def test_lines_are_the_same_however_the_bytes_are_cut(documents: list[dict[str, str]], data: st.DataObject) -> None:
    """Also inside a character of several bytes."""
    lines = [json.dumps(document, ensure_ascii=False).encode() for document in documents]
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    splitter, got = LineSplitter(), list[bytes]()
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        got += splitter.feed(stream[begin:end])
    assert got == lines
    assert splitter.unfinished == 0


def test_long_lines_are_joined_once_and_empty_ones_left_out() -> None:
    splitter, piece = LineSplitter(), b"x" * 4096
    for _ in range(2000):
        assert splitter.feed(piece) == []
    assert splitter.unfinished == 2000 * 4096
    assert splitter.feed(b"\n") == [piece * 2000]
    assert LineSplitter().feed(b"\n\na\n\n") == [b"a"]
