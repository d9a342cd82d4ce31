"""PodGroups on a real API server: whole or not at all, one after the other, and nothing held meanwhile."""

from __future__ import annotations

from collections import Counter
from functools import partial

from testing.clusters.own_nodes import (
    Groups,
    assert_settled,
    bound,
    condition,
    group,
    groups,
    member,
    nodes_of,
    our_node,
    our_pod,
)
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.schedule.conftest import Started


def test_groups_larger_than_half_of_the_cluster_run_one_after_the_other(
    plane: ControlPlane, writer: ClusterWriter, start: Started
) -> None:
    names, n_members = ("red", "green", "blue"), 6
    writer.create_many(our_node(f"node-{i}", cpu=5) for i in range(2))
    process = start()
    with groups(plane) as those:
        for name in names:
            those.create(group(name, members=n_members))
        writer.create_many(member(name, number) for number in range(n_members) for name in names)
        for n_left in (3, 2, 1):
            assert eventually(lambda: bound(writer) == n_members), (nodes_of(writer), process.log)
            assert_settled(writer, [process])
            sitting = Counter(name.partition("-")[0] for name, node in nodes_of(writer).items() if node)
            assert len(sitting) == 1, f"parts of groups have a node: {sitting}"
            (running,) = sitting
            others = {name.partition("-")[0] for name in nodes_of(writer)} - {running}
            assert len(others) == n_left - 1
            for name in others:
                words = "Unschedulable", "Insufficient cpu"
                assert eventually(partial(_says, those, name, *words)), those.status(name)
            # Pods are told after their group, one after the other.
            assert eventually(lambda: all("placed as a whole or not at all" in why for why in _reasons(writer)))
            # What has no group goes into the rest that nobody holds.
            writer.create_many(our_pod(f"single-{n_left}-{number}", cpu="1") for number in range(10 - n_members))
            assert eventually(lambda: bound(writer, "single") == 10 - n_members), process.log
            writer.delete_many(one for one in writer.list_all("pods") if _is_of(one, running, "single"))


def _says(those: Groups, name: str, reason: str, words: str = "") -> bool:
    """Return whether the condition of a group has this reason, if one is given, and these words in its message."""
    conditions = those.status(name).get("conditions") or [{"reason": "", "message": ""}]
    return conditions[0]["reason"] in (reason or conditions[0]["reason"]) and words in conditions[0]["message"]


def _reasons(writer: ClusterWriter) -> list[str]:
    """Return why each pod without a node has none."""
    return [condition(one)[1] for one in writer.list_all("pods", field_selector="spec.nodeName=")]


def _is_of(manifest: dict[str, dict[str, str]], *prefixes: str) -> bool:
    return manifest["metadata"]["name"].partition("-")[0] in prefixes
