"""Who kube-apiserver's aggregation layer is, as it says in a ConfigMap: its authority and the names it goes by.

https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/#authentication-flow
Needs get on the ConfigMap extension-apiserver-authentication in kube-system, which the Role
extension-apiserver-authentication-reader grants.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec
import urllib3
from kubernetes import client

from base.errors import ForecastError, InputError
from base.periodic_task import PeriodicTask
from kube.client.kubernetes_client import send

logger = logging.getLogger(__name__)

_SECONDS: Final = 10.0
_EVERY_SECONDS: Final = 60.0
_AUTHORITY: Final = "requestheader-client-ca-file"
_NAMES: Final = "requestheader-allowed-names"


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """authority: PEM file, kept up to date; names: common names, () = any that it signed"""

    authority: Path
    names: tuple[str, ...]


@contextmanager
def follow_front_proxy(api: client.ApiClient, config_map: str) -> Iterator[FrontProxy]:
    """Read the ConfigMap, NAMESPACE/NAME, and follow its authority while the context lasts; new names take a restart.

    Raises InputError where there is none, or it cannot be read.
    """
    authority, names = _read(api, config_map)
    with tempfile.TemporaryDirectory(prefix="forecast-front-proxy-") as directory:
        path = Path(directory) / "authority.pem"
        path.write_text(authority, encoding="utf-8")

        def refresh() -> None:
            try:
                now, _ = _read(api, config_map)
            except ForecastError as error:
                logger.warning("the authority of the aggregation layer stays as it was: %s", error)
                return
            if now != path.read_text(encoding="utf-8"):
                unfinished = path.with_suffix(".new")
                unfinished.write_text(now, encoding="utf-8")
                unfinished.replace(path)

        every = PeriodicTask("front-proxy", _EVERY_SECONDS, refresh)
        every.start()
        try:
            yield FrontProxy(path, names)
        finally:
            every.stop()


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


def _read(api: client.ApiClient, config_map: str) -> tuple[str, tuple[str, ...]]:
    namespace, _, name = config_map.partition("/")
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps/{quote(name, safe='')}"
    try:
        answer = send(api, "GET", path, seconds=_SECONDS)
        found = msgspec.json.decode(answer.data, type=_ConfigMap) if answer.status == 200 else None
        names: Any = msgspec.json.decode(found.data.get(_NAMES, "[]")) if found is not None else []
    except (urllib3.exceptions.HTTPError, OSError, msgspec.DecodeError) as error:
        raise InputError(f"ConfigMap {config_map} cannot be read: {' '.join(str(error).split())[:300]}") from error
    if found is None:
        raise InputError(
            f"ConfigMap {config_map} was not read (status {answer.status}): bind the Role "
            "extension-apiserver-authentication-reader of kube-system, or set autoscale.external_metrics.client_ca and "
            "client_config_map: ''"
        )
    if not found.data.get(_AUTHORITY):
        raise InputError(
            f"ConfigMap {config_map} has no {_AUTHORITY}: this cluster has no aggregation layer "
            "(kube-apiserver --requestheader-client-ca-file)"
        )
    return found.data[_AUTHORITY], tuple(str(one) for one in names)
