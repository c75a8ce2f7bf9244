"""Compares postflight.load with torch.load, file by file.

    PYTHONPATH=python python3 tests/torch/loading.py [FOLDER...]

For any torch: what it cannot load is named and left out, as are files that it
could load only by running what is in them. Exit 1 if a value differs.
"""

import pathlib
import sys
import warnings

try:
    import torch
except ImportError:
    print("SKIPPED    torch is not installed")
    sys.exit(0)

import postflight

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Are not for torch.load, or run a command.
LEFT_OUT = {"evil_reduce.pt", "torchscript.pt", "full_module.pt"}
DEEPEST = 20  # one of the files contains itself


def load_by_torch(path):
    options = {"map_location": "cpu"}
    if int(torch.__version__.split(".")[0]) >= 2:
        options["weights_only"] = True
    return torch.load(path, **options)


def bytes_of(tensor):
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if tensor.numel() == 0:
        return b""
    return bytes(tensor.reshape(-1).view(torch.uint8).numpy())


def differences(ours, theirs, path="", depth=0):
    if depth > DEEPEST:
        return
    if isinstance(theirs, torch.Tensor):
        if (theirs.layout != torch.strided or theirs.is_quantized
                or theirs.device.type == "meta" or theirs.is_nested):
            return  # ours are parts
        if not isinstance(ours, torch.Tensor):
            yield f"{path}: {type(ours)} instead of a tensor"
        elif (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
            yield (f"{path}: {ours.dtype} {list(ours.shape)} instead of "
                   f"{theirs.dtype} {list(theirs.shape)}")
        elif bytes_of(ours) != bytes_of(theirs):
            yield f"{path}: other values"
        elif (type(ours), ours.requires_grad) != (type(theirs),
                                                  theirs.requires_grad):
            yield f"{path}: {type(ours)}, requires_grad {ours.requires_grad}"
    elif isinstance(theirs, dict):
        if not isinstance(ours, dict) or list(ours) != list(theirs):
            yield f"{path}: other keys"
            return
        for key, value in theirs.items():
            yield from differences(ours[key], value, f"{path}.{key}", depth + 1)
    elif isinstance(theirs, (list, tuple)):
        if type(ours) is not type(theirs) or len(ours) != len(theirs):
            yield f"{path}: {type(ours)} instead of {type(theirs)}"
            return
        for place, (one, other) in enumerate(zip(ours, theirs)):
            yield from differences(one, other, f"{path}[{place}]", depth + 1)
    elif isinstance(ours, postflight.Opaque):
        return  # an object; ours is its parts
    elif hasattr(theirs, "dtype"):
        if theirs.tobytes() != ours.tobytes():
            yield f"{path}: other values"
    elif ours != theirs and theirs == theirs:
        yield f"{path}: {ours!r} instead of {theirs!r}"


def main(folders):
    warnings.simplefilter("ignore")
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}")
    equal, failed = 0, 0
    for folder in folders:
        for path in sorted(pathlib.Path(folder).glob("*.pt")):
            if path.name in LEFT_OUT:
                continue
            try:
                theirs = load_by_torch(path)
            except Exception as error:
                line = " ".join(str(error).split())[:60]
                print(f"SKIPPED    {path.name}: torch cannot load it: {line}")
                continue
            try:
                ours = postflight.load(path, safe=False)
            except postflight.Error as error:
                print(f"DIFFERENT  {path.name}: {error}")
                failed += 1
                continue
            found = list(differences(ours, theirs))
            for line in found[:5]:
                print(f"DIFFERENT  {path.name}: {line}")
            failed += bool(found)
            equal += not found
    print(f"{equal} files equal, {failed} different")
    return failed > 0 or equal == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or [ROOT / "tests/data/ckpt",
                                   ROOT / "tests/data/ckpt_more"]))
