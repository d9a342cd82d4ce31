"""What one object says fails that object alone: what is decided about all others is as it is without it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admission.advice.second_hands import HoldingTimes
from admission.templates.pod_arguments import ARGUMENTS_ANNOTATION
from admission.templates.shaping_annotations import TEMPLATES_ANNOTATION
from admission.templates.template_decoding import BINDINGS, NODE_CONFIGS
from admission.webhook.admission_review import MalformedReview
from admission.webhook.binding_statuses import LastErrors
from admission.webhook.review_answers import Reviewer
from admission.webhook.template_store import TemplateStore
from autoscaling.autoscale_settings import ReplicaOptions
from autoscaling.replicas.loads_ahead import loads_ahead
from autoscaling.services_ahead import services_ahead
from base.errors import InputError
from base.excluded import ExcludedOptions
from cluster.tables.self_check import self_check
from kube.decoding.decoding import WATCHED, Kind
from kube.decoding.stored_templates import stored
from kube.decoding.watched_kinds import UndecodableObject, Watched, decode_page
from kube.objects.objects import PodInfo
from kube.objects.watched_objects import is_older, version_number
from placement.disruption_budgets import WATCHED_BUDGETS, DisruptionBudgets
from placement.gate_exemptions import ADVICE
from placement.gate_removal import UNBOUND_PODS
from placement.pod_groups.pod_group import PodGroupInfo
from profiles.gpu.dra.selectors.programs import FUNCTIONS
from profiles.gpu.tide.tide_annotation import NOTHING_DONE, read_record
from rebalancer.execution.wire_seen import deployment_seen, marked_deployments, pods_seen
from scheduler.gangs.group_decoding import POD_GROUPS
from tenants.elastic_quota import WATCHED_QUOTAS, ElasticQuota
from testing.reviews import review_of
from tests.admission.webhook.made_up import a_binding, a_template
from tests.advisor.made_up import gated, pod_answer
from tests.advisor.test_gated_pods import World as Gated
from tests.advisor.test_preferred_pods import World as Preferred
from tests.advisor.test_preferred_pods import created
from tests.advisor.test_stale_nominations import GATED, Scene
from tests.autoscaling.live_services import PODS
from tests.contracts.absurd import ANNOTATIONS, VALUES, absurd, honest
from tests.kube.api_objects import replica_set
from tests.rebalancer.hot_cluster import hot_cluster, maker_of, plan_sources, pods_on_the_first_node, ready
from tests.scorer.live_cluster import at, growing, pod_of
from tests.scorer.scorer_at import LiveScorer
from tests.tenants.tenant_world import NOW, SCHEDULER, TenantWorld, gang_of, nodes, quota, tenant_pod

N: Final = 500
DEEP: Final = '{"x":' + "[" * 10_000
TEXTS: Final = (
    *(one for one in VALUES if isinstance(one, str) and "\ud800" not in one),  # that one comes decoded, as U+FFFD
    "\ufffd",
    "1e308", "9" * 10_000, "\N{SUPERSCRIPT TWO}", "inf", "-inf", DEEP, "x" * 2**20, "[1, 2]", '{"node": ["n1"]}',
    '{"asked": "question-1", "node": "n1"}', '{"asked": "question-1", "node": "n2", "expected": "n9"}',
)  # fmt: skip
"""What a user may write into an annotation."""


def _of_kind(kind: str) -> dict[str, Any]:
    return next(one for one in honest() if one["kind"] == kind)


def _decoded(reader: Watched[Any], body: bytes) -> Any:
    """The object; None = it is refused, and that is all that becomes of it."""
    try:
        return reader.decoded(body)[0]
    except UndecodableObject:
        return None


# The scheduler: a pass over pods of tenants, a gang among them


def _scheduled(
    n_pods: int, pod: PodInfo | None = None, odd_quota: ElasticQuota | None = None, group: PodGroupInfo | None = None
) -> dict[str, bool]:
    """Whether each honest pod got a node: those of one tenant all, of the other as many as it may have."""
    pods = [tenant_pod(f"{tenant}-{number}", tenant) for tenant in "ab" for number in range(n_pods // 2)]
    pods += [tenant_pod(f"g-{number}", "a", gang="g") for number in range(3)]
    world = TenantWorld(
        nodes(n_pods // 50 + 2, cpu=100.0),
        [quota("a", 1000), quota("b", 3, 3), *([odd_quota] if odd_quota else [])],
        [*pods, *([pod] if pod else [])],
        groups=[gang_of("a", "g", 3), *([group] if group else [])],
    )
    world.run()
    there = world.pods
    return {one.name: bool(there[one.name].node) for one in pods}


@cache
def _scheduled_alone(n_pods: int) -> dict[str, bool]:
    found = _scheduled(n_pods)
    assert sum(found.values()) == n_pods // 2 + 3 + 3
    return found


@settings(max_examples=20)
@given(body=absurd(_of_kind("Pod")))
def test_a_pod_keeps_no_other_from_its_node(body: bytes) -> None:
    pod = _decoded(WATCHED[Kind.PODS], body)
    if isinstance(pod, PodInfo):
        odd = replace(pod, namespace="evil", name="evil", uid="evil", node="", scheduler_name=SCHEDULER)
        assert _scheduled(20, odd) == _scheduled_alone(20)


@pytest.mark.parametrize("cpu", [1e30, -1e30])
def test_a_pod_may_request_what_it_likes(cpu: float) -> None:
    odd = tenant_pod("evil", "evil", cpu=cpu, priority=-(2**31), requests={"memory": cpu, "example.com/x": cpu})
    assert _scheduled(N, odd) == _scheduled_alone(N)


@settings(max_examples=15)
@given(body=absurd(_of_kind("ElasticQuota")))
def test_a_quota_binds_no_other_tenant(body: bytes) -> None:
    odd = _decoded(WATCHED_QUOTAS, body)
    if odd is not None:
        assert _scheduled(20, odd_quota=replace(odd, namespace="evil", name="evil")) == _scheduled_alone(20)


@settings(max_examples=15)
@given(body=absurd(_of_kind("PodGroup")))
def test_a_gang_holds_up_no_other(body: bytes) -> None:
    group = _decoded(POD_GROUPS, body)
    if group is not None:
        member = tenant_pod("evil", "evil", gang="evil")
        assert _scheduled(20, member, group=replace(group, namespace="evil", name="evil")) == _scheduled_alone(20)


def test_what_a_deployment_wants_counts_by_what_is_there() -> None:
    """Failed before: a billion replicas on paper, and each of its pods would use nothing."""
    tested = LiveScorer(12.0, pods=[pod_of(5, "p", "node-0", cpu=2.0)])
    with tested.scorer.tables.changing() as cluster:
        state = cluster.state
        service = next(iter(state.services))
        odd = replica_set("service-5-7d9f", deployment="service-5", desired_replicas=10**9 - 1)
        state.put_replica_set(replace(odd, uid="rs-5", created=state.now))
        state.put_pod(replace(next(iter(state.pods.values())), node="node-1"))
        assert state.replicas(state.service_of[service]) == state.replicas_with(service) == 32
        state.put_pod(pod_of(5, "p2", "node-1"))
        assert state.replicas(state.service_of[service]) == 64
        assert self_check(state) == ()


# The rebalancer: plans, and what it reads of one move


def _planned(odd: Sequence[dict[str, str]], budgets: Sequence[Any] = ()) -> set[tuple[str, str]]:
    """Moves and their targets. odd: annotations of one small pod each"""
    pods = [
        ready(pod_of(None, f"evil-{at}", "node-3", cpu=1e-6, memory=1e-6, annotations=one))
        for at, one in enumerate(odd)
    ]
    pods += pods_on_the_first_node()
    sources = plan_sources(budgets=_with(DisruptionBudgets(), budgets))
    made = maker_of(hot_cluster(size=16.0, pods=pods), sources).for_tonight()
    assert made is not None
    return {(move.pod, move.target) for move in made.moves if not move.pod.startswith("evil")}


def _with(budgets: DisruptionBudgets, found: Sequence[Any]) -> DisruptionBudgets:
    budgets.replace(found)
    return budgets


@cache
def _planned_alone() -> set[tuple[str, str]]:
    found = _planned(())
    assert found
    return found


def test_plans_are_the_same_whatever_single_pods_say_of_their_moves() -> None:
    keys = (*ANNOTATIONS, "karpenter.sh/do-not-disrupt")
    odd = [dict.fromkeys(keys, text) for text in TEXTS] + [{key: DEEP} for key in keys]
    alone = _planned([{}] * len(odd))
    assert alone and _planned(odd) == alone


@settings(max_examples=1)
@given(bodies=st.lists(absurd(_of_kind("PodDisruptionBudget")), min_size=40, max_size=40))
def test_plans_are_the_same_whatever_single_budgets_say(bodies: list[bytes]) -> None:
    found = [_decoded(WATCHED_BUDGETS, body) for body in bodies]
    budgets = [replace(one, namespace="evil", name=f"b{at}") for at, one in enumerate(found) if one is not None]
    assert _planned((), budgets) == _planned_alone()


LISTED: Final[dict[str, Callable[[bytes], object]]] = {
    "pods": pods_seen,
    "ReplicaSets": lambda body: marked_deployments(body)[0],
    "autoscalers": lambda body: deployment_seen(b'{"metadata": {"name": "cart"}}', body).scaled_by,
}


@pytest.mark.parametrize("kind", LISTED)
@pytest.mark.parametrize("metadata", [[], {"name": 7}, {"name": "evil", "annotations": 3, "labels": [DEEP]}])
def test_one_that_cannot_be_read_costs_no_list(kind: str, metadata: Any) -> None:
    """Failed before: nothing of the list was read, and no move of its namespace went on."""
    owner = {"kind": "Deployment", "name": "cart", "controller": True}
    annotations = {"forecast-scheduler.io/surged-for": "u:3"}
    one = {"metadata": {"name": "cart", "uid": "u", "annotations": annotations, "ownerReferences": [owner]}}
    one |= {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "cart"}}}
    odd = {"metadata": metadata, "spec": {"scaleTargetRef": "cart", "nodeName": []}}
    alone, among = (
        LISTED[kind](json.dumps({"items": items}).encode()) for items in ([one] * N, [one, odd, *[one] * (N - 1)])
    )
    assert alone and among == alone


# Autoscaling


@settings(max_examples=6)
@given(key=st.sampled_from([*ANNOTATIONS]), text=st.sampled_from(TEXTS))
def test_the_loads_of_all_others_are_the_same(key: str, text: str) -> None:
    assert _loads([replace(pod_of(3, "evil", "node-2"), annotations={key: text})]) == _loads(
        [pod_of(3, "evil", "node-2")]
    )


def _loads(more: Sequence[PodInfo]) -> list[Any]:
    ahead = services_ahead(LiveScorer(12.0, pods=[*PODS, *more], model=growing()).scorer.tables, ExcludedOptions())
    assert ahead is not None
    now, used = at(18), ahead.at(ahead.load, at(12))
    found = loads_ahead(ahead, used, at(12), now, ReplicaOptions())
    return [one for one in found if one.labels["name"] != "service-3"]


# The advisor, and whoever releases pods in its place


@pytest.mark.parametrize("text", TEXTS)
def test_forged_advice_moves_nothing_but_its_own_pod(text: str) -> None:
    preferred = Preferred()
    body = preferred.ask()
    preferred.see(created(body, "evil", annotations={ADVICE: text}, requests={"cpu": 1e-3}))
    preferred.see(created(body))
    assert preferred.requested()["n1"] >= 1.0
    world = Gated(*(gated(f"p{number}") for number in range(N)), gated("evil", annotations={ADVICE: text}))
    world.later(60)
    assert [name for name in world.held() if name != "evil"] == [f"p{number}" for number in range(N)]
    ours = gated("a", nominated_node="n1")
    odd = gated("evil", nominated_node="n1", gates=(), annotations={ADVICE: text})
    scene = Scene(ours, odd, answers=(pod_answer(ours, **GATED),))
    asked = [(one.method, one.path.rpartition("pods/")[2]) for one in scene.keep_up()]
    assert [one for one in asked if "evil" not in one[1]] == [("GET", "a"), ("PATCH", "a/status")]


@settings(max_examples=20)
@given(body=absurd(_of_kind("Pod")))
def test_the_second_hands_release_all_others(body: bytes) -> None:
    one = _of_kind("Pod")
    made = [
        json.dumps(
            one | {"metadata": {"name": f"p{n}", "uid": f"u{n}"}, "spec": {"schedulingGates": [{"name": ADVICE}]}}
        )
        for n in range(20)
    ]
    page = decode_page(UNBOUND_PODS, b'{"items": [' + ",".join(made).encode() + b"," + body + b"]}")
    times = HoldingTimes(clock=lambda: 0.0, wall=lambda: 100.0)
    times.replace(page.objects)
    assert {pod.name for pod in times.take(0.0)} >= {f"p{n}" for n in range(20)}


# The webhook


def _reviewer(*odd: bytes) -> Reviewer:
    store = TemplateStore()
    of_templates, of_bindings = (
        [_decoded(stored(reader), body) for body in odd] for reader in (NODE_CONFIGS, BINDINGS)
    )
    store.node_configs.replace([*filter(None, of_templates), a_template()])
    store.bindings.replace([*filter(None, of_bindings), a_binding("cart")])
    store.rebuild()
    return Reviewer(store, LastErrors(), clock=lambda: NOW)


def _reviews(reviewer: Reviewer) -> Iterator[Any]:
    for number in range(5):
        pod = {
            "metadata": {"generateName": "cart-", "labels": {"app": "cart"}},
            "spec": {"containers": [{"name": "m"}]},
        }
        answer = reviewer.review(review_of(pod, uid=f"u-{number}"))
        yield answer.outcome, answer.body, "cart" in answer.applied


@settings(max_examples=20)
@given(body=absurd(_of_kind("Pod")), text=st.sampled_from(TEXTS))
def test_a_review_that_fails_changes_no_other(body: bytes, text: str) -> None:
    reviewer = _reviewer()
    alone = [*_reviews(reviewer)]
    keys = (ARGUMENTS_ANNOTATION, TEMPLATES_ANNOTATION, ADVICE)
    forged = {"metadata": {"labels": {"app": "cart"}, "annotations": dict.fromkeys(keys, text)}, "spec": {}}
    for pod in (json.loads(body), forged):
        try:
            reviewer.review(review_of(pod))
        except MalformedReview:
            continue
    assert [*_reviews(reviewer)] == alone


@settings(max_examples=20)
@given(body=st.sampled_from(["NodeSchedulerConfig", "SchedulerConfigBinding"]).flatmap(lambda k: absurd(_of_kind(k))))
def test_a_template_or_binding_shapes_no_pod_of_others(body: bytes) -> None:
    assert [(one[0], one[2]) for one in _reviews(_reviewer(body))] == [
        (one[0], one[2]) for one in _reviews(_reviewer())
    ]


# Text that is read far from where it was written


@pytest.mark.parametrize("text", TEXTS)
def test_what_a_workload_says_of_its_moves_is_read_or_not(text: str) -> None:
    """Failed before: text that is nested deeply ended the tide of all workloads."""
    assert read_record(text) == NOTHING_DONE


@pytest.mark.parametrize("text", [r"\ud800", r"\udc00\ud800x", r"\\\uDfff", r"\ud83d\ude00", r"\\ud800"])
def test_half_a_character_costs_no_list(text: str) -> None:
    """Failed before: the whole list counted as unreadable."""
    odd = (
        f'{{"metadata": {{"name": "evil", "uid": "u", "annotations": {{"a": "{text}"}}}}, "spec": {{"nodeName": ""}}}}'
    )
    page = decode_page(WATCHED[Kind.PODS], f'{{"items": [{odd}, {odd}]}}'.encode())
    assert [pod.name for pod in page.objects if isinstance(pod, PodInfo)] == ["evil", "evil"]


@pytest.mark.parametrize("text", ["1.2.3-\N{SUPERSCRIPT TWO}", "9" * 5000 + ".0.0", "1.0.0-" + "9" * 5000, "x"])
def test_versions_that_no_number_holds_are_refused_in_one_sentence(text: str) -> None:
    """Failed before: int() raised ValueError, or an assertion failed."""
    with pytest.raises(InputError, match="is no semantic version"):
        FUNCTIONS["compareTo"]({"semver": text}, {"semver": "1.0.0"})
    assert (version_number(text), version_number("9" * 5000), is_older("7", "\N{SUPERSCRIPT TWO}")) == (
        None,
        None,
        False,
    )
    assert is_older("9", "10") and version_number("0" * 5) == 0
