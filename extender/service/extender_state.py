"""What the routes of one application share, and what is answered when no answer can be given in earnest.

    answered   in earnest
    late       the deadline passed            -> neutral answer
    failed     a mistake of ours              -> neutral answer, the log says more
    not_ready  the cluster is not read yet    -> neutral answer
    refused    nothing that could be answered -> an error in the protocol's own terms
    malformed  not the protocol               -> status 400

Neutral: all nodes pass, none has points, victims stay as kube-scheduler chose them. So nothing that goes wrong here
makes a pod unschedulable, whether or not the extender is configured as ignorable.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from base.errors import ForecastError
from extender.answer_settings import ExtenderServiceOptions
from extender.extender_api import ExtenderApi
from extender.protocol.replies import error_reply
from extender.protocol.requests import Unusable
from extender.service.extender_metrics import ExtenderMetrics
from extender.service.workers import AnswerDeadline, Late, Workers
from kube.binding.binding_steps import Binder
from serving.quiet_log import QuietLog

logger = logging.getLogger(__name__)


class NotReady(ForecastError):
    """The cluster has not been read completely yet."""


@dataclass(slots=True)
class ExtenderService:
    """The extender and how it is served.

    draining : set by the server on its way out; /readyz says no from then on
    """

    extender: ExtenderApi
    options: ExtenderServiceOptions
    metrics: ExtenderMetrics
    binder: Binder | None
    workers: Workers
    binders: Workers
    renderers: Workers
    draining: bool = False
    _was_ready: bool = False
    _log: QuietLog = field(default_factory=lambda: QuietLog(logger))

    def require_ready(self) -> None:
        """Once ready, always ready: stale tables are the degradation ladder's matter. Raises NotReady."""
        if not self._was_ready:
            status = self.extender.status()
            if not status.ready:
                raise NotReady(f"not ready: {status.not_ready_because or 'starting'}")
            self._was_ready = True

    async def answer(
        self,
        verb: str,
        deadline: AnswerDeadline,
        work: Callable[[], bytes],
        neutral: Callable[[], bytes],
        refused: Callable[[str], Response],
        *,
        after: Callable[[], None] | None = None,
    ) -> Response:
        """Do the work in a thread within the deadline; otherwise give the neutral answer. after: once it is out."""

        def in_earnest() -> bytes:
            self.require_ready()
            return work()

        try:
            reply = await self.workers.run(in_earnest, deadline, after=after)
        except Unusable as error:
            self.metrics.count(verb, "refused")
            return refused(str(error))
        except Late:
            outcome = "late"
            self._say(logging.WARNING, f"/{verb} was late: kube-scheduler got a neutral answer", verb)
        except NotReady as error:
            outcome = "not_ready"
            self._say(logging.INFO, f"/{verb} before the extender was ready: {error}", verb)
        except ForecastError as error:
            outcome = "failed"
            self._say(logging.WARNING, f"/{verb} failed, kube-scheduler got a neutral answer: {error}", verb)
        except Exception as error:
            outcome = "failed"
            self.say_failure(verb, error)
        else:
            self.metrics.count(verb, "answered")
            return json_bytes(reply)
        self.metrics.count(verb, outcome)
        return json_bytes(neutral())

    def say_failure(self, verb: str, error: Exception) -> None:
        """Log an unexpected exception."""
        self._say(logging.ERROR, f"/{verb} failed, kube-scheduler got a neutral answer or an error", verb, error)

    def _say(self, level: int, message: str, verb: str, error: Exception | None = None) -> None:
        self._log.log(level, "%s", message, kind=verb, error=error, extra={"verb": verb})


def service_of(request: Request) -> ExtenderService:
    """Return the service that this application answers for."""
    service: ExtenderService = request.app.state.service
    return service


def json_bytes(body: bytes, status: int = 200) -> Response:
    """An answer that is JSON already."""
    return Response(body, status, media_type="application/json")


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Any answer but 200 is an error to kube-scheduler, which does not read it: the text is for people."""
    extra = {"Retry-After": "1"} if status == 503 else {}
    return Response(error_reply(message), status, extra | dict(headers or {}), "application/json")
