"""What does not reproduce the last days is kept from the model in use, else left out, and never without a word."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import lru_cache

import numpy as np
import pytest

from base.errors import InputError
from forecast.assumed_capacity import resources_measured
from forecast.history import History
from forecast.model import PeakModel
from forecast.model_artefact import ARRAYS, artefact_of, model_of
from forecast.resources import CPU, MEMORY, RESOURCES
from scorer.figures import published_losses
from testing.fitted_models import fitted
from tests.forecast.test_model_artefact import NOW
from tests.trainer.gate.test_reproduction import history, model, with_cpu, with_saturated_error
from trainer.gate.gate_verdict import GateReport, GateResult, GateVerdict
from trainer.gate.withheld_resources import withhold, without_resource
from trainer.nightly import not_reproduced

PASSED = GateReport({r.name: GateResult(r.name, GateVerdict.PASSED, "passed") for r in RESOURCES})


@lru_cache(maxsize=1)
def in_use() -> PeakModel:
    """The model of the night before."""
    return replace(model(), first_day=model().first_day - timedelta(days=1))


def verdicts(report: GateReport) -> set[tuple[str, GateVerdict]]:
    return {(name, one.verdict) for name, one in report.results.items() if one.verdict is not GateVerdict.PASSED}


def published(found: PeakModel) -> PeakModel:
    """As a service loads it."""
    return model_of(artefact_of(found, NOW), NOW)


def test_a_sound_model_is_published_as_the_gate_let_it() -> None:
    done = withhold(history(), model(), in_use(), PASSED)
    assert done.report is PASSED and not done.failed and not_reproduced(done.failed, 4, 4) is None
    np.testing.assert_array_equal(done.model.usage_dated, model().usage_dated)
    assert done.model.info["reproduction"]["cpu"]["reproduced"] is True


def test_a_young_model_that_is_far_off_is_published_and_said() -> None:
    known = history().before(history().n_days, keep=10)
    done = withhold(known, with_cpu(1.7), None, PASSED)
    assert not verdicts(done.report) and [one.resource for one in done.failed] == ["cpu"]
    found = not_reproduced(done.failed, 4, 4)
    assert found is not None and "times what was recorded" in found.what


def test_a_wrong_resource_keeps_the_model_in_use() -> None:
    done = withhold(history(), with_saturated_error(), in_use(), PASSED)
    assert verdicts(done.report) == {("cpu", GateVerdict.HELD_BACK)}
    cpu = done.report.results["cpu"]
    assert cpu.held_back_nights == 1 and "does not reproduce the last days" in cpu.reason
    assert done.model.cluster_std[CPU] == in_use().cluster_std[CPU]
    assert done.model.cluster_std[MEMORY] == model().cluster_std[MEMORY]
    assert published(done.model).info["gate"]["cpu"]["verdict"] == "held_back"


def test_nights_are_counted_without_end() -> None:
    before = GateReport({"cpu": GateResult("cpu", GateVerdict.HELD_BACK, "as before", held_back_nights=7)})
    held = replace(in_use(), info={**in_use().info, "gate": before.to_json()["resources"]})
    assert withhold(history(), with_cpu(4.0), held, PASSED).report.results["cpu"].held_back_nights == 8


def test_without_a_model_in_use_the_resource_is_left_out() -> None:
    done = withhold(history(), with_cpu(4.0), None, PASSED)
    assert verdicts(done.report) == {("cpu", GateVerdict.LEFT_OUT)}
    loaded = published(done.model)
    assert resources_measured(loaded).tolist() == [False, True, True, True, True]
    assert np.isnan(loaded.service_peaks(loaded.first_day)[:, CPU]).all()
    assert ("cpu", "0.5") not in published_losses({}, loaded.info)


@pytest.mark.parametrize("kept_already", [False, True])
def test_a_model_in_use_that_is_as_wrong_is_no_way_out(kept_already: bool) -> None:
    verdict = GateVerdict.HELD_BACK if kept_already else GateVerdict.PASSED
    report = replace(PASSED, results={**PASSED.results, "cpu": GateResult("cpu", verdict, "by the gate")})
    usage = in_use().usage_dated.copy(), in_use().usage_day_type.copy()
    for array in usage:
        array[:, CPU] *= 4
    wrong = replace(in_use(), usage_dated=usage[0], usage_day_type=usage[1])
    assert verdicts(withhold(history(), with_cpu(4.0), wrong, report).report) == {("cpu", GateVerdict.LEFT_OUT)}


def test_a_model_in_use_that_left_it_out_is_no_way_out() -> None:
    done = withhold(history(), with_saturated_error(), without_resource(in_use(), "cpu"), PASSED)
    assert verdicts(done.report) == {("cpu", GateVerdict.LEFT_OUT)}


def test_force_publishes_and_says_so() -> None:
    done = withhold(history(), with_cpu(4.0), in_use(), PASSED, force=True)
    assert verdicts(done.report) == {("cpu", GateVerdict.FORCED)}
    assert "although it does not reproduce the last days" in done.report.results["cpu"].reason
    np.testing.assert_array_equal(done.model.usage_dated, with_cpu(4.0).usage_dated)
    assert done.failed[0].resource == "cpu"


def test_a_model_of_which_nothing_reproduces_is_refused() -> None:
    wrong = replace(model(), usage_dated=model().usage_dated * 4)
    with pytest.raises(InputError, match=r"nothing is published.*cpu: the mean load.*--force publishes"):
        withhold(history(), wrong, None, PASSED)


def test_the_finding_is_one_for_all_resources_and_names_services() -> None:
    wrong = replace(model(), usage_dated=model().usage_dated * 4)
    found = not_reproduced(withhold(history(), wrong, None, PASSED, force=True).failed, 4, 4)
    assert found is not None and found.load_share.tolist() == [1.0] * 5
    short = found.short()
    assert short.finding == "not reproduced" and "cpu: the mean load of the cluster is at least 3." in short.what
    assert "shop/Deployment/service-3" in short.what and "doctor" in short.what_to_do


def test_a_resource_that_is_left_out_is_as_one_that_was_never_measured() -> None:
    def unmeasured(known: History) -> History:
        arrays = {
            name: getattr(known, name).copy()
            for name in ("usage_per_pod", "pod_variance", "node_usage", "node_pod_usage")
        }
        for array in arrays.values():
            array[:, CPU] = np.nan
        return replace(known, **arrays)

    few = history().before(3)
    never, left = fitted(unmeasured(few)), without_resource(fitted(few), "cpu")
    for spec in ARRAYS:
        if "resources" in spec.axes and spec.name not in ("cluster_std", "node_z", "node_bound_z"):  # of no load
            at = (slice(None),) * spec.axes.index("resources") + (CPU,)
            np.testing.assert_array_equal(getattr(left, spec.name)[at], getattr(never, spec.name)[at], spec.name)
