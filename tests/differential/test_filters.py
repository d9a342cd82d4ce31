"""Our filters against a real kube-scheduler: for each pod of many random clusters both pass the same nodes.

    random cluster --> API server --> kube-scheduler --> /filter of a probe extender, or the PodScheduled condition
                           |                                       = nodes that pass
                           +--> our decoding, tables, filters -----> the same nodes

Where no node passes, the reasons are counted, too: they must be kube-scheduler's own words, node by node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import pytest

from placement.filters.catalogue import STANDARD_FILTERS
from tests.differential.comparing import Compared, compare
from tests.differential.our_filters import Tables
from tests.differential.real_scheduler import RealScheduler
from tests.placement.random_cluster import random_cluster


@pytest.fixture(scope="module")
def real() -> Iterator[RealScheduler]:
    with RealScheduler() as running:
        yield running


def test_150_pods_may_go_where_kube_scheduler_lets_them(real: RealScheduler) -> None:
    compared = _all_agree(real, (0, 1, 2, 3, 4, 10), n_probes=25)
    assert len(compared) == 150
    # The cases are worth their name: most pods have a choice, and each filter is the only obstacle somewhere.
    n_choices = sum(0 < len(one.real.passing) < one.n_nodes for one in compared)
    assert n_choices > 0.4 * len(compared)
    decisive = {why[0][0] for one in compared for why in one.ours.reasons.values() if len({n for n, _ in why}) == 1}
    # Nobody schedules a pod that names its node.
    assert decisive == set(STANDARD_FILTERS) - {"NodeName"}


@pytest.mark.long
def test_5000_pods_may_go_where_kube_scheduler_lets_them(real: RealScheduler) -> None:
    assert len(_all_agree(real, range(1000, 1200), n_probes=25)) == 5000


def _all_agree(real: RealScheduler, seeds: Sequence[int], *, n_probes: int) -> list[Compared]:
    """Everything that was compared."""
    followed = Tables()  # one cluster after the other passes through the same tables
    compared: list[Compared] = []
    for seed in seeds:
        rng = Random(seed)
        cluster = random_cluster(rng, n_probes)
        found = compare(real.observe(cluster), [followed], rng)
        wrong = [one for one in found if one.differs or one.words_differ]
        if wrong:
            pytest.fail(f"seed {seed}: " + "\n".join(map(str, wrong)))
        compared += found
    return compared
