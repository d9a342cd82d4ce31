"""A small Job controller beside a ControlPlane, which has none: as many pods as a Job wants, those that went anew.

Of the real one (pkg/controller/job) it has: parallelism, completions, suspend, the completion index of Indexed Jobs,
backoffLimit, rules of a podFailurePolicy that ignore pods by their conditions, podReplacementPolicy. A pod that is told
to go has failed unless it has succeeded: at once, or where only ended pods are replaced, once it has ended or is gone.
A Job of which more than backoffLimit have failed has failed, and its pods go. It has no backoff, no finalizers and no
other policies.
"""

from __future__ import annotations

import secrets
import threading
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Final, Self

from testing.servers.cluster_objects import ClusterWriter, Manifest, owned_by
from testing.servers.watching import PODS, Address, Watching

_JOBS: Final = "/apis/batch/v1/jobs"
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_BACKOFF_LIMIT: Final = 6


def is_active(pod: Mapping[str, Any]) -> bool:
    """Whether it counts as one of those that a Job has at work."""
    return pod["status"].get("phase") not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def has_failed(job: Mapping[str, Any], pod: Mapping[str, Any], *, is_gone: bool = False) -> bool:
    """Whether it counts as a failure of its Job (isPodFailed, matchPodFailurePolicy). is_gone: nobody sees it again."""
    phase = pod["status"].get("phase")
    goes = is_gone or (_goes(pod) and not _replaces_only_ended(job))
    if phase == "Succeeded" or not (phase == "Failed" or goes):
        return False
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules", [])
    met = {(one["type"], one["status"]) for one in pod["status"].get("conditions", [])}
    for rule in rules:
        if any((one["type"], one.get("status", "True")) in met for one in rule.get("onPodConditions") or []):
            return bool(rule["action"] != "Ignore")
    return True


def wanted(job: Mapping[str, Any], pods: list[Manifest], n_failed: int | None = None) -> list[int]:
    """Completion indices of the pods that are to be made now; those of a Job that is not Indexed mean nothing.

    n_failed : so far; None = those among `pods`
    """
    spec = job["spec"]
    if spec.get("suspend"):
        return []
    n_failed = sum(has_failed(job, one) for one in pods) if n_failed is None else n_failed
    if n_failed > spec.get("backoffLimit", _BACKOFF_LIMIT):
        return []
    phases = [one["status"].get("phase") for one in pods]
    parallelism, completions = spec.get("parallelism", 1), spec.get("completions", 1)
    at_work = [one for one in pods if is_active(one) or (_replaces_only_ended(job) and _is_going(one))]
    taken = {_index(one) for one in pods if one in at_work or one["status"].get("phase") == "Succeeded"}
    n_active = len(at_work)
    n_more = min(parallelism - n_active, completions - phases.count("Succeeded") - n_active)
    if spec.get("completionMode") == "Indexed":
        return [index for index in range(completions) if index not in taken][: max(0, n_more)]
    return [-1] * max(0, n_more)


def _goes(pod: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _is_going(pod: Mapping[str, Any]) -> bool:
    return _goes(pod) and pod["status"].get("phase") not in ("Succeeded", "Failed")


def _replaces_only_ended(job: Mapping[str, Any]) -> bool:
    return "podFailurePolicy" in job["spec"] or job["spec"].get("podReplacementPolicy") == "Failed"


def _index(pod: Mapping[str, Any]) -> int:
    return int(pod["metadata"].get("annotations", {}).get(_INDEX, -1))


class JobController:
    """Context manager: a thread that makes pods.

    patience_seconds : so long it waits for an API server that is being restarted
    failed           : names of Jobs that have failed
    """

    def __init__(self, plane: Address, *, patience_seconds: float = 0.0) -> None:
        self._plane, self._patience = plane, patience_seconds
        self._changed = threading.Condition()
        self._jobs: dict[str, Manifest] = {}
        self._pods: dict[str, dict[str, Manifest]] = defaultdict(dict)  # by UID of the Job
        self._gone: set[str] = set()  # UIDs of pods: the answer to a creation may come after all that became of it
        self._dirty: set[str] = set()
        self._failures: dict[str, set[str]] = defaultdict(set)  # UIDs of pods, by that of the Job
        self._told: dict[str, int] = {}  # how many failures the status of a Job shows
        self._ended = False
        self.failed: set[str] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.errors: list[str] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            patience = self._patience
            self._writer = stack.enter_context(ClusterWriter(self._plane, in_flight=16, patience_seconds=patience))
            stack.enter_context(Watching(self._plane, PODS, self._see_pod, patience_seconds=patience))
            stack.enter_context(Watching(self._plane, _JOBS, self._see_job, patience_seconds=patience))
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
                if owner in self._jobs and has_failed(self._jobs[owner], pod, is_gone=True):
                    self._failures[owner].add(pod["metadata"]["uid"])
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
                told, going, made = self._look(dirty)
            try:
                for job, status in told:
                    self._writer.patch_status(job, status)
                self._writer.delete_many(going)
                answers = self._writer.create_many(made)
            except RuntimeError as error:
                self.errors.append(str(error))
                continue
            with self._changed:
                for one in answers:
                    if one["metadata"]["uid"] not in self._gone:
                        of = self._pods[one["metadata"]["ownerReferences"][0]["uid"]]
                        of.setdefault(one["metadata"]["uid"], one)

    def _look(self, dirty: set[str]) -> tuple[list[tuple[Manifest, dict[str, Any]]], list[Manifest], list[Manifest]]:
        """Statuses of Jobs to be written, pods to be deleted, and pods to be made."""
        told, going, made = [], [], []
        for uid in dirty:
            job, pods, failures = self._jobs[uid], list(self._pods[uid].values()), self._failures[uid]
            failures |= {one["metadata"]["uid"] for one in pods if has_failed(job, one)}
            if len(failures) > job["spec"].get("backoffLimit", _BACKOFF_LIMIT):
                self.failed.add(job["metadata"]["name"])
                going += [one for one in pods if is_active(one)]
            else:
                made += [_pod_of(job, index) for index in wanted(job, pods, len(failures))]
            if len(failures) != self._told.get(uid, 0):
                self._told[uid] = len(failures)
                told.append((job, {"failed": len(failures)}))
        return told, going, made


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
