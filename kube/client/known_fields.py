"""Fields of pods, nodes and volumes in an API that the versions of Kubernetes we are compared with do not have.

known_fields.json holds the fields of both versions by their type (api/openapi-spec/v3/api__v1_openapi.json). A newer
API server may have more. A field that is not known is not heeded; which ones these are is said by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

import msgspec

OPENAPI_PATH: Final = "/openapi/v3/api/v1"

_PREFIX: Final = "io.k8s.api.core.v1."


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
