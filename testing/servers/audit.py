"""What accounts asked of an API server, by its own audit log: every request with its verb and resource, and the answer.

https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

Right: TypeAlias = tuple[str, str, str]
"""verb, group, resource or resource/subresource"""

_FORBIDDEN = 403


class Audit:
    """arguments: flags of kube-apiserver by which it keeps the log."""

    def __init__(self, directory: Path, users: Sequence[str]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        policy, self._log = directory / "audit-policy.yaml", directory / "audit.log"
        rules: list[dict[str, Any]] = [{"level": "Metadata", "users": list(users)}, {"level": "None"}]
        header = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"]}
        policy.write_text(json.dumps(header | {"rules": rules}))
        self.arguments = (f"--audit-policy-file={policy}", f"--audit-log-path={self._log}")
        self._begin = 0

    def forget(self) -> None:
        """What was asked until now does not count any more."""
        self._begin = self._log.stat().st_size if self._log.exists() else 0

    def used(self, user: str) -> set[Right]:
        """What was asked and not forbidden."""
        return {right for right, status in self._requests(user) if status != _FORBIDDEN}

    def refused(self, user: str) -> set[Right]:
        """What was asked and forbidden."""
        return {right for right, status in self._requests(user) if status == _FORBIDDEN}

    def _requests(self, user: str) -> list[tuple[Right, int]]:
        if not self._log.exists():
            return []
        with self._log.open() as log:
            log.seek(self._begin)
            lines = [line for line in log if line.endswith("\n")]
        events = [json.loads(line) for line in lines]
        return [
            (_right(one), one["responseStatus"]["code"])
            for one in events
            if one["user"]["username"] == user and "objectRef" in one and "responseStatus" in one
        ]


def _right(event: dict[str, Any]) -> Right:
    about = event["objectRef"]
    resource = about["resource"] + (f"/{about['subresource']}" if "subresource" in about else "")
    return event["verb"], about.get("apiGroup", ""), resource
