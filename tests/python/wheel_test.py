"""Installs the wheel without a network, in a fresh virtual environment for each
Python at hand, and runs the package's tests and programs there.

    tests/python/wheel_test.py build/release
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSIONS = pathlib.Path(os.environ.get("PYENV_ROOT",
                                       os.path.expanduser("~/.pyenv"))) / "versions"
NEWEST = 14


def pythons():
    found = {}
    for path in sorted(VERSIONS.glob("3.*/bin/python")):
        match = re.match(r"3\.(\d+)\.", path.parts[-3])
        if match and int(match.group(1)) >= 9:
            found[int(match.group(1))] = path
    return found


def run(*command, **options):
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith(("POSTFLIGHT_", "PYTHON"))}
    done = subprocess.run([str(word) for word in command], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=environment, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


class Wheel(unittest.TestCase):
    build = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.place = pathlib.Path(cls.folder.name)
        run(sys.executable, "-B", ROOT / "python/make_wheel.py", cls.build,
            cls.place)
        cls.wheel, = cls.place.glob("*.whl")

    def test_is_for_all_pythons_and_holds_what_it_needs(self):
        self.assertRegex(self.wheel.name,
                         r"^postflight-[\d.]+-py3-none-manylinux_2_34_x86_64")
        with zipfile.ZipFile(self.wheel) as archive:
            self.assertIsNone(archive.testzip())
            names = set(archive.namelist())
        for name in ("postflight/lib/libpostflight.so.0",
                     "postflight/bin/postflight", "postflight/py.typed",
                     "postflight/_phase_module.py",
                     "postflight/compatibility/torchfrtrace",
                     "postflight/include/postflight/postflight.h"):
            self.assertIn(name, names)

    def test_the_same_input_gives_the_same_bytes(self):
        again = self.place / "again"
        run(sys.executable, "-B", ROOT / "python/make_wheel.py", self.build,
            again)
        self.assertEqual(self.wheel.read_bytes(),
                         (again / self.wheel.name).read_bytes())

    def test_works_on_each_python(self):
        at_hand = pythons()
        for minor in range(9, NEWEST + 1):
            if minor not in at_hand:
                print(f"Python 3.{minor} is not here: SKIPPED", flush=True)
        if not at_hand:
            self.skipTest(f"no Python below {VERSIONS}")
        for minor, python in at_hand.items():
            with self.subTest(python=minor):
                self.works_on(python, self.place / f"env{minor}")
                print(f"Python 3.{minor}: works", flush=True)

    def works_on(self, python, place):
        run(python, "-m", "venv", place)
        run(place / "bin/pip", "install", "--no-index", "--no-deps", self.wheel)
        program = place / "bin/postflight"
        self.assertIn("0.1.0", run(program, "version"))
        paths = dict(re.findall(r"^(\w+)\s+(.*)$", run(program, "paths"),
                                re.MULTILINE))
        for path in paths.values():
            self.assertTrue(path.startswith(str(place)), path)
        listing = run(pathlib.Path(paths["compatibility"]) / "torchfrtrace",
                      ROOT / "tests/data/flight/nccl_missing_rank")
        self.assertIn("Not all ranks joining collective", listing)
        tests = run(place / "bin/python", "-B",
                    ROOT / "tests/python/package_test.py", paths["program"],
                    cwd=place)
        self.assertIn("OK", tests)


if __name__ == "__main__":
    Wheel.build = sys.argv.pop()
    unittest.main()
