#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Saves and restores variables of several parameter servers, in each format, whole and in shards."""
import argparse
import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

VERSIONS = {"v1": tf.train.SaverDef.V1, "v2": tf.train.SaverDef.V2}


def build(ps_tasks):
    """Variables of several dtypes, one of them in parts, with what an optimizer keeps of them."""
    with tf.device(tf.train.replica_device_setter(ps_tasks=ps_tasks)):
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", [7, 3], partitioner=tf.fixed_size_partitioner(2),
                            initializer=tf.random_normal_initializer(seed=1))
        b = tf.get_variable("b", [3], tf.float64, use_resource=True, initializer=tf.ones_initializer())
        tf.get_variable("flags", initializer=[True, False, True], trainable=False)
        tf.get_variable("names", initializer=["a", "", "text"], trainable=False)
        loss = tf.reduce_sum(tf.square(tf.convert_to_tensor(w))) + tf.reduce_sum(tf.cast(b, tf.float32))
        return tf.train.AdamOptimizer(.1).minimize(loss, global_step=step)


def main(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--master", default="")
    parser.add_argument("--ps_tasks", type=int, default=0)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--mode", choices=["save", "restore"], required=True)
    flags = parser.parse_args(argv)

    step = build(flags.ps_tasks)
    variables = {v.op.name: v for v in tf.global_variables()}
    savers = {(version, sharded): tf.train.Saver(write_version=VERSIONS[version], sharded=sharded, max_to_keep=2)
              for version in VERSIONS for sharded in (False, True)}
    result = {}
    with tf.Session(flags.master) as session:
        if flags.mode == "save":
            session.run(tf.global_variables_initializer())
            for count in range(3):
                session.run(step)
                for (version, sharded), saver in savers.items():
                    prefix = os.path.join(flags.folder, f"{version}-{sharded}", "model.ckpt")
                    os.makedirs(os.path.dirname(prefix), exist_ok=True)
                    saver.save(session, prefix, global_step=count)
            result = session.run(variables)
        for (version, sharded), saver in savers.items():
            checkpoint = tf.train.latest_checkpoint(os.path.join(flags.folder, f"{version}-{sharded}"))
            assert "model.ckpt-2" in checkpoint, checkpoint
            session.run([v.initializer for v in variables.values()])
            saver.restore(session, checkpoint)
            found = session.run(variables)
            for name, value in result.items():
                np.testing.assert_array_equal(found[name], value, err_msg=f"{name} of {checkpoint}")
            result = found
        try:
            tf.train.Saver({"no/such": variables["b"]}).restore(session, checkpoint)
        except ValueError as e:
            result["missing"] = type(e).__name__
        except tf.errors.NotFoundError as e:
            result["missing"] = type(e).__name__
    return result


if __name__ == "__main__":
    print(main(sys.argv[1:]))
