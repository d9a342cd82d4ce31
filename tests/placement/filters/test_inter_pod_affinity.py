"""What upstream's tables leave out; the tables themselves are in test_upstream_cases.py."""

from __future__ import annotations

from dataclasses import replace

from kube.objects.constraints import PodAffinityTerm, PodConstraints
from placement.filters.inter_pod_affinity import AFFINITY, ANTI_AFFINITY, EXISTING_ANTI_AFFINITY, InterPodAffinity
from tests.placement.small_cluster import is_in, node_of, pod_of, rejections, state_of, term, view_of, view_of_state

NODES = [node_of(name, {"host": name, "zone": zone}) for name, zone in (("a", "z1"), ("b", "z1"), ("c", "z2"))]
WEB = is_in("app", "web")
APART = PodConstraints(anti_affinity=(term("host", WEB),))


def test_a_pod_that_says_nothing_and_that_nobody_minds_passes_everywhere() -> None:
    view = view_of(NODES, [pod_of("p", {"app": "web"}, node="a", constraints=APART)])
    assert InterPodAffinity().filter(pod_of("new", {"app": "db"}), view) == ()


def test_replicas_that_keep_apart_fill_one_node_after_the_other() -> None:
    state = state_of(NODES, [])
    view = view_of_state(state)
    for i, node in enumerate(("a", "b", "c")):
        pod = pod_of(f"web-{i}", {"app": "web"}, constraints=APART)
        taken = dict.fromkeys(("a", "b", "c")[:i], (ANTI_AFFINITY, True))
        assert rejections(InterPodAffinity(), pod, view) == taken
        view.index.apply(state.put_pod(replace(pod, node=node)))
    last = pod_of("last", {"app": "web"}, constraints=APART)
    assert len(rejections(InterPodAffinity(), last, view)) == 3
    view.index.apply(state.delete_pod("default/web-1"))
    assert set(rejections(InterPodAffinity(), last, view)) == {"a", "c"}


def test_each_node_has_the_first_reason_that_applies() -> None:
    said = PodConstraints(affinity=(term("zone", WEB),), anti_affinity=(term("host", WEB),))
    pods = [
        pod_of("web", {"app": "web"}, node="a"),
        pod_of("shuns", node="a", constraints=PodConstraints(anti_affinity=(term("zone", is_in("app", "new")),))),
        pod_of("shuns, too", node="c", constraints=PodConstraints(anti_affinity=(term("zone", is_in("app", "new")),))),
    ]
    said = replace(said, anti_affinity=(*said.anti_affinity, term("host", is_in("app", "db"))))
    pods.append(pod_of("db", {"app": "db"}, node="c"))
    found = rejections(InterPodAffinity(), pod_of("new", {"app": "new"}, constraints=said), view_of(NODES, pods))
    assert found == {"a": (ANTI_AFFINITY, True), "b": (EXISTING_ANTI_AFFINITY, True), "c": (AFFINITY, False)}


def test_pods_on_nodes_that_do_not_exist_count_nowhere() -> None:
    near = PodConstraints(affinity=(term("zone", WEB),))
    view = view_of(NODES, [pod_of("web", {"app": "web"}, node="gone", constraints=APART)])
    found = rejections(InterPodAffinity(), pod_of("new", {"app": "other"}, constraints=near), view)
    assert found == dict.fromkeys(("a", "b", "c"), (AFFINITY, False))
    # For the same reason it may be the first of its kind.
    assert rejections(InterPodAffinity(), pod_of("new", {"app": "web"}, constraints=near), view) == {}


def test_the_second_of_a_series_goes_where_the_first_is() -> None:
    near = PodConstraints(affinity=(term("zone", WEB),))
    second = pod_of("second", {"app": "web"}, constraints=near)
    view = view_of(NODES, [pod_of("first", {"app": "web"}, node="b", constraints=near)])
    assert rejections(InterPodAffinity(), second, view) == {"c": (AFFINITY, False)}


def test_the_first_of_a_series_needs_the_topology_keys_still() -> None:
    near = PodConstraints(affinity=(term("zone", WEB), term("rack", WEB)))
    racked = node_of("d", {"zone": "z1", "rack": "r1"})
    found = rejections(
        InterPodAffinity(), pod_of("new", {"app": "web"}, constraints=near), view_of([*NODES, racked], [])
    )
    assert found == dict.fromkeys(("a", "b", "c"), (AFFINITY, False))


def test_a_term_without_a_selector_means_no_pod() -> None:
    nothing = PodAffinityTerm(None, "zone", frozenset({"default"}))
    view = view_of(NODES, [pod_of("p", node="a", constraints=PodConstraints(anti_affinity=(nothing,)))])
    apart = pod_of("new", constraints=PodConstraints(anti_affinity=(nothing,)))
    assert rejections(InterPodAffinity(), apart, view) == {}
    near = pod_of("new", constraints=PodConstraints(affinity=(nothing,)))
    assert rejections(InterPodAffinity(), near, view) == dict.fromkeys(("a", "b", "c"), (AFFINITY, False))
