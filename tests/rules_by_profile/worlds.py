"""One cluster file, placed by each of our profiles and by kube-scheduler with the extender: `placed_by(where)`.

The profiles are those of `schedule --dry-run`, queue, cycle and all. The extender is asked over its own routes. What
kube-scheduler does is played: room, its LeastAllocated score at its full weight, and the points on top.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from extender.answer_settings import ExtenderServiceOptions
from extender.service.extender_app import create_app
from forecast_scheduler.commands.extender_setup import open_extender
from forecast_scheduler.commands.schedule.dry_run_of_file import open_dry_loop
from forecast_scheduler.commands.scorer.scorer_setup import Inputs
from forecast_scheduler.settings.document import Settings, with_options
from kube.decoding.decoding import Kind, decode_pod
from placement.feasibility import verdict
from placement.filters.catalogue import standard_filters
from placement.filters.filter import ClusterView
from placement.index.index import INDEXED_KINDS, PlacementIndex
from testing.app_client import AppClient
from tests.forecast_scheduler.made_cluster import cluster_file, made_node, made_pod

OUR_PROFILES: Final = ("online", "gpu", "job")
EXTENDER: Final = "extender"
PLACES: Final = (*OUR_PROFILES, EXTENDER)
"""Columns of the table in docs/use/node-rules.md."""

_SCHEDULERS: Final = {
    "online": "forecast-scheduler",
    "gpu": "gpu-scheduler",
    "job": "job-scheduler",
    EXTENDER: "default-scheduler",
}
_OURS: Final = "forecast-scheduler.io/"
_HIGHEST: Final = 1_200
"""kube-scheduler's own scores of a node come to no more."""


def card_node(name: str, cards: int = 0, *, model: str = "", cpu: str = "8", **labels: str) -> dict[str, Any]:
    """A node with cards of a model. labels: of ours, by the part behind the slash, with _ for -."""
    made = made_node(name, cpu=cpu, **({"nvidia.com/gpu": str(cards)} if cards else {}))
    made["metadata"]["labels"] |= {_OURS + key.replace("_", "-"): value for key, value in labels.items()}
    if model:
        made["metadata"]["labels"]["nvidia.com/gpu.product"] = model
    return made


def pod(
    name: str, *, cards: int = 0, cpu: str = "1", says: Mapping[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """A pod that waits. says: annotations of ours, by the part behind the slash; spec: see made_pod."""
    metadata = {"annotations": {_OURS + key: value for key, value in (says or {}).items()}, **spec.pop("metadata", {})}
    made = made_pod(name, cpu=cpu, metadata=metadata, **spec)
    if cards:
        resources = made["spec"]["containers"][0]["resources"]
        resources["requests"]["nvidia.com/gpu"] = str(cards)
        resources["limits"] = {"nvidia.com/gpu": str(cards)}
    return made


@dataclass(frozen=True, slots=True)
class Placed:
    """What became of a pod. node: "" = none; why_not: reasons."""

    node: str
    why_not: str


class World:
    """where: one of PLACES. Settings are those of `node_rules`, and others by their section."""

    def __init__(self, tmp_path: Path, where: str, rules: Mapping[str, Any] | None = None, **sections: Any) -> None:
        self.where, self._tmp_path = where, tmp_path
        schedule = {"profiles": list(OUR_PROFILES)} | dict(sections.pop("schedule", {}))
        given = {"schedule": schedule, "node_rules": dict(rules or {}), "extender": {"domain": "forecast-scheduler"}}
        self.settings = with_options(Settings(), given | sections)

    def place(self, nodes: Iterable[dict[str, Any]], pods: Iterable[dict[str, Any]]) -> dict[str, Placed]:
        """By name of the pods that wait, one after the other in this order. Pods on nodes are part of the cluster."""
        waiting, others = list[dict[str, Any]](), list[dict[str, Any]]()
        began = datetime.now(UTC) - timedelta(minutes=2)  # who waits for long does not count as waiting
        for at, one in enumerate(pods):
            (others if one["spec"].get("nodeName") else waiting).append(one)
            one["spec"]["schedulerName"] = _SCHEDULERS[self.where]
            one["metadata"]["creationTimestamp"] = f"{began + timedelta(seconds=at):%Y-%m-%dT%H:%M:%SZ}"
        run: Callable[[Path, list[dict[str, Any]]], dict[str, Placed]]
        run = self._extended if self.where == EXTENDER else self._planned
        file = cluster_file(self._tmp_path, *nodes, *others, *(() if self.where == EXTENDER else waiting))
        return run(file, waiting)

    def nodes_of(self, nodes: Iterable[dict[str, Any]], pods: Iterable[dict[str, Any]]) -> list[str]:
        """Where the pods that wait go, in their order."""
        return [one.node for one in self.place(nodes, pods).values()]

    def _planned(self, file: Path, waiting: list[dict[str, Any]]) -> dict[str, Placed]:
        with open_dry_loop(self.settings, Inputs(file, models=str(self._tmp_path / "none"))) as (scorer, _, world):
            scorer.tables.measure()
            scorer.tables.tick()
            world.loop.look_around()
            found = {one.pod.name: Placed(one.node, one.message) for one in world.loop.run()}
        return {one["metadata"]["name"]: found[one["metadata"]["name"]] for one in waiting}

    def _extended(self, file: Path, waiting: list[dict[str, Any]]) -> dict[str, Placed]:
        placed: dict[str, Placed] = {}
        with open_extender(self.settings, Inputs(file, models=str(self._tmp_path / "none"))) as live:
            scorer = live.scorer
            assert scorer is not None
            live.background.look_for_model()
            with scorer.tables.reading() as cluster:
                view = ClusterView(cluster, PlacementIndex(cluster.state))
                scorer.tables.attach(INDEXED_KINDS, view.index)
            with AppClient(create_app(live.extender, ExtenderServiceOptions(deadline=20))) as client:
                for one in waiting:
                    with scorer.tables.reading():
                        scorer.tables.put(Kind.PODS, decode_pod(one))
                        live.extender.rules.look()
                    placed[one["metadata"]["name"]] = self._as_kube_scheduler(client, view, one)
                    node = placed[one["metadata"]["name"]].node
                    if node:
                        scorer.tables.put(Kind.PODS, replace(decode_pod(one), node=node))
        return placed

    def _as_kube_scheduler(self, client: AppClient, view: ClusterView, one: dict[str, Any]) -> Placed:
        waiting, state = decode_pod(one), view.state
        own = verdict(waiting, view, standard_filters()).passes.nonzero()[0].tolist()
        names = [state.names[row] for row in own]
        asked = {"Pod": one, "Nodes": None, "NodeNames": names}
        answer = client.post("/filter", json=asked).json()
        why_not = {**(answer.get("FailedNodes") or {}), **(answer.get("FailedAndUnresolvableNodes") or {})}
        passing = list(answer["NodeNames"] or ())
        if not passing:
            return Placed("", "; ".join(sorted(set(why_not.values()))))
        replies = client.post("/prioritize", json={**asked, "NodeNames": passing}).json()
        points = {reply["Host"]: reply["Score"] for reply in replies}
        cpu = state.kinds["cpu"]

        def total(name: str) -> float:
            row = state.row_of[name]
            free = 1 - state.requested_units[row, cpu] / state.allocatable_units[row, cpu]
            return float(10 * points.get(name, 0) + _HIGHEST * free)

        return Placed(max(passing, key=lambda name: (total(name), name)), "; ".join(sorted(set(why_not.values()))))
