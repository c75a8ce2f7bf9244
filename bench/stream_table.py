#!/usr/bin/env python3
"""Prints how fast streams are beside the libraries they are made of.

usage: bench/stream_table.py BUILD_FOLDER
"""

import os
import subprocess
import sys

subprocess.run([os.path.join(sys.argv[1], "bench", "stream_bench")], check=True)
