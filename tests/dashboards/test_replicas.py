"""Panels count what happens once, however many replicas tell of it, and marks say when something began."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.dashboards.grafana_queries import annotation_queries, filled_in, panel_queries
from tests.dashboards.promtool_tests import Series, run_rule_tests, series

GRAFANA: Final = Path(__file__).parents[2] / "dashboards" / "grafana"
NAMES: Final = ("gpu-and-jobs", "model", "peaks", "scheduling")
HOUR: Final = 3600

SCHEDULE: Final = {"job": "forecast-scheduler-schedule"}
REPLICAS: Final = ("10.0.0.7:8889", "10.0.0.8:8889")  # the first one leads

# Panel and letter of the query -> labels in braces -> figure.
SHOWN: Final[Mapping[str, Mapping[str, float]]] = {
    "scheduling: Replicas that schedule: A": {"{}": 1},
    "scheduling: Pods that wait: A": {"{}": 5},
    "scheduling: Overcommitted nodes: A": {"{}": 3},
    "scheduling: Pods that wait, by part of the queue: A": {
        '{queue="active"}': 1,
        '{queue="unschedulable"}': 4,
    },
    "scheduling: What brings pods into it: A": {'{event="PodAdd", queue="active"}': 0.1},
    "scheduling: Bindings under way, and gangs: A": {"{}": 2},
    "scheduling: Bindings under way, and gangs: B": {"{}": 3},
    "scheduling: Bindings under way, and gangs: C": {'{phase="Scheduling"}': 2},
    "scheduling: Mode in force: A": {"{}": 1},
    "scheduling: Moves that would help: A": {"{}": 7},
    "scheduling: Bad nights in a row: A": {"{}": 2},
    "scheduling: Hot half hours, before and after the moves: A": {'{moves="before"}': 94, '{moves="after"}': 23},
    "scheduling: Gain of the last night, predicted and realised: A": {
        '{kind="predicted"}': 80,
        '{kind="realised"}': -3,
    },
    "scheduling: Moves by state: A": {'{state="done"}': 6},
    "scheduling: Evictions by answer: A": {'{outcome="refused"}': 12},
    "gpu-and-jobs: GPUs inference will lack: A": {"{}": 4},
    "gpu-and-jobs: Deadlines missed: A": {"{}": 6},
    "gpu-and-jobs: Shortfall: A": {'{pool="a100"}': 0.5},
    "gpu-and-jobs: On time: A": {"{}": 12},
    "gpu-and-jobs: On time: B": {"{}": 6},
    "gpu-and-jobs: Storms: foreseen and come: A": {"{}": 24},
    "gpu-and-jobs: Storms: foreseen and come: B": {"{}": 18},
    "gpu-and-jobs: Failures of providers: A": {
        '{provider="burst", failure="stalled"}': 3,
        '{provider="burst", failure="lost"}': 1,
    },
    "model: Versions in use: A": {"{}": 2},
    "model: Backtest loss: A": {'{resource="cpu"}': 0.03},
    "model: Backtest loss: B": {'{resource="cpu"}': 0.01},
    "model: Backtest loss: C": {'{resource="cpu"}': 0.09},
    "model: Backtest loss: D": {'{resource="cpu"}': 0.07},
    "peaks: Highest upper bound today, real and shadow: A": {'{resource="cpu"}': 0.6},
    "peaks: Highest upper bound today, real and shadow: B": {'{resource="cpu"}': 0.5},
    "peaks: Spread of upper bounds, real and shadow: A": {'{resource="cpu"}': 0.2},
    "peaks: Spread of upper bounds, real and shadow: B": {'{resource="cpu"}': 0},
}


# Each replica that owns nodes has a queue of its own, and binds; gangs are followed by all.
SHARED: Final[Mapping[str, Mapping[str, float]]] = {
    "scheduling: Replicas that schedule: A": {"{}": 1},
    "scheduling: Pods that wait: A": {"{}": 10},
    "scheduling: Pods that wait, by part of the queue: A": {
        '{queue="active"}': 6,
        '{queue="unschedulable"}': 4,
    },
    "scheduling: What brings pods into it: A": {'{event="PodAdd", queue="active"}': 0.2},
    "scheduling: Bindings under way, and gangs: A": {"{}": 2},
    "scheduling: Bindings under way, and gangs: B": {"{}": 4},
    "scheduling: Bindings under way, and gangs: C": {'{phase="Scheduling"}': 2},
}


def _of_replicas(name: str, leading: float, following: float, /, **labels: str) -> Iterator[Series]:
    for instance, value in zip(REPLICAS, (leading, following), strict=True):
        yield series(name, f"{value!r}+0x500", instance=instance, **SCHEDULE, **labels)


def _counted(name: str, an_hour: float, /, **labels: str) -> Iterator[Series]:
    """By both, a sample every 15 s."""
    for instance in REPLICAS:
        yield series(name, f"0+{an_hour / 240!r}x500", instance=instance, **SCHEDULE, **labels)


def _given() -> Iterator[Series]:
    yield from _of_replicas("forecast_leader", 1, 0)
    # Who does not lead tries nobody: there every pod stays where it came in.
    yield from _of_replicas("forecast_pending_pods", 1, 5, queue="active")
    yield from _of_replicas("forecast_pending_pods", 4, 0, queue="unschedulable")
    yield from _of_replicas("forecast_overcommitted_nodes", 2, 2, cause="shared")
    yield from _of_replicas("forecast_overcommitted_nodes", 1, 1, cause="shrunk")
    yield from _of_replicas("forecast_bindings_in_flight", 2, 0)
    yield from _of_replicas("forecast_assumed_pods", 3, 1)
    yield from _of_replicas("forecast_gangs", 2, 2, phase="Scheduling")
    yield from _counted("forecast_queue_incoming_pods_total", 360, event="PodAdd", queue="active")
    yield from _of_replicas("forecast_tide_lacking_gpus", 4, 4, pool="a100")
    yield from _counted("forecast_tide_shortfall_seconds_total", 1800, pool="a100")
    yield from _counted("forecast_job_deadline_met_total", 12)
    yield from _counted("forecast_job_deadline_missed_total", 6)
    yield from _counted("forecast_job_storm_expected_pods_total", 24)
    yield from _counted("forecast_job_storm_arrived_pods_total", 18)
    yield from _counted("forecast_job_provider_failures_total", 3, provider="burst", failure="stalled")
    yield from _counted("forecast_job_provider_failures_total", 1, provider="burst", failure="lost")
    yield from _rebalancing()
    # Held back last night: the candidate's loss is not that of the model in use.
    for name, middle, bound in (("forecast_backtest_loss", 0.03, 0.01), ("forecast_train_candidate_loss", 0.09, 0.07)):
        for quantile, loss in (("0.5", middle), ("0.95", bound)):
            yield from _of_replicas(name, loss, loss, resource="cpu", quantile=quantile)
    # A shadow moves the load of one node to another.
    cpu, today = {"resource": "cpu"}, {"quantile": "0.95", "day": "today"}
    for node, capacity, real, shadow in (("n1", 10, 6, 5), ("n2", 20, 8, 10)):
        yield from _of_replicas("forecast_node_capacity", capacity, capacity, node=node, **cpu)
        yield from _of_replicas("forecast_node_predicted_peak", real, real, node=node, as_of="now", **cpu, **today)
        yield from _of_replicas("forecast_shadow_node_predicted_peak", shadow, shadow, node=node, **cpu, **today)
    # Three clusters, each with a model of its own; in one of them a night's model is just being taken over.
    for cluster, version in (("eu-1", "a"), ("us-1", "b"), ("us-1", "c"), ("us-2", "d")):
        labels = {"cluster": cluster, "version": version, **SCHEDULE}
        yield series("forecast_model_info", "1+0x500", instance=f"{version}:8889", **labels)


def _rebalancing() -> Iterator[Series]:
    """It stood down, as the leader has read; the other replica has not read it yet, and does not move pods."""
    yield from _of_replicas("forecast_rebalance_leading", 1, 0)
    for mode, leading, following in (("off", 0, 0), ("shadow", 1, 0), ("on", 0, 1)):
        yield from _of_replicas("forecast_rebalance_mode", leading, following, mode=mode)
    yield from _of_replicas("forecast_rebalance_planned_moves", 7, 7)
    yield from _of_replicas("forecast_rebalance_bad_nights", 2, 0)
    for moves, n in (("before", 94), ("after", 23)):
        yield from _of_replicas("forecast_rebalance_hot_half_hours", n, n, moves=moves)
    for kind, leading, following in (("predicted", 80, 60), ("realised", -3, 50)):
        yield from _of_replicas("forecast_rebalance_night_gain", leading, following, kind=kind)
    for name, an_hour, labels in (
        ("forecast_rebalance_moves_total", 6, {"state": "done"}),
        ("forecast_rebalance_evictions_total", 12, {"outcome": "refused"}),
    ):
        counted, _ = _counted(name, an_hour, **labels)
        yield counted


def _asked(shown: Mapping[str, Mapping[str, float]]) -> Iterator[dict[str, Any]]:
    for name in NAMES:
        dashboard = json.loads((GRAFANA / f"{name}.json").read_text())
        for asked in panel_queries(name, dashboard):
            if asked.where in shown:
                query, _ = filled_in(asked.query, dashboard, HOUR, {})
                figures = [{"labels": labels, "value": value} for labels, value in shown[asked.where].items()]
                yield {"eval_time": "2h", "expr": f"round({query}, 0.001)", "exp_samples": figures}


def test_panels_show_what_is_so_and_not_what_every_replica_says_of_it(tmp_path: Path) -> None:
    _assert_shown(tmp_path, SHOWN, _given())


def test_replicas_that_share_the_nodes_are_added_up(tmp_path: Path) -> None:
    _assert_shown(tmp_path, SHARED, [*_given(), *_of_replicas("forecast_shards_owned", 5, 3)])


def _assert_shown(place: Path, shown: Mapping[str, Mapping[str, float]], given: Iterable[Series]) -> None:
    asked = list(_asked(shown))
    assert len(asked) == len(shown), "a panel was renamed"
    test = {"interval": "15s", "input_series": [one.written() for one in given], "promql_expr_test": asked}
    complaints = run_rule_tests(place, [], [test])
    assert not complaints, complaints


def _marked(at: str, *, is_there: bool) -> Iterator[dict[str, Any]]:
    for name in NAMES:
        dashboard = json.loads((GRAFANA / f"{name}.json").read_text())
        for asked in annotation_queries(name, dashboard):
            if asked.where.endswith("First pods bound after our advice"):
                query, _ = filled_in(asked.query, dashboard, HOUR, {})
                samples = [{"labels": "{}", "value": 1}] if is_there else []
                yield {"eval_time": at, "expr": query, "exp_samples": samples}


def test_a_shadow_is_no_adoption_and_what_comes_after_it_is(tmp_path: Path) -> None:
    """For ten minutes there is a shadow, then an extender whose advice is told, both with pods of every outcome."""
    given = [
        series("forecast_decisions_total", values, mode=mode, outcome=outcome, instance=mode)
        for outcome in ("as_advised", "elsewhere")
        for mode, values in (("shadow", "0 0 1+1x38"), ("active", "_x40 0 1 1 1 1"))
        if (mode, outcome) != ("active", "elsewhere")
    ]
    looks = (("45s", False), ("9m", False), ("10m", False), ("10m15s", True), ("10m30s", False))
    asked = [one for at, is_there in looks for one in _marked(at, is_there=is_there)]
    assert len(asked) == len(looks) * len(NAMES), "the mark was renamed"
    test = {"interval": "15s", "input_series": [one.written() for one in given], "promql_expr_test": asked}
    complaints = run_rule_tests(tmp_path, [], [test], every="15s")
    assert not complaints, complaints
