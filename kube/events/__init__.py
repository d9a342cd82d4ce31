"""Posts Events and never waits for the API server."""
