"""The filters, one per file, with the semantics of Kubernetes 1.36 or 1.37, and a few of our own."""
