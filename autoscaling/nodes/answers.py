"""What an answer of the API server means for buffers and marks: one error class, with the way out."""

from __future__ import annotations

from typing import Final

from base.errors import ForecastError
from kube.client.api_answer import Answer

CONFLICT: Final = 409
MISSING: Final = 404
_FORBIDDEN: Final = 403

SECONDS: Final = 10.0
"""Timeout of one request."""

TRIES: Final = 5
"""Of a write that meets a newer version of its object each time."""


class NodesError(ForecastError):
    """The API server refused a buffer or a mark, or did not answer. The next call tries again."""


def required(answer: Answer, what: str) -> Answer:
    """The answer if it is a success. Raises NodesError. what: a phrase such as "node a was not marked"."""
    if answer.status == _FORBIDDEN:
        raise NodesError(f"{what}: {answer.text}: grant the rights in deploy/components/autoscaler-writes/rbac.yaml")
    if not answer.is_success:
        raise NodesError(f"{what}: {answer.text or answer.status}: it is tried again")
    return answer


def is_over(answer: Answer, what: str) -> bool:
    """Return whether a write needs no other try; False = another client wrote to the object meanwhile.

    Raises NodesError if it was refused for good. what: as in `required`.
    """
    if answer.status in (CONFLICT, MISSING):
        return answer.status == MISSING
    required(answer, what)
    return True
