"""What is stored is put in effect whole and soon, and a status alone changes nothing."""

from __future__ import annotations

import threading

import pytest

from admission.templates.template_set import TemplateSet
from admission.webhook.template_store import TemplateStore
from testing.waiting import eventually
from tests.admission.webhook.made_up import a_binding, a_template


def test_changes_are_put_in_effect_by_a_thread_and_it_is_ready_once_all_that_was_listed_is() -> None:
    for _ in range(20):
        store = TemplateStore()
        store.follow(lambda store=store: bool(store.bindings.all()))  # type: ignore[misc]
        store.start()
        store.bindings.replace([a_binding()])
        assert eventually(lambda store=store: store.ready)  # type: ignore[misc]
        assert store.templates.problems["cart"].reason == "TemplateNotFound"
        store.node_configs.replace([a_template()])
        assert eventually(lambda store=store: not store.templates.problems)  # type: ignore[misc]
        store.bindings.delete(a_binding())
        assert eventually(lambda store=store: not store.templates.bindings)  # type: ignore[misc]
        assert store.ready, "once, for ever"
        store.stop()
    assert "template-store" not in {thread.name for thread in threading.enumerate()}


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
