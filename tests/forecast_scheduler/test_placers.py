"""Soft load and water level of one cluster file, as each command sees it: only nodes that pods could use count."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from forecast.model_artefact import artefact_of
from forecast.published_models import Registry
from forecast.resources import CPU
from forecast_scheduler.commands.canary.expected_placing import open_canary
from forecast_scheduler.commands.extender.setup import open_extender
from forecast_scheduler.commands.live_placing import open_placing
from forecast_scheduler.commands.policy.follow_policies import read_policies
from forecast_scheduler.commands.schedule.dry_run import open_plan
from forecast_scheduler.commands.scorer.setup import Inputs, open_scorer
from forecast_scheduler.settings.document import Settings, with_options
from scorer.background import Background
from scorer.scale_out import expected_scale_out
from scorer.scorer import Scorer
from tests.scorer.live_cluster import growing

OURS = "forecast-scheduler"
DOMAIN = {"forecast-scheduler.io/domain": OURS}
GPU = "nvidia.com/gpu"
EVENING = slice(38, 42)


def node(name: str, cpu: int = 40, *, labels: Mapping[str, str] | None = None, taint: str = "", **more: str) -> Any:
    amounts = {
        "cpu": str(cpu),
        "memory": "40",
        "pods": "110",
        **{GPU if kind == "gpu" else kind: n for kind, n in more.items()},
    }
    taints = [{"key": taint, "value": "x", "effect": "NoSchedule"}] if taint else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"taints": taints},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, on: str, *, service: int | None = 5, cpu: str = "1", scheduler: str = "", **spec: Any) -> Any:
    owner = [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": f"service-{service}-7d9f",
            "uid": "rs",
            "controller": True,
        }
    ]
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "1"}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": name,
            "creationTimestamp": "2026-05-18T00:00:00Z",
            "labels": {"pod-template-hash": "7d9f"},
            "ownerReferences": [] if service is None else owner,
        },
        "spec": {
            "nodeName": on,
            "containers": containers,
            **({"schedulerName": scheduler} if scheduler else {}),
            **spec,
        },
        "status": {"phase": "Running"},
    }


PLAIN = [node(f"node-{i}") for i in range(4)]
VIRTUAL = node("virtual", 10_000, labels={"type": "virtual-kubelet"}, taint="virtual-kubelet.io/provider")
OTHERS = [
    VIRTUAL,
    node("tainted", taint="dedicated"),
    node("private", labels=DOMAIN),
    node("gpu", gpu="8"),
    node("foreign", labels={"forecast-scheduler.io/domain": "somebody-else"}),
]
SETTINGS = with_options(Settings(), {"node_rules": {"cards": {"without_cards": "hard"}}})

Opened = AbstractContextManager[tuple[Scorer, Background]]
Open = Callable[[Settings, Inputs], Opened]


@contextmanager
def as_extender(settings: Settings, inputs: Inputs) -> Iterator[tuple[Scorer, Background]]:
    with open_extender(settings, inputs) as live:
        assert live.scorer is not None
        yield live.scorer, live.background


@contextmanager
def as_explain(settings: Settings, inputs: Inputs) -> Iterator[tuple[Scorer, Background]]:
    with open_placing(settings, inputs, read_policies(settings, None)) as (scorer, background, _):
        yield scorer, background


@contextmanager
def as_canary(settings: Settings, inputs: Inputs) -> Iterator[tuple[Scorer, Background]]:
    provider = read_policies(settings, None)
    choose = None if provider is None else provider.policies.choose
    with open_canary(settings, inputs, choose, provider) as (scorer, background, _, _):
        yield scorer, background


EVERY_COMMAND = pytest.mark.parametrize("opened", [open_scorer, as_extender, as_explain, as_canary])


class Clusters:
    """Writes cluster files, and a model in which service 5 grows from two pods to nine in the evening."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._models = folder, str(folder / "models")
        Registry(self._models).publish(artefact_of(growing().model, datetime(2026, 5, 18, tzinfo=UTC)))

    def written(self, nodes: Sequence[Any], pods: Sequence[Any]) -> Inputs:
        path = self._folder / "cluster.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, *pods]}))
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
    assert of(nodeSelector=DOMAIN) == {}
    assert of(nodeSelector={"zone": "a"}, tolerations=[{"key": "zone", "operator": "Exists"}]) == pytest.approx(
        {"node-a": total}
    )
    assert of(ours=True) == pytest.approx({"private": total})
    tolerant = of(tolerations=[{"key": "dedicated", "operator": "Exists"}])
    assert tolerant == pytest.approx(dict.fromkeys(["node-0", "node-1", "node-2", "node-3", "tainted"], total / 5))
    with_gpu = [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1", GPU: "1"}}}]
    assert of(containers=with_gpu) == pytest.approx({"gpu": total})


STACK = {"spread_or_stack": 1.0}
FULL = [pod(f"full-{i}", f"node-{i}", service=None, cpu="30") for i in range(4)]


def stacks(scorer: Scorer, scheduler: str = "") -> float:
    """Points that a fuller node has before an emptier one, for an ordinary pod."""
    with scorer.tables.reading() as cluster:
        waiting = cluster.state.find_pod("shop", "waiting")
    assert waiting is not None
    scores = scorer.score(waiting, ["node-0", "node-1"], STACK).scores
    return float(scores[0] - scores[1])


@EVERY_COMMAND
def test_nodes_that_ordinary_pods_cannot_use_do_not_count_for_the_water_level(clusters: Clusters, opened: Open) -> None:
    pods = [*FULL, pod("more", "node-0", service=None, cpu="4"), pod("waiting", "", service=None)]
    with clusters.open(PLAIN, pods) as scorer:
        before = stacks(scorer)
    assert before > 5.0  # three quarters are requested
    with clusters.open([*PLAIN, *OTHERS], pods, opened) as scorer:
        assert stacks(scorer) == pytest.approx(before)


def test_the_level_is_that_of_the_pool_of_the_profile(clusters: Clusters) -> None:
    pods = [*FULL, pod("more", "node-0", service=None, cpu="4")]
    with clusters.open([*PLAIN, *OTHERS], [*pods, pod("waiting", "", service=None)]) as scorer:
        assert stacks(scorer) > 5.0
    with clusters.open([*PLAIN, *OTHERS], [*pods, pod("waiting", "", service=None, scheduler=OURS)]) as scorer:
        assert stacks(scorer) < -5.0  # the private node is empty


def test_the_dry_run_names_the_level_of_each_pool_of_the_waiting_pods(clusters: Clusters) -> None:
    jobs = {"job": {"scheduler_name": "jobs"}, "profiles": ["online", "job"]}
    waiting = [pod("waiting", "", service=None, scheduler=OURS), pod("run", "", service=None, scheduler="jobs")]
    full = [pod("full", "private", service=None, cpu="30")]
    inputs = clusters.written([*PLAIN, *OTHERS], [*full, *waiting])
    with open_plan(with_options(SETTINGS, {"schedule": jobs}), inputs) as (background, decide):
        background.wait_synced(0.0)
        planned = decide()
    assert planned.stacks == {"online": 1.0, "job": 1.0}


@pytest.mark.parametrize("opened", [as_explain, as_canary])
def test_a_policy_document_is_read_by_the_settings_of_the_component_that_places(
    clusters: Clusters, tmp_path: Path, opened: Open
) -> None:
    document = tmp_path / "policies.yaml"
    document.write_text("default: kept\npolicies:\n  kept:\n    cards: {without_cards: soft}\n")
    settings = with_options(
        Settings(), {"policies": {"file": str(document)}, "node_rules": {"cards": {"without_cards": "off"}}}
    )
    nodes = [*PLAIN, node("gpu", gpu="8"), node("private", labels=DOMAIN), node("private-gpu", labels=DOMAIN, gpu="8")]
    for scheduler, expected in (("", {"node-0", "node-1", "node-2", "node-3"}), (OURS, {"private"})):
        pods = [pod("p0", "node-0", scheduler=scheduler), pod("p1", "node-1", scheduler=scheduler)]
        with clusters.open(nodes, pods, opened, settings) as scorer, scorer.tables.reading() as cluster:
            masks, (mask,) = cluster.usable_nodes.usable_by([cluster.state.pods["p0"]])
            names = cluster.state.names
            assert {names[row] for row in masks[mask].nonzero()[0].tolist()} == expected


@pytest.mark.parametrize(
    ("of_settings", "of_policy", "usable"), [("hard", "off", "gpu plain"), ("off", "hard", "plain")]
)
def test_the_rule_of_cards_of_a_policy_takes_the_place_of_that_of_the_settings(
    clusters: Clusters, tmp_path: Path, of_settings: str, of_policy: str, usable: str
) -> None:
    document = tmp_path / "policies.yaml"
    document.write_text(f"default: own\npolicies:\n  own:\n    cards: {{without_cards: {of_policy}}}\n")
    rules = {"cards": {"without_cards": of_settings}}
    settings = with_options(Settings(), {"policies": {"file": str(document)}, "node_rules": rules})
    nodes = [node("plain", labels=DOMAIN), node("gpu", labels=DOMAIN, gpu="8")]
    with (
        clusters.open(nodes, [pod("p", "plain", scheduler=OURS)], as_explain, settings) as scorer,
        scorer.tables.reading() as cluster,
    ):
        masks, (mask,) = cluster.usable_nodes.usable_by([cluster.state.pods["p"]])
        names = cluster.state.names
    assert " ".join(sorted(names[row] for row in masks[mask].nonzero()[0].tolist())) == usable
