"""Pieces of a day: below the limit, complete, without overlap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.errors import InputError
from trainer.prometheus.http_answer import TooManySamples
from trainer.prometheus.query_times import MAX_POINTS_PER_SERIES, Chunk, chunks, halves, uncovered_ranges

_ERROR = TooManySamples("pod_cpu", "query processing would load too many samples into memory")


@given(
    st.dictionaries(st.sampled_from([f"ns-{i}" for i in range(8)]), st.integers(1, 500), min_size=1),
    st.integers(0, 50),
    st.integers(1, 288),
    st.integers(600, 20_000),
)
def test_every_namespace_and_tick_is_asked_for_once(
    pods: dict[str, int], first: int, n_ticks: int, max_samples: int
) -> None:
    pieces = chunks(pods, first, first + n_ticks - 1, max_samples=max_samples)
    asked = [(name, tick) for p in pieces for name in p.namespaces for tick in range(p.first, p.last + 1)]
    assert sorted(asked) == [(name, tick) for name in sorted(pods) for tick in range(first, first + n_ticks)]
    for piece in pieces:
        assert sum(pods[name] for name in piece.namespaces) * piece.n_ticks <= max_samples


def test_a_small_cluster_is_one_piece_that_names_no_namespace() -> None:
    [piece] = chunks({"shop": 10, "pay": 5}, 0, 287, max_samples=2_000_000)
    assert piece.regex == ".+" and (piece.first, piece.last) == (0, 287)


def test_a_query_that_cannot_be_split_by_namespace_is_split_in_time() -> None:
    pieces = chunks({"shop": 100, "pay": 100}, 0, 287, max_samples=20_000, by_namespace=False)
    assert [(p.first, p.last) for p in pieces] == [(0, 99), (100, 199), (200, 287)]
    assert {p.regex for p in pieces} == {".+"}


def test_no_more_points_per_series_than_servers_give() -> None:
    pieces = chunks({"shop": 1}, 0, 20_000, max_samples=10**9)
    assert max(piece.n_ticks for piece in pieces) <= MAX_POINTS_PER_SERIES
    assert chunks({"shop": 1}, 5, 4, max_samples=100) == []


def test_halves_by_namespace_then_by_time_then_an_error() -> None:
    asked, smallest = [], []
    pieces = [Chunk(0, 23, ("a", "b"))]
    while pieces:
        piece = pieces.pop()
        asked.append(piece)
        if len(piece.namespaces) == 1 and piece.n_ticks == 12:
            smallest.append(piece)
        else:
            pieces += halves(piece, _ERROR, step_seconds=300, by_namespace=True)
    for piece in smallest:
        with pytest.raises(InputError, match=r"query pod_cpu of namespace [ab] .*query\.max-samples"):
            halves(piece, _ERROR, step_seconds=300, by_namespace=True)
    assert {(p.regex, p.first, p.last) for p in asked} == {
        (".+", 0, 23), ("a", 0, 23), ("b", 0, 23), ("a", 0, 11), ("a", 12, 23), ("b", 0, 11), ("b", 12, 23),
    }  # fmt: skip


def test_a_query_without_namespaces_is_halved_in_time_only() -> None:
    parts = halves(Chunk(0, 23, ("a", "b")), _ERROR, step_seconds=300, by_namespace=False)
    assert [(p.regex, p.first, p.last) for p in parts] == [(".+", 0, 11), (".+", 12, 23)]
    with pytest.raises(InputError):
        halves(parts[0], _ERROR, step_seconds=300, by_namespace=False)


@pytest.mark.parametrize(
    ("covered", "ranges"),
    [
        ("1111", []),
        ("0000", [(0, 3)]),
        ("0110", [(0, 0), (3, 3)]),
        ("1001", [(1, 2)]),
        ("01" * 9, [(0, 16)]),  # too many holes: one range, what is recorded inside stays
    ],
)
def test_raw_queries_are_asked_where_nothing_is_recorded(covered: str, ranges: list[tuple[int, int]]) -> None:
    assert uncovered_ranges(np.array([c == "1" for c in covered])) == ranges
