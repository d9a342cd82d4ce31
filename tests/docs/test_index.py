"""docs/README.md lists every page once, under the heading of its folder."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.pages import ROOT, text_of

DOCS = ROOT / "docs"
GROUPS = ["Start", "Use", "Operate", "Extend", "Understand"]


def test_the_index_lists_each_page_once_under_the_heading_of_its_folder_in_the_order_of_a_reader() -> None:
    index, folders = _index(), {group: sorted(_pages_in(group.lower())) for group in GROUPS}
    assert list(index) == GROUPS
    assert {group: sorted(pages) for group, pages in index.items()} == folders
    pages = [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")]
    assert set(pages) - {page for of_group in folders.values() for page in of_group} == {"README.md"}
    assert len({Path(page).name for page in pages}) == len(pages)


def _index() -> dict[str, list[str]]:
    """Return the listed pages by heading, as paths from docs/."""
    sections = text_of(DOCS / "README.md").split("\n## ")[1:]
    lines = {section.partition("\n")[0]: section for section in sections}
    return {head: re.findall(r"^- \[[^\]]+\]\(([\w/-]+\.md)\): ", text, re.MULTILINE) for head, text in lines.items()}


def _pages_in(folder: str) -> list[str]:
    return [f"{folder}/{page.name}" for page in (DOCS / folder).glob("*.md")]
