"""docs/use/gpu.md names what there is."""

from __future__ import annotations

from pathlib import Path

from kube.objects.objects import ANNOTATION_PREFIX
from placement.card_types.card_type_requests import GPU_TYPE_PREFERRED
from placement.card_types.metrics import CardCollector
from placement.filters.annotations import GPU_TYPE
from tests.placement.card_types.card_world import CardWorld

DOC = (Path(__file__).parents[3] / "docs" / "use" / "gpu.md").read_text()


def test_every_metric_is_listed() -> None:
    for family in CardCollector(CardWorld().scarcity).collect():
        assert f"`{family.name}{{model}}`" in DOC


def test_names_that_people_write_are_those_of_the_code() -> None:
    for annotation in (GPU_TYPE, GPU_TYPE_PREFERRED):
        assert f"`{annotation.removeprefix(ANNOTATION_PREFIX)}`" in DOC
