"""A model that tests stand on is fitted once, and again when its sources or its history change."""

from __future__ import annotations

from pathlib import Path

import pytest

from testing import fitted_models
from testing.fitted_models import kept


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fitted_models, "cache_directory", lambda: tmp_path)


def test_it_is_made_once_for_a_question_and_its_sources() -> None:
    made: list[str] = []

    def make() -> list[str]:
        made.append("made")
        return [*made]

    assert kept(b"one", make) == kept(b"one", make) == ["made"]
    assert kept(b"two", make) == ["made"] * 2
    assert kept(b"one", make, "trainer") == ["made"] * 3, "other sources count"
    assert kept(b"one", make) == ["made"]


def test_a_changed_source_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for root, text in (("before", "x = 1"), ("after", "x = 2")):
        (tmp_path / root / "forecast").mkdir(parents=True)
        (tmp_path / root / "constraints.txt").touch()
        (tmp_path / root / "forecast" / "fit.py").write_text(text)
        monkeypatch.setattr(fitted_models, "ROOT", tmp_path / root)
        fitted_models._sources.cache_clear()
        assert kept(b"one", lambda root=root: root) == root  # type: ignore[misc]
    fitted_models._sources.cache_clear()
