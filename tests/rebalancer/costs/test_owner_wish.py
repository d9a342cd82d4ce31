"""What each annotation means, ours and those of other tools."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.objects.eviction_annotations import EVICTION_ANNOTATIONS
from rebalancer.costs.move_facts import Occasion
from rebalancer.costs.owner_wish import MOVE_BY_SURGE, REBALANCE, REBALANCE_HOURS, Wish, owner_wish
from rebalancer.rebalance_settings import CostOptions
from tests.rebalancer.costs.movable import BERLIN, NIGHT, cost, facts, pod

EVICT = "descheduler.alpha.kubernetes.io/evict"
PREFER = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
IN_PROGRESS = "descheduler.alpha.kubernetes.io/eviction-in-progress"
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
DISRUPT = "karpenter.sh/do-not-disrupt"
NOT_EVICT = "karpenter.sh/do-not-evict"

NOW = NIGHT.timestamp()


def wish(annotations: dict[str, str], namespace: dict[str, str] | None = None, **fields: Any) -> Wish:
    return owner_wish(pod(annotations=annotations, **fields), namespace or {}, NOW).wish


@pytest.mark.parametrize(
    ("annotations", "namespace", "expected"),
    [
        ({}, {}, Wish.ALLOWED),
        ({REBALANCE: "never"}, {}, Wish.NEVER),
        ({REBALANCE: "rather-not"}, {}, Wish.RATHER_NOT),
        ({REBALANCE: "allowed"}, {}, Wish.ALLOWED),
        ({REBALANCE: " Never "}, {}, Wish.NEVER),
        ({REBALANCE: "nope"}, {}, Wish.NEVER),  # it cannot be read
        ({REBALANCE: ""}, {}, Wish.NEVER),
        ({PREFER: ""}, {}, Wish.RATHER_NOT),
        ({PREFER: "false"}, {}, Wish.RATHER_NOT),  # for the descheduler its presence counts
        ({EVICT: "true"}, {}, Wish.ALLOWED),
        ({IN_PROGRESS: ""}, {}, Wish.NEVER),
        ({IN_PROGRESS: "", REBALANCE: "allowed"}, {}, Wish.NEVER),
        ({SAFE: "false"}, {}, Wish.NEVER),
        ({SAFE: "true"}, {}, Wish.ALLOWED),
        ({SAFE: "no"}, {}, Wish.ALLOWED),  # for the cluster-autoscaler only "false" counts
        ({NOT_EVICT: "true"}, {}, Wish.NEVER),
        ({NOT_EVICT: "false"}, {}, Wish.ALLOWED),
        ({DISRUPT: "true"}, {}, Wish.NEVER),
        ({DISRUPT: "false"}, {}, Wish.ALLOWED),
        ({DISRUPT: "perhaps"}, {}, Wish.RATHER_NOT),
        ({DISRUPT: "4"}, {}, Wish.RATHER_NOT),  # Go reads no duration without a unit
        ({SAFE: "false", REBALANCE: "allowed"}, {}, Wish.ALLOWED),  # what it says to us comes first
        ({SAFE: "true", DISRUPT: "true"}, {}, Wish.NEVER),  # of others' the strictest
        ({PREFER: "", SAFE: "false"}, {}, Wish.NEVER),
        ({EVICT: "true", PREFER: ""}, {}, Wish.RATHER_NOT),
        ({DISRUPT: "1h", PREFER: ""}, {}, Wish.RATHER_NOT),  # its hour is over
        ({}, {REBALANCE: "never"}, Wish.NEVER),
        ({REBALANCE: "allowed"}, {REBALANCE: "never"}, Wish.ALLOWED),
        ({REBALANCE: "never"}, {REBALANCE: "allowed"}, Wish.NEVER),
        ({SAFE: "false"}, {REBALANCE: "allowed"}, Wish.NEVER),  # what a pod says comes before its namespace
        ({PREFER: ""}, {REBALANCE: "never"}, Wish.RATHER_NOT),
        ({}, {REBALANCE: "odd"}, Wish.NEVER),
        ({}, {SAFE: "false"}, Wish.ALLOWED),  # other tools read pods only
    ],
)
def test_annotations_of_a_pod_and_those_of_its_namespace_as_the_default(
    annotations: dict[str, str], namespace: dict[str, str], expected: Wish
) -> None:
    assert wish(annotations, namespace) is expected


@pytest.mark.parametrize(
    ("duration", "age", "expected"),
    [("4h", 3.9, Wish.NEVER), ("4h", 4.1, Wish.ALLOWED), ("1h30m", 1.4, Wish.NEVER), ("1h30m", 1.6, Wish.ALLOWED)],
)
def test_karpenters_duration_counts_from_the_start(duration: str, age: float, expected: Wish) -> None:
    started = NOW - age * 3600
    assert wish({DISRUPT: duration}, started=started) is expected
    assert wish({DISRUPT: duration}, started=None, created=started) is expected


def test_what_cannot_be_read_says_how_to_mend_it() -> None:
    assert "write never, rather-not or allowed" in cost(pod(annotations={REBALANCE: "nope"})).because
    odd = cost(pod(annotations={REBALANCE_HOURS: "at night"}))
    assert not odd.may_move and REBALANCE_HOURS in odd.because and "write mon, tue" in odd.because
    by_namespace = cost(about=facts(namespace_annotations={REBALANCE_HOURS: "at night"}))
    assert not by_namespace.may_move


@pytest.mark.parametrize(
    ("pod_hours", "namespace_hours", "may"),
    [
        ("01:00-05:00", "", True),
        ("03:30-04:00", "", True),  # moves are made from 03:00 to 05:00
        ("05:00-06:00", "", False),
        ("12:00-13:00", "", False),
        ("sat 00:00-24:00", "", False),
        ("tue 04:00-05:00", "", True),
        ("", "12:00-13:00", False),
        ("04:00-05:00", "12:00-13:00", True),
    ],
)
def test_hours_of_the_owner(pod_hours: str, namespace_hours: str, may: bool) -> None:
    annotations = {REBALANCE_HOURS: pod_hours} if pod_hours else {}
    namespace = {REBALANCE_HOURS: namespace_hours} if namespace_hours else {}
    found = cost(pod(annotations=annotations), facts(namespace_annotations=namespace))
    assert found.may_move == may and ("these hours only" in found.because) != may


def test_hours_count_at_the_very_moment_of_a_move() -> None:
    hours = owner_wish(pod(annotations={REBALANCE_HOURS: "03:30-04:00"}), {}, NOW)
    local = NIGHT.astimezone(BERLIN)
    assert hours.hours is not None
    assert not hours.hours.contains(local) and hours.hours.contains(local.replace(minute=30))
    at_once = Occasion.at_once(NIGHT, BERLIN)
    assert not cost(pod(annotations={REBALANCE_HOURS: "03:30-04:00"}), occasion=at_once).may_move
    assert cost(pod(annotations={REBALANCE_HOURS: "03:00-04:00"}), occasion=at_once).may_move


@pytest.mark.parametrize("annotation", [{REBALANCE: "allowed"}, {EVICT: "true"}, {EVICT: ""}, {SAFE: "true"}])
@pytest.mark.parametrize(
    "protected",
    [{"local_volumes": ("scratch",)}, {"shares_host": True}, {"priority": 2_000_000_000}, {"namespace": "kube-system"}],
)
def test_protections_that_can_be_lifted(annotation: dict[str, str], protected: dict[str, Any]) -> None:
    assert not cost(pod(**protected)).may_move
    assert cost(pod(annotations=annotation, **protected)).may_move
    for other in ({EVICT: "false"}, {SAFE: "yes"}, {REBALANCE: "rather-not"}):
        assert not cost(pod(annotations=other, **protected)).may_move
    assert not cost(pod(**protected), facts(namespace_annotations={REBALANCE: "allowed"})).may_move


@pytest.mark.parametrize("annotation", [{REBALANCE: "allowed"}, {EVICT: "true"}, {SAFE: "true"}])
def test_protections_that_cannot_be_lifted(annotation: dict[str, str]) -> None:
    assert not cost(pod(annotations=annotation, ready=None)).may_move
    assert not cost(pod(annotations=annotation, scheduling_group="train")).may_move
    assert not cost(pod(annotations=annotation), facts(replicas=1, ready_replicas=1)).may_move
    assert not cost(pod(annotations=annotation), facts(disruptions_allowed=0)).may_move


@pytest.mark.parametrize(
    ("safe", "may"), [("a,b", True), (" a , b ", True), ("b,a,c", True), ("a", False), ("", False), ("ab", False)]
)
def test_all_local_volumes_must_be_named_as_safe(safe: str, may: bool) -> None:
    assert cost(pod(local_volumes=("a", "b"), annotations={SAFE_VOLUMES: safe})).may_move == may


@given(
    st.dictionaries(
        st.sampled_from([REBALANCE, REBALANCE_HOURS, MOVE_BY_SURGE, *sorted(EVICTION_ANNOTATIONS)]),
        st.one_of(st.text(max_size=20), st.sampled_from(["true", "false", "4h", "never", "allowed", "01:00-05:00"])),
    ),
    st.dictionaries(st.sampled_from([REBALANCE, REBALANCE_HOURS, MOVE_BY_SURGE]), st.text(max_size=20)),
)
def test_any_annotation_leads_to_an_answer(said: dict[str, str], namespace: dict[str, str]) -> None:
    found = cost(pod(annotations=said), facts(namespace_annotations=namespace))
    assert found.cost > 0 and found.because
    if said.get(REBALANCE, "").strip().lower() not in ("allowed", "rather-not"):
        assert not cost(pod(annotations=said | {SAFE: "false"}), facts(namespace_annotations=namespace)).may_move


def test_an_owner_who_would_rather_not_makes_it_dear() -> None:
    reluctant = cost(pod(annotations={REBALANCE: "rather-not"}))
    assert reluctant.cost == pytest.approx(cost().cost + CostOptions().rather_not)
    assert REBALANCE in reluctant.because
