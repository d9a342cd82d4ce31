"""A calendar of events is read with its history, and what is wrong in it is said with file and entry."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from base.errors import InputError
from tests.trainer.history.histories import tables
from trainer.history.files import HistoryFiles
from trainer.history.user_lists import read_events

TEXT = """
- name: spring-sale
  first_day: 2026-03-20
  last_day: 2026-03-22
  hours: 18:30-23
  namespace: shop
  factor: 2
- {name: spring-sale, first_day: 2025-03-21}
"""


def test_an_entry_becomes_an_event(tmp_path: Path) -> None:
    (tmp_path / "sales.yaml").write_text(TEXT)
    first, second = read_events(tmp_path / "sales.yaml")
    assert (first.name, first.first_day, first.end_day) == ("spring-sale", date(2026, 3, 20), date(2026, 3, 22))
    assert (first.hours, first.namespace, first.service, first.factor) == ("18:30-23", "shop", "*", 2.0)
    assert (second.end_day, second.factor) == (date(2025, 3, 21), None)


def test_a_file_in_utf_16_is_read(tmp_path: Path) -> None:
    (tmp_path / "sales.yaml").write_text("- {name: sale, first_day: 2026-03-20}\n", encoding="utf-16")
    assert [event.name for event in read_events(tmp_path / "sales.yaml")] == ["sale"]


def test_an_empty_file_has_no_events(tmp_path: Path) -> None:
    (tmp_path / "sales.yaml").write_text("# none yet\n")
    assert read_events(tmp_path / "sales.yaml") == ()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("name: sale\nfirst_day: 2026-03-20\n", "holds a dict: write a list"),
        ("- sale\n", "event 1: it is a str"),
        ("- {name: a, first_day: 2026-03-20}\n- {name: b, first_day: 2026-03-20, factor: lots}\n", r"event 2 \(b\)"),
        ("- {name: a}\n", r"event 1 \(a\): .*first_day is missing"),
        ("- name: [\n", "not valid YAML near line"),
        ("- {name: a, name: b}\n", "near line 1 .key 'name' is there twice"),
        ("- {name: a, first_day: 2026-02-31}\n", "not valid YAML"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_place(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "sales.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=what) as refused:
        read_events(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_events(tmp_path / "none.yaml")


def test_a_history_has_its_own_calendar_unless_another_one_is_named(tmp_path: Path) -> None:
    directory = tables(days=3).write(tmp_path / "history")
    assert HistoryFiles.open(directory).history().events == ()
    (directory / "events.yaml").write_text("- {name: own, first_day: 2026-03-20}\n")
    (tmp_path / "other.yaml").write_text("- {name: other, first_day: 2026-03-20}\n")
    assert [e.name for e in HistoryFiles.open(directory).history().events] == ["own"]
    named = HistoryFiles.open(directory, events=tmp_path / "other.yaml")
    assert [e.name for e in named.history().events] == ["other"]
