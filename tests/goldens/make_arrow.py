"""Makes tests/data/data/arrow/: Arrow streams by pyarrow, their rows as JSON lines, and streams that are refused.

Needs: pip install pyarrow==26.0.1
Run:   python3 tests/goldens/make_arrow.py
"""

import datetime
import json
import pathlib

import pyarrow as pa

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "data" / "arrow"

SCHEMA = pa.schema([
    ("text", pa.string()), ("long", pa.large_string()), ("i8", pa.int8()), ("u16", pa.uint16()), ("i32", pa.int32()), ("i64", pa.int64()),
    ("u64", pa.uint64()), ("f32", pa.float32()), ("f64", pa.float64()), ("flag", pa.bool_()), ("words", pa.list_(pa.string())),
    ("large", pa.large_list(pa.int16())), ("pair", pa.list_(pa.bool_(), 2)),
    ("nested", pa.struct([("label", pa.string()), ("counts", pa.list_(pa.struct([("n", pa.uint8())])))])),
])


def row(i):
    whole = {
        "text": ["", "é", "日本\n", "a\"b"][i % 4], "long": "x" * i, "i8": -i, "u16": 65535 - i, "i32": -2**31 + i, "i64": 2**63 - 1 - i,
        "u64": 2**64 - 1 - i, "f32": i / 4, "f64": 0.1 * i, "flag": i % 3 == 0, "words": ["w"] * (i % 3), "large": [i, -i][: i % 3],
        "pair": [True, i % 2 == 0], "nested": {"label": str(i), "counts": [{"n": i}, {"n": None}][: i % 3]},
    }
    if i % 5 == 3:
        return {key: None for key in whole}
    return {key: None if (i + place) % 7 == 0 else value for place, (key, value) in enumerate(whole.items())}


def write(name, table, batch=None, options=None):
    with pa.ipc.new_stream(OUT / f"{name}.arrow", table.schema, options=options) as stream:
        stream.write_table(table, max_chunksize=batch)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    rows = [row(i) for i in range(20)]
    write("types", pa.Table.from_pylist(rows, SCHEMA), batch=9)
    (OUT / "types.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    text = pa.table({"word": pa.array(["a", "b", "a"] * 20)})
    write("no_rows", text.slice(0, 0))
    write("dictionary", pa.table({"word": text["word"].dictionary_encode()}))
    write("compressed", text, options=pa.ipc.IpcWriteOptions(compression="lz4"))
    write("timestamp", pa.table({"seen": pa.array([datetime.datetime(2024, 1, 1)])}))


if __name__ == "__main__":
    main()
