"""Services that are left alone everywhere: not learned from, and without advice, moves, resizes and replica metrics.

Their pods still count where they run: by what they request, or use now, as pods do of which no model knows anything.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

from pydantic import field_validator

from base.setting_group import SettingGroup

SYSTEM_NAMESPACES: Final = frozenset({"kube-system", "kube-public", "kube-node-lease"})
"""Namespaces of the control plane: their pods get no advice, and do not move unless an annotation allows it."""

OWN_NAMESPACE: Final = "forecast-scheduler"
"""Namespace that deploy/ installs us in. Its pods get no advice: they must not wait for themselves."""


class ExcludedOptions(SettingGroup):
    """Left alone everywhere: not learned from, no advice, no moves, no resizes, no replica metrics."""

    namespaces: tuple[str, ...] = ()
    """Namespaces whose services are left alone, for instance [legacy, "team-*"]."""

    services: tuple[str, ...] = ()
    """Services that are left alone: NAMESPACE/NAME or NAMESPACE/KIND/NAME, for instance ["shop/cart", "shop/Job/*"]."""

    def why(self, namespace: str, kind: str, name: str) -> str:
        """Return why the service is left alone; '' = it is not."""
        for pattern in self.namespaces:
            if fnmatchcase(namespace, pattern):
                return f"excluded.namespaces has {pattern}"
        for pattern in self.services:
            parts = (namespace, name) if pattern.count("/") == 1 else (namespace, kind, name)
            if all(fnmatchcase(part, one) for part, one in zip(parts, pattern.split("/"), strict=True)):
                return f"excluded.services has {pattern}"
        return ""

    @field_validator("namespaces")
    @classmethod
    def _are_namespaces(cls, namespaces: tuple[str, ...]) -> tuple[str, ...]:
        for one in namespaces:
            if not one or "/" in one:
                raise ValueError(f"{one!r} is no namespace: write its name, for instance shop")
        return namespaces

    @field_validator("services")
    @classmethod
    def _are_services(cls, services: tuple[str, ...]) -> tuple[str, ...]:
        for one in services:
            if len(parts := one.split("/")) not in (2, 3) or not all(parts):
                raise ValueError(f"{one!r} is no service: write NAMESPACE/NAME or NAMESPACE/KIND/NAME")
        return services
