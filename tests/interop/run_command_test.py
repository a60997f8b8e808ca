#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tenon run` on what TensorFlow and NumPy have written: rows of arrays in batches, tables, and the checkpoints of
tf.train.Saver, by its .meta file and by the names of variables; NumPy and TensorFlow read the results."""
import json
import os
import subprocess
import tempfile

from tensorflow_environment import TENON, main_with_tensorflow


def run(*command, stdin=None):
    done = subprocess.run([TENON, "run", *map(str, command)], stdin=stdin, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stderr}")
    return done.stdout


def trained(tf, folder):
    """A graph after two steps, with its checkpoint; what the session gives for rows x."""
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4], "x")
        w = v1.get_variable("w", [4, 3], initializer=v1.random_normal_initializer(seed=1))
        b = v1.get_variable("b", [3], initializer=v1.zeros_initializer(), use_resource=True)
        y = tf.nn.softmax(tf.matmul(x, w) + b, name="y")
        loss = tf.reduce_mean(tf.square(y), name="loss")
        train = v1.train.AdamOptimizer(.1).minimize(loss, v1.train.get_or_create_global_step())
        saver = v1.train.Saver()
        session.run(v1.global_variables_initializer())
        for _ in range(2):
            session.run(train, {x: [[1, 2, 3, 4]]})
        prefix = saver.save(session, os.path.join(folder, "model"), global_step=2)
        with open(os.path.join(folder, "graph.pb"), "wb") as out:
            out.write(session.graph.as_graph_def().SerializeToString())
        # What variables of the graph are needed for y alone.
        part = v1.train.Saver({"w": w, "b": b}).save(session, os.path.join(folder, "part"),
                                                     write_meta_graph=False, write_state=False)
        rows = [[float((7 * i + j) % 5 - 2) for j in range(4)] for i in range(11)]
        return prefix, part, rows, session.run(y, {x: rows}), session.run(loss, {x: rows})


def checkpoints(tf, np, folder):
    prefix, part, rows, y, loss = trained(tf, folder)
    given, found = os.path.join(folder, "x.npy"), os.path.join(folder, "y.npy")
    np.save(given, np.array(rows))  # doubles
    graph = os.path.join(folder, "graph.pb")
    for command in ([prefix + ".meta", "--checkpoint", prefix], [prefix + ".meta", "--checkpoint", folder],
                    [graph, "--checkpoint", prefix], [graph, "--checkpoint", part]):
        run(*command, "--feed", f"x={given}", "--batch", 4, "--fetch", "y", "--output", found)
        assert np.allclose(np.load(found), y, rtol=1e-5), command
        text = os.path.join(folder, "loss.json")
        run(*command, "--feed", f"x={given}", "--fetch", "loss", "--output", text)
        with open(text, encoding="utf-8") as file:
            assert abs(json.load(file)["loss"] - loss) < 1e-5
    done = subprocess.run([TENON, "run", prefix + ".meta", "--checkpoint", prefix, "--fetch", "b"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "node 'b' is the handle of a variable, whose value is b/Read/ReadVariableOp" \
        in done.stderr, done.stderr
    # Training goes on from where TensorFlow was.
    run(prefix + ".meta", "--checkpoint", prefix, "--feed", f"x={given}", "--target", "Adam", "--steps", 3,
        "--fetch", "global_step/Read/ReadVariableOp", "--output", found)
    assert np.load(found).dtype == np.int64 and np.load(found)[0] in (2, 3), np.load(found)


def arrays(np, folder):
    graph = os.path.join(folder, "neg.pbtxt")
    path, found = os.path.join(folder, "a.npy"), os.path.join(folder, "b.npy")
    rng = np.random.default_rng(1)
    for name, dtype in (("DT_FLOAT", np.float32), ("DT_DOUBLE", np.float64), ("DT_INT32", np.int32),
                        ("DT_INT64", np.int64), ("DT_HALF", np.float16), ("DT_COMPLEX64", np.complex64)):
        with open(graph, "w", encoding="ascii") as out:
            out.write(f'node {{ name: "x" op: "Placeholder" attr {{ key: "dtype" value {{ type: {name} }} }} }} '
                      f'node {{ name: "y" op: "Neg" input: "x" attr {{ key: "T" value {{ type: {name} }} }} }}')
        for shape in ((7,), (7, 2), (5, 2, 3)):
            values = (100 * rng.standard_normal(shape)).astype(dtype)
            for array in (values, np.asfortranarray(values), values.astype(values.dtype.newbyteorder(">"))):
                np.save(path, array)
                run(graph, "--feed", f"x={path}", "--batch", 2, "--fetch", "y", "--output", found)
                result = np.load(found)
                assert result.dtype == dtype and np.array_equal(result, -values), (name, shape)
        if name != "DT_COMPLEX64":
            values = values.reshape(5, 6)
            table = os.path.join(folder, "t.csv")
            np.savetxt(table, values, delimiter=",", header="six columns")
            run(graph, "--feed", f"x={table}", "--fetch", "y", "--output", os.path.join(folder, "u.csv"))
            result = np.loadtxt(os.path.join(folder, "u.csv"), delimiter=",", skiprows=1, dtype=dtype)
            assert np.array_equal(result, -values), name
            with open(path, "wb") as out:
                np.save(out, values)
            with open(path, "rb") as stdin:
                text = run(graph, "--feed", "x=-", "--batch", 2, "--fetch", "y", "--output", "-", stdin=stdin)
            assert np.array_equal(np.loadtxt(text.splitlines()[1:], delimiter=",", dtype=dtype), -values), name


def main():
    import numpy as np
    import tensorflow as tf
    tf.get_logger().setLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        arrays(np, folder)
        checkpoints(tf, np, folder)
    return 0


if __name__ == "__main__":
    main_with_tensorflow(main)
