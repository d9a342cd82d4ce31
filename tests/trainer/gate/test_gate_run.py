"""The gate on small clusters: good recipes pass, bad ones are held back, and a changed world is believed."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from functools import lru_cache

import numpy as np
import pytest

from base.errors import InputError
from forecast.baselines import same_day_last_week
from forecast.calendar import Calendar
from forecast.fit import fit
from forecast.history import History
from forecast.model import PeakModel
from forecast.model_artefact import artefact_of, model_of
from forecast.resources import CPU, LOG, MEMORY, RESOURCES
from testing.fitted_models import fitted
from tests.forecast.test_model_artefact import NOW
from tests.synthetic import synthetic_history
from trainer.gate.evidence import compare, evaluation_days, measured_peaks, seasonal_naive
from trainer.gate.gate_run import apply_gate, run_gate
from trainer.gate.gate_verdict import GateReport, GateVerdict

N_DAYS = 20


@lru_cache(maxsize=1)
def history() -> History:
    """Noise of 20 %, so that last week is easily beaten by a mean."""
    return synthetic_history(n_days=N_DAYS, n_services=16, noise=0.2)


@lru_cache(maxsize=8)
def good_at(n_days: int) -> PeakModel:
    return fitted(history().before(n_days))


def good(known: History, previous: PeakModel | None) -> PeakModel:
    return good_at(known.n_days)


def bad_cpu(known: History, previous: PeakModel | None) -> PeakModel:
    """A recipe that expects 30 % too much CPU."""
    model = good_at(known.n_days)
    usage = model.usage_dated.copy()
    usage[:, CPU] *= np.float32(1.3)
    return replace(model, usage_dated=usage)


def verdicts(report: GateReport) -> dict[str, GateVerdict]:
    return {name: result.verdict for name, result in report.results.items()}


def published(model: PeakModel) -> PeakModel:
    """As the next night loads it."""
    return model_of(artefact_of(model, NOW), NOW)


def test_the_same_recipe_passes_on_every_resource() -> None:
    report = run_gate(history(), good_at(N_DAYS - 4), good)
    assert set(verdicts(report).values()) == {GateVerdict.PASSED}, report.lines()
    cpu = report.results["cpu"]
    assert cpu.candidate == cpu.current and cpu.candidate is not None and cpu.candidate.n == 16 * 4
    assert cpu.days == history().days[-4:] and report.cut_off == history().days[-4]


def test_a_worse_recipe_keeps_the_old_arrays_of_its_bad_resource_only() -> None:
    current = good_at(N_DAYS - 4)
    report = run_gate(history(), current, bad_cpu)
    assert verdicts(report) == {
        resource.name: GateVerdict.HELD_BACK if resource.name == "cpu" else GateVerdict.PASSED for resource in RESOURCES
    }
    candidate = bad_cpu(history(), current)
    model = published(apply_gate(candidate, current, report))
    day = candidate.first_day
    np.testing.assert_allclose(model.service_peaks(day)[:, CPU], current.service_peaks(day)[:, CPU], rtol=1e-5)
    np.testing.assert_array_equal(model.service_peaks(day)[:, LOG], candidate.service_peaks(day)[:, LOG])
    assert model.info["gate"]["cpu"]["held_back_nights"] == 1
    assert "above the" in model.info["gate"]["cpu"]["reason"]


def test_when_everything_doubles_the_model_is_published_with_bounds_that_would_have_held() -> None:
    later = history().usage_per_pod.copy()
    later[:, MEMORY, -2:] *= 2
    changed = replace(history(), usage_per_pod=later)
    current = good_at(N_DAYS - 2)
    report = run_gate(changed, current, good)
    memory = report.results["memory"]
    assert memory.verdict is GateVerdict.WIDENED and 1.2 < memory.widening < 4.0, report.lines()
    assert verdicts(report)["cpu"] is GateVerdict.PASSED
    as_then = apply_gate(good_at(N_DAYS - 2), current, report)
    days = history().days[-2:]
    bound = np.stack([as_then.service_peaks(day)[:, MEMORY, 1] for day in days], axis=1)
    assert (measured_peaks(changed, days)[:, MEMORY] <= bound * (1 + 1e-6)).mean() >= 0.95


def test_force_publishes_the_candidate_as_it_is() -> None:
    current, candidate = good_at(N_DAYS - 4), bad_cpu(history(), None)
    report = run_gate(history(), current, bad_cpu, force=True)
    assert set(verdicts(report).values()) == {GateVerdict.FORCED}
    np.testing.assert_array_equal(apply_gate(candidate, current, report).usage_dated, candidate.usage_dated)


def never(known: History, previous: PeakModel | None) -> PeakModel:
    raise AssertionError("nothing can be compared: no fit is needed")


@pytest.mark.parametrize(
    ("case", "current", "reason"),
    [
        ("first run", None, "no model is in use"),
        ("same night", lambda: good_at(N_DAYS), "no day has passed since"),
        ("cold start", lambda: good_at(6), "less than a week: cold start"),
        (
            "another time zone",
            lambda: replace(good_at(N_DAYS - 1), calendar=Calendar("Asia/Tokyo")),
            "the time zone or the holidays are not those",
        ),
        (
            "history is shorter than the model is old",
            lambda: replace(good_at(10), first_day=history().days[0] - timedelta(days=5)),
            "the history does not hold",
        ),
    ],
)
def test_nothing_to_compare_is_said_and_published(case: str, current: object, reason: str) -> None:
    model = current() if callable(current) else None
    report = run_gate(history(), model, never)
    assert set(verdicts(report).values()) == {GateVerdict.NOTHING_TO_COMPARE}
    assert all(reason in line for line in report.lines()), report.lines()
    assert apply_gate(good_at(N_DAYS), model, report).usage_dated is good_at(N_DAYS).usage_dated


def test_a_refit_that_finds_nothing_to_learn_from_does_not_stop_the_run() -> None:
    def nothing(known: History, previous: PeakModel | None) -> PeakModel:
        raise InputError("no usage of any pod was measured")

    report = run_gate(history(), good_at(N_DAYS - 2), nothing)
    assert set(verdicts(report).values()) == {GateVerdict.NOTHING_TO_COMPARE}
    assert "no usage of any pod was measured" in report.lines()[0]


def test_the_refit_knows_nothing_of_the_days_it_is_judged_on() -> None:
    seen: list[History] = []

    def noted(known: History, previous: PeakModel | None) -> PeakModel:
        seen.append(known)
        return good_at(known.n_days)

    current = good_at(N_DAYS - 3)
    run_gate(history(), current, noted)
    assert [known.days[-1] for known in seen] == [current.first_day - timedelta(days=1)]


def test_days_measured_in_part_do_not_count() -> None:
    usage = history().usage_per_pod.copy()
    usage[:, CPU, -1, :5] = np.nan
    report = run_gate(replace(history(), usage_per_pod=usage), good_at(N_DAYS - 2), good)
    cpu, memory = report.results["cpu"].candidate, report.results["memory"].candidate
    assert cpu is not None and memory is not None and (cpu.n, memory.n) == (16, 32)
    assert report.results["cpu"].days == history().days[-2:-1]


def test_services_of_which_the_model_in_use_knows_nothing_do_not_count() -> None:
    current = good_at(N_DAYS - 2)
    half = replace(
        current,
        services=current.services[:8],
        **{
            name: getattr(current, name)[:8]
            for name in ("usage_dated", "usage_day_type", "peak_factor", "replicas_dated", "replicas_day_type")
        },
    )
    days = evaluation_days(history(), current.first_day, 7)
    evidence = compare(history(), half, current, days)
    assert {name: found.current.n for name, found in evidence.items()} == {r.name: 16 for r in RESOURCES}
    assert all(found.current == found.candidate for found in evidence.values())


def test_the_naive_is_the_baseline_of_the_backtest_on_the_first_day() -> None:
    peaks = np.random.default_rng(0).random((3, 5, 12))
    expected = np.stack(same_day_last_week(peaks.reshape(15, 12), np.zeros((15, 12, 48))), axis=-1).reshape(3, 5, 2)
    np.testing.assert_array_equal(seasonal_naive(peaks, 0), expected)
    np.testing.assert_array_equal(seasonal_naive(peaks, 3)[..., 0], peaks[..., -4])
    np.testing.assert_array_equal(seasonal_naive(peaks, 9)[..., 0], peaks[..., -5])
    np.testing.assert_array_equal(seasonal_naive(peaks[..., :7], 2)[..., 1], peaks[..., 6])


def test_at_most_the_last_days_after_the_cut_off_are_looked_at() -> None:
    days = history().days
    assert evaluation_days(history(), days[3], 7) == days[-7:]
    assert evaluation_days(history(), days[-1], 7) == days[-1:]
    assert evaluation_days(history(), days[-1] + timedelta(days=1), 7) == ()


def test_a_resource_whose_measuring_stopped_keeps_what_is_known() -> None:
    """The query of memory broke on the days since; nothing speaks against a new model, which would know nothing."""
    usage = history().usage_per_pod.copy()
    usage[:, MEMORY, -4:] = np.nan
    broken = replace(history(), usage_per_pod=usage)
    current = good_at(N_DAYS - 4)
    report = run_gate(broken, current, good)
    assert report.results["memory"].verdict is GateVerdict.HELD_BACK, report.lines()
    assert report.results["cpu"].verdict is GateVerdict.PASSED
    model = apply_gate(fit(broken), current, report)
    np.testing.assert_allclose(model.usage(model_days(model))[:, MEMORY], current.usage(model_days(model))[:, MEMORY])


def model_days(model: PeakModel) -> tuple[date, ...]:
    return model.calendar.horizon(model.first_day, 3)
