"""docs/extend/framework.md: its plugin is one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from placement import cluster_events, plugins
from placement.cluster_events import ClusterEvent, EventKind
from placement.plugins import EnqueueExtensions, Hint
from tests.placement.small_cluster import node_of, pod_of, rejections, view_of

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extend" / "framework.md").read_text()


def _plugin() -> Any:
    from collections.abc import Sequence

    from kube.objects.objects import PodInfo
    from placement.filters.filter import ClusterView, Rejection

    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, Any] = {
        "np": np, "Sequence": Sequence, "ClusterView": ClusterView, "Rejection": Rejection, "PodInfo": PodInfo,
    }  # fmt: skip
    names |= vars(cluster_events) | vars(plugins)
    exec(code, names)
    return names["OneNode"]


def test_the_plugin_shown_is_a_filter_with_hints() -> None:
    plugin = _plugin()("b")
    view = view_of([node_of("a"), node_of("b")], [])
    assert rejections(plugin, pod_of("p"), view) == {"a": ("node(s) were not b", False)}
    assert isinstance(plugin, EnqueueExtensions)
    assert plugin.hint(pod_of("p"), ClusterEvent(EventKind.NODE_ADDED, node=node_of("b"))) is Hint.QUEUE
    assert plugin.hint(pod_of("p"), ClusterEvent(EventKind.NODE_ADDED, node=node_of("a"))) is Hint.SKIP
