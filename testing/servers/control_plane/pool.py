"""Control planes that tests of one process share, one after the other: a start costs seconds, an emptying a moment.

    with control_plane() as plane:      as empty as a new one; nested uses get planes of their own

A plane that a test has broken for good (etcd wiped, no answer) is thrown away.
"""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from testing.servers.control_plane.control_plane import ControlPlane

_REGISTRY: Final = "/registry/"
_CHANGING: Final = tuple(
    f"{_REGISTRY}{kind}/" for kind in ("masterleases", "leases/kube-system", "ranges", "configmaps/kube-system")
)
"""What the API server itself writes again and again."""
_SETTLED_SECONDS: Final = 0.3
_AT_ONCE: Final = 100
"""Of operations in a transaction of etcd: it takes 128."""


class _Plane:
    """A running plane and what is in its etcd while it is empty: the revision of each key, and its value."""

    def __init__(self) -> None:
        self.plane = ControlPlane()
        self.plane.start()
        before: dict[str, int] = {}
        now = self._keys()
        while now != before:  # bootstrap goes on for a moment after the API server is ready
            time.sleep(_SETTLED_SECONDS)
            before, now = now, self._keys()
        self._revisions = now
        self._values = {one["key"]: one["value"] for one in self._range(keys_only=False)}
        self._revision = max(now.values())

    def empty(self) -> bool:
        """Remove all that was created and put back what was changed; False if the plane cannot be used again."""
        try:
            self.plane.api_server.resume()
            self.plane.api_server.start()
            if not (keys := self._keys()) or max(keys.values()) < self._revision:
                return False  # another etcd
            self._delete(keys)
            self._put_back(keys)
            return self._is_empty()
        except (OSError, RuntimeError):
            return False

    def _delete(self, keys: Mapping[str, int]) -> None:
        """Whole resources at once where none of their objects belongs to an empty plane."""
        kept = {_resource(key) for key in self._revisions}
        further = [key for key in keys if key not in self._revisions]
        resources = {_resource(key) for key in further} - kept
        single = [key for key in further if _resource(key) in kept]
        deletions = [{"key": _coded(one), "range_end": _coded(one[:-1] + "0")} for one in resources]  # "0" follows "/"
        deletions += [{"key": _coded(one)} for one in single]
        for at in range(0, len(deletions), _AT_ONCE):
            self.plane.etcd.transaction([{"request_delete_range": one} for one in deletions[at : at + _AT_ONCE]])

    def _put_back(self, keys: Mapping[str, int]) -> None:
        changed = [key for key, revision in self._revisions.items() if keys.get(key) != revision]
        puts = [
            {"request_put": {"key": _coded(key), "value": self._values[_coded(key)]}}
            for key in changed
            if not key.startswith(_CHANGING) or key not in keys
        ]
        for at in range(0, len(puts), _AT_ONCE):
            self.plane.etcd.transaction(puts[at : at + _AT_ONCE])
        self._revisions |= {key: revision for key, revision in self._keys().items() if key in self._revisions}

    def _is_empty(self) -> bool:
        """Whether nothing is left; the watches of the API server have a moment to see it."""
        for _ in range(20):
            time.sleep(0.05)
            if self._keys().keys() <= self._revisions.keys():
                return True
            self._delete(self._keys())
        return False

    def _keys(self) -> dict[str, int]:
        """Revision of the last change by key."""
        return {b64decode(one["key"]).decode(): int(one["mod_revision"]) for one in self._range(keys_only=True)}

    def _range(self, *, keys_only: bool) -> list[dict[str, Any]]:
        return self.plane.etcd.range(_REGISTRY, _REGISTRY[:-1] + "0", keys_only=keys_only)


_idle: list[_Plane] = []


@contextmanager
def control_plane() -> Iterator[ControlPlane]:
    """Yield an empty control plane of no other user; empty it afterwards, for the next one."""
    used = _idle.pop() if _idle else _Plane()
    try:
        yield used.plane
    except BaseException:
        used.plane.stop()
        raise
    if used.empty():
        _idle.append(used)
    else:
        used.plane.stop()


def stop_idle() -> None:
    """End the planes of this process that are not in use."""
    while _idle:
        _idle.pop().plane.stop()


def _resource(key: str) -> str:
    """`/registry/pods/` of `/registry/pods/default/cart`; custom resources have their group before it."""
    parts = key.removeprefix(_REGISTRY).split("/")
    n = 2 if "." in parts[0] and parts[0] != "apiregistration.k8s.io" and len(parts) > 2 else 1
    return _REGISTRY + "/".join(parts[:n]) + "/"


def _coded(key: str) -> str:
    return b64encode(key.encode()).decode()
