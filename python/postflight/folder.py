"""A temporary folder for a group of processes, and scoped logging."""

from __future__ import annotations

import ctypes
import functools
import logging
import os
import sys
from typing import Any, Callable, Iterator, Optional, TypeVar

from ._library import Handle, call, context, library, path_bytes

_PUBLISH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p,
                            ctypes.c_char_p)
_AWAIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p,
                          ctypes.c_double, ctypes.c_void_p, ctypes.c_size_t)


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("rank", ctypes.c_size_t),
                ("world_size", ctypes.c_size_t), ("parent", ctypes.c_char_p),
                ("meeting_folder", ctypes.c_char_p), ("user", ctypes.c_void_p),
                ("publish", _PUBLISH), ("await_", _AWAIT),
                ("time_limit", ctypes.c_double),
                ("context", ctypes.c_void_p)]


class SharedTemporaryFolder:
    """One folder for all ranks, which rank 0 makes and, when all are done,
    removes.

    The ranks meet in ``meeting``: an empty folder that all of them see. Without
    a group it is an ordinary temporary folder.

    >>> with SharedTemporaryFolder() as path:
    ...     os.path.isdir(path)
    True
    >>> os.path.exists(path)
    False
    """

    def __init__(self, *, rank: int = 0, world_size: int = 1, meeting: Any = None,
                 parent: Any = None, time_limit: float = 300) -> None:
        options = _Options(ctypes.sizeof(_Options), rank, world_size)
        options.parent = path_bytes(parent) if parent else None
        options.meeting_folder = path_bytes(meeting) if meeting else None
        options.time_limit = time_limit
        options.context = context()
        self._handle = Handle("folder", "postflight_folder_new",
                              ctypes.byref(options))
        self.path = os.fsdecode(
            library().postflight_folder_path(self._handle.value))

    def finish(self) -> None:
        """This rank is done. Rank 0 waits for the others and removes it."""
        call("postflight_folder_finish", self._handle.value)

    def __enter__(self) -> str:
        return self.path

    def __exit__(self, *_: Any) -> None:
        self.finish()


def _torch_group() -> Any:
    """torch.distributed, if the program uses a group."""
    found = sys.modules.get("torch.distributed")
    if found is None:
        return None
    return found if found.is_available() and found.is_initialized() else None


def _mpi() -> Any:
    """MPI's world, if the program runs under MPI and has mpi4py."""
    if not any(name in os.environ for name in ("OMPI_COMM_WORLD_RANK",
                                               "PMI_RANK", "PMIX_RANK")):
        return None
    module = sys.modules.get("mpi4py.MPI")
    return None if module is None else module.COMM_WORLD


class _Folder:
    """The folder of a decorated function, by whatever group there is."""

    def __init__(self) -> None:
        self.group = _torch_group()
        self.world = None if self.group is not None else _mpi()
        self.owned: Optional[SharedTemporaryFolder] = None
        if self.group is not None:
            rank = self.group.get_rank()
        else:
            rank = self.world.Get_rank() if self.world is not None else 0
        if rank == 0:
            self.owned = SharedTemporaryFolder()
        path = [self.owned.path if self.owned is not None else None]
        if self.group is not None:
            self.group.broadcast_object_list(path)
        elif self.world is not None:
            path = self.world.bcast(path, root=0)
        self.path = path[0]

    def finish(self) -> None:
        """Removes it, after all ranks are done with it."""
        if self.group is not None:
            self.group.barrier()
        elif self.world is not None:
            self.world.Barrier()
        if self.owned is not None:
            self.owned.finish()


_Function = TypeVar("_Function", bound=Callable[..., Any])


def with_temp_dir(func: Optional[_Function] = None) -> Any:
    """Gives a method ``self.temp_dir``: a folder that all ranks of the group
    see, removed afterwards, also when it raises.

    Works without a group, with torch.distributed, and under MPI with mpi4py.
    """
    if func is None:
        return with_temp_dir
    function: Callable[..., Any] = func

    @functools.wraps(function)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        folder = _Folder()
        self.temp_dir = folder.path
        failed = True
        try:
            result = function(self, *args, **kwargs)
            failed = False
            return result
        finally:
            # A rank that failed does not wait: the others may never come.
            if failed:
                if folder.owned is not None:
                    folder.owned.finish()
            else:
                folder.finish()

    return wrapper


def with_checkpoint_logging(func: Optional[_Function] = None,
                            logger_name: str = "torch.distributed.checkpoint",
                            level: int = logging.INFO) -> Any:
    """Sets the level of a logger while a function runs.

    >>> @with_checkpoint_logging(level=logging.DEBUG)
    ... def save():
    ...     return logging.getLogger("torch.distributed.checkpoint").level
    >>> save() == logging.DEBUG
    True
    """
    def decorate(function: _Function) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            logger = logging.getLogger(logger_name)
            before = logger.level
            logger.setLevel(level)
            try:
                return function(*args, **kwargs)
            finally:
                logger.setLevel(before)
        return wrapper

    return decorate if func is None else decorate(func)
