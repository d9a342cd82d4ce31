"""What the OpenAPI documents of our services have in common: answers, bodies, and an application that serves one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.responses import Response

Answers = dict[int | str, dict[str, Any]]
_NO_TELEMETRY = {"tracing": False, "metrics": False, "logs": False}


def bare_app(title: str) -> FastAPI:
    """An application without FastAPI's own documents, of which /docs and /redoc load their scripts from elsewhere, and
    without its telemetry, which looks for a provider with every request.
    """
    return FastAPI(
        title=title,
        version=version("forecast-scheduler"),
        openapi_url=None,
        redirect_slashes=False,
        telemetry=_NO_TELEMETRY,  # type: ignore[arg-type]
    )


def serve_document(app: FastAPI, make: Callable[[], dict[str, Any]]) -> None:
    """Serve at /openapi.json what `make` returns. It is made and encoded once: encoding takes some milliseconds."""
    document: dict[str, Any] = {}
    encoded: list[bytes] = []

    def openapi() -> dict[str, Any]:
        if not document:
            document.update(make())
        return document

    app.openapi = openapi  # type: ignore[method-assign]

    @app.get("/openapi.json", include_in_schema=False)
    async def served() -> Response:
        if not encoded:
            encoded.append(msgspec.json.encode(openapi()))
        return Response(encoded[0], media_type="application/json")


def bodies_of(module: ModuleType) -> list[type]:
    """The msgspec types that a module defines, in the order of their definition."""
    return [kind for kind in vars(module).values() if _is_body(kind) and kind.__module__ == module.__name__]


def _is_body(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def ref(schema: str) -> dict[str, str]:
    """A reference to a schema by name."""
    return {"$ref": f"#/components/schemas/{schema}"}


@dataclass(frozen=True, slots=True)
class Document:
    """The words of one service; every error is the schema ErrorBody, and 401, 403, 500 and 503 may always come.

    errors   : what each status means
    examples : of request bodies, by schema
    """

    description: str
    errors: Mapping[int, str]
    examples: Mapping[str, Mapping[str, Any]]

    def answer(self, schema: str, *errors: int) -> Answers:
        """`responses=` of a route whose answer is a body of this name."""
        good = {"description": "The answer.", "content": {"application/json": {"schema": ref(schema)}}}
        return {200: good} | self.error_answers(*errors)

    def plain_answer(self, description: str) -> Answers:
        """`responses=` of a route that answers with plain text."""
        return self.file_answer(description, "text/plain")

    def file_answer(self, description: str, kind: str, *errors: int) -> Answers:
        """`responses=` of a route that answers with text of this media type."""
        good = {"description": description, "content": {kind: {"schema": {"type": "string"}}}}
        return {200: good} | self.error_answers(*errors)

    def body(self, schema: str, examples: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """`openapi_extra=` of a route that decodes its body itself. examples: None = those of the document."""
        examples = self.examples[schema] if examples is None else examples
        content = {"application/json": {"schema": ref(schema), "examples": examples}}
        return {"requestBody": {"required": True, "content": content}}

    def error_answers(self, *statuses: int) -> Answers:
        """What may go wrong."""
        content = {"application/json": {"schema": ref("ErrorBody")}}
        return {
            status: {"description": self.errors[status], "content": content}
            for status in sorted({401, 403, 500, 503, *statuses})
        }

    def describe(
        self, app: FastAPI, types: Iterable[type], raw: Mapping[str, Any], *, with_tokens: bool
    ) -> dict[str, Any]:
        """The document of an application. types: msgspec types of bodies; raw: schema of a piece that stays JSON."""
        document = get_openapi(title=app.title, version=app.version, description=self.description, routes=app.routes)
        components = document.setdefault("components", {})
        components["schemas"] = _schemas(types, raw)
        if with_tokens:
            components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            document["security"] = [{"token": []}]
        for path in document["paths"].values():
            for operation in path.values():
                # FastAPI adds its own 422 to every route with parameters; ours has another shape.
                if "422" in operation["responses"]:
                    operation["responses"]["422"] = self.error_answers(422)[422]
                if operation.get("security") == [] and not with_tokens:
                    del operation["security"]
        return document


def _schemas(types: Iterable[type], raw: Mapping[str, Any]) -> dict[str, Any]:
    def hook(kind: type) -> dict[str, Any]:
        if kind is msgspec.Raw:
            return dict(raw)
        if issubclass(kind, np.ndarray):  # the annotation of the field says how deep its lists are nested
            return {}
        raise TypeError(f"{kind} has no schema: describe it here")

    _, schemas = msgspec.json.schema_components(types, schema_hook=hook, ref_template="#/components/schemas/{name}")
    return dict(schemas)
