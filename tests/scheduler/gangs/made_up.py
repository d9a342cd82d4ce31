"""Groups and their pods, with what a test is about said and the rest filled in, and tables that a directory follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cluster.assuming_cluster import AssumingCluster
from forecast.service_key import NO_OWNER, Owner
from kube.objects.objects import PodInfo
from placement.pod_groups.group_of_pod import GROUP_LABEL, ROLE
from placement.pod_groups.minima import Minima
from placement.pod_groups.pod_group import PodGroupInfo
from scheduler.gangs.directory import GangDirectory
from scheduler.loop_settings import GangOptions
from scorer.options import ScorerOptions
from tests.placement.decisions.made_up import pod as some_pod

NOW = 1_795_284_000.0
TRAIN = "ml/train"


def group(
    members: int = 2, by_role: Mapping[str, int] | None = None, *, name: str = "train", uid: str = "", **changes: Any
) -> PodGroupInfo:
    """In namespace ml."""
    facts: dict[str, Any] = {"generation": 1, "created": NOW - 100, "minima": Minima(members, by_role or {})}
    return PodGroupInfo(namespace="ml", name=name, uid=uid or f"uid-of-{name}", **(facts | changes))


def member(uid: str, role: str = "", *, of: str = "train", node: str = "", owner: str = "", **changes: Any) -> PodInfo:
    """A pod of a group in namespace ml; of='' = of none."""
    labels = ({GROUP_LABEL: of} if of else {}) | ({ROLE: role} if role else {})
    made = replace(
        some_pod(uid, node, created=NOW - 50),
        namespace="ml",
        name=f"pod-{uid}",
        labels=labels,
        owner=Owner("Job", owner) if owner else NO_OWNER,
        owner_uid=owner,
        scheduler_name="forecast-scheduler",
    )
    return replace(made, **changes)


class Scene:
    """Tables, and a directory that follows them. told: keys that listeners were told, in order."""

    def __init__(self, *, options: GangOptions | None = None, synced: bool = True) -> None:
        self.now = NOW
        self.cluster = AssumingCluster(ScorerOptions(), now=NOW)
        self.directory = GangDirectory(
            self.cluster.state,
            options=options,
            is_ours=lambda pod: pod.scheduler_name == "forecast-scheduler",
            is_assumed=self.cluster.assumed.__contains__,
            clock=lambda: self.now,
        )
        self.cluster.listeners.append(self.directory.apply)
        self.told: list[str] = []
        self.directory.listeners.append(self.told.append)
        if synced:
            self.directory.replace_groups([])

    def put(self, *pods: PodInfo) -> None:
        for pod in pods:
            self.cluster.put_pod(pod)

    def assume(self, *pods: PodInfo, node: str = "n1") -> None:
        for pod in pods:
            self.cluster.assume(pod, node, self.now + 60)

    def gate(self, of: str = "train") -> str:
        """'' = it passes."""
        return self.directory.gate(member("asks", of=of)).reason
