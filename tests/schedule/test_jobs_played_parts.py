"""What plays kubelets, providers and the Job controller in these tests does what it says."""

from __future__ import annotations

from typing import Any

import pytest

from testing.clusters.job_world import a_job, job_pod
from testing.servers.cluster_objects import Manifest
from testing.servers.job_controller import has_failed, wanted
from testing.servers.kubelets import Conduct, Kubelets


def _bound(name: str, node: str = "alpha-0", phase: str = "Pending", **rest: Any) -> Manifest:
    made = job_pod(name, node=node, status={"phase": phase}, **rest)
    made["metadata"]["uid"] = name
    return made


def test_a_pod_starts_runs_and_ends_when_it_is_time() -> None:
    kubelets = Kubelets("alpha-", start_seconds=2.0)
    kubelets.see("ADDED", _bound("ours", run_seconds=5.0), 100.0)
    kubelets.see("ADDED", _bound("theirs", node="beta-0"), 100.0)
    assert kubelets.due(101.9) == [] and kubelets.next_due() == 102.0
    (started,) = kubelets.due(102.0)
    assert started.uid == "ours" and started.status is not None and started.status["phase"] == "Running"
    assert started.status["startTime"] == "1970-01-01T00:01:42Z"
    kubelets.see("MODIFIED", _bound("ours", run_seconds=5.0, phase="Running"), 102.1)
    assert kubelets.due(106.9) == []
    (ended,) = kubelets.due(107.0)
    assert ended.status is not None and ended.status["phase"] == "Succeeded"
    assert kubelets.next_due() == float("inf")


def test_one_that_rejects_fails_pods_that_are_never_restarted() -> None:
    kubelets = Kubelets("alpha-")
    kubelets.see("ADDED", _bound("ran"), 100.0)
    kubelets.due(100.0)
    kubelets.behave(Conduct.REJECTS, 101.0)
    kubelets.see("ADDED", _bound("new"), 101.0)
    (rejected,) = kubelets.due(101.0)
    assert rejected.uid == "new" and rejected.status is not None
    assert (rejected.status["phase"], rejected.status["reason"]) == ("Failed", "ProviderFailed")


def test_one_that_stalls_starts_its_pods_when_it_is_well_again_but_for_those_that_went() -> None:
    kubelets = Kubelets("alpha-")
    kubelets.behave(Conduct.STALLS, 100.0)
    for name in ("stays", "goes"):
        kubelets.see("ADDED", _bound(name), 100.0)
    assert kubelets.due(200.0) == []
    going = _bound("goes")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    kubelets.see("MODIFIED", going, 201.0)
    (gone,) = kubelets.due(201.0)
    assert gone.uid == "goes" and gone.status is None
    kubelets.see("DELETED", going, 202.0)
    kubelets.behave(Conduct.RUNS, 203.0)
    assert [one.uid for one in kubelets.due(203.0)] == ["stays"]


@pytest.mark.parametrize(
    ("phases", "n_made"),
    [
        ([], 3),
        (["Pending", "Running"], 1),
        (["Succeeded"] * 3, 2),
        (["Succeeded"] * 4 + ["Running"], 0),
        (["Failed", "Failed", "Running"], 2),
        (["Failed"] * 3, 0),  # backoffLimit
    ],
)
def test_a_job_wants_as_many_pods_as_are_still_to_complete(phases: list[str], n_made: int) -> None:
    job = a_job("work", parallelism=3, completions=5, backoff_limit=2)
    assert len(wanted(job, [_bound(f"pod-{i}", phase=phase) for i, phase in enumerate(phases)])) == n_made
    job["spec"]["suspend"] = True
    assert wanted(job, []) == []


DISRUPTED = {"type": "DisruptionTarget", "status": "True"}


@pytest.mark.parametrize(
    ("phase", "goes", "is_gone", "counts", "ignored_counts"),
    [
        ("Running", False, False, False, False),
        ("Pending", True, False, True, False),
        ("Pending", True, True, True, False),
        ("Failed", False, False, True, False),
        ("Succeeded", True, True, False, False),
    ],
)
def test_a_pod_that_goes_has_failed_unless_it_has_succeeded_or_the_job_ignores_it(
    phase: str, goes: bool, is_gone: bool, counts: bool, ignored_counts: bool
) -> None:
    one = _bound("pod", phase=phase)
    one["status"]["conditions"] = [DISRUPTED]
    if goes:
        one["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    plain = a_job("work", parallelism=1, completions=1)
    ignoring = a_job("work", parallelism=1, completions=1, ignores_disruptions=True)
    assert has_failed(plain, one, is_gone=is_gone) is counts
    assert has_failed(ignoring, one, is_gone=is_gone) is ignored_counts
    del one["status"]["conditions"]
    assert has_failed(ignoring, one) is (phase == "Failed"), "only disruptions are ignored"


def test_a_job_with_a_failure_policy_replaces_what_has_ended_and_not_what_is_going() -> None:
    going = _bound("pod")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert len(wanted(a_job("work", parallelism=1, completions=1), [going])) == 1
    patient = a_job("work", parallelism=1, completions=1, ignores_disruptions=True)
    assert wanted(patient, [going]) == [] and len(wanted(patient, [])) == 1


def test_an_indexed_job_gets_back_the_index_that_went() -> None:
    job = a_job("work", parallelism=3, completions=3, indexed=True)
    pods = [_bound(f"pod-{i}", phase="Running") for i in range(3)]
    for i, one in enumerate(pods):
        one["metadata"]["annotations"] = {"batch.kubernetes.io/job-completion-index": str(i)}
    pods[1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert wanted(job, pods) == [1]
