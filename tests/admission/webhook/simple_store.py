"""Made-up answers of a webhook, for tests of how it is served."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from admission.webhook.admission_review import allowed, decode_review
from admission.webhook.review_answers import AdmissionAnswer, AdmissionOutcome


class SimpleStore:
    """Implements InEffect. bindings: their names."""

    def __init__(self, *, ready: bool = True) -> None:
        self.ready = ready
        self.templates: Any = SimpleNamespace(
            bindings={"evening": None, "broken": None}, problems={"broken": None}, node_configs={"pool": None},
            pod_configs={},
        )  # fmt: skip


def simple_review(body: bytes) -> AdmissionAnswer:
    """Raises Malformed; and, for the namespace `mistake`, an unexpected error."""
    request = decode_review(body)
    if request.namespace == "mistake":
        raise KeyError("a mistake of ours")
    patch = b'[{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]'
    return AdmissionAnswer(
        allowed(request.uid, patch), AdmissionOutcome.SHAPED, () if request.dry_run else ("evening",)
    )
