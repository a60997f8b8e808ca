#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's optimizers are the oracle for Tenon's: both make the steps of the same models from
the same values, Tenon's on a Tenon server. Slots have TensorFlow's names, and all variables its
values."""
import os
import subprocess
import sys
import tempfile

from tensorflow_environment import TENON, Servers, main_with_tensorflow

ADD_OPTIMIZER = os.path.join(os.path.dirname(TENON), "add_optimizer")
STEPS = 20
L1, L2 = {"l1_regularization_strength": .02}, {"l2_regularization_strength": .3}

# What Tenon's optimizer is called, and its numbers, by TensorFlow's names.
CASES = [
    ("GradientDescent", {}),
    ("Momentum", {"momentum": .8}),
    ("Momentum", {"momentum": .8, "use_nesterov": 1}),
    ("ProximalGradientDescent", {**L1, **L2}),
    ("Adagrad", {}),
    ("AdagradDA", {**L1, **L2}),
    ("ProximalAdagrad", {**L1, **L2}),
    ("Adadelta", {"learning_rate": 2, "epsilon": 1e-3}),
    ("RMSProp", {"learning_rate": .01, "momentum": .5}),
    ("RMSProp", {"learning_rate": .01, "momentum": .5, "epsilon": 1e-4, "centered": 1}),
    ("Adam", {"learning_rate": .05}),
    ("Adam", {"learning_rate": .05, "beta1": .5, "beta2": .9, "epsilon": .1}),
    ("Ftrl", {}),
    ("Ftrl", {**L1, **L2, "beta": .5, "learning_rate_power": -.4}),
    ("Ftrl", {**L1, **L2, "l2_shrinkage_regularization_strength": .1}),
]


def model(tf, np, resource, dtype):
    """A table of which rows are gathered, some twice, some never; and dense variables."""
    random = np.random.RandomState(5)

    def variable(name, shape):
        return tf.Variable(random.uniform(-.5, .5, shape).astype(dtype), name=name,
                           use_resource=resource)

    ids = tf.placeholder(tf.int32, [6], "ids")
    x = tf.placeholder(dtype, [3, 4], "x")
    with tf.variable_scope("model"), tf.name_scope("model/"):
        table, w, bias = variable("table", [9, 4]), variable("w", [4, 4]), variable("bias", [4])
    step = tf.Variable(tf.constant(0, tf.int64), name="global_step", trainable=False,
                       use_resource=resource)
    rows = tf.reshape(tf.nn.embedding_lookup(table, ids), [3, 2, 4])
    y = tf.tanh(tf.matmul(x, w) + bias + tf.reduce_sum(rows, axis=1))
    return tf.identity(tf.reduce_sum(tf.square(y - 1)), "loss"), step


def feeds(np, dtype):
    random = np.random.RandomState(8)
    for _ in range(STEPS):
        yield {"ids:0": random.randint(0, 8, 6), "x:0": random.normal(size=[3, 4]).astype(dtype)}


def tensorflows(tf, kind, numbers, step):
    arguments = {"learning_rate": .1, **numbers}
    if "use_nesterov" in arguments:
        arguments["use_nesterov"] = True
    if "centered" in arguments:
        arguments["centered"] = True
    if kind == "AdagradDA":
        arguments["global_step"] = step
    return getattr(tf.train, kind + "Optimizer")(**arguments)


def run(tf, np, target, graph, init, train, variables, dtype):
    if target:
        tf.Session.reset(target)  # sessions on a server share their variables
    with tf.Session(target, graph=graph) as session:
        session.run(init)
        for feed in feeds(np, dtype):
            session.run(train, feed)
        return dict(zip(variables, session.run([graph.get_tensor_by_name(variables[v])
                                                for v in variables])))


def reads(tf, variables):
    """The tensor that has the value, by the variable's name."""
    return {v.op.name: v.op.name + (":0" if hasattr(v, "_ref") else "/Read/ReadVariableOp:0")
            for v in variables}


def add_optimizer(tf, graph_def, kind, numbers, variables, folder):
    before, after = os.path.join(folder, "before.pb"), os.path.join(folder, "after.pb")
    with open(before, "wb") as file:
        file.write(graph_def.SerializeToString())
    given = [f"{name}={number}" for name, number in numbers.items()]
    result = subprocess.run([ADD_OPTIMIZER, before, after, "loss", "global_step", kind, "train",
                             *given, "--", *variables], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{kind}: {result.stderr}")
    graph = tf.Graph()
    with graph.as_default(), open(after, "rb") as file:
        tf.import_graph_def(tf.GraphDef.FromString(file.read()), name="")
    train, init, *made = result.stdout.split()
    return graph, train, init, made


def compare(tf, np, target, kind, numbers, resource, dtype, folder):
    with tf.Graph().as_default() as graph:
        loss, step = model(tf, np, resource, dtype)
        trained = [v.op.name for v in tf.trainable_variables()]
        before = graph.as_graph_def()
        with tf.name_scope("train"):
            train = tensorflows(tf, kind, numbers, step).minimize(loss, global_step=step)
        init = tf.global_variables_initializer()
        names = reads(tf, tf.global_variables())
        wanted = run(tf, np, "", graph, init, train, names, dtype)
        updates = {n.name for n in graph.as_graph_def().node if "Apply" in n.op}
    graph, ours, init, made = add_optimizer(tf, before, kind, numbers, trained, folder)
    suffix = "/Read/ReadVariableOp" if resource else "/read"
    found_names = set(trained) | {"global_step"} | {m[:-len(suffix)] for m in made}
    assert found_names == set(names), f"{kind}: {sorted(found_names)}, wanted {sorted(names)}"
    assert ours == train.name, f"{kind}: the step is {ours}, wanted {train.name}"
    found_updates = {n.name for n in graph.as_graph_def().node if "Apply" in n.op}
    assert found_updates == updates, f"{kind}: {found_updates}, wanted {updates}"
    found = run(tf, np, target, graph, init, ours, names, dtype)
    for name, value in wanted.items():
        assert found[name].dtype == value.dtype, f"{kind}: {name} is {found[name].dtype}"
        assert np.isfinite(value).all(), f"{kind}: {name} shows nothing"
        error = np.abs(found[name] - value).max() / max(1, np.abs(value).max())
        assert error < 1e-5, f"{kind} {numbers}: {name} differs by {error:.2g} ({resource=})"
    table = wanted["model/table"]
    assert np.abs(table - graph_start(np, table)).max() > 1e-3, f"{kind}: nothing was trained"


def graph_start(np, table):
    return np.random.RandomState(5).uniform(-.5, .5, table.shape).astype(table.dtype)


ADAMW = {"learning_rate": .05, "weight_decay": .3}


def train_with_keras(path):
    """Keras's AdamW, which has no graph, on the model above; its variables go to a file."""
    import numpy as np
    import tensorflow as tf
    random = np.random.RandomState(5)
    table, w, bias = (tf.Variable(random.uniform(-.5, .5, shape).astype("float32"))
                      for shape in ([9, 4], [4, 4], [4]))
    optimizer = tf.keras.optimizers.AdamW(epsilon=1e-8, **ADAMW)
    for feed in feeds(np, "float32"):
        with tf.GradientTape() as tape:
            rows = tf.reshape(tf.gather(table, feed["ids:0"]), [3, 2, 4])
            y = tf.tanh(tf.matmul(feed["x:0"], w) + bias + tf.reduce_sum(rows, axis=1))
            loss = tf.reduce_sum(tf.square(y - 1))
        gradients = tape.gradient(loss, [table, w, bias])
        assert isinstance(gradients[0], tf.IndexedSlices)
        optimizer.apply_gradients(zip(gradients, [table, w, bias]))
    values = {}
    for name, *variables in zip(("table", "w", "bias"), (table, w, bias), optimizer._momentums,
                                optimizer._velocities):
        values.update(zip((f"model/{name}", f"model/{name}/AdamW", f"model/{name}/AdamW_1"),
                          (v.numpy() for v in variables)))
    np.savez(path, **values)


def compare_adamw(tf, np, target, resource, wanted, folder):
    with tf.Graph().as_default() as graph:
        model(tf, np, resource, "float32")
        trained = [v.op.name for v in tf.trainable_variables()]
        before = graph.as_graph_def()
    graph, train, init, made = add_optimizer(tf, before, "AdamW", ADAMW, trained, folder)
    suffix = "/Read/ReadVariableOp" if resource else "/read"
    found = run(tf, np, target, graph, init, train, {n: n + suffix + ":0" for n in wanted},
                "float32")
    slots = {"train/beta1_power", "train/beta2_power", *wanted} - set(trained)
    assert {m[:-len(suffix)] for m in made} == slots, made
    for name, value in wanted.items():
        error = np.abs(found[name] - value).max() / max(1, np.abs(value).max())
        # Keras takes beta to the power of the step anew; 1 - beta2^t makes its rounding 1000 times as large.
        assert error < 3e-5, f"AdamW: {name} differs by {error:.2g} ({resource=})"


def main():
    import numpy as np
    import tensorflow.compat.v1 as tf
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    with Servers({"worker": 1}) as servers, tempfile.TemporaryDirectory() as folder:
        target = servers.target("worker")
        for kind, numbers in CASES:
            for resource in (False, True):
                compare(tf, np, target, kind, numbers, resource, "float32", folder)
        for kind in ("GradientDescent", "Adam"):
            compare(tf, np, target, kind, {}, False, "float64", folder)
        saved = os.path.join(folder, "adamw.npz")
        subprocess.run([sys.executable, __file__, saved], check=True)
        wanted = dict(np.load(saved))
        for resource in (False, True):
            compare_adamw(tf, np, target, resource, wanted, folder)
    return 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        train_with_keras(sys.argv[1])
    else:
        main_with_tensorflow(main)
