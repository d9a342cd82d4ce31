"""The half hours of a coming day, for all series by one model: features with names, trees pooled over series."""
