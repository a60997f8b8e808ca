#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's layers are the oracle for those of C++: networks of both have variables of the same
names, and after the same initial values the same losses and variables in 20 steps of training;
initializers draw the same values. TensorFlow runs the graphs of C++ as well."""
import os
import subprocess
import tempfile

from tensorflow_environment import TENON, Servers, main_with_tensorflow

LAYER_MODELS = os.path.join(os.path.dirname(TENON), "layer_models")
STEPS = 20
TOLERANCE = 1e-5
# TensorFlow's CPU has no gradient of convolutions with dilations: its layers rearrange the image.
NOT_IN_TENSORFLOW = ["convolutions", "convolutions_1d"]


def theirs(tf, build, feeds):
    """The initial values, trainable names, losses and final values of TensorFlow's network."""
    with tf.Graph().as_default():
        ys = build()
        loss = sum(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES), tf.constant(0.0))
        loss += sum(tf.reduce_mean(tf.square(y - 0.3)) for y in ys)
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        optimizer = tf.train.GradientDescentOptimizer(0.2)
        if ys:
            gradients = optimizer.compute_gradients(loss, gate_gradients=optimizer.GATE_GRAPH)
            with tf.control_dependencies([loss]):  # what it reads, the step changes
                gradients = [(tf.identity(tf.convert_to_tensor(g)), v) for g, v in gradients]
            updates.append(optimizer.apply_gradients(gradients))
        variables = {v.op.name: v for v in tf.global_variables()}
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            initial = session.run(variables)
            losses = [session.run([loss, updates], {k + ":0": v for k, v in feed.items()})[0]
                      for feed in feeds]
            trainable = {v.op.name for v in tf.trainable_variables()}
            return initial, trainable, losses, session.run(variables)


def ours(tf, path, target, initial, feeds, copied):
    """The losses and final values of the network of `path`, after variables have the `initial`
    values, where they are `copied`, and else those of their initializers."""
    with tf.Graph().as_default() as graph, open(path, "rb") as file:
        tf.import_graph_def(tf.GraphDef.FromString(file.read()), name="")
        variables = {op.name for op in graph.get_operations() if op.type == "VariableV2"}
        if variables != set(initial):
            raise RuntimeError(f"variables {sorted(variables)}, not {sorted(initial)}")
        with tf.Session(target, config=tf.ConfigProto(isolate_session_state=True)) as session:
            given = {graph.get_operation_by_name(name + "/Assign").inputs[1]: value
                     for name, value in initial.items()}
            session.run("init", given if copied else {})
            losses = [session.run(["loss:0", "train"], {k + ":0": v for k, v in feed.items()})[0]
                      for feed in feeds]
            return losses, session.run({name: name + "/read:0" for name in initial})


def difference(np, a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.shape != b.shape:
        return f"shapes {a.shape} and {b.shape}"
    return np.max(np.abs(a - b) / np.maximum(1, np.abs(a)), initial=0)


def mistakes(tf, np, networks, name, folder, target):
    np.random.seed(sum(map(ord, name)))
    trains = name in networks.FEEDS
    feeds = [networks.FEEDS[name](step) for step in range(STEPS)] if trains else []
    initial, trainable, their_losses, their_values = theirs(tf, getattr(networks, name), feeds)
    path = os.path.join(folder, name + ".pb")
    for where in (target, "") if name not in NOT_IN_TENSORFLOW else (target,):
        losses, values = ours(tf, path, where, initial, feeds, copied=trains)
        if difference(np, their_losses, losses) > TOLERANCE:
            yield f"losses {losses} of '{where}', not {their_losses}"
        for variable, value in their_values.items():
            if difference(np, value, values[variable]) > TOLERANCE:
                yield f"{variable} of '{where}' is {values[variable]}, not {value}"
    for variable, value in their_values.items():
        if trains and variable in trainable and np.array_equal(value, initial[variable]):
            yield f"the test does not train {variable}"


def main():
    import numpy as np
    import tensorflow.compat.v1 as tf
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    import layer_networks
    failures = 0
    with Servers({"worker": 1}) as servers, tempfile.TemporaryDirectory() as folder:
        subprocess.run([LAYER_MODELS, folder], check=True)
        names = sorted(f[:-3] for f in os.listdir(folder))
        missing = set(layer_networks.FEEDS) - set(names)
        for name in names:
            try:
                found = list(mistakes(tf, np, layer_networks, name, folder,
                                      servers.target("worker")))
            except (RuntimeError, tf.errors.OpError) as e:
                found = [str(e)]
            failures += len(found)
            for mistake in found:
                print(f"{name}: {mistake}")
        for name in missing:
            failures += 1
            print(f"layer_models has no {name}")
    return 1 if failures else 0


if __name__ == "__main__":
    main_with_tensorflow(main)
