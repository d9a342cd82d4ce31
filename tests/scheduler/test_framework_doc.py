"""docs/extend/framework.md: its plugin is one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from placement import cluster_events, plugins
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.filters import filter
from tests.placement.small_cluster import node_of, pod_of, rejections, view_of

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extend" / "framework.md").read_text()


def _plugin() -> Any:
    from collections.abc import Sequence

    from kube.objects.objects import PodInfo

    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, Any] = {"np": np, "Sequence": Sequence, "PodInfo": PodInfo} | vars(filter)
    names |= vars(cluster_events) | vars(plugins)
    exec(code, names)
    return names["OneNode"]


def test_the_plugin_shown_is_a_filter_with_hints() -> None:
    plugin = _plugin()("b")
    view = view_of([node_of("a"), node_of("b")], [])
    assert rejections(plugin, pod_of("p"), view) == {"a": ("node(s) were not b", False)}
    assert plugin.hint(pod_of("p"), ClusterEvent(EventKind.NODE_ADDED, node=node_of("b"))) is Hint.QUEUE
    assert plugin.hint(pod_of("p"), ClusterEvent(EventKind.NODE_ADDED, node=node_of("a"))) is Hint.SKIP
