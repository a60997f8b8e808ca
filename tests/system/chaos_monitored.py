# SPDX-License-Identifier: Apache-2.0
"""A worker of chaos.py: TensorFlow's MonitoredTrainingSession, between-graph replication over servers
that others started. Arguments: TARGET CLUSTER INDEX FOLDER LAST_STEP."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402


def main():
    target, cluster, index, folder, last_step = sys.argv[1:]
    jobs = dict(part.split("=") for part in cluster.split(";"))
    spec = tf.train.ClusterSpec({job: hosts.split(",") for job, hosts in jobs.items()})
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.INFO)
    with tf.device(tf.train.replica_device_setter(cluster=spec,
                                                  worker_device=f"/job:worker/task:{index}")):
        x = tf.placeholder(tf.float32, [None, 20])
        w = tf.get_variable("w", [20, 1], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - tf.reduce_sum(x, 1, keepdims=True)))
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step)
    random = np.random.RandomState(int(index))
    # Its own worker and the parameter server: the others may come and go.
    config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{index}"])
    with tf.train.MonitoredTrainingSession(
            master=target, is_chief=index == "0", checkpoint_dir=folder, config=config,
            save_checkpoint_secs=1, hooks=[tf.train.StopAtStepHook(last_step=int(last_step))]) as s:
        while not s.should_stop():
            s.run(train, {x: random.randn(8, 20)})
    print("done", flush=True)


if __name__ == "__main__":
    main()
