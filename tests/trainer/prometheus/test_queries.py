"""Query templates."""

from __future__ import annotations

from dataclasses import fields

import pytest

from trainer.prometheus.log_source import LOG_METRICS, LogSource, log_queries
from trainer.prometheus.queries import Queries, fill

NAMES = [field.name for field in fields(Queries) if getattr(Queries(), field.name)]


@pytest.mark.parametrize("name", NAMES)
def test_placeholders_are_replaced_and_braces_left_alone(name: str) -> None:
    query = fill(getattr(Queries(), name), window_seconds=300, namespaces="a|b", day_seconds=3600)
    for placeholder in ("{window}", "{namespaces}", "{day}"):
        assert placeholder not in query
    assert query.count("{") == query.count("}") and query.count("(") == query.count(")")


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("pod_")])
def test_default_pod_queries_can_be_split_by_namespace(name: str) -> None:
    assert 'namespace=~"a|b"' in fill(getattr(Queries(), name), window_seconds=300, namespaces="a|b")


def test_a_window_is_the_step() -> None:
    assert "[600s]" in fill(Queries().pod_cpu, window_seconds=600)
    assert "[1800s]" in fill(Queries().pod_requests, window_seconds=600, day_seconds=1800)


def test_every_log_source_tells_something() -> None:
    assert set(LOG_METRICS) == set(LogSource) - {LogSource.AUTO, LogSource.NONE}
    for source, metric in LOG_METRICS.items():
        queries = log_queries(source)
        assert metric.partition("{")[0] in queries.pod + queries.node + queries.gauge
    assert log_queries(LogSource.NONE) == log_queries(LogSource.AUTO)
