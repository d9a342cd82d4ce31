"""Pods that are alike are assumed at once, and nothing tells that from assuming them one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from admission.templates.shaped_pods import ShapedPods, shaped_pods
from admission.templates.shaping_annotations import TEMPLATES_ANNOTATION, Applied, record_text
from cluster.assuming_cluster import AssumingCluster
from cluster.live.charges import Charges
from cluster.predicted.pod_bounds import VIRTUAL_REQUEST_ANNOTATION
from cluster.predicted.pod_profiles import Profiles
from cluster.predicted.predicted_cluster import PredictedCluster
from cluster.tables.changes import Change, PodsSeated, one_by_one
from forecast.model import PeakModel
from forecast.service_key import NO_OWNER, Owner, ServiceKey
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
from kube.objects.objects import NodeInfo, PodInfo, PodPhase
from placement.index.affinity_terms import SittingTerm
from placement.index.index import INDEXED_KINDS, PlacementIndex
from tests.scorer.live_cluster import at, model, pod_of
from tests.scorer.scorer_at import LiveScorer

N_NODES: Final = 4
_NEAR = PodAffinityTerm(
    LabelSelector((Requirement("app", Operator.IN, ("web",)),)), "kubernetes.io/hostname", frozenset({"shop"})
)
_PLAIN = replace(pod_of(3, "plain", cpu=2.0), phase=PodPhase.PENDING)

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
                tested.put(replace(about, node="node-0", phase=PodPhase.RUNNING, started=tested.clock.now))
            case "forget":
                tested.scorer.tables.forget(about.uid)
            case "delete":
                tested.delete(about)
            case _:
                tested.later(about)


_LEAVES: Final = (str, bytes, int, float, bool, type(None), Enum, PodInfo, NodeInfo, ServiceKey, frozenset)
_ELSEWHERE: Final = {
    "listeners",
    "on_overdue",
    "on_new_pod",
    "profiles",
    "bases",
    "horizon",
    "options",
    "capacities",
    "expected_runs",
    "observed_runs",
    "run_of",
}


def values(thing: object) -> Any:
    """An object with all that it holds."""
    if isinstance(thing, np.ndarray):
        return thing.dtype.str, thing.shape[1:], _used(thing).tobytes()
    if isinstance(thing, PeakModel):
        return id(thing)
    if isinstance(thing, _LEAVES):
        return thing
    if isinstance(thing, dict):
        return {key.term if isinstance(key, SittingTerm) else key: values(value) for key, value in thing.items()}
    if isinstance(thing, set):
        return set(thing)
    if is_dataclass(thing):
        return {field.name: values(getattr(thing, field.name)) for field in fields(thing)}
    if hasattr(thing, "__dict__"):
        return {name: values(value) for name, value in vars(thing).items() if name not in _ELSEWHERE}
    return [values(one) for one in thing] if hasattr(thing, "__iter__") else repr(thing)


def _used(table: NDArray[Any]) -> NDArray[Any]:
    """Without the rows at the end that say nothing: how many more there are than used depends on how tables grew."""
    while len(table) and not np.nan_to_num(table[-1].astype(np.float64)).any():
        table = table[:-1]
    return table


def tables_of(cluster: AssumingCluster) -> dict[str, Any]:
    """A cluster's own tables."""
    state, predicted = cluster.state, cluster.predicted
    ordered: list[dict[str, Any]] = [state.pods, state.seat_of, state._waiting, cluster.charges._charges]
    ordered += [*state._owned.values()]
    if predicted is not None:
        ordered.append(predicted.placed)
    return {**values(cluster), "orders": [list(one) for one in ordered]}


def differences(a: Any, b: Any, where: str = "") -> list[str]:
    """Where two results of `values` differ, for people."""
    if isinstance(a, dict) and isinstance(b, dict):
        gone = [f"{where}: {key!r} is in one only" for key in a.keys() ^ b.keys()]
        return gone + [one for key in a.keys() & b.keys() for one in differences(a[key], b[key], f"{where}.{key}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [one for i, (x, y) in enumerate(zip(a, b, strict=True)) for one in differences(x, y, f"{where}[{i}]")]
    return [] if a == b else [f"{where}: {a!r} and {b!r}"]


class Followed:
    """A cluster before the batch, with all tables that follow it and what they are told."""

    def __init__(self, batch: Batch) -> None:
        self.index: PlacementIndex
        self.shaped: ShapedPods
        self.tested = prepared(batch, self.attach)
        self.heard = heard_by(self.tested)

    def attach(self, tested: LiveScorer) -> None:
        self.shaped = shaped_pods(tested.scorer)
        with tested.scorer.tables.reading() as cluster:
            self.index = PlacementIndex(cluster.state)
            tested.scorer.tables.attach(INDEXED_KINDS, self.index)

    def assume(self, batch: Batch, *, together: bool, until: float) -> None:
        with self.tested.scorer.tables.reading() as cluster:
            if together:
                cluster.assume_all(batch.pods, batch.rows, until)
            else:
                for pod, row in zip(batch.pods, batch.rows, strict=True):
                    cluster.assume(pod, cluster.state.names[row], until)

    def everything(self) -> list[Any]:
        with self.tested.scorer.tables.reading() as cluster:
            return [tables_of(cluster), values(self.index), values(self.shaped), list(self.heard)]


def assert_same(both: Sequence[Followed]) -> None:
    one, other = both
    assert differences(one.everything(), other.everything()) == []


@settings(max_examples=400 if settings.get_current_profile_name() == "long" else 12, deadline=None)
@given(st.data())
def test_at_once_is_the_same_as_one_by_one(data: st.DataObject) -> None:
    batch = data.draw(batches())
    both = [Followed(batch), Followed(batch)]
    assert_same(both)
    for one, together in zip(both, (True, False), strict=True):
        one.assume(batch, together=together, until=at(17) + 60)
    assert_same(both)
    steps = data.draw(follow_ups(batch))
    for one in both:
        happen(one.tested, batch, steps)
    assert_same(both)
    assert both[0].tested.scorer.self_check().drift == ()


def alike(n: int, shape: PodInfo = SHAPES[0]) -> list[PodInfo]:
    return [replace(shape, uid=f"u{i}", name=f"p{i}", created=at(17) + i) for i in range(n)]


def assumed(pods: Sequence[PodInfo], rows: Sequence[int]) -> tuple[LiveScorer, list[Change]]:
    tested, heard = LiveScorer(pods=pods), list[Change]()
    with tested.scorer.tables.reading() as cluster:
        cluster.listeners.append(heard.extend)
        cluster.assume_all(pods, rows, at(17) + 60)
    return tested, heard


def test_a_batch_is_told_in_the_order_of_its_seats() -> None:
    pods = [pod_of(3, "there", "node-3"), *alike(4)]  # its profile is there
    _, heard = assumed(pods, [3, 2, 0, 2, 1])
    (many,) = heard
    assert isinstance(many, PodsSeated)
    assert [pod.name for pod in many.pods] == ["p0", "p1", "p2", "p3"]
    assert [(one.pod.node, one.before, one.after) for one in many.each] == [
        (f"node-{seat.node}", None, seat) for seat in many.seats
    ]
    assert [seat.node for seat in many.seats] == [2, 0, 2, 1]


def test_nothing_is_done_pod_by_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [pod_of(3, "there", "node-3"), *alike(20)]
    tested = LiveScorer(pods=pods)

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("pod by pod")

    monkeypatch.setattr(PredictedCluster, "place", fail)
    monkeypatch.setattr(Charges, "charge", fail)
    with tested.scorer.tables.reading() as cluster:
        cluster.assume_all(pods[1:], [i % 4 for i in range(20)], at(17) + 60)
        assert cluster.state.pod_count.tolist() == [5, 5, 5, 6]


def test_whoever_wants_to_is_asked_before_an_assumption_ends() -> None:
    tested, _ = assumed(alike(3), [0, 1, 2])
    asked: list[list[str]] = []
    with tested.scorer.tables.reading() as cluster:
        cluster.on_overdue.append(lambda uids: asked.append(list(uids)))
    tested.later(59)
    assert asked == []
    tested.later(2)
    tested.later(1)
    assert asked == [["u0", "u1", "u2"]] * 2, "with every tick"
    with tested.scorer.tables.reading() as cluster:
        assert len(cluster.assumed) == 3, "nothing is forgotten by itself"
        cluster.keep("u1", at(17) + 600)
        cluster.forget_all(["u0", "u2", "nobody"])
        assert cluster.state.pod_count.tolist() == [0, 1, 0, 0]
    tested.later(1)
    assert len(asked) == 2
