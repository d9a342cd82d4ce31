"""ServicesAhead and tables of the small live cluster of tests/scorer/live_cluster.py."""

from __future__ import annotations

from autoscaling.services_ahead import ServicesAhead, services_ahead
from base.excluded import ExcludedOptions
from cluster.live_tables import LiveTables
from tests.scorer.live_cluster import at, growing, pod_of
from tests.scorer.scorer_at import LiveScorer

PODS = [pod_of(5, f"p{i}", f"node-{i}", cpu=1.0, started=at(0)) for i in range(2)]


def live_tables(hour: float = 12.0) -> LiveTables:
    """Two pods of service 5, which grows to nine from 19:00 on, and one of service 4."""
    return LiveScorer(
        hour, pods=[*PODS, pod_of(4, "q", "node-0", cpu=2.0, started=at(0))], model=growing()
    ).scorer.tables


def ahead_of(tables: LiveTables) -> ServicesAhead:
    found = services_ahead(tables, ExcludedOptions())
    assert found is not None
    return found
