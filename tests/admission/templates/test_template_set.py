from __future__ import annotations

import copy

import pytest

from admission.templates.template_decoding import BINDINGS, NODE_CONFIGS
from admission.templates.template_set import TemplateSet
from base.errors import InputError
from tests.admission.templates.manifests import Manifest, binding, node_config, template_set

POOL = node_config(
    "pool",
    parameters=[{"name": "first", "string": {}}],
    required=[{"matchExpressions": [{"key": "pool", "operator": "In", "valuesFrom": ["first"]}]}],
)
FIRST = [{"name": "first", "string": "a"}]


def test_each_problem_has_a_reason_and_says_what_to_mend() -> None:
    templates = template_set(
        POOL,
        binding("fine", arguments=FIRST),
        binding("lost", "NodeSchedulerConfig/pond", arguments=FIRST),
        binding("other-kind", "PodSchedulerConfig/pool", arguments=FIRST),
        binding("silent"),
    )
    assert {name: (one.reason, one.message) for name, one in templates.problems.items()} == {
        "lost": ("TemplateNotFound", "there is no NodeSchedulerConfig/pond"),
        "other-kind": ("TemplateNotFound", "there is no PodSchedulerConfig/pool"),
        "silent": (
            "InvalidArguments",
            "argument first: is missing: the parameter has no default; give it here or in an annotation of the pod",
        ),
    }


def test_objects_that_a_cluster_with_an_older_schema_let_through_are_problems() -> None:
    broken_template = NODE_CONFIGS.decode(b'{"metadata": {"name": "pool"}, "spec": {"required": [{}]}}')[0]
    broken = BINDINGS.decode(b'{"metadata": {"name": "broken"}, "spec": {"pods": {}}}')[0]
    bound = BINDINGS.decode(
        b'{"metadata": {"name": "bound"}, "spec": {"pods": {"selector": {}}, '
        b'"template": {"kind": "NodeSchedulerConfig", "name": "pool"}}}'
    )[0]
    templates = TemplateSet.of([broken_template], [], [broken, bound])
    assert {name: one.reason for name, one in templates.problems.items()} == {
        "broken": "InvalidBinding",
        "bound": "InvalidTemplate",
    }
    assert "spec.required[0]" in templates.problems["bound"].message


def _rebuilt(before: TemplateSet, *manifests: Manifest) -> TemplateSet:
    return template_set(*manifests, before=before)


def test_what_has_not_changed_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    manifests = [POOL, binding("one", arguments=FIRST), binding("two", arguments=FIRST)]
    before = template_set(*manifests)
    compiled: list[object] = []

    def counting(parameters: object, arguments: object) -> dict[str, object]:
        compiled.append(arguments)
        raise InputError("not now")

    monkeypatch.setattr("admission.templates.template_set.values_of", counting)
    assert not _rebuilt(before, *manifests).problems and not compiled
    manifests[2] = binding("two", arguments=FIRST, priority=3)
    assert list(_rebuilt(before, *manifests).problems) == ["two"]
    changed = copy.deepcopy(POOL)
    changed["metadata"]["generation"] = 2
    assert list(_rebuilt(before, changed, *manifests[1:]).problems) == ["one", "two"]


def test_terms_that_no_pod_could_take_are_a_problem_and_late_templates_are_found() -> None:
    values = [f"{n}-{'x' * 56}" for n in range(32)]
    long = [{"key": f"key-{n}", "operator": "In", "values": values} for n in range(16)]
    templates = template_set(node_config("pool", required=[{"matchExpressions": long}]), binding())
    assert templates.problems["cart"].reason == "TooLarge"
    before = template_set(binding("early", arguments=FIRST))
    assert "early" in before.problems
    assert not template_set(POOL, binding("early", arguments=FIRST), before=before).problems
