"""Which usage is moved where, on a made-up history of which the answers are known by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from base.errors import InputError
from forecast.calendar import SLOTS_PER_DAY, Calendar
from forecast.history import History, Placements, PodUsage
from forecast.resources import CPU, DISK, RESOURCES
from forecast.service_key import ServiceKey
from placement.decisions.comparison import (
    Comparison,
    add_moved_usage,
    agreement_by_level,
    agreement_of,
    blank_shift,
    compare,
)
from placement.decisions.decision import Decision, decision_of, shadow_node
from placement.decisions.moved_pods import Moves, PodFate, moves_of, span_of
from tests.placement.decisions.made_up import advice, binding, decision

FIRST = date(2026, 10, 5)
N_DAYS, N_NODES = 3, 3
N_SLOTS = N_DAYS * SLOTS_PER_DAY
NODES = ("n0", "n1", "n2")
CORES = (10.0, 10.0, 20.0)
SERVICE = (ServiceKey("shop", "StatefulSet", "db"),)

Stay = tuple[str, int, int, int]
"""pod, node, first slot, end."""


def cluster(*stays: Stay, cpu: float = 4.0) -> tuple[History, PodUsage]:
    """Nodes use one core beside pods, each of which uses `cpu`, and 1 MB/s of disk that nobody measured per pod."""
    names = tuple(dict.fromkeys(name for name, *_ in stays))
    table = np.array([(names.index(name), *rest) for name, *rest in stays], dtype=np.int64).reshape(-1, 4)
    pod, node, first, end = table.T
    usage = np.full((len(names), len(RESOURCES), N_SLOTS), np.nan, dtype=np.float32)
    present = np.zeros((len(names), N_SLOTS), dtype=np.float32)
    nodes = np.full((N_NODES, len(RESOURCES), N_SLOTS), np.nan, dtype=np.float32)
    nodes[:, [CPU, DISK]] = [[1.0], [1e6]]
    last = np.full(len(names), -1)
    for p, n, begin, stop in table.tolist():
        usage[p, CPU, begin:stop], present[p, begin:stop], last[p] = cpu, 1.0, n
        nodes[n, CPU, begin:stop] += cpu
    capacity = np.full((N_NODES, len(RESOURCES)), np.nan)
    capacity[:, CPU], capacity[:, DISK] = CORES, 1e8
    shape = (N_DAYS, SLOTS_PER_DAY)
    days = tuple(FIRST + timedelta(days=number) for number in range(N_DAYS))
    empty = np.full((1, len(RESOURCES), *shape), np.nan, dtype=np.float32)
    history = History(
        calendar=Calendar(),
        days=days,
        services=SERVICE,
        nodes=NODES,
        usage_per_pod=empty,
        replicas=empty[:, 0],
        pod_variance=empty,
        node_usage=nodes.reshape(N_NODES, -1, *shape),
        node_pod_usage=np.zeros((N_NODES, len(RESOURCES), *shape), dtype=np.float32),
        placements=Placements(pod, np.zeros_like(pod), node, first, end),
        capacity=capacity,
        allocatable=capacity[:, :2],
        daily_requests=np.full((1, 2, N_DAYS), np.nan),
    )
    pods = PodUsage(
        days=days,
        services=SERVICE,
        pods=names,
        service=np.zeros(len(names), dtype=np.int64),
        requests=np.full((len(names), 2), np.nan),
        usage=usage.reshape(len(names), -1, *shape),
        present=present.reshape(len(names), *shape),
        node=last,
        row=np.arange(len(names)),
    )
    return history, pods


def during(pods: PodUsage, days: slice) -> PodUsage:
    """As the history's files give some of the days: only the pods that were there."""
    there = np.flatnonzero((pods.present[:, days] > 0).any(axis=(1, 2)))
    return PodUsage(
        days=pods.days[days],
        services=pods.services,
        pods=tuple(pods.pods[row] for row in there),
        service=pods.service[there],
        requests=pods.requests[there],
        usage=pods.usage[there][:, :, days],
        present=pods.present[there][:, days],
        node=pods.node[there],
        row=pods.row[there],
    )


def decided(pod: str, slot: int, node: str, advised: str, *, minutes: int = 0, **changes: Any) -> Decision:
    """Bound so many minutes into a slot of the history."""
    at = datetime.combine(FIRST, datetime.min.time(), UTC) + timedelta(minutes=30 * slot + minutes)
    points = dict.fromkeys(NODES, 1) | {advised: 5}
    return decision(points, node, at=at.timestamp(), pod=pod, uid=f"{pod} {slot}", is_shadow=True, **changes)


def moved(history: History, pods: PodUsage, *decisions: Decision, days: int | None = None) -> tuple[Moves, Comparison]:
    span = span_of(history, decisions, days)
    moves = moves_of(history, pods.pods, decisions, span)
    shift = blank_shift(history, span)
    add_moved_usage(shift, moves, during(pods, slice(span.first, N_DAYS)), history, span)
    return moves, compare(history, span, moves, shift, 0.8)


def test_usage_moves_from_the_binding_on() -> None:
    # 4 cores on n0 (10 cores) from slot 60 on would have been 4 cores on n2 (20 cores).
    history, pods = cluster(("shop/a", 0, 60, N_SLOTS))
    moves, result = moved(history, pods, decided("shop/a", 60, "n0", "n2"))
    assert moves.fates[PodFate.MOVED] == 1
    assert result.days == history.days[1:]
    assert result.real.max_peak["cpu"] == pytest.approx(5 / 10)
    assert result.shadow.max_peak["cpu"] == pytest.approx(5 / 20)
    # Peaks of both days: really .5, .1, .05; in the shadow .1, .1, .25.
    for figures, peaks in ((result.real, [0.5, 0.1, 0.05]), (result.shadow, [0.1, 0.1, 0.25])):
        assert figures.peak_cv["cpu"] == pytest.approx(np.std(peaks) / np.mean(peaks), rel=1e-6)
    # Disk was not measured per pod: nothing of it moves.
    assert result.real.max_peak["disk"] == result.shadow.max_peak["disk"] == pytest.approx(0.01)
    used = 3 * 96 + 4 * 84
    assert result.moved_cpu_share == pytest.approx(4 * 84 / used)
    assert (result.n_nodes, result.most_on_one_node, result.measured_share) == (3, 1, 1.0)


def test_hot_half_hours_are_counted_on_both_sides() -> None:
    # Two pods of 4 on n0 make 9 of 10 from slot 48 to 58, one of them would have gone to n2.
    history, pods = cluster(("shop/a", 0, 48, 58), ("shop/b", 0, 48, 58))
    _, result = moved(history, pods, decided("shop/a", 48, "n0", "n2"), decided("shop/b", 48, "n0", "n0"))
    assert result.real.hot_share == pytest.approx(10 / (3 * 96))
    assert result.shadow.hot_share == 0
    assert result.real.daily_hot_share == pytest.approx([10 / 144, 0])
    assert (result.fates[PodFate.MOVED], result.fates[PodFate.AGREES]) == (1, 1)


def test_a_name_that_comes_back_is_another_pod() -> None:
    # db-0 sits on n0, then anew on n1; only its second life was advised otherwise.
    history, pods = cluster(("shop/db-0", 0, 48, 72), ("shop/db-0", 1, 72, N_SLOTS))
    first, second = decided("shop/db-0", 48, "n0", "n0"), decided("shop/db-0", 72, "n1", "n2")
    moves, _ = moved(history, pods, first, second)
    stays = list(zip(moves.source, moves.target, moves.first, moves.end, strict=True))
    assert stays == [(1, 2, 72, N_SLOTS)]
    # The same the other way round: the advice about the first life says nothing about the second.
    first, second = decided("shop/db-0", 48, "n0", "n2"), decided("shop/db-0", 72, "n1", "n1")
    moves, _ = moved(history, pods, first, second)
    assert list(zip(moves.source, moves.target, moves.first, moves.end, strict=True)) == [(0, 2, 48, 72)]
    # And where the log has no second decision: a pod that the history sees elsewhere is not the one of the log.
    moves, _ = moved(history, pods, first)
    assert list(zip(moves.source, moves.target, moves.first, moves.end, strict=True)) == [(0, 2, 48, 72)]


def test_a_pod_bound_late_in_a_slot_moves_with_what_it_used_in_it() -> None:
    history, pods = cluster(("shop/a", 0, 61, N_SLOTS))
    pods.present.reshape(1, -1)[0, 60] = 1 / 3
    pods.usage.reshape(1, -1, N_SLOTS)[0, CPU, 60] = 3.0
    decisions = [decided("shop/a", 60, "n0", "n2", minutes=20)]
    span = span_of(history, decisions)
    moves = moves_of(history, pods.pods, decisions, span)
    shift = blank_shift(history, span)
    add_moved_usage(shift, moves, during(pods, slice(span.first, N_DAYS)), history, span)
    assert shift[2, CPU, 10:14] == pytest.approx([0, 0, 1, 4])  # slots 58 to 61
    assert shift[0, CPU] == pytest.approx(-shift[2, CPU])


@pytest.mark.parametrize(
    ("changed", "fate"),
    [
        ({"node": "n1"}, PodFate.ELSEWHERE),
        ({"pod": "shop/unknown"}, PodFate.NOT_FOUND),
        ({"advised": "gone"}, PodFate.NO_NODE),
        ({"is_late": True}, PodFate.LATE),
        ({"best": None}, PodFate.NO_ADVICE),
        ({"advised": "n0"}, PodFate.AGREES),
        ({"slot": 2}, PodFate.MOVED),
    ],
)
def test_pods_that_stay_are_counted_by_why(changed: dict[str, object], fate: PodFate) -> None:
    history, pods = cluster(("shop/a", 0, 2, N_SLOTS))
    facts: dict[str, Any] = {"pod": "shop/a", "slot": 2, "node": "n0", "advised": "n2"} | changed
    _, result = moved(history, pods, decided(**facts))
    assert {each: count for each, count in result.fates.items() if count} == {fate: 1}
    if fate is not PodFate.MOVED:
        assert result.shadow == result.real


@pytest.mark.parametrize(
    ("node", "changes", "shadow"),
    [
        ("n1", {}, "n0"),
        ("n0", {}, None),
        ("n2", {}, None),
        ("n1", {"is_late": True}, None),
        ("n1", {"best": None}, None),
        ("n1", {"is_shadow": False}, None),
    ],
)
def test_the_extender_and_the_report_agree_on_who_is_elsewhere_in_the_shadow(
    node: str, changes: dict[str, Any], shadow: str | None
) -> None:
    given = advice({"n0": 5, "n1": 1, "n2": 5}, pod="shop/a", **({"is_shadow": True} | changes))
    assert shadow_node(given, node) == shadow
    history, pods = cluster(("shop/a", NODES.index(node), 0, N_SLOTS))
    at = datetime(2026, 10, 5, tzinfo=UTC).timestamp()
    if given.is_shadow:
        moves, _ = moved(history, pods, decision_of(binding(given, node, at=at)))
        assert [NODES[target] for target in moves.target] == ([] if shadow is None else [shadow])


def test_only_the_last_days_and_pods_that_were_still_there() -> None:
    history, pods = cluster(("shop/old", 0, 0, N_SLOTS), ("shop/gone", 1, 0, 90), ("shop/new", 1, 100, N_SLOTS))
    both = [decided(name, slot, node, "n2") for name, slot, node in (("shop/old", 0, "n0"), ("shop/gone", 0, "n1"))]
    moves, result = moved(history, pods, *both, decided("shop/new", 100, "n1", "n2"), days=1)
    assert result.days == history.days[2:]
    assert moves.fates[PodFate.MOVED] == sum(moves.fates.values()) == 2
    assert set(moves.pod) == {"shop/old", "shop/new"}


def test_gaps_of_an_hour_are_bridged_and_longer_ones_left_out_on_both_sides() -> None:
    history, pods = cluster(("shop/a", 0, 48, N_SLOTS))
    usage = history.node_usage.reshape(N_NODES, -1, N_SLOTS)
    usage[0, :, 60:62] = np.nan
    usage[1, :, 100:110] = np.nan  # a whole day without a peak
    _, result = moved(history, pods, decided("shop/a", 48, "n0", "n2"))
    assert result.measured_share == pytest.approx(1 - 12 / (3 * 96))
    assert result.real.max_peak["cpu"] == pytest.approx(0.5)
    first, second = [0.5, 0.1, 0.05], [0.5, 0.05]
    spread = np.mean([np.std(peaks) / np.mean(peaks) for peaks in (first, second)])
    assert result.real.peak_cv["cpu"] == pytest.approx(spread, rel=1e-6)


def test_a_history_of_another_time_is_refused() -> None:
    history, _ = cluster(("shop/a", 0, 0, N_SLOTS))
    with pytest.raises(InputError, match="2026-10-15 to 2026-10-15, the history has the days 2026-10-05"):
        span_of(history, [decided("shop/a", 10 * SLOTS_PER_DAY, "n0", "n1")])
    with pytest.raises(InputError, match="before the first day of the history, 2026-10-05"):
        span_of(history, [decided("shop/a", -10 * SLOTS_PER_DAY, "n0", "n1")])


def test_nodes_of_unknown_size_are_told() -> None:
    history, pods = cluster(("shop/a", 0, 0, N_SLOTS))
    history.capacity[:] = np.nan
    with pytest.raises(InputError, match=r"fill in capacity\.parquet"):
        moved(history, pods, decided("shop/a", 0, "n0", "n1"))


def test_agreement_by_level() -> None:
    decisions = [
        decision({"n1": 3, "n2": 3}, "n1", level="fresh"),
        decision({"n1": 3, "n2": 3}, "n2", level="fresh"),
        decision({"n1": 3, "n2": 2}, "n2", level="fresh", is_late=True),
        decision({"n1": 3, "n2": 2}, "n2", level="old_model"),
    ]
    everything = agreement_of(decisions)
    assert (everything.decisions, everything.as_advised, everything.as_good, everything.late) == (4, 1, 2, 1)
    assert everything.share == 0.5
    assert {level: each.share for level, each in agreement_by_level(decisions).items()} == {
        "fresh": pytest.approx(2 / 3),
        "old_model": 0,
    }


def test_a_day_is_held_against_the_capacity_of_that_day() -> None:
    # 5 cores on n0 are hot on the last day, when it had 6 of its 10 cores.
    history, pods = cluster(("shop/a", 0, 0, N_SLOTS))
    then = np.array(history.capacity_of_days)
    then[0, CPU] = [10.0, 10.0, 6.0]
    _, result = moved(replace(history, daily_capacity=then), pods, decided("shop/a", 0, "n0", "n2"))
    assert result.real.daily_hot_share == pytest.approx([0, 0, 1 / 3])
    assert result.shadow.hot_share == 0
