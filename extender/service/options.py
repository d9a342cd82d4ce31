"""Settings of the extender's HTTP service, in the section `extender`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from base.setting_group import Duration
from serving.options import ServingOptions


class ServiceOptions(ServingOptions):
    """Who may ask, how much at a time, and how long kube-scheduler waits.

    kube-scheduler can send no token: use client certificates for it.
    """

    group: ClassVar[str] = "extender"

    port: int = Field(default=8888, ge=0, le=65_535)
    """0: any free one, which is printed; `--port`."""

    max_body_bytes: int = Field(default=4 * 2**20, gt=0)
    """Size of a request: 5,000 node names of 60 characters are 0.3 MB, 5,000 whole nodes tens of MB. All bodies
    together get 8 times as much memory."""

    max_concurrent: int = Field(default=512, gt=0)
    """Requests at work at once; more are turned away with 503. Bindings wait for the API server, many at a time."""

    deadline: Duration = Field(default=0.2, gt=0)
    """Past it the answer to /filter, /prioritize and /preempt is neutral: all nodes pass, all get 0 points."""

    receive_timeout: Duration = Field(default=5, gt=0)
    """A body must have arrived by then."""

    threads: int = Field(default=2, gt=0)
    """Threads that answer those three at once. One scheduler asks one question at a time."""

    bind_timeout: Duration = Field(default=4, gt=0)
    """/bind is answered by then. Must be below the extender's httpTimeout, which is 5 s unless configured."""

    bind_threads: int = Field(default=32, gt=0)
    """Bindings under way at once: kube-scheduler binds many pods at a time."""
