"""Pods without a node and their scheduling gates, read with as little of them as possible: what a user writes into the
rest of a pod keeps no part from removing our gate."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Raw, Struct, field

from kube.decoding.watched_kinds import Watched
from placement.advice_gate import ADVICE


@dataclass(frozen=True, slots=True)
class HeldPod:
    """Implements PodIdentity.

    gates   : names of all its scheduling gates
    created : unix seconds
    version : resourceVersion
    """

    namespace: str
    name: str
    uid: str
    gates: tuple[str, ...] = ()
    created: float = 0.0
    version: str = ""

    @property
    def has_ours(self) -> bool:
        """Return whether our gate is among those that hold it."""
        return ADVICE in self.gates

    @property
    def waits_for_us_alone(self) -> bool:
        """Return whether our gate is the only one."""
        return self.gates == (ADVICE,)


class _Metadata(Struct, rename="camel", gc=False):
    name: str
    uid: str
    namespace: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: str | None = None


class _Gate(Struct, gc=False):
    name: str = ""


class _Spec(Struct, rename="camel", gc=False):
    scheduling_gates: list[_Gate] | None = None


class _Pod(Struct, gc=False):
    metadata: _Metadata
    spec: _Spec = field(default_factory=_Spec)


_POD: Final = msgspec.json.Decoder(_Pod)


def _decode(body: bytes | Raw) -> tuple[HeldPod, str]:
    """One that is being deleted waits for nobody."""
    pod = _POD.decode(body)
    metadata = pod.metadata
    gates = () if metadata.deletion_timestamp else tuple(gate.name for gate in pod.spec.scheduling_gates or ())
    created = metadata.creation_timestamp.timestamp() if metadata.creation_timestamp else 0.0
    version = metadata.resource_version
    return HeldPod(metadata.namespace, metadata.name, metadata.uid, gates, created, version), version


UNBOUND_PODS: Final = Watched("pods", "Pod", "/api/v1/pods", _decode, query={"fieldSelector": "spec.nodeName="})
"""Pods that no scheduler has bound yet: a pod that is bound leaves the list as if it had been deleted."""
