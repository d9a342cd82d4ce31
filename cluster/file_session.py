"""A session that answers from a cluster file in place of an API server, for parts that read single objects.

GET of an object or of a list is answered from the file. Everything else is refused: a dry run writes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from cluster.tables.cluster_file import ClusterObjects
from kube.client.api_answer import ApiAnswer

T = TypeVar("T")

_PLURALS: Final = {
    "deployments": ("apps", "Deployment"),
    "statefulsets": ("apps", "StatefulSet"),
    "replicasets": ("apps", "ReplicaSet"),
    "jobs": ("batch", "Job"),
}
_NOT_FOUND, _METHOD_NOT_ALLOWED = 404, 405


class FileSession:
    """Implements the sessions of the tide and its reader. `objects` is set once the file is read."""

    def __init__(self) -> None:
        self.objects: ClusterObjects | None = None

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run the coroutine to its end now."""
        future: Future[T] = Future()
        future.set_result(asyncio.run(work))
        return future

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float = 0.0
    ) -> ApiAnswer:
        """The object, or the list of a kind narrowed by its labels; 404 for what the file does not hold."""
        if method != "GET":
            return ApiAnswer(_METHOD_NOT_ALLOWED, text="a cluster file is not written to")
        split = urlsplit(path)
        parts = [unquote(part) for part in split.path.strip("/").split("/")]
        match parts:
            case ["apis", group, _, plural]:
                selector = parse_qs(split.query).get("labelSelector", [""])[0]
                return ApiAnswer(200, msgspec.json.encode({"items": list(self._listed(group, plural, selector))}))
            case ["apis", group, _, "namespaces", namespace, plural, name]:
                for item in self._listed(group, plural, ""):
                    metadata = item.get("metadata", {})
                    if (metadata.get("namespace", "default"), metadata.get("name")) == (namespace, name):
                        return ApiAnswer(200, msgspec.json.encode(item))
                return ApiAnswer(_NOT_FOUND, text="it is not in the cluster file")
        return ApiAnswer(_NOT_FOUND, text="it is not in the cluster file")

    def _listed(self, group: str, plural: str, selector: str) -> Iterator[dict[str, Any]]:
        of_group, kind = _PLURALS.get(plural, ("", ""))
        if self.objects is None or of_group != group:
            return
        label, _, value = selector.partition("=")
        for raw in self.objects.further.get((group, kind), ()):
            item: dict[str, Any] = msgspec.json.decode(raw)
            if not selector or (item.get("metadata", {}).get("labels") or {}).get(label) == value:
                yield item
