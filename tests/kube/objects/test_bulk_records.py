from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from itertools import repeat

import pytest

from kube.objects.bulk_records import bulk_records


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: str = "default"


def test_they_are_what_the_class_makes_itself() -> None:
    made = bulk_records(Point, 3, x=range(3), y=repeat("same"))
    assert made == [Point(0, "same"), Point(1, "same"), Point(2, "same")]
    assert [hash(one) for one in made] == [hash(Point(x, "same")) for x in range(3)]
    with pytest.raises(FrozenInstanceError):
        made[0].x = 5  # type: ignore[misc]


def test_a_field_that_there_is_not_is_a_mistake() -> None:
    with pytest.raises(AttributeError):
        bulk_records(Point, 1, z=[1])
