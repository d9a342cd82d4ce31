from __future__ import annotations

from dataclasses import replace

import pytest

from kube.objects.constraints import NodeSelectorTerm, Operator, PodConstraints, Requirement
from kube.objects.objects import PodInfo
from placement.card_types.card_type_requests import NO_WISH, CardTypeRequest, accepted, ranks, wish_of
from tests.placement.card_types.card_world import typed

LABEL = "nvidia.com/gpu.product"
MODELS = ("NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-SXM4-40GB", "NVIDIA-A10", "Tesla-T4")


def chooses(*terms: NodeSelectorTerm, **selector: str) -> PodInfo:
    said = PodConstraints(
        node_selector=tuple((LABEL if key == "product" else key, value) for key, value in selector.items()),
        required_node_terms=terms or None,
    )
    return replace(typed("p"), constraints=said)


def term(*values: str, key: str = LABEL, operator: Operator = Operator.IN) -> NodeSelectorTerm:
    return NodeSelectorTerm((Requirement(key, operator, values),), ())


@pytest.mark.parametrize(
    ("pod", "wish"),
    [
        pytest.param(typed("p"), NO_WISH, id="says nothing"),
        pytest.param(typed("p", "A100, T4"), CardTypeRequest(("A100", "T4")), id="requires"),
        pytest.param(chooses(product="Tesla-T4"), CardTypeRequest(labelled=frozenset({"Tesla-T4"})), id="selects"),
        pytest.param(
            chooses(term("a", "b"), term("c")), CardTypeRequest(labelled=frozenset("abc")), id="either of two terms"
        ),
        pytest.param(chooses(term("a"), term("x", key="zone")), NO_WISH, id="a term leaves all"),
        pytest.param(chooses(term("a", operator=Operator.NOT_IN)), NO_WISH, id="all but one"),
        pytest.param(chooses(term("a", "b"), product="b"), CardTypeRequest(labelled=frozenset("b")), id="both at once"),
    ],
)
def test_what_a_pod_says(pod: PodInfo, wish: CardTypeRequest) -> None:
    assert wish_of(pod, (LABEL,)) == wish


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        (NO_WISH, [True, True, True, True]),
        (CardTypeRequest(("a100",)), [True, True, False, False]),
        (CardTypeRequest(("A10", "T4")), [False, False, True, True]),
        (CardTypeRequest(("V100",)), [False, False, False, False]),
        (CardTypeRequest(labelled=frozenset({"Tesla-T4"})), [False, False, False, True]),
        (CardTypeRequest(("A10",), frozenset({"Tesla-T4"})), [False, False, False, False]),
        (CardTypeRequest(preferred=("A10",)), [True, True, True, True]),
    ],
)
def test_which_models_it_can_do_with(wish: CardTypeRequest, expected: list[bool]) -> None:
    assert accepted(wish, MODELS).tolist() == expected


def test_the_first_name_that_means_a_model_is_its_rank() -> None:
    assert ranks(CardTypeRequest(preferred=("80GB", "A100", "T4")), MODELS).tolist() == [0, 1, 3, 2]
    assert ranks(NO_WISH, MODELS).tolist() == [0, 0, 0, 0]
    assert ranks(CardTypeRequest(preferred=("A10",)), ()).tolist() == []
