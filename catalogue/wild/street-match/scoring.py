"""Where names are scored: off the request threads."""

import multiprocessing
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor

from settings import Settings


def make_executor(settings: Settings) -> Executor:
    if settings.executor == "processes":
        return ProcessPoolExecutor(settings.scorers, mp_context=multiprocessing.get_context("spawn"))
    return ThreadPoolExecutor(max_workers=settings.scorers, thread_name_prefix="scorer")
