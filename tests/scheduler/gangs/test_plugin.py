"""The plugin Gang: what keeps a pod out, and what lets it in."""

from __future__ import annotations

import pytest

from placement.cluster_events import ClusterEvent, EventKind
from placement.plugins import EnqueueExtensions, Hint
from scheduler.gangs.plugin import Gang
from tests.scheduler.gangs.made_up import Scene, member


@pytest.mark.parametrize(
    ("event", "hint"),
    [
        (ClusterEvent(EventKind.GROUP_CHANGED, group="ml/train"), Hint.QUEUE),
        (ClusterEvent(EventKind.GROUP_CHANGED, group="ml/other"), Hint.SKIP),
        (ClusterEvent(EventKind.GROUP_CHANGED), Hint.SKIP),
        (ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=member("a")), Hint.QUEUE),
        (ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=member("b")), Hint.SKIP),
        (ClusterEvent(EventKind.NODE_ADDED), Hint.SKIP),
    ],
)
def test_what_may_let_a_pod_in(event: ClusterEvent, hint: Hint) -> None:
    plugin = Gang(Scene().directory)
    assert isinstance(plugin, EnqueueExtensions)
    assert plugin.hint(member("a"), event) is hint
