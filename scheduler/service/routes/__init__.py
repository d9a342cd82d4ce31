"""The endpoints, by who asks. A route translates, nothing more."""
