"""docs/README.md lists every page, in one group only."""

from __future__ import annotations

import re
from collections import Counter

from tests.docs.pages import PAGES, ROOT, text_of

DOCS = ROOT / "docs"
GROUPS = ["Start", "Use", "Operate", "Extend", "Understand"]


def test_the_index_lists_each_page_once() -> None:
    listed = Counter(re.findall(r"^- \[([\w-]+\.md)\]\(\1\): ", text_of(DOCS / "README.md"), re.MULTILINE))
    pages = {page.name for page in PAGES if page.parent == DOCS and page.name != "README.md"}
    assert listed == dict.fromkeys(pages, 1)


def test_the_index_has_the_five_groups_in_the_order_of_a_reader() -> None:
    assert re.findall(r"^## (.*)$", text_of(DOCS / "README.md"), re.MULTILINE) == GROUPS
