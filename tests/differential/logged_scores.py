"""The scores that kube-scheduler writes to its log (--vmodule=schedule_one=10)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

Scores = Mapping[str, Mapping[str, Mapping[str, int]]]

_SCORED: Final = re.compile(
    r'"Plugin scored node for pod" pod="[^"/]+/(?P<pod>[^"]+)" plugin="(?P<plugin>[^"]+)" node="(?P<node>[^"]+)" '
    r"score=(?P<score>-?\d+)"
)


def logged_scores(log: str) -> Scores:
    """By name of the pod, plugin and node; plugins that have nothing to say of a pod are not there."""
    found: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for one in _SCORED.finditer(log):
        found[one["pod"]][one["plugin"]][one["node"]] = int(one["score"])
    return found
