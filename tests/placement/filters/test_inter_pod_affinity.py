"""What upstream's tables leave out; the tables themselves are in test_upstream_cases.py."""

from __future__ import annotations

from dataclasses import replace

from kube.objects.constraints import PodConstraints
from placement.filters.inter_pod_affinity import AFFINITY, ANTI_AFFINITY, EXISTING_ANTI_AFFINITY, InterPodAffinity
from tests.placement.small_cluster import is_in, node_of, pod_of, rejections, term, view_of

NODES = [node_of(name, {"host": name, "zone": zone}) for name, zone in (("a", "z1"), ("b", "z1"), ("c", "z2"))]
WEB = is_in("app", "web")
APART = PodConstraints(anti_affinity=(term("host", WEB),))


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
