#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Between-graph replication with Supervisor: each worker trains on the variables of the parameter servers.

Every worker runs it with its own --task_index; the first one initialises, writes checkpoints and summaries.
"""
import argparse
import sys

import tensorflow.compat.v1 as tf

import mnist_data

tf.disable_v2_behavior()


def main(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--ps_hosts", required=True)
    parser.add_argument("--worker_hosts", required=True)
    parser.add_argument("--task_index", type=int, default=0)
    parser.add_argument("--train_steps", type=int, default=300)
    parser.add_argument("--log_dir", required=True)
    flags = parser.parse_args(argv)

    workers = flags.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": flags.ps_hosts.split(","), "worker": workers})
    is_chief = flags.task_index == 0
    device = tf.train.replica_device_setter(worker_device=f"/job:worker/task:{flags.task_index}",
                                            cluster=cluster)
    with tf.device(device):
        global_step = tf.Variable(0, name="global_step", trainable=False)
        x = tf.placeholder(tf.float32, [None, 784])
        y_ = tf.placeholder(tf.int64, [None])
        hidden_w = tf.Variable(tf.truncated_normal([784, 100], stddev=1 / 28., seed=1), name="hidden_w")
        hidden_b = tf.Variable(tf.zeros([100]), name="hidden_b")
        softmax_w = tf.Variable(tf.truncated_normal([100, 10], stddev=.1, seed=2), name="softmax_w")
        softmax_b = tf.Variable(tf.zeros([10]), name="softmax_b")
        hidden = tf.nn.relu(tf.nn.xw_plus_b(x, hidden_w, hidden_b))
        logits = tf.nn.xw_plus_b(hidden, softmax_w, softmax_b)
        cross_entropy = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y_, logits=logits))
        train_step = tf.train.AdamOptimizer(0.003).minimize(cross_entropy, global_step=global_step)
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y_), tf.float32))
        tf.summary.scalar("cross_entropy", cross_entropy)
        tf.summary.histogram("hidden", hidden)
        summaries = tf.summary.merge_all()

    supervisor = tf.train.Supervisor(
        is_chief=is_chief, logdir=flags.log_dir, init_op=tf.global_variables_initializer(),
        recovery_wait_secs=1, global_step=global_step, save_model_secs=600, summary_op=None)
    config = tf.ConfigProto(allow_soft_placement=True,
                            device_filters=["/job:ps", f"/job:worker/task:{flags.task_index}"])
    session = supervisor.prepare_or_wait_for_session("grpc://" + workers[flags.task_index], config=config)

    images, labels = mnist_data.read("train", 5000)
    batches = mnist_data.batches(images, labels, 50, flags.train_steps + 1, seed=flags.task_index)
    step = 0
    while not supervisor.should_stop() and step < flags.train_steps:
        batch_x, batch_y = next(batches)
        _, step = session.run([train_step, global_step], {x: batch_x, y_: batch_y})
        if is_chief and step % 50 == 0:
            supervisor.summary_computed(session, session.run(summaries, {x: batch_x, y_: batch_y}), step)
    test_x, test_y = mnist_data.read("t10k", 2000)
    value = session.run(accuracy, {x: test_x, y_: test_y})
    if is_chief:
        supervisor.saver.save(session, supervisor.save_path, global_step=global_step)
    supervisor.stop()
    return {"accuracy": value, "global_step": step}


if __name__ == "__main__":
    print(main(sys.argv[1:]))
