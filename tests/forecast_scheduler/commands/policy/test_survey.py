"""What a set of policies would mean for pods: counted, grouped, compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forecast.service_key import Owner
from forecast_scheduler.commands.live_placing import BestNode
from forecast_scheduler.commands.policy.policy_survey import ChoiceCount, Survey, moves, survey
from forecast_scheduler.commands.policy.policy_tables import check_json, choices_table, moves_table, survey_lines
from kube.objects.objects import PodInfo, PodPhase
from placement.policies.policy import POLICY_ANNOTATION, Policy
from placement.policies.policy_set import PolicyChoice, PolicySet
from scorer.scoring_policy import ScoringPolicy
from tests.placement.small_cluster import pod_of


def policy(name: str) -> Policy:
    return Policy(ScoringPolicy(name, {"predicted_peak": 1.0}, {}))


SETTINGS, FAST, BATCH = policy("settings"), policy("fast"), policy("batch")


BY_ANNOTATION, NO_OTHER = PolicySet(SETTINGS, [FAST, BATCH]), PolicySet(SETTINGS)


def by_annotation(pod: PodInfo) -> PolicyChoice:
    return BY_ANNOTATION.choice(pod, lambda namespace: None)


def of_settings(pod: PodInfo) -> PolicyChoice:
    return NO_OTHER.choice(pod, lambda namespace: None)


def service_of(pod: PodInfo) -> str:
    return f"{pod.namespace}/Deployment/{pod.name.partition('-')[0]}"


def pods(service: str, count: int, named: str | None = None, node: str = "n") -> list[PodInfo]:
    annotations = {} if named is None else {POLICY_ANNOTATION: named}
    return [replace(pod_of(f"{service}-{i}", node=node), annotations=annotations) for i in range(count)]


def surveyed(*of: PodInfo, top: int = 50) -> Survey:
    return survey(of, service_of, of_settings, by_annotation, lambda a, b: a.name == b.name, top=top)


def test_one_pod_stands_for_those_alike_and_pods_that_are_over_do_not_count() -> None:
    one = pods("cart", 1, "fast")[0]
    over = [replace(one, phase=phase) for phase in (PodPhase.SUCCEEDED, PodPhase.FAILED)]
    found = surveyed(*over, replace(one, terminating=True))
    assert (found.pods, found.choices, found.touched) == (0, (), ())
    waiting = pods("cart", 1, "fast", node="")
    running = [replace(one, name=f"cart-9{i}") for i, one in enumerate(pods("cart", 2, "fast"))]
    found = surveyed(*waiting, *running, *pods("cart", 1, "batch"), *pods("mail", 4))
    assert [(kind.pod.name, kind.service, kind.pods, kind.after.policy.name) for kind in found.touched] == [
        ("cart-90", "default/Deployment/cart", 3, "fast"),  # one that runs knows where
        ("cart-0", "default/Deployment/cart", 1, "batch"),
    ]


def test_pods_that_are_not_compared_are_counted_and_named() -> None:
    daemon = replace(pods("log", 1, "fast")[0], owner=Owner("DaemonSet", "log"))
    found = surveyed(daemon)
    assert found.choices == (ChoiceCount("fast", "its annotation", 1),)
    assert found.touched_pods == 0
    found = surveyed(*(pod for i in range(1, 6) for pod in pods(f"s{i}", i, "fast")), top=2)
    assert [kind.pods for kind in found.touched] == [5, 4]
    assert (found.left_out, found.left_out_pods, found.touched_pods) == (3, 6, 15)
    assert "3 kinds with 6 pods were not looked at: raise --top" in survey_lines(found, ())


@pytest.mark.parametrize(
    ("before", "after", "moved"), [("a", "a", False), ("a", "b", True), (None, "b", True), ("a", None, True)]
)
def test_a_move_is_another_best_node(before: str | None, after: str | None, moved: bool) -> None:
    asked: list[tuple[str, str]] = []

    def best_node(pod: PodInfo, policy: Policy, rather: str) -> BestNode:
        asked.append((policy.name, rather))
        node = before if policy is SETTINGS else after
        return BestNode(node, 0.5, 3 if node else 0, "" if node else "0/3 nodes are available: 3 too hot")

    found = surveyed(*pods("cart", 3, "fast", node="here"))
    (move,) = moves(found.touched, best_node)
    assert move.is_move is moved
    # Among equals the pod stays, and then the node that was best before is as good.
    assert asked == [("settings", "here"), ("fast", before or "here")]
    figures = check_json(found, [move])["touched"]
    assert [(one["pods"], one["runs_on"], one["moves"]) for one in figures] == [(3, "here", moved)]
    assert figures[0]["after"] == {
        "policy": "fast",
        "because": "its annotation",
        "node": after,
        "peak_share": 0.5,
        "feasible_nodes": 3 if after else 0,
        "why_not": None if after else "0/3 nodes are available: 3 too hot",
    }
    lines = survey_lines(found, [move])
    elsewhere, nowhere = moved and after is not None, after is None
    assert lines[0] == (
        "3 of 3 pods are touched, of 1 kinds that were looked at: "
        f"for {3 * elsewhere} ({1 * elsewhere} kinds) another node would be best, "
        f"for {3 * nowhere} ({1 * nowhere}) there is none"
    )
    assert (len(lines) == 2) is (after is None)
    assert moves_table([move]).row_count == 1


def test_names_are_anybodys_text_and_do_no_harm_to_a_terminal() -> None:
    odd = policy("[bold]\x1b[31mred")
    all_odd = PolicySet(SETTINGS, [odd], default=odd.name)
    found = survey(
        pods("cart", 1),
        service_of,
        of_settings,
        lambda pod: all_odd.choice(pod, lambda _: None),
        lambda a, b: False,
        top=1,
    )
    (move,) = moves(found.touched, lambda pod, policy, rather: BestNode("n", None, 1, ""))
    for table in (choices_table(found), moves_table([move])):
        cells = [cell for column in table.columns for cell in column.cells]
        assert not any("\x1b" in str(cell) for cell in cells)
        assert any("\\[bold]" in str(cell) for cell in cells)
    unknown = surveyed(*pods("cart", 1, "\x1b[31mred"))
    assert not any("\x1b" in line for line in survey_lines(unknown, ()))
