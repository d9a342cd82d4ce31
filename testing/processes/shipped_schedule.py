"""What deploy/ has for our own scheduling loops, with where each object is to be posted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_DEPLOY = Path(__file__).parents[2] / "deploy"
_PLURALS = {"PriorityClass": "priorityclasses", "ValidatingAdmissionPolicy": "validatingadmissionpolicies"}
_NAMESPACED = (
    "ServiceAccount", "ConfigMap", "Service", "PodDisruptionBudget", "Deployment", "Role", "RoleBinding",
    "CronJob", "Job", "StatefulSet",
)  # fmt: skip


def documents(name: str) -> list[dict[str, Any]]:
    """The objects of a file in deploy/."""
    return [one for one in yaml.safe_load_all((_DEPLOY / name).read_text()) if one is not None]


def shipped(*names: str) -> list[tuple[str, dict[str, Any]]]:
    """Path of the collection and object, of all files in order."""
    return [(_collection(one), one) for name in names for one in documents(name)]


def _collection(manifest: dict[str, Any]) -> str:
    kind, group = manifest["kind"], manifest["apiVersion"]
    namespace = manifest["metadata"].get("namespace", "default")
    inside = f"/namespaces/{namespace}" if kind in _NAMESPACED else ""
    return f"{'/api' if group == 'v1' else '/apis'}/{group}{inside}/{_PLURALS.get(kind, kind.lower() + 's')}"
