"""A list and then a watch of one kind of object on a real API server, for what plays other parts of a cluster."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self
from urllib.parse import urlencode

import urllib3

__all__ = ["PODS", "Address", "Watching"]

PODS: Final = "/api/v1/pods"


class Address(Protocol):
    """Of an API server, and who asks."""

    url: str
    token: str
    ca_file: Path


class Watching:
    """Context manager: a thread that tells `seen` of every object and change ("ADDED", "MODIFIED", "DELETED", object).

    What there is when it begins has been told when it is entered, by the thread that enters. A watch that ends goes on
    from where it was; a history that the API server has forgotten by then is an error: `failed` says it.

    path : of the collection, such as PODS
    """

    def __init__(
        self, address: Address, path: str, seen: Callable[[str, dict[str, Any]], None], **selectors: str
    ) -> None:
        """selectors: fieldSelector, labelSelector."""
        self._url, self._selectors, self._seen = address.url + path, selectors, seen
        self._headers = {"Authorization": f"Bearer {address.token}"}
        self._pool = urllib3.PoolManager(ca_certs=str(address.ca_file), maxsize=2, retries=False)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._ended = False
        self.failed = ""

    def __enter__(self) -> Self:
        listed = self._get()
        page = json.loads(listed.read())
        listed.release_conn()
        if listed.status != 200:
            raise RuntimeError(f"{self._url}: {listed.status} {page}")
        for item in page["items"]:
            self._seen("ADDED", item)
        self._version = page["metadata"]["resourceVersion"]
        self._answer = self._watch()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended = True
        with suppress(RuntimeError, OSError, ValueError):  # the server has just ended it
            self._answer.shutdown()
        self._thread.join(10)
        self._answer.close()
        self._pool.clear()

    def _get(self, **query: str) -> urllib3.BaseHTTPResponse:
        return self._pool.request(
            "GET",
            f"{self._url}?{urlencode(self._selectors | query)}",
            headers=self._headers,
            preload_content=False,
            timeout=urllib3.Timeout(connect=10, read=None if query else 60),
        )

    def _watch(self) -> urllib3.BaseHTTPResponse:
        return self._get(watch="true", allowWatchBookmarks="true", resourceVersion=self._version)

    def _follow(self) -> None:
        while not self._ended and not self.failed:
            with suppress(urllib3.exceptions.HTTPError, OSError, ValueError):
                self._read()
            self._answer.close()
            if not self._ended:
                try:
                    self._answer = self._watch()
                except (urllib3.exceptions.HTTPError, OSError) as error:
                    self.failed = f"the watch of {self._url} has ended: {error}"

    def _read(self) -> None:
        rest = b""
        for chunk in self._answer.stream(2**16):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    self.failed = str(event["object"])
                    return
                self._version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._seen(event["type"], event["object"])
