"""Predictors of half-hour curves behind one contract (`base.py`), one per file, found by looking into this folder."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from forecast.predictors.base import Predictor

__all__ = ["Predictor", "discover"]


@cache
def discover() -> dict[str, type[Predictor]]:
    """All predictors by name, in alphabetical order."""
    found: dict[str, type[Predictor]] = {}
    for module_info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        for value in vars(module).values():
            if (
                isinstance(value, type)
                and issubclass(value, Predictor)
                and value is not Predictor
                and value.__module__ == module.__name__
            ):
                found[value.name] = value
    return dict(sorted(found.items()))
