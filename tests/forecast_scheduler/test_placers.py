"""Soft load and water level of one cluster file, as each command sees it: only nodes that pods could use count."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cluster.scale_out import expected_scale_out
from forecast.model_artefact import artefact_of
from forecast.published_models import Registry
from forecast.resources import CPU
from forecast_scheduler.commands.extender_setup import open_extender
from forecast_scheduler.commands.live_placing import open_placing
from forecast_scheduler.commands.policy.followed_policies import read_policies
from forecast_scheduler.commands.scorer.scorer_setup import Inputs, open_scorer
from forecast_scheduler.settings.document import Settings, with_options
from kube.client.cluster_access import CURRENT_CLUSTER
from scorer.background import ScorerBackground
from scorer.scorer import Scorer
from tests.forecast_scheduler.made_cluster import DOMAIN, cluster_file, made_node, made_pod
from tests.scorer.live_cluster import growing

OURS = "forecast-scheduler"
OUR_DOMAIN = {DOMAIN: OURS}
GPU = "nvidia.com/gpu"
EVENING = slice(38, 42)


def node(name: str, cpu: int = 40, *, labels: Mapping[str, str] | None = None, taint: str = "", gpu: str = "") -> Any:
    made = made_node(name, domain=None, cpu=str(cpu), memory="40", **({GPU: gpu} if gpu else {}))
    made["metadata"]["labels"] = dict(labels or {})
    made["spec"] = {"taints": [{"key": taint, "value": "x", "effect": "NoSchedule"}] if taint else []}
    return made


def pod(name: str, on: str, *, service: int | None = 5, cpu: str = "1", scheduler: str = "", **spec: Any) -> Any:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"service-{service}-7d9f", "uid": "rs"}
    metadata = {
        "creationTimestamp": "2026-05-18T00:00:00Z",
        "labels": {"pod-template-hash": "7d9f"},
        "ownerReferences": [] if service is None else [owner | {"controller": True}],
    }
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "1"}}}]
    wanted = {"metadata": metadata, "containers": containers, "nodeName": on, **spec}
    made = made_pod(name, scheduler=scheduler or "default-scheduler", **wanted)
    return made | {"status": {"phase": "Running"}}


PLAIN = [node(f"node-{i}") for i in range(4)]
VIRTUAL = node("virtual", 10_000, labels={"type": "virtual-kubelet"}, taint="virtual-kubelet.io/provider")
OTHERS = [
    VIRTUAL,
    node("tainted", taint="dedicated"),
    node("private", labels=OUR_DOMAIN),
    node("gpu", gpu="8"),
    node("foreign", labels={DOMAIN: "somebody-else"}),
]
SETTINGS = with_options(Settings(), {"node_rules": {"cards": {"without_cards": "hard"}}})

Opened = AbstractContextManager[tuple[Scorer, ScorerBackground]]
Open = Callable[[Settings, Inputs], Opened]


@contextmanager
def as_extender(settings: Settings, inputs: Inputs) -> Iterator[tuple[Scorer, ScorerBackground]]:
    with open_extender(settings, inputs) as live:
        assert live.scorer is not None
        yield live.scorer, live.background


@contextmanager
def as_explain(settings: Settings, inputs: Inputs) -> Iterator[tuple[Scorer, ScorerBackground]]:
    with open_placing(settings, inputs, read_policies(settings, CURRENT_CLUSTER)) as (scorer, background, _):
        yield scorer, background


EVERY_COMMAND = pytest.mark.parametrize("opened", [open_scorer, as_extender, as_explain])


class Clusters:
    """Writes cluster files, and a model in which service 5 grows from two pods to nine in the evening."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._models = folder, str(folder / "models")
        Registry(self._models).publish(artefact_of(growing().model, datetime(2026, 5, 18, tzinfo=UTC)))

    def written(self, nodes: Sequence[Any], pods: Sequence[Any]) -> Inputs:
        path = cluster_file(self._folder, *nodes, *pods)
        return Inputs(cluster=path, models=self._models, at=datetime(2026, 5, 19, 12, tzinfo=UTC))

    @contextmanager
    def open(
        self, nodes: Sequence[Any], pods: Sequence[Any], opened: Open = open_scorer, settings: Settings = SETTINGS
    ) -> Iterator[Scorer]:
        with opened(settings, self.written(nodes, pods)) as (scorer, background):
            background.wait_synced(0.0)
            background.look_for_model()
            scorer.tables.tick()
            yield scorer

    def soft(self, nodes: Sequence[Any], pods: Sequence[Any], opened: Open = open_scorer) -> dict[str, float]:
        """Cores kept free in the evening, by node; nodes without any are left out."""
        with self.open(nodes, pods, opened) as scorer, scorer.tables.reading() as cluster:
            gathered = expected_scale_out(cluster)
            load = None if gathered is None else gathered.load()
            assert load is not None
            cores = load[:, CPU, EVENING].sum(axis=1)
            return {cluster.state.names[row]: float(cores[row]) for row in range(len(cores)) if cores[row] > 1e-6}


@pytest.fixture
def clusters(tmp_path: Path) -> Clusters:
    return Clusters(tmp_path)


PODS = [pod("p0", "node-0"), pod("p1", "node-1")]


@EVERY_COMMAND
def test_nodes_that_the_pods_cannot_use_take_no_soft_load_from_others(clusters: Clusters, opened: Open) -> None:
    before = clusters.soft(PLAIN, PODS)
    assert clusters.soft([*PLAIN, *OTHERS], PODS, opened) == pytest.approx(before, rel=0.01)


def test_each_service_keeps_room_where_its_own_pods_may_go(clusters: Clusters) -> None:
    zoned = node("node-a", labels={"zone": "a"}, taint="zone")
    total = sum(clusters.soft(PLAIN, PODS).values())

    def of(**spec: Any) -> dict[str, float]:
        scheduler = OURS if spec.pop("ours", False) else ""
        return clusters.soft(
            [*PLAIN, zoned, *OTHERS],
            [pod("p0", "node-0", scheduler=scheduler, **spec), pod("p1", "node-1", scheduler=scheduler, **spec)],
        )

    # kube-scheduler with our extender does not place on nodes of our loops, and only these have the label.
    assert of(nodeSelector=OUR_DOMAIN) == {}
    assert of(nodeSelector={"zone": "a"}, tolerations=[{"key": "zone", "operator": "Exists"}]) == pytest.approx(
        {"node-a": total}
    )
    assert of(ours=True) == pytest.approx({"private": total})
    tolerant = of(tolerations=[{"key": "dedicated", "operator": "Exists"}])
    assert tolerant == pytest.approx(dict.fromkeys(["node-0", "node-1", "node-2", "node-3", "tainted"], total / 5))
    with_gpu = [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1", GPU: "1"}}}]
    assert of(containers=with_gpu) == pytest.approx({"gpu": total})


def test_a_policy_document_is_read_by_the_settings_of_the_component_that_places(
    clusters: Clusters, tmp_path: Path
) -> None:
    document = tmp_path / "policies.yaml"
    document.write_text("default: kept\npolicies:\n  kept:\n    cards: {without_cards: hard}\n")
    rules = {"cards": {"without_cards": "off"}}
    settings = with_options(Settings(), {"policies": {"file": str(document)}, "node_rules": rules})
    ours = [node("private", labels=OUR_DOMAIN), node("private-gpu", labels=OUR_DOMAIN, gpu="8")]
    for scheduler, expected in (("", {"node-0", "node-1", "node-2", "node-3"}), (OURS, {"private"})):
        pods = [pod("p0", "node-0", scheduler=scheduler), pod("p1", "node-1", scheduler=scheduler)]
        nodes = [*PLAIN, node("gpu", gpu="8"), *ours]
        with clusters.open(nodes, pods, as_explain, settings) as scorer, scorer.tables.reading() as cluster:
            masks, (mask,) = cluster.usable_nodes.usable_by([cluster.state.pods["uid-p0"]])
            assert {cluster.state.names[row] for row in masks[mask].nonzero()[0].tolist()} == expected
