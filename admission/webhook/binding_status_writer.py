"""Writes statuses of templates and bindings: what has changed, each every two seconds at most, all of them 20 a second.

Needs `patch` on the status of the three resources (docs/operate/webhook.md). An API server that is away, or forbids it,
costs statuses only.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import urllib3
from kubernetes.client import ApiClient

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
from kube.client.api_answer import NO_ANSWER
from kube.client.kubernetes_client import send
from kube.decoding.stored_templates import ObjectStatus
from kube.failure_notice import FailureNotice
from kube.write_pacing import StatusPacing, TokenBucket, is_hopeless

logger = logging.getLogger(__name__)

Patch = Callable[[str, bytes], int]
"""Sends a JSON merge patch to a path of the API server, returns the status; raises urllib3's HTTPError and OSError."""

_RATE, _BURST = 20.0, 20.0
_PAUSE_SECONDS = 0.04
"""Between two: a patch takes milliseconds of the interpreter, for which reviews would wait one after the other."""


@dataclass(frozen=True, slots=True)
class _Due:
    """resource: path of the list it is in."""

    resource: str
    name: str
    wanted: WantedStatus
    current: ObjectStatus

    @property
    def path(self) -> str:
        return f"{self.resource}/{self.name}/status"


class StatusWriter:
    """`step` is called again and again by one thread.

    synced : whether all pods have been listed; counts are not written before
    clock  : unix seconds
    sleep  : for pauses
    """

    def __init__(
        self,
        patch: Patch,
        store: TemplateStore,
        pods: RecordedPods,
        errors: LastErrors,
        *,
        synced: Callable[[], bool],
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._patch, self._store, self._pods, self._errors = patch, store, pods, errors
        self._synced, self._clock, self._sleep = synced, clock, sleep
        self._bucket = TokenBucket(_RATE, _BURST)
        self._pacing: StatusPacing[WantedStatus] = StatusPacing()
        self._notice = FailureNotice(
            logger, "statuses of templates and bindings are not written", "statuses are written again"
        )

    def step(self) -> None:
        """Write what is due, the longest waiting first."""
        if not self._store.ready:
            return
        now = self._clock()
        due = list(self._due())
        self._pacing.keep({one.path for one in due})
        due = [one for one in due if self._pacing.may_send(one.path, one.wanted, now)]
        due.sort(key=lambda one: self._pacing.sent_at(one.path))
        moment = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        forbidden: set[str] = set()
        for one in due:
            change = None if one.resource in forbidden else change_of(one.wanted, one.current, moment)
            if change is None:
                continue
            if not self._bucket.take(now):
                return
            status = self._send(one, change)
            if status == 403:
                forbidden.add(one.resource)
            elif is_hopeless(status):
                return
            self._sleep(_PAUSE_SECONDS)

    def _due(self) -> Iterator[_Due]:
        """All objects with what their status should say."""
        store, templates = self._store, self._store.templates
        users = uses(templates)
        for watched, objects in ((NODE_CONFIGS, store.node_configs), (POD_CONFIGS, store.pod_configs)):
            for template in objects.all():
                wanted = wanted_of_template(template, users)
                yield _Due(watched.path, template.name, wanted, template.status)
        shaped, control = self._pods.counts()
        counted, errors = self._synced(), self._errors.pending()
        for binding in store.bindings.all():
            name = binding.name
            counts = {"boundPods": shaped.get(name, 0), "controlPods": control.get(name, 0)} if counted else {}
            error = errors.get(name)
            if error is not None and not is_newer(error, binding.status.last_error):
                self._errors.told(name, error)
                error = None
            of_binding = wanted_of_binding(binding, templates, counts, error)
            if of_binding is not None:
                yield _Due(BINDINGS.path, name, of_binding, binding.status)
        for name in errors.keys() - templates.bindings.keys():
            self._errors.told(name, errors[name])  # the binding is gone

    def _send(self, one: _Due, change: Mapping[str, Any]) -> int:
        """Send the patch. Returns the HTTP status; NO_ANSWER = there was none."""
        self._pacing.sent(one.path, one.wanted, self._clock())
        try:
            status = self._patch(one.path, msgspec.json.encode({"status": change}))
        except (urllib3.exceptions.HTTPError, OSError) as error:
            self._pacing.forget(one.path)
            self._fail(one, f"{type(error).__name__}: {error}"[:300])
            return NO_ANSWER
        if status == 403:
            self._fail(one, f"the API server forbids it (403): grant patch on {one.resource}/*/status")
        elif status >= 300 and status != 404:  # 404: it has just been deleted
            self._fail(one, f"the API server answered {status} to a patch of {one.path}")
        else:
            self._notice.succeeded(part=one.resource, resource=one.resource)
        return status

    def _fail(self, one: _Due, why: str) -> None:
        self._notice.failed(why, part=one.resource)


def api_server_patch(api: ApiClient, *, seconds: float = 2.0) -> Patch:
    """Patches through the official client's connections. No retries: the next step looks again."""

    def patch(path: str, body: bytes) -> int:
        return send(api, "PATCH", path, body, content_type="application/merge-patch+json", seconds=seconds).status

    return patch
