"""Several questions at once, none of which is waited for beyond a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from base.errors import ForecastError


class NotRead(ForecastError):
    """A question got no usable answer; the text says why."""


def ask_all(questions: Mapping[str, Callable[[], Any]], seconds: float) -> dict[str, Any]:
    """Return the answer to each question; a NotRead in place of those that failed or took longer than `seconds`.

    The threads are daemons: one that hangs in the network keeps the process neither busy nor alive.
    """
    answers = dict[str, Any]()

    def ask(name: str, question: Callable[[], Any]) -> None:
        try:
            answers[name] = question()
        except Exception as error:
            answers[name] = error if isinstance(error, ForecastError) else NotRead(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=ask, args=one, daemon=True) for one in questions.items()]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    late = NotRead(f"no answer within {seconds:.0f} s")
    return {name: answers.get(name, late) for name in questions}
