"""The endpoints, by what they are about. A route translates, nothing more."""
