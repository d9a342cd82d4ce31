"""Table of framework/plugins/nodename/node_name_test.go."""

from __future__ import annotations

import pytest

from placement.filters.node_name import NodeName
from testing.placement.views import node_named, passing, pod_with, verdicts, view_of

REASON = "node(s) didn't match the requested node name"


@pytest.mark.parametrize(
    ("wanted", "expected"), [("", {"foo", "bar"}), ("foo", {"foo"}), ("bar", {"bar"}), ("nobody", set())]
)
def test_upstream(wanted: str, expected: set[str]) -> None:
    view = view_of([node_named("foo"), node_named("bar")])

    assert passing(NodeName(), pod_with(node=wanted), view) == expected


def test_it_is_unresolvable() -> None:
    view = view_of([node_named("foo")])

    (found,) = verdicts(NodeName(), pod_with(node="bar"), view).values()
    assert found.reasons == {REASON} and not found.preemptible
