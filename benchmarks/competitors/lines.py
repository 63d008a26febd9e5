"""Counts the lines of a command's output in the usual Python style.

Usage: lines.py COMMAND [ARG...]
"""

import subprocess
import sys

process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
count = 0
for line in process.stdout:
    count += 1
if process.wait() != 0:
    sys.exit(f"{sys.argv[1]}: status {process.returncode}")
print(f"count={count}")
