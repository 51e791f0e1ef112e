"""Runs the command it is given and writes what it cost, and its exit ``code``, to stdout as JSON.

A process of its own and without any import worth mentioning: a new process begins with the memory of the one that
starts it, and Linux counts that into its peak.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

began = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
seconds = time.perf_counter() - began
process.returncode = os.waitstatus_to_exitcode(status)
told = {
    "seconds": seconds,
    "cpu_seconds": usage.ru_utime + usage.ru_stime,
    "peak_bytes": usage.ru_maxrss * 1024,  # Linux counts in KiB
    "code": process.returncode,
}
json.dump(told, sys.stdout)
