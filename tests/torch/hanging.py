"""Makes a job of four ranks hang, and diagnoses it from Python.

    PYTHONPATH=python python3 tests/torch/hanging.py

By NCCL where there are four GPUs, else by gloo, whose collectives torch's flight
recorder has since 2.8. Exit 1 if the verdict is wrong.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap

try:
    import torch
    import torch.distributed as dist
except ImportError:
    print("SKIPPED    torch is not installed")
    sys.exit(0)

import postflight

RANKS, ABSENT = 4, 2

# Rank 2 leaves out the fourth all_reduce; then everybody dumps.
JOB = textwrap.dedent("""
    import datetime, os, sys, threading, time
    import torch
    import torch.distributed as dist
    from torch._C import _distributed_c10d as c10d

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    backend, folder = sys.argv[1], sys.argv[2]
    if backend == "nccl":
        torch.cuda.set_device(rank)
    dist.init_process_group(backend, timeout=datetime.timedelta(seconds=300))
    device = "cuda" if backend == "nccl" else "cpu"
    data = torch.ones(8, device=device)
    for _ in range(3):
        dist.all_reduce(data)
    if backend == "nccl":
        torch.cuda.synchronize()

    def go_on():
        if rank != int(sys.argv[3]):
            dist.all_reduce(data)
            if backend == "nccl":
                torch.cuda.synchronize()
        else:
            time.sleep(300)

    threading.Thread(target=go_on, daemon=True).start()
    time.sleep(8)
    dump = c10d._dump_nccl_trace if backend == "nccl" else c10d._dump_fr_trace
    with open(os.path.join(folder, "nccl_trace_rank_%d" % rank), "wb") as file:
        file.write(dump())
    os._exit(0)
""")


def main():
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}")
    if not dist.is_available():
        print("SKIPPED    this torch has no torch.distributed")
        return 0
    try:
        from torch._C import _distributed_c10d as c10d
    except ImportError as error:
        print(f"SKIPPED    {error}")
        return 0
    if torch.cuda.is_available() and torch.cuda.device_count() >= RANKS \
            and hasattr(c10d, "_dump_nccl_trace"):
        backend = "nccl"
    elif hasattr(c10d, "_dump_fr_trace"):
        backend = "gloo"
    else:
        print("SKIPPED    this torch records collectives of NCCL alone, if any, "
              f"and there are not {RANKS} GPUs")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "job.py"
        script.write_text(JOB)
        dumps = pathlib.Path(folder) / "dumps"
        dumps.mkdir()
        environment = {**os.environ, "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": "29765", "WORLD_SIZE": str(RANKS),
                       "TORCH_FR_BUFFER_SIZE": "2000",
                       "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000"}
        ranks = [subprocess.Popen(
            [sys.executable, script, backend, dumps, str(ABSENT)],
            env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)})
            for rank in range(RANKS)]
        for rank in ranks:
            rank.wait(timeout=200)
        found = postflight.diagnose(dumps)
        print(f"{backend}: {found.verdict.summary}")
        right = (found.is_problem and found.verdict.kind == "never_joined"
                 and found.verdict.culprits == (ABSENT,))
        print(f"{'RIGHT' if right else 'DIFFERENT':<9}  {found.verdict.kind} "
              f"{found.verdict.culprits}")
        details, version = postflight.read_dir(dumps)
        print(f"{'RIGHT' if len(details) == RANKS else 'DIFFERENT':<9}  read_dir, "
              f"version {version}")
        return not right or len(details) != RANKS


if __name__ == "__main__":
    sys.exit(main())
