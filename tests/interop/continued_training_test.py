#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training that TensorFlow has begun goes on with an optimizer of Tenon's C++ API on Tenon's server, and then on
TensorFlow again, through checkpoints: the losses are those of TensorFlow alone."""
import os
import tempfile

from optimizers_test import add_optimizer, feeds, model, reads, tensorflows
from tensorflow_environment import Servers, main_with_tensorflow

CASES = [("Adam", {}), ("Momentum", {"momentum": .9}), ("RMSProp", {"momentum": .5}), ("Ftrl", {})]
PART = 6  # steps in each of the three parts


def losses(session, graph, train, loss, steps):
    return [session.run([loss, train], feed)[0] for feed in steps]


def in_tenon(tf, target, graph, init, train, names, resource, given, saved, steps):
    """The losses of a part that begins with the checkpoint `given` and writes `saved`."""
    with graph.as_default():
        variables = list(names)
        values = [graph.get_tensor_by_name(names[v]) for v in variables]
        restored = tf.raw_ops.RestoreV2(prefix=given, tensor_names=variables,
                                        shape_and_slices=[""] * len(variables),
                                        dtypes=[v.dtype.base_dtype for v in values])
        assigned = []
        for variable, value in zip(variables, restored):
            holder = graph.get_operation_by_name(variable).outputs[0]
            assigned.append(tf.raw_ops.AssignVariableOp(resource=holder, value=value) if resource else
                            tf.raw_ops.Assign(ref=holder, value=value))
        save = tf.raw_ops.SaveV2(prefix=saved, tensor_names=variables,
                                 shape_and_slices=[""] * len(variables), tensors=values)
    tf.Session.reset(target)
    with tf.Session(target, graph=graph) as session:
        session.run(init)
        session.run(assigned)
        found = losses(session, graph, train, "loss:0", steps)
        session.run(save)
    return found


def compare(tf, np, target, kind, numbers, resource, folder):
    begun, gone_on = os.path.join(folder, "begun"), os.path.join(folder, "gone_on")
    steps = (list(feeds(np, "float32")) * 3)[:3 * PART]
    with tf.Graph().as_default() as graph:
        loss, step = model(tf, np, resource, "float32")
        trained = [v.op.name for v in tf.trainable_variables()]
        before = graph.as_graph_def()
        with tf.name_scope("train"):
            train = tensorflows(tf, kind, numbers, step).minimize(loss, global_step=step)
        names = reads(tf, tf.global_variables())
        saver = tf.train.Saver()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            wanted = losses(session, graph, train, loss, steps)
            session.run(tf.global_variables_initializer())
            found = losses(session, graph, train, loss, steps[:PART])
            saver.save(session, begun)
        ours, our_train, our_init, _ = add_optimizer(tf, before, kind, numbers, trained, folder)
        found += in_tenon(tf, target, ours, our_init, our_train, names, resource, begun, gone_on,
                          steps[PART:2 * PART])
        with tf.Session() as session:
            saver.restore(session, gone_on)
            found += losses(session, graph, train, loss, steps[2 * PART:])
    assert wanted[0] > 1.05 * wanted[-1], f"{kind}: nothing was learned: {wanted}"
    error = np.abs(np.array(found) - wanted).max() / max(1, np.abs(wanted).max())
    assert error < 1e-5, f"{kind} ({resource=}): the losses are {found}, wanted {wanted}"


def main():
    import numpy as np
    import tensorflow.compat.v1 as tf
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    with Servers({"worker": 1}) as servers, tempfile.TemporaryDirectory() as folder:
        for kind, numbers in CASES:
            for resource in (False, True):
                compare(tf, np, servers.target("worker"), kind, numbers, resource, folder)
    print(f"{len(CASES)} optimizers went on here and back, of both kinds of variables")
    return 0


if __name__ == "__main__":
    main_with_tensorflow(main)
