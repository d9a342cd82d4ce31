"""Which server is asked, and how it is reached: one that the user names, or one that was found in the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from requests.adapters import BaseAdapter

from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.prometheus_settings import Cloud, PrometheusOptions

_TENANT = "x-scope-orgid"
"""The header of Mimir and Cortex: a name, no secret."""


@dataclass(frozen=True, slots=True)
class MetricsStore:
    """A server with the Prometheus API.

    url       : what comes before /api/v1
    transport : sends the requests; None = they go to the URL as the settings say
    is_named  : by the user. Credentials of the settings are not sent to a store that was only found: any user who may
                create Services could ask for them
    own       : options in place of those of the settings, by name: a store that knows this process by another identity
    address   : for pods of the cluster, if its Service was found
    cluster   : labels of this cluster in a store of several, in addition to those of the settings
    """

    url: str
    transport: BaseAdapter | None = None
    is_named: bool = True
    own: Mapping[str, Any] = field(default_factory=dict)
    address: str = ""
    cluster: Mapping[str, str] = field(default_factory=dict)

    def connect(self, options: PrometheusOptions) -> PrometheusConnection:
        """A connection as the settings say; nothing is sent yet. Raises InputError."""
        shown = options if self.is_named else without_credentials(options)
        chosen = shown.replace(cluster={**self.cluster, **options.cluster}, **self.own)
        return PrometheusConnection(self.url, chosen, transport=self.transport)


def without_credentials(options: PrometheusOptions) -> PrometheusOptions:
    """The same without what shows who we are."""
    tenant = {name: value for name, value in options.headers.items() if name.lower() == _TENANT}
    nothing = {"bearer_token_file": None, "username": "", "password_file": None, "cert_file": None, "key_file": None}
    return options.replace(cloud=Cloud.OFF, headers=tenant, **nothing)
