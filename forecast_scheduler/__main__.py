"""`python -m forecast_scheduler` is the same as the command `forecast-scheduler`."""

from forecast_scheduler.own_packages import check_own_packages


def main() -> None:
    """Entry point of the console command."""
    check_own_packages()
    from forecast_scheduler.cli import main as command  # not above: it imports what was just checked

    command()


if __name__ == "__main__":
    main()
