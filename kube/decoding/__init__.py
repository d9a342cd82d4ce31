"""From JSON of the API server to these values: only the fields that count are built."""
