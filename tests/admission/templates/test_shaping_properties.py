"""What holds for whatever templates, bindings and pods there are."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from admission.templates.applied_bindings import SkipReason
from admission.templates.pod_shaping import Shaped
from admission.templates.shaping_annotations import applied_to
from admission.templates.template_set import TemplateSet
from kube.decoding.decoding import decode_pod
from kube.objects.constraints import NodeSelectorTerm, Operator, Requirement
from kube.objects.labels import requirement_matches
from kube.objects.objects import PodInfo
from placement.filters.node_affinity import NAME_FIELD
from tests.admission.templates.manifests import Manifest, template_set
from tests.admission.templates.random_templates import random_manifests, random_pod
from tests.admission.templates.shaping_pods import applied_to_pod, shaped

SEEDS = st.integers(0, 2**48)

UNCHANGED: tuple[None, dict[str, str | None]] = (None, {})


def _case(seed: int) -> tuple[TemplateSet, Manifest, random.Random]:
    rng = random.Random(seed)
    return template_set(*random_manifests(rng)), random_pod(rng), rng


@given(SEEDS)
def test_a_second_time_changes_nothing(seed: int) -> None:
    templates, pod, _ = _case(seed)
    before = copy.deepcopy(pod)
    first = shaped(pod, templates)
    assert pod == before, "the pod itself is left as it was"
    again = shaped(applied_to_pod(pod, first), templates)
    assert (again.affinity, again.annotations) == UNCHANGED
    assert again.applied == first.applied


@given(SEEDS)
def test_the_record_says_what_was_applied(seed: int) -> None:
    templates, pod, _ = _case(seed)
    result = shaped(pod, templates)
    annotations = applied_to_pod(pod, result)["metadata"].get("annotations", {})
    assert applied_to(annotations) == result.applied
    names = [one.binding for one in result.applied]
    skipped = {one.binding for one in result.skipped if one.reason not in (SkipReason.CONFLICT, SkipReason.ARGUMENTS)}
    assert len(set(names)) == len(names) and not skipped & set(names)
    assert bool(result.applied) == (result.affinity is not None)


@given(SEEDS)
def test_every_node_the_pod_may_go_to_was_allowed_before(seed: int) -> None:
    """Templates only take nodes away; what an owner demanded is demanded still."""
    templates, pod, rng = _case(seed)
    result = shaped(pod, templates)
    before, after = decode_pod(pod), decode_pod(applied_to_pod(pod, result))
    for _ in range(30):
        node = _node(rng)
        if _allows(after, node):
            assert _allows(before, node)
    if _has_room(before) and result.affinity is not None:
        assert _has_room(after), "a pod that could be placed can be placed"


@given(SEEDS)
def test_what_is_merged_demands_what_the_binding_alone_demands(seed: int) -> None:
    rng = random.Random(seed)
    manifests = random_manifests(rng, n_templates=1, n_bindings=1)
    manifests[-1]["spec"] |= {"onConflict": "Merge", "pods": {"selector": {}}}
    templates, pod = template_set(*manifests), random_pod(rng)
    result = shaped(pod, templates)
    bare = {**pod, "spec": {"containers": pod["spec"]["containers"]}}
    alone = shaped(bare, templates)
    if result.affinity is None or alone.affinity is None:
        return
    merged, required = decode_pod(applied_to_pod(pod, result)), decode_pod(applied_to_pod(bare, alone))
    own = decode_pod(pod)
    for _ in range(50):
        node = _node(rng)
        assert _allows(merged, node) == (_allows(own, node) and _allows(required, node))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.sampled_from(["In", "true"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            [
                "metadata", "spec", "affinity", "nodeAffinity", "podAffinity", "annotations", "labels", "nodeSelector",
                "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution",
                "nodeSelectorTerms", "matchExpressions", "key", "operator", "values", "ownerReferences", "controller",
                "kind", "name", "app", "team", "forecast-scheduler.io/templates", "forecast-scheduler.io/opt-out",
            ]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=30,
)  # fmt: skip


@given(SEEDS, st.data())
def test_no_json_makes_it_fail(seed: int, data: st.DataObject) -> None:
    rng = random.Random(seed)
    templates, pod = template_set(*random_manifests(rng)), random_pod(rng)
    # A pod that is right but for one piece gets further than one that is wrong from the start.
    at: Any = pod
    while isinstance(at, dict) and at and rng.random() < 0.7:
        key = rng.choice(sorted(at))
        if not isinstance(at[key], dict):
            break
        at = at[key]
    if isinstance(at, dict):
        at[rng.choice([*sorted(at), "affinity"])] = data.draw(JSON)
    result = shaped(pod, templates)
    assert isinstance(result, Shaped)
    # Twice, since what it makes of such a pod must be as stable.
    if isinstance(pod.get("metadata"), dict) and isinstance(pod["metadata"].get("annotations", {}), dict):
        again = shaped(applied_to_pod(pod, result), templates)
        assert (again.affinity, again.annotations) == UNCHANGED


def _node(rng: random.Random) -> dict[str, str]:
    """Values that templates and pods name, and whole numbers between and beyond them."""
    keys = ("pool", "zone", "cores", "example.com/gpu", "app")
    return {key: rng.choice("abc0134578d") for key in keys if rng.random() < 0.8}


def _has_room(pod: PodInfo) -> bool:
    """Whether there is a node for it: one that any of its terms allows, whose labels can be chosen one by one."""
    constraints = pod.constraints
    selector = [Requirement(key, Operator.IN, (value,)) for key, value in constraints.node_selector]
    if constraints.required_node_terms is None:
        return True
    return any(
        (term.expressions or term.fields) and _has_labels((*term.expressions, *selector))
        for term in constraints.required_node_terms
    )


# A number can be written with zeros in front, which NotIn does not know.
_TRIED = ["", *"abcdefg", *map(str, range(120)), *(f"0{number}" for number in range(12))]


def _has_labels(requirements: Sequence[Requirement]) -> bool:
    for key in {one.key for one in requirements}:
        about = [one for one in requirements if one.key == key]
        tried: list[dict[str, str]] = [{}, *({key: value} for value in _TRIED)]
        if not any(all(requirement_matches(one, labels) for one in about) for labels in tried):
            return False
    return True


def _allows(pod: PodInfo, labels: dict[str, str]) -> bool:
    """nodeSelector and required node affinity, the slow and plain way."""
    constraints = pod.constraints
    if any(labels.get(key) != value for key, value in constraints.node_selector):
        return False
    terms = constraints.required_node_terms
    return terms is None or any(_term_allows(term, labels) for term in terms)


def _term_allows(term: NodeSelectorTerm, labels: dict[str, str]) -> bool:
    if not (term.expressions or term.fields):
        return False
    return all(requirement_matches(one, labels) for one in term.expressions) and all(
        requirement_matches(one, {NAME_FIELD: "node-1"}) for one in term.fields
    )
