"""`python -m forecast_scheduler` is the same as the command `forecast-scheduler`."""

from forecast_scheduler.cli import main

if __name__ == "__main__":
    main()
