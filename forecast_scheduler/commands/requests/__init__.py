"""`requests`: how much the pods of each service should request, by the forecast."""
