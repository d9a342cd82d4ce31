from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from admission.templates.applied_bindings import SkipReason
from admission.templates.shaping_annotations import TEMPLATES_ANNOTATION, Applied
from base.errors import InputError
from scorer.scoring_policy import OPT_OUT_ANNOTATION
from tests.admission.templates.manifests import binding, node_config, pod_config, template_set
from tests.admission.templates.shaping_pods import (
    POOL,
    PREFERRED,
    REQUIRED,
    A,
    B,
    C,
    G,
    applied_to_pod,
    demanded,
    on,
    pod,
    reasons,
    shaped,
    term,
    wanting,
)


@pytest.mark.parametrize(
    ("spec", "template", "rule", "expected"),
    [
        ({}, [term(A)], "KeepPod", [term(A)]),
        ({}, [term(A), term(C)], "KeepPod", [term(A), term(C)]),
        ({}, [term(A), term(A, C)], "KeepPod", [term(A)]),
        ({"affinity": wanting(term(C))}, [term(A)], "KeepPod", [term(C, A)]),
        ({"affinity": wanting(term(C))}, [term(A, on("zone", "d"))], "KeepPod", [term(C, A)]),
        ({"nodeSelector": {"zone": "c"}}, [term(A, on("zone", "d"))], "KeepPod", [term(A)]),
        ({"affinity": wanting(term(C), term(B))}, [term(G, C)], "KeepPod", [term(C, G), term(B, G)]),
        ({"affinity": wanting(term(on("pool", "a", "b")))}, [term(A)], "Merge", [term(on("pool", "a", "b"), A)]),
        ({"affinity": wanting(term(A), term(B))}, [term(A)], "Merge", [term(A)]),
        ({"affinity": wanting(term(B), term(C))}, [term(A)], "Merge", [term(C, A)]),
        ({"affinity": wanting(term(C), {})}, [term(A)], "Merge", [term(C, A)]),
        ({"nodeSelector": {"pool": "a"}}, [term(A), term(B)], "Merge", [term(A)]),
        (
            {"affinity": wanting(term(C), term(G))},
            [term(A), term(B)],
            "Merge",
            [
                term(C, A),
                term(C, B),
                term(G, A),
                term(G, B),
            ],
        ),
        (
            {"affinity": wanting({"matchFields": [on("metadata.name", "n")]})},
            [term(A)],
            "Merge",
            [{"matchFields": [on("metadata.name", "n")], "matchExpressions": [A]}],
        ),
    ],
)  # fmt: skip
def test_what_is_demanded_together(
    spec: dict[str, Any], template: list[dict[str, Any]], rule: str, expected: list[dict[str, Any]]
) -> None:
    templates = template_set(node_config("pool", required=template), binding(onConflict=rule))
    assert demanded(shaped(pod(**spec), templates)) == expected


@pytest.mark.parametrize(
    ("spec", "rule", "reason"),
    [
        ({"nodeSelector": {"pool": "b"}}, "KeepPod", SkipReason.KEPT_POD),
        ({"nodeSelector": {"pool": "b"}}, "Merge", SkipReason.CONTRADICTION),
        ({"affinity": wanting(term(B))}, "KeepPod", SkipReason.KEPT_POD),
        ({"affinity": wanting(term(B))}, "Merge", SkipReason.CONTRADICTION),
        ({"affinity": wanting(term(on("pool", operator="DoesNotExist")))}, "Merge", SkipReason.CONTRADICTION),
        ({"affinity": wanting({})}, "KeepPod", SkipReason.CONTRADICTION),
        ({"affinity": wanting(term(A))}, "Merge", SkipReason.UNCHANGED),
        ({"affinity": wanting(term(C, A))}, "Merge", SkipReason.UNCHANGED),
        ({"affinity": wanting(*[term(on("zone", str(n))) for n in range(65)])}, "Merge", SkipReason.TOO_LARGE),
        ({"affinity": wanting(term(on("zone", *["z" * 60] * 600)))}, "KeepPod", SkipReason.TOO_LARGE),
        ({"affinity": {"nodeAffinity": "here"}}, "Merge", SkipReason.UNREADABLE),
        ({"affinity": wanting(term(on("zone", "c", operator="Like")))}, "Merge", SkipReason.UNREADABLE),
        ({"nodeName": "node-1"}, "Merge", SkipReason.NODE_NAMED),
    ],
)
def test_a_pod_stays_as_it_is_and_the_reason_is_told(spec: dict[str, Any], rule: str, reason: SkipReason) -> None:
    result = shaped(pod(**spec), template_set(POOL, binding(onConflict=rule)))
    assert reasons(result) == {"cart": reason}
    assert (result.affinity, result.annotations, result.applied) == (None, {}, ())


@pytest.mark.parametrize(
    ("spec", "template", "lost"),
    [
        ({"nodeSelector": {"pool": "a"}}, [term(A)], ()),
        ({"nodeSelector": {"pool": "b"}}, [term(A)], ("pool",)),
        ({"nodeSelector": {"pool": "a"}}, [term(on("pool", "a", "b"), C)], ()),
        ({"nodeSelector": {"pool": "b"}}, [term(A, C)], ("pool",)),
        ({"affinity": wanting(term(A), term(B))}, [term(on("pool", "a", "b", "c"))], ()),
        ({"affinity": wanting(term(A), term(B))}, [term(A)], ("pool",)),
        ({"affinity": wanting(term(A), term(B))}, [term(A), term(B)], ()),
        ({"nodeSelector": {"pool": "b"}}, [term(A, C), term(B, on("zone", "d"))], ("pool",)),
        ({"nodeSelector": {"pool": "b"}}, [term(A, G), term(B, G)], ()),
        ({"nodeSelector": {"pool": "b"}}, [term(A), term(C)], ("pool",)),
        ({"nodeSelector": {"pool": "a"}}, [term(A), term(C)], ()),
        ({"affinity": wanting(term(on("pool", "x", operator="NotIn")))}, [term(on("pool"))], ("pool",)),
        ({"affinity": wanting(term(on("pool", "7", operator="Gt")))}, [term(on("pool"))], ()),
        ({"affinity": wanting(term(on("pool", "7", operator="Gt")))}, [term(on("pool", "5", operator="Gt"))], ()),
        ({"affinity": wanting(term(on("pool", "3", operator="Gt")))}, [term(on("pool", "5", operator="Gt"))],
         ("pool",)),
        ({"affinity": wanting(term(on("pool", "3", "4")))}, [term(on("pool", "5", operator="Lt"))], ()),
        ({"affinity": wanting(term(on("pool", "x", operator="NotIn")))}, [term(on("pool", "x", operator="NotIn"))], ()),
    ],
)  # fmt: skip
def test_what_was_left_out_is_lost_where_the_pod_does_not_say_it(
    spec: dict[str, Any], template: list[dict[str, Any]], lost: tuple[str, ...]
) -> None:
    (one,) = shaped(pod(**spec), template_set(node_config("pool", required=template), binding())).skipped
    assert one.reason in (SkipReason.KEPT_POD, SkipReason.CONFLICT) and one.lost_keys == lost


def test_bindings_apply_by_priority_and_each_sees_those_before() -> None:
    other = node_config("other", required=[term(B, C)])
    templates = template_set(
        POOL,
        other,
        binding("a-late", "NodeSchedulerConfig/other", priority=-1),
        binding("z-early", priority=5),
        binding("b-later", "NodeSchedulerConfig/other", priority=-1, onConflict="Merge"),
    )
    result = shaped(pod(), templates)
    assert demanded(result) == [term(A, C)]
    assert [one.binding for one in result.applied] == ["z-early", "a-late"]
    assert reasons(result) == {"a-late": SkipReason.CONFLICT, "b-later": SkipReason.CONTRADICTION}


def test_the_record_names_versions_and_stays_with_the_one_that_shaped_the_pod() -> None:
    stored_template, stored_binding = copy.deepcopy(POOL), binding()
    stored_template["metadata"]["generation"], stored_binding["metadata"]["generation"] = 2, 3
    result = shaped(pod(), template_set(stored_template, stored_binding))
    assert result.applied == (Applied("cart", 3, "NodeSchedulerConfig/pool", 2),)
    assert json.loads(str(result.annotations[TEMPLATES_ANNOTATION])) == [
        {"binding": "cart", "generation": 3, "template": "NodeSchedulerConfig/pool", "version": 2}
    ]
    first = applied_to_pod(pod(), shaped(pod(), template_set(POOL, binding())))
    changed = node_config("pool", required=[term(B)])
    changed["metadata"]["generation"] = 2
    again = shaped(first, template_set(changed, binding()))
    assert (again.affinity, again.annotations) == (None, {}), "its own pool is kept, and the record is true still"
    assert again.applied[0].version == 0
    first = applied_to_pod(pod(), shaped(pod(), template_set(POOL, binding())))
    suspended = template_set(POOL, binding(suspended=True))
    again = shaped(first, suspended)
    assert (again.affinity, again.annotations, reasons(again)) == (None, {}, {})
    assert [one.binding for one in again.applied] == ["cart"]
    del first["spec"]["affinity"]
    without = shaped(first, suspended)
    assert without.annotations[TEMPLATES_ANNOTATION] is None and reasons(without) == {"cart": SkipReason.SUSPENDED}
    assert reasons(shaped(pod(), suspended)) == {"cart": SkipReason.SUSPENDED}


def test_a_pod_made_of_a_copy_is_shaped_though_it_has_the_record() -> None:
    """Another webhook may take the affinity away, too."""
    copied = applied_to_pod(pod(), shaped(pod(), template_set(POOL, binding())))
    del copied["spec"]["affinity"]
    assert demanded(shaped(copied, template_set(POOL, binding()))) == [term(A)]


def test_a_binding_for_a_share_of_the_pods_is_refused() -> None:
    """Earlier versions had `canary`. Ignored, it would apply to all pods what was meant for one in five."""
    with pytest.raises(InputError, match=r"SchedulerConfigBinding cart: spec\.canary: is gone: take it out"):
        template_set(POOL, binding(canary={"percent": 20}))


def test_a_pod_that_opted_out_stays_as_it_is() -> None:
    opted_out = pod()
    opted_out["metadata"]["annotations"] = {OPT_OUT_ANNOTATION: "True", TEMPLATES_ANNOTATION: "[]"}
    result = shaped(opted_out, template_set(POOL, binding()))
    assert (result.affinity, result.annotations, reasons(result)) == (None, {}, {"cart": SkipReason.OPTED_OUT})


def test_terms_are_known_again_as_stored_and_added_beside_what_is_kept() -> None:
    preferred = {"weight": 7, "matchExpressions": [A]}
    template = node_config("pool", required=[term(B)], preferred=[preferred, preferred, preferred | {"weight": 8}])
    own = {"nodeAffinity": {PREFERRED: [{"weight": 8, "preference": term(A)}]}}
    result = shaped(pod(affinity=own, nodeSelector={"pool": "x"}), template_set(template, binding()))
    assert result.affinity == {
        "nodeAffinity": {PREFERRED: [*own["nodeAffinity"][PREFERRED], {"weight": 7, "preference": term(A)}]}
    }
    # It adds to the selector what matchLabelKeys mean (KEP-3633).
    apart = pod_config("apart", podAntiAffinity={"required": [{"topologyKey": "zone", "matchLabelKeys": ["app"]}]})
    templates = template_set(apart, binding(template="PodSchedulerConfig/apart"))
    stored = applied_to_pod(pod(), shaped(pod(), templates))
    kept = stored["spec"]["affinity"]["podAntiAffinity"][REQUIRED][0]
    kept["labelSelector"] = {"matchExpressions": [on("app", "cart")]}
    again = shaped(stored, templates)
    assert (again.affinity, again.annotations) == (None, {})


def test_records_and_terms_that_no_longer_mean_the_pod_are_left_out() -> None:
    first = applied_to_pod(pod(), shaped(pod(), template_set(POOL, binding())))
    bound_elsewhere = template_set(POOL, binding(pods={"namespaces": ["elsewhere"]}))
    assert shaped(first, bound_elsewhere).annotations == {TEMPLATES_ANNOTATION: None}
    # With nothing left to select by they would mean every pod of the namespace.
    apart = pod_config("apart", podAntiAffinity={"required": [{"topologyKey": "zone", "matchLabelKeys": ["version"]}]})
    templates = template_set(apart, binding(template="PodSchedulerConfig/apart"))
    assert reasons(shaped(pod(), templates)) == {"cart": SkipReason.UNCHANGED}
    labelled = pod()
    labelled["metadata"]["labels"]["version"] = "1"
    assert shaped(labelled, templates).affinity == {
        "podAntiAffinity": {REQUIRED: [{"labelSelector": {}, "topologyKey": "zone", "matchLabelKeys": ["version"]}]}
    }
