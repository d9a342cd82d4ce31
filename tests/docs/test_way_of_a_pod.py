"""Every arrow of the way of a pod in architecture.md is a call that a reader finds where the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs" / "understand"
SECTION = (DOCS / "architecture.md").read_text().partition("## The way of a pod")[2].partition("\n## ")[0]
ARROWS = re.findall(r"^\| (\d+) \| (.+?) \| (.+?) \| (.+?) \|$", SECTION, re.MULTILINE)
_LINK = re.compile(r"\]\((.+?)\)")


@pytest.mark.parametrize(("number", "source", "calls", "target"), ARROWS)
def test_an_arrow_is_a_call(number: str, source: str, calls: str, target: str) -> None:
    (caller,) = (_text(link) for link in _LINK.findall(source))
    for call in re.findall(r"`(.+?)`", calls):
        assert re.search(rf"\b{re.escape(call)}\b", caller), f"arrow {number}: {source} does not name {call}"
    name = call.rpartition(".")[2]
    called = _text(_LINK.findall(target)[0])
    assert re.search(rf"def {name}\(", called), f"arrow {number}: {target} does not define {name}"


def test_a_pod_passes_nine_rooms_at_most() -> None:
    files = [link for _, source, _, target in ARROWS for link in _LINK.findall(source + target)]
    assert len(ARROWS) == 12
    assert len({link.rpartition("/")[0] for link in files}) <= 9


def _text(link: str) -> str:
    return (DOCS / link).read_text()
