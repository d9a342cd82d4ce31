"""`canary`: what templates on trial do to predicted peaks."""
