"""Which nodes count as overloaded, reading by reading, and how many pods may move because of it."""

from __future__ import annotations

import numpy as np
import pytest

from base.errors import InputError
from forecast.service_key import ServiceKey
from rebalancer.rebalance_settings import UnforeseenOptions
from rebalancer.timing.unforeseen import UnforeseenState, moves_left, step
from testing.constants import with_constants

OPTIONS = UnforeseenOptions()
ABOVE, INSIDE, MISSING = 0.95, 0.5, float("nan")
CART, SHOP = ServiceKey("shop", "Deployment", "cart"), ServiceKey("shop", "Deployment", "shop")


def readings(*values: float, bound: float = 0.9, capacity: float = 1.0) -> UnforeseenState:
    """One node with one resource, read so many times."""
    state = UnforeseenState.empty()
    for value in values:
        state = step(state, ["n1"], np.array([[value]]), np.array([[bound]]), np.array([[capacity]]), OPTIONS, 0.8)
    return state


@pytest.mark.parametrize(
    ("values", "overloaded"),
    [
        ([ABOVE] * 5, False),
        ([ABOVE] * 6, True),
        ([ABOVE] * 5 + [INSIDE] + [ABOVE] * 5, False),
        ([ABOVE] * 5 + [MISSING] + [ABOVE] * 5, False),
        ([ABOVE] * 6 + [INSIDE] * 2, True),
        ([ABOVE] * 6 + [INSIDE] * 3, False),
        ([ABOVE] * 6 + [INSIDE] * 2 + [ABOVE] + [INSIDE] * 2, True),
        ([ABOVE] * 6 + [MISSING], False),
        ([ABOVE] * 6 + [MISSING, INSIDE], True),
        ([ABOVE] * 6 + [MISSING, ABOVE], True),
        ([ABOVE] * 6 + [INSIDE] * 3 + [ABOVE] * 5, False),
        ([ABOVE] * 6 + [INSIDE] * 3 + [ABOVE] * 6, True),
    ],
)
def test_readings_in_a_row(values: list[float], overloaded: bool) -> None:
    assert readings(*values).overloaded == (("n1",) if overloaded else ())


@pytest.mark.parametrize(
    ("usage", "bound", "capacity"),
    [
        (0.79, 0.5, 1.0),  # unforeseen, but below the share of capacity
        (0.95, 0.96, 1.0),  # high, but foreseen
        (0.95, float("nan"), 1.0),  # without a forecast nothing is unforeseen
        (0.95, 0.5, float("nan")),  # not a limit
    ],
)
def test_what_is_not_above(usage: float, bound: float, capacity: float) -> None:
    assert readings(*[usage] * 20, bound=bound, capacity=capacity).overloaded == ()


def test_one_resource_is_enough_and_others_may_be_unmeasured() -> None:
    state = UnforeseenState.empty()
    usage, ones = np.array([[0.1, 0.9, np.nan], [0.1, 0.1, np.nan]]), np.ones((2, 3))
    for _ in range(6):
        state = step(state, ["a", "b"], usage, ones * 0.5, ones, OPTIONS, 0.8)
    assert state.overloaded == ("a",)


def test_nodes_come_go_and_change_places() -> None:
    def read(state: UnforeseenState, **usage: float) -> UnforeseenState:
        column = np.array(list(usage.values()))[:, None]
        return step(state, list(usage), column, np.full_like(column, 0.9), np.ones_like(column), OPTIONS, 0.8)

    state = UnforeseenState.empty()
    for _ in range(3):
        state = read(state, a=ABOVE, b=INSIDE)
    for _ in range(3):
        state = read(state, c=ABOVE, a=ABOVE)
    assert state.overloaded == ("a",)
    state = read(read(state, c=ABOVE), c=ABOVE, a=ABOVE)
    assert state.overloaded == ()  # a is a new node of an old name
    assert read(read(state, a=ABOVE, c=ABOVE), a=INSIDE, c=ABOVE).overloaded == ("c",)


def test_arrays_of_different_shapes_are_refused() -> None:
    with pytest.raises(InputError, match=r"must be \(nodes, resources\)"):
        step(UnforeseenState.empty(), ["a"], np.zeros((1, 2)), np.zeros((1, 1)), np.zeros((1, 2)), OPTIONS, 0.8)


@pytest.mark.parametrize(
    ("moved", "left"),
    [([], 1), ([SHOP], 1), ([CART], 0), ([SHOP, SHOP], 1), ([SHOP] * 3, 0), ([SHOP] * 9, 0)],
)
def test_the_budget_of_a_day(moved: list[ServiceKey], left: int) -> None:
    assert moves_left(moved, CART, OPTIONS) == left
    assert moves_left(moved, CART, UnforeseenOptions(enabled=False)) == 0
    # A larger budget of a service is still within that of the day.
    assert moves_left(moved, CART, with_constants(UnforeseenOptions(), per_service=5)) == max(0, 3 - len(moved))
