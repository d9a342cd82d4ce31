"""What every room needs and none of them owns: arrays, errors, setting groups, durations, object stores, HTML."""
