"""Jobs, queues and providers on real servers: their manifests, and everything that happened to pods."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from testing.clusters.own_nodes import DOMAIN, LONG, OURS, overcommitted, settings_of_schedule
from testing.processes.scorer_process import ScorerProcess
from testing.servers.cluster_objects import ClusterWriter, Manifest, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.kubelets import FAILS, RUN_SECONDS
from testing.servers.provider_process import virtual_node
from testing.servers.watching import PODS, Address, Watching
from testing.waiting import eventually

JOBS: Final = "job-scheduler"
_PREFIX: Final = "forecast-scheduler.io/"


def job_owner(name: str) -> dict[str, str]:
    """The ownerReference of a Job that need not exist; a name that ends in a time is of a CronJob."""
    return {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": f"uid-{name}"}


def job_pod(
    name: str,
    *,
    owner: str = "",
    cpu: str = "100m",
    run_seconds: float | None = None,
    gates: Sequence[str] = (),
    annotations: Mapping[str, str] | None = None,
    **rest: Any,
) -> Manifest:
    """A pod that names the job profile, of a Job of this name (its own without); never restarted, as most are.

    annotations : without their prefix, such as {"deadline": "2h"}
    """
    said = {_PREFIX + key: value for key, value in (annotations or {}).items()}
    if run_seconds is not None:
        said[RUN_SECONDS] = f"{run_seconds:g}"
    made = pod(name, cpu=cpu, owner=job_owner(owner or name), annotations=said, scheduler_name=JOBS, **rest)
    made["spec"] |= {"restartPolicy": "Never"}
    if gates:
        made["spec"]["schedulingGates"] = [{"name": gate} for gate in gates]
    return made


def a_job(
    name: str,
    *,
    parallelism: int,
    completions: int,
    cpu: str = "100m",
    run_seconds: float | None = None,
    fails: bool = False,
    ignores_disruptions: bool = False,
    suspend: bool = False,
    annotations: Mapping[str, str] | None = None,
) -> Manifest:
    """A Job of the job profile, for testing/servers/job_controller.py.

    ignores_disruptions : as docs/use/jobs.md recommends it
    """
    said = {_PREFIX + key: value for key, value in (annotations or {}).items()}
    if run_seconds is not None:
        said[RUN_SECONDS] = f"{run_seconds:g}"
    if fails:
        said[FAILS] = "true"
    template = job_pod("template", cpu=cpu)
    failing: Manifest = {"backoffLimit": 1000}
    if ignores_disruptions:
        rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
        failing["podFailurePolicy"] = {"rules": [rule]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "parallelism": parallelism,
            "completions": completions,
            "completionMode": "NonIndexed",
            **failing,
            "suspend": suspend,
            "template": {"metadata": {"annotations": said}, "spec": template["spec"]},
        },
    }


def our_virtual_node(name: str, of: str, **rest: Any) -> Manifest:
    """A virtual node of our domain, of this provider."""
    return virtual_node(name, of, labels={DOMAIN: OURS}, **rest)


def provider(name: str, **limits: Any) -> dict[str, Any]:
    """An entry of schedule.job.serverless.providers that fails and recovers within seconds."""
    return {"name": name, "backoff_initial": "1s", "backoff_longest": "4s"} | limits


def queue(name: str, order: str, **rest: Any) -> dict[str, Any]:
    """An entry of schedule.queues."""
    return {"name": name, "order": order} | rest


def jobs_process(
    plane: ControlPlane, directory: Path, *arguments: str | Path, url: str = "", **schedule: Any
) -> ScorerProcess:
    """`schedule` with the profiles online and job, not started yet. url: of a proxy; schedule: its settings."""
    kubeconfig = plane.write_kubeconfig("admin", plane.token, url=url)
    settings = settings_of_schedule(profiles=["online", "job"], **schedule)
    return ScorerProcess(
        directory, "--kubeconfig", kubeconfig, *arguments, settings=settings, command="schedule", forked=True
    )


@dataclass(slots=True)
class Story:
    """What became of one pod.

    nodes               : that it was ever seen with
    deleted_after_start : it ran when it was told to go
    """

    uid: str
    name: str
    namespace: str
    owner: str
    nodes: list[str] = field(default_factory=list)
    phase: str = "Pending"
    has_started: bool = False
    is_terminating: bool = False
    is_gone: bool = False
    deleted_after_start: bool = False


class PodHistory:
    """Context manager: follows all pods from now on. For any thread.

    bound : UIDs in the order in which their bindings were seen
    most  : pods that had a node and had not ended, by node, at the worst moment
    """

    def __init__(self, plane: Address, *, patience_seconds: float = 0.0) -> None:
        """patience_seconds: so long it waits for an API server that is being restarted."""
        self._watching = Watching(plane, PODS, self._see, patience_seconds=patience_seconds)
        self._lock = threading.Lock()
        self._stories: dict[str, Story] = {}
        self._sitting: dict[str, set[str]] = defaultdict(set)
        self.bound: list[str] = []
        self.most: dict[str, int] = defaultdict(int)

    def __enter__(self) -> Self:
        self._watching.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._watching.__exit__(kind, error, traceback)

    def all(self, prefix: str = "") -> list[Story]:
        """Of pods whose names begin so, gone ones too."""
        assert not self._watching.failed, self._watching.failed
        with self._lock:
            return [one for one in self._stories.values() if one.name.startswith(prefix)]

    def named(self, name: str) -> Story:
        """The only one of this name. Raises ValueError."""
        (found,) = [one for one in self.all(name) if one.name == name]
        return found

    def count(self, predicate: Callable[[Story], bool], prefix: str = "") -> int:
        """Of how many this is true."""
        return sum(map(predicate, self.all(prefix)))

    def sitting(self) -> dict[str, int]:
        """How many pods that have not ended each node has."""
        with self._lock:
            return {node: len(pods) for node, pods in self._sitting.items()}

    def order(self, prefix: str = "") -> list[str]:
        """Names in the order in which they were bound."""
        with self._lock:
            names = [self._stories[uid].name for uid in self.bound]
        return [name for name in names if name.startswith(prefix)]

    def _see(self, kind: str, manifest: Manifest) -> None:
        metadata, status = manifest["metadata"], manifest.get("status", {})
        uid, node = metadata["uid"], manifest["spec"].get("nodeName", "")
        owner = next((one["name"] for one in metadata.get("ownerReferences", [])), "")
        with self._lock:
            story = self._stories.setdefault(uid, Story(uid, metadata["name"], metadata["namespace"], owner))
            if node and node not in story.nodes:
                story.nodes.append(node)
                self.bound.append(uid)
            story.has_started = story.has_started or bool(status.get("startTime"))
            story.phase = status.get("phase", story.phase)
            if "deletionTimestamp" in metadata and not story.is_terminating:
                story.is_terminating = True
                story.deleted_after_start = story.phase == "Running"
            story.is_gone = kind == "DELETED"
            if node:
                sitting = self._sitting[node]
                if story.is_gone or story.phase in ("Succeeded", "Failed"):
                    sitting.discard(uid)
                else:
                    sitting.add(uid)
                self.most[node] = max(self.most[node], len(sitting))


class JobsWorld:
    """Context manager: one scheduler for all tests of a file, each with nodes and pods of its own, gone afterwards.

    process : not started yet; it ends with the context
    """

    def __init__(self, writer: ClusterWriter, process: ScorerProcess) -> None:
        self.writer, self.process = writer, process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.process.close()

    def said(self) -> str:
        """For messages of assertions: the end of its log."""
        return self.process.log[-3000:]

    def awaits(self, condition: Callable[[], bool], what: object = "") -> None:
        """Raises AssertionError if that does not become true."""
        assert eventually(condition), (what, self.said())

    def pods(self, prefix: str = "") -> dict[str, Manifest]:
        """By name, of those whose names begin so."""
        found = {one["metadata"]["name"]: one for one in self.writer.list_all("pods")}
        return {name: one for name, one in found.items() if name.startswith(prefix)}

    def ends(self, manifest: Manifest, phase: str = "Succeeded") -> None:
        """What a kubelet says of a pod that has run, or could not."""
        self.writer.patch_status(manifest, {"phase": phase})

    @contextmanager
    def nodes(self, *manifests: Manifest, before: Callable[[], object] | None = None) -> Iterator[None]:
        """They are there inside, and it runs; afterwards neither they are there nor any pod.

        before : what it makes is there when the process starts, which finds all of it at once
        """
        self.writer.create_many(manifests)
        try:
            if before is not None:
                self.process.kill()
                before()
            if self.process.process is None or self.process.process_ended():
                self.process.start()
                self.process.wait_ready(LONG)
            yield
        finally:
            self.writer.delete_many(self.writer.list_all("jobs"))
            self.writer.delete_many(self.writer.list_all("pods"))
            self.writer.delete_many(manifests)


def waits_with_reason(manifest: Mapping[str, Any]) -> bool:
    """Return whether the status of a pod says that it waits, and why."""
    conditions = manifest.get("status", {}).get("conditions", [])
    return any(one["type"] == "PodScheduled" and one["status"] == "False" and one.get("message") for one in conditions)


def assert_sound(
    plane: ControlPlane, writer: ClusterWriter, process: ScorerProcess, history: PodHistory
) -> list[Manifest]:
    """Assert that no node is past allocatable and no pod was ever on two nodes or deleted once it ran; return the pods.

    Waits until the process is at rest.
    """
    at_rest = ("forecast_assumed_pods", "forecast_bindings_in_flight")
    assert eventually(lambda: all(process.metric(name) == 0 for name in at_rest)), process.log[-3000:]
    pods = writer.list_all("pods")
    assert overcommitted(pods, writer.list_all("nodes")) == {}
    assert not [one for one in history.all() if len(one.nodes) > 1]
    assert not [one for one in history.all() if one.deleted_after_start]
    return pods
