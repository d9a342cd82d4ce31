"""Annotations by which pods say to other tools whether they may be evicted.

Sources: descheduler v0.36, pkg/framework/plugins/defaultevictor/defaultevictor.go, pkg/descheduler/evictions/; the
cluster-autoscaler's FAQ.md, "What types of pods can prevent CA from removing a node?"; Karpenter,
pkg/apis/v1/labels.go.
"""

from __future__ import annotations

from typing import Final

DESCHEDULER_EVICT: Final = "descheduler.alpha.kubernetes.io/evict"
DESCHEDULER_PREFER_NO_EVICTION: Final = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
DESCHEDULER_EVICTION_IN_PROGRESS: Final = "descheduler.alpha.kubernetes.io/eviction-in-progress"
AUTOSCALER_SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
AUTOSCALER_SAFE_LOCAL_VOLUMES: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
KARPENTER_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
KARPENTER_DO_NOT_EVICT: Final = "karpenter.sh/do-not-evict"
"""The name until Karpenter v0.31."""

EVICTION_ANNOTATIONS: Final = frozenset(
    {
        DESCHEDULER_EVICT,
        DESCHEDULER_PREFER_NO_EVICTION,
        DESCHEDULER_EVICTION_IN_PROGRESS,
        AUTOSCALER_SAFE_TO_EVICT,
        AUTOSCALER_SAFE_LOCAL_VOLUMES,
        KARPENTER_DO_NOT_DISRUPT,
        KARPENTER_DO_NOT_EVICT,
    }
)
