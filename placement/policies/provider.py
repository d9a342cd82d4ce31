"""The policies in effect, and what became of the last document. A document takes effect as a whole or not at all;
nothing takes the last good one away.

    source (file, ConfigMap) --offer, refuse, gone--> PolicyProvider <--choose, scoring-- components that place pods

Readers meet one attribute that is swapped, and no lock.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from base.errors import InputError
from kube.objects.objects import PodInfo
from placement.gate_exemptions import AdviceMode
from placement.policies.compiling import PolicyDefaults, compile_document, settings_policy
from placement.policies.document import PolicyDocument, read_document
from placement.policies.policy import Choosable, ChosenPolicy
from placement.policies.policy_set import PolicyChoice, PolicySet
from placement.policies.rules import LabelsOf, unread_namespaces
from scorer.scoring_policy import ChosenScoring

logger = logging.getLogger(__name__)

UnknownListener = Callable[[PodInfo, str, Collection[str]], None]
"""Called once per pod with the pod, the unknown name, and the names of all policies. It must not wait."""

_MOST_COUNTED: Final = 1_000

_MOST_REMEMBERED: Final = 10_000
"""Pods whose annotation names no policy."""


class OutcomeKind(Enum):
    """The value is the label of the metric."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class PolicyOutcome:
    """message: one sentence for people."""

    kind: OutcomeKind
    message: str


@dataclass(frozen=True, slots=True)
class PolicyRefusal:
    """Why what is there now is not in effect. at: unix seconds when that was first seen."""

    message: str
    at: float


@dataclass(frozen=True, slots=True)
class PolicyStatus:
    """As it is now.

    source         : where the document is, for people
    version, since : of the document in effect, and unix seconds from when on; None = there has been none
    policies       : names of the policies in effect, that of the settings included
    refusal        : None = the document that was seen last is in effect
    unknown        : pods whose annotation names no policy, so far
    """

    source: str
    version: str | None
    since: float | None
    policies: tuple[str, ...]
    n_rules: int
    default: str | None
    refusal: PolicyRefusal | None
    outcomes: dict[OutcomeKind, int]
    unknown: int


class UnknownNames:
    """Pods whose annotation names no policy: each counts once, however often it is asked about. For any thread."""

    def __init__(self, most: int = _MOST_REMEMBERED) -> None:
        self._most, self._seen = most, dict[tuple[str, int], None]()
        self._lock, self._total = threading.Lock(), 0

    def note(self, uid: str, name: str) -> bool:
        """Return whether the pod, by UID, names this policy for the first time."""
        key = uid, hash(name)  # an annotation may be 256 KiB long
        if key in self._seen:
            return False
        with self._lock:
            if key in self._seen:
                return False
            if len(self._seen) >= self._most:
                del self._seen[next(iter(self._seen))]
            self._seen[key] = None
            self._total += 1
        return True

    @property
    def total(self) -> int:
        """Return how many pods there have been."""
        return self._total


class PolicyProvider:
    """Implements placement.policies.policy.Policies and scorer.scoring_policy.ScoringPolicies. For any thread."""

    def __init__(self, defaults: PolicyDefaults, *, source: str = "", clock: Callable[[], float] = time.time) -> None:
        """Starts with the policy of the settings alone.

        source : where the document is, for people
        clock  : unix seconds
        Raises InputError where the settings name what there is not.
        """
        self._defaults, self._source, self._clock = defaults, source, clock
        self._set = PolicySet(settings_policy(defaults))
        self._document: PolicyDocument | None = None
        self._labels_of: LabelsOf = _not_known
        self._unknown, self._on_unknown = UnknownNames(), list[UnknownListener]()
        self._sources = threading.Lock()  # one word of a source after the other; to compile takes a while
        self._lock = threading.Lock()  # of what they change, for a moment; pods are counted under another
        self._listeners_failed = False
        self._version: str | None = None
        self._since: float | None = None
        self._refusal: PolicyRefusal | None = None
        self._offered = b""
        self._outcomes = dict.fromkeys(OutcomeKind, 0)
        self._pods, self._pods_lock = Counter[str](), threading.Lock()

    def read_labels_with(self, labels_of: LabelsOf) -> None:
        """Whom to ask for the labels of namespaces; until then rules with a namespace_selector do not hold."""
        self._labels_of = labels_of

    def tell_unknown(self, listener: UnknownListener) -> None:
        """Notify the listener of pods whose annotation names an unknown policy."""
        self._on_unknown.append(listener)

    # For components that place pods

    def choose(self, pod: PodInfo) -> ChosenPolicy:
        return self._choice(pod).chosen

    def scoring(self, pod: PodInfo) -> ChosenScoring:
        return self._choice(pod).scoring

    def advice(self, pod: Choosable) -> AdviceMode | None:
        """Return what the policy of a new pod says of advice; None = nothing. Its annotation may name no policy, which
        components that place it report."""
        return self._set.choose(pod, self._labels_of).policy.advice

    def count(self, policy: str) -> None:
        """A pod was placed by the policy of this name."""
        with self._pods_lock:
            if policy not in self._pods and len(self._pods) >= _MOST_COUNTED:  # policies come and go
                self._pods.clear()
            self._pods[policy] += 1

    def _choice(self, pod: PodInfo) -> PolicyChoice:
        policies = self._set
        choice = policies.choice(pod, self._labels_of)
        if choice.unknown and self._unknown.note(pod.uid, choice.unknown):
            self._tell_unknown(pod, choice.unknown, policies.policies.keys())
        return choice

    def _tell_unknown(self, pod: PodInfo, name: str, known: Collection[str]) -> None:
        """Whatever listeners do, the pod is placed."""
        for listener in self._on_unknown:
            try:
                listener(pod, name, known)
            except Exception:
                if not self._listeners_failed:  # once: there may be thousands of pods
                    self._listeners_failed = True
                    logger.exception("a pod that names no policy could not be reported")

    # Sources

    def offer(self, text: str, version: str = "") -> PolicyOutcome | None:
        """A document. It takes effect or is refused; None = it is what was offered before.

        version : of the document, for people; '' = the beginning of its digest
        """
        digest = hashlib.sha256(text.encode(errors="replace")).digest()
        with self._sources:
            if digest == self._offered:
                return None
            try:
                document = read_document(text)
                compiled = compile_document(document, self._defaults)
            except InputError as error:
                return self._refuse(str(error), digest)
            except Exception as error:  # any text may be in the document: what is in effect stays
                logger.exception("a policy document could not be read")
                return self._refuse(f"{type(error).__name__}: {error}"[:300], digest)
            return self._accept(document, compiled, version or digest.hex()[:12], digest)

    def refuse(self, reason: str) -> PolicyOutcome | None:
        """There is a document that cannot be read; None = for the same reason as before."""
        with self._sources:
            return self._refuse(reason, b"")

    def still_waiting(self, reason: str) -> None:
        """Nothing has been heard of the document so far, and why; passed over if something has been by now."""
        with self._lock:
            if self._version is None and self._refusal is None:
                self._note_refusal(reason, OutcomeKind.REFUSED)

    def gone(self) -> PolicyOutcome | None:
        """There is no document; None = as before."""
        with self._sources:
            return self._refuse(f"there is no {self._source or 'policy document'}", b"", OutcomeKind.GONE)

    def _accept(self, document: PolicyDocument, compiled: PolicySet, version: str, digest: bytes) -> PolicyOutcome:
        with self._lock:
            self._set, self._document = compiled, document
            self._version, self._since, self._refusal, self._offered = version, self._clock(), None, digest
            n_policies = len(compiled.policies) - 1
            message = f"{n_policies} policies and {len(compiled.rules)} rules are in effect, version {version}"
            logger.info("policies are in effect", extra={"source": self._source, "version": version})
            return self._told(PolicyOutcome(OutcomeKind.ACCEPTED, message))

    def _refuse(self, reason: str, offered: bytes, kind: OutcomeKind = OutcomeKind.REFUSED) -> PolicyOutcome | None:
        """None = this very text was refused for this very reason before; offered: its digest, b'' = there is none."""
        with self._lock:
            before, self._offered = self._offered, offered
            if before == offered and self._refusal is not None and self._refusal.message == reason:
                return None
            return self._note_refusal(reason, kind)

    def _note_refusal(self, reason: str, kind: OutcomeKind) -> PolicyOutcome:
        """Under the lock."""
        self._refusal = PolicyRefusal(reason, self._clock())
        stays = (
            "the settings apply to all pods" if self._version is None else f"version {self._version} stays in effect"
        )
        logger.warning("policies refused", extra={"source": self._source, "reason": reason, "stays": stays})
        return self._told(PolicyOutcome(kind, f"{reason}; {stays}"))

    def _told(self, outcome: PolicyOutcome) -> PolicyOutcome:
        self._outcomes[outcome.kind] += 1
        return outcome

    # For status and metrics

    @property
    def policies(self) -> PolicySet:
        return self._set

    @property
    def document(self) -> PolicyDocument | None:
        """The document in effect; None = the settings apply to all pods."""
        return self._document

    def labels_of(self, namespace: str) -> Mapping[str, str] | None:
        """Labels of a namespace; None = not known."""
        return self._labels_of(namespace)

    def unread(self, namespaces: Iterable[str]) -> tuple[str, ...]:
        """Return those of the namespaces whose labels a rule asks for but which are unknown: it does not hold there."""
        return unread_namespaces(self._set.rules, namespaces, self._labels_of)

    @property
    def pods(self) -> Mapping[str, int]:
        """Pods counted so far, by policy."""
        with self._pods_lock:
            return dict(self._pods)

    @property
    def status(self) -> PolicyStatus:
        """How it is going."""
        with self._lock:
            return PolicyStatus(
                source=self._source,
                version=self._version,
                since=self._since,
                policies=tuple(self._set.policies),
                n_rules=len(self._set.rules),
                default=self._set.default,
                refusal=self._refusal,
                outcomes=dict(self._outcomes),
                unknown=self._unknown.total,
            )


def _not_known(namespace: str) -> Mapping[str, str] | None:
    return None
