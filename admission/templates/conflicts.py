"""What is lost where KeepPod leaves a template's requirements out: nothing, where the pod says as much by itself."""

from __future__ import annotations

from collections.abc import Sequence

from admission.templates.affinity import Affinity, RequiredTerm
from admission.templates.merging import MOST_TERMS
from admission.templates.rendering import NodeTerm
from admission.templates.requirements import implied
from kube.objects.constraints import Requirement


def lost_keys(affinity: Affinity, wanted: Sequence[NodeTerm]) -> tuple[str, ...]:
    """Labels of which a pod may now go where the template did not want it; () = it wanted nothing else.

    affinity : as it was when the requirements on labels that it constrains were left out
    wanted   : the template's required terms as they were rendered
    """
    taken = affinity.constrained_keys()
    terms: Sequence[RequiredTerm | None] = affinity.required or (None,)
    if len(terms) * len(wanted) > MOST_TERMS:  # too much to look at for a warning
        return tuple(sorted({one.key for term in wanted for one in term.requirements} & taken))
    # What the pod was given; where a term of that is empty, nothing at all.
    left = [[one for one in term.requirements if one.key not in taken] for term in wanted]
    lost: set[str] = set()
    for term in terms:
        missing = [_not_said(term.expressions if term else (), one.requirements, affinity) for one in wanted]
        if not all(any(_is_part(one, rest) for one in missing) for rest in left):
            lost.update(one.key for listed in missing for one in listed)
    return tuple(sorted(lost & taken))


def _not_said(pod: Sequence[Requirement], wanted: Sequence[Requirement], affinity: Affinity) -> list[Requirement]:
    return [one for one in wanted if not implied(one, pod, affinity.node_selector)]


def _is_part(part: Sequence[Requirement], whole: Sequence[Requirement]) -> bool:
    return all(one in whole for one in part)
