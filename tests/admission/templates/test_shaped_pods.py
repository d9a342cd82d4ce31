"""Which pods were shaped by which binding, while the cluster changes, and what is exported of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from admission.templates import shaped_pods as effect_metrics
from admission.templates.shaped_pods import ShapedPods, ShapedPodsCollector, bindings_of, seated_pods, shaped_pods
from admission.templates.shaping_annotations import (
    MOST_OF_POD,
    TEMPLATES_ANNOTATION,
    Applied,
    record_text,
)
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from scorer.highest_peak import share_of
from tests.scorer.live_cluster import node, pod_of
from tests.scorer.scorer_at import LiveScorer

BINDINGS = ("pool", "evening", "spread")


def record(*bindings: str) -> dict[str, str]:
    applied = [Applied(name, 3, "NodeSchedulerConfig/pool", 2) for name in bindings]
    return {TEMPLATES_ANNOTATION: record_text(applied)} if applied else {}


def shaped_pod(name: str, on: str, annotations: Mapping[str, str]) -> PodInfo:
    return pod_of(0, name, on, annotations=annotations)


def counts(shaped: ShapedPods, tested: LiveScorer) -> dict[tuple[str, str], int]:
    """Pods by binding and node."""
    with tested.scorer.tables.reading() as cluster:
        return {
            (binding, cluster.state.names[row]): pods
            for binding in shaped.largest(99)
            for row, pods in shaped.pods_of(binding).items()
        }


RECORDS = st.lists(st.sampled_from(BINDINGS), max_size=2, unique=True).map(lambda names: record(*names))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "delete", "node"]), st.integers(0, 5), st.integers(-1, 4), RECORDS),
        max_size=30,
    )
)
def test_following_equals_counting_anew(steps: list[tuple[str, int, int, dict[str, str]]]) -> None:
    tested = LiveScorer(without_model=True)
    shaped = shaped_pods(tested.scorer)
    for what, name, on, recorded in steps:
        pod = shaped_pod(f"p{name}", f"node-{on}" if on >= 0 else "", recorded)
        if what == "put":
            tested.put(pod)
        elif what == "delete":
            tested.delete(pod)
        elif name % 2:
            tested.scorer.tables.delete(Kind.NODES, node(f"node-{on}"))
        else:
            tested.scorer.tables.put(Kind.NODES, node(f"node-{max(on, 0)}"))
        with tested.scorer.tables.reading() as cluster:
            anew = ShapedPods(cluster.state)
        assert counts(shaped, tested) == counts(anew, tested)


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    many = shaped_pod("a", "node-0", record(*(f"b{i}" for i in range(500))))
    assert len(bindings_of(many)) == MOST_OF_POD
    monkeypatch.setattr("admission.templates.shaped_pods.MOST_BINDINGS", 2)
    tested = LiveScorer(without_model=True)
    shaped = shaped_pods(tested.scorer)
    tested.put(shaped_pod("a", "node-0", record("pool", "evening", "spread")))
    assert len(shaped) == 2
    tested.put(shaped_pod("b", "node-0", record("pool")))
    assert counts(shaped, tested) == {("evening", "node-0"): 1, ("pool", "node-0"): 2}
    tested.put(shaped_pod("a", "node-0", {}))
    assert counts(shaped, tested) == {("pool", "node-0"): 1}
    tested.delete(shaped_pod("b", "node-0", {}))
    assert len(shaped) == 0


def test_peaks_are_those_of_the_nodes() -> None:
    pods = [shaped_pod(f"p{i}", f"node-{i % 2}", record("pool")) for i in range(3)]
    tested = LiveScorer(pods=[*pods, pod_of(1, "other", "node-2"), shaped_pod("lost", "away", record("pool"))])
    tested.scorer.tables.refresh_overview()
    shaped = shaped_pods(tested.scorer)
    (seated,) = seated_pods(tested.scorer, shaped, most=9)
    assert seated.binding == "pool"
    by_peak = dict(zip(seated.pods.tolist(), seated.peaks.tolist(), strict=True))
    assert sorted(seated.pods.tolist()) == [1, 1, 2]
    assert np.isnan(seated.peaks).sum() == 1, "nothing is known of a node that only a pod names"
    assert by_peak[2] > 0
    shares = {node.name: share_of(node.peak) or 0.0 for node in tested.scorer.nodes().nodes}
    assert np.nanmax(seated.peaks) == max(shares["node-0"], shares["node-1"])
    assert np.nanmin(seated.peaks) == min(shares["node-0"], shares["node-1"])
    mean = (2 * shares["node-0"] + shares["node-1"]) / 3
    assert seated.statistics() == pytest.approx({"mean": mean, "highest": np.nanmax(seated.peaks)})


def test_without_a_model_there_are_pods_and_no_peaks() -> None:
    tested = LiveScorer(pods=[shaped_pod("a", "node-0", record("pool"))], without_model=True)
    (seated,) = seated_pods(tested.scorer, shaped_pods(tested.scorer), most=9)
    assert np.isnan(seated.peaks).all()
    assert (seated.pods.tolist(), seated.statistics()) == ([1], {})


def test_metrics_name_the_largest_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [shaped_pod(f"p{i}", f"node-{i}", record("pool", "evening")) for i in range(3)]
    shaped = shaped_pod("q", "node-0", record("pool", "spread"))
    waiting = shaped_pod("r", "", record("pool"))
    tested = LiveScorer(pods=[*pods, shaped, waiting])
    tested.scorer.tables.refresh_overview()
    registry = CollectorRegistry()
    registry.register(ShapedPodsCollector(tested.scorer, shaped_pods(tested.scorer)))
    text = generate_latest(registry).decode()
    assert 'forecast_binding_pods{binding="pool"} 4.0' in text
    assert 'forecast_binding_pods{binding="evening"} 3.0' in text
    for statistic in ("mean", "highest"):
        assert f'forecast_binding_predicted_peak{{binding="pool",statistic="{statistic}"}} 0.' in text
    monkeypatch.setattr(effect_metrics, "MOST_EXPORTED", 1)
    assert 'binding="spread"' not in generate_latest(registry).decode()
    assert 'binding="pool"' in generate_latest(registry).decode()
