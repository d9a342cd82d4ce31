"""The scorer as a whole: which node it prefers, whatever it is asked about, and while models and days change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from base.errors import InputError, UnknownName
from cluster.predicted.power_growth import BEST_NODES, MEMORY_LIMIT, RESOURCE_WEIGHTS, power_growth
from forecast.resources import CPU, MEMORY
from kube.decoding.decoding import Kind
from scorer.judgement import Judgement, RejectedNodes
from scorer.options import ScorerOptions
from scorer.scorer import Scorer
from scorer.scores.energy import best_nodes, energy_growth
from scorer.scores.score_settings import ScoreOptions
from tests.scorer.live_cluster import at, loaded, model, pod_of, service
from tests.scorer.scorer_at import LiveScorer, shares, tables

PODS = [pod_of(i % 6, f"p{i}", f"node-{i % 3}", started=at(0), memory=1.0 + i) for i in range(9)]
EVERYTHING = dict.fromkeys(("predicted_peak", "least_allocated", "qos_balance", "balance", "most_available"), 1.0)


def test_the_best_node_is_the_best_by_the_definition() -> None:
    rng = np.random.default_rng(3)
    sizes = rng.choice([20.0, 40.0, 80.0], 30)
    pods = [
        pod_of(int(rng.integers(6)), f"p{i}", f"node-{rng.integers(30)}", started=at(0)) for i in range(90)
    ]  # fmt: skip
    tested = LiveScorer(pods=pods, sizes=sizes.tolist())
    predicted = tables(tested)
    days, weights = predicted.horizon.days, predicted.horizon.weights()
    replicas = np.array([sum(pod.name.startswith("p") and pod.owner.name == f"service-{s}-7d9f" for pod in pods)
                         for s in range(6)], dtype=float)  # fmt: skip
    curves = model().placement_curves(days, model().load_share(replicas))[0][:, :, 0].reshape(6, 5, -1)
    load = np.stack([predicted.bases.mean(f"node-{i}", np.full(5, size), days) for i, size in enumerate(sizes)])
    capacity = predicted.capacity
    for pod in pods:
        load[int(pod.node[5:])] += curves[int(pod.owner.name[8])]
    for number in range(6):
        usage = curves[number]
        cost = energy_growth(load, usage, weights, capacity, RESOURCE_WEIGHTS)
        with_pod = (load + usage)[:, MEMORY][:, weights > 0].max(axis=1) / capacity[:, MEMORY]
        few = best_nodes(cost, with_pod <= MEMORY_LIMIT, BEST_NODES)
        limits = np.where(np.isfinite(capacity), capacity, np.inf)[:, :, None]
        node_weights = RESOURCE_WEIGHTS * np.nan_to_num(capacity) / np.nanmean(capacity, axis=0)
        exact = power_growth(load[few] / limits[few], usage / limits[few], weights, node_weights[few])
        scored = tested.scorer.score(pod_of(number, "new"))
        best = scored.nodes[int(scored.scores.argmax())]
        # Rows of the table are float32: an equally good node may come first.
        position = [f"node-{i}" for i in few].index(best)
        assert exact[position] <= exact.min() * 1.001


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=0, max_size=8))
def test_nodes_may_be_named_in_any_order_twice_or_not_be_there(numbers: list[int]) -> None:
    tested = SHARED
    names = [f"node-{i}" for i in numbers]
    weights = {name: 1.0 for name in EVERYTHING if name != "predicted_peak"}
    scored = tested.scorer.score(pod_of(5, "new"), names, weights)
    everywhere = tested.scorer.score(pod_of(5, "new"), None, weights)
    known = dict(zip(everywhere.nodes, everywhere.scores.tolist(), strict=True))
    assert list(scored.nodes) == names
    there = [name for name in names if name in known]
    for name, score in zip(names, scored.scores.tolist(), strict=True):
        if name in known:
            assert score == pytest.approx(known[name])
        else:
            assert score == (pytest.approx(np.median([known[n] for n in there])) if there else 50.0)
    assert list(scored.unknown_nodes) == [name for name in names if name not in known]


SHARED = LiveScorer(pods=PODS)
SHARED.measure({f"node-{i}": float(3 * i) for i in range(4)})


def test_no_nodes_at_all_are_no_trouble() -> None:
    empty = Scorer()
    assert empty.score(pod_of(0, "x")).scores.shape == (0,)
    assert empty.score(pod_of(0, "x"), ["a"]).scores.tolist() == [50.0]
    assert empty.explain(pod_of(0, "x")).nodes == ()
    assert empty.status().ready is False
    assert empty.virtual_available().nodes == ()
    assert empty.node_figures().usage.shape == (0, 5, 2)
    assert empty.heat_map().nodes == ()
    empty.tables.refresh_overview()
    empty.tables.tick()
    assert empty.self_check().sound
    installed = LiveScorer(sizes=[])
    installed.scorer.tables.refresh_overview()
    assert installed.scorer.score(pod_of(0, "x")).scores.shape == (0,)
    assert installed.scorer.explain(pod_of(0, "x"), weights=EVERYTHING).nodes == ()
    assert installed.scorer.heat_map().nodes == ()
    assert installed.scorer.service_peaks()[0] == ()


def test_a_hot_node_is_avoided_for_what_its_forecast_did_not_say() -> None:
    tested = LiveScorer()
    pod = pod_of(0, "new")
    tested.measure_as_expected()
    calm = tested.scorer.score(pod)
    best = calm.nodes[int(calm.scores.argmax())]
    row = int(best[5:])
    usage = tables(tested).base_now() + tables(tested).pods_now()
    usage[row, CPU] += 20
    tested.measure({f"node-{i}": usage[i] for i in range(4)})
    hot = tested.scorer.score(pod)
    assert hot.nodes[int(hot.scores.argmax())] != best
    assert hot.scores[row] < calm.scores[row]


def test_explaining_where_a_pod_runs_judges_as_if_it_did_not_and_changes_nothing() -> None:
    tested = LiveScorer(pods=PODS)
    before = shares(tested)
    for pod in PODS:
        explanation = tested.scorer.explain(pod)
        here = next(n for n in explanation.nodes if n.node == pod.node)
        assert any("runs here now" in note for note in here.notes)
        assert here.peak_before is not None
        assert here.peak_with is not None
        assert here.peak_with.expected > here.peak_before.expected
    np.testing.assert_allclose(shares(tested), before, atol=1e-6)
    assert tested.scorer.self_check().sound
    alone = LiveScorer(pods=[p for p in PODS if p is not PODS[5]])
    waiting = replace(PODS[5], node="", created=at(17))
    alone.scorer.tables.put(Kind.PODS, waiting)
    there = {n.node: n.peak_with for n in tested.scorer.explain(PODS[5]).nodes}
    for found in alone.scorer.explain(waiting).nodes:
        peak = there[found.node]
        assert peak is not None
        assert found.peak_with is not None
        assert found.peak_with.expected == pytest.approx(peak.expected, rel=1e-5)


def test_the_peak_of_the_next_24_hours_is_that_of_the_list_of_nodes() -> None:
    tested = LiveScorer(pods=PODS)
    tested.scorer.tables.refresh_overview()
    tonight = {one.name: one.peak for one in tested.scorer.nodes(by_peak=True).nodes}
    for one in tested.scorer.explain(pod_of(5, "new")).nodes:
        assert one.peak_with is not None and one.week_with is not None
        assert one.peak_before == tonight[one.node] and one.peak_before is not None
        shares = [peak.share or 0.0 for peak in (one.peak_before, one.peak_with, one.week_with)]
        assert 0.0 < shares[0] < shares[1] <= shares[2] + 1e-9


def test_an_explanation_adds_up() -> None:
    explanation = SHARED.scorer.explain(pod_of(5, "new"), weights=EVERYTHING, top=3)
    assert len(explanation.nodes) == 3
    for found in explanation.nodes:
        rounding = 0.5e-4 * (len(found.contributions) + 1)  # each has four digits after the point, and so has the sum
        assert sum(part.points for part in found.contributions) == pytest.approx(found.score, abs=rounding)
        assert {part.name for part in found.contributions} == set(EVERYTHING)
    scores = [found.score for found in explanation.nodes]
    assert scores == sorted(scores, reverse=True)
    assert explanation.runner_up == explanation.nodes[1].node
    assert explanation.margin == pytest.approx(scores[0] - scores[1])
    one = SHARED.scorer.explain(pod_of(5, "new"), top=1)
    assert one.runner_up == SHARED.scorer.explain(pod_of(5, "new"), top=2).nodes[1].node
    lone = SHARED.scorer.explain(pod_of(5, "new"), ["node-0"])
    assert (lone.runner_up, lone.margin) == (None, None)


def test_what_does_not_exist_is_refused() -> None:
    with pytest.raises(UnknownName, match="shop/p0"):
        SHARED.scorer.find_pod("shop", "nobody")
    with pytest.raises(UnknownName, match="node-0"):
        SHARED.scorer.node_forecast("nobody")
    with pytest.raises(UnknownName):
        SHARED.scorer.service_forecast(service(77))
    with pytest.raises(InputError, match="did you mean predicted_peak"):
        SHARED.scorer.score(PODS[0], weights={"predicted_peek": 1.0})
    with pytest.raises(InputError, match="at least 1"):
        SHARED.scorer.explain(PODS[0], top=0)
    with pytest.raises(InputError, match="at least 1"):
        SHARED.scorer.heat_map(top=0)
    with pytest.raises(UnknownName):
        SHARED.scorer.heat_map(resource="gpu")
    with pytest.raises(InputError):
        Scorer(ScorerOptions(scores=ScoreOptions(weights={"nonsense": 1.0})))


def test_a_judged_pod_ranks_the_nodes_that_it_may_use_and_its_own_tells_why_not() -> None:
    tested, here = LiveScorer(pods=PODS), PODS[0].node
    others = [name for name in ("node-0", "node-1", "node-2", "node-3") if name != here]
    rejected = RejectedNodes("NodeAffinity", "no match", (here, others[2]), preemptible=False)
    judgement = Judgement(
        "profile online",
        ranking=(others[1],),
        totals={others[1]: 7.0},
        passed_over={others[0]: "pools"},
        rejections=(rejected,),
        n_nodes=4,
    )
    explained = tested.scorer.explain(PODS[0], judge=lambda pod: judgement)
    assert [(one.node, one.rank) for one in explained.nodes] == [(others[1], 1), (others[0], 2), (here, None)]
    assert "rejected by NodeAffinity: no match" in explained.nodes[-1].notes
    assert explained.margin is None and explained.runner_up is None
    named = tested.scorer.explain(PODS[0], [others[2]], judge=lambda pod: judgement)
    assert [(one.node, one.rank) for one in named.nodes] == [(others[2], None)]


def test_an_explanation_says_what_limits_hide_of_the_service() -> None:
    hidden = {"hidden_demand": {str(service(5)): [0.31, 1.2, 0, None]}}
    tested = LiveScorer(pods=PODS, model=loaded(replace(model(), info=model().info | hidden)))
    said = "throttled in 31 % of its peak half hours: real demand is hidden, at least 1.2 cores per pod"
    assert said in tested.scorer.explain(pod_of(5, "new")).reasons
    assert said not in tested.scorer.explain(pod_of(4, "new")).reasons
