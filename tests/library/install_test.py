"""Installs the library, and builds and runs the examples against it from
outside of the source tree: by CMake, and by pkg-config where it is installed.

    tests/library/install_test.py build/release
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data"


def run(*command, status=0, **options):
    done = subprocess.run([str(word) for word in command], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          **options)
    if done.returncode != status:
        raise AssertionError(f"{command}: exit {done.returncode}\n"
                             f"{done.stdout}\n{done.stderr}")
    return done.stdout


class Install(unittest.TestCase):
    build = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.place = pathlib.Path(cls.folder.name)
        first = cls.place / "first"
        cls.prefix = cls.place / "prefix"
        run("cmake", "--install", cls.build, "--prefix", first, "--component",
            "library")
        # What is installed may be moved.
        first.rename(cls.prefix)
        shutil.copytree(ROOT / "examples", cls.place / "examples")
        cls.examples = cls.place / "build"
        run("cmake", "-S", cls.place / "examples", "-B", cls.examples,
            f"-DCMAKE_PREFIX_PATH={cls.prefix}")
        run("cmake", "--build", cls.examples)

    def example(self, name, *arguments, status=0):
        return run(self.examples / name, *arguments, status=status)

    def test_a_c_program_lists_a_checkpoint(self):
        text = self.example("checkpoint", DATA / "ckpt/train_state.pt")
        self.assertIn('model.0.weight  float32 [8, 6]  192 bytes\n', text)

    def test_a_c_program_gets_a_sentence(self):
        done = subprocess.run([self.examples / "checkpoint", "/nowhere"],
                              stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.stderr,
                         "cannot open /nowhere: No such file or directory\n")

    def test_a_cpp_program_reads_some_tensors(self):
        text = self.example("partial_read", DATA / "ckpt/train_state.pt",
                            "model.*weight*")
        self.assertIn('model.0.weight  192 bytes\n', text)
        self.assertNotIn("bias", text)

    def test_a_c_program_diagnoses_a_job(self):
        verdict = json.loads(self.example(
            "diagnose", DATA / "flight/nccl_tp_fsdp", status=1))
        self.assertEqual(verdict["verdict"]["kind"], "never_joined")

    def test_a_cpp_program_counts_entries(self):
        text = self.example("entries", DATA / "flight/nccl_tp_fsdp")
        self.assertRegex(text, r"^completed \d+\nscheduled \d+\n$")

    def test_a_cpp_program_encodes_with_its_own_transform(self):
        text = self.example("stream")
        self.assertRegex(
            text, r'^\["stream.zstd/1","stream.invert@example/1"\]: '
            r"\d+ bytes, and back\n$")

    def test_ranks_share_a_folder_that_is_removed(self):
        meeting = self.place / "meeting"
        meeting.mkdir()
        ranks = [subprocess.Popen(
            [self.examples / "temporary_folder", str(rank), "3", meeting],
            stdout=subprocess.PIPE, text=True) for rank in (2, 1, 0)]
        answers = [rank.communicate(timeout=60)[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0, 0])
        folders = {answer.split(": ")[1] for answer in answers}
        self.assertEqual(len(folders), 1)
        self.assertFalse(os.path.exists(folders.pop().strip()))

    def test_a_cpp_program_profiles_itself_by_phase(self):
        program = pathlib.Path(self.build).resolve() / "postflight"
        file = self.place / "busy.pflog"
        done = subprocess.run(
            [self.examples / "profile", file], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "POSTFLIGHT_PROGRAM": str(program)})
        if "no permission" in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual((done.returncode, done.stdout), (0, f"{file}\n"),
                         done.stderr)
        report = json.loads(run(program, "profile", "report", "--json", file))
        self.assertIn("epoch/load", {phase["name"]
                                     for phase in report["phases"]})
        # The file is there now, and is not replaced.
        done = subprocess.run([self.examples / "profile", file], text=True,
                              stderr=subprocess.PIPE)
        self.assertEqual(done.stderr, f"{file} exists; name another file\n")
        done = subprocess.run(
            [self.examples / "profile", self.place / "other.pflog"], text=True,
            stderr=subprocess.PIPE,
            env={**os.environ, "POSTFLIGHT_PROGRAM": "/nowhere/postflight"})
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nowhere/postflight", done.stderr)

    def test_a_cpp_program_profiles_its_compilation(self):
        program = pathlib.Path(self.build).resolve() / "postflight"
        file = self.place / "compile.pflog"

        def compiled(**variables):
            return subprocess.run(
                [self.examples / "compile", file], text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**os.environ, "POSTFLIGHT_PROGRAM": str(program),
                     **variables})
        done = compiled(COMPILE_STROBELIGHT_SAMPLE_RATE="6e6",
                        COMPILE_STROBELIGHT_MAX_STACK_LENGTH="many",
                        POSTFLIGHT_TAGS="nightly")
        if "no permission" in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual(
            done.stdout,
            "frame 0/0: 3 kernels\nframe 1/0: 3 kernels\n"
            "frame 2/0: a graph break\n"
            "success 2, failed 1, recursive 2, filtered 0\n", done.stderr)
        for line in (f"profile at the end of the run: file://{file}\n",
                     "Unique sample tag for this run is: ",
                     "Further tags: nightly\n",
                     "profiling frame 1/0\n",
                     "COMPILE_STROBELIGHT_MAX_STACK_LENGTH='many' is not valid",
                     "2 strobelight success runs out of 3 "):
            self.assertIn(line, done.stderr)
        report = json.loads(run(program, "profile", "report", "--json", file))
        self.assertEqual({"0/0", "1/0"} - {phase["frame_id"]
                                           for phase in report["phases"]
                                           if "backward" in phase["name"]},
                         set())
        file.unlink()
        done = compiled(COMPILE_STROBELIGHT_FRAME_FILTER=r"\d/0",
                        POSTFLIGHT_FRAME_EXCLUDE="[12]/")
        self.assertIn("success 1, failed 0, recursive 1, filtered 3\n",
                      done.stdout)
        # The work runs whether it can be profiled or not, here as the file is
        # there already.
        done = compiled(COMPILE_STROBELIGHT_FRAME_FILTER="(")
        self.assertIn("profiling not enabled: ", done.stderr)
        self.assertIn("FRAME_FILTER='(' is not valid", done.stderr)
        self.assertIn("frame 1/0: 3 kernels\n", done.stdout)
        self.assertIn("success 0, failed 0, recursive 0, filtered 0\n",
                      done.stdout)

    def test_a_c_program_ends_a_long_call(self):
        file = self.place / "sparse.safetensors"
        size = 64 << 30
        header = json.dumps({"a": {"dtype": "U8", "shape": [size],
                                   "data_offsets": [0, size]}}).encode()
        with open(file, "wb") as sparse:
            sparse.write(len(header).to_bytes(8, "little") + header + b"\n")
            sparse.truncate(8 + len(header) + size)
        started = time.monotonic()
        done = subprocess.run([self.examples / "interrupt", file, "1"],
                              stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (3, "interrupted\n"))
        self.assertLess(time.monotonic() - started, 10)
        self.assertIn('"sha256"', self.example(
            "interrupt", DATA / "ckpt/train_state.pt", "60"))

    def test_pkg_config_finds_it(self):
        if shutil.which("pkg-config") is None:
            self.skipTest("pkg-config is not installed")
        files = self.prefix / "lib/pkgconfig"
        flags = run("pkg-config", "--cflags", "--libs", "postflight",
                    env={**os.environ, "PKG_CONFIG_PATH": str(files)}).split()
        program = self.place / "by_pkg_config"
        run("cc", "-std=c11", ROOT / "examples/checkpoint.c", *flags,
            f"-Wl,-rpath,{self.prefix / 'lib'}", "-o", program)
        self.assertIn("float32",
                      run(program, DATA / "ckpt/train_state.pt"))

    def test_installs_what_belongs_to_it(self):
        installed = {path.relative_to(self.prefix).as_posix()
                     for path in self.prefix.rglob("*")}
        for name in ("include/postflight_transform.h",
                     "include/postflight/checkpoint.h",
                     "lib/libpostflight.so", "share/man/man3/libpostflight.3.gz",
                     "share/postflight/schema/trace.json",
                     "share/doc/postflight/checkpoints.md",
                     "share/doc/postflight/examples/checkpoint.c"):
            self.assertIn(name, installed)


if __name__ == "__main__":
    Install.build = sys.argv.pop()
    unittest.main()
