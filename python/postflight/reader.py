"""Partial reads by template, as torch's experimental CheckpointReader does."""

from __future__ import annotations

import logging
import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import arrays
from ._library import Error
from .checkpoint import ATTRIBUTE, DICT, LIST, TENSOR, TUPLE, VALUE, \
    Checkpoint, Maker, Node, TensorInfo, open_checkpoint

_log = logging.getLogger("torch.distributed.checkpoint")


class RankInfo(NamedTuple):
    """Which process of how many reads; torch's own fits, too."""

    global_world_size: int = 1
    global_rank: int = 0


class CheckpointReader:
    """Reads a rank's file of a folder, whole or as a template asks for.

    Has the interface of torch.distributed.checkpoint._experimental's
    CheckpointReader. docs/differences.md lists where torch's is wrong.

    >>> reader = CheckpointReader(RankInfo(global_world_size=4, global_rank=1))
    >>> found, missing = reader.read("tests/data/ckpt/ranks", {"nothere": None})
    >>> found, missing
    ({'nothere': None}, ['nothere'])
    """

    def __init__(self, rank_info: Any = RankInfo()) -> None:
        self._rank_info = rank_info

    def read(self, path: Any, state_dict: Optional[Dict[str, Any]] = None, *,
             map_location: Any = None, **kwargs: Any) -> Tuple[Any, List[str]]:
        """The state dict, and the paths of the template that the file lacks.

        Tensors and numpy arrays of the template are filled in place, once
        everything has been checked; None stands for everything below it.
        """
        file = os.path.join(os.fspath(path),
                            f"checkpoint_{self._rank_info.global_rank}.pt")
        if not os.path.exists(file):
            raise FileNotFoundError(f"Checkpoint file not found at {file}")
        unknown = set(kwargs) - {"weights_only", "mmap", "check_crc",
                                 "framework"}
        if unknown:
            _log.warning("CheckpointReader.read does not know %s",
                         ", ".join(sorted(unknown)))
        checkpoint = open_checkpoint(
            file, safe=bool(kwargs.get("weights_only", True)))
        framework = _framework(state_dict, kwargs.get("framework", ""))
        maker = Maker(checkpoint, framework=framework,
                      check_crc=bool(kwargs.get("check_crc", False)),
                      mmap=bool(kwargs.get("mmap", False)),
                      device=_device(map_location, framework))
        root = checkpoint.node(0)
        if state_dict is None:
            maker.want(root)
            maker.read()
            return maker.make(root), []
        filling = _Filling(checkpoint, maker)
        plan = filling.visit(state_dict, root, "")
        filling.read()
        found = plan()
        if filling.missing:
            _log.warning("%s", _missing_warning(filling.missing))
        return found, filling.missing


def _device(map_location: Any, framework: str) -> Any:
    if framework != "torch":
        return lambda saved: "cpu"
    return arrays.mapped_device(map_location)


def _framework(template: Any, wanted: str) -> str:
    """That of the first tensor of a template, if nothing else was asked for."""
    waiting = [template]
    while waiting and not wanted:
        one = waiting.pop()
        if _is_torch(one):
            return "torch"
        if isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, (list, tuple)):
            waiting.extend(one)
    return arrays.framework(wanted)


def _missing_warning(missing: List[str]) -> str:
    shown = ", ".join(missing[:10])
    more = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
    return f"{len(missing)} keys are missing in the checkpoint: {shown}{more}"


def _is_torch(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch" and hasattr(
        value, "data_ptr") or _bases_of_torch(value)


def _bases_of_torch(value: Any) -> bool:
    return any(base.__name__ == "Tensor" and base.__module__.startswith("torch")
               for base in type(value).__mro__)


def _is_numpy(value: Any) -> bool:
    return any(base.__name__ == "ndarray" and base.__module__ == "numpy"
               for base in type(value).__mro__)


class _Filling:
    """Walks a template beside the checkpoint. Each visit returns a function
    that makes the result; nothing is written before all are checked."""

    def __init__(self, checkpoint: Checkpoint, maker: Maker) -> None:
        self.checkpoint = checkpoint
        self.maker = maker
        self.missing: List[str] = []
        self._targets: List[Tuple[TensorInfo, Any]] = []

    def visit(self, target: Any, node: Node, path: str) -> Any:
        node = self.checkpoint.resolved(node)
        none = node.kind == VALUE and node.value_kind == 0
        if target is None or none:
            self.maker.want(node)
            return lambda: self.maker.make(node)
        if _is_torch(target) or _is_numpy(target):
            if node.kind != TENSOR:
                raise self._mismatch(target, node, path)
            return self._tensor(target, node, path)
        if isinstance(target, dict):
            if node.kind != DICT:
                raise self._mismatch(target, node, path)
            return self._dict(target, node, path)
        if isinstance(target, (list, tuple)):
            if node.kind not in (LIST, TUPLE):
                raise self._mismatch(target, node, path)
            return self._list(target, node, path)
        if node.kind != VALUE:
            raise self._mismatch(target, node, path)
        value = node.value()
        numbers = (bool, int, float)
        if not isinstance(value, type(target)) and not (
                isinstance(value, numbers) and isinstance(target, numbers)):
            raise self._mismatch(target, node, path)
        return lambda: value

    def _mismatch(self, target: Any, node: Node, path: str) -> RuntimeError:
        kinds = {DICT: "dict", LIST: "list", TUPLE: "tuple",
                 TENSOR: "torch.Tensor"}
        if node.kind == VALUE:
            source = str(type(node.value()))
        else:
            name = node.type or kinds.get(node.kind, "object")
            if name == "OrderedDict":
                name = "collections.OrderedDict"
            source = f"<class '{name}'>"
        return RuntimeError(f"Target value {path} is set to {type(target)}, "
                            f"but source value is {source}")

    def _dict(self, target: Dict[Any, Any], node: Node, path: str) -> Any:
        by_key = {child.key: child for child in self.checkpoint.children(node)
                  if child.key_kind != ATTRIBUTE}
        plans = {}
        for key, wanted in target.items():
            deeper = f"{path}.{key}" if path else str(key)
            child = by_key.get(key)
            if child is None:
                self.missing.append(deeper)
            else:
                plans[key] = self.visit(wanted, child, deeper)

        def finish() -> Dict[Any, Any]:
            for key, plan in plans.items():
                target[key] = plan()
            return target
        return finish

    def _list(self, target: Any, node: Node, path: str) -> Any:
        children = list(self.checkpoint.children(node))
        plans = []
        for place, wanted in enumerate(target):
            deeper = f"{path}[{place}]"
            if place < len(children):
                plans.append(self.visit(wanted, children[place], deeper))
            else:
                self.missing.append(deeper)
                plans.append(lambda kept=wanted: kept)
        kind = tuple if isinstance(target, tuple) else list
        return lambda: kind(plan() for plan in plans)

    def _tensor(self, target: Any, node: Node, path: str) -> Any:
        info = self.checkpoint.tensor(node.index)
        local = getattr(target, "to_local", None)
        if info.shape != tuple(target.shape) or not _fits(target, info.dtype):
            dtype = str(target.dtype)
            raise RuntimeError(
                f"Target tensor size={_size(target.shape)} "
                f"dtype={dtype if dtype.startswith('torch.') else 'torch.' + dtype} "
                f"does not match source tensor size={_size(info.shape)} "
                f"dtype=torch.{info.dtype} for key {path}")
        if local is not None:
            return self._distributed(target, node, path)
        if not info.readable:
            raise Error(f"{path}: {info.problem or 'it has no bytes'}",
                        Error.CORRUPT)
        self._targets.append((info, target))
        return lambda: target

    def _distributed(self, target: Any, node: Node, path: str) -> Any:
        """A DTensor: only this rank's part is read."""
        from torch.distributed.tensor._utils import \
            compute_local_shape_and_global_offset as place_of
        shape, offset = place_of(target.shape, target.device_mesh,
                                 target.placements)
        slice = ", ".join(f"{start}:{start + size}"
                          for start, size in zip(offset, shape))
        part = self.checkpoint.read_slice(node.index, f"[{slice}]", "torch")
        local = target.to_local()

        def finish() -> Any:
            import torch
            with torch.no_grad():
                local.copy_(part.reshape(local.shape))
            return target
        return finish

    def read(self) -> None:
        self.maker.read()
        copies, direct = [], []
        for info, target in self._targets:
            address = _address(target)
            if address is not None:
                direct.append((info.index, address, info.bytes))
            elif info.bytes:
                made = arrays.make(info.dtype, info.shape, info.bytes,
                                   self.maker.framework)
                copies.append((target, made))
                direct.append((info.index, made.address, info.bytes))
        self.checkpoint.read_all_into(
            [one for one in direct if one[2]], self.maker.check_crc)
        for target, made in copies:
            if _is_numpy(target):
                target[...] = made.value
            else:
                import torch
                with torch.no_grad():
                    target.copy_(made.value)


def _size(shape: Any) -> str:
    return f"torch.Size([{', '.join(str(size) for size in shape)}])"


def _fits(target: Any, dtype: str) -> bool:
    name = str(target.dtype)
    return (name[len("torch."):] if name.startswith("torch.") else name) == dtype


def _address(target: Any) -> Optional[int]:
    """Where the bytes of a tensor are, if they may be written right there."""
    if _is_numpy(target):
        writable = target.flags.c_contiguous and target.flags.writeable
        native = target.dtype.isnative
        return target.ctypes.data if writable and native else None
    if target.device.type != "cpu" or not target.is_contiguous():
        return None
    if getattr(target, "is_conj", bool)() or getattr(target, "is_neg", bool)():
        return None
    return target.data_ptr()
