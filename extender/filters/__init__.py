"""The filters, one per file, with the semantics of Kubernetes 1.36, and a few of our own."""
