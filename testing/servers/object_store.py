"""An object store that speaks as much of S3 as s3fs asks for, with faults at any request.

A client's requests are counted from `arm` on. A fault is chosen per request; the store itself is atomic per object, as
S3 is. Listings may be frozen: they then show what there was at that moment.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self
from unittest.mock import patch
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_BUCKET: Final = "bucket"


@dataclass(frozen=True, slots=True)
class Request:
    """number: from 0 on since `arm`; key: without the bucket, '' = the bucket itself."""

    number: int
    method: str
    key: str
    query: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens instead of, or besides, the answer.

    status  : of an error answer; nothing is done
    seconds : until the answer
    """

    status: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class _State:
    objects: dict[str, bytes] = field(default_factory=dict)
    uploads: dict[str, str] = field(default_factory=dict)
    listed: dict[str, bytes] | None = None
    seen: list[Request] = field(default_factory=list)
    choose: Callable[[Request], Fault | None] = lambda request: None


class ObjectStoreServer:
    """Context manager. Inside, `open_store(url)` reaches it, from this process and from those that it starts."""

    url: Final = f"s3://{_BUCKET}/models"

    def __init__(self) -> None:
        self._state, self._lock = _State(), threading.Lock()
        state, lock = self._state, self._lock
        handler = type("Handler", (_Handler,), {"state": state, "lock": lock})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._environment = patch.dict(
            os.environ,
            {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._server.server_port}",
                "AWS_ACCESS_KEY_ID": "key",
                "AWS_SECRET_ACCESS_KEY": "secret",
                "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_EC2_METADATA_DISABLED": "true",
            },
        )

    def __enter__(self) -> Self:
        self._thread.start()
        self._environment.start()
        _forget_drivers()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _forget_drivers()
        self._environment.stop()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def objects(self) -> dict[str, bytes]:
        """Content by key, as it is now."""
        with self._lock:
            return dict(self._state.objects)

    @property
    def uploads(self) -> dict[str, str]:
        """Keys of uploads in parts that were begun and neither completed nor aborted, by their number."""
        with self._lock:
            return dict(self._state.uploads)

    @property
    def seen(self) -> list[Request]:
        """Requests since `arm`."""
        with self._lock:
            return list(self._state.seen)

    def arm(self, choose: Callable[[Request], Fault | None] = lambda request: None) -> None:
        """Count requests from now on, and choose a fault for each."""
        with self._lock:
            self._state.seen.clear()
            self._state.choose = choose

    def freeze_listings(self, frozen: bool = True) -> None:
        """Listings show what there is now, whatever is written later."""
        with self._lock:
            self._state.listed = dict(self._state.objects) if frozen else None


def _forget_drivers() -> None:
    """s3fs keeps a driver for the process: one that was made before asks the server of that time."""
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()


class _Handler(BaseHTTPRequestHandler):
    state: _State
    lock: threading.Lock
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for an acknowledgement

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        key = unquote(parts.path).lstrip("/").removeprefix(_BUCKET).lstrip("/")
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        content = self._body()
        with self.lock:
            request = Request(len(self.state.seen), self.command, key, query)
            self.state.seen.append(request)
            fault = self.state.choose(request) or Fault()
        time.sleep(fault.seconds)
        if fault.status:
            code = "SlowDown" if fault.status == 503 else "InternalError"
            self._answer(fault.status, f"<Error><Code>{code}</Code><Message>made up</Message></Error>".encode())
            return
        with self.lock:
            status, answer, headers = self._done(request, content)
        self._answer(status, answer, headers)

    do_GET = do_PUT = do_DELETE = do_HEAD = do_POST = _serve  # noqa: N815 - names of the standard library

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "") == "chunked":
            content = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
        else:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "aws-chunked" in self.headers.get("Content-Encoding", ""):
            content = _without_signatures(content)
        return content

    def _done(self, request: Request, content: bytes) -> tuple[int, bytes, dict[str, str]]:
        objects, key, query = self.state.objects, request.key, request.query
        match request.method:
            case "GET" if not key:
                return 200, _listing(objects if self.state.listed is None else self.state.listed, query), {}
            case "HEAD" if not key:
                return 200, b"", {}
            case "POST" if "uploads" in query:
                number = f"upload-{len(self.state.seen)}"
                self.state.uploads[number] = key
                inside = f"<Bucket>{_BUCKET}</Bucket><Key>{escape(key)}</Key><UploadId>{number}</UploadId>"
                return 200, f"<InitiateMultipartUploadResult>{inside}</InitiateMultipartUploadResult>".encode(), {}
            case "PUT" if self.headers.get("If-None-Match") == "*" and key in objects:
                return 412, b"<Error><Code>PreconditionFailed</Code></Error>", {}
            case "PUT":
                if "uploadId" not in query:
                    objects[key] = content
                return 200, b"", {"ETag": '"etag"'}
            case "DELETE":
                objects.pop(key, None)
                return 204, b"", {}
            case "GET" | "HEAD" if key in objects:
                found, status, headers = objects[key], 200, {"ETag": '"etag"', "Last-Modified": _when()}
                if (part := self.headers.get("Range")) and request.method == "GET":
                    first, _, last = part.removeprefix("bytes=").partition("-")
                    headers["Content-Range"] = f"bytes {first}-{last}/{len(found)}"
                    found, status = found[int(first) : int(last) + 1], 206
                return status, found, headers
        return 404, b"" if request.method == "HEAD" else b"<Error><Code>NoSuchKey</Code></Error>", {}

    def _answer(self, status: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            with suppress(ConnectionError):  # a client that has given up
                self.wfile.write(content)


def _listing(objects: Mapping[str, bytes], query: Mapping[str, str]) -> bytes:
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    keys, folders = [], set()
    for key in sorted(key for key in objects if key.startswith(prefix)):
        before, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
        if found:
            folders.add(prefix + before + delimiter)
        else:
            keys.append(key)
    inside = "".join(
        f"<Contents><Key>{escape(key)}</Key><Size>{len(objects[key])}</Size><ETag>e</ETag>"
        f"<LastModified>{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.000Z}</LastModified></Contents>"
        for key in keys
    ) + "".join(f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in sorted(folders))
    count = len(keys) + len(folders)
    inside = f"<IsTruncated>false</IsTruncated><KeyCount>{count}</KeyCount>{inside}"
    return f"<ListBucketResult>{inside}</ListBucketResult>".encode()


def _without_signatures(content: bytes) -> bytes:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html: size;signature, bytes, and so on."""
    plain = b""
    while content:
        head, _, rest = content.partition(b"\r\n")
        size = int(head.split(b";")[0], 16)
        if size == 0:
            break
        plain, content = plain + rest[:size], rest[size + 2 :]
    return plain


def _when() -> str:
    return format_datetime(datetime.now(UTC), usegmt=True)
