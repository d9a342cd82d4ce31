"""What a page points to is there: other pages, their headings, files of the tree. Nothing is left to be filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, text_of

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FOLDERS = (
    "docs", "deploy", "dashboards", "data", "testing", "tests", "benchmarks",
    "base", "forecast", "trainer", "kube", "cluster", "serving", "scorer", "placement", "extender",
    "scheduler", "profiles", "advisor", "admission",
    "forecast_scheduler",
)  # fmt: skip
_PATH = re.compile(rf"(?<![\w./~-])(?:{'|'.join(_FOLDERS)})/[\w./*-]*\w/?")
_PAGE = re.compile(r"(?<![\w./-])[a-z][a-z-]*\.md\b")
_MODULE = re.compile(r"`([a-z_]+\.py)\b")
_MODULES = {file.name for folder in _FOLDERS for file in (ROOT / folder).rglob("*.py")}
_NAMES = {page.name for page in PAGES}
_TO_WRITE = {"forecast/predictors/two_weeks_max.py", "scorer/scores/fewest_pods.py"}  # by readers of how-to pages
_PLACEHOLDER = re.compile(r"@[A-Z][A-Z_]+@|\bTODO\b|\bFIXME\b")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_paths_lead_somewhere_and_nothing_is_left_to_be_filled_in(page: Path) -> None:
    text = text_of(page)
    missing = [
        *_dead_links(page, text),
        *(name for name in _MODULE.findall(text) if name not in _MODULES),
        *(path for path in _PATH.findall(text) if not _is_there(path) and path not in _TO_WRITE),
    ]
    if page.is_relative_to(ROOT / "docs"):  # pages name their neighbours without the folder
        missing += [name for name in _PAGE.findall(text) if name not in _NAMES]
    assert not missing and not _PLACEHOLDER.findall(text)


def _dead_links(page: Path, text: str) -> Iterator[str]:
    for target in _LINK.findall(text):
        name, _, heading = target.partition("#")
        if re.match(r"[a-z]+:", name):
            continue
        path = page.parent / name if name else page
        if not path.exists() or (heading and heading not in _headings(text_of(path))):
            yield target


def _headings(text: str) -> set[str]:
    """As they are addressed: lower case, spaces as dashes, without signs."""
    found = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in found}


def _is_there(path: str) -> bool:
    """A file or folder, with or without its ending; a pattern that something matches."""
    path = path.rstrip("/")
    return any(ROOT.glob(path)) or any(ROOT.glob(f"{path}.*"))
