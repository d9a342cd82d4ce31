"""YAML put together here means what PyYAML says it means."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from placement.policies.document_reading import read_yaml
from placement.policies.mistakes import DocumentMistake

VALUES: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.dates()
    | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4) | st.integers(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.booleans(), st.sampled_from([None, '"', "'", "|"]))
def test_what_is_written_is_read(value: Any, flow: bool, style: str | None) -> None:
    shared = [value, {"again": value}, value]  # written with anchors where value is a list or map
    text = yaml.safe_dump(shared, default_flow_style=flow, default_style=style, allow_unicode=True)
    assert read_yaml(text) == yaml.safe_load(text)


@pytest.mark.parametrize(
    "text",
    [
        "a: &x {b: 1}\nc: {<<: *x, d: 2}",
        "- &x [1, [2]]\n- *x\n- [*x, *x]",
        "!!str 3",
        "! 3",
        "!!map {a: !!int '4', b: !!seq [x]}",
        "? a\n: b\n? c",
        "---\na: >\n  folded\n  text\n...\n",
        "a: 0o7\nb: 0x1f\nc: 1_000\nd: 1:30\ne: ~\nf: .inf\ng: on",
    ],
)
def test_odd_documents_are_read_as_pyyaml_reads_them(text: str) -> None:
    assert read_yaml(text) == yaml.safe_load(text)


def test_an_anchor_that_is_there_twice_means_the_last_one_before_the_alias() -> None:
    """As YAML 1.1 has it, 3.2.2.2; PyYAML refuses it."""
    assert read_yaml("a: &x 1\nb: *x\nc: &x 2\nd: *x") == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_an_alias_needs_an_anchor() -> None:
    with pytest.raises(DocumentMistake, match="there is no anchor 'x' before this alias, line 1"):
        read_yaml("[*x, &x 1]")
