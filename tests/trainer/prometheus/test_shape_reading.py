"""Other shapes are looked for only where the first leaves a running pod unmeasured for more than its beginning."""

from __future__ import annotations

import numpy as np

from tests.trainer.prometheus.reading import N_TICKS, pods_on_nodes
from trainer.prometheus.matrix import Matrix
from trainer.prometheus.samples import Samples
from trainer.prometheus.shape_reading import all_measured

EVERY = np.ones(N_TICKS, dtype=bool)


def answer(missing: dict[int, int]) -> Matrix:
    """A sample of each pod at each tick, but for the first ticks of some: row -> how many are missing."""
    pods = pods_on_nodes().pods
    cells = [(row, tick) for row in range(len(pods)) for tick in range(missing.get(row, 0), N_TICKS)]
    labels = tuple({"namespace": namespace, "pod": pod} for namespace, pod in pods)
    series, ticks = np.array(cells, dtype=np.int64).T
    return Matrix(labels, series, ticks, np.ones(len(cells)))


def samples(part: Matrix, *, recorded: bool = False) -> Samples:
    return Samples([part] if recorded else [], [] if recorded else [part], EVERY, "pod_cpu")


def test_pods_that_have_just_begun_are_measured() -> None:
    assert all_measured(pods_on_nodes(), [samples(answer({})), samples(answer({0: 1, 5: 2}))])


def test_a_pod_that_lacks_half_a_day_in_one_resource_is_not() -> None:
    assert not all_measured(pods_on_nodes(), [samples(answer({})), samples(answer({5: N_TICKS // 2}))])


def test_nothing_follows_from_what_rules_recorded() -> None:
    assert not all_measured(pods_on_nodes(), [samples(answer({}), recorded=True)])
