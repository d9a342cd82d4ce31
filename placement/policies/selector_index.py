"""Which of many label selectors match a set of labels, without trying all of them.

Sets of selectors are whole numbers, a bit for each. A selector is filed under one thing that it needs: the label=value
pairs, or the label, that the fewest others need. So labels find few that may match; from these are taken those that
forbid what is there, and what else they need is looked up once per label, for all of them together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kube.objects.constraints import LabelSelector, Operator, Requirement


@dataclass(slots=True)
class _Asked:
    """What one selector says of one label. needed: one of these, None = any value will do; forbidden likewise."""

    is_needed: bool = False
    needed: frozenset[str] | None = None
    is_forbidden: bool = False
    forbidden: frozenset[str] = frozenset()

    @property
    def is_possible(self) -> bool:
        return not (self.is_needed and (self.is_forbidden or self.needed == frozenset()))


@dataclass(slots=True)
class _OfKey:
    """Sets of selectors by what they say of a label: of its values, and of any.

    filed   : may match where this is there
    against : do not match where this is there
    needing : need the label and are filed elsewhere; met: those of them that a value is good enough for
    """

    filed: dict[str, int] = field(default_factory=dict)
    filed_any: int = 0
    against: dict[str, int] = field(default_factory=dict)
    against_any: int = 0
    needing: int = 0
    met: dict[str, int] = field(default_factory=dict)
    met_any: int = 0


class SelectorIndex:
    """Immutable once made. Selectors are known by their positions: position 3 is bit 1 << 3 of a set."""

    def __init__(self, selectors: Sequence[LabelSelector | None]) -> None:
        """selectors: None matches everything, as an empty one does. Gt and Lt are for nodes: they match nothing."""
        self._keys: dict[str, _OfKey] = {}
        self._unfiled = 0  # needs no label
        self._elsewhere: list[tuple[str, ...]] = [()] * len(selectors)  # labels needed besides the one filed under
        self._has_elsewhere = 0
        asked = [_asked(() if one is None else one.requirements) for one in selectors]
        shared = Counter(pair for of in asked if of is not None for pair in _pairs(of))
        for position, of in enumerate(asked):
            if of is not None:
                self._file(position, of, shared)

    def first(self, labels: Mapping[str, str], among: int) -> int | None:
        """Position of the first in the set `among` that matches; None = none does."""
        maybe = self._maybe(labels) & among
        while maybe:
            lowest = maybe & -maybe
            position = lowest.bit_length() - 1
            for key in self._elsewhere[position]:
                maybe &= self._meeting(key, labels)
                if not maybe & lowest:
                    break
            else:
                return position
        return None

    def matching(self, labels: Mapping[str, str]) -> int:
        """The set of all that match."""
        maybe = self._maybe(labels)
        looked_at: set[str] = set()
        open_ones = maybe & self._has_elsewhere
        while open_ones:
            lowest = open_ones & -open_ones
            for key in self._elsewhere[lowest.bit_length() - 1]:
                if key not in looked_at:
                    looked_at.add(key)
                    maybe &= self._meeting(key, labels)
            open_ones &= maybe & ~lowest
        return maybe

    def _maybe(self, labels: Mapping[str, str]) -> int:
        """Those found under what is there, without those that forbid it."""
        found, out, keys = self._unfiled, 0, self._keys
        # A pod may have thousands of labels, or one, and there may be thousands of labels asked for, or one.
        for key in labels if len(labels) < len(keys) else keys:
            of = keys.get(key)
            if of is None or key not in labels:
                continue
            value = labels[key]
            found |= of.filed.get(value, 0) | of.filed_any
            out |= of.against.get(value, 0) | of.against_any
        return found & ~out

    def _meeting(self, key: str, labels: Mapping[str, str]) -> int:
        """All but those that need the label and find it missing or wrong."""
        of = self._keys[key]
        value = labels.get(key)
        return ~of.needing if value is None else ~of.needing | of.met_any | of.met.get(value, 0)

    def _file(self, position: int, asked: Mapping[str, _Asked], shared: Mapping[tuple[str, str | None], int]) -> None:
        bit = 1 << position
        under = _rarest(asked, shared)
        if under is None:
            self._unfiled |= bit
        self._elsewhere[position] = tuple(key for key, one in asked.items() if one.is_needed and key != under)
        if self._elsewhere[position]:
            self._has_elsewhere |= bit
        for key, one in asked.items():
            of = self._keys.setdefault(key, _OfKey())
            if one.is_forbidden:
                of.against_any |= bit
            elif key == under and one.needed is None:
                of.filed_any |= bit
            elif key == under:
                _add(of.filed, one.needed or (), bit)
            elif one.is_needed:
                of.needing |= bit
                of.met_any |= bit if one.needed is None else 0
                _add(of.met, one.needed or (), bit)
            if not one.is_forbidden:
                _add(of.against, one.forbidden, bit)


def _asked(requirements: Sequence[Requirement]) -> dict[str, _Asked] | None:
    """What a selector says of each label; None = nothing can match it."""
    by_key: dict[str, _Asked] = {}
    for one in requirements:
        of = by_key.setdefault(one.key, _Asked())
        match one.operator:
            case Operator.IN:
                of.is_needed, values = True, frozenset(one.values)
                of.needed = values if of.needed is None else of.needed & values
            case Operator.NOT_IN:
                of.forbidden |= frozenset(one.values)
            case Operator.EXISTS:
                of.is_needed = True
            case Operator.DOES_NOT_EXIST:
                of.is_forbidden = True
            case Operator.GT | Operator.LT:
                return None
    for of in by_key.values():
        if of.needed is not None:
            of.needed, of.forbidden = of.needed - of.forbidden, frozenset()
    return by_key if all(of.is_possible for of in by_key.values()) else None


def _pairs(asked: Mapping[str, _Asked]) -> Iterator[tuple[str, str | None]]:
    """What is needed of each label: any value, or one of several."""
    for key, one in asked.items():
        if one.is_needed:
            for value in (None,) if one.needed is None else one.needed:
                yield key, value


def _rarest(asked: Mapping[str, _Asked], shared: Mapping[tuple[str, str | None], int]) -> str | None:
    """The label to file under: the one whose entries would be shortest, a value rather than any among equals."""
    lengths = [
        (max(shared[key, value] for value in one.needed or (None,)), one.needed is None, key)
        for key, one in asked.items()
        if one.is_needed
    ]
    return min(lengths)[2] if lengths else None


def _add(sets: dict[str, int], values: Sequence[str] | frozenset[str], bit: int) -> None:
    for value in values:
        sets[value] = sets.get(value, 0) | bit
