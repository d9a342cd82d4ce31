"""How many pods each binding shaped, and how many it left as its control group: by what their annotations record.

Any client may write those annotations: what is read of one pod is bounded (record.py).
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import Raw, Struct, field

from admission.templates.shaping_annotations import TEMPLATES_ANNOTATION, pod_record
from kube.decoding.watched_kinds import Watched


@dataclass(frozen=True, slots=True)
class RecordedPod:
    """A pod, and the bindings that shaped it."""

    uid: str
    shaped_by: tuple[str, ...] = ()


class RecordedPods:
    """Implements ResourceSink. May be asked from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pods: dict[str, RecordedPod] = {}
        self._shaped: Counter[str] = Counter()

    def replace(self, objects: Sequence[RecordedPod]) -> None:
        """These are all pods."""
        with self._lock:
            self._pods = {}
            self._shaped = Counter()
            for one in objects:
                self._set(one)

    def put(self, obj: RecordedPod) -> None:
        """A pod is new or has changed."""
        with self._lock:
            self._set(obj)

    def delete(self, obj: RecordedPod) -> None:
        """A pod is gone."""
        with self._lock:
            self._remove(obj.uid)

    def counts(self) -> Mapping[str, int]:
        """Pods shaped, by binding; those without any are missing."""
        with self._lock:
            return dict(self._shaped)

    def _set(self, one: RecordedPod) -> None:
        self._remove(one.uid)
        if one.shaped_by:  # most pods of most clusters have none
            self._pods[one.uid] = one
            self._shaped.update(one.shaped_by)

    def _remove(self, uid: str) -> None:
        before = self._pods.pop(uid, None)
        if before is None:
            return
        for name in before.shaped_by:
            self._shaped[name] -= 1
            if not self._shaped[name]:
                del self._shaped[name]


class _Annotations(Struct, gc=False):
    """The one that is read, of however many there are."""

    templates: str = field(name=TEMPLATES_ANNOTATION, default="")


class _Metadata(Struct, rename="camel", gc=False):
    uid: str = ""
    resource_version: str = ""
    annotations: _Annotations | None = None


class _Object(Struct, gc=False):
    metadata: _Metadata


_OBJECT: Final = msgspec.json.Decoder(_Object)


def _decode(body: bytes | Raw) -> tuple[RecordedPod, str]:
    metadata = _OBJECT.decode(body).metadata
    there = metadata.annotations or _Annotations()
    # A name is kept once however many pods name it.
    shaped = tuple(sys.intern(one.binding) for one in pod_record({TEMPLATES_ANNOTATION: there.templates}))
    return RecordedPod(metadata.uid, shaped), metadata.resource_version


POD_RECORDS: Final = Watched("pods", "Pod", "/api/v1/pods", _decode, metadata_only=True)
