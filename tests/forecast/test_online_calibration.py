"""Bounds are moved by how those issued before held, by nothing else, and only so far."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from forecast.bound_scores import FURTHEST
from forecast.calendar import SLOTS_PER_DAY
from forecast.composition import peak_at
from forecast.fit import fit
from forecast.history import History
from forecast.model import PeakModel
from forecast.node_forecast import node_forecast
from forecast.online_calibration import daily_peaks, next_offsets, node_hits, service_hits
from forecast.resources import CPU, MEMORY
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


def test_scores_are_the_offsets_at_which_the_bounds_would_have_just_held() -> None:
    model = replace(issued(), service_offset=np.full_like(issued().service_offset, 0.5))
    offsets = next_offsets(history().before(N_KNOWN + 1), model)
    bound = model.service_peaks(history().days[N_KNOWN])[:, CPU, -1]
    score = offsets.service_scores[:, CPU, -1]
    met = bound * np.exp((score - 0.5) * model.service_unit[:, CPU])
    inside = np.abs(score) < FURTHEST
    assert inside.sum() > 6
    np.testing.assert_allclose(met[inside], daily_peaks(history().usage_per_pod[inside, CPU, N_KNOWN]), rtol=1e-4)
    assert np.isnan(offsets.service_scores[:, CPU, :-1]).all()
    needed = offsets.node_scores[:, CPU, -1] - model.node_offset[:, CPU] + model.node_bound_z[:, CPU]
    load = next(iter(node_forecast(model, history().placements.between(*day_slots()), (history().days[N_KNOWN],))))
    peak = daily_peaks(history().node_usage[:, CPU, N_KNOWN])
    np.testing.assert_allclose(peak_at(load, needed[:, None])[:, 0], peak, rtol=1e-3)


def test_bounds_that_all_failed_rise_and_those_with_room_come_down() -> None:
    failed = next_offsets(louder(50.0), issued())
    assert (failed.services[:, CPU] > 1).all() and (failed.nodes[:, CPU] > 1).all()
    held = next_offsets(louder(0.01), issued())
    assert (held.services[:, CPU] < -0.2).all() and (held.nodes[:, CPU] < -0.1).all()
    np.testing.assert_array_equal(failed.services[:, MEMORY], held.services[:, MEMORY])


def test_the_next_model_is_published_with_the_offsets_in_its_bounds() -> None:
    known = louder(50.0).before(N_KNOWN + 1)
    plain, corrected = fit(known), fit(known, previous=issued())
    assert (corrected.service_offset[:, CPU] > 0).all() and np.isnan(plain.service_scores).all()
    assert corrected.node_z[CPU, -1] > plain.node_z[CPU, -1]
    assert (corrected.node_bound_z[:, CPU] > plain.node_bound_z[:, CPU]).all()
    bounds = (model.service_peaks(model.first_day)[:, CPU, -1] for model in (corrected, plain))
    assert (next(bounds) > next(bounds)).mean() > 0.5


def test_no_bound_comes_down_below_the_median_and_the_offset_says_how_far_it_came() -> None:
    low = issued()
    scores = np.full_like(low.service_scores, -FURTHEST)
    model = fit(history().before(N_KNOWN), previous=replace(low, service_scores=scores))
    peaks = model.service_peaks(model.first_day)
    assert (peaks[:, CPU, 1] >= peaks[:, CPU, 0]).all()
    assert (model.service_offset[:, CPU] > -0.7 * FURTHEST).any()
    raw = fit(history().before(N_KNOWN)).service_peaks(model.first_day)[:, CPU, 1]
    np.testing.assert_allclose(
        raw * np.exp(model.service_offset[:, CPU] * model.service_unit[:, CPU]), peaks[:, CPU, 1], rtol=0.01
    )


def test_a_night_of_which_no_day_is_known_changes_no_score() -> None:
    scores = np.full_like(issued().service_scores, 0.25)
    same_night = next_offsets(history().before(N_KNOWN), replace(issued(), service_scores=scores))
    np.testing.assert_array_equal(same_night.service_scores, scores)
    three = next_offsets(history(), replace(issued(), service_scores=scores))
    np.testing.assert_array_equal(three.service_scores[..., :-3], scores[..., 3:])
    assert (three.service_scores[:, CPU, -3:] != 0.25).all()


def test_scores_follow_their_services_and_nodes() -> None:
    first, second = issued().services[:2]
    others = replace(issued(), services=(second, first, *issued().services[2:]), nodes=issued().nodes[::-1])
    scores = np.arange(len(issued().services), dtype=np.float32)[:, None, None] * np.ones_like(issued().service_scores)
    of_nodes = np.arange(len(issued().nodes), dtype=np.float32)[:, None, None] * np.ones_like(issued().node_scores)
    offsets = next_offsets(history().before(N_KNOWN), replace(others, service_scores=scores, node_scores=of_nodes))
    assert offsets.service_scores[:3, CPU, -1].tolist() == [1, 0, 2]
    assert offsets.node_scores[:, CPU, -1].tolist() == list(range(len(issued().nodes)))[::-1]


def day_slots() -> tuple[int, int]:
    return N_KNOWN * SLOTS_PER_DAY, (N_KNOWN + 1) * SLOTS_PER_DAY
