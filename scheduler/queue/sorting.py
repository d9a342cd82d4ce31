"""Which unit comes first: plugin PrioritySort (pkg/scheduler/framework/plugins/queuesort/priority_sort.go)."""

from __future__ import annotations

from placement.plugins import SortedUnit


class PrioritySort:
    """Higher priority first, then who waits longer."""

    name = "PrioritySort"

    def key(self, unit: SortedUnit) -> tuple[float, ...]:
        return (-unit.priority, unit.since)
