"""The interface for binding a pod, its request and its error; kube.binding.binding.ApiServerBinder implements it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from base.errors import ForecastError


@dataclass(frozen=True, slots=True)
class BindingRequest:
    """Which pod is to go to which node.

    uid         : of that very pod, not of a later one of the same name
    annotations : that the pod gets in the same write: it has all of them, or is not bound
    """

    namespace: str
    name: str
    uid: str
    node: str
    annotations: Mapping[str, str] = field(default_factory=dict)


class BindingFailed(ForecastError):
    """The pod was not bound, or it is not known whether it was; one sentence for kube-scheduler's event."""


class Binder(Protocol):
    """For any thread."""

    def bind(self, binding: BindingRequest) -> None:
        """Returns once the pod is bound to that node. Raises BindingFailed."""
