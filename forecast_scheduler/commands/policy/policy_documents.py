"""Documents of policies to be checked or compared with, read from a file or a ConfigMap and compiled; and which policy
of one places a pod.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from base.errors import InputError
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import policy_defaults
from forecast_scheduler.settings.policy_place import namespace_and_name, split_place
from kube.client.cluster_access import ClusterAccess
from kube.objects.objects import PodInfo
from placement.policies.compiling import PolicyDefaults, compile_document
from placement.policies.document import PolicyDocument, PolicySpec, read_document
from placement.policies.document_reading import document_text, read_document_file
from placement.policies.policy import ChosenPolicy, Policy
from placement.policies.policy_set import PolicySet

LabelsOf = Callable[[str], Mapping[str, str] | None]
Choose = Callable[[PodInfo, LabelsOf], ChosenPolicy]


@dataclass(frozen=True, slots=True)
class ReadPolicies:
    """where: it was read, for messages; text: of the document."""

    where: str
    text: str
    document: PolicyDocument
    policies: PolicySet


def read_file(path: Path, settings: Settings, defaults: PolicyDefaults | None = None) -> ReadPolicies:
    """A document in a file. Raises InputError that names file and place.

    defaults : what policies leave out; None = as the settings of the extender say
    """
    return _read(str(path), _text_of(path), defaults or policy_defaults(settings))


def read_in_place(
    where: str | None, settings: Settings, access: ClusterAccess, defaults: PolicyDefaults | None = None
) -> ReadPolicies:
    """The policies to compare with: of a file, or configmap:NAMESPACE/NAME; None = none but the settings'."""
    defaults = defaults or policy_defaults(settings)
    if where is None:
        return _compiled("the settings", "", PolicyDocument(), defaults)
    file, config_map = split_place(where)
    if config_map is None:
        return read_file(file or Path(where), settings, defaults)
    return _read(where, _text_of_config_map(where, config_map, access), defaults)


def in_place_for(file: Path, settings: Settings, *, has_server: bool) -> str | None:
    """The same, to hold a file against: a file that is itself in place is not compared with itself."""
    where = in_place(settings, has_server=has_server)
    with suppress(OSError):  # a missing file is reported by its reader
        if where is not None and file.samefile(where):
            return None
    return where


def in_place(settings: Settings, *, has_server: bool) -> str | None:
    """Where the settings say that the policies are; None = nowhere, or a ConfigMap of a server that is not asked."""
    return None if settings.policies.config_map is not None and not has_server else settings.policies.place


def alike(before: ReadPolicies, after: ReadPolicies) -> Callable[[Policy, Policy], bool]:
    """Whether two policies, one of each set, say the same of how pods are placed, whatever their names."""
    return lambda old, new: _what_matters(before, old) == _what_matters(after, new)


def _what_matters(read: ReadPolicies, policy: Policy) -> Any:
    spec = read.document.policies.get(policy.name, PolicySpec())  # the settings' policy leaves everything out
    return _without_empty(spec.model_dump(exclude={"description"}, exclude_none=True))


def _without_empty(value: Any) -> Any:
    """`scores: {}` says no more than no scores at all; an empty list of filters does."""
    if not isinstance(value, dict):
        return value
    inner = {key: _without_empty(of) for key, of in value.items()}
    return {key: of for key, of in inner.items() if of != {}}


def _text_of(path: Path) -> str:
    try:
        return document_text(read_document_file(path, waits=True))
    except (OSError, ValueError, InputError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"policies {path} cannot be read: {reason or error}") from error


def _text_of_config_map(where: str, config_map: str, access: ClusterAccess) -> str:
    """As it is there now."""
    try:
        namespace, name = namespace_and_name(config_map)
    except ValueError as error:
        raise InputError(f"{where} names no ConfigMap: {error}") from error

    from placement.policies.policy_config_map import policy_text, read_config_map

    try:
        api = access.client()
    except InputError as error:
        if access.is_named:
            raise
        raise InputError(
            f"{where} is asked of an API server, and this process runs in no cluster: pass --kubeconfig FILE, or the "
            "policies in place as a file"
        ) from error
    return policy_text(read_config_map(api, namespace, name))


def _read(where: str, text: str, defaults: PolicyDefaults) -> ReadPolicies:
    try:
        return _compiled(where, text, read_document(text), defaults)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _compiled(where: str, text: str, document: PolicyDocument, defaults: PolicyDefaults) -> ReadPolicies:
    return ReadPolicies(where, text, document, compile_document(document, defaults))


def open_choice(where: str | None, settings: Settings, access: ClusterAccess, *, has_server: bool) -> Choose | None:
    """Return the function that chooses a pod's policy; None = no policies are named, and the settings place all pods.

    where      : a file, or configmap:NAMESPACE/NAME; None = as in the settings
    has_server : whether to look for the settings' ConfigMap

    Raises InputError for a document that cannot be read or would not take effect.
    """
    if where is None:
        where = in_place(settings, has_server=has_server)
    return None if where is None else read_in_place(where, settings, access).policies.choose
