"""Each finding is there where its cause is in the history, and nowhere else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from functools import reduce
from typing import Any

import numpy as np
import pytest

from forecast.calendar import Calendar
from forecast.history import EarlierDays, History
from forecast.resources import CPU, DISK, LOG, MEMORY, NETWORK, RESOURCES
from forecast.service_key import ServiceKey
from forecast.usage_limits import CutSeries
from tests.forecast.test_limit_hits import hits_of
from tests.synthetic import synthetic_history
from trainer.audit.examination import CHECKS, Examination, account, examine
from trainer.audit.finding import Finding, FindingKind
from trainer.history.cleaning import CleaningCause, CleaningReport

GERMANY = Calendar("Europe/Berlin", "DE")
NOTHING = CleaningReport()
OF_A_MODEL = {FindingKind.NOT_REPRODUCED}
"""What only a run finds, which has a model."""


def healthy(n_days: int = 28) -> History:
    """Six services that use 1 to 6 parts of 21 of each resource."""
    return synthetic_history(n_days=n_days, calendar=GERMANY)


def found(examination: Examination) -> list[FindingKind]:
    return [finding.kind for finding in examination.findings]


def only_finding(history: History, report: CleaningReport = NOTHING, cut: tuple[CutSeries, ...] = ()) -> Finding:
    findings = examine(history, report, cut).findings
    assert len(findings) == 1, [finding.kind for finding in findings]
    return findings[0]


Spoil = Callable[[History], History]


def put(value: object, at: object, *names: str) -> Spoil:
    """The same value, or what a function makes of those there, in a part of some arrays."""

    def spoil(history: History) -> History:
        arrays: dict[str, Any] = {name: np.array(getattr(history, name)) for name in names or ("usage_per_pod",)}
        for array in arrays.values():
            array[at] = value(array[at]) if callable(value) else value
        return replace(history, **arrays)

    return spoil


def one_after_the_other(*spoils: Spoil) -> Spoil:
    return lambda history: reduce(lambda spoilt, spoil: spoil(spoilt), spoils, history)


MEASURED = ("usage_per_pod", "replicas", "node_usage", "node_pod_usage")
QUIET_AT_ONE = 1 - 0.5 * np.cos((np.arange(48) / 2 - 13) * np.pi / 12)  # in the afternoon
missing_days = put(np.nan, np.s_[..., 10:12, :], *MEASURED)
young = one_after_the_other(put(np.nan, np.s_[5, :, :25]), put(0, np.s_[5, :25], "replicas"))
unmeasured = put(np.nan, np.s_[5, NETWORK])
ceiling = put(lambda usage: np.minimum(usage, 3.0), np.s_[5, CPU])
EVENINGS = [(5, 48 * day + slot, 0.4, 3.0, np.nan) for day in range(28) for slot in range(37, 43)]


def held_back(history: History) -> History:
    """Throttled each evening, and OOM-killed once."""
    return replace(history, limit_hits=hits_of(*EVENINGS, (5, 48 * 25 + 1, 0.0, np.nan, 2.0**30)))


never_repeats = put(lambda usage: np.random.default_rng(0).exponential(size=usage.shape) + 0.1, np.s_[5, CPU])

CASES: dict[FindingKind, Spoil] = {
    FindingKind.MISSING_DAYS: missing_days,
    FindingKind.MISSING_SAMPLES: put(np.nan, np.s_[5, CPU, :, ::4]),
    FindingKind.NODE_GAPS: one_after_the_other(
        put(np.nan, np.s_[0, CPU, :, ::4], "node_usage"), put(1.0, np.s_[0, CPU, [0, -1], [0, -1]], "node_usage")
    ),
    FindingKind.YOUNG_SERVICES: young,
    FindingKind.ONE_OFF_OWNERS: lambda history: replace(
        history, services=(*history.services[:5], ServiceKey("batch", "Workflow", "etl-*"))
    ),
    FindingKind.UNMEASURED: unmeasured,
    FindingKind.PER_NODE_ONLY: put(np.nan, np.s_[:, LOG]),
    FindingKind.UNMEASURED_RESOURCES: put(np.nan, np.s_[:, DISK], "node_usage", "usage_per_pod"),
    FindingKind.PODS_AND_NODES: put(lambda usage: usage / 4, np.s_[:, CPU], "usage_per_pod", "node_pod_usage"),
    FindingKind.UNKNOWN_REQUESTS: put(np.nan, 5, "daily_requests"),
    FindingKind.UNKNOWN_CAPACITY: put(np.nan, (0, DISK), "capacity"),
    FindingKind.ABOVE_CAPACITY: put(1.5 * 40, np.s_[0, DISK, 3, :5], "node_usage"),
    FindingKind.CPU_CEILING: ceiling,
    FindingKind.HIDDEN_DEMAND: held_back,
    FindingKind.FULL_NODES: put(0.99 * 40, np.s_[0, CPU, :, 40:42], "node_usage"),
    FindingKind.COUNTER_RESETS: put(0, (5, NETWORK, 20, 40)),
    FindingKind.NEVER_REPEATS: never_repeats,
    FindingKind.UNEVEN_PEAKS: put(lambda usage: 5 * usage, np.s_[5, DISK, ::9]),
    FindingKind.SHIFTED_CLOCK: put(lambda usage: np.roll(usage, 2, axis=-1), np.s_[:, :, 14:]),
    FindingKind.TIME_ZONE: put(QUIET_AT_ONE, np.s_[...]),
    FindingKind.NO_HOLIDAYS: lambda history: replace(history, calendar=Calendar("Europe/Berlin")),
    FindingKind.SHORT_HISTORY: lambda history: history.before(20),
}
OF_CLEANING = {FindingKind.IMPOSSIBLE_VALUES, FindingKind.WRONG_TIMES}


def test_every_check_is_tried() -> None:
    assert set(CASES) | OF_CLEANING == {check.kind for check in CHECKS} == set(FindingKind) - OF_A_MODEL


def test_a_healthy_history_has_no_finding() -> None:
    examination = examine(healthy(), NOTHING)
    assert examination.findings == () and examination.not_judged == ()
    assert set(examination.not_found) == set(FindingKind) - OF_A_MODEL
    assert account(healthy(), NOTHING) == ()


def test_one_off_owners_are_counted_with_what_they_use() -> None:
    report = CleaningReport({("usage.parquet", CleaningCause.ONE_OFF): 4_224})
    finding = only_finding(CASES[FindingKind.ONE_OFF_OWNERS](healthy()), report)
    assert finding.what.startswith("4,224 of 4,229 services ran for less than an hour and never again: 29 % of cpu, ")
    assert finding.what.endswith("they are forecast as 1 group")


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.name.lower())
def test_a_cause_is_found_and_nothing_else(kind: FindingKind) -> None:
    finding = only_finding(CASES[kind](healthy()))
    assert finding.kind is kind
    assert finding.n_services + finding.n_nodes > 0
    assert finding.what and finding.advice and "{" not in finding.what


@pytest.mark.parametrize(
    "kind",
    [FindingKind.MISSING_SAMPLES, FindingKind.CPU_CEILING],
    ids=lambda kind: kind.name.lower(),
)
def test_a_finding_about_cpu_of_one_service_touches_its_share_of_the_cpu(kind: FindingKind) -> None:
    history = CASES[kind](healthy())
    load = np.nanmean((history.usage_per_pod * history.replicas[:, None])[:, :, -7:], axis=(2, 3))
    finding = only_finding(history)
    assert finding.n_services == 1
    assert finding.load_share[CPU] == pytest.approx(load[5, CPU] / load[:, CPU].sum(), rel=1e-5)
    assert finding.load_share[MEMORY] == 0
    worst = finding.worst[0]
    assert (worst.name, worst.resource) == ("shop/Deployment/service-5", "cpu")
    assert worst.load_share == pytest.approx(finding.load_share[CPU])


def test_missing_days_are_named_and_weigh_their_share_of_the_time() -> None:
    finding = only_finding(missing_days(healthy()))
    assert "2 of 28 days" in finding.what and "2026-05-14, 2026-05-15" in finding.what
    assert finding.load_share == pytest.approx(np.full(len(RESOURCES), 2 / 28))


def test_a_service_that_moved_here_with_its_past_is_not_young() -> None:
    past, history = healthy(), young(healthy())
    assert found(examine(history, NOTHING)) == [FindingKind.YOUNG_SERVICES]
    earlier = EarlierDays(
        days=past.days[:25],
        service=np.array([5]),
        usage_per_pod=past.usage_per_pod[5:6, :, :25],
        replicas=past.replicas[5:6, :25],
        pod_variance=past.pod_variance[5:6, :, :25],
        daily_requests=past.daily_requests[5:6, :, :25],
    )
    assert found(examine(replace(history, earlier=earlier), NOTHING)) == []


def test_the_hour_that_clocks_jump_over_is_no_gap() -> None:
    history = synthetic_history(n_days=28, calendar=GERMANY, first_day=date(2026, 3, 16))
    jump = history.days.index(date(2026, 3, 29))
    for end, is_gap in ((6, False), (7, True)):
        spoilt = put(np.nan, np.s_[:, jump, 4:end], "replicas")(history)
        assert (FindingKind.MISSING_DAYS in found(examine(spoilt, NOTHING))) == is_gap


def test_an_export_that_begins_within_a_day_has_no_gap() -> None:
    history = put(np.nan, np.s_[:, 0, :20], "replicas")(put(np.nan, np.s_[:, -1, -3:], "replicas")(healthy()))
    assert FindingKind.MISSING_DAYS not in found(examine(history, NOTHING))


def test_a_service_that_is_gone_limits_nothing() -> None:
    assert found(examine(put(0, np.s_[5, -8:], "replicas")(never_repeats(healthy())), NOTHING)) == []


def test_runs_of_jobs_need_not_repeat_by_the_hour() -> None:
    history = never_repeats(healthy())
    services = (*history.services[:5], ServiceKey("shop", "CronJob", "import"))
    assert found(examine(replace(history, services=services), NOTHING)) == []


def test_what_cleaning_removed_is_reported_with_the_services_that_were_cut() -> None:
    report = CleaningReport(
        {("usage.parquet", CleaningCause.NEGATIVE): 7, ("usage.parquet", CleaningCause.BEYOND_NODE): 9}
    )
    alone = only_finding(healthy(), report)
    assert alone.kind is FindingKind.IMPOSSIBLE_VALUES and "7 values are negative" in alone.what
    assert alone.n_services == 0 and np.isnan(alone.load_share).all()
    cut = only_finding(healthy(), report, (CutSeries(service=5, node=0, resource=DISK, slots=9, ratio=4.0),))
    assert cut.n_services == 1 and cut.load_share[DISK] == pytest.approx(6 / 21, rel=0.02)
    assert "7 values are negative" in cut.what and "9 half hours" in cut.worst[0].detail


def test_rows_from_a_wrong_clock_are_reported() -> None:
    finding = only_finding(healthy(), CleaningReport({("usage.parquet", CleaningCause.STRAY_TIME): 3}))
    assert finding.kind is FindingKind.WRONG_TIMES and "3 rows lie far" in finding.what


def test_a_run_looks_only_for_what_does_not_add_up() -> None:
    stray = CleaningReport({("usage.parquet", CleaningCause.STRAY_TIME): 3})
    assert [one.kind for one in account(never_repeats(missing_days(healthy())), stray)] == [FindingKind.WRONG_TIMES]
    kinds = {FindingKind.WRONG_TIMES, FindingKind.SHIFTED_CLOCK, FindingKind.PODS_AND_NODES, FindingKind.HIDDEN_DEMAND}
    assert {check.kind for check in CHECKS if check.account} == kinds
    assert account(healthy(1), NOTHING) == ()


def test_learned_capacities_are_named() -> None:
    finding = only_finding(put(np.nan, np.s_[:, NETWORK], "capacity")(healthy()))
    assert finding.load_share[NETWORK] == pytest.approx(1)
    assert "network of 4 (4 assumed from what they sustained)" in finding.what
    assert "prometheus.network_capacity" in finding.advice


def test_a_single_day_is_reported_as_short_and_the_rest_is_not_judged() -> None:
    examination = examine(healthy(1), NOTHING)
    assert found(examination) == [FindingKind.SHORT_HISTORY]
    assert (FindingKind.NEVER_REPEATS, 14) in examination.not_judged
    not_judged = {kind for kind, _ in examination.not_judged}
    assert {*examination.not_found, *found(examination), *not_judged} == set(FindingKind) - OF_A_MODEL


def test_a_history_without_any_value_says_so() -> None:
    nothing = put(np.nan, np.s_[...], "usage_per_pod", "pod_variance", "node_usage", "node_pod_usage")
    finding = only_finding(nothing(healthy()))
    assert finding.kind is FindingKind.UNMEASURED_RESOURCES
    assert np.isnan(finding.load_share).all()
    assert "cpu, memory, disk, network, log" in finding.what


def test_the_largest_share_of_the_load_comes_first() -> None:
    history = ceiling(replace(healthy(), calendar=Calendar("Europe/Berlin"))).before(20)
    assert found(examine(history, NOTHING)) == [
        FindingKind.SHORT_HISTORY,
        FindingKind.CPU_CEILING,
        FindingKind.NO_HOLIDAYS,
    ]


def test_an_unset_calendar_touches_the_workdays_that_look_like_holidays() -> None:
    history = replace(healthy(), calendar=Calendar("Europe/Berlin"))
    assert np.isnan(only_finding(history).load_share).all()
    finding = only_finding(put(lambda usage: 0.7 * usage, np.s_[:, :, 16])(history))  # as on weekends
    assert finding.load_share == pytest.approx(np.full(len(RESOURCES), 1 / 28))
    assert "Wed 2026-05-20" in finding.what


def test_figures_are_plain_json() -> None:
    figures = examine(missing_days(unmeasured(healthy())), NOTHING).to_json()
    again = json.loads(json.dumps(figures))
    assert [one["finding"] for one in again["findings"]] == ["missing days", "unmeasured services"]
    assert set(again["findings"][0]["load_share"]) == {resource.name for resource in RESOURCES}


def test_a_node_that_was_rebuilt_is_held_against_what_it_had_each_day() -> None:
    """Failed before: days of 40 cores were above capacity and full by the 20 of the last week."""
    history = put(lambda usage: usage / 2, np.s_[0, :, -7:], "node_usage", "node_pod_usage")(healthy())
    rebuilt = put(lambda capacity: capacity / 2, np.s_[0], "capacity")(history)
    then = np.array(history.capacity_of_days)
    then[0, :, -7:] /= 2
    assert examine(replace(rebuilt, daily_capacity=then), NOTHING).findings == ()
    assert {FindingKind.ABOVE_CAPACITY, FindingKind.FULL_NODES} <= set(found(examine(rebuilt, NOTHING)))


ALWAYS = np.s_[0, CPU, ::2, :5]
UNTIL_A_WEEK_AGO = np.s_[0, CPU, :-7, :5]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (put(1.5 * 40, UNTIL_A_WEEK_AGO, "node_usage"), r"used more only until 20\S+, so the machine was another"),
        (
            put(1.5 * 40, ALWAYS, "node_usage", "node_pod_usage"),
            r"so did their pods alone.* \(set prometheus\.cluster\)",
        ),
        (put(1.5 * 40, ALWAYS, "node_usage"), r"their pods did not.* counted twice .*prometheus\.queries\.node_cpu"),
        (put(1.5 * 40, np.s_[0, DISK, ::2, :5], "node_usage"), r"^disk: correct prometheus\.disk_capacity"),
    ],
)
def test_usage_above_capacity_names_the_cause_that_the_figures_speak_for(spoil: Spoil, said: str) -> None:
    """Failed before: the settings of disk, network and log were named for CPU, too."""
    advice = next(
        one.advice for one in examine(spoil(healthy()), NOTHING).findings if one.kind is FindingKind.ABOVE_CAPACITY
    )
    assert re.search(said, advice), advice
    assert ("prometheus.disk_capacity" in advice) == advice.startswith("disk")


def test_hidden_demand_names_both_limits_and_train_looks_for_it() -> None:
    [finding] = account(held_back(healthy()), NOTHING)
    assert (finding.kind, finding.n_services) == (FindingKind.HIDDEN_DEMAND, 1)
    [example] = finding.worst
    assert "peak half hours: real demand is hidden, at least 3 cores per pod" in example.detail
    assert "OOM-killed in 1 half hour at 1,024 MiB" in example.detail


@pytest.mark.parametrize(("seen", "kinds"), [(True, []), (False, [FindingKind.CPU_CEILING])])
def test_a_flat_top_is_no_limit_where_periods_were_counted_and_none_was_throttled(
    seen: bool, kinds: list[FindingKind]
) -> None:
    flat = replace(ceiling(healthy()), limit_hits=hits_of(seen=seen))
    assert found(examine(flat, NOTHING)) == kinds
