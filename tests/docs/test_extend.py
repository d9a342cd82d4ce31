"""docs/extend/extend.md: the code that it shows does what the page says."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

import numpy as np

from base import arrays
from forecast.calendar import Days
from forecast.predictors import base
from kube.objects.objects import PodInfo
from placement import cluster_events, plugins
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.filters import filter
from scorer.scores import MAX_NODE_SCORE
from tests.docs.pages import ROOT, blocks, text_of
from tests.placement.small_cluster import node_of, pod_of, rejections, view_of

PAGE: Final = text_of(ROOT / "docs" / "extend" / "extend.md")


def shown(name: str) -> Any:
    """Return the class or function of this name, made from the block that defines it."""
    from collections.abc import Sequence

    pattern = re.compile(rf"^(class|def) {name}\b", re.MULTILINE)
    (code,) = [one.text for one in blocks(PAGE) if one.language == "python" and pattern.search(one.text)]
    names: dict[str, Any] = {"np": np, "Sequence": Sequence, "ClassVar": ClassVar, "PodInfo": PodInfo, "Days": Days}
    names |= {"MAX_NODE_SCORE": MAX_NODE_SCORE}
    names |= vars(arrays) | vars(base) | vars(filter) | vars(cluster_events) | vars(plugins)
    exec(code, names)
    return names[name]


def test_the_filter_shown_rejects_with_a_reason_and_gives_hints() -> None:
    plugin = shown("OneNode")("b")
    view = view_of([node_of("a"), node_of("b")], [])
    assert rejections(plugin, pod_of("p"), view) == {"a": ("node(s) were not b", False)}
    assert plugin.hint(pod_of("p"), ClusterEvent(EventKind.NODE_ADDED, node=node_of("b"))) is Hint.QUEUE
    assert plugin.hint(pod_of("p"), ClusterEvent(EventKind.NODE_ADDED, node=node_of("a"))) is Hint.SKIP


def test_the_score_shown_prefers_nodes_with_free_places() -> None:
    score = shown("fewest_pods_score")(np.array([0.0, 9.0, 10.0]), np.array([10.0, 10.0, np.inf]))
    np.testing.assert_allclose(score, [90, 0, 0])


def test_the_predictor_shown_takes_the_busier_of_the_last_two_days() -> None:
    weekday = np.arange(21) % 7
    days = Days(weekday, np.maximum(weekday - 4, 0))
    usage = np.ones((1, 21, 48)) * np.arange(21)[:, None]
    fitted = shown("TwoWeeksMaxPredictor")().fit(usage, days)
    np.testing.assert_allclose(fitted.predict_curve(days.take(slice(0, 2)))[0, :, 0], [14, 15])
