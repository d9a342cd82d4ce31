"""docs/README.md lists every page once, under the heading of its folder."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT, text_of

DOCS = ROOT / "docs"
GROUPS = ["Start", "Use", "Operate", "Extend", "Understand"]


def test_the_index_has_the_five_groups_in_the_order_of_a_reader() -> None:
    assert list(_index()) == GROUPS


def test_every_group_lists_each_page_of_its_folder_once_and_no_other() -> None:
    folders = {group: sorted(_pages_in(group.lower())) for group in GROUPS}
    assert {group: sorted(pages) for group, pages in _index().items()} == folders


def test_every_page_is_in_the_folder_of_a_group() -> None:
    listed = {page for group in GROUPS for page in _pages_in(group.lower())}
    assert {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - listed == {"README.md"}


def test_no_two_pages_have_the_same_name() -> None:
    names = [page.name for page in DOCS.rglob("*.md")]
    assert len(names) == len(set(names))


def _index() -> dict[str, list[str]]:
    """Return the listed pages by heading, as paths from docs/."""
    sections = text_of(DOCS / "README.md").split("\n## ")[1:]
    lines = {section.partition("\n")[0]: section for section in sections}
    return {head: re.findall(r"^- \[[^\]]+\]\(([\w/-]+\.md)\): ", text, re.MULTILINE) for head, text in lines.items()}


def _pages_in(folder: str) -> list[str]:
    return [f"{folder}/{page.name}" for page in (DOCS / folder).glob("*.md")]
