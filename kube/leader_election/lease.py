"""One replica leads: a Lease of coordination.k8s.io says which.

The official client's kubernetes.leaderelection (37.0) was looked at first: it reads the wall clock, cannot be stopped
and does not release the Lease, and a connection that fails ends its thread, which then renews no more. What is decided
is in election.py; this is the thread that asks.

Needs get and update on that Lease, and create on leases, in its namespace.
"""

from __future__ import annotations

import logging
import random
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kubernetes import client

from kube.client.api_answer import NO_ANSWER, ApiAnswer
from kube.client.kubernetes_client import send
from kube.leader_election.election import Election
from kube.leader_election.lease_options import LeaseOptions
from kube.leader_election.record import LeaseRecord, lease_body, read_lease

logger = logging.getLogger(__name__)

_MISSING: Final = 404
_CONFLICT: Final = 409
_JITTER: Final = 0.2


def our_identity() -> str:
    """Of this process and no other: two on one host differ, and so does the same after a restart."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def running_time() -> float:
    """Seconds that also pass while the machine sleeps, and never go back."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)


def leases_path(namespace: str) -> str:
    """Return the path of all Leases of a namespace."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def write_lease(
    send_to: Callable[[str, str, bytes | None], ApiAnswer],
    name: str,
    one: Election,
    clock: Callable[[], float],
    wall: float,
    *,
    release: bool = False,
    **metadata: Mapping[str, str],
) -> ApiAnswer:
    """Take, renew or give back a Lease on top of what the election has seen, and tell it what came of that.

    send_to : sends a request (method, path, body); metadata: labels and annotations; see Lease for the others
    """
    seen, began, path = one.seen, clock(), leases_path(one.options.namespace)
    body = lease_body(
        one.options.namespace,
        name,
        holder="" if release else one.identity,
        seconds=one.options.duration,
        now=wall,
        before=seen,
        **metadata,
    )
    answer = send_to("POST", path, body) if seen is None else send_to("PUT", f"{path}/{name}", body)
    if answer.is_success:
        if (record := read_lease(answer.body)) is None:
            return ApiAnswer(NO_ANSWER, text="the API server's answer is no Lease")
        one.written(record, began, clock())
    return answer


@dataclass(frozen=True, slots=True)
class LeaseStatus:
    """holder: identity, '' = none, or not known yet."""

    is_leader: bool
    holder: str
    last_error: str


class Lease:
    """Tries to lead from `start` to `stop`. A replica that has lost the Lease tries again.

    may_lead : asked before every try; one that must not gives the Lease back
    api   : see kube.client.kubernetes_client.api_client; not shared with what may use up its connections
    clock : seconds, monotonic; wall : unix seconds, only written
    """

    def __init__(
        self,
        api: client.ApiClient,
        options: LeaseOptions,
        *,
        identity: str = "",
        may_lead: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = running_time,
        wall: Callable[[], float] = time.time,
        rng: random.Random | None = None,
    ) -> None:
        self._api, self._options, self._may_lead = api, options, may_lead
        self._path = f"{leases_path(options.namespace)}/{options.name}"
        self.identity: Final = identity or our_identity()
        self._clock, self._wall, self._rng = clock, wall, rng or random.Random()
        self._election = Election(self.identity, options)
        self._leads = False  # as the log has it
        self._last_error, self._failures = "", 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = 10.0) -> None:
        """Write no more from now on, and give the Lease back: the next takes over at once."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def may_write(self) -> bool:
        """Return whether no other replica can have taken over. For any thread; a microsecond."""
        return not self._stopping.is_set() and self._election.leads(self._clock())

    def status(self) -> LeaseStatus:
        """For any thread."""
        seen = self._election.seen
        return LeaseStatus(
            self.may_write(),
            "" if seen is None else seen.holder,
            self._last_error,
        )

    def is_taken(self) -> bool:
        """Read the Lease: whether another replica has taken it. To be called after `stop`."""
        return self._look() and (seen := self._election.seen) is not None and seen.holder not in ("", self.identity)

    # In the thread

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._try()
            except Exception:
                logger.exception("cannot try to acquire the lease")
            self._log_change()
            self._stopping.wait(self._pause())
            self._log_change()
        self._log_change()
        try:
            self._release()
        except Exception:
            logger.exception("cannot release the lease")

    def _pause(self) -> float:
        """Leaders renew at a steady pace, candidates must not all come at the same moment; neither sleeps through the
        end of a Lease."""
        retry, now = self._options.retry_period, self._clock()
        if self._leads:
            return min(retry, self._election.left(now))
        retry *= 1.0 + _JITTER * self._rng.random()
        return min(retry, self._election.expires_in(now) or retry)

    def _log_change(self) -> None:
        leads = self.may_write()
        if leads == self._leads:
            return
        self._leads = leads
        fields = {
            "lease": f"{self._options.namespace}/{self._options.name}",
            "identity": self.identity,
            "why": self._last_error,
        }
        logger.log(
            logging.INFO if leads or self._stopping.is_set() else logging.WARNING,
            "this replica leads" if leads else "this replica does not lead any more",
            extra=fields,
        )

    def _try(self) -> None:
        """Renew or take the Lease, if that does no harm."""
        if not self._may_lead():
            self._release()
            return
        if self._election.leads(self._clock()) and self._write().status not in (_CONFLICT, _MISSING):
            return
        if not self._look():
            return
        if self._election.may_take(self._clock()):
            self._write()
        else:
            self._election.step_down()

    def _look(self) -> bool:
        """Read it. Whether that was possible."""
        answer = self._send("GET", self._path, None)
        if answer.status == _MISSING:
            self._election.observe(None, self._clock())
            return True
        record = read_lease(answer.body) if answer.status == 200 else None
        if record is None:
            self._fail(answer)
            return False
        self._election.observe(record, self._clock())
        return True

    def _write(self, *, release: bool = False) -> ApiAnswer:
        answer = write_lease(self._send, self._options.name, self._election, self._clock, self._wall(), release=release)
        if answer.is_success:
            self._failures, self._last_error = 0, ""
        elif answer.status != _CONFLICT:
            # A conflict says that another was faster; after our own unanswered renewal also that we were.
            self._fail(answer)
        return answer

    def _release(self) -> None:
        self._election.step_down()
        seen = self._election.seen
        if seen is None or seen.holder != self.identity:
            return
        if self._write(release=True).status == _CONFLICT and self._look() and self._is_ours(self._election.seen):
            self._write(release=True)

    def _is_ours(self, record: LeaseRecord | None) -> bool:
        return record is not None and record.holder == self.identity

    def _send(self, method: str, path: str, body: bytes | None) -> ApiAnswer:
        longest = self._options.renew_deadline / 2
        left = self._election.left(self._clock())
        return send(self._api, method, path, body, seconds=max(0.1, min(longest, left)) if left else longest)

    def _fail(self, answer: ApiAnswer) -> None:
        self._failures += 1
        self._last_error = answer.text or "the API server's answer is no Lease"
        if self._failures & (self._failures - 1) == 0:  # the 1st, 2nd, 4th, 8th, ... in a row
            logger.warning(
                "the lease cannot be read or written: get, create and update on leases.coordination.k8s.io are needed",
                extra={"lease": f"{self._options.namespace}/{self._options.name}", "why": self._last_error},
            )
