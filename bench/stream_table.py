#!/usr/bin/env python3
"""Prints the throughput of streams and of the underlying libraries.

usage: bench/stream_table.py BUILD_FOLDER
"""

import os
import subprocess
import sys

subprocess.run([os.path.join(sys.argv[1], "bench", "stream_bench")], check=True)
