"""Questions to an API server about the bearer of a token, and how its answers are read. Pure but for `ask`.

    TokenReview           authentication.k8s.io/v1: whose token is this
    SubjectAccessReview   authorization.k8s.io/v1: may they send this verb to this path (nonResourceAttributes)

As the metrics filter of controller-runtime (pkg/metrics/filters) and kube-rbac-proxy do. The service needs the rights
of the ClusterRole system:auth-delegator.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec
from kubernetes.client import ApiClient

from base.errors import ForecastError, InputError
from kube.client.kubernetes_client import send

TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

Ask = Callable[[str, bytes], tuple[int, bytes]]
"""(path, body to POST) -> (status, body). Raises ReviewFailed where no answer comes."""


class ReviewFailed(ForecastError):
    """The API server does not say who the client is or what it may do: nothing is known, and no client gets in."""


@dataclass(frozen=True, slots=True)
class User:
    """Who a token belongs to, as the API server says."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


def token_review(token: str, audiences: Collection[str] = ()) -> bytes:
    """audiences: the token must be meant for one of them; none = for the API server itself."""
    spec = {"token": token} | ({"audiences": sorted(audiences)} if audiences else {})
    return _review("authentication.k8s.io/v1", "TokenReview", spec)


def user_of(status: int, answer: bytes, audiences: Collection[str] = ()) -> User | None:
    """Return the user of the token; None = it belongs to no user. Raises ReviewFailed."""
    found = _status(status, answer, _TokenReview, "tokenreviews.authentication.k8s.io").status
    if not found.authenticated or not found.user.username:
        return None
    # An authenticator that knows no audiences leaves them out: then the token is the API server's, not ours.
    if audiences and not set(audiences) & set(found.audiences or ()):
        return None
    user = found.user
    extra = tuple(sorted((key, tuple(values)) for key, values in (user.extra or {}).items()))
    return User(user.username, user.uid, tuple(user.groups or ()), extra)


def access_review(user: User, verb: str, path: str) -> bytes:
    """verb: an HTTP method in lower case, as RBAC has them for nonResourceURLs."""
    spec = {
        "user": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra},
        "nonResourceAttributes": {"verb": verb, "path": path},
    }
    return _review("authorization.k8s.io/v1", "SubjectAccessReview", spec)


def is_allowed(status: int, answer: bytes) -> bool:
    """Whether they may. Raises ReviewFailed."""
    found = _status(status, answer, _AccessReview, "subjectaccessreviews.authorization.k8s.io").status
    return found.allowed and not found.denied


def api_server_ask(api: ApiClient, seconds: float) -> Ask:
    """Return a function that asks by this client. seconds: timeout of an answer."""

    def ask(path: str, body: bytes) -> tuple[int, bytes]:
        answer = send(api, "POST", path, body, seconds=seconds)
        if answer.why_none:
            # Not the error's text: what a library writes into it is not ours to vouch for, and a token is in the body.
            raise ReviewFailed("the API server does not answer")
        return answer.status, answer.body

    return ask


def check_delegation(ask: Ask) -> None:
    """Check, with an invalid token, that this process may ask for reviews. Raises InputError if not, ReviewFailed."""
    try:
        user_of(*ask(TOKEN_REVIEWS, token_review("not-a-token")))
        is_allowed(*ask(ACCESS_REVIEWS, access_review(User("system:anonymous"), "get", "/healthz")))
    except _NotDelegated as error:
        raise InputError(str(error)) from error


class _NotDelegated(ReviewFailed):
    pass


class _User(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _Authenticated(msgspec.Struct):
    authenticated: bool = False
    user: _User = msgspec.field(default_factory=_User)
    audiences: list[str] | None = None


class _TokenReview(msgspec.Struct):
    status: _Authenticated


class _Authorized(msgspec.Struct):
    allowed: bool = False
    denied: bool = False


class _AccessReview(msgspec.Struct):
    status: _Authorized


def _review(version: str, kind: str, spec: Mapping[str, object]) -> bytes:
    return json.dumps({"apiVersion": version, "kind": kind, "spec": spec}).encode()


Review = TypeVar("Review", _TokenReview, _AccessReview)


def _status(status: int, answer: bytes, review: type[Review], resource: str) -> Review:
    if status in (401, 403):
        raise _NotDelegated(
            f"the API server does not let this process create {resource} ({status}): bind its service account to the "
            "ClusterRole system:auth-delegator, or leave kubernetes_auth out"
        )
    if status not in (200, 201):
        raise ReviewFailed(f"the API server answered {status} to a review")
    try:
        return msgspec.json.decode(answer, type=review)
    except msgspec.DecodeError as error:
        raise ReviewFailed("the API server's answer to a review cannot be read") from error
