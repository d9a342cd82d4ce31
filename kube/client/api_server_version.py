"""Asks the API server for its version and for fields that we do not know, again with every list and stream: it may be
upgraded while this process runs.

known_fields.json holds the fields of pods, nodes and volumes in all versions that we are compared with, by their
type (api/openapi-spec/v3/api__v1_openapi.json). A newer API server may have more. A field that is not known is not
heeded; the log names each.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any, Final

import msgspec
from kubernetes.client import ApiClient

from kube.client.kubernetes_client import ask
from kube.client.kubernetes_steps import Request
from kube.objects.kubernetes_version import COMPARED, NEWEST, KubernetesVersion, decode_version

OPENAPI_PATH: Final = "/openapi/v3/api/v1"
_PREFIX: Final = "io.k8s.api.core.v1."

logger = logging.getLogger(__name__)
_SECONDS: Final = 10.0


class _Schema(msgspec.Struct):
    properties: Mapping[str, Any] = {}


class _Components(msgspec.Struct):
    schemas: Mapping[str, _Schema] = {}


class _OpenApi(msgspec.Struct):
    components: _Components


_decoder = msgspec.json.Decoder(_OpenApi)


def unknown_fields(openapi: bytes) -> list[str] | None:
    """Such as "PodSpec.example"; None = this is no OpenAPI document."""
    try:
        schemas = _decoder.decode(openapi).components.schemas
    except msgspec.DecodeError:
        return None
    known: Mapping[str, list[str]] = msgspec.json.decode(files(__package__).joinpath("known_fields.json").read_bytes())
    return [
        f"{kind}.{name}"
        for kind, names in known.items()
        if (schema := schemas.get(_PREFIX + kind)) is not None
        for name in sorted(set(schema.properties) - set(names))
    ]


class ApiServerVersion:
    """The version whose rules hold.

    on_change : gets the version when it is read first, and whenever it is another one
    """

    def __init__(self, api: ApiClient, on_change: Callable[[KubernetesVersion], None]) -> None:
        self._api, self._on_change = api, on_change
        self._known: KubernetesVersion | None = None
        self._refused = False

    def read(self) -> KubernetesVersion:
        """Ask. If the server refuses, what it said before holds, else the newest version that is compared.

        Raises UnreachableApiServer.
        """
        answer = ask(self._api, Request("/version"), seconds=_SECONDS)
        found = decode_version(answer.body) if answer.status == 200 else None
        if found is None:
            if not self._refused:
                self._refused = True
                logger.warning(
                    "the API server does not say its version (%d): the rules of Kubernetes %s hold; grant GET /version "
                    "as the role system:public-info-viewer does",
                    answer.status,
                    self._known or NEWEST,
                )
            found = self._known or NEWEST
        if found != self._known:
            self._report(found)
            self._known = found
            self._on_change(found)
        return found

    def _report(self, version: KubernetesVersion) -> None:
        if version in COMPARED:
            logger.info("the API server is Kubernetes %s", version)
            return
        _warn_of(version)
        if version > COMPARED[-1]:
            answer = ask(self._api, Request(OPENAPI_PATH), seconds=_SECONDS)
            unknown = unknown_fields(answer.body) if answer.status == 200 else None
            if unknown is None:
                logger.warning("the API server does not say its fields (%d): new ones are not heeded", answer.status)
            for name in unknown or ():
                logger.warning("placement does not heed the field %s, which Kubernetes %s has not", name, COMPARED[-1])


def _warn_of(version: KubernetesVersion) -> None:
    nearest = COMPARED[0] if version < COMPARED[0] else COMPARED[-1]
    logger.warning(
        "the API server is Kubernetes %s, but the filters are compared with kube-scheduler of %s: the rules of %s "
        "hold; docs/start/limits.md says what that means",
        version,
        f"{COMPARED[0]} to {COMPARED[-1]}",
        nearest,
    )
