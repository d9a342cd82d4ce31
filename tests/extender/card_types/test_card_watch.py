from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from extender.card_types.plugins import CardWatch
from tests.extender.card_types.card_world import CardWorld, card_node, pods


def test_it_looks_under_the_lock_until_it_is_stopped() -> None:
    world = CardWorld([card_node("a", 8, model="A100"), card_node("t", 8, model="T4")])
    world.put(*pods(8, "A100"))
    held: list[bool] = []

    @contextmanager
    def locked() -> Iterator[None]:
        held.append(True)
        yield

    watch = CardWatch(world.scarcity, locked=locked)
    assert world.scarcity.latest.scarcity.tolist() == [0.0, 0.0]
    watch.step()
    assert held == [True] and world.scarcity.latest.scarcity.tolist() == [1.0, 0.0]
    watch.start()
    watch.stop()
