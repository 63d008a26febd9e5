"""The examples of the README and their output. As a script, this writes them to a directory so that they can be
checked."""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
EXAMPLES: list[tuple[str, str]] = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)

if __name__ == "__main__":
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for number, (program, _) in enumerate(EXAMPLES):
        (directory / f"readme_{number}.py").write_text(program, encoding="utf-8")
