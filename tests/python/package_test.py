"""The Python package, through its public names.

    POSTFLIGHT_LIBRARY=build/release/libpostflight.so.0 \\
        tests/python/package_test.py build/release/postflight

Runs on any Python from 3.9 on. What needs numpy or torch is skipped where they
are not installed, and says so.
"""

import collections
import contextlib
import doctest
import hashlib
import importlib
import importlib.util
import io
import json
import logging
import os
import pathlib
import pickle
import re
import shutil
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
if importlib.util.find_spec("postflight") is None:
    sys.path.insert(0, str(ROOT / "python"))

import postflight  # noqa: E402

HAS_NUMPY = importlib.util.find_spec("numpy") is not None
HAS_TORCH = importlib.util.find_spec("torch") is not None
PROGRAM = None


def manifest_items(value, path=""):
    """Tensors by their path as the manifests print it; a text key and an
    integer with the same text print alike."""
    if isinstance(value, postflight.Opaque):
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from manifest_items(item, f"{path}.{key}" if path
                                      else str(key))
    elif isinstance(value, (list, tuple)):
        for place, item in enumerate(value):
            yield from manifest_items(item, f"{path}[{place}]")
    elif hasattr(value, "shape"):
        yield path, value


class Loading(unittest.TestCase):
    def test_tensors_are_what_torch_saw(self):
        compared = 0
        for folder in ("ckpt", "ckpt_more"):
            manifest = json.loads((DATA / folder / "manifest.json").read_text())
            for name, wanted in manifest.items():
                path = DATA / folder / name
                if not path.is_file() or not isinstance(wanted, dict):
                    continue
                found = collections.defaultdict(set)
                try:
                    tree = postflight.load(path, safe=False, framework="bytes",
                                           map_location=None,
                                           skip_unreadable=True)
                except postflight.Error as error:
                    self.fail(f"{path}: {error}")
                if name in ("cycle.pt",):
                    continue  # contains itself
                for key, tensor in manifest_items(tree):
                    if hasattr(tensor, "data"):
                        found[key].add(
                            hashlib.sha256(bytes(tensor.data)).hexdigest())
                for key, item in wanted.items():
                    if not isinstance(item, dict) or "sha256" not in item:
                        continue
                    if key in found:
                        self.assertIn(item["sha256"], found[key],
                                      f"{path}: {key}")
                        compared += 1
        self.assertGreater(compared, 600)

    def test_slices_and_keys(self):
        path = DATA / "ckpt/train_state.pt"
        whole = postflight.load(path, framework="bytes")
        weight = whole["model"]["0.weight"]
        part = postflight.load(path, framework="bytes",
                               slices={'model.0.weight': "[2:4, ::3]"})
        rows = weight.tolist()
        self.assertEqual(part['model.0.weight'].tolist(),
                         [row[::3] for row in rows[2:4]])
        keys = postflight.load(path, framework="bytes", keys="model.*weight*")
        self.assertIn('model.0.weight', keys)
        self.assertTrue(all("weight" in key for key in keys))
        with self.assertRaisesRegex(postflight.Error, "nothing matches 'x.\\*'"):
            postflight.load(path, keys="x.*", framework="bytes")

    def test_mapped_tensors_equal_read_ones(self):
        path = DATA / "ckpt/views.pt"
        read = postflight.load(path, framework="bytes")
        mapped = postflight.load(path, framework="bytes", mmap=True)
        self.assertEqual({key: bytes(value.data) for key, value in read.items()},
                         {key: bytes(value.data)
                          for key, value in mapped.items()})

    def test_refuses_what_is_not_safe_and_runs_nothing(self):
        path = DATA / "ckpt/evil_reduce.pt"
        with self.assertRaises(postflight.UnsafeError) as caught:
            postflight.load(path)
        self.assertIn("DANGEROUS", str(caught.exception))
        self.assertIn("posix.system", str(caught.exception))
        found = postflight.load(path, safe=False, framework="bytes")
        self.assertEqual(found["x"].type, "posix.system")
        self.assertFalse(os.path.exists("/tmp/postflight_pwned"))

    def test_judges_an_archive_that_looks_like_safetensors(self):
        class Evil:
            def __reduce__(self):
                return os.system, ("false",)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            # The size of a header that begins here is PK\3\4.
            with open(path, "wb") as file:
                file.write(b"PK\3\4\0\0\0\0{" + b" " * 100)
            with zipfile.ZipFile(path, "a") as archive:
                archive.writestr("m/data.pkl",
                                 pickle.dumps({"a": Evil()}, protocol=2))
                archive.writestr("m/version", "3\n")
            self.assertEqual(postflight.Checkpoint(path).format, "torch_zip")
            with self.assertRaises(postflight.Error) as caught:
                postflight.load(path)
            self.assertEqual(caught.exception.status, postflight.Error.REFUSED)

    def test_reads_what_was_judged_when_the_file_is_replaced(self):
        from postflight import checkpoint
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.pt"
            path.write_bytes((DATA / "ckpt/basic.pt").read_bytes())
            evil = pathlib.Path(folder) / "evil.pt"
            evil.write_bytes((DATA / "ckpt/evil_reduce.pt").read_bytes())
            judge = checkpoint.judge

            def judge_and_replace(place):
                answer = judge(place)
                if evil.exists():
                    evil.replace(path)
                return answer
            checkpoint.judge = judge_and_replace
            try:
                found = postflight.load(path, framework="bytes")
            finally:
                checkpoint.judge = judge
            self.assertIn("model", found)
            self.assertNotIn("x", found)

    def test_a_truncated_file_is_an_error_that_does_not_kill(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.pt"
            path.write_bytes((DATA / "ckpt/align4096.pt").read_bytes())
            checkpoint = postflight.Checkpoint(path)
            os.truncate(path, 4096)
            with self.assertRaises(postflight.Error) as caught:
                for index in range(checkpoint.list()["tensors"].__len__()):
                    checkpoint.read(index, "bytes")
            self.assertIn("truncated", str(caught.exception))

    def test_a_large_file_that_is_truncated_keeps_its_listing(self):
        size = 70 << 20
        header = json.dumps({
            "a": {"dtype": "U8", "shape": [size // 2],
                  "data_offsets": [0, size // 2]},
            "b": {"dtype": "U8", "shape": [size // 2],
                  "data_offsets": [size // 2, size]}}).encode()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.safetensors"
            path.write_bytes(len(header).to_bytes(8, "little") + header)
            os.truncate(path, 8 + len(header) + size)
            checkpoint = postflight.Checkpoint(path)
            before = checkpoint.list()
            os.truncate(path, 0)
            self.assertEqual(checkpoint.list(), before)
            for index in range(2):
                with self.assertRaisesRegex(postflight.Error, "truncated"):
                    checkpoint.read(index, "bytes")

    def test_threads_and_forks_share_a_checkpoint(self):
        checkpoint = postflight.Checkpoint(DATA / "ckpt/many.pt")
        wanted = [bytes(checkpoint.read(index, "bytes").data)
                  for index in range(20)]
        wrong = []

        def read():
            for index in range(20):
                if bytes(checkpoint.read(index, "bytes").data) != wanted[index]:
                    wrong.append(index)
        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        child = os.fork()
        if child == 0:
            status = 1
            with contextlib.suppress(BaseException):
                read()
                status = len(wrong)
            os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_errors_say_what_and_where(self):
        with self.assertRaises(FileNotFoundError):
            postflight.load("/nowhere/model.pt")
        with self.assertRaisesRegex(postflight.Error, "cannot open /nowhere"):
            postflight.Checkpoint("/nowhere/model.pt")
        with self.assertRaisesRegex(postflight.Error, "is not a framework"):
            postflight.load(DATA / "ckpt/basic.pt", framework="jax")

    def test_distributed_checkpoints_are_assembled(self):
        manifest = json.loads((DATA / "dcp_plain/manifest.json").read_text())
        found = postflight.load(DATA / "dcp_plain", framework="bytes")
        flat = dict(manifest_items(found))
        self.assertGreater(len(flat), 3)
        text = json.dumps(manifest)
        for key, tensor in flat.items():
            self.assertIn(hashlib.sha256(bytes(tensor.data)).hexdigest(), text,
                          key)

    @unittest.skipUnless(HAS_TORCH, "torch is not installed")
    def test_equals_torch_load(self):
        import torch
        for name in ("basic.pt", "train_state.pt", "params.pt", "views.pt",
                     "legacy.pt", "root_tensor.pt"):
            path = DATA / "ckpt" / name
            theirs = dict(manifest_items(torch.load(path, map_location="cpu")))
            ours = dict(manifest_items(postflight.load(path)))
            self.assertEqual(list(ours), list(theirs), name)
            for key, tensor in theirs.items():
                self.assertTrue(torch.equal(ours[key], tensor), (name, key))
                self.assertIs(type(ours[key]), type(tensor))
                self.assertEqual(ours[key].requires_grad, tensor.requires_grad)

    @unittest.skipUnless(HAS_NUMPY, "numpy is not installed")
    def test_numpy_arrays(self):
        import numpy
        found = postflight.load(DATA / "ckpt/basic.pt", framework="numpy",
                                mmap=True)
        plain = postflight.load(DATA / "ckpt/basic.pt", framework="bytes")
        weight = found["model"]["w"]
        self.assertIsInstance(weight, numpy.ndarray)
        self.assertEqual(weight.tobytes(), bytes(plain["model"]["w"].data))


class Reader(unittest.TestCase):
    folder = DATA / "ckpt/ranks"

    def reader(self, rank=1):
        return postflight.CheckpointReader(
            postflight.RankInfo(global_world_size=4, global_rank=rank))

    def test_reads_a_whole_file(self):
        found, missing = self.reader().read(self.folder, framework="bytes")
        self.assertEqual(missing, [])
        self.assertIn("model", found)

    def test_a_missing_file_is_named(self):
        with self.assertRaises(FileNotFoundError) as caught:
            self.reader(rank=77).read(self.folder)
        self.assertIn("Checkpoint file not found at", str(caught.exception))
        self.assertIn("checkpoint_77.pt", str(caught.exception))

    @unittest.skipUnless(HAS_NUMPY, "numpy is not installed")
    def test_fills_a_template_as_torch_does(self):
        import numpy
        shard = numpy.zeros((8, 4), "f4")
        moment = numpy.zeros(3, "f4")
        absent = numpy.zeros(1, "f4")
        template = {"model": {"shard": shard, "absent": absent},
                    "opt": [{"m": moment}], "nothere": None}
        with self.assertLogs("torch.distributed.checkpoint", "WARNING") as log:
            found, missing = self.reader().read(self.folder, template)
        self.assertEqual(missing, ["model.absent", "nothere"])
        self.assertIn("2 keys are missing", log.output[0])
        self.assertIs(found["model"]["shard"], shard)
        wanted, _ = self.reader().read(self.folder, framework="bytes")
        self.assertEqual(shard.tobytes(), bytes(wanted["model"]["shard"].data))
        self.assertEqual(len(found["opt"]), 1)
        self.assertEqual(moment.tobytes(), bytes(wanted["opt"][0]["m"].data))

    @unittest.skipUnless(HAS_NUMPY, "numpy is not installed")
    def test_a_mismatch_changes_nothing(self):
        import numpy
        moment = numpy.full(3, 7, "f4")
        template = {"opt": [{"m": moment}],
                    "model": {"shard": numpy.zeros((2,), "i1")}}
        with self.assertRaises(RuntimeError) as caught:
            self.reader().read(self.folder, template)
        self.assertEqual(
            str(caught.exception),
            "Target tensor size=torch.Size([2]) dtype=torch.int8 does not match "
            "source tensor size=torch.Size([8, 4]) dtype=torch.float32 for key "
            "model.shard")
        self.assertEqual(moment.tolist(), [7, 7, 7])

    @unittest.skipUnless(HAS_TORCH, "torch is not installed")
    def test_fills_parameters_and_strided_targets(self):
        import torch
        parameter = torch.nn.Parameter(torch.zeros(8, 4))
        self.reader().read(self.folder, {"model": {"shard": parameter}})
        strided = torch.zeros(4, 8).t()
        self.reader().read(self.folder, {"model": {"shard": strided}})
        theirs = torch.load(self.folder / "checkpoint_1.pt")["model"]["shard"]
        self.assertTrue(torch.equal(parameter, theirs))
        self.assertTrue(torch.equal(strided, theirs))
        self.assertTrue(parameter.requires_grad)


class Dumps(unittest.TestCase):
    folder = DATA / "flight/nccl_tp_fsdp"

    def dumps(self):
        return sorted(path for path in self.folder.iterdir()
                      if path.is_file() and path.suffix != ".json")

    def test_read_dir_gives_the_references_dictionaries(self):
        details, version = postflight.read_dir(self.folder)
        self.assertGreaterEqual(len(details), 4)
        for name, dump in details.items():
            raw = pickle.loads((self.folder / name).read_bytes())
            self.assertEqual(dump["entries"], raw["entries"])
            self.assertEqual(dump["pg_config"], raw["pg_config"])
            self.assertEqual(dump["rank"], int(name.rpartition("_")[2]))
            self.assertEqual(dump["version"], version)

    def test_read_dump_runs_nothing(self):
        class Evil:
            def __reduce__(self):
                return os.mkdir, ("/tmp/postflight_evil",)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "dump_0")
            with open(path, "wb") as file:
                pickle.dump({"entries": [Evil()]}, file)
            with self.assertRaisesRegex(postflight.Error, "would import"):
                postflight.read_dump("dump_", path)
            with open(path, "wb") as file:
                file.write(b"\x80\x02}q\x00(")
            with self.assertRaisesRegex(postflight.Error, "truncated"):
                postflight.read_dump("dump_", path)
        self.assertFalse(os.path.exists("/tmp/postflight_evil"))

    def test_diagnose_says_what_the_program_says(self):
        found = postflight.diagnose(self.folder)
        answer = json.loads(subprocess.run(
            [PROGRAM, "trace", "--json", str(self.folder)],
            stdout=subprocess.PIPE).stdout)
        self.assertEqual(found.raw, answer)
        self.assertEqual(found.verdict.kind, "never_joined")
        self.assertEqual(found.verdict.culprits, (1,))
        self.assertTrue(found.is_problem)
        self.assertEqual([rank.rank for rank in found.ranks], [0, 1, 2, 3])

    def test_diagnose_takes_logs_alone(self):
        logs = sorted((DATA / "logs").rglob("*.log"))[:1]
        found = postflight.diagnose(logs=logs)
        answer = json.loads(subprocess.run(
            [PROGRAM, "trace", "--json", "--log", str(logs[0])],
            stdout=subprocess.PIPE).stdout)
        self.assertEqual(found.raw["verdict"], answer["verdict"])
        with self.assertRaisesRegex(postflight.Error, "no dumps were given"):
            postflight.diagnose()

    def test_entries_are_those_of_the_program(self):
        lines = subprocess.run(
            [PROGRAM, "entries", "--json", str(self.folder)],
            stdout=subprocess.PIPE).stdout.splitlines()
        wanted = [entry for entry in map(json.loads, lines)
                  if "finding" not in entry]
        found = postflight.entries(self.folder)
        self.assertEqual(len(found), len(wanted))
        for name in ("rank", "sequence", "state", "operation", "group",
                     "group_description", "backend", "timeout_ms", "retired",
                     "point_to_point", "group_id"):
            self.assertEqual(list(found[name]),
                             [entry[name] for entry in wanted], name)
        self.assertEqual([json.loads(one) for one in found["input_sizes"]],
                         [entry["input_sizes"] for entry in wanted])
        self.assertEqual(
            [json.loads(one).get("stack", []) for one in found["stack"]],
            [entry.get("stack", []) for entry in wanted])
        self.assertEqual([str(one) for one in found["record_id"]],
                         [entry["record_id"] for entry in wanted])

    @unittest.skipUnless(HAS_NUMPY, "numpy is not installed")
    def test_numpy_takes_columns(self):
        import numpy
        found = postflight.entries(self.folder)
        self.assertEqual(numpy.asarray(found["sequence"]).tolist(),
                         list(found["sequence"]))
        self.assertEqual(numpy.asarray(found["state"]).tolist(),
                         list(found["state"]))

    def test_a_folder_without_dumps(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(postflight.Error):
                postflight.diagnose(folder)
            with self.assertRaises(postflight.Error):
                postflight.read_dir(folder)


class Interrupting(unittest.TestCase):
    """Handlers of signals run during long calls, and end them by raising."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.sparse = os.path.join(cls.folder.name, "sparse.safetensors")
        size = 64 << 30
        header = json.dumps({"a": {"dtype": "U8", "shape": [size],
                                   "data_offsets": [0, size]}}).encode()
        with open(cls.sparse, "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header + b"\n")
            file.truncate(8 + len(header) + size)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def interrupted_after(self, seconds, work, handler=None,
                          number=signal.SIGINT, times=1):
        """How long work goes on after the signal, whose exception it raises.

        Python drops what a handler raises within __del__, so that work of many
        objects may need the signal again."""
        sent = []
        ended = threading.Event()

        def send():
            while len(sent) < times and not ended.wait(2 if sent else seconds):
                sent.append(time.monotonic())
                os.kill(os.getpid(), number)

        before = signal.signal(number, handler or signal.default_int_handler)
        sender = threading.Thread(target=send)
        sender.start()
        try:
            work()
            self.fail("it was not interrupted")
        except (KeyboardInterrupt, TimeoutError) as error:
            raised = error
        finally:
            ended.set()
            sender.join()
            signal.signal(number, before)
        return time.monotonic() - sent[0], raised

    def test_a_digest(self):
        checkpoint = postflight.Checkpoint(self.sparse)
        # At once, and not when the tensor has been read to its end.
        took, raised = self.interrupted_after(0.3, checkpoint.digest)
        self.assertIsInstance(raised, KeyboardInterrupt)
        self.assertLess(took, 5)
        # What was interrupted can be used again.
        self.assertEqual(len(checkpoint.list()["tensors"]), 1)
        took, _ = self.interrupted_after(0.3, checkpoint.digest)
        self.assertLess(took, 5)

    def test_a_read(self):
        checkpoint = postflight.Checkpoint(self.sparse)
        took, _ = self.interrupted_after(
            0.05, lambda: [checkpoint.read_slice(0, "[0:%d]" % (1 << 29), "bytes")
                           for _ in range(1000)])
        self.assertLess(took, 5)

    def test_by_another_signal_with_its_own_exception(self):
        def handler(number, frame):
            raise TimeoutError("it takes too long")
        checkpoint = postflight.Checkpoint(self.sparse)
        took, raised = self.interrupted_after(0.3, checkpoint.digest, handler,
                                              signal.SIGUSR1)
        self.assertEqual(str(raised), "it takes too long")
        self.assertLess(took, 5)

    def test_a_handler_that_does_not_raise_runs_at_once(self):
        ran = []

        def count(number, frame):
            ran.append(time.monotonic())
            if len(ran) == 3:
                raise TimeoutError
        signal.signal(signal.SIGALRM, count)
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.2)
        try:
            with self.assertRaises(TimeoutError):
                postflight.Checkpoint(self.sparse).digest()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        self.assertEqual(len(ran), 3)

    def test_a_diagnosis(self):
        source = DATA / "flight/nccl_tp_fsdp"
        dump = max(source.iterdir(), key=lambda path: path.stat().st_size)
        with tempfile.TemporaryDirectory() as folder:
            for rank in range(3_000):
                os.symlink(dump, os.path.join(folder, f"dump_{rank}"))
            took, _ = self.interrupted_after(
                0.3, lambda: [postflight.diagnose(folder) for _ in range(100)],
                times=3)
            self.assertLess(took, 5)

    def test_only_the_thread_that_handles_signals(self):
        found = []

        def elsewhere():
            with tempfile.TemporaryDirectory() as folder:
                small = os.path.join(folder, "small.safetensors")
                size = 1 << 28
                header = json.dumps({"a": {"dtype": "U8", "shape": [size],
                                           "data_offsets": [0, size]}}).encode()
                with open(small, "wb") as file:
                    file.write(len(header).to_bytes(8, "little") + header
                               + b"\n")
                    file.truncate(8 + len(header) + size)
                found.append(postflight.Checkpoint(small).digest())
        thread = threading.Thread(target=elsewhere)
        thread.start()
        self.interrupted_after(0.2, postflight.Checkpoint(self.sparse).digest)
        thread.join()
        self.assertEqual(len(found), 1)

    def test_waiting_for_the_ranks_of_a_group(self):
        with tempfile.TemporaryDirectory() as meeting:
            took, _ = self.interrupted_after(
                0.2, lambda: postflight.SharedTemporaryFolder(
                    rank=1, world_size=2, meeting=meeting))
            self.assertLess(took, 5)

    def test_a_stream_loses_nothing(self):
        """A handler that does not raise must not cost a byte."""
        data = os.urandom(1 << 20) * 24
        chain = postflight.Chain(["stream.rot13/1"])
        ran = []
        signal.signal(signal.SIGALRM, lambda *_: ran.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        try:
            encoded = chain.encode(data)
            decoded = chain.decode(encoded)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        self.assertTrue(decoded == data)
        self.assertTrue(ran)

        def interrupt(number, frame):
            raise TimeoutError
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        try:
            with self.assertRaises(TimeoutError):
                while True:
                    chain.decode(chain.encode(data))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)


class Streams(unittest.TestCase):
    key = "00112233445566778899aabbccddeeff" * 2

    def all_extensions(self):
        return [postflight.Rot13Example(), postflight.ZStandard(level=5),
                postflight.Lz4(), postflight.Checksum(),
                postflight.Aead(key=self.key)]

    def test_what_is_encoded_is_decoded(self):
        data = os.urandom(300_000) + b"abc" * 100_000
        for extension in self.all_extensions():
            below = io.BytesIO()
            with extension.transform_to(below) as encoded:
                for at in range(0, len(data), 70_001):
                    encoded.write(data[at:at + 70_001])
            below.seek(0)
            with extension.transform_from(below) as decoded:
                self.assertEqual(decoded.read(), data,
                                 extension.get_descriptor())
                self.assertEqual(decoded.seek(5), 5)
                self.assertEqual(decoded.read(10), data[5:15])

    def test_the_program_reads_it(self):
        chain = postflight.Chain(["stream.zstd/1", "stream.checksum@postflight/1"])
        encoded = chain.encode(b"hello " * 1000)
        done = subprocess.run(
            [PROGRAM, "stream", "decode", "-w",
             "stream.zstd/1,stream.checksum@postflight/1"], input=encoded,
            stdout=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout, b"hello " * 1000)

    def test_damage_is_an_error(self):
        chain = postflight.Chain(["stream.checksum@postflight/1"])
        encoded = bytearray(chain.encode(b"hello " * 1000))
        encoded[100] ^= 1
        with self.assertRaises(postflight.Error):
            chain.decode(bytes(encoded))
        with self.assertRaises(postflight.Error):
            chain.decode(chain.encode(b"hello")[:-3])

    def test_an_error_of_the_file_below_is_raised(self):
        class Broken(io.RawIOBase):
            def write(self, data):
                raise OSError("disk full")
        writer = postflight.Chain(["stream.rot13/1"]).writer(Broken())
        with self.assertRaisesRegex(OSError, "disk full"):
            writer.write(b"x" * 1_000_000)
            writer.close()

    def test_registry(self):
        registry = postflight.ExtensionRegistry()
        found = registry.from_descriptor_list(["stream.zstd/1", "stream.rot13/1"])
        self.assertEqual([one.get_descriptor() for one in found],
                         ["stream.zstd/1", "stream.rot13/1"])
        with self.assertRaisesRegex(ValueError, "Unknown extension: stream.x"):
            registry.from_descriptor("stream.x/1")
        with self.assertRaises(ValueError):
            registry.from_descriptor("stream.zstd/2")

        class Own(postflight.StreamTransformExtension):
            @staticmethod
            def registry_name():
                return "stream.own@test"

            @staticmethod
            def from_descriptor(version):
                return Own()

            def get_descriptor(self):
                return "stream.own@test/1"

            def transform_to(self, output):
                return output

            def transform_from(self, input):
                return input
        registry.register(Own)
        self.assertIsInstance(registry.from_descriptor("stream.own@test/1"), Own)


class Folders(unittest.TestCase):
    def test_the_ranks_of_a_group_share_one(self):
        code = ("import sys; sys.path[:0] = [sys.argv[3]]; import postflight, os\n"
                "with postflight.SharedTemporaryFolder(rank=int(sys.argv[1]), "
                "world_size=3, meeting=sys.argv[2], time_limit=60) as path:\n"
                "    print(path, os.path.isdir(path))\n")
        package = str(pathlib.Path(postflight.__file__).parents[1])
        with tempfile.TemporaryDirectory() as meeting:
            ranks = [subprocess.Popen(
                [sys.executable, "-c", code, str(rank), meeting, package],
                stdout=subprocess.PIPE, text=True) for rank in (2, 0, 1)]
            answers = {rank.communicate()[0] for rank in ranks}
        self.assertEqual(len(answers), 1)
        path, there = answers.pop().split()
        self.assertEqual(there, "True")
        self.assertFalse(os.path.exists(path))

    def test_a_decorated_method_has_a_folder(self):
        class Case:
            @postflight.with_temp_dir
            def run(self, fail):
                self.seen = os.path.isdir(self.temp_dir)
                if fail:
                    raise ValueError("x")
                return 3
        case = Case()
        self.assertEqual(case.run(False), 3)
        self.assertTrue(case.seen)
        self.assertFalse(os.path.exists(case.temp_dir))
        with self.assertRaises(ValueError):
            case.run(True)
        self.assertFalse(os.path.exists(case.temp_dir))

    def test_scoped_logging_is_undone(self):
        logger = logging.getLogger("torch.distributed.checkpoint")
        before = logger.level

        @postflight.with_checkpoint_logging
        def fail():
            self.assertEqual(logger.level, logging.INFO)
            raise ValueError("x")
        with self.assertRaises(ValueError):
            fail()
        self.assertEqual(logger.level, before)


class Profiling(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.environ["POSTFLIGHT_PROGRAM"] = str(PROGRAM)
        self.addCleanup(os.environ.pop, "POSTFLIGHT_PROGRAM", None)
        self.log = logging.getLogger("strobelight_compile_time_profiler")

    def busy(self, seconds=0.6):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sum(range(1000))

    def test_a_process_profiles_itself_by_phase(self):
        file = os.path.join(self.folder.name, "a.pflog")
        try:
            with postflight.Profiler(file, interval=0.002) as profiler:
                with postflight.phase("outer"):
                    with postflight.phase("inner"):
                        self.busy()
        except postflight.Error as error:
            if "ermi" in str(error):
                self.skipTest(f"this process may not be read: {error}")
            raise
        self.assertEqual(profiler.file, file)
        report = profiler.report()
        self.assertEqual(report["schema"], "postflight.profile/1")
        self.assertIn("outer/inner", json.dumps(report))
        self.assertNotIn("POSTFLIGHT_PHASES", os.environ)
        with self.assertRaises(postflight.Error):
            postflight.Profiler(os.path.join(self.folder.name, "no/such/a")
                                ).start()

    def profiler_class(self, **behaviour):
        test = self

        class Fake:
            def __init__(self, **options):
                test.options = options
                if behaviour.get("fails_to_start"):
                    raise OSError("no")
                self.profile_result = None

            def profile(self, work, *arguments, **keywords):
                test.phases.append(
                    (postflight.CompileTimeProfiler.current_phase,
                     postflight.CompileTimeProfiler.get_frame()))
                if behaviour.get("forgets_work"):
                    return None
                result = work(*arguments, **keywords)
                if behaviour.get("fails"):
                    raise OSError("no")
                self.profile_result = ["done"]
                return result
        self.phases = []
        return Fake

    def fresh(self):
        base = postflight.CompileTimeProfiler
        return type("Fresh", (base,), {
            "_lock": threading.Lock(), "_local": threading.local()})

    def test_work_runs_once_whatever_the_profiler_does(self):
        for behaviour in ({}, {"fails": True}, {"forgets_work": True},
                          {"fails_to_start": True}):
            hook = self.fresh()
            with contextlib.redirect_stderr(io.StringIO()):
                hook.enable(self.profiler_class(**behaviour))
                ran = []
                value = hook.profile_compile_time(
                    lambda x, y=0: ran.append(x) or x + y, "compile_inner", 2,
                    y=3)
            self.assertEqual((ran, value), ([2], 5), behaviour)
            success = int(not behaviour)
            if "fails_to_start" in behaviour:
                self.assertFalse(hook.enabled)
                success = 0
            self.assertEqual(hook.success_profile_count, success)

    def test_an_exception_propagates_and_ends_the_phase(self):
        hook = self.fresh()
        hook.enable(self.profiler_class())

        def fail():
            raise ZeroDivisionError
        for _ in range(2):
            with self.assertRaises(ZeroDivisionError):
                hook.profile_compile_time(fail, "compile_inner")
        self.assertEqual(hook.profile_compile_time(lambda: 4, "x"), 4)
        self.assertEqual((hook.failed_profile_count,
                          hook.success_profile_count,
                          hook.ignored_profile_runs), (2, 1, 0))
        self.assertIsNone(hook.current_phase)

    def test_nested_phases_are_counted_and_run(self):
        hook = self.fresh()
        hook.enable(self.profiler_class())
        value = hook.profile_compile_time(
            lambda: hook.profile_compile_time(lambda: 7, "backward"),
            "compile_inner")
        self.assertEqual((value, hook.ignored_profile_runs), (7, 1))
        self.assertEqual(len(self.phases), 1)
        with self.assertLogs(self.log, "INFO") as lines:
            hook.enable(self.profiler_class())
        self.assertIn("already enabled", lines.output[0])

    def test_filters_and_options(self):
        hook = self.fresh()
        hook.frame_id_filter = "1/"
        hook.get_frame = classmethod(lambda cls: "10/0")
        hook.enable(self.profiler_class())
        self.assertEqual(hook.profile_compile_time(lambda: 1, "x"), 1)
        self.assertEqual(hook.filtered_profile_runs, 1)
        hook.get_frame = classmethod(lambda cls: "1/0")
        hook.profile_compile_time(lambda: 1, "x")
        self.assertEqual(hook.success_profile_count, 1)
        self.assertEqual(self.options["sample_each"], 10_000_000)
        self.assertEqual(self.options["max_profile_duration_sec"], 1800)
        self.assertEqual(self.options["stack_max_len"], 500)
        self.assertEqual(self.options["async_stack_max_len"], 500)
        self.assertTrue(self.options["run_user_name"].startswith("pt2-profiler/"))
        self.assertIn(hook.identifier, self.options["sample_tags"])

    def test_bad_variables_are_told_and_ignored(self):
        code = ("import sys; sys.path[:0] = [sys.argv[1]]; import postflight; "
                "hook = postflight.CompileTimeProfiler; print(hook.sample_each, "
                "hook.max_stack_length, hook.max_profile_time, "
                "hook.frame_id_filter)")
        package = str(pathlib.Path(postflight.__file__).parents[1])
        done = subprocess.run(
            [sys.executable, "-c", code, package], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True,
            env={**os.environ, "COMPILE_STROBELIGHT_SAMPLE_RATE": "1e6",
                 "COMPILE_STROBELIGHT_MAX_STACK_LENGTH": "abc",
                 "COMPILE_STROBELIGHT_MAX_PROFILE_TIME": "1.5",
                 "COMPILE_STROBELIGHT_FRAME_FILTER": "("})
        self.assertEqual(done.stdout, "1000000 500 1800 None\n")
        self.assertEqual(done.stderr.count("is not valid; using the default"), 3)


class Package(unittest.TestCase):
    def test_what_people_paste_runs(self):
        text = (ROOT / "docs/python.md").read_text()
        blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        self.assertGreater(len(blocks), 8)
        package = str(pathlib.Path(postflight.__file__).parents[1])
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(ROOT / "tests", os.path.join(folder, "tests"))
            for block in blocks:
                with self.subTest(block=block):
                    done = subprocess.run(
                        [sys.executable, "-W", "ignore", "-c", block],
                        cwd=folder, text=True, stderr=subprocess.PIPE,
                        stdout=subprocess.DEVNULL,
                        env={**os.environ, "PYTHONPATH": package,
                             "POSTFLIGHT_PROGRAM": str(PROGRAM)})
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_examples_in_docstrings(self):
        names = {name: getattr(postflight, name) for name in postflight.__all__}
        ran = 0
        here = os.getcwd()
        os.chdir(ROOT)
        try:
            for module in ("checkpoint", "reader", "flight", "stream", "folder",
                           "profiler"):
                found = importlib.import_module(f"postflight.{module}")
                result = doctest.testmod(found, extraglobs={**names, "os": os})
                self.assertEqual(result.failed, 0, module)
                ran += result.attempted
        finally:
            os.chdir(here)
        self.assertGreater(ran, 10)

    def test_importing_it_imports_neither_torch_nor_numpy(self):
        code = ("import sys; sys.path[:0] = [sys.argv[1]]; import postflight; "
                "postflight.load; postflight.diagnose; postflight.Chain; "
                "print(sorted({'torch', 'numpy', 'pandas'} & set(sys.modules)))")
        package = str(pathlib.Path(postflight.__file__).parents[1])
        done = subprocess.run([sys.executable, "-c", code, package],
                              stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(done.stdout, "[]\n")

    def test_types_are_right(self):
        checker = shutil.which("mypy")
        if checker is None:
            self.skipTest("mypy is not installed")
        if not postflight.__file__.startswith(str(ROOT)):
            self.skipTest("the sources are checked once")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [checker, "--strict", "--no-warn-return-any",
                 "--ignore-missing-imports", "--python-version", "3.9",
                 "--cache-dir", folder, ROOT / "python/postflight"],
                stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_what_is_public_is_there(self):
        for name in postflight.__all__:
            self.assertIsNotNone(getattr(postflight, name))
        with self.assertRaises(AttributeError):
            postflight.nothing


if __name__ == "__main__":
    PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
    if "POSTFLIGHT_LIBRARY" in os.environ:
        os.environ["POSTFLIGHT_LIBRARY"] = str(
            pathlib.Path(os.environ["POSTFLIGHT_LIBRARY"]).resolve())
    print(f"Python {sys.version.split()[0]}, "
          f"numpy {'there' if HAS_NUMPY else 'MISSING'}, "
          f"torch {'there' if HAS_TORCH else 'MISSING'}", flush=True)
    unittest.main()
