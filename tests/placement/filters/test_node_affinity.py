"""Table of framework/plugins/nodeaffinity/node_affinity_test.go."""

from __future__ import annotations

from typing import Any

import pytest

from placement.filters.node_affinity import NodeAffinity
from testing.placement.views import PASSES, Verdict, node_named, pod_with, verdict

NO_MATCH = Verdict.no("node(s) didn't match Pod's node affinity/selector")
CONFLICT = Verdict.no("pod affinity terms conflict")

Json = dict[str, Any]


def need(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


def named(*names: str) -> Json:
    return need("metadata.name", "In", *names)


def term(*expressions: Json, fields: list[Json] | None = None) -> Json:
    return {"matchExpressions": list(expressions), "matchFields": fields or []}


def required(*terms: Json) -> Json:
    selector = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


BAR = {"foo": "bar"}


@pytest.mark.parametrize(
    ("spec", "labels", "expected"),
    [
        pytest.param({"nodeSelector": BAR}, {}, NO_MATCH, id="missing labels"),
        pytest.param({"nodeSelector": BAR}, BAR | {"baz": "blah"}, PASSES, id="node labels are superset"),
        pytest.param(required(term(need("foo", "In", "bar", "value2"))), BAR, PASSES, id="In"),
        pytest.param(required(term(need("version", "Gt", "0204"))), {"version": "0206"}, PASSES, id="Gt"),
        pytest.param(required(term(need("version", "Lt", "0204"))), {"version": "0206"}, NO_MATCH, id="Lt"),
        pytest.param(required(term(need("mem", "NotIn", "DDR", "DDR2"))), {"mem": "DDR3"}, PASSES, id="NotIn"),
        pytest.param(required(term(need("mem", "NotIn", "DDR"))), {}, PASSES, id="NotIn without the label"),
        pytest.param(required(term(need("GPU", "DoesNotExist"))), {}, PASSES, id="DoesNotExist"),
        pytest.param(required(term()), BAR, NO_MATCH, id="an empty term matches nothing"),
        pytest.param(required(), BAR, NO_MATCH, id="no terms match nothing"),
        pytest.param({}, BAR, PASSES, id="no affinity"),
        pytest.param(
            required(term(need("GPU", "Exists"), need("GPU", "In", "AMD"))),
            {"GPU": "K1"},
            NO_MATCH,
            id="ANDed, one fails",
        ),
        pytest.param(
            required(term(need("foo", "In", "bar")), term(need("diffkey", "In", "wrong"))),
            BAR,
            PASSES,
            id="terms are ORed",
        ),
        pytest.param(
            {"nodeSelector": BAR, **required(term(need("foo", "Exists")))},
            {"foo": "barrrrrr"},
            NO_MATCH,
            id="affinity but not the selector",
        ),
        pytest.param(
            required(term(need("foo", "NotIn", "invalid value: ___@#$%^"))), BAR, NO_MATCH, id="an invalid value"
        ),
        pytest.param(
            required(term(need("foo", "NotIn", "not valid")), term(need("foo", "Exists"))),
            BAR,
            PASSES,
            id="an invalid term leaves the others",
        ),
        pytest.param(required(term(need("not valid", "DoesNotExist"))), BAR, NO_MATCH, id="an invalid key"),
        pytest.param(required(term(need("foo", "Gt", "many"))), {"foo": "3"}, NO_MATCH, id="Gt with a word"),
        pytest.param(required(term(fields=[named("node1")])), {}, PASSES, id="the node's name"),
        pytest.param(
            required(term(fields=[need("metadata.name", "NotIn", "node1")])), {}, NO_MATCH, id="not this name"
        ),
        pytest.param(
            required(term(fields=[named("node1"), named("node2")]), term(need("foo", "In", "bar"))),
            BAR,
            PASSES,
            id="two terms, the names conflict in one",
        ),
        pytest.param(required(term(fields=[named("node1"), named("node2")])), BAR, CONFLICT, id="names conflict"),
        pytest.param(required(term(fields=[named("node1", "node2")])), {}, NO_MATCH, id="a field has one value"),
        pytest.param(
            required(term(fields=[need("metadata.name", "Exists")])), {}, NO_MATCH, id="fields have no Exists"
        ),
        pytest.param(required(term(fields=[need("spec.x", "In", "")])), {}, PASSES, id="other fields are empty"),
    ],
)
def test_upstream(spec: Json, labels: dict[str, str], expected: Verdict) -> None:
    assert verdict(NodeAffinity(), pod_with(spec), node_named("node1", labels=labels)) == expected
