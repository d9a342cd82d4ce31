"""Asks plugins, which may be mistaken: one that raises keeps the pod out, or wakes it, and is logged once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.plugins import EnqueueExtensions
from placement.status import Code, Status

logger = logging.getLogger(__name__)

Plugins = tuple[EnqueueExtensions, ...]
Questions = Mapping[EventKind, Plugins]
"""Whose hint to ask about which events; a missing kind wakes no pod."""

EVERYTHING: Final[Questions] = {}
"""No plugin can be asked: every event wakes. Compared by identity."""


class PluginCalls:
    """The caller has the lock."""

    def __init__(
        self, gate: Callable[[PodInfo], Status], hints: Callable[[PodInfo], Mapping[str, EnqueueExtensions]]
    ) -> None:
        self._gate, self._hints = gate, hints
        self._complained: set[str] = set()

    def gate(self, pod: PodInfo) -> Status:
        """Whether the pod may become active."""
        try:
            return self._gate(pod)
        except Exception as error:
            self._complain("PreEnqueue", "keeps pods out")
            return Status(Code.ERROR, "PreEnqueue", f"PreEnqueue failed: {type(error).__name__}: {error}")

    def questions(self, pod: PodInfo, rejected_by: frozenset[str]) -> Questions:
        """What may change the minds of those who rejected the pod."""
        kinds: dict[EventKind, Plugins] = {}
        try:
            known = self._hints(pod)
            for name in rejected_by:
                plugin = known.get(name)
                if plugin is None:
                    return EVERYTHING
                for kind in plugin.woken_by:
                    kinds[kind] = (*kinds.get(kind, ()), plugin)
        except Exception:
            self._complain("queueing hints", "wakes pods by everything")
            return EVERYTHING
        return kinds if rejected_by else EVERYTHING

    def wakes(self, pod: PodInfo, questions: Questions, event: ClusterEvent) -> bool:
        """Whether the pod is worth another attempt after that."""
        # Labels of its namespace may give a pod another policy, and that other filters.
        if questions is EVERYTHING or event.kind in (EventKind.TIMEOUT, EventKind.NAMESPACE_CHANGED):
            return True
        return self.helps(questions.get(event.kind, ()), pod, event)

    def helps(self, plugins: Plugins, pod: PodInfo, event: ClusterEvent) -> bool:
        """Whether one of them may change its mind."""
        skip = Hint.SKIP
        for plugin in plugins:
            try:
                if plugin.hint(pod, event) is not skip:
                    return True
            except Exception:
                self._complain(f"the queueing hint of {type(plugin).__name__}", "wakes pods")
                return True
        return False

    def _complain(self, what: str, so: str) -> None:
        if what not in self._complained:
            self._complained.add(what)
            logger.exception("%s raised, which %s; this is logged once", what, so)
