"""The definitions in deploy/crds on a real API server: it refuses what we refuse, and names the same field."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml

from admission.templates.parameters import matches, pattern_problem
from admission.templates.template_decoding import object_from_manifest
from testing.processes.scorer_process import ROOT
from testing.servers.control_plane.control_plane import ControlPlane
from tests.admission.templates.manifests import (
    DEFINITIONS,
    INVALID,
    VALID,
    binding,
    example_manifests,
    node_config,
    pod_config,
)
from tests.live_cluster.custom_resources import CustomResources


@pytest.fixture(scope="module")
def resources(plane: ControlPlane) -> Iterator[CustomResources]:
    with CustomResources(plane) as resources:
        answers = resources.install()
        assert [(one.status, one.warnings) for one in answers] == [(201, ())] * 3, [one.message for one in answers]
        yield resources


def test_examples_are_accepted_without_warnings(resources: CustomResources) -> None:
    answers = resources.create_many([*example_manifests(), *VALID])
    assert {(one.status, one.warnings) for one in answers} == {(201, ())}, [one.message for one in answers]


@pytest.mark.parametrize("what", INVALID)
def test_what_we_refuse_is_refused_and_the_field_named(resources: CustomResources, what: str) -> None:
    manifest, field = INVALID[what]
    answer = resources.create(manifest, dry_run=True)
    assert answer.status in (400, 422), answer.body
    assert field in answer.message.replace('"', ""), answer.message


def test_templates_as_large_as_the_schema_allows_are_accepted(resources: CustomResources) -> None:
    """Rules have a budget when they are evaluated, too."""
    parameters: list[dict[str, Any]] = [
        {
            "name": f"p{n:031}",
            "strings": {"default": ["a" * 63] * 32, "pattern": "[a-z]*", "enum": ["b"] * 63 + ["a" * 63]},
        }
        for n in range(16)
    ]
    last = parameters[-1]["name"]
    expression = {"key": "k" * 63, "operator": "In", "values": ["v" * 63] * 32, "valuesFrom": [last] * 8}
    node_terms = [{"matchExpressions": [expression] * 16}] * 16
    selector = {"matchLabels": {f"{'p' * 63}/{n}": "v" for n in range(16)}}
    pod_terms = [
        {
            "matchExpressions": [expression] * 8,
            "matchLabelKeys": ["m" * 63] * 8,
            "topologyKey": "zone",
            "namespacesFrom": [last] * 8,
            "namespaceSelector": selector,
        }
    ] * 8
    both = {"required": pod_terms, "preferred": [one | {"weight": 1} for one in pod_terms]}
    manifests = [
        node_config(
            "large", parameters=parameters, required=node_terms, preferred=[t | {"weight": 1} for t in node_terms]
        ),
        pod_config("large", parameters=parameters, podAffinity=both, podAntiAffinity=both),
        binding(
            "large",
            arguments=[{"name": f"p{n}", "strings": ["a" * 253] * 32} for n in range(16)],
            pods={"namespaces": ["n" * 63] * 64, "selector": selector, "namespaceSelector": selector},
        ),
    ]
    for one, answer in zip(manifests, resources.create_many(manifests, dry_run=True), strict=True):
        assert answer.status == 201, answer.message[:2000]
        object_from_manifest(one)


def test_random_patterns_are_refused_by_both_or_match_the_same(resources: CustomResources) -> None:
    """Python's `re` and the API server's RE2: what both let through must mean the same."""
    rng = random.Random(5)
    pieces = [
        "a",
        "b",
        "-",
        ".",
        r"\.",
        "[ab]",
        "[^a]",
        "[a-c]",
        "(a|b)",
        "(",
        ")",
        "|",
        "*",
        "+",
        "?",
        "{2}",
        "{1,}",
        "{0,2}",
    ]
    pieces += ["(ab)?", "[b-a]", "^", "(?i)", "{2,1}", "--", "[]", "ä"]
    patterns = ["".join(rng.choices(pieces, k=rng.randint(1, 6))) for _ in range(400)]
    texts = ["", "a", "ab", "aab", "abab", "b-a", "a.b", "cc", "aaaa"]
    cases = [(pattern, _text(pattern, texts, rng)) for pattern in patterns]
    manifests = [
        node_config("pattern", **{**VALID[0]["spec"], "parameters": [*PARAMETERS, _parameter(pattern, text)]})
        for pattern, text in cases
    ]
    answers = resources.create_many(manifests, dry_run=True)
    ours = [not pattern_problem(pattern) and matches(pattern, text) for pattern, text in cases]
    assert [one.status == 201 for one in answers] == ours
    assert sum(ours) > 20 and sum(not pattern_problem(pattern) for pattern, _ in cases) > 60


PARAMETERS: Final = VALID[0]["spec"]["parameters"]


def _text(pattern: str, texts: list[str], rng: random.Random) -> str:
    """One that matches, where there is one, half of the time."""
    matching = [] if pattern_problem(pattern) else [text for text in texts if matches(pattern, text)]
    return rng.choice(matching if matching and rng.random() < 0.5 else texts)


def _parameter(pattern: str, default: str) -> dict[str, Any]:
    return {"name": "tried", "string": {"pattern": pattern, "default": default}}


def test_every_field_is_explained() -> None:
    for path in (*DEFINITIONS, ROOT / "deploy/crds/podgroups/podgroups.yaml"):
        version = yaml.safe_load(path.read_text())["spec"]["versions"][0]
        silent = list(_without_description(version["schema"]["openAPIV3Schema"], path.stem))
        assert silent == []


def _without_description(schema: dict[str, Any], where: str) -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        if "description" not in field and (where.count("."), name) != (0, "metadata"):
            yield f"{where}.{name}"
        yield from _without_description(field, f"{where}.{name}")
    if "items" in schema:
        yield from _without_description(schema["items"], f"{where}[]")
