"""Annotations that cannot be read are told of, once per controller."""

from __future__ import annotations

from dataclasses import replace

from kube.objects.objects import PodInfo
from scheduler.profiles.job.job_annotations import DEADLINE_ANNOTATION
from scheduler.profiles.job.unread_annotations import UnreadTerms
from scorer.assuming_cluster import AssumingCluster
from scorer.options import ScorerOptions
from scorer.runs.declared_run import EXPECTED_RUN_ANNOTATION
from tests.scheduler.profiles.job.serverless.providers_world import job_pod


def _world() -> tuple[AssumingCluster, UnreadTerms]:
    cluster = AssumingCluster(ScorerOptions(), now=0.0)
    unread = UnreadTerms(cluster.state, lambda pod: pod.scheduler_name != "other")
    cluster.listeners.append(unread.apply)
    return cluster, unread


def _saying(name: str, **said: str) -> PodInfo:
    return replace(job_pod(name, owner_uid="u"), annotations=dict(said))


def test_a_mistake_is_told_once_for_all_pods_of_a_job() -> None:
    cluster, unread = _world()
    bad = {DEADLINE_ANNOTATION: "soon", EXPECTED_RUN_ANNOTATION: "20m"}
    for name in ("a", "b"):
        cluster.put(replace(_saying(name), annotations=bad))
    ((pod, note),) = unread.take()
    assert pod.name == "a" and "'soon'" in note and DEADLINE_ANNOTATION in note and "20m" not in note
    cluster.put(replace(_saying("c"), annotations=bad))
    assert unread.take() == []
    cluster.put(replace(_saying("d"), annotations={DEADLINE_ANNOTATION: "later"}))
    assert [pod.name for pod, _ in unread.take()] == ["d"]


def test_pods_of_others_and_those_that_can_be_read_are_no_news() -> None:
    cluster, unread = _world()
    cluster.put(replace(_saying("a"), annotations={DEADLINE_ANNOTATION: "2h"}))
    cluster.put(replace(_saying("b"), annotations={DEADLINE_ANNOTATION: "soon"}, scheduler_name="other"))
    assert unread.take() == []


def test_what_waits_is_found_again_when_the_tables_are_made_anew() -> None:
    cluster, unread = _world()
    cluster.listeners.clear()
    cluster.put(replace(_saying("a"), annotations={DEADLINE_ANNOTATION: "soon"}))
    unread.rebuild()
    assert [pod.name for pod, _ in unread.take()] == ["a"]
