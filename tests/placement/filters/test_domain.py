from __future__ import annotations

from dataclasses import replace

import pytest

from forecast.service_key import Owner
from placement.filters.domain import Domain
from testing.placement.views import Verdict, node_named, passing, pod_with, verdicts, view_of

KEY = "forecast-scheduler.io/domain"

VIEW = view_of(
    [
        node_named("plain"),
        node_named("empty", labels={KEY: ""}),
        node_named("gpu", labels={KEY: "gpu"}),
        node_named("job", labels={KEY: "job"}),
    ]
)


@pytest.mark.parametrize(
    ("domain", "own"), [("", {"plain", "empty"}), ("gpu", {"gpu"}), ("job", {"job"}), ("nobody's", set())]
)
def test_every_node_is_in_one_domain(domain: str, own: set[str]) -> None:
    assert passing(Domain(domain), pod_with(), VIEW) == own


@pytest.mark.parametrize(
    ("domain", "shared", "passing_nodes"),
    [
        ("gpu", ("",), {"gpu", "plain", "empty"}),
        ("gpu", ("job",), {"gpu", "job"}),
        ("", ("job", "nobody's"), {"plain", "empty", "job"}),
        ("gpu", ("", "job"), {"gpu", "plain", "empty", "job"}),
    ],
)
def test_domains_that_are_shared(domain: str, shared: tuple[str, ...], passing_nodes: set[str]) -> None:
    assert passing(Domain(domain, shared), pod_with(), VIEW) == passing_nodes


@pytest.mark.parametrize(
    ("owner", "scheduler", "passes"),
    [("DaemonSet", "daemons", True), ("DaemonSet", "default-scheduler", False), ("ReplicaSet", "daemons", False)],
)
def test_pods_of_daemon_sets_pass_where_their_scheduler_is_named(owner: str, scheduler: str, passes: bool) -> None:
    pod = replace(pod_with(), owner=Owner(owner, "net"), scheduler_name=scheduler)
    everywhere = {"plain", "empty", "gpu", "job"}
    assert passing(Domain("", daemons=["daemons"]), pod, VIEW) == (everywhere if passes else {"plain", "empty"})


def test_it_is_unresolvable() -> None:
    assert verdicts(Domain(), pod_with(), VIEW)["gpu"] == Verdict.no("node(s) belonged to another scheduling domain")


def test_nobody_has_the_label() -> None:
    view = view_of([node_named("a"), node_named("b")])

    assert not Domain().filter(pod_with(), view)
    assert passing(Domain("gpu"), pod_with(), view) == set()
