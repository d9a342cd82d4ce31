"""Every selector of a query gets the labels, and nothing else changes: a table of PromQL, and random queries."""

from __future__ import annotations

import json
import re
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import fields

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testing.servers.prometheus import PrometheusServer
from trainer.prometheus.label_selectors import UnreadableQuery, with_labels
from trainer.prometheus.log_source import LOG_METRICS, log_queries
from trainer.prometheus.queries import Queries, fill

EU = {"cluster": "eu"}
OURS = 'cluster="eu"'


@pytest.mark.parametrize(
    ("query", "narrowed"),
    [
        ("up", "up{#}"),
        ("up{}", "up{#}"),
        ("up {job='a',}", "up {job='a',#}"),
        ('up{cluster="us"}', 'up{cluster="us",#}'),
        ('{__name__=~"a|b"}', '{__name__=~"a|b",#}'),
        ('{"my.metric", "my.label"=~"b"}', '{"my.metric", "my.label"=~"b",#}'),
        ("a:b:c", "a:b:c{#}"),
        ("sum by (job) (a)", "sum by (job) (a{#})"),
        ("SUM(a) WITHOUT(job, instance) / 2", "SUM(a{#}) WITHOUT(job, instance) / 2"),
        ("sum by (a) (by)", "sum by (a) (by{#})"),
        ("a * on (b) group_left (c) d", "a{#} * on (b) group_left (c) d{#}"),
        ("a / ignoring(b) group_right d", "a{#} / ignoring(b) group_right d{#}"),
        ("a and b or c unless d atan2 e", "a{#} and b{#} or c{#} unless d{#} atan2 e{#}"),
        ("a > bool b", "a{#} > bool b{#}"),
        ("a offset 5m + b offset -1h30m", "a{#} offset 5m + b{#} offset -1h30m"),
        ("a @ start() - b @ 1.6e9 offset 1w", "a{#} @ start() - b{#} @ 1.6e9 offset 1w"),
        ("max_over_time(rate(a[5m])[1d:30m] @ end())", "max_over_time(rate(a{#}[5m])[1d:30m] @ end())"),
        ("-inf + NaN + 0x1F + 1e-3 * a", "-inf + NaN + 0x1F + 1e-3 * a{#}"),
        ("vector(time())", "vector(time())"),
        ('label_replace(a, "b", "c{d}", "e", "(.*)")', 'label_replace(a{#}, "b", "c{d}", "e", "(.*)")'),
        ("a{b=\"\\\"}\",c=`\\`,d='\\'}'}", "a{b=\"\\\"}\",c=`\\`,d='\\'}',#}"),
        ("a # b{\n + c{d='e' # }\n}", "a{#} # b{\n + c{d='e' # }\n,#}"),
        ("a # the end", "a{#} # the end"),
        ("start + end{b='c'}", "start{#} + end{b='c',#}"),
        ("topk($top, a{b=~\"$b\"}[$__range])", "topk($top, a{b=~\"$b\",#}[$__range])"),
        ("{a='b' or c='d'}", "{a='b' ,# or c='d',#}"),
        ("{or='b'}", "{or='b',#}"),
        ("a default b", "a{#} default b{#}"),
    ],
)  # fmt: skip
def test_selectors_get_the_labels(query: str, narrowed: str) -> None:
    # "#" in a comment is followed by a space.
    expected = narrowed.replace("{#", "{" + OURS).replace(",#", "," + OURS)
    assert with_labels(query, EU) == expected


@pytest.mark.parametrize(
    "query", ["a b", "a{", "a{b='c'", "sum by (a", "rate(a[5m)", "WITH (x = a) x", "a{b=c[}", 'a "b"', "a?"]
)
def test_what_cannot_be_read_is_refused_rather_than_sent(query: str) -> None:
    with pytest.raises(UnreadableQuery, match="the query is"):
        with_labels(query, EU)


def test_values_are_escaped_and_names_quoted_where_they_have_to_be() -> None:
    labels = {"cluster": 'a"b\\c\nd', "k8s.cluster": "ü"}
    assert with_labels("up", labels) == r'up{cluster="a\"b\\c\nd","k8s.cluster"="ü"}'
    assert with_labels("this is ( no query", {}) == "this is ( no query"


def test_every_selector_of_our_queries_gets_the_labels() -> None:
    logs = [getattr(log_queries(source), one) for source in LOG_METRICS for one in ("pod", "node", "gauge")]
    for template in (*(getattr(Queries(), field.name) for field in fields(Queries)), *logs, *LOG_METRICS.values()):
        query = fill(template, window_seconds=300)
        assert with_labels(query, EU).count(OURS) == len(_METRIC.findall(query)), query


_METRIC = re.compile(r"\b(?:container|kube|node|kubelet|vector|promtail|loki|fluentbit)_\w+(?=[{\[]|$)")


# -- random queries, as a text with <> where the labels have to come -------------------------------------------------

_METRICS = st.sampled_from(["up", "a:b:c", "sum", "by", "offset", "start", "without", "and", "group", "count_values"])
_STRINGS = st.sampled_from(['"x"', "'{'", '"\\"}"', "`)\\`", '"a # b"', '"by (x)"'])
_MATCHER = st.builds(
    "{}{}{}".format, st.sampled_from(["job", "by", "on", "or", "bool"]), st.sampled_from(["=", "!=", "=~", "!~"]),
    st.sampled_from(['"x"', "'y'", '"\\\\."', "`z`", '"}"']),
)  # fmt: skip
_SPACE = st.sampled_from(["", " ", " # a{b='c'}\n ", "\n"])
_LIST = st.sampled_from(["()", "(job)", "(job, by)", "( sum,on )"])


@st.composite
def _selectors(draw: st.DrawFn) -> str:
    name, matchers = draw(_METRICS), draw(st.lists(_MATCHER, max_size=2))
    if not matchers:
        return draw(st.sampled_from([f"{name}<>", f"{name}{{<>}}"]))
    inside = ",".join(matchers) + ",<>"
    return draw(st.sampled_from([f"{name}{draw(_SPACE)}{{{inside}}}", f'{{__name__="{name}",{inside}}}']))


@st.composite
def _vectors(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    one, other, s = draw(inner), draw(inner), draw(_SPACE)
    matching = draw(st.sampled_from(["", f"on{s}{draw(_LIST)} ", f"ignoring {draw(_LIST)} "]))
    aggregation = draw(st.sampled_from(["sum", "MAX", "group", "stddev"]))
    grouping = f"{draw(st.sampled_from(['by', 'WITHOUT']))}{s}{draw(_LIST)}"
    end = draw(st.sampled_from(["", " offset 5m", " offset -1h", " @ 123.5", " @ start()", " @ end() offset 1m"]))
    return draw(
        st.sampled_from(
            [
                f"({one}){s}",
                f"-{one}",
                f"{aggregation}({one})",
                f"{aggregation} {grouping}{s}({one})",
                f"{aggregation}({one}){s}{grouping}",
                f"topk by (job) (3, {one})",
                f"({one}) {draw(st.sampled_from(['+', '/', '^', '== bool', '>', '%']))} {matching}({other})",
                f"({one}) * on (job) group_left (by){s}({other})",
                f"({one}) {draw(st.sampled_from(['and', 'OR', 'unless']))} {matching}({other})",
                f"({one}) * 1e-3 + 0x1f - Inf",
                f'label_replace({one}, "a", {draw(_STRINGS)}, "b", "(.*)")',
                f"rate({draw(_selectors())}[5m]{end})",
                f"max_over_time(({one})[1d:30m]{end})",
                f"{draw(_selectors())}{end}",
            ]
        )
    )


_QUERIES = st.recursive(_selectors(), _vectors, max_leaves=6)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    with PrometheusServer(tmp_path_factory.mktemp("empty")) as running:
        yield running


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(marked=_QUERIES)
def test_random_queries_get_them_where_prometheus_sees_a_selector(server: PrometheusServer, marked: str) -> None:
    plain = marked.replace(",<>", "").replace("{<>}", "{}").replace("<>", "")
    expected = marked.replace("{<>}", f"{{{OURS}}}").replace(",<>", f",{OURS}").replace("<>", f"{{{OURS}}}")
    narrowed = with_labels(plain, EU)
    assert narrowed == expected
    formatted = _formatted(server, narrowed)  # Prometheus itself understands it
    assert formatted.count(OURS) == marked.count("<>")


def _formatted(server: PrometheusServer, query: str) -> str:
    url = f"{server.url}/api/v1/format_query?{urllib.parse.urlencode({'query': query})}"
    with urllib.request.urlopen(url, timeout=20) as answer:
        return str(json.load(answer)["data"])
