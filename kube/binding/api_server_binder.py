"""Bind pods through the API server for kube-scheduler, where its bindVerb is given to us.

Which request follows which answer is decided in binding_steps.py; here one thread makes them and waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from kubernetes import client

from kube.binding.binding_steps import BindingFailed, BindingRequest, BindingVerdict, Pause, binding_steps
from kube.client.kubernetes_client import send


class ApiServerBinder:
    """Implements Binder. For any thread; one connection each."""

    def __init__(
        self,
        api: client.ApiClient,
        *,
        seconds: float = 3.5,
        attempt_seconds: float = 1.5,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """
        seconds         : for one binding, retries and looks at the pod included; less than the service waits
        attempt_seconds : for one request, so that an unanswered one can be looked after
        """
        self._api, self._seconds, self._attempt_seconds = api, seconds, attempt_seconds
        self._clock, self._sleep = clock, sleep

    def bind(self, binding: BindingRequest) -> None:
        """Returns once the pod is bound to that node. Raises BindingFailed."""
        steps = binding_steps(binding, seconds=self._seconds, attempt_seconds=self._attempt_seconds, clock=self._clock)
        step = next(steps)
        try:
            while True:
                if isinstance(step, Pause):
                    self._sleep(step.seconds)
                    step = steps.send(step.because)
                else:
                    answer = send(self._api, step.method, step.path, step.body or None, seconds=step.seconds)
                    step = steps.send(answer)
        except StopIteration as end:
            if end.value.verdict is not BindingVerdict.BOUND:
                raise BindingFailed(end.value.reason) from None
