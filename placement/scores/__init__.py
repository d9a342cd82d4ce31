"""kube-scheduler's own scores, one per file, with the formulas and normalisation of Kubernetes 1.36 or 1.37."""
