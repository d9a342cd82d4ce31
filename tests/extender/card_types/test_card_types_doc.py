"""docs/card-types.md names what there is."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from extender.card_types.metrics import CardCollector
from extender.card_types.options import CardOptions, Even, Protection
from extender.card_types.wishes import GPU_TYPE_PREFERRED
from extender.filters.annotations import GPU_TYPE
from scorer.cluster.objects import ANNOTATION_PREFIX
from tests.extender.card_types.card_world import CardWorld

DOC = (Path(__file__).parents[3] / "docs" / "card-types.md").read_text()


def test_every_metric_is_listed() -> None:
    for family in CardCollector(CardWorld().scarcity).collect():
        assert f"`{family.name}`" in DOC


def test_names_that_people_write_are_those_of_the_code() -> None:
    for annotation in (GPU_TYPE, GPU_TYPE_PREFERRED):
        assert f"`{annotation.removeprefix(ANNOTATION_PREFIX)}`" in DOC
    for word in (*Protection, *Even):
        assert f"`{word.value}`" in DOC
    for option in fields(CardOptions):
        assert f"| `{option.name.removesuffix('_seconds')}` |" in DOC
