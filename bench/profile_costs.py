"""What profiling costs beyond samples: starting, forking, idle threads.

profile_costs.py <postflight>

Processor time where possible, which does not depend on what else the machine
does; forks are timed by the clock, as their cost is in both processes.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

PYTHON = "/usr/bin/python3"
FORKS = """
import os, statistics, time
times = []
for _ in range(300):
    start = time.perf_counter()
    if os.fork() == 0:
        os._exit(0)
    os.wait()
    times.append(time.perf_counter() - start)
print(statistics.median(times) * 1e3)
"""
IDLE = """
import threading, time
for _ in range(300):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("ready", flush=True)
time.sleep(60)
"""


def run(*command):
    """Processor time and what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = (after.ru_utime + after.ru_stime
            - before.ru_utime - before.ru_stime)
    return used, done.stdout


def start_up(front):
    """CPU time of a program that does nothing, and how long it took."""
    begun = time.perf_counter()
    used, _ = run(*front, PYTHON, "-c", "pass")
    return used, time.perf_counter() - begun


def main():
    with tempfile.TemporaryDirectory() as folder:
        profile = [os.path.abspath(sys.argv[1]), "profile", "--quiet",
                   "--force", "-o", os.path.join(folder, "log.pflog")]
        alone, profiled = [], []
        for _ in range(25):
            alone.append(start_up([]))
            profiled.append(start_up([*profile, "--"]))
        print("| | alone | profiled |\n|---|---|---|")
        for name, part in (
                ("`python3 -c pass`, CPU time of both processes", 0),
                ("the same, until the profiler has ended", 1)):
            medians = [statistics.median(times[part] for times in each) * 1e3
                       for each in (alone, profiled)]
            print(f"| {name} | {medians[0]:.1f} ms | {medians[1]:.1f} ms |")
        forks = [float(run(*front, PYTHON, "-c", FORKS)[1])
                 for front in ([], [*profile, "--"])]
        print(f"| fork and wait | {forks[0]:.2f} ms | {forks[1]:.2f} ms |")
        with subprocess.Popen([PYTHON, "-c", IDLE], text=True,
                              stdout=subprocess.PIPE) as idle:
            idle.stdout.readline()
            time.sleep(1)
            used, _ = run(*profile, "--rate", "999", "--pid", str(idle.pid),
                          "--duration", "5s")
            idle.kill()
        print(f"| attached to 300 idle threads, 999 Hz | | "
              f"{used / 5 * 100:.1f} % of a core |")
    print(f"\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
