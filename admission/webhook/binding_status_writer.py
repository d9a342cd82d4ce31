"""Writes statuses of templates and bindings: what has changed, each every two seconds at most, all of them 20 a second.

Needs `patch` on the status of the three resources (docs/operate/webhook.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from admission.templates.template_decoding import BINDINGS, NODE_CONFIGS, POD_CONFIGS
from admission.webhook.binding_statuses import (
    LastErrors,
    WantedStatus,
    change_of,
    is_newer,
    uses,
    wanted_of_binding,
    wanted_of_template,
)
from admission.webhook.recorded_pods import RecordedPods
from admission.webhook.template_store import TemplateStore
from kube.decoding.stored_templates import ObjectStatus
from kube.session.session_calls import Session
from kube.status.status_patches import StatusChange, StatusPatches

_Wanted = tuple[str, str, WantedStatus, ObjectStatus]
"""Path of the list that an object is in, path of the object, and what its status should say and says."""


class StatusWriter:
    """`step` is called again and again by one thread.

    synced : whether all pods have been listed; counts are not written before
    clock  : unix seconds
    """

    def __init__(
        self,
        session: Session,
        store: TemplateStore,
        pods: RecordedPods,
        errors: LastErrors,
        *,
        synced: Callable[[], bool],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._pods, self._errors, self._synced = store, pods, errors, synced
        self._patches = StatusPatches(session, "templates and bindings", rate=20.0, clock=clock)

    def step(self) -> None:
        """Write what is due, the longest waiting first."""
        if self._store.ready:
            self._patches.step(self._changes)

    def _changes(self, now: float) -> Iterator[StatusChange]:
        moment = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        due = sorted(self._due(), key=lambda one: self._patches.sent_at(one[1]))
        for resource, path, wanted, current in due:
            change = change_of(wanted, current, moment)
            if change is not None:
                yield StatusChange(path, wanted, change, f"{resource}/*/status")

    def _due(self) -> Iterator[_Wanted]:
        """All objects with what their status should say."""
        store, templates = self._store, self._store.templates
        users = uses(templates)
        for watched, objects in ((NODE_CONFIGS, store.node_configs), (POD_CONFIGS, store.pod_configs)):
            for template in objects.all():
                wanted = wanted_of_template(template, users)
                yield watched.path, f"{watched.path}/{template.name}", wanted, template.status
        shaped = self._pods.counts()
        counted, errors = self._synced(), self._errors.pending()
        for binding in store.bindings.all():
            name = binding.name
            counts = {"boundPods": shaped.get(name, 0)} if counted else {}
            error = errors.get(name)
            if error is not None and not is_newer(error, binding.status.last_error):
                self._errors.told(name, error)
                error = None
            of_binding = wanted_of_binding(binding, templates, counts, error)
            if of_binding is not None:
                yield BINDINGS.path, f"{BINDINGS.path}/{name}", of_binding, binding.status
        for name in errors.keys() - templates.bindings.keys():
            self._errors.told(name, errors[name])  # the binding is gone
