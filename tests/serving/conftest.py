"""The scorer's application stands for every service here."""

from __future__ import annotations
