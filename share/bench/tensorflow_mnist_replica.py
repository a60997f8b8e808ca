# SPDX-License-Identifier: Apache-2.0
"""The classic program of distributed TensorFlow 1 for TensorFlow 2.15, to compare with
examples/mnist_replica.cc: the same network, data and seeds. For one task of a cluster:

    tenon launch --ps 1 --workers 2 -- python tensorflow_mnist_replica.py --data share/mnist
"""
import argparse
import gzip
import os
import time

import numpy as np
import tensorflow.compat.v1 as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--ps_hosts", required=True)
parser.add_argument("--worker_hosts", required=True)
parser.add_argument("--job_name", required=True, choices=["ps", "worker"])
parser.add_argument("--task_index", type=int, default=0)
parser.add_argument("--data", required=True)
parser.add_argument("--training_epochs", type=int, default=20)
parser.add_argument("--batch_size", type=int, default=100)
parser.add_argument("--learning_rate", type=float, default=0.001)
FLAGS = parser.parse_args()


def read_idx(name):
    path = os.path.join(FLAGS.data, name)
    with (open(path, "rb") if os.path.exists(path) else gzip.open(path + ".gz")) as file:
        data = file.read()
    shape = np.frombuffer(data, ">i4", data[3], 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def load(prefix):
    """Images as floats in [0, 1] and labels as rows of ten."""
    images = read_idx(prefix + "-images-idx3-ubyte").reshape(-1, 784).astype("f") / 255
    return images, np.eye(10, dtype="f")[read_idx(prefix + "-labels-idx1-ubyte")]


def done_queue(workers):
    """On the parameter server, which ends when every worker has put something in."""
    with tf.device("/job:ps/task:0"):
        return tf.FIFOQueue(workers, tf.int32, shapes=[[]], shared_name="done")


def train(server, cluster):
    images, labels = load("train")
    images, labels = images[5000:], labels[5000:]  # the first 5,000 are for validation
    tf.set_random_seed(1)
    with tf.device(tf.train.replica_device_setter(
            worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster)):
        global_step = tf.get_variable("global_step", [], trainable=False,
                                      initializer=tf.constant_initializer(0))
        x, y_ = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
        w1 = tf.Variable(tf.random_normal([784, 100], seed=0))
        w2 = tf.Variable(tf.random_normal([100, 10], seed=1))
        b1, b2 = tf.Variable(tf.zeros([100])), tf.Variable(tf.zeros([10]))
        y = tf.nn.softmax(tf.matmul(tf.sigmoid(tf.matmul(x, w1) + b1), w2) + b2)
        loss = tf.reduce_mean(-tf.reduce_sum(y_ * tf.log(y), axis=[1]))
        optimizer = tf.train.GradientDescentOptimizer(FLAGS.learning_rate)
        train_op = optimizer.minimize(loss, global_step=global_step)
        correct = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
        accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
        tf.summary.scalar("cost", loss)
        tf.summary.scalar("accuracy", accuracy)
        summary = tf.summary.merge_all()
        init = tf.global_variables_initializer()
    done = done_queue(cluster.num_tasks("worker")).enqueue(1)

    supervisor = tf.train.Supervisor(is_chief=FLAGS.task_index == 0, init_op=init, logdir=None,
                                     summary_op=None, saver=None, recovery_wait_secs=1)
    begin = time.time()
    with supervisor.prepare_or_wait_for_session(server.target) as session:
        random = np.random.RandomState(FLAGS.task_index)
        batches = len(images) // FLAGS.batch_size
        for epoch in range(FLAGS.training_epochs):
            order = random.permutation(len(images))
            for i in range(batches):
                rows = order[i * FLAGS.batch_size:(i + 1) * FLAGS.batch_size]
                _, cost, _, step = session.run([train_op, loss, summary, global_step],
                                               {x: images[rows], y_: labels[rows]})
            print("Step: %d,  Epoch: %2d,  Cost: %.4f" % (step + 1, epoch + 1, cost), flush=True)
        test_images, test_labels = load("t10k")
        print("Test-Accuracy: %.4f" % session.run(accuracy, {x: test_images, y_: test_labels}))
        print("Total Time: %3.2fs" % (time.time() - begin), flush=True)
        session.run(done)


def main():
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","),
                                    "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "worker":
        return train(server, cluster)
    done = done_queue(cluster.num_tasks("worker")).dequeue()
    with tf.Session(server.target) as session:
        for _ in range(cluster.num_tasks("worker")):
            session.run(done)
    time.sleep(1)  # the last worker's call is to be answered
    return os._exit(0)  # a tf.train.Server has no other end


if __name__ == "__main__":
    tf.disable_v2_behavior()
    main()
