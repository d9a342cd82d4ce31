"""Our standard scores against a real kube-scheduler: the same points for every node that passed, in random clusters."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from random import Random

import pytest

from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from placement.scores.plugin_weights import STANDARD_SCORES
from tests.differential.our_filters import Tables, decoded
from tests.differential.real_scheduler import RealScheduler
from tests.placement.random_cluster import random_cluster

N_PROBES = 12

_SCORED = re.compile(
    r'"Plugin scored node for pod" pod="[^"/]+/(?P<pod>[^"]+)" plugin="(?P<plugin>[^"]+)" node="(?P<node>[^"]+)" '
    r"score=(?P<score>-?\d+)"
)
"""As kube-scheduler logs it with --vmodule=schedule_one=10."""


def logged_scores(log: str) -> Mapping[str, Mapping[str, Mapping[str, int]]]:
    """By name of the pod, plugin and node; plugins that have nothing to say of a pod are not there."""
    found: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for one in _SCORED.finditer(log):
        found[one["pod"]][one["plugin"]][one["node"]] = int(one["score"])
    return found


@pytest.fixture(scope="module")
def real() -> Iterator[RealScheduler]:
    with RealScheduler("bind", ["--vmodule=schedule_one=10"]) as running:
        yield running


def test_pods_get_the_points_of_kube_scheduler(real: RealScheduler) -> None:
    told_apart = _all_agree(real, range(9))
    # Every score told nodes apart for a few pods at least.
    assert min(told_apart[score.name] for score, _ in STANDARD_SCORES) >= 3


@pytest.mark.long
def test_a_thousand_pods_get_the_points_of_kube_scheduler(real: RealScheduler) -> None:
    _all_agree(real, range(2000, 2120))


def _all_agree(real: RealScheduler, seeds: Iterable[int]) -> Counter[str]:
    """For how many pods each score gave different points to different nodes."""
    told_apart: Counter[str] = Counter()
    n_pods = 0
    for seed in seeds:
        cluster = random_cluster(Random(seed), N_PROBES, stateful=0.0, soft=True)
        placed = real.place_one_by_one(cluster)
        objects = decoded(placed.objects)
        tables = Tables()
        tables.replace(objects)
        pods = {one.name: one for one in objects[Kind.PODS] if isinstance(one, PodInfo)}
        for name, by_plugin in logged_scores(placed.log).items():
            n_pods += 1
            nodes = sorted(next(iter(by_plugin.values())))
            assert tables.verdict(pods[name]).passing == set(nodes), f"seed {seed} {name}"
            totals = Counter[str]()
            for points in by_plugin.values():
                totals.update(points)
            for score, weight in STANDARD_SCORES:
                ours = {node: weight * points for node, points in tables.scores(score, pods[name], nodes).items()}
                theirs = by_plugin.get(score.name)
                if theirs is None:
                    # PreScore skipped it: it must not make a difference with us either.
                    assert len(set(ours.values())) == 1, f"seed {seed} {name} {score.name}: {ours}, skipped there"
                else:
                    assert ours == theirs, f"seed {seed} {name} {score.name}: {pods[name]}"
                told_apart[score.name] += len(set(ours.values())) > 1
            # So the sums, ours among them, are what it chose by.
            assert totals[placed.chosen[name]] == max(totals.values())
    print(f"seeds {min(seeds)}-{max(seeds)}: {n_pods} pods, told apart by {dict(told_apart)}")
    return told_apart
