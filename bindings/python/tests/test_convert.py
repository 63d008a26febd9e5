"""What `millstream convert` writes, read by other programs and compared with Python's own parsers. Spark reads it in
`tests/cluster`."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from converted import COLUMNS, convert, orders, write_orders, write_people


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    path = tmp_path_factory.mktemp("convert") / "people.csv"
    return path, write_people(path)


@pytest.mark.parametrize("options", [[], ["-j", "2", "--row-group-size", "1000"], ["--compression", "snappy"]])
def test_parquet_of_csv_is_what_was_read(people: tuple[Path, pa.Table], tmp_path: Path, options: list[str]) -> None:
    path, expected = people
    out = tmp_path / "people.parquet"
    convert(path, "--null", "NA", "-o", out, *options)
    table = pyarrow.parquet.read_table(out)
    assert table.schema.remove_metadata().equals(expected.schema)
    assert table.equals(expected)
    assert table["x"].to_pylist() == expected["x"].to_pylist()
    # Other readers have the same values, and their own names for the types.
    assert pl.read_parquet(out).to_arrow().cast(expected.schema).equals(expected)
    columns = ", ".join(f'"{name}"' for name in COLUMNS)
    seen = duckdb.connect()
    seen.execute("SET TimeZone = 'UTC'")
    read = seen.sql(f"SELECT {columns} FROM read_parquet(?)", params=[str(out)]).to_arrow_table()
    assert read.cast(expected.schema).equals(expected)


def test_arrow_of_csv_is_what_was_read(people: tuple[Path, pa.Table], tmp_path: Path) -> None:
    path, expected = people
    convert(path, "--null", "NA", "-o", tmp_path / "people.arrow")
    with pa.OSFile(str(tmp_path / "people.arrow")) as file:
        assert pyarrow.ipc.open_file(file).read_all().replace_schema_metadata().equals(expected)
    convert(path, "--null", "NA", "-o", tmp_path / "people.arrows")
    with pa.OSFile(str(tmp_path / "people.arrows")) as file:
        assert pyarrow.ipc.open_stream(file).read_all().replace_schema_metadata().equals(expected)


def test_decimals_keep_their_digits(tmp_path: Path) -> None:
    texts = [f"{number}.{number % 100:02}" for number in range(1, 500)]
    path = tmp_path / "prices.csv"
    path.write_text("price\n" + "\n".join(texts) + "\n")
    convert(path, "--decimals", "-o", tmp_path / "prices.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "prices.parquet")
    assert pa.types.is_decimal128(table.schema.types[0])
    assert table["price"].to_pylist() == [Decimal(text) for text in texts]


@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_parquet_of_json_is_what_was_read(tmp_path: Path, form: str) -> None:
    values, path = orders(), tmp_path / f"orders.{form}"
    write_orders(path, values)
    convert(path, "-o", tmp_path / "orders.parquet", "-j", "2")
    out = tmp_path / "orders.parquet"
    table = pyarrow.parquet.read_table(out)
    place = pa.struct([("city", pa.string()), ("zip", pa.int64())])
    item = pa.struct([("sku", pa.string()), ("count", pa.int64())])
    kinds = [pa.int64(), pa.float64(), pa.string(), pa.bool_(), place, pa.list_(pa.string()), pa.list_(item)]
    assert table.column_names == ["id", "x", "name", "ok", "place", "tags", "items"]
    assert [str(kind).replace("item: ", "") for kind in table.schema.types] == [
        str(kind).replace("item: ", "") for kind in kinds
    ]
    expected = [{"place": None} | value for value in values]
    assert table.to_pylist() == expected
    assert pl.read_parquet(out).to_dicts() == expected
    assert (
        duckdb.connect().sql("SELECT * FROM read_parquet(?)", params=[str(out)]).to_arrow_table().to_pylist()
        == expected
    )
