"""Best nodes of pods that sit somewhere: none counts against itself, and everything is as it was afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from forecast_scheduler.commands.live_placing import Placing, open_placing
from forecast_scheduler.commands.scorer.scorer_setup import Inputs
from forecast_scheduler.settings.document import Settings
from placement.policies.policy import Policy
from scorer.highest_peak import share_of
from scorer.options import ScorerOptions
from scorer.scorer import Scorer
from scorer.scores.score_settings import ScoreOptions
from scorer.scoring_policy import scoring_policy
from testing.servers.cluster_objects import node, pod, running
from tests.forecast_scheduler.recorded_evening import MOMENT, recorded_evening

PLAIN = Policy(scoring_policy(ScorerOptions()))
CARD = "nvidia.com/gpu"


def policy(**weights: float) -> Policy:
    return Policy(scoring_policy(ScorerOptions(scores=ScoreOptions(weights=weights))))


def by_hand(*manifests: dict[str, Any]) -> list[dict[str, Any]]:
    """What the API server would have filled in."""
    for one in manifests:
        one["metadata"] |= {"uid": one["metadata"]["name"], "creationTimestamp": "2026-01-01T00:00:00Z"}
    return list(manifests)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Scorer, Placing]]:
    """`large` fills most of node a, `port` takes a port there, `small` sits on b."""
    port = pod("port", node="a", cpu="1", status=running())
    port["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    apart = {"labelSelector": {"matchLabels": {"app": "small"}}, "topologyKey": "kubernetes.io/hostname"}
    small = pod("small", node="b", cpu="1", labels={"app": "small"}, status=running())
    small["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    items = by_hand(
        node("a", cpu="16"),
        node("b", cpu="16", extended={CARD: "1"}),
        pod("large", node="a", cpu="12", status=running()),
        port,
        small,
    )
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    inputs = Inputs(cluster=path, models=str(tmp_path / "models"))
    with open_placing(Settings(), inputs) as (scorer, background, placing):
        background.look_for_model()
        scorer.tables.tick()
        yield scorer, placing


def test_no_pod_counts_against_itself(cluster: tuple[Scorer, Placing]) -> None:
    scorer, placing = cluster
    for name in ("large", "port", "small"):
        assert placing.feasibility(scorer.find_pod("default", name)).nodes == ("a", "b"), name


def test_afterwards_the_tables_are_as_they_were(cluster: tuple[Scorer, Placing]) -> None:
    scorer, placing = cluster

    def tables() -> list[Any]:
        with scorer.tables.reading() as found:
            state, uids = found.state, ("large", "port", "small")
            return [
                state.requested.tolist(),
                state.pod_count.tolist(),
                state.qos_pods.tolist(),
                {uid: state.pods[uid] for uid in uids},
                {uid: state.seat_of.get(uid) for uid in uids},
                replicas(),
                found.charges.open(),
                found.virtual_available().tolist(),
            ]

    def replicas() -> list[float]:
        with scorer.tables.reading() as found:
            return [found.state.replicas(service) for service in range(len(found.state.services))]

    before = tables()
    for name in ("large", "port", "small"):
        one = scorer.find_pod("default", name)
        with placing.unbound(one) as waiting:
            assert waiting.node == "" and str(tables()) != str(before)
            assert replicas() == [1, 1, 1]  # it is still one of its service's
        with pytest.raises(RuntimeError, match="whatever"), placing.unbound(one):
            raise RuntimeError("whatever")
        placing.best_node(one, PLAIN)
    assert str(tables()) == str(before)  # NaN is unequal to itself
    assert scorer.self_check().sound


def test_the_forecast_leaves_the_pod_out_once(tmp_path: Path) -> None:
    evening = recorded_evening(tmp_path)
    inputs = Inputs(cluster=evening.cluster, models=str(evening.models), at=datetime.fromisoformat(MOMENT))
    with open_placing(Settings(), inputs) as (scorer, background, placing):
        background.look_for_model()
        scorer.tables.tick()
        for name in ("cart-0", "cart-1", "search-0", "mail-0"):
            one = scorer.find_pod("shop", name)
            shares = {
                node: share_of(scorer.expected_peak(one, node)) for node in ("node-0", "node-1")
            }  # by another way
            assert len(set(shares.values())) == 2
            for node in shares:
                found = placing.best_node(one, policy(most_available=1), rather=node)  # alike: nothing is measured
                assert found.node == node
                assert found.peak_share == pytest.approx(shares[node], rel=1e-4)
            assert share_of(scorer.expected_peak(one, "node-0")) == pytest.approx(shares["node-0"], rel=1e-4)
        assert scorer.self_check().sound
