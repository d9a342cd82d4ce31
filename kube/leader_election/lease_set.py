"""Leases that carry one label: one request reads all of them; each is taken, renewed and released separately.

What is decided about each is in election.py. One thread reads, takes and releases. Another one may renew, so that
nothing that the first waits for lets a Lease expire. `holds` and `left` are for any thread.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from kubernetes import client

from kube.client.api_answer import ApiAnswer
from kube.client.kubernetes_client import send
from kube.leader_election.election import Election
from kube.leader_election.lease import leases_path, running_time, write_lease
from kube.leader_election.lease_options import LeaseOptions
from kube.leader_election.record import LeaseRecord, read_leases

_LONGEST_NAME: Final = 63
"""Of the value of a label."""


class LeaseSet:
    """The Leases of one group in the namespace of `options`.

    label    : key and value that all of them carry
    identity : of this replica, of no other
    clock    : seconds, monotonic; wall: unix seconds, only written
    """

    def __init__(
        self,
        api: client.ApiClient,
        options: LeaseOptions,
        *,
        label: tuple[str, str],
        identity: str,
        clock: Callable[[], float] = running_time,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._api, self._options, self.identity = api, options, identity
        self._path = leases_path(options.namespace)
        self._key, self._value = label[0], label[1][:_LONGEST_NAME]
        self._clock, self._wall = clock, wall
        self._elections: dict[str, Election] = {}
        self._written_at: dict[str, float] = {}
        self._lock = threading.Lock()  # of `_locks`, each of which is held while its Lease is written
        self._locks: dict[str, threading.Lock] = {}
        self.last_error = ""

    def read(self) -> bool:
        """Read all Leases of the group, consistently; returns whether that was possible."""
        began = self._clock()
        query = f"labelSelector={self._key}%3D{self._value}".replace("/", "%2F")
        answer = self._send("GET", f"{self._path}?{query}", None)
        records = read_leases(answer.body) if answer.is_success else None
        if records is None:
            self.last_error = answer.text or "the API server's answer is no list of Leases"
            return False
        now = self._clock()
        for name in {*records, *self._elections}:
            if self._written_at.get(name, -math.inf) < began:  # or what was read may be older than what we wrote
                self._election(name).observe(records.get(name), now)
        self.last_error = ""
        return True

    def records(self) -> Mapping[str, LeaseRecord]:
        """Return the Leases as they were last seen, by name."""
        return {name: one.seen for name, one in [*self._elections.items()] if one.seen is not None}

    def live_holder(self, name: str) -> str:
        """Return who holds a Lease that has not expired; '' = it is free."""
        one = self._elections.get(name)
        if one is None or one.seen is None:
            return ""
        if one.seen.holder == self.identity:
            return self.identity if one.leads(self._clock()) else ""
        return "" if one.may_take(self._clock()) else one.seen.holder

    def holds(self, name: str) -> bool:
        """Return whether no other replica can have taken this Lease. For any thread; a microsecond."""
        one = self._elections.get(name)
        return one is not None and one.leads(self._clock())

    def left(self, name: str) -> float:
        """Return the seconds for which this replica may act by a Lease, unless it is renewed; 0 = it may not now."""
        one = self._elections.get(name)
        return 0.0 if one is None else one.left(self._clock())

    def take(self, name: str, annotations: Mapping[str, str]) -> bool:
        """Take a Lease that is free; returns whether it is held then."""
        with self._lock_of(name):
            one = self._election(name)
            if not one.may_take(self._clock()):
                return False
            return self._put(name, one, annotations) and one.leads(self._clock())

    def renew(self, name: str, annotations: Mapping[str, str]) -> None:
        """Renew a Lease that this replica still holds; a lost or released one stays as it is."""
        with self._lock_of(name):
            one = self._elections.get(name)
            if one is not None and one.leads(self._clock()):
                self._put(name, one, annotations)

    def release(self, name: str) -> None:
        """Act by it no more, from this call on, and let the next one take it at once."""
        one = self._elections.get(name)
        if one is None:
            return
        one.step_down()
        with self._lock_of(name):
            one.step_down()  # a renewal may have been under way
            if one.seen is not None and one.seen.holder == self.identity:
                self._put(name, one, {}, release=True)

    def step_down(self, name: str) -> None:
        """Act by it no more, without a word to the API server."""
        if (one := self._elections.get(name)) is not None:
            one.step_down()

    def delete(self, name: str) -> None:
        """Delete a Lease that expired as it was last seen, or our own."""
        one = self._elections.get(name)
        if one is None or one.seen is None or not one.may_take(self._clock()):
            return
        one.step_down()
        precondition = b'{"preconditions":{"resourceVersion":"%s"}}' % one.seen.version.encode()
        self._send("DELETE", f"{self._path}/{name}", precondition)

    # Inside

    def _election(self, name: str) -> Election:
        if (known := self._elections.get(name)) is None:
            known = self._elections[name] = Election(self.identity, self._options)
        return known

    def _lock_of(self, name: str) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(name, threading.Lock())

    def _put(self, name: str, one: Election, annotations: Mapping[str, str], *, release: bool = False) -> bool:
        metadata = {"labels": {self._key: self._value}, "annotations": annotations}
        answer = write_lease(self._send, name, one, self._clock, self._wall(), release=release, **metadata)
        if answer.is_success:
            self._written_at[name] = self._clock()
        else:
            self.last_error = answer.text
        return answer.is_success

    def _send(self, method: str, path: str, body: bytes | None) -> ApiAnswer:
        return send(self._api, method, path, body, seconds=self._options.renew_deadline / 4)
