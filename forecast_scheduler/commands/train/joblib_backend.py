"""Where per-series work runs: here, in processes of this machine, or on an existing Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from joblib import parallel_config

from base.errors import InputError


@contextmanager
def work_on(backend: str | None, jobs: int, dask_scheduler: str | None) -> Iterator[None]:
    """Send the work of the block to a joblib backend; None: this process.

    dask_scheduler : address of the cluster; with backend dask only, and then needed
    Raises InputError if the backend is not known or the cluster does not answer.
    """
    if backend is None:
        if dask_scheduler is not None:
            raise InputError("a Dask scheduler is named without the backend: pass --backend dask, too")
        yield
        return
    if backend == "dask":
        with _dask_client(dask_scheduler), parallel_config(backend="dask"):
            yield
        return
    if dask_scheduler is not None:
        raise InputError(f"--dask-scheduler does not go with --backend {backend}: leave one of them out")
    try:
        configuration = parallel_config(backend=backend, n_jobs=jobs)
    except (ValueError, KeyError) as error:
        raise InputError(f"backend {backend!r} is not known to joblib: use loky, threading or dask") from error
    with configuration:
        yield


@contextmanager
def _dask_client(address: str | None) -> Iterator[None]:
    if address is None:
        raise InputError("backend dask needs a cluster: pass --dask-scheduler tcp://HOST:8786")
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError("backend dask needs the extra: pip install 'forecast-scheduler[dask]'") from error
    try:
        client = Client(address, timeout="15s")
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"the Dask scheduler {address} does not answer ({error}): start it, or correct --dask-scheduler"
        ) from error
    with client:
        if not client.scheduler_info()["workers"]:
            raise InputError(f"the Dask cluster at {address} has no workers: start some, or leave --backend out")
        yield
