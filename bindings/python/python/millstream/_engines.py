"""The packages that optional extras install, and their tested versions."""

from __future__ import annotations

import importlib
import re
import warnings
from typing import Any

#: For each extra: the distribution, whose module has the same name, the first tested version, and the first version
#: that is not tested. They are those of the extras in pyproject.toml. `tools/cluster` tests the first and the last one.
TESTED = {
    "arrow": ("pyarrow", "25.0", "27"),
    "daft": ("daft", "0.7.26", "0.8"),
    "dask": ("dask", "2025.9", "2026.9"),
    "polars": ("polars", "1.33", "2.2"),
    "ray": ("ray", "2.50", "2.61"),
    "spark": ("pyspark", "4.2", "4.4"),
}


def load(extra: str, *modules: str) -> Any:
    """Imports the modules of an extra and returns the last one. An untested version is a warning, and a missing package
    an error that names the extra."""
    distribution, first, beyond = TESTED[extra]
    try:
        loaded = [importlib.import_module(module) for module in modules]
        # The distribution may have no metadata: the workers of Spark import it from an archive.
        version = importlib.import_module(distribution).__version__
    except ImportError as error:
        message = f"millstream.{extra} needs {error.name or distribution}: install millstream[{extra}]"
        raise ModuleNotFoundError(message, name=error.name) from error
    if not _numbers(first) <= _numbers(version) < _numbers(beyond):
        tested = f"it is tested with {first} and later, before {beyond}"
        warnings.warn(f"millstream.{extra} runs with {distribution} {version}, but {tested}", stacklevel=3)
    return loaded[-1]


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]
