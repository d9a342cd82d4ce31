"""A resource that is measured on nodes only moves with the pods that cause it, and says how well that is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forecast.fit import fit
from forecast.history import History, PodUsage
from forecast.hot_share import HOT_SHARE
from forecast.resources import DISK
from scorer.replay.preparation import forecast_with
from scorer.replay.recording import LARGEST_ERROR
from scorer.replay.replay import Replay, replay
from scorer.replay.replay_page import replay_page
from scorer.replay.window import flat
from tests.scorer.replay.small_cluster import N_DAYS, N_NODES, REPLICAS, by_day, small_cluster


def on_nodes_only(history: History, pods: PodUsage) -> tuple[History, PodUsage]:
    """The cluster with pods that change nodes every day, and disk usage that is measured on nodes alone."""
    n_slots = N_DAYS * 48
    moves = np.arange(0, n_slots, 48)
    pod, first = np.meshgrid(np.arange(sum(REPLICAS)), moves, indexing="ij")
    node = np.random.default_rng(5).integers(0, N_NODES, size=pod.shape)
    placements = replace(
        history.placements,
        pod=pod.ravel(),
        service=pods.service[pod.ravel()],
        node=node.ravel(),
        first=first.ravel(),
        end=(first + 48).ravel(),
    )
    disk_of_pod = np.nan_to_num(flat(pods.usage)[:, DISK])
    totals = np.full((N_NODES, n_slots), 1e4)
    for p in range(sum(REPLICAS)):
        for d in range(N_DAYS):
            slots = slice(d * 48, d * 48 + 48)
            totals[node[p, d], slots] += disk_of_pod[p, slots]
    node_usage, on_pods = history.node_usage.copy(), history.node_pod_usage.copy()
    node_usage[:, DISK], on_pods[:, DISK] = by_day(totals), np.nan
    of_services, usage = history.usage_per_pod.copy(), pods.usage.copy()
    of_services[:, DISK], usage[:, DISK] = np.nan, np.nan
    kept = np.arange(len(pods.pods)) < sum(REPLICAS)
    hidden = replace(
        history,
        usage_per_pod=of_services,
        node_usage=node_usage,
        node_pod_usage=on_pods,
        placements=placements,
        replicas=by_day(np.repeat(np.array(REPLICAS)[:, None], n_slots, axis=1)),
    )
    fewer = replace(
        pods,
        pods=pods.pods[: sum(REPLICAS)],
        service=pods.service[kept],
        requests=pods.requests[kept],
        usage=usage[kept],
        present=pods.present[kept],
        node=node[:, -1],
    )
    return hidden, fewer


@pytest.fixture(scope="module")
def hidden() -> tuple[History, PodUsage]:
    return on_nodes_only(*small_cluster())


@pytest.fixture(scope="module")
def played(hidden: tuple[History, PodUsage]) -> Replay:
    return replay(*hidden, forecast_with(fit), seed=3, ladder=False, hot=HOT_SHARE)


def test_a_node_keeps_what_no_pod_causes_and_the_rest_moves_with_the_pods(
    played: Replay, hidden: tuple[History, PodUsage]
) -> None:
    spreads = {rule: figures.peak_cv["disk"] for rule, figures in played.figures.items()}
    assert len(set(spreads.values())) > 2, spreads
    assert played.recording.load[:, DISK].sum() > 0.5 * played.recording.base[:, DISK].sum()
    # The small cluster knows what the regression has to find: the disk usage before it was hidden.
    window, (_, pods) = played.window, small_cluster()
    true = window.cut(pods.usage[: sum(REPLICAS), DISK, window.first_day : window.first_day + len(window.days)])
    found = played.recording.load[:, DISK]
    np.testing.assert_allclose(found.sum(axis=1), np.nansum(true, axis=1), rtol=0.05)
    # Pods and base together are what the nodes used, wherever the pods really were.
    slots = slice(played.window.history_slot, played.window.history_slot + 20)
    total = played.recording.base[:, DISK, :20].sum() + played.recording.load[:, DISK, :20].sum()
    assert total == pytest.approx(float(flat(hidden[0].node_usage)[:, DISK, slots].sum()), rel=0.02)


def test_the_report_marks_it_with_its_error(hidden: tuple[History, PodUsage], played: Replay) -> None:
    figures = played.to_json()["by_regression"]
    assert set(figures) == {"disk"}
    assert 0.5 < figures["disk"]["moved"] <= 1.0
    assert 0.0 < figures["disk"]["error"] <= LARGEST_ERROR
    page = replay_page(played, hidden[0])
    assert "disk*" in page
    assert f"by regression, error {figures['disk']['error']:.0%}" in page
