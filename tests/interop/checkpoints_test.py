#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints between tf.train.Saver and Saver, both ways: variables of either kind and every dtype,
under other names, in parts, and written in shards by parameter servers; the state file and .meta."""
import contextlib
import os
import subprocess
import tempfile

from tensorflow_environment import TENON, Servers, main_with_tensorflow

PROGRAM = os.path.join(os.path.dirname(TENON), "checkpoint_program")
ROWS, COLUMNS = 12, 3
NAMES = ["float", "double", "int32", "int64", "string", "bool", "bfloat16", "half"]


def program(command, folder, kind, parts, renamed="", target=None):
    run = subprocess.run([PROGRAM, command, folder, kind, str(parts), renamed]
                         + ([target] if target else []), capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{command} {kind} in {parts} parts: {run.stderr}")
    return run.stdout.strip()


def value(tf, np, name):
    """What every variable of that dtype holds."""
    dtype = {"bfloat16": tf.bfloat16, "half": tf.float16}.get(name) or tf.as_dtype(name)
    i = np.arange(ROWS * COLUMNS)
    if name == "string":
        flat = np.array([b"text %d" % k for k in i], object)
    elif name == "bool":
        flat = i % 3 == 0
    elif name.startswith("int"):
        flat = (i - 7).astype(dtype.as_numpy_dtype)
    else:
        flat = (i * 0.25 - 2).astype(dtype.as_numpy_dtype)
    return flat.reshape(ROWS, COLUMNS)


class Variables:
    """TensorFlow's variables of those names in a new graph, on two parameter servers or nowhere in
    particular; with these values, or zeros."""

    def __init__(self, tf, np, kind, parts, save, ps=False):
        self.wanted, self.variables, self.number = {}, {}, 0
        self.tf, self.kind, self.ps = tf, kind, ps
        for name in NAMES:
            self.add(f"v_{name}", value(tf, np, name), save)
        self.add("v_float/Momentum", value(tf, np, "float"), save)
        self.add("table", value(tf, np, "float"), save, tf.fixed_size_partitioner(parts))

    def add(self, name, wanted, save, partitioner=None):
        tf = self.tf
        zeros = tf.zeros(wanted.shape, tf.as_dtype(wanted.dtype) if wanted.dtype != object
                         else tf.string)
        device = f"/job:ps/task:{self.number % 2}" if self.ps else None
        self.number += 1
        initial = tf.constant(wanted) if save else zeros

        def part(shape, dtype, partition_info):
            return tf.slice(initial, partition_info.var_offset, shape)

        with tf.device(device):
            self.variables[name] = tf.get_variable(
                name, wanted.shape if partitioner else None, initial.dtype,
                part if partitioner else initial, use_resource=self.kind == "resource",
                partitioner=partitioner)
        self.wanted[name] = wanted

    def check(self, np, session):
        for name, wanted in self.wanted.items():
            found = session.run(self.tf.convert_to_tensor(self.variables[name]))
            assert found.dtype == wanted.dtype and np.array_equal(found, wanted), (name, found)


@contextlib.contextmanager
def cluster(sharded):
    """The address of the worker of a new cluster, or nothing."""
    if not sharded:
        yield None
        return
    with Servers({"ps": 2, "worker": 1}) as servers:
        yield servers.target("worker")


def one_way(tf, np, sharded, kind, parts, other_parts, renamed):
    """Tenon saves, TensorFlow restores."""
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        with cluster(sharded) as target:
            prefix = program("save", folder, kind, parts, renamed, target)
        assert prefix == tf.train.latest_checkpoint(folder) == folder + "/model-5", prefix
        state = tf.train.get_checkpoint_state(folder)
        assert list(state.all_model_checkpoint_paths) == [prefix], state
        shards = [f for f in os.listdir(folder) if ".data-" in f]
        assert len(shards) == (2 if sharded else 1), shards
        variables = Variables(tf, np, kind, other_parts, save=False)
        saver = tf.train.Saver(
            {renamed + name: v for name, v in variables.variables.items()} if renamed else None)
        with tf.Session() as session:
            saver.restore(session, prefix)
            variables.check(np, session)


def other_way(tf, np, sharded, kind, parts, other_parts, renamed):
    """TensorFlow saves, Tenon restores."""
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        variables = Variables(tf, np, kind, parts, save=True, ps=sharded)
        saver = tf.train.Saver(
            {renamed + name: v for name, v in variables.variables.items()} if renamed else None,
            sharded=sharded)
        with cluster(sharded) as target, tf.Session(target or "") as session:
            session.run(tf.global_variables_initializer())
            saver.save(session, folder + "/model", global_step=5)
            saver.save(session, folder + "/model", global_step=6)
        with cluster(sharded) as target:
            program("restore", folder, kind, other_parts, renamed, target)


def meta_graphs(tf, np, kind):
    """TensorFlow goes on with the graph of a .meta file, and saves it for Tenon again."""
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        prefix = program("save", folder, kind, 2)
        saver = tf.train.import_meta_graph(prefix + ".meta")
        assert len(tf.global_variables()) == len(NAMES) + 3, tf.global_variables()
        trainable = [v.op.name for v in tf.trainable_variables()]
        assert "v_float" in trainable and "v_float/Momentum" not in trainable, trainable
        with tf.Session() as session:
            saver.restore(session, prefix)
            by_name = {v.op.name: v for v in tf.global_variables()}
            assert np.array_equal(session.run(by_name["table/part_1"]),
                                  value(tf, np, "float")[ROWS // 2:])
            saver.save(session, folder + "/again", global_step=6)
        os.remove(prefix + ".index")
        program("restore", folder, kind, 3)


def mixed_cluster():
    """A shard of TensorFlow's parameter server and one of Tenon's."""
    tasks = {"jobs": {"ps": 2, "worker": 1}, "tensorflow": [("ps", 0)]}
    with tempfile.TemporaryDirectory() as folder:
        with Servers(**tasks) as servers:
            program("save", folder, "resource", 2, "", servers.target("worker"))
        with Servers(**tasks) as servers:
            program("restore", folder, "resource", 3, "", servers.target("worker"))


def replaced(tf, np):
    """A checkpoint that took the place of another, and has an empty data file more."""
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        program("save", folder, "ref", 1)
        prefix = program("save", folder, "ref", 1)
        assert os.path.exists(prefix + ".data-00001-of-00002")
        variables = Variables(tf, np, "ref", 1, save=False)
        with tf.Session() as session:
            saver = tf.train.Saver()
            saver.restore(session, prefix)
            variables.check(np, session)
            saver.save(session, folder + "/model", global_step=5)
        program("restore", folder, "ref", 1)


def compared(tf, np):
    """`tenon inspect` says what differs between two checkpoints, and prints what is in them."""
    def inspect(*arguments):
        run = subprocess.run([TENON, "inspect", *arguments], capture_output=True, text=True,
                             check=False)
        return run.returncode, run.stdout.splitlines()

    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        w = tf.get_variable("w", initializer=np.array([[1., 2.], [3., 4.]], np.float32))
        b = tf.get_variable("b", initializer=tf.constant([7, 8, 9], tf.int64))
        s = tf.get_variable("s", initializer=tf.constant(["a", "b"]), dtype=tf.string)
        more = tf.train.Saver([w, b, s])
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            one = more.save(session, folder + "/one")
            session.run([w.assign([[1., 2.5], [-3., 4.]]), s.assign(["a", "c"])])
            two = tf.train.Saver({"w": w, "s": s, "x": b}).save(session, folder + "/two")
        assert inspect(folder) == inspect(two) == inspect(two + ".index") == (0, [
            "s  string[2], 8 bytes", "w  float[2,2], 16 bytes", "x  int64[3], 24 bytes",
            f"{two}: 3 tensors, 9 elements, 48 bytes, in 1 data file"]), inspect(folder)
        assert inspect(one, "--print", "w", "--print", "b") == (0, [
            "w = float[2,2] 1 2 3 4", "b = int64[3] 7 8 9"])
        assert inspect(one, "--compare", two) == (1, [
            f"b: only in {one}", "s: 1 of 2 elements differ",
            "w: 2 of 4 elements differ, by up to 6 at [1,0]", f"x: only in {two}",
            "0 tensors are the same, 4 differ"]), inspect(one, "--compare", two)
        assert inspect(one, "--compare", one) == (0, ["3 tensors are the same, 0 differ"])
        assert inspect(one, "--print", "nothing")[0] == inspect(folder + "/three")[0] == 1


def main():
    import numpy as np
    import tensorflow.compat.v1 as tf
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    for kind in ("ref", "resource"):
        for arguments in ((False, kind, 3, 2, ""), (False, kind, 1, 4, "renamed/"),
                          (True, kind, 4, 3, ""), (True, kind, 2, 2, "renamed/")):
            one_way(tf, np, *arguments)
            other_way(tf, np, *arguments)
        meta_graphs(tf, np, kind)
    mixed_cluster()
    replaced(tf, np)
    compared(tf, np)
    return 0


if __name__ == "__main__":
    main_with_tensorflow(main)
