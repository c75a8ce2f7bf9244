"""postflight: what a distributed PyTorch job leaves behind, read from Python.

Nothing in a file is ever run. numpy and torch are used where they are
installed, and neither is needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, List

__version__ = "0.1.0"

# What is public, and where it is: imported when it is first used.
_WHERE = {
    "Error": "_library",
    "Checkpoint": "checkpoint",
    "Opaque": "checkpoint",
    "UnsafeError": "checkpoint",
    "load": "checkpoint",
    "open_checkpoint": "checkpoint",
    "CheckpointReader": "reader",
    "RankInfo": "reader",
    "Diagnosis": "flight",
    "Entries": "flight",
    "Finding": "flight",
    "Verdict": "flight",
    "diagnose": "flight",
    "entries": "flight",
    "read_dir": "flight",
    "read_dump": "flight",
    "Aead": "stream",
    "Chain": "stream",
    "Checksum": "stream",
    "Extension": "stream",
    "ExtensionRegistry": "stream",
    "Lz4": "stream",
    "Rot13Example": "stream",
    "StreamTransformExtension": "stream",
    "ZStandard": "stream",
    "register_with_torch": "stream",
    "CompileTimeProfiler": "profiler",
    "PhaseProfiler": "profiler",
    "Profiler": "profiler",
    "phase": "profiler",
    "SharedTemporaryFolder": "folder",
    "with_checkpoint_logging": "folder",
    "with_temp_dir": "folder",
}

__all__ = sorted(_WHERE)

if TYPE_CHECKING:
    from ._library import Error
    from .checkpoint import (Checkpoint, Opaque, UnsafeError, load,
                             open_checkpoint)
    from .flight import (Diagnosis, Entries, Finding, Verdict, diagnose,
                         entries, read_dir, read_dump)
    from .folder import (SharedTemporaryFolder, with_checkpoint_logging,
                         with_temp_dir)
    from .profiler import CompileTimeProfiler, PhaseProfiler, Profiler, phase
    from .reader import CheckpointReader, RankInfo
    from .stream import (Aead, Chain, Checksum, Extension, ExtensionRegistry,
                         Lz4, Rot13Example, StreamTransformExtension,
                         ZStandard, register_with_torch)


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'postflight' has no attribute '{name}'")
    found = getattr(importlib.import_module(f".{where}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> List[str]:
    return sorted(set(globals()) | set(__all__))
