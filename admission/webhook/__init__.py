"""The mutating admission webhook: templates into pods as they are created, and how that went into statuses."""
