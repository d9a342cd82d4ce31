"""Which cell of the table in docs/use/node-rules.md a test is for.

    @cells("card types required", *PLACES)
    def test_...(where: str, tmp_path: Path) -> None: ...

runs the test once for each column, and test_the_table.py knows the cells as tested. A test elsewhere is named in
ELSEWHERE.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

TESTED: Final[dict[tuple[str, str], str]] = {}
"""Name of the test by (rule, column)."""

_PROFILES: Final = ("online", "gpu", "job")
_HERE: Final = "tests/forecast_scheduler/"
_POLICIES: Final = "test_policies_in_every_profile.py"

ELSEWHERE: Final[dict[tuple[str, str], str]] = {
    **{
        (rule, column): _HERE + test
        for rule, test in (
            ("NUMA zones", "test_numa_in_every_profile.py::test_a_pod_goes_where_the_kubelet_admits_it"),
            ("whole cores", "test_numa_in_every_profile.py::test_a_core_in_use_is_filled_first"),
            ("weights of scores by policy", f"{_POLICIES}::test_the_weight_of_a_score_decides_and_zero_drops_it"),
            (
                "filters by policy",
                f"{_POLICIES}::test_whatever_a_policy_says_of_filters_the_standard_ones_and_those_of_the_profiles_run",
            ),
            (
                "order of pools by policy",
                f"{_POLICIES}::test_a_pool_is_filled_before_the_next_and_what_is_in_none_comes_last",
            ),
            ("queue policies", "test_queues_by_profile.py::test_a_policy_holds_in_every_profile"),
        )
        for column in _PROFILES
    },
    ("filters by policy", "extender"): (
        "tests/extender/test_policy_of_a_pod.py::test_filters_and_points_are_those_of_the_policy"
    ),
    ("order of pools by policy", "extender"): (
        "tests/extender/test_extender.py::test_pools_come_in_their_order_by_points_as_far_as_nodes_are_asked_for"
    ),
    (
        "ResourceClaims",
        "gpu",
    ): "tests/profiles/gpu/dra/test_plugin.py::test_a_pod_waits_for_its_claims_and_is_told",
    (
        "preemption",
        "extender",
    ): "tests/extender/test_extender.py::test_nodes_are_rejected_for_what_counts_most_and_kept_where_eviction_helps",
}
"""tests/.../test_file.py::test_name by (rule, column), of cells that a test outside this folder is for."""


def cells(rule: str, *columns: str) -> Callable[[Any], Any]:
    """Parametrise a test by `where`."""

    def mark(test: Any) -> Any:
        for column in columns:
            TESTED[rule, column] = f"{test.__module__}::{test.__name__}"
        return pytest.mark.parametrize("where", columns)(test)

    return mark
