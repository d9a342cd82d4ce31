from __future__ import annotations

import pytest

from kube.objects.constraints import (
    Operator,
    PodAffinityTerm,
    PodConstraints,
    PreferredPodTerm,
    Requirement,
)
from kube.objects.objects import NamespaceInfo, PodInfo
from placement.index import affinity_terms
from placement.index.affinity_terms import AffinityTerms, TermTable, means
from placement.index.namespaces import Namespaces
from tests.placement.small_cluster import chosen, is_in, pod_of, term

NAMESPACES = Namespaces()


def met(
    table: TermTable, pod: PodInfo, namespaces: Namespaces = NAMESPACES
) -> list[tuple[PodAffinityTerm, dict[int, int]]]:
    return [(one.term, one.by_row) for one in table.meaning(pod, namespaces)]


def test_a_pod_is_held_against_the_terms_of_its_own_service_only(monkeypatch: pytest.MonkeyPatch) -> None:
    table = TermTable()
    for i in range(1000):
        # As charts write labels: the first key is the same for all.
        table.add(term("zone", is_in("component", "server"), is_in("name", f"app-{i}")), 0, 1)
    held_against: list[PodAffinityTerm] = []

    def recorded(one: PodAffinityTerm, pod: PodInfo, namespaces: Namespaces) -> bool:
        held_against.append(one)
        return means(one, pod, namespaces)

    monkeypatch.setattr(affinity_terms, "means", recorded)
    pod = pod_of("new", {"component": "server", "name": "app-500", "pod": "x"})
    assert [one.term for one in table.meaning(pod, NAMESPACES)] == [
        term("zone", is_in("component", "server"), is_in("name", "app-500"))
    ]
    assert len(held_against) <= 2


def test_terms_are_found_whatever_their_selector_and_namespaces() -> None:
    namespaces = Namespaces()
    namespaces.put(NamespaceInfo("shop", {"team": "red"}))
    exists, not_in = Requirement("app", Operator.EXISTS), Requirement("app", Operator.NOT_IN, ("db",))
    web_in_shop = pod_of("new", {"app": "web", "": ""}, namespace="shop")
    red = chosen(is_in("team", "red"))
    found = [
        term("everything", namespaces=["shop"]),
        term("exists", exists, namespaces=["shop"]),
        term("not in", not_in, namespaces=["shop"]),
        term("one of several", is_in("app", "db", "web"), namespaces=["batch", "shop"]),
        term("one of a hundred", is_in("app", "web", *map(str, range(100))), namespaces=["shop"]),
        term("of a hundred namespaces", namespaces=["shop", *map(str, range(100))]),
        term("namespace by label", is_in("app", "web"), namespaces=[], namespace_selector=red),
        term("any namespace", exists, namespaces=["batch"], namespace_selector=chosen()),
    ]
    others = [
        term("another namespace", exists),
        term("no namespace", exists, namespaces=[]),
        term("other values", is_in("app", "db"), namespaces=["shop"]),
        term("no value", is_in("app"), namespaces=["shop"]),
        term("both", is_in("app", "web"), is_in("tier", "front"), namespaces=["shop"]),
        term("other label", exists, namespaces=[], namespace_selector=chosen(is_in("team", "blue"))),
        PodAffinityTerm(None, "no selector", frozenset({"shop"})),
    ]
    table = TermTable()
    for one in (*found, *others):
        table.add(one, 0, 1)
    keys = [one.term.topology_key for one in table.meaning(web_in_shop, namespaces)]
    assert sorted(keys) == sorted(one.topology_key for one in found)
    for one in (*found, *others):
        table.add(one, 0, -1)
    assert not len(table) and not table._at


@pytest.mark.parametrize("weight", [3, 5])
def test_many_alike_pods_say_what_they_say_one_by_one(weight: int) -> None:
    near, far = term("zone", is_in("app", "web")), term("zone", is_in("app", "db"))
    shuns = pod_of("shuns", constraints=PodConstraints(preferred_anti_affinity=(PreferredPodTerm(5, near),)))
    said = PodConstraints(
        affinity=(far,),
        anti_affinity=(far,),
        preferred_affinity=(PreferredPodTerm(weight, near), PreferredPodTerm(0, near)),
        preferred_anti_affinity=(PreferredPodTerm(2, far),),
    )
    many, single = AffinityTerms(), AffinityTerms()
    rows = [1, 0, 0, 1, 2]  # on row 0 weights of 5 cancel out half way
    for terms in (many, single):
        terms.count(0, shuns, 1)
    many.count_all(rows, pod_of("like", constraints=said))
    for row in rows:
        single.count(row, pod_of("like", constraints=said), 1)
    for app in ("web", "db"):
        probe = pod_of("new", {"app": app})
        assert met(many.anti_affinity, probe) == met(single.anti_affinity, probe)
        assert met(many.preferences, probe) == met(single.preferences, probe)
    assert met(many.preferences, pod_of("new", {"app": "web"})) == [
        (near, {0: 2 * weight - 5, 1: 2 * weight, 2: weight})
    ]
