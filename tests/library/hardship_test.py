"""What happens to a program around the library: other threads fork, and other
processes truncate its files.

    POSTFLIGHT_LIBRARY=build/release/libpostflight.so.0 \\
        tests/library/hardship_test.py
"""

import json
import os
import pathlib
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data"
sys.path.insert(0, str(ROOT / "python"))

import postflight  # noqa: E402

LARGE = 80 << 20  # is mapped


def safetensors(path, size):
    header = json.dumps({"a": {"dtype": "U8", "shape": [size],
                               "data_offsets": [0, size]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    os.truncate(path, 8 + len(header) + size)


def archive(path, size, method):
    """A torch archive of one tensor; its pickle comes last, behind it."""
    text = (b"\x80\x02}X\x01\x00\x00\x00actorch._utils\n_rebuild_tensor_v2\n("
            b"(X\x07\x00\x00\x00storagectorch\nByteStorage\nX\x01\x00\x00\x000"
            b"X\x03\x00\x00\x00cpu" + b"\x8a\x04" + size.to_bytes(4, "little")
            + b"tQK\x00\x8a\x04" + size.to_bytes(4, "little") + b"\x85K\x01\x85"
            b"\x89}tRs.")
    block = random.Random(0).randbytes(1 << 20)
    with zipfile.ZipFile(path, "w") as zip:
        with zip.open(_info("m/data/0", method), "w") as record:
            for _ in range(size >> 20):
                record.write(block)
        zip.writestr(_info("m/data.pkl", method), text)
        zip.writestr(_info("m/version", 0), "3\n")


def _info(name, method):
    info = zipfile.ZipInfo(name)
    info.compress_type = method
    return info


READER = """
import sys, random
sys.path[:0] = [sys.argv[1]]
import postflight
ended, read = 0, 0
print("ready", flush=True)
for _ in range(int(sys.argv[3])):
    try:
        checkpoint = postflight.Checkpoint(sys.argv[2])
        checkpoint.list(all=True)
        checkpoint.read(0, "bytes")
        postflight.load(sys.argv[2], framework="bytes")
        read += 1
    except postflight.Error:
        ended += 1
print(read, ended)
"""


class Truncation(unittest.TestCase):
    def survives(self, name, make, rounds):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            make(path)
            whole = path.read_bytes()
            child = subprocess.Popen(
                [sys.executable, "-c", READER, ROOT / "python", path,
                 str(rounds)], stdout=subprocess.PIPE, text=True)
            self.assertEqual(child.stdout.readline(), "ready\n")
            chance = random.Random(1)
            while child.poll() is None:
                size = chance.choice((0, 4096, len(whole) // 2,
                                      len(whole) - 8192))
                os.truncate(path, size)
                time.sleep(chance.random() / 100)
                with open(path, "r+b") as file:
                    file.write(whole)
                time.sleep(chance.random() / 20)
            self.assertEqual(child.returncode, 0)
            read, ended = map(int, child.stdout.read().split())
            self.assertEqual(read + ended, rounds)
            self.assertGreater(ended, 0)

    def test_of_an_archive(self):
        self.survives("a.pt", lambda path: archive(path, LARGE, 0), 60)

    def test_of_a_deflated_archive(self):
        self.survives("a.pt", lambda path: archive(path, LARGE,
                                                   zipfile.ZIP_DEFLATED), 6)

    def test_of_a_safetensors_file(self):
        self.survives("a.safetensors", lambda path: safetensors(path, LARGE),
                      100)

    def test_of_a_large_dump(self):
        def make(path):
            with open(DATA / "flight/nccl_tp_fsdp" / next(
                    one for one in sorted(os.listdir(
                        DATA / "flight/nccl_tp_fsdp"))
                    if not one.endswith(".json")), "rb") as file:
                dump = pickle.load(file)
            dump["padding"] = ["x" * 1_000_000 + str(i) for i in range(80)]
            path.write_bytes(pickle.dumps(dump))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "nccl_trace_rank_0"
            make(path)
            whole = path.read_bytes()
            self.assertGreater(len(whole), 64 << 20)
            code = "\n".join(
                line for line in READER.replace(
                    "postflight.Checkpoint(", "postflight.entries("
                ).splitlines()
                if " checkpoint." not in line and ".load" not in line)
            child = subprocess.Popen(
                [sys.executable, "-c", code, ROOT / "python", path, "40"],
                stdout=subprocess.PIPE, text=True)
            self.assertEqual(child.stdout.readline(), "ready\n")
            while child.poll() is None:
                os.truncate(path, len(whole) // 2)
                time.sleep(0.005)
                with open(path, "r+b") as file:
                    file.write(whole)
                time.sleep(0.02)
            self.assertEqual(child.returncode, 0)
            read, ended = map(int, child.stdout.read().split())
            self.assertEqual(read + ended, 40)


class Forks(unittest.TestCase):
    """A thread is in a call while another one forks."""

    def test_the_child_uses_the_library(self):
        shared = postflight.Checkpoint(DATA / "ckpt/many.pt")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        large = pathlib.Path(folder.name) / "large.safetensors"
        safetensors(large, LARGE)
        ended = threading.Event()

        def work_once():
            postflight.Checkpoint(large).list()
            shared.digest()
            postflight.entries(DATA / "flight/nccl_tp_fsdp")
            with postflight.SharedTemporaryFolder():
                pass

        def work():
            while not ended.is_set():
                work_once()

        # A module that another thread imports during a fork stays locked in the
        # child, in any Python program. So all of them are imported before.
        work_once()
        postflight.diagnose(DATA / "flight/nccl_tp_fsdp")
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        wanted = shared.digest()
        statuses = []
        try:
            for _ in range(60):
                child = os.fork()
                if child == 0:
                    signal.alarm(60)  # a child that hangs
                    status = 1
                    try:
                        again = postflight.Checkpoint(large)
                        again.list()
                        same = shared.digest() == wanted
                        shared.node(0)
                        postflight.diagnose(DATA / "flight/nccl_tp_fsdp")
                        with postflight.SharedTemporaryFolder():
                            pass
                        status = 0 if same else 2
                    finally:
                        os._exit(status)
                statuses.append(os.waitpid(child, 0)[1])
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        self.assertEqual(statuses, [0] * 60)


if __name__ == "__main__":
    unittest.main()
