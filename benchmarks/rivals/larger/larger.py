"""The larger of two numbers a line, the way most people write it in Python."""

import sys

for _ in range(int(sys.stdin.readline())):
    a, b = map(int, sys.stdin.readline().split())
    print(max(a, b))
