"""A small Job controller beside a ControlPlane, which has none: as many pods as a Job wants, those that went anew.

Of the real one (pkg/controller/job) it has: parallelism, completions, suspend, backoffLimit, the completion index of
Indexed Jobs, terminating pods being replaced at once (podReplacementPolicy TerminatingOrFailed). It has no backoff, no
finalizers, no policies of failure or success, and writes no conditions: a test counts pods.
"""

from __future__ import annotations

import secrets
import threading
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Final, Self

from tests.servers.cluster_objects import ClusterWriter, Manifest, owned_by
from tests.servers.watching import PODS, Address, Watching

__all__ = ["JobController", "is_active", "wanted"]

_JOBS: Final = "/apis/batch/v1/jobs"
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_BACKOFF_LIMIT: Final = 6


def is_active(pod: Mapping[str, Any]) -> bool:
    """Whether it counts as one of those that a Job has at work."""
    return pod["status"].get("phase") not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def wanted(job: Mapping[str, Any], pods: list[Manifest]) -> list[int]:
    """Completion indices of the pods that are to be made now; those of a Job that is not Indexed mean nothing."""
    spec = job["spec"]
    if spec.get("suspend"):
        return []
    phases = [one["status"].get("phase") for one in pods]
    if phases.count("Failed") > spec.get("backoffLimit", _BACKOFF_LIMIT):
        return []
    parallelism, completions = spec.get("parallelism", 1), spec.get("completions", 1)
    taken = {_index(one) for one in pods if is_active(one) or one["status"].get("phase") == "Succeeded"}
    n_active = sum(map(is_active, pods))
    n_more = min(parallelism - n_active, completions - phases.count("Succeeded") - n_active)
    if spec.get("completionMode") == "Indexed":
        return [index for index in range(completions) if index not in taken][: max(0, n_more)]
    return [-1] * max(0, n_more)


def _index(pod: Mapping[str, Any]) -> int:
    return int(pod["metadata"].get("annotations", {}).get(_INDEX, -1))


class JobController:
    """Context manager: a thread that makes pods."""

    def __init__(self, plane: Address) -> None:
        self._plane = plane
        self._changed = threading.Condition()
        self._jobs: dict[str, Manifest] = {}
        self._pods: dict[str, dict[str, Manifest]] = defaultdict(dict)  # by UID of the Job
        self._gone: set[str] = set()  # UIDs of pods: the answer to a creation may come after all that became of it
        self._dirty: set[str] = set()
        self._ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.errors: list[str] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._writer = stack.enter_context(ClusterWriter(self._plane, in_flight=16))
            stack.enter_context(Watching(self._plane, PODS, self._see_pod))
            stack.enter_context(Watching(self._plane, _JOBS, self._see_job))
            self._thread.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join(30)
        self._stack.close()

    def _see_job(self, kind: str, job: Manifest) -> None:
        uid = job["metadata"]["uid"]
        with self._changed:
            if kind == "DELETED":
                self._jobs.pop(uid, None)
            else:
                self._jobs[uid] = job | {"apiVersion": "batch/v1", "kind": "Job"}
            self._dirty.add(uid)
            self._changed.notify()

    def _see_pod(self, kind: str, pod: Manifest) -> None:
        references = pod["metadata"].get("ownerReferences", [])
        owner = next((one["uid"] for one in references if one["kind"] == "Job"), "")
        with self._changed:
            if kind == "DELETED":
                self._pods[owner].pop(pod["metadata"]["uid"], None)
                self._gone.add(pod["metadata"]["uid"])
            else:
                self._pods[owner][pod["metadata"]["uid"]] = pod
            self._dirty.add(owner)
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._dirty or self._ended)
                if self._ended:
                    return
                dirty, self._dirty = self._dirty & self._jobs.keys(), set()
                made = [
                    _pod_of(self._jobs[uid], index)
                    for uid in dirty
                    for index in wanted(self._jobs[uid], list(self._pods[uid].values()))
                ]
            try:
                answers = self._writer.create_many(made)
            except RuntimeError as error:
                self.errors.append(str(error))
                continue
            with self._changed:
                for one in answers:
                    if one["metadata"]["uid"] not in self._gone:
                        of = self._pods[one["metadata"]["ownerReferences"][0]["uid"]]
                        of.setdefault(one["metadata"]["uid"], one)


def _pod_of(job: Manifest, index: int) -> Manifest:
    template, name = job["spec"]["template"], job["metadata"]["name"]
    metadata = dict(template.get("metadata", {}))
    if index >= 0:
        metadata["annotations"] = metadata.get("annotations", {}) | {_INDEX: str(index)}
    part = f"{name}-{index}" if index >= 0 else name
    metadata |= {
        "name": f"{part}-{secrets.token_hex(3)}",
        "namespace": job["metadata"]["namespace"],
        "ownerReferences": [owned_by(job)],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
