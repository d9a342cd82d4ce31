"""`kubectl apply --server-side` without kubectl: which path an object has is asked of the API server, as kubectl does.

https://kubernetes.io/docs/reference/using-api/server-side-apply/
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, Self

import urllib3

from testing.waiting import eventually

Manifest = Mapping[str, Any]


class _Plane(Protocol):
    @property
    def url(self) -> str: ...
    @property
    def token(self) -> str: ...
    @property
    def ca_file(self) -> Any: ...


class NotApplied(Exception):
    """The API server refuses an object; status and message are its own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}")
        self.status, self.message = status, message


class Applier:
    """Context manager. warnings: those of all answers so far."""

    def __init__(self, plane: _Plane, *, manager: str = "kubectl", agent: str = "kubectl") -> None:
        """agent: User-Agent, by which the API server names who manages what other writes change."""
        self._url, self._manager = plane.url, manager
        self._headers = {
            "Authorization": f"Bearer {plane.token}",
            "Accept": "application/json",
            "User-Agent": agent,
        }
        # As kubectl: Retry-After is obeyed, such as that of a definition whose storage is being set up.
        retries = urllib3.Retry(
            connect=0, read=0, redirect=0, other=0, status=30, allowed_methods=None, raise_on_status=False
        )
        self._pool = urllib3.PoolManager(ca_certs=str(plane.ca_file), retries=retries, timeout=30)
        self._collections: dict[tuple[str, str], tuple[str, bool]] = {}
        self.warnings: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self._pool.clear()

    def apply(self, manifest: Manifest) -> dict[str, Any]:
        """One object; fields that another manager owns are not taken from it. Raises NotApplied."""
        return self.send("PATCH", f"{self.path(manifest)}?fieldManager={self._manager}&force=false", manifest)

    def apply_all(self, manifests: Iterable[Manifest]) -> dict[str, dict[str, Any]]:
        """All of them, in order. Returns what the API server made of each by its path."""
        return {self.path(one): self.apply(one) for one in manifests}

    def read(self, manifest: Manifest) -> dict[str, Any]:
        """The object of that kind and name."""
        return self.send("GET", self.path(manifest))

    def delete(self, manifest: Manifest) -> None:
        """At once; what is gone already is fine. No controller runs that would take finalizers off."""
        path = self.path(manifest)
        try:
            if self.send("GET", path)["metadata"].get("finalizers"):
                self.send("PATCH", path, {"metadata": {"finalizers": None}}, kind="application/merge-patch+json")
            self.send("DELETE", path, {"gracePeriodSeconds": 0}, kind="application/json")
        except NotApplied as error:
            if error.status != 404:
                raise

    def path(self, manifest: Manifest) -> str:
        """Where the object is."""
        version, kind = manifest["apiVersion"], manifest["kind"]
        if (version, kind) not in self._collections:
            # Kinds of a definition that was just created are served a moment later.
            assert eventually(lambda: self._discover(version, kind)), f"the API server knows no {kind} of {version}"
        plural, is_namespaced = self._collections[version, kind]
        inside = f"namespaces/{manifest['metadata']['namespace']}/" if is_namespaced else ""
        return f"{_root(version)}/{inside}{plural}/{manifest['metadata']['name']}"

    def send(
        self, method: str, path: str, body: Any = None, *, kind: str = "application/apply-patch+yaml"
    ) -> dict[str, Any]:
        """A request; raises NotApplied."""
        answer = self._pool.request(
            method,
            self._url + path,
            body=None if body is None else json.dumps(body),
            headers=self._headers | ({} if body is None else {"Content-Type": kind}),
        )
        self.warnings += answer.headers.getlist("Warning")
        is_json = answer.headers.get("Content-Type", "").startswith("application/json")
        content = json.loads(answer.data) if is_json else {"message": answer.data.decode(errors="replace")}
        if answer.status >= 300:
            raise NotApplied(answer.status, content.get("message", ""))
        return dict(content)

    def _discover(self, version: str, kind: str) -> bool:
        try:
            resources = self.send("GET", _root(version))["resources"]
        except NotApplied:
            return False
        for one in resources:
            if "/" not in one["name"]:
                self._collections[version, one["kind"]] = one["name"], one["namespaced"]
        return (version, kind) in self._collections


def _root(version: str) -> str:
    return f"/api/{version}" if "/" not in version else f"/apis/{version}"
