"""The list of moved services is read with its history, and mistakes in it are reported with file and entry."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from base.errors import InputError
from forecast.history import History
from forecast.service_key import ServiceKey
from tests.trainer.history.histories import Tables, tables
from trainer.history.files import HistoryFiles
from trainer.history.moved_file import MovedServices

RENAMED = "- {old: shop/Deployment/cart, new: shop/Deployment/basket}\n"


def history_of(directory: Path, data: Tables, moved: str) -> History:
    """The history of a directory with a list of moved services."""
    (data.write(directory) / "moved.yaml").write_text(moved)
    return HistoryFiles.open(directory).history()


def renamed(data: Tables, names: Mapping[str, str], since: str) -> Tables:
    """The same with other names of services from an instant on; pods are new ones then."""
    late = data.usage["timestamp"] >= pd.Timestamp(since, tz="UTC")
    for old, new in names.items():
        here = late & (data.usage["service"] == f"Deployment/{old}")
        data.usage.loc[here, "service"] = f"Deployment/{new}"
        data.usage.loc[here, "pod"] = data.usage.loc[here, "pod"].str.replace(old, new)
        pods = data.pods[data.pods["service"] == f"Deployment/{old}"].copy()
        pods["service"] = f"Deployment/{new}"
        pods["pod"] = pods["pod"].str.replace(old, new)
        data.pods = pd.concat([data.pods, pods], ignore_index=True)
    return data


def row(history: History, name: str) -> int:
    return history.services.index(ServiceKey("shop", "Deployment", name))


def test_a_renamed_service_has_the_days_before_it_was_renamed(tmp_path: Path) -> None:
    history = history_of(tmp_path, renamed(tables(days=5), {"cart": "basket"}, "2026-03-05 06:00"), RENAMED)
    earlier = history.earlier
    assert earlier is not None
    assert earlier.service.tolist() == [row(history, "basket")]
    old = history.usage_per_pod[row(history, "cart")].reshape(5, -1)
    taken = earlier.usage_per_pod[0].reshape(5, -1)
    first = 3 * 48 + 12  # 06:00 of the fourth day
    np.testing.assert_array_equal(taken[:, :first], old[:, :first])
    assert np.isfinite(taken[:, :first]).all()
    assert np.isnan(taken[:, first:]).all()
    assert (earlier.replicas[0].reshape(-1)[:first] == 2).all()
    assert np.isfinite(earlier.daily_requests[0, :, 0]).all()
    # What was measured of it here is as it was.
    assert np.isnan(history.usage_per_pod[row(history, "basket")].reshape(5, -1)[:, :first]).all()


def test_a_pattern_takes_all_services_of_another_cluster_whatever_its_step_and_time_zone(tmp_path: Path) -> None:
    other = tables(start="2026-02-20", days=12, step_minutes=5, seed=1, settings={"time_zone": "Asia/Tokyo"})
    other.write(tmp_path / "there")
    data = tables(days=2, start="2026-03-02", services={"cart": 2, "new": 1})
    history = history_of(tmp_path / "here", data, '- {old: "*/*/*", history: ../there}\n')
    there = HistoryFiles.open(tmp_path / "there", calendar=history.calendar).history()
    earlier = history.earlier
    assert earlier is not None
    assert earlier.service.tolist() == [row(history, "cart")]
    days = (history.days[0] - there.days[0]).days
    assert earlier.days[0] == there.days[0]
    np.testing.assert_array_equal(earlier.usage_per_pod[0, :, :days], there.usage_per_pod[0, :, :days])
    assert np.isnan(earlier.usage_per_pod[0, :, days:]).all()


def test_days_of_both_names_count_under_the_new_one(tmp_path: Path) -> None:
    data = tables(days=4, services={"cart": 2, "basket": 1})
    assert history_of(tmp_path, data, RENAMED).earlier is None


def test_an_exact_name_comes_before_a_pattern(tmp_path: Path) -> None:
    data = renamed(tables(days=4), {"cart": "basket", "db": "store"}, "2026-03-04")
    tables(days=3, services={"basket": 1, "store": 1}).write(tmp_path / "there")
    text = '- {old: "*/*/*", history: ../there}\n' + RENAMED
    both = history_of(tmp_path / "here", data, text)
    earlier = both.earlier
    assert earlier is not None
    at = earlier.service.tolist().index(row(both, "basket"))
    np.testing.assert_array_equal(earlier.usage_per_pod[at, :, :2], both.usage_per_pod[row(both, "cart"), :, :2])
    assert row(both, "store") in earlier.service


def test_an_unknown_old_name_is_refused_with_a_guess(tmp_path: Path) -> None:
    data = renamed(tables(days=4), {"cart": "basket"}, "2026-03-04")
    with pytest.raises(InputError, match=r"move 1 \(shop/Deployment/carts\): this history has no service") as refused:
        history_of(tmp_path, data, "- {old: shop/Deployment/carts, new: shop/Deployment/basket}\n")
    assert "typo of shop/Deployment/cart?" in str(refused.value)


def test_a_missing_old_history_is_refused(tmp_path: Path) -> None:
    data = renamed(tables(days=4), {"cart": "basket"}, "2026-03-04")
    with pytest.raises(InputError, match=r"move 1 .*does not exist"):
        history_of(tmp_path, data, "- {old: shop/Deployment/basket, history: ../gone}\n")


def test_a_past_that_was_cleaned_away_after_four_weeks_stops_no_training(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = renamed(tables(days=31, step_minutes=30), {"cart": "basket"}, "2026-03-03 12:00")
    data.usage = data.usage[data.usage["service"] != "Deployment/cart"]
    with caplog.at_level(logging.WARNING, logger="trainer"):
        assert (
            history_of(tmp_path, data, "- {old: shop/Deployment/gone, new: shop/Deployment/basket}\n").earlier is None
        )
    assert [record.message for record in caplog.records] == ["the past of a moved service is not used"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("old: a/Deployment/b\n", "holds a dict: write a list of moves"),
        ("- {old: a/Deployment}\n", r"move 1 \(a/Deployment\).*write Namespace/Kind/name"),
        ("- {old: a/Deployment/b*, new: a/Deployment/c}\n", r"move 1 .*a whole name or \*"),
        ("- {old: a/Deployment/b}\n", "it changes nothing"),
        ('- {old: "a/*/*", new: b/Deployment/c}\n', r"need \* in the same parts"),
        ("- {old: a/CronJob/b, new: a/CronJob/c}\n", "leave them out"),
        ("- {new: a/Deployment/b}\n", "old is missing"),
        (
            "- {old: a/Deployment/b, new: a/Deployment/d}\n- {old: a/Deployment/c, new: a/Deployment/d}\n",
            "comes from two places",
        ),
    ],
)
def test_a_mistake_is_one_sentence_with_its_place(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "moves.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=what) as refused:
        MovedServices.read(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
