"""Plans from live tables: hot nodes are relieved in the valley, by pods that may move."""

from __future__ import annotations

from dataclasses import replace

import pytest

from base.excluded import ExcludedOptions
from base.local_hours import ChangeWindows
from forecast.resources import CPU
from kube.decoding.decoding import Kind
from placement.disruption_budgets import DisruptionBudgets
from rebalancer.nights_needed import nights_needed
from rebalancer.plan_maker import MadePlan, OverloadRelief, PlanSources
from rebalancer.rebalance_settings import BudgetOptions, CostOptions, RebalanceOptions, UnforeseenOptions
from scorer.load_scale import percent
from testing.constants import with_constants
from tests.rebalancer.hot_cluster import hot_cluster, maker_of, plan_sources, pods_on_the_first_node, ready
from tests.scorer.live_cluster import at, pod_of, service
from tests.scorer.scorer_at import LiveScorer


def _tonight(tested: LiveScorer, sources: PlanSources | None = None) -> MadePlan:
    made = maker_of(tested, sources).for_tonight()
    assert made is not None
    return made


def test_the_hot_node_is_relieved_and_nothing_else_is_touched() -> None:
    made = _tonight(hot_cluster(size=16.0))
    assert made.plan.hot_before > 0 and made.plan.hot_after == 0
    assert made.moves and {move.source for move in made.moves} == {"node-0"}
    assert {move.target for move in made.moves} <= {"node-1", "node-2"}
    assert 0 < made.predicted_gain <= made.plan.most_gain * 1.001
    first = made.moves[0]
    assert first.reason.startswith("node-0: expected peak 1") and "% of cpu at " in first.reason
    assert "; after the plan " in first.reason and f", {first.target} " in first.reason
    assert (first.namespace, first.service) == ("shop", service(3)) and first.uid == f"uid-{first.pod}"


def test_what_a_plan_relieves_follows_the_hot_share() -> None:
    tested = hot_cluster()
    usual, early, late = (maker_of(tested, hot=hot).for_tonight() for hot in (0.8, 0.3, 1.0))
    assert usual is not None and early is not None and late is not None
    assert early.plan.hot_before > usual.plan.hot_before > late.plan.hot_before


def test_moves_start_in_the_valley_and_never_in_the_evening() -> None:
    made = _tonight(hot_cluster(hour=12.0))
    assert made.window is not None and made.window.end.hour <= 17
    made = _tonight(hot_cluster(hour=20.0))
    assert made.window is not None and (made.window.begin.hour >= 23 or made.window.begin.hour < 7)


def test_a_plan_is_for_the_peak_that_it_can_still_reach() -> None:
    reached = _tonight(hot_cluster(hour=3.0, size=16.0))
    assert reached.missed is None and reached.since == reached.made_at
    late = _tonight(hot_cluster(hour=19.0, size=16.0))
    assert late.window is not None and late.missed is not None
    assert late.since == late.window.begin > late.made_at and (late.until - late.since).total_seconds() == 86_400
    assert late.missed.node == "node-0" and late.missed.peak.share is not None and late.missed.peak.share > 0.8
    assert late.missed.peak.at < late.since
    # The evening under way counts for what is missed, and not for the plan.
    assert late.missed.hot > 0 and late.plan.hot_before > 0 and late.plan.hot_after == 0


def test_the_curve_goes_from_no_moves_to_all_that_help() -> None:
    tested = hot_cluster(hour=3.0, size=16.0)
    made, curve = _tonight(tested), maker_of(tested).curve()
    assert curve is not None
    moves, hot = [one.moves for one in curve.points], [one.hot for one in curve.points]
    assert moves[:3] == [0, 1, 2] and moves == sorted(set(moves))
    assert hot[0] == made.plan.hot_before and hot == sorted(hot, reverse=True) and hot[-1] == 0
    assert moves[0] < curve.needed <= moves[-1] and curve.per_node == curve.needed >= curve.per_service > 0
    tight = maker_of(tested, options=RebalanceOptions(budget=BudgetOptions(share=0.0))).curve()
    assert tight == curve  # whatever the budget says


def test_the_settings_that_mend_a_cluster_in_one_night_do() -> None:
    tested = hot_cluster(hour=3.0, size=16.0)
    budget = BudgetOptions(share=0.05)
    made, curve = _tonight(tested), maker_of(tested).curve()
    assert curve is not None
    needed = nights_needed(curve, made.n_pods, budget)
    assert (needed.per_night, needed.limit) == (1, "rebalance.budget.share") and needed.nights == curve.needed > 1
    raised = {name.rpartition(".")[2]: value for name, value in needed.in_one.items()}
    again = nights_needed(curve, made.n_pods, budget.model_copy(update=raised))
    assert (again.nights, again.in_one) == (1, {})
    enough = maker_of(tested, options=RebalanceOptions(budget=budget.model_copy(update=raised))).for_tonight()
    assert enough is not None and enough.plan.hot_after <= 0.05 * enough.plan.hot_before
    assert nights_needed(curve, made.n_pods, BudgetOptions(share=0.0)).nights is None


def test_pods_that_may_not_move_stay_and_are_counted_by_reason() -> None:
    pods = [
        replace(pod, annotations={"forecast-scheduler.io/rebalance": "never"}) if pod.name.startswith("3-") else pod
        for pod in pods_on_the_first_node()
    ]
    made = _tonight(hot_cluster(size=16.0, pods=pods))
    assert made.moves and service(3) not in {move.service for move in made.moves}
    assert sum(made.kept.values()) == 6 and all("rebalance" in why for why in made.kept)


def test_excluded_services_stay_and_their_load_still_counts() -> None:
    tested, excluded = hot_cluster(size=16.0), ExcludedOptions(services=(f"shop/{service(3).name}",))
    made = _tonight(tested, plan_sources(excluded=excluded))
    assert made.moves and service(3) not in {move.service for move in made.moves}
    assert made.kept == {f"excluded.services has shop/{service(3).name}": 6}
    assert made.plan.hot_before == _tonight(tested).plan.hot_before
    hindrance = maker_of(tested, plan_sources(excluded=excluded)).hindrance
    assert hindrance("uid-3-0-node-0") in made.kept and hindrance("uid-0-0-node-0") == ""


def test_no_move_begins_outside_of_the_change_windows() -> None:
    tested = hot_cluster(hour=3.4, size=16.0)
    later, now = (plan_sources(changes=ChangeWindows.of((one,))) for one in ("04:00-05:00", "03:00-05:00"))
    assert "outside of change_windows (04:00-05:00)" in maker_of(tested, later).hindrance("uid-0-0-node-0")
    assert maker_of(tested, now).hindrance("uid-0-0-node-0") == ""
    window = _tonight(tested, later).window
    assert window is not None
    assert [one.astimezone(tested.scorer.tables.now().tzinfo).hour for one in (window.begin, window.end)] == [4, 5]
    none = _tonight(tested, plan_sources(changes=ChangeWindows.of(("18:00-20:00",))))
    assert none.window is None and "in change_windows (18:00-20:00)" in none.windows.because


def test_annotations_of_the_namespace_rest_budget_and_a_cool_cluster_keep_pods_where_they_are() -> None:
    tested, never = hot_cluster(size=16.0), {"forecast-scheduler.io/rebalance": "never"}
    by_namespace = plan_sources(annotations_of=lambda name: never)
    resting = plan_sources(cooling_until=lambda pod: tested.clock.now + 3 * 86_400)
    assert _tonight(tested, by_namespace).moves == _tonight(tested, resting).moves == ()
    made = maker_of(tested, options=RebalanceOptions(budget=BudgetOptions(share=0.05))).for_tonight()
    assert made is not None and len(made.moves) == 1
    cool = _tonight(hot_cluster(size=40.0))
    assert (cool.moves, cool.plan.hot_before, cool.plan.most_gain) == ((), 0, 0.0)


def test_filters_and_the_nodes_that_a_pod_left_keep_it_from_targets() -> None:
    sources = plan_sources(may_go=lambda pod: ("node-0", "node-2", "node-3"), left=lambda pod: frozenset({"node-3"}))
    assert {move.target for move in _tonight(hot_cluster(size=16.0), sources).moves} == {"node-2"}


def test_of_a_single_replica_the_plan_says_that_it_moves_by_surge() -> None:
    single = ready(pod_of(3, "single", "node-0"))
    surged = replace(single, annotations={"forecast-scheduler.io/move-by-surge": "true"})
    assert _tonight(hot_cluster(size=2.0, pods=[single])).moves == ()
    moves = _tonight(hot_cluster(size=2.0, pods=[surged])).moves
    assert [move.by_surge for move in moves] == [True]


def test_at_once_only_insensitive_pods_leave_only_overloaded_nodes() -> None:
    tested = hot_cluster(hour=20.0)
    options = RebalanceOptions(unforeseen=UnforeseenOptions(per_day=2))
    made = maker_of(tested, options=options).at_once(OverloadRelief(frozenset({"node-0"}), 2, lambda service: 1))
    assert made is not None and 0 < len(made.moves) <= 2
    assert {move.source for move in made.moves} == {"node-0"}
    elsewhere = maker_of(tested, options=options).at_once(OverloadRelief(frozenset({"node-3"}), 2, lambda service: 1))
    assert elsewhere is not None and elsewhere.moves == ()
    important = [replace(pod, priority=1000) for pod in pods_on_the_first_node()]
    made = maker_of(hot_cluster(hour=20.0, pods=important), options=options).at_once(
        OverloadRelief(frozenset({"node-0"}), 2, lambda service: 1)
    )
    assert made is not None and made.moves == ()


@pytest.mark.parametrize(("change", "why"), [({}, ""), ({"terminating": True}, "deleted"), ({"ready": None}, "ready")])
def test_what_has_changed_since_the_plan_hinders_a_move(change: dict[str, object], why: str) -> None:
    pods = pods_on_the_first_node()
    tested = hot_cluster(pods=pods)
    tested.put(replace(pods[0], **change))  # type: ignore[arg-type]
    hindrance = maker_of(tested).hindrance(pods[0].uid)
    assert (why in hindrance) if why else hindrance == ""
    assert maker_of(tested).hindrance("nobody") == ""


def test_without_a_model_there_is_no_plan() -> None:
    tested = LiveScorer(hour=3.0, pods=pods_on_the_first_node(), without_model=True)
    assert maker_of(tested, plan_sources(budgets=DisruptionBudgets())).for_tonight() is None


def test_the_age_of_a_pod_is_that_of_now_and_not_of_the_half_hour_that_the_window_began_in() -> None:
    """Failed before: pods that were created after 03:00 were too young at 03:24, whatever the least age was."""
    options = RebalanceOptions(budget=BudgetOptions(share=0.5), cost=CostOptions())

    def made_at(hour: float, created: float) -> MadePlan:
        pods = [
            replace(pod, created=at(created), started=at(created), scheduled=at(created), ready=at(created) + 20.0)
            for pod in pods_on_the_first_node()
        ]
        made = maker_of(hot_cluster(hour, size=16.0, pods=pods), options=options).for_tonight()
        assert made is not None and made.window is not None and made.window.begin <= made.made_at
        return made

    assert made_at(3.4, created=3.2).moves
    young = made_at(3.4, created=3.3)
    assert not young.moves and "it is younger than 600 s" in young.kept


def test_a_new_process_learns_start_up_times_from_the_pods_that_are_there() -> None:
    """Nothing of them is kept: each pod says since when it has a node, and since when it is ready."""
    costly = RebalanceOptions(
        budget=BudgetOptions(share=0.5), cost=with_constants(CostOptions(), startup=100.0, default_startup=86_400.0)
    )  # of a service of which nothing is known no pod is worth moving
    made = maker_of(hot_cluster(size=16.0), options=costly).for_tonight()
    assert made is not None and made.moves
    slow = [replace(pod, ready=pod.scheduled + 3000.0) for pod in pods_on_the_first_node() if pod.scheduled]
    made = maker_of(hot_cluster(size=16.0, pods=slow), options=costly).for_tonight()
    assert made is not None and not made.moves


def test_reasons_say_what_is_said_of_the_nodes_before_the_moves_and_after_them() -> None:
    tested = hot_cluster(size=16.0)
    made, scorer = _tonight(tested), tested.scorer

    def tonight(node: str) -> tuple[str, str, str]:
        """Share of CPU, time, bound."""
        curve = scorer.node_forecast(node).curves[CPU]
        peak, capacity = curve.days[2], curve.capacity or 0.0
        return percent(peak.expected / capacity), f"{peak.at:%H:%M}", percent((peak.bound or 0.0) / capacity)

    share, at, bound = tonight("node-0")
    before = f"node-0: expected peak {share} of cpu at {at}, upper bound (95 %) {bound}; after the plan "
    relieving = [move for move in made.moves if move.partner is None]
    assert relieving and all(move.reason.startswith(before) for move in relieving)
    for move in made.moves:
        pod = scorer.find_pod(move.namespace, move.pod)
        scorer.tables.put(Kind.PODS, replace(pod, node=move.target))
    for move in relieving:
        assert move.reason == f"{before}{tonight('node-0')[0]}, {move.target} {tonight(move.target)[0]}"
