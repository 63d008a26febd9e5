"""Prints the larger of two numbers per line, in the usual Python style."""

import sys

for _ in range(int(sys.stdin.readline())):
    a, b = map(int, sys.stdin.readline().split())
    print(max(a, b))
