#!/bin/sh
# Creates .venv with the packages that building and testing need. `tools/setup` and `tools/python` call it.
set -eu
cd "$(dirname "$0")"
for python in "${PYTHON:-}" python3 /usr/bin/python3; do
    [ -n "$python" ] || continue
    "$python" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
    rm -rf .venv
    "$python" -m venv .venv
    .venv/bin/pip install --quiet --disable-pip-version-check --no-deps -r requirements.txt
    cp requirements.txt .venv/requirements.txt
    exit 0
done
echo "python: Python 3.11 or newer with its module venv is missing" >&2
exit 1
