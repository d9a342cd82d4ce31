from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduler.queue.lazy_heap import LazyHeap


@given(st.lists(st.tuples(st.sampled_from(["push", "discard", "pop"]), st.integers(0, 20))))
def test_it_does_what_a_sorted_list_does(steps: list[tuple[str, int]]) -> None:
    heap: LazyHeap[str] = LazyHeap()
    model: dict[int, str] = {}
    for step, key in steps:
        if step == "push" and key not in model:
            model[key] = str(key)
            heap.push(key, str(key))
        elif step == "discard":
            model.pop(key, None)
            heap.discard(key)
        elif step == "pop":
            expected = [model.pop(first) for first in sorted(model)[: key % 4]]
            assert heap.pop(key % 4) == expected
        assert len(heap) == len(model)
        assert sorted(heap) == sorted(model.values())
        assert heap.smallest(key) == [model[first] for first in sorted(model)[:key]]
        assert heap.first() == (min(model.items()) if model else None)
        assert (key in heap) == (key in model)
