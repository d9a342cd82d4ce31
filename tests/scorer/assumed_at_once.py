"""Random clusters in which many pods are assumed: at once, or one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hypothesis import strategies as st

from admission.templates.shaping_annotations import TEMPLATES_ANNOTATION, Applied, record_text
from forecast.service_key import NO_OWNER, Owner
from kube.objects.constraints import (
    HostPort,
    LabelSelector,
    Operator,
    PodAffinityTerm,
    PodConstraints,
    PodVolume,
    PreferredPodTerm,
    Requirement,
)
from kube.objects.objects import Phase, PodInfo
from kube.tables.changes import Change, one_by_one
from scorer.predicted.declared_use import VIRTUAL_REQUEST_ANNOTATION
from scorer.predicted.profiles import Profiles
from tests.scorer.live_cluster import at, model, pod_of
from tests.scorer.scorer_at import LiveScorer

N_NODES: Final = 4
_NEAR = PodAffinityTerm(
    LabelSelector((Requirement("app", Operator.IN, ("web",)),)), "kubernetes.io/hostname", frozenset({"shop"})
)
_PLAIN = replace(pod_of(3, "plain", cpu=2.0), phase=Phase.PENDING)

SHAPES: Final = (
    _PLAIN,
    replace(_PLAIN, owner=NO_OWNER, owner_uid="", labels={}),  # bare pods, a service each
    replace(_PLAIN, owner=Owner("Job", "nightly-28540000"), owner_uid="job"),  # no model knows it
    replace(_PLAIN, owner=Owner("DaemonSet", "agent"), owner_uid="ds"),  # comes with the node
    replace(_PLAIN, terminating=True),
    replace(_PLAIN, started=at(16.9)),
    replace(_PLAIN, requests={"cpu": 1.0, "nobody/has-this": 3.0}),
    replace(_PLAIN, annotations={VIRTUAL_REQUEST_ANNOTATION: '{"cpu": "800m"}'}),
    replace(_PLAIN, annotations={TEMPLATES_ANNOTATION: record_text([Applied("pool", 1, "NodeSchedulerConfig/p", 1)])}),
    replace(
        _PLAIN,
        labels={"app": "web"},
        owner=Owner("StatefulSet", "web"),
        owner_uid="web",
        constraints=PodConstraints(
            affinity=(_NEAR,),
            anti_affinity=(replace(_NEAR, topology_key="zone"),),
            preferred_affinity=(PreferredPodTerm(7, _NEAR),),
        ),
        host_ports=(HostPort("0.0.0.0", "TCP", 80),),
        volumes=(PodVolume(claim="data"), PodVolume(disk=("gce", "d"), disk_read_only=True)),
    ),
    replace(_PLAIN, constraints=PodConstraints(preferred_anti_affinity=(PreferredPodTerm(8, _NEAR),))),
)


@dataclass(frozen=True)
class Batch:
    """before: pods put before it, some of them bound; pods, rows: what is assumed.

    is_followed : somebody makes tables from a snapshot meanwhile
    """

    before: tuple[PodInfo, ...]
    pods: tuple[PodInfo, ...]
    rows: tuple[int, ...]
    with_model: bool
    is_followed: bool


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """Mostly runs of alike pods that wait, with what must not be among them here and there."""
    before: list[PodInfo] = []
    pods: list[PodInfo] = []
    for number, shape in enumerate(draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=4))):
        for member in range(draw(st.integers(1, 6))):
            name = f"p{number}-{member}"
            overdue = draw(st.sampled_from([0.0, 0.0, 700.0]))
            pod = replace(shape, uid=f"u-{name}", name=name, created=at(17) - overdue)
            match draw(st.sampled_from(["waits"] * 7 + ["new", "bound", "namesake", "older", "renamed", "twice"])):
                case "new":
                    pass
                case "bound":
                    before.append(replace(pod, node=f"node-{member % N_NODES}"))
                case "namesake":
                    before.append(replace(pod, uid="another"))
                case "older":  # whoever asks knows an earlier state of it
                    before.append(replace(pod, priority=1))
                case "renamed":  # to what another one is called
                    before += [pod, replace(pod, uid="another", name="taken")]
                    pods.append(replace(pod, name="taken"))
                    continue
                case "twice":
                    before.append(pod)
                    pods.append(pod)
                case _:
                    before.append(pod)
            pods.append(pod)
    rows = draw(st.lists(st.integers(0, N_NODES - 1), min_size=len(pods), max_size=len(pods)))
    return Batch(tuple(before), tuple(pods), tuple(rows), draw(st.booleans()), draw(st.booleans()))


def prepared(batch: Batch, attach: Callable[[LiveScorer], None] = lambda _: None) -> LiveScorer:
    """A cluster as it is before the batch. attach: further tables, before any pod is there."""
    tested = LiveScorer(without_model=not batch.with_model)
    attach(tested)
    for pod in batch.before:
        tested.put(pod)
    with tested.scorer.tables.reading() as cluster:
        if batch.is_followed:
            cluster.snapshot(Profiles(model()))
    return tested


def heard_by(tested: LiveScorer) -> list[Change]:
    """What is told from now on, pod by pod."""
    heard: list[Change] = []
    with tested.scorer.tables.reading() as cluster:
        cluster.listeners.append(lambda changes: heard.extend(one_by_one(changes)))
    return heard


_Step = tuple[str, Any]


def follow_ups(batch: Batch) -> st.SearchStrategy[list[_Step]]:
    """What may happen to assumed pods afterwards, in any order."""
    pods = st.sampled_from(batch.pods)
    return st.lists(
        st.one_of(
            st.tuples(st.just("bound"), pods),
            st.tuples(st.just("elsewhere"), pods),
            st.tuples(st.just("forget"), pods),
            st.tuples(st.just("delete"), pods),
            st.tuples(st.just("later"), st.sampled_from([1.0, 30.0, 90.0])),
        ),
        max_size=12,
    )


def happen(tested: LiveScorer, batch: Batch, steps: Sequence[_Step]) -> None:
    """The same in every cluster."""
    row_of = {pod.uid: row for pod, row in zip(batch.pods, batch.rows, strict=True)}
    for what, about in steps:
        match what:
            case "bound":
                tested.put(replace(about, node=f"node-{row_of[about.uid]}"))
            case "elsewhere":
                tested.put(replace(about, node="node-0", phase=Phase.RUNNING, started=tested.clock.now))
            case "forget":
                tested.scorer.tables.forget(about.uid)
            case "delete":
                tested.delete(about)
            case _:
                tested.later(about)
