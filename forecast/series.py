"""The (service, resource) pairs a fit works on, in one row each, and the way back to the full tables."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from base.arrays import AnyFloats, Floats, Floats32, Ints
from forecast.service_key import ServiceKey


@dataclass(frozen=True, slots=True)
class Series:
    """The (service, resource) pairs that have any data, and the way back to the full tables."""

    service: Ints
    resource: Ints
    shape: tuple[int, int]

    @classmethod
    def of(cls, usage: AnyFloats) -> Series:
        service, resource = np.nonzero(np.isfinite(usage).any(axis=(2, 3)))
        return cls(service, resource, (usage.shape[0], usage.shape[1]))

    def flatten(self, table: AnyFloats) -> Floats32:
        """(n_services, n_resources, ...) -> (n_series, ...)"""
        flat = np.empty((len(self.service), *table.shape[2:]), dtype=np.float32)
        for resource in range(self.shape[1]):  # one at a time, as the table may be of float64
            rows = self.resource == resource
            flat[rows] = table[self.service[rows], resource]
        return flat

    def unflatten(self, values: AnyFloats) -> Floats:
        """(n_series, ...) -> (n_services, n_resources, ...), NaN where there is no series."""
        table = np.full((*self.shape, *values.shape[1:]), np.nan)
        table[self.service, self.resource] = values
        return table

    def identities(self, services: tuple[ServiceKey, ...]) -> Ints:
        """A number for each series that neither other services nor the order of the list change: (n_series,)."""
        of_service = np.array([zlib.crc32(str(service).encode()) for service in services], dtype=np.int64)
        return np.asarray(of_service[self.service] + self.resource, dtype=np.int64)
