"""Pods that a real kube-scheduler is to place, and what can be read of them and of the extender afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import urllib3

from testing.processes.scorer_process import ScorerProcess
from testing.servers.cluster_objects import ClusterWriter, Manifest
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually


class Placing:
    """Context manager; whatever was made is deleted in the end."""

    def __init__(self, writer: ClusterWriter) -> None:
        self._writer = writer
        self._made: list[Manifest] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._writer.delete_many(reversed(self._made))

    def make(self, *manifests: Manifest) -> None:
        """Create nodes or pods."""
        self._made += self._writer.create_many(manifests)

    def place(self, pods: Iterable[Manifest], seconds: float = 60) -> dict[str, str]:
        """Create pods and wait until all have a node; node by name."""
        pods = list(pods)
        self.make(*pods)
        return self.wait([pod["metadata"]["name"] for pod in pods], seconds)

    def wait(self, names: Sequence[str], seconds: float = 60) -> dict[str, str]:
        """Wait until these pods have a node; node by name."""
        nodes: dict[str, str] = {}

        def placed() -> bool:
            pods = self._pods(names)
            nodes.update({name: pod["spec"].get("nodeName", "") for name, pod in pods.items()})
            return len(pods) == len(names) and all(nodes.values())

        assert eventually(placed, seconds), f"not placed: {nodes}; {[self.message(name) for name in names]}"
        return nodes

    def message(self, name: str) -> str:
        """Why a pod is not placed, as its PodScheduled condition says; '' = it is, or was not tried yet."""
        conditions = self._pods([name])[name].get("status", {}).get("conditions", [])
        said = [one for one in conditions if one["type"] == "PodScheduled" and one["status"] == "False"]
        return str(said[0].get("message", "")) if said else ""

    def _pods(self, names: Sequence[str]) -> dict[str, Manifest]:
        listed = {pod["metadata"]["name"]: pod for pod in self._writer.list_all("pods")}
        return {name: listed[name] for name in names if name in listed}


def counter(process: ScorerProcess, name: str, **labels: str) -> float:
    """A metric with exactly these labels; 0 where it is not there yet."""
    inside = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    lines = process.http.get("/metrics").raise_for_status().text.splitlines()
    return next((float(line.split()[-1]) for line in lines if line.startswith(f"{name}{{{inside}}} ")), 0.0)


def decisions(log: Path, names: Iterable[str], seconds: float = 20) -> dict[str, dict[str, Any]]:
    """Lines of a decision log by name of the pod, once all of these are there; one line for each pod."""
    wanted, lines = set(names), list[dict[str, Any]]()

    def written() -> bool:
        text = log.read_text() if log.exists() else ""
        lines[:] = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return wanted <= {line["pod"].partition("/")[2] for line in lines}

    assert eventually(written, seconds), f"not logged: {wanted - {line['pod'].partition('/')[2] for line in lines}}"
    by_name = {line["pod"].partition("/")[2]: line for line in lines}
    assert len(by_name) == len(lines), "a pod has two lines"
    return {name: by_name[name] for name in wanted}


def events(plane: ControlPlane, reason: str) -> dict[str, dict[str, Any]]:
    """Events of all namespaces with this reason, by name of the pod."""
    with urllib3.PoolManager(ca_certs=str(plane.ca_file)) as pool:
        answer = pool.request(
            "GET",
            f"{plane.url}/apis/events.k8s.io/v1/events",
            headers={"Authorization": f"Bearer {plane.token}"},
            timeout=30,
        )
    assert answer.status == 200, answer.data
    return {one["regarding"]["name"]: one for one in answer.json()["items"] if one["reason"] == reason}
