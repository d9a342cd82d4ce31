"""A list and then a watch of one kind of object on a real API server, for what plays other parts of a cluster."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final, Protocol, Self
from urllib.parse import urlencode

import urllib3

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

    path             : of the collection, such as PODS
    patience_seconds : so long a server that is being restarted is asked again. It knows no history from before: what is
                       there is listed anew, and what is not any more is told as DELETED
    """

    def __init__(
        self,
        address: Address,
        path: str,
        seen: Callable[[str, dict[str, Any]], None],
        selectors: Mapping[str, str] = MappingProxyType({}),
        *,
        patience_seconds: float = 0.0,
    ) -> None:
        """selectors: fieldSelector, labelSelector."""
        self._patience = patience_seconds
        self._url, self._selectors, self._seen = address.url + path, dict(selectors), seen
        self._headers = {"Authorization": f"Bearer {address.token}"}
        self._pool = urllib3.PoolManager(ca_certs=str(address.ca_file), maxsize=2, retries=False)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._ended = False
        self._known: dict[str, dict[str, Any]] = {}  # by UID
        self.failed = ""

    def __enter__(self) -> Self:
        self._list()
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

    def _list(self) -> None:
        """Raises RuntimeError."""
        listed = self._get()
        page = json.loads(listed.read())
        listed.release_conn()
        if listed.status != 200:
            raise RuntimeError(f"{self._url}: {listed.status} {page}")
        there = {item["metadata"]["uid"] for item in page["items"]}
        for gone in [item for uid, item in self._known.items() if uid not in there]:
            self._tell("DELETED", gone)
        for item in page["items"]:
            self._tell("MODIFIED" if item["metadata"]["uid"] in self._known else "ADDED", item)
        self._version = page["metadata"]["resourceVersion"]

    def _tell(self, kind: str, item: dict[str, Any]) -> None:
        if kind == "DELETED":
            self._known.pop(item["metadata"]["uid"], None)
        else:
            self._known[item["metadata"]["uid"]] = item
        self._seen(kind, item)

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
            forgotten = ""
            with suppress(urllib3.exceptions.HTTPError, OSError, ValueError):
                forgotten = self._read()
            self._answer.close()
            if not self._ended:
                self._go_on(forgotten)

    def _go_on(self, forgotten: str) -> None:
        """Watch from where it was, or from what is listed anew; `failed` says where that is not possible."""
        deadline = time.monotonic() + self._patience
        if forgotten and not self._patience:
            self.failed = forgotten
        while not self._ended and not self.failed:
            try:
                if forgotten:
                    self._list()
                self._answer = self._watch()
                if self._answer.status == 200 or not self._patience:
                    return  # whatever else it says is read as the end of the watch
                forgotten = f"{self._answer.status}"
                self._answer.close()
            except (urllib3.exceptions.HTTPError, OSError, RuntimeError, ValueError) as error:
                if time.monotonic() > deadline:
                    self.failed = f"the watch of {self._url} has ended: {error}"
            time.sleep(0.2)

    def _read(self) -> str:
        """Until it ends; returns why it cannot go on from there, if so."""
        rest = b""
        for chunk in self._answer.stream(2**16):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return str(event["object"])
                self._version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._tell(event["type"], event["object"])
        return ""
