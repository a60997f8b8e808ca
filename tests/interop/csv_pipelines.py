# SPDX-License-Identifier: Apache-2.0
"""Input pipelines that read CSV files."""
import os


def csv_files(tf, folder):
    """Records with quotes, missing fields and mistakes."""
    from tensorflow.python.data.experimental.ops import readers
    from tensorflow.python.data.ops import dataset_ops
    files = {"plain": "1,2.5,a\n3,,\"b, \"\"c\"\"\"\r\n-4,1e3,\n", "lines": "x,y\n7,\"two\nlines\"\n\n8,z\n",
             "wrong": "1,2\n3\n4,5,6\nseven,8\n9,\"x\ny\n", "semicolons": "1;?;3;4\n5;6;?;8\n", "one": "1\n\n3",
             "open": "1,x\n2,\"open\n3,y\n", "open_first": "4,\"open", "quote": "5,a\"b\n6,z\n7,a\"b,\"c\n8,z\n"}
    names = {}
    for name, text in files.items():
        names[name] = os.path.join(folder, name + ".csv")
        with open(names[name], "w", newline="", encoding="utf-8") as f:
            f.write(text)
    csv = tf.data.experimental.CsvDataset
    return {
        "csv": csv(names["plain"], [tf.int32, [-1.], tf.string]),
        "csv_required": csv(names["plain"], [tf.int64, tf.float64, [""]]),
        "csv_header": csv(names["lines"], [tf.float32, [""]], header=True),
        "csv_one_column": csv(names["one"], [[0]]), "csv_two_files": csv([names["one"]] * 2, [[0]], header=True),
        "csv_wrong": csv(names["wrong"], [[0], [""]]),
        "csv_select": csv(names["semicolons"], [[0], [0]], field_delim=";", na_value="?", select_cols=[1, 3]),
        "csv_exclude": dataset_ops.DatasetV1Adapter(readers.CsvDatasetV2(
            names["semicolons"], [[0], [0]], field_delim=";", na_value="?", exclude_cols=[0, 2])),
        "csv_no_quotes": csv(names["plain"], [[""]] * 3, use_quote_delim=False),
        # A quote that is not closed takes no lines of the next file.
        "csv_open": csv([names[k] for k in ("open", "open_first", "open_first", "quote", "one")], [[0], [""]]),
        "csv_open_unwanted": csv([names["open"], names["one"]], [[0]], select_cols=[0]),
        "csv_no_file": csv(os.path.join(folder, "none"), [[0]]),
    }
