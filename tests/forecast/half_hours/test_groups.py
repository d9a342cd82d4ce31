from __future__ import annotations

import numpy as np

from forecast.fit_inputs import Series
from forecast.half_hours.groups import GROUPINGS, SeriesGroups, group_moves
from forecast.service_key import ServiceKey

NAMES = ("shop/Deployment/a", "shop/StatefulSet/b", "bank/Deployment/c", "bank/Deployment/d")
SERVICES = tuple(ServiceKey.parse(name) for name in NAMES)
SERIES = Series(service=np.arange(4), resource=np.zeros(4, dtype=np.int64), shape=(4, 5))
GROUPS = SeriesGroups.of(SERIES, SERVICES)


def of(grouping: str, values: np.ndarray) -> list[float]:
    return [round(float(value), 4) for value in values[GROUPINGS.index(grouping), :, 0]]


def test_moves_are_means_over_the_series_of_a_group() -> None:
    known = np.ones((4, 7, 48))
    known[0, -1] = 8.0  # 7 above, of which the mean of the week has a seventh
    known[3, -1] = 15.0
    moves = group_moves(known, np.ones(4), GROUPS)
    assert of("resource", moves.mean) == [(6 + 10) / 4] * 4  # 12 counts as the largest move
    assert of("namespace", moves.mean) == [3.0, 3.0, 5.0, 5.0]
    assert of("owner_kind", moves.mean) == [5.3333, 0.0, 5.3333, 5.3333]


def test_spread_and_number_say_how_far_a_mean_may_be_believed() -> None:
    known = np.ones((4, 7, 48))
    known[0, -1] = 8.0
    moves = group_moves(known, np.ones(4), GROUPS)
    assert of("namespace", moves.spread) == [3.0, 3.0, 0.0, 0.0]
    assert np.exp(moves.count[GROUPINGS.index("owner_kind")]).round(4).tolist() == [3.0, 1.0, 3.0, 3.0]


def test_groups_stay_within_a_resource() -> None:
    known = np.ones((4, 7, 48))
    known[0, -1] = 8.0
    apart = SeriesGroups(np.array([0, 0, 1, 1]), np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64))
    assert of("namespace", group_moves(known, np.ones(4), apart).mean) == [3.0, 3.0, 0.0, 0.0]


def test_size_does_not_depend_on_the_unit() -> None:
    rng = np.random.default_rng(0)
    known = rng.lognormal(0, 2, (40, 1, 1)) * rng.lognormal(0, 0.2, (40, 7, 48))
    unit = known.mean(axis=(1, 2))
    one, million = (group_moves(factor * known, factor * unit, SeriesGroups.one(40)) for factor in (1.0, 1e6))
    np.testing.assert_allclose(one.mean, million.mean, atol=1e-5)
