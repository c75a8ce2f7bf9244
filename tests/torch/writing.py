"""Loads with a real torch what `postflight ckpt` writes, and compares it.

    python3 tests/torch/writing.py PROGRAM [FOLDER...]

Every .pt file of the folders is converted to an archive made anew, to a
distributed checkpoint of three ranks and to safetensors, and these are loaded by
torch.load(weights_only=True), torch.distributed.checkpoint.load and
safetensors.torch.load_file. For any torch: what it does not have, and what it
cannot load itself, is named and left out. Exit 1 if a value differs, 2 if
nothing could be compared.
"""

import inspect
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

try:
    import torch
except ImportError:
    print("SKIPPED    torch is not installed")
    sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Run a command, or are no state dicts.
LEFT_OUT = {"evil_reduce.pt", "torchscript.pt", "full_module.pt", "cycle.pt"}
# In 1.13 it was a prototype that refuses most files.
WEIGHTS_ONLY = (int(torch.__version__.split(".")[0]) >= 2 and
                "weights_only" in inspect.signature(torch.load).parameters)


def load(path, weights_only):
    options = {"map_location": "cpu"}
    if WEIGHTS_ONLY and weights_only:
        options["weights_only"] = True
    return torch.load(path, **options)


def bits(tensor):
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return (bytes(tensor.reshape(-1).view(torch.uint8).numpy())
            if tensor.numel() else b"")


def differences(found, wanted, path=""):
    if isinstance(wanted, torch.Tensor):
        if not isinstance(found, torch.Tensor):
            yield "%s: %s instead of a tensor" % (path, type(found))
        elif (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
            yield "%s: %s %s instead of %s %s" % (
                path, found.dtype, list(found.shape), wanted.dtype,
                list(wanted.shape))
        elif bits(found) != bits(wanted):
            yield "%s: other values" % path
    elif isinstance(wanted, dict):
        if list(found) != list(wanted):
            yield "%s: other keys" % path
            return
        for key, value in wanted.items():
            yield from differences(found[key], value, "%s.%s" % (path, key))
    elif isinstance(wanted, (list, tuple)):
        if len(found) != len(wanted):
            yield "%s: %d items instead of %d" % (path, len(found), len(wanted))
            return
        for i, (one, other) in enumerate(zip(found, wanted)):
            yield from differences(one, other, "%s[%d]" % (path, i))
    elif found != wanted and wanted == wanted:
        yield "%s: %r instead of %r" % (path, found, wanted)


def flat(tree, path=()):
    """The tensors of a tree by their dotted names."""
    if isinstance(tree, torch.Tensor):
        yield ".".join(map(str, path)), tree
    elif isinstance(tree, dict):
        for key, value in tree.items():
            yield from flat(value, path + (key,))
    elif isinstance(tree, (list, tuple)):
        for i, value in enumerate(tree):
            yield from flat(value, path + (i,))


def by_distributed(folder, wanted):
    """torch.distributed.checkpoint.load into empty tensors of the same kind."""
    from torch.distributed import checkpoint
    state = {name: torch.empty_like(tensor, memory_format=torch.contiguous_format)
             for name, tensor in wanted.items()}
    checkpoint.load(state, checkpoint_id=str(folder))
    return state


def has_distributed():
    try:
        from torch.distributed import checkpoint
        return "checkpoint_id" in inspect.signature(checkpoint.load).parameters
    except (ImportError, AttributeError):
        return False


def has_safetensors():
    try:
        import safetensors.torch  # noqa: F401
        return True
    except ImportError:
        return False


class Writing:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.equal, self.failed = 0, 0
        self.left_out = {}

    def convert(self, command, source, name, *options):
        target = os.path.join(self.folder, name)
        done = subprocess.run(
            [self.program, "ckpt", command, str(source), target, "--force",
             *options], check=False, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        if done.returncode > 1 or not os.path.exists(target):
            why = done.stdout.decode().strip().splitlines()
            self.leave_out(source, name, why[-1] if why else "no answer")
            return None
        return target

    def leave_out(self, source, what, why):
        print("SKIPPED    %s: %s: %s" % (source.name, what, why[:90]))
        self.left_out[what] = self.left_out.get(what, 0) + 1

    def judge(self, source, what, found, wanted):
        lines = list(differences(found, wanted))
        for line in lines[:5]:
            print("DIFFERENT  %s: %s: %s" % (source.name, what, line))
        self.failed += bool(lines)
        self.equal += not lines

    def attempt(self, source, what, work, wanted):
        try:
            found = work()
        except Exception as error:  # whatever torch raises is its answer
            print("DIFFERENT  %s: %s: torch cannot load it: %s" % (
                source.name, what, " ".join(str(error).split())[:90]))
            self.failed += 1
            return
        self.judge(source, what, found, wanted)

    def compare(self, source):
        try:
            wanted = load(source, True)
        except Exception as error:
            self.leave_out(source, "torch.load of the source",
                           " ".join(str(error).split()))
            return
        tensors = dict(flat(wanted))
        if any(t.layout != torch.strided or t.is_quantized or t.is_nested
               or t.device.type == "meta" for t in tensors.values()):
            self.leave_out(source, "sparse, quantized or nested", "")
            return
        archive = self.convert("convert", source, "archive.pt", "--keys", "*")
        if archive:
            self.attempt(source, "torch.load(weights_only=%s)" % WEIGHTS_ONLY,
                         lambda: load(archive, True), wanted)
        if has_safetensors():
            made = self.convert("convert", source, "m.safetensors",
                                "--drop-values")
            if made:
                import safetensors.torch
                # Items of lists have other names in a flat file, so what is
                # compared is what there is.
                self.attempt(source, "safetensors", lambda: sorted(map(
                    kind, safetensors.torch.load_file(made).values())),
                    sorted(map(kind, tensors.values())))
        if has_distributed():
            made = self.convert("reshard", source, "dcp", "--ranks", "3")
            if made:
                self.attempt(source, "dcp.load",
                             lambda: by_distributed(made, tensors), tensors)


def kind(tensor):
    return str(tensor.dtype), list(tensor.shape), bits(tensor)


def main(program, folders):
    warnings.simplefilter("ignore")
    print("torch %s" % torch.__version__)
    for what, there in (("weights_only", WEIGHTS_ONLY),
                        ("torch.distributed.checkpoint.load",
                         has_distributed()),
                        ("safetensors", has_safetensors())):
        if not there:
            print("SKIPPED    this installation has no %s" % what)
    with tempfile.TemporaryDirectory() as folder:
        writing = Writing(program, folder)
        for where in folders:
            for source in sorted(pathlib.Path(where).glob("*.pt")):
                if source.name not in LEFT_OUT:
                    writing.compare(source)
    print("%d loaded and equal, %d different" % (writing.equal,
                                                 writing.failed))
    return 1 if writing.failed else 0 if writing.equal else 2


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]),
                  sys.argv[2:] or [ROOT / "tests/data/ckpt",
                                   ROOT / "tests/data/ckpt_more"]))
