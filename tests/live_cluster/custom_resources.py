"""Our custom resources on a real API server: installs them, and says what the server answers to an object."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self

import urllib3
import yaml

from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.admission.templates.manifests import DEFINITIONS, Manifest

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True, slots=True)
class Answer:
    """warnings: of the header `Warning`, as kubectl shows them."""

    status: int
    body: dict[str, Any]
    warnings: tuple[str, ...]

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


class CustomResources:
    """Requests with strict validation of fields: what the schema does not know is an error."""

    def __init__(self, plane: ControlPlane, *, in_flight: int = 8) -> None:
        self._url, self._in_flight = plane.url, in_flight
        self._headers = {"Authorization": f"Bearer {plane.token}", "Content-Type": "application/json"}
        self._pool = urllib3.PoolManager(ca_certs=str(plane.ca_file), maxsize=in_flight, retries=False, timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self._pool.clear()

    def install(self) -> list[Answer]:
        """Create all definitions and wait until they are served."""
        definitions = [yaml.safe_load(path.read_text()) for path in DEFINITIONS]
        answers = [self.request("POST", _DEFINITIONS, one) for one in definitions]
        plurals = [one["spec"]["names"]["plural"] for one in definitions]
        assert eventually(lambda: all(self.get(plural).status == 200 for plural in plurals))
        return answers

    def get(self, plural: str, name: str = "") -> Answer:
        return self.request("GET", f"/apis/forecast-scheduler.io/v1alpha1/{plural}{'/' if name else ''}{name}")

    def create(self, manifest: Manifest, *, dry_run: bool = False) -> Answer:
        """Any of ours, or a pod."""
        plural = f"{manifest['kind'].lower()}s"
        path = f"/apis/forecast-scheduler.io/v1alpha1/{plural}"
        if manifest["kind"] == "Pod":
            path = f"/api/v1/namespaces/{manifest['metadata'].get('namespace', 'default')}/pods"
        return self.request("POST", f"{path}?fieldValidation=Strict{'&dryRun=All' if dry_run else ''}", manifest)

    def create_many(self, manifests: Iterable[Manifest], *, dry_run: bool = False) -> list[Answer]:
        """`create` for each, in the order given."""
        with ThreadPoolExecutor(self._in_flight) as threads:
            return list(threads.map(lambda one: self.create(one, dry_run=dry_run), manifests))

    def request(self, method: str, path: str, body: Manifest | None = None) -> Answer:
        answer = self._pool.request(
            method, self._url + path, body=None if body is None else json.dumps(body), headers=self._headers
        )
        try:
            decoded = json.loads(answer.data)
        except ValueError:
            decoded = {"message": answer.data.decode(errors="replace")}
        return Answer(answer.status, decoded, tuple(answer.headers.getlist("Warning")))
