"""Clusters with holes: gaps, idle services, unmeasured resources. Every rule carries the same pods all the same."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from forecast.fit import fit
from forecast.history import History, PodUsage
from forecast.hot_share import HOT_SHARE
from forecast.resources import CPU
from scorer.replay.preparation import forecast_with
from scorer.replay.replay import RULES, replay
from tests.scorer.replay.small_cluster import N_SERVICES, small_cluster


def with_holes(history: History, pods: PodUsage, rng: np.random.Generator) -> tuple[History, PodUsage]:
    """Random days unmeasured, a random service idle, a random resource never measured, for services and pods alike."""
    usage, of_pods, of_nodes = history.usage_per_pod.copy(), pods.usage.copy(), history.node_usage.copy()
    for day in rng.choice(history.n_days, rng.integers(0, 5), replace=False):
        usage[:, :, day], of_pods[:, :, day], of_nodes[:, :, day] = np.nan, np.nan, np.nan
    idle = int(rng.integers(N_SERVICES))
    usage[idle] *= 0
    of_pods[pods.service == idle] *= 0
    if rng.random() < 0.5:
        resource = int(rng.integers(1, usage.shape[1]))
        usage[:, resource], of_pods[:, resource], of_nodes[:, resource] = np.nan, np.nan, np.nan
    return replace(history, usage_per_pod=usage, node_usage=of_nodes), replace(pods, usage=of_pods)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40))
def test_every_rule_carries_the_same_load_whatever_is_missing(seed: int) -> None:
    history, pods = with_holes(*small_cluster(seed), np.random.default_rng(seed))
    played = replay(history, pods, forecast_with(fit), seed=seed, ladder=False, hot=HOT_SHARE)
    json.dumps(played.to_json(), allow_nan=False)
    loads = [played.playbacks[rule].node_load(played.recording)[:, CPU].sum() for rule in RULES]
    np.testing.assert_allclose(loads, loads[0], rtol=1e-6)
    assert all(0 <= played.figures[rule].hot_share <= 1 for rule in RULES)
