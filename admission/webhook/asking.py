"""About which pods the webhook asks the advisor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from admission.advice.gating import ByPolicy, asked_mode
from admission.advice.options import AdviceGateOptions
from admission.advice.preferring import pod_to_ask_about, why_not_asked
from admission.webhook.admission import Ask, AskOf
from admission.webhook.wire import AdmissionRequest
from placement.advice_gate import AdviceMode
from placement.preferred_nodes import PreferencesBody


class AskAdvisor(Protocol):
    """PreferencesOfAdvisor.ask."""

    def __call__(self, pod: Mapping[str, Any], *, dry_run: bool) -> PreferencesBody | None: ...


def asks(
    ask_advisor: AskAdvisor,
    options: AdviceGateOptions,
    is_alive: Callable[[], bool],
    by_policy: ByPolicy = lambda pod: None,
) -> AskOf:
    """Return what asks about pods of the mode `prefer`, while an advisor is alive."""

    def ask_of(request: AdmissionRequest, pod: Mapping[str, Any], labels: Mapping[str, str] | None) -> Ask | None:
        namespace = request.namespace or ""
        mode = asked_mode(pod, namespace, labels, options, by_policy)
        if mode is not AdviceMode.PREFER or why_not_asked(pod) or not is_alive():
            return None

        def ask(affinity: Mapping[str, Any] | None) -> PreferencesBody | None:
            asked = pod_to_ask_about(request.object, request.uid, namespace, affinity)
            return None if asked is None else ask_advisor(asked, dry_run=bool(request.dry_run))

        return ask

    return ask_of
