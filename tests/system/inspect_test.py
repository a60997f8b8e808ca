#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tenon inspect` on checkpoints that TensorFlow wrote: what is in them, and what differs."""
import os
import re
import shutil
import sys
import tempfile

from small_graphs import FLOAT, node, placeholder, write_graph
from tenon_process import SOURCE, TENON, main, run

FOLDER = os.path.join(SOURCE, "tests", "data", "checkpoints", "checkpoint_small")
SMALL, SHARDED = os.path.join(FOLDER, "model.ckpt-42"), os.path.join(FOLDER, "sharded")


def inspect(*arguments):
    done = run(TENON, "inspect", *arguments)
    return done.returncode, done.stdout.splitlines(), done.stderr


def listing():
    code, lines, _ = inspect(SMALL)
    assert code == 0 and "a  float[2,3], 24 bytes" in lines, lines
    assert "part  float[10,2], 80 bytes, in 3 slices" in lines, lines
    assert lines[-1] == f"{SMALL}: 8 tensors, 36 elements, 352 bytes, in 1 data file", lines
    assert inspect(SMALL + ".index")[1] == lines
    assert inspect(FOLDER)[1] == lines  # by its state file


def printing():
    code, lines, _ = inspect(SMALL, "--print", "half", "--print", "flag")
    assert code == 0 and lines == ["half = half[2] 1.5 -2", "flag = bool[] true"], lines


def comparing():
    assert inspect(SMALL, "--compare", FOLDER)[:2] == (0, ["8 tensors are the same, 0 differ"])
    code, lines, _ = inspect(SHARDED, "--compare", SMALL)
    assert code == 1 and lines[-1] == "2 tensors are the same, 6 differ", lines
    assert f"flag: only in {SMALL}" in lines, lines


def mistakes():
    for arguments, message in (
            ([SMALL, "--print", "hafl"], f"the checkpoint '{SMALL}' lacks 'hafl'; it has a float[2,3], "),
            ([SMALL, "--print", "hafl"], "did you mean half?"),
            ([SMALL + "0", "--print", "a"], f"there is no checkpoint '{SMALL}0', but "),
            ([SMALL + "0", "--print", "a"], "did you mean model.ckpt-42?"),
            ([SMALL + "0"], f"there is no checkpoint '{SMALL}0', but {SMALL}"),
            ([SMALL, "--compare", SMALL + "0"], "--compare: there is no checkpoint"),
            ([SMALL, "--coefficients"], f"the checkpoint '{SMALL}' has no coefficients of a linear model"),
            ([SMALL, "--coefficients", "--output", SMALL + "/c.csv"], f"--output: cannot write '{SMALL}/c.csv'")):
        code, lines, error = inspect(*arguments)
        assert code == 1 and not lines and message in error, (arguments, lines, error)


def missing_data():
    """The names are there, and a line that says what is not."""
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "m")
        shutil.copy(SMALL + ".index", prefix + ".index")
        code, lines, error = inspect(prefix)
        data = prefix + ".data-00000-of-00001"
        assert code == 1 and "a  float[2,3], 24 bytes" in lines, lines
        assert f"DATA_LOSS: cannot open '{data}': No such file or directory" in error, error
        assert re.search(r"the values of \d tensors are missing", error), error
        shutil.copy(SMALL + ".data-00000-of-00001", data)
        assert inspect(prefix)[0] == 0
        os.truncate(data, os.path.getsize(data) - 10)
        code, lines, error = inspect(prefix)
        assert code == 1 and re.search(r"has \d+ bytes, wanted \d+", error), error


def folders():
    with tempfile.TemporaryDirectory() as folder:
        code, _, error = inspect(folder)
        assert code == 1 and "so that it is neither a SavedModel nor a folder of checkpoints" in error, error
        assert "; it has nothing" in error, error
        shutil.copy(SMALL + ".index", os.path.join(folder, "m-7.index"))
        shutil.copy(SMALL + ".meta", os.path.join(folder, "m-7.meta"))
        os.makedirs(os.path.join(folder, "export", "variables"))
        with open(os.path.join(folder, "export", "saved_model.pbtxt"), "w", encoding="ascii") as out:
            out.write('saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: "serve" } }')
        error = inspect(folder)[2]
        for wanted in (f"SavedModels: {folder}/export", f"graphs: {folder}/m-7.meta",
                       f"checkpoints: {folder}/m-7"):
            assert wanted in error, (wanted, error)
        # The variables of a SavedModel, by its folder.
        for suffix in (".index", ".data-00000-of-00001"):
            shutil.copy(SMALL + suffix, os.path.join(folder, "export", "variables", "variables" + suffix))
        code, lines, _ = inspect(os.path.join(folder, "export"), "--print", "half")
        assert code == 0 and lines == ["half = half[2] 1.5 -2"], lines


CALLS = """
library { function { signature { name: "Half" input_arg { name: "a" type: DT_FLOAT }
    output_arg { name: "b" type: DT_FLOAT } }
  node_def { name: "two" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 2 } } } }
  node_def { name: "b" op: "RealDiv" input: "a" input: "two:output:0" attr { key: "T" value { type: DT_FLOAT } } }
  ret { key: "b" value: "b:z:0" } } }
"""


def what_needs_no_kernel():
    """Calls of functions run as their bodies; only what cannot run is marked."""
    types = {"Tin": "list { type: DT_FLOAT }", "Tout": "list { type: DT_FLOAT }"}
    text = (placeholder("x", FLOAT, [])
            + node("call", "PartitionedCall", "x", f='func { name: "Half" }', **types)
            + node("stateful", "StatefulPartitionedCall", "x", f='func { name: "Half" }', **types)
            + node("named", "Half", "x")
            + node("lost", "PartitionedCall", "x", f='func { name: "Gone" }', **types)
            + node("declared", "AnonymousIterator", output_types="list { type: DT_FLOAT }",
                   output_shapes="list { shape { } }") + CALLS)
    with tempfile.TemporaryDirectory() as folder:
        graph = write_graph(folder, text)
        code, lines, error = inspect(graph)
        assert code == 0, error
        for line in ("       1  Half", "       1  StatefulPartitionedCall",
                     "       1  AnonymousIterator  (no kernel)",
                     "       2  PartitionedCall  (no function Gone)"):
            assert line in lines, (line, lines)
        lines = inspect(graph, "--nodes")[1]
        assert [line.split(" = ")[0] for line in lines if line.endswith(")")
                and "  (no " in line] == ["lost", "declared"], lines
        done = run(TENON, "run", graph, "--feed", "x=3", "--fetch", "call,stateful,named")
        assert done.returncode == 0 and done.stdout.count("= float[] 1.5") == 3, done


if __name__ == "__main__":
    sys.exit(main([("a list", listing), ("values", printing), ("differences", comparing),
                   ("mistakes", mistakes), ("missing data", missing_data), ("folders", folders),
                   ("what needs no kernel", what_needs_no_kernel)]))
