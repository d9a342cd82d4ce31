"""A small Deployment controller beside a ControlPlane, which has none: releases, scaling, and pods that went anew.

Of the real one (pkg/controller/deployment, rolling updates) it has: a ReplicaSet per release, a quarter more pods than
wanted while one is rolled out, an old pod goes when a new one runs. Of old ReplicaSets the last two are kept.
"""

from __future__ import annotations

import secrets
import threading
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from testing.servers.cluster_objects import ClusterWriter, Manifest, pod, replica_set
from testing.servers.job_controller import is_active
from testing.servers.watching import PODS, Address, Watching

_HASH_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_KEPT_SETS: Final = 2


@dataclass(slots=True)
class Service:
    """What a Deployment asks for. cpu: of each pod; revision: the release."""

    namespace: str
    name: str
    scheduler_name: str
    replicas: int
    cpu: str = "500m"
    revision: int = 1
    sets: list[Manifest] = field(default_factory=list)


def template_hash(revision: int) -> str:
    """As Kubernetes writes them: letters and digits that form no words."""
    letters = []
    for _ in range(9):
        revision, rest = divmod(revision, len(_HASH_LETTERS))
        letters.append(_HASH_LETTERS[rest])
    return "".join(letters)


def plan(replicas: int, new: Sequence[bool], n_old: int) -> tuple[int, int]:
    """How many pods of this release to make and how many old ones to delete, or of this one where there are none.

    new : of each pod of this release, whether it runs;   n_old : pods of earlier ones
    """
    surge = -(-replicas // 4) if n_old else 0
    n_made = min(replicas - len(new), replicas + surge - len(new) - n_old)
    n_beyond = sum(new) + n_old - replicas
    if not n_old:
        n_beyond = len(new) - replicas
    return max(0, n_made), max(0, min(n_beyond, n_old or n_beyond))


class Deployments:
    """Context manager: a thread that makes and deletes pods."""

    def __init__(self, plane: Address, services: Collection[Service], *, patience_seconds: float = 0.0) -> None:
        self._plane, self._patience = plane, patience_seconds
        self.services = {one.name: one for one in services}
        self._changed = threading.Condition()
        self._pods: dict[str, dict[str, Manifest]] = defaultdict(dict)  # by name of the service, by UID
        self._gone: set[str] = set()
        self._dirty: set[str] = set()
        self._ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.errors: list[str] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            patience = self._patience
            self._writer = stack.enter_context(ClusterWriter(self._plane, in_flight=8, patience_seconds=patience))
            stack.enter_context(Watching(self._plane, PODS, self._see, patience_seconds=patience))
            self._thread.start()
            self._stack = stack.pop_all()
        self._touch(self.services)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join(30)
        self._stack.close()

    def release(self, names: Collection[str]) -> None:
        """A new version of each."""
        for name in names:
            self.services[name].revision += 1
        self._touch(names)

    def scale(self, names: Collection[str], by: int) -> None:
        """So many pods more or fewer of each."""
        for name in names:
            self.services[name].replicas += by
        self._touch(names)

    def unsettled(self) -> dict[str, str]:
        """Services that have not what they want, and what they have instead."""
        with self._changed:
            found = {name: self._standing(one) for name, one in self.services.items()}
        return {
            name: f"{sum(new)} of {self.services[name].replicas} run, {len(new)} are new, {len(old)} old"
            for name, (new, old) in found.items()
            if sum(new) != self.services[name].replicas or len(new) != sum(new) or old
        }

    def _touch(self, names: Collection[str]) -> None:
        with self._changed:
            self._dirty |= set(names)
            self._changed.notify()

    def _see(self, kind: str, manifest: Manifest) -> None:
        metadata = manifest["metadata"]
        name = metadata.get("labels", {}).get("app", "")
        if name not in self.services:
            return
        with self._changed:
            if kind == "DELETED":
                self._pods[name].pop(metadata["uid"], None)
                self._gone.add(metadata["uid"])
            else:
                self._pods[name][metadata["uid"]] = manifest
            self._dirty.add(name)
            self._changed.notify()

    def _standing(self, service: Service) -> tuple[list[bool], list[Manifest]]:
        """Of each pod of this release whether it runs; the pods of others. Those that go do not count."""
        current = template_hash(service.revision)
        alive = [one for one in self._pods[service.name].values() if is_active(one)]
        new = [one for one in alive if one["metadata"]["labels"]["pod-template-hash"] == current]
        return [_runs(one) for one in new], [one for one in alive if one not in new]

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._dirty or self._ended)
                if self._ended:
                    return
                dirty, self._dirty = self._dirty, set()
            try:
                for name in sorted(dirty):
                    self._reconcile(self.services[name])
            except RuntimeError as error:
                self.errors.append(str(error))
                self._touch(dirty)

    def _reconcile(self, service: Service) -> None:
        owner = self._set_of(service)
        with self._changed:
            new, old = self._standing(service)
            n_made, n_deleted = plan(service.replicas, new, len(old))
            hash_ = template_hash(service.revision)
            alive = [one for one in self._pods[service.name].values() if is_active(one)]
            of_this = [one for one in alive if one["metadata"]["labels"]["pod-template-hash"] == hash_]
        # Those that have no node go first, as in the real one (pkg/controller/controller_utils.go, ActivePods).
        going = sorted(old or of_this, key=_runs)[:n_deleted]
        self._writer.in_parallel(lambda one: self._writer.delete({"kind": "Pod"} | one, grace_seconds=30), going)
        made = self._writer.create_many(_pod_of(service, owner) for _ in range(n_made))
        with self._changed:
            for one in made:
                if one["metadata"]["uid"] not in self._gone:
                    self._pods[service.name].setdefault(one["metadata"]["uid"], one)
            for one in going:
                if (kept := self._pods[service.name].get(one["metadata"]["uid"])) is not None:
                    kept["metadata"].setdefault("deletionTimestamp", "")

    def _set_of(self, service: Service) -> Manifest:
        """The ReplicaSet of the release, made where there is none; superseded ones go."""
        name = f"{service.name}-{template_hash(service.revision)}"
        if not service.sets or service.sets[-1]["metadata"]["name"] != name:
            made = replica_set(
                name,
                namespace=service.namespace,
                deployment=service.name,
                revision=service.revision,
                desired_replicas=service.replicas,
            )
            service.sets.append(self._writer.create(made))
            while len(service.sets) > 1 + _KEPT_SETS:
                self._writer.delete({"kind": "ReplicaSet"} | service.sets.pop(0))
        return service.sets[-1]


def _runs(manifest: Manifest) -> bool:
    return bool(manifest.get("status", {}).get("phase") == "Running")


def _pod_of(service: Service, owner: Manifest) -> dict[str, Any]:
    return pod(
        f"{owner['metadata']['name']}-{secrets.token_hex(3)[:5]}",
        namespace=service.namespace,
        owner={"apiVersion": "apps/v1", "kind": "ReplicaSet"} | owner,
        cpu=service.cpu,
        labels=owner["spec"]["selector"]["matchLabels"],
        scheduler_name=service.scheduler_name,
    )
