#!/usr/bin/python3
"""Prints how fast the flight database is written, against a bare loop.

    bench/flight_sqlite_table.py build/release
"""

import pathlib
import subprocess
import sys
import tempfile

HEAD = ["job", "rows", "file", "matching", "ours", "bare loop",
        "bare loop and indexes", "ratio, rows", "ratio, whole file"]


def main():
    bench = pathlib.Path(sys.argv[1]) / "bench"
    print("| " + " | ".join(HEAD) + " |")
    print("|" + "---|" * len(HEAD), flush=True)
    for layout in (["--tp", "8", "--dp", "32"],
                   ["--tp", "4", "--pp", "4", "--dp", "16"]):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([bench / "make_job", folder, "--entries", "2000",
                            *layout], stdout=subprocess.DEVNULL, check=True)
            subprocess.run([bench / "flight_sqlite_bench", folder, "5"],
                           check=True)


if __name__ == "__main__":
    main()
