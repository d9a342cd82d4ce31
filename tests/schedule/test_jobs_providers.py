"""Virtual nodes of providers that have a quota, reject, stall and die: no pod is lost, or runs twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from testing.clusters.job_world import (
    PodHistory,
    Story,
    a_job,
    assert_sound,
    job_pod,
    jobs_process,
    our_virtual_node,
    provider,
    waits_with_reason,
)
from testing.clusters.own_nodes import our_node, reported
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.job_controller import JobController
from testing.servers.kubelets import Conduct
from testing.servers.provider_process import ProviderProcess, lost
from testing.waiting import eventually

N_JOBS, PARALLELISM, COMPLETIONS = 4, 15, 30
FAILURES = {"rejecting": "rejected", "stalling": "stalled", "dying": "lost"}
"""How a provider fails, and what that is called."""


@pytest.fixture
def history(plane: ControlPlane) -> Iterator[PodHistory]:
    with PodHistory(plane) as history:
        yield history


def _serverless(*providers: dict[str, object]) -> dict[str, object]:
    return {"serverless": {"first": "serverless", "providers": list(providers)}, "valley": {"enabled": False}}


def test_a_quota_is_filled_to_the_last_pod_and_the_cluster_takes_what_is_over(
    plane: ControlPlane, writer: ClusterWriter, history: PodHistory, tmp_path: Path
) -> None:
    quota, on_cluster, n_pods = 30, 50, 100
    writer.create_many([our_virtual_node("alpha-0", "alpha"), our_node("real-0", cpu=3), our_node("real-1", cpu=2)])
    with jobs_process(plane, tmp_path, job=_serverless(provider("alpha", most_pods=quota))) as process:
        writer.create_many(job_pod(f"pod-{i}", owner=f"work-{i % 3}") for i in range(n_pods))

        def all_told() -> bool:
            pods = writer.list_all("pods")
            return all("nodeName" in one["spec"] or waits_with_reason(one) for one in pods)

        def at(phase: str = "Pending") -> Counter[str]:
            pods = [one for one in writer.list_all("pods") if one["status"]["phase"] == phase]
            return Counter(one["spec"].get("nodeName", "none").partition("-")[0] for one in pods)

        full = {"alpha": quota, "real": on_cluster}
        assert eventually(all_told), process.log[-3000:]
        assert at() == full | {"none": n_pods - quota - on_cluster}
        # What has ended takes nothing of the quota.
        there = [one for one in writer.list_all("pods") if one["spec"].get("nodeName") == "alpha-0"]
        for one in there[:10]:
            writer.patch_status(one, {"phase": "Succeeded"})
        assert eventually(lambda: at()["none"] == n_pods - quota - on_cluster - 10), process.log[-3000:]
        assert at() - Counter(none=n_pods) == Counter(full)
        assert history.most["alpha-0"] == quota
        assert_sound(plane, writer, process, history)


def test_providers_that_reject_stall_and_die_at_the_same_time_lose_no_pod(
    plane: ControlPlane, writer: ClusterWriter, history: PodHistory, tmp_path: Path
) -> None:
    """Their pods come back and end with the provider that is well, or in the cluster; then all are well again."""
    # One that dies is found out by its node, long before its pods are overdue.
    timeouts = {"stalling": "5s"}
    told = [provider(name, most_pods=10, start_timeout=timeouts.get(name, "100s")) for name in FAILURES]
    job = _serverless(*told, provider("well", most_pods=10, start_timeout="100s"))
    names = [*FAILURES, "well"]
    writer.create_many(our_virtual_node(f"{name}-0", name) for name in names)
    writer.create_many(our_node(f"real-{i}", cpu=1) for i in range(2))
    with ExitStack() as stack:
        playing = {
            name: stack.enter_context(ProviderProcess(plane, f"{name}-", start_seconds=0.3))
            for name in [*names, "real"]
        }
        process = stack.enter_context(jobs_process(plane, tmp_path, job=job))
        jobs = stack.enter_context(JobController(plane))
        work = [f"work-{i}" for i in range(N_JOBS)]
        patient = set(work[:2])  # they make a pod anew when it has ended, and not while it waits for a dead node
        writer.create_many(
            a_job(
                name,
                parallelism=PARALLELISM,
                completions=COMPLETIONS,
                run_seconds=0.5,
                ignores_disruptions=name in patient,
            )
            for name in work
        )
        for name in FAILURES:
            assert eventually(partial(_has_started_some, history, f"{name}-0")), (name, process.log[-3000:])
        playing["rejecting"].behave(Conduct.REJECTS)
        playing["stalling"].behave(Conduct.STALLS)
        playing["dying"].behave(Conduct.STALLS)  # it dies with pods that it has not started
        assert eventually(partial(_waits_to_be_started, writer, "dying-0")), process.log[-3000:]
        playing["dying"].kill()
        lost(writer, "dying-0")
        ran_before = {one.uid for one in history.all() if one.has_started}

        def waits_to_end(one: Story) -> bool:
            return one.owner in patient and one.is_terminating and not one.is_gone

        def work_is_done() -> bool:
            # What ran on the node when its provider died: nobody knows whether it still does.
            there = [one for one in history.all() if one.nodes == ["dying-0"] and not one.is_gone]
            stuck = Counter(one.owner for one in there if one.phase == "Running" or waits_to_end(one))
            done = Counter(one.owner for one in history.all() if one.phase == "Succeeded")
            return all(done[name] + stuck[name] == COMPLETIONS for name in work)

        assert eventually(work_is_done), (_told(history), jobs.errors, process.log[-3000:])
        for name, failure in FAILURES.items():
            came_back = [one for one in history.all("work-") if one.nodes == [f"{name}-0"] and not one.has_started]
            assert came_back and all(one.phase == "Failed" or one.is_terminating for one in came_back), name
            assert not ran_before & {one.uid for one in came_back}
            assert reported(process, "forecast_job_provider_failures_total", failure=failure, provider=name) >= 1
            assert reported(process, "forecast_job_provider_failures_total", failure=failure, provider="well") == 0
        ran = [one for one in history.all("work-") if one.has_started]
        n_waiting = history.count(waits_to_end)
        assert len(ran) == N_JOBS * COMPLETIONS - n_waiting, "a pod ran in vain, or twice"
        assert not [one for one in ran if one.is_terminating], "a pod was taken back that had started"
        assert not [one for one in history.all() if one.phase == "Pending" and not one.is_terminating]
        assert jobs.errors == [] and jobs.failed == set()

        playing["rejecting"].behave(Conduct.RUNS)
        playing["stalling"].behave(Conduct.RUNS)
        playing["dying"].start()
        # Each is found to be well again by a pod that it starts.
        writer.create(a_job("more", parallelism=50, completions=5000, run_seconds=0.5, cpu="50m"))
        for name in FAILURES:
            assert eventually(partial(_has_started_some, history, f"{name}-0", "more-")), process.log[-3000:]
        assert eventually(partial(_is_complete, history, dict.fromkeys(work, COMPLETIONS))), _told(history)
    assert not [one for one in history.all() if len(one.nodes) > 1 or one.deleted_after_start]


def _is_complete(history: PodHistory, completions: Mapping[str, int]) -> bool:
    done = Counter(one.owner for one in history.all() if one.phase == "Succeeded")
    return all(done[name] == count for name, count in completions.items())


def _has_started_some(history: PodHistory, node: str, prefix: str = "") -> bool:
    return history.count(lambda one: one.nodes == [node] and one.has_started, prefix) >= 2


def _waits_to_be_started(writer: ClusterWriter, node: str) -> bool:
    """Asked of the API server: what a watch shows may be a moment old."""
    there = [one for one in writer.list_all("pods") if one["spec"].get("nodeName") == node]
    return any(one["status"]["phase"] == "Pending" and "deletionTimestamp" not in one["metadata"] for one in there)


def _told(history: PodHistory) -> Counter[tuple[str, str, bool]]:
    return Counter((",".join(one.nodes), one.phase, one.is_terminating) for one in history.all())
