from __future__ import annotations

import pytest

from kube.objects.constraints import LabelSelector, Operator, PodAffinityTerm, Requirement
from kube.objects.kubernetes_version import COMPARED
from placement.filters.inter_pod_affinity import as_read


def term(selector: LabelSelector | None) -> PodAffinityTerm:
    return PodAffinityTerm(LabelSelector(), "zone", frozenset({"shop"}), selector)


def selector(*operators: Operator) -> LabelSelector:
    return LabelSelector(tuple(Requirement("stage", one, ("prod",)) for one in operators))


@pytest.mark.parametrize("operators", [(Operator.NOT_IN,), (Operator.DOES_NOT_EXIST, Operator.NOT_IN)])
def test_a_namespace_selector_that_fits_no_labels_means_every_namespace(operators: tuple[Operator, ...]) -> None:
    assert as_read(term(selector(*operators)), COMPARED[0]) == term(LabelSelector())


@pytest.mark.parametrize(
    "said", [None, LabelSelector(), selector(Operator.IN), selector(Operator.NOT_IN, Operator.EXISTS)]
)
def test_other_terms_stay_as_they_are(said: LabelSelector | None) -> None:
    assert as_read(term(said), COMPARED[0]) == term(said)


def test_from_137_a_namespace_selector_means_what_it_matches() -> None:
    said = term(selector(Operator.NOT_IN))
    assert as_read(said, COMPARED[-1]) is said
