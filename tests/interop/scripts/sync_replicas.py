#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Synchronous replicas: each update is the mean of the gradients of --replicas_to_aggregate workers."""
import argparse
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


def main(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--ps_hosts", required=True)
    parser.add_argument("--worker_hosts", required=True)
    parser.add_argument("--task_index", type=int, default=0)
    parser.add_argument("--replicas_to_aggregate", type=int)
    parser.add_argument("--train_steps", type=int, default=150)
    parser.add_argument("--checkpoint_dir")
    flags = parser.parse_args(argv)

    workers = flags.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": flags.ps_hosts.split(","), "worker": workers})
    is_chief = flags.task_index == 0
    with tf.device(tf.train.replica_device_setter(
            worker_device=f"/job:worker/task:{flags.task_index}", cluster=cluster)):
        global_step = tf.train.get_or_create_global_step()
        x = tf.placeholder(tf.float32, [None, 3])
        y = tf.placeholder(tf.float32, [None])
        row = tf.placeholder(tf.int64, [None])
        w = tf.get_variable("w", [3], initializer=tf.zeros_initializer())
        b = tf.get_variable("b", [], initializer=tf.zeros_initializer())
        offsets = tf.get_variable("offsets", [4], initializer=tf.zeros_initializer())
        guess = tf.reduce_sum(x * w, 1) + b + tf.nn.embedding_lookup(offsets, row)
        loss = tf.reduce_mean(tf.square(guess - y))
        optimizer = tf.train.SyncReplicasOptimizer(
            tf.train.MomentumOptimizer(0.05, 0.8),
            replicas_to_aggregate=flags.replicas_to_aggregate or len(workers),
            total_num_replicas=len(workers))
        train_op = optimizer.minimize(loss, global_step=global_step)

    random = np.random.RandomState(flags.task_index)
    losses = []
    hooks = [optimizer.make_session_run_hook(is_chief), tf.train.StopAtStepHook(last_step=flags.train_steps),
             tf.train.NanTensorHook(loss)]
    # One step of the chief's queue runner waits for gradients that nobody sends: no need to wait for it.
    with tf.train.MonitoredTrainingSession(
            master="grpc://" + workers[flags.task_index], is_chief=is_chief, hooks=hooks,
            checkpoint_dir=flags.checkpoint_dir, save_checkpoint_steps=50, save_summaries_steps=50,
            stop_grace_period_secs=1) as session:
        while not session.should_stop():
            batch = random.uniform(-1, 1, [32, 3]).astype(np.float32)
            rows = random.randint(0, 4, 32)
            target = batch @ [1., -2., 3.] + .5 + .1 * rows
            values = session.run([train_op, loss, w, b, offsets], {x: batch, y: target, row: rows})
            losses.append(values[1])
    return {"loss": losses[-1], "w": values[2], "offsets": values[3] + values[4], "steps": len(losses)}


if __name__ == "__main__":
    print(main(sys.argv[1:]))
