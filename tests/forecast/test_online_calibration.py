"""Bounds are moved by how those issued before held, by nothing else, and only so far."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from forecast.fit import fit
from forecast.history import History
from forecast.model import PEAK_QUANTILES, PeakModel
from forecast.online_calibration import (
    INFO,
    SERVICE_GAIN,
    BoundOffsets,
    daily_peaks,
    excess_misses,
    next_offsets,
    node_hits,
    service_hits,
)
from forecast.resources import CPU, MEMORY, RESOURCES
from forecast.service_key import ServiceKey
from tests.synthetic import synthetic_history

N_KNOWN, N_DAYS = 21, 24


@lru_cache(maxsize=1)
def history() -> History:
    return synthetic_history(n_services=12, n_days=N_DAYS)


@lru_cache(maxsize=1)
def issued() -> PeakModel:
    """What was published at the midnight of the 22nd day."""
    return fit(history().before(N_KNOWN))


def louder(factor: float, first: int = N_KNOWN) -> History:
    """All services use so many times the CPU from a day on."""
    usage, nodes = history().usage_per_pod.copy(), history().node_usage.copy()
    usage[:, CPU, first:] *= factor
    nodes[:, CPU, first:] *= factor
    return replace(history(), usage_per_pod=usage, node_usage=nodes)


def test_hits_are_those_of_the_published_bounds() -> None:
    hits = service_hits(history(), issued(), N_KNOWN)
    bound = issued().service_peaks(history().days[N_KNOWN])[:, :, -1]
    peak = daily_peaks(history().usage_per_pod[:, :, N_KNOWN])
    known = np.isfinite(hits)
    assert known[:, CPU].all()
    np.testing.assert_array_equal(hits[known] == 1, (peak <= bound)[known])
    assert (service_hits(louder(50.0), issued(), N_KNOWN)[:, CPU] == 0).all()
    assert (node_hits(louder(50.0), issued(), N_KNOWN)[:, CPU] == 0).all()


def test_services_of_which_nothing_was_said_and_days_that_were_not_measured_are_unknown() -> None:
    others = (ServiceKey("new", "Deployment", "service"), *issued().services[1:])
    assert np.isnan(service_hits(history(), replace(issued(), services=others), N_KNOWN)[0]).all()
    usage = history().usage_per_pod.copy()
    usage[1, CPU, N_KNOWN, :30] = np.nan
    hits = service_hits(replace(history(), usage_per_pod=usage), issued(), N_KNOWN)
    assert np.isnan(hits[1, CPU]) and np.isfinite(hits[1, MEMORY])


def test_bounds_that_all_failed_rise_and_those_that_all_held_sink_slowly() -> None:
    failed = next_offsets(louder(50.0), issued())
    assert failed.services[CPU] > 0.5 and failed.nodes[CPU] > 0.5
    held = next_offsets(louder(0.01), issued())
    assert -0.2 < held.services[CPU] < 0 and -0.3 < held.nodes[CPU] < 0
    np.testing.assert_array_equal(failed.services[MEMORY], held.services[MEMORY])


def test_the_next_model_is_published_with_the_offsets_in_its_bounds() -> None:
    known = louder(50.0).before(N_KNOWN + 1)
    plain, corrected = fit(known), fit(known, previous=issued())
    assert BoundOffsets.of(corrected.info).services[CPU] > 0
    assert INFO in plain.info and BoundOffsets.of(plain.info).to_info() == BoundOffsets.none().to_info()
    assert corrected.node_z[CPU, -1] > plain.node_z[CPU, -1]
    bounds = (model.service_peaks(model.first_day)[:, CPU, -1] for model in (corrected, plain))
    assert (next(bounds) > next(bounds)).mean() > 0.5


def test_days_count_once() -> None:
    model = replace(issued(), info={**issued().info, INFO: BoundOffsets(np.full(5, 0.1), np.full(5, 0.2)).to_info()})
    same_night = next_offsets(history().before(N_KNOWN), model)
    np.testing.assert_allclose(same_night.services, 0.1)
    np.testing.assert_allclose(same_night.nodes, 0.2)
    one, three = (next_offsets(louder(0.01).before(N_KNOWN + n), model).services[CPU] for n in (1, 3))
    assert three < one < 0.1


def test_nights_without_a_model_count_as_one_step() -> None:
    """A bound that could not move missed on three days for one reason."""
    three_days = next_offsets(louder(50.0), issued())
    assert three_days.services[CPU] <= SERVICE_GAIN * PEAK_QUANTILES[-1]
    assert three_days.services[CPU] > next_offsets(louder(50.0).before(N_KNOWN + 1), issued()).services[CPU]


@pytest.mark.parametrize("said", [None, 3, {}, {"services": 1}, {"services": {"cpu": "x"}}, {"nodes": {"cpu": np.nan}}])
def test_what_a_model_says_badly_counts_as_nothing(said: object) -> None:
    assert BoundOffsets.of({INFO: said}).to_info() == BoundOffsets.none().to_info()


def test_no_offset_passes_its_limit() -> None:
    model = replace(issued(), info={INFO: {"services": {"cpu": 1e9}, "nodes": {"cpu": 1e9}}})
    offsets = next_offsets(louder(50.0), model)
    assert offsets.services[CPU] == offsets.nodes[CPU] == 1.5
    assert len(offsets.services) == len(RESOURCES)


def test_a_cluster_that_becomes_twice_as_wild_is_covered_again_within_a_week() -> None:
    rng = np.random.default_rng(0)
    n_services, sigma = 100, 0.2
    bound = np.exp(1.645 * sigma)
    offset, coverage = 0.0, []
    for day in range(40):
        peaks = np.exp(rng.normal(0, sigma if day < 10 else 2 * sigma, n_services))
        hits = (peaks <= bound * np.exp(offset * 1.645 * sigma)).astype(float)
        coverage.append(float(hits.mean()))
        offset += SERVICE_GAIN * float(excess_misses(hits[:, None])[0])
    assert coverage[10] < 0.9
    assert np.mean(coverage[17:27]) > 0.92
    assert abs(np.mean(coverage[20:]) - PEAK_QUANTILES[-1]) < 0.02
