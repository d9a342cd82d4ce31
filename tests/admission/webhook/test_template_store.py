"""What is stored is put in effect whole and soon, and a status alone changes nothing."""

from __future__ import annotations

import threading

import pytest

from admission.templates.template_set import TemplateSet
from admission.webhook.template_store import TemplateStore
from testing.processes.scorer_process import eventually
from tests.admission.webhook.made_up import a_binding, a_template


def _is_ready(store: TemplateStore) -> bool:
    return store.ready


def test_changes_are_put_in_effect_by_a_thread_and_it_is_ready_once_all_was_listed() -> None:
    store, synced = TemplateStore(), threading.Event()
    store.follow(synced.is_set)
    store.start()
    try:
        store.bindings.replace([a_binding()])
        assert eventually(lambda: "cart" in store.templates.bindings)
        assert store.templates.problems["cart"].reason == "TemplateNotFound" and not _is_ready(store)
        store.node_configs.replace([a_template()])
        synced.set()
        assert eventually(lambda: store.ready)
        assert not store.templates.problems
        store.bindings.delete(a_binding())
        assert eventually(lambda: not store.templates.bindings)
        synced.clear()
        assert _is_ready(store)  # once, for ever
    finally:
        store.stop()
    assert "template-store" not in {thread.name for thread in threading.enumerate()}


def test_once_ready_what_was_listed_is_in_effect() -> None:
    for _ in range(20):
        store = TemplateStore()
        store.follow(lambda store=store: bool(store.bindings.all()))  # type: ignore[misc]
        store.start()
        store.bindings.replace([a_binding()])
        assert eventually(lambda store=store: store.ready)  # type: ignore[misc]
        assert "cart" in store.templates.bindings
        store.stop()


def test_a_status_alone_makes_no_new_set() -> None:
    store = TemplateStore()
    store.bindings.replace([a_binding()])
    store.rebuild()
    store.bindings.put(a_binding(status={"boundPods": 3}))
    store.bindings.replace([a_binding(status={"boundPods": 4})])
    assert not store._changed.is_set() and store.bindings.all()[0].status.bound_pods == 4
    for changed in (a_binding(generation=2), a_binding("other")):
        store.bindings.put(changed)
        assert store._changed.is_set()
        store.rebuild()
    store.bindings.replace([a_binding(generation=2)])
    assert store._changed.is_set()


def test_a_mistake_of_ours_leaves_the_last_set_in_effect(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = TemplateStore()
    store.bindings.replace([a_binding()])
    store.rebuild()
    before = store.templates
    store.bindings.put(a_binding("other"))

    def fail(*objects: object, **rest: object) -> TemplateSet:
        raise KeyError("a mistake")

    monkeypatch.setattr(TemplateSet, "of", fail)
    store.rebuild()
    assert store.templates is before and "those before stay" in caplog.text
