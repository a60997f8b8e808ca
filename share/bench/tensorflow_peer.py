#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's side of `tenon bench --peer tensorflow`.

Prints its name, then reads the name of a row from each line of standard input and answers with a
figure, measured as the row of that name is for Tenon. With arguments it is a task of a cluster that
a row has started: `tensorflow_peer.py JOB INDEX PS_HOSTS WORKER_HOSTS STEPS`.
"""
import os
import signal
import socket
import subprocess
import sys
import time
import warnings

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")

import numpy as np  # noqa: E402
from google.protobuf import text_format  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

import peer_environment  # noqa: E402
import tensorflow_readers  # noqa: E402
from peer_batches import frozen_network, median_call, mnist_batch, scattered, time_calls  # noqa: E402

tf.logging.set_verbosity(tf.logging.ERROR)
tf.disable_v2_behavior()
warnings.filterwarnings("ignore", "`tf\\..* is deprecated")

WARM_UP = 50


def one_thread(optimise=True):
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    if not optimise:
        config.graph_options.optimizer_options.opt_level = -1
        config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config


def mnist_model():
    """The network of `tenon train mnist`."""
    global_step = tf.get_variable("global_step", [], initializer=tf.constant_initializer(0),
                                  trainable=False)
    images = tf.placeholder(tf.float32, [None, 784])
    labels = tf.placeholder(tf.float32, [None, 10])
    tf.set_random_seed(1)
    w1, b1 = tf.Variable(tf.random_normal([784, 100])), tf.Variable(tf.zeros([100]))
    w2, b2 = tf.Variable(tf.random_normal([100, 10])), tf.Variable(tf.zeros([10]))
    hidden = tf.sigmoid(tf.add(tf.matmul(images, w1), b1))
    y = tf.nn.softmax(tf.add(tf.matmul(hidden, w2), b2))
    loss = tf.reduce_mean(-tf.reduce_sum(labels * tf.log(y), axis=[1]))
    train = tf.train.GradientDescentOptimizer(0.001).minimize(loss, global_step=global_step)
    return images, labels, loss, train, global_step


def mnist_step():
    images, labels, loss, train, _ = mnist_model()
    with tf.Session(config=one_thread()) as session:
        session.run(tf.global_variables_initializer())
        step = session.make_callable([loss, train], feed_list=[images, labels])
        batch = mnist_batch()
        time_calls(WARM_UP, lambda: step(*batch))
        return median_call(1000, lambda: step(*batch)) * 1e6


def smallest_run():
    x = tf.placeholder(tf.float32, [])
    y = tf.identity(x)
    with tf.Session(config=one_thread(optimise=False)) as session:
        step = session.make_callable(y, feed_list=[x])
        value = np.float32(1)
        time_calls(WARM_UP, lambda: step(value))
        return time_calls(20000, lambda: step(value)) / 20000 * 1e6


def per_node(target, nodes):
    with tf.Session(config=one_thread(optimise=False)) as session:
        step = session.make_callable(target)
        time_calls(WARM_UP, step)
        return median_call(200, step) / nodes * 1e9


def add_chain(nodes=5000):
    one = tf.constant(1.0)
    x = one
    for _ in range(nodes):
        x = tf.raw_ops.Add(x=x, y=one)
    return per_node(x.op, nodes)


def noop_chain(nodes=5000):
    last = tf.no_op()
    for _ in range(nodes - 1):
        with tf.control_dependencies([last]):
            last = tf.no_op()
    return per_node(last, nodes)


def noop_fan(nodes=5000):
    with tf.control_dependencies([tf.no_op()]):
        fan = [tf.no_op() for _ in range(nodes)]
    return per_node(tf.group(fan), nodes)


def large_graph(nodes=100000):
    definition = tf.GraphDef()
    definition.versions.producer = 27
    definition.node.add(name="x", op="Placeholder").attr["dtype"].type = tf.float32.as_datatype_enum
    one = definition.node.add(name="one", op="Const")
    one.attr["dtype"].type = tf.float32.as_datatype_enum
    one.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(1.0))
    last = "x"
    for i in range(nodes):
        node = definition.node.add(name=f"add_{i}", op="Add", input=[last, "one"])
        node.attr["T"].type = tf.float32.as_datatype_enum
        last = node.name
    data = definition.SerializeToString()

    def load_and_run():
        with tf.Graph().as_default():
            read = tf.GraphDef()
            read.ParseFromString(data)
            tf.import_graph_def(read, name="")
            with tf.Session() as session:
                session.run(last + ":0", {"x:0": 0.0})

    return time_calls(1, load_and_run)


def load_graph(name):
    """Loads graphs/NAME.pbtxt; the operation that prepares it, and the tensor that is measured."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "graphs", name + ".pbtxt")
    with open(path, encoding="utf-8") as text:
        tf.import_graph_def(text_format.Parse(text.read(), tf.GraphDef()), name="")
    graph = tf.get_default_graph()
    return graph.get_operation_by_name("prepare"), graph.get_tensor_by_name("measured:0")


def graph_step(name):
    """The seconds of a step of graphs/NAME.pbtxt."""
    prepare, measured = load_graph(name)
    with tf.Session() as session:
        session.run(prepare)
        step = session.make_callable(measured)
        time_calls(5, step)
        return median_call(50, step)


def training_step(loss, train, feeds, steps):
    """The milliseconds of a step on one thread; feeds are pairs of a placeholder and its value."""
    with tf.Session(config=one_thread()) as session:
        session.run(tf.global_variables_initializer())
        step = session.make_callable([loss, train], feed_list=[f for f, _ in feeds])
        batch = [value for _, value in feeds]
        time_calls(10, lambda: step(*batch))
        return median_call(steps, lambda: step(*batch)) * 1e3


def conv_step():
    tf.set_random_seed(1)
    images = tf.placeholder(tf.float32, [None, 784])
    labels = tf.placeholder(tf.float32, [None, 10])
    training = tf.placeholder_with_default(False, [])
    h = tf.reshape(images, [-1, 28, 28, 1])
    for filters in (32, 64):
        h = tf.layers.conv2d(h, filters, 3, padding="same", activation=tf.nn.relu)
        h = tf.layers.max_pooling2d(h, 2, 2)
    h = tf.layers.dense(tf.layers.flatten(h), 128, tf.nn.relu)
    logits = tf.layers.dense(tf.layers.dropout(h, .4, training=training), 10)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels, logits))
    train = tf.train.AdamOptimizer(.001).minimize(loss, tf.train.get_or_create_global_step())
    batch = mnist_batch()
    return training_step(loss, train, [(images, batch[0]), (labels, batch[1]), (training, True)],
                         50)


def char_lstm_step(vocabulary=64):
    tf.set_random_seed(1)
    ids, following = (tf.placeholder(tf.int32, [None, None]) for _ in range(2))
    table = tf.get_variable("embeddings", [vocabulary, 32])
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(128),
                                   tf.nn.embedding_lookup(table, ids), dtype=tf.float32)
    loss = tf.losses.sparse_softmax_cross_entropy(following, tf.layers.dense(outputs, vocabulary))
    adam = tf.train.AdamOptimizer(.003)
    gradients, variables = zip(*adam.compute_gradients(loss))
    clipped, _ = tf.clip_by_global_norm(gradients, 5.)
    train = adam.apply_gradients(zip(clipped, variables), tf.train.get_or_create_global_step())
    text = scattered([32, 50], np.int32, vocabulary)
    return training_step(loss, train, [(ids, text), (following, text)], 50)


def word2vec_step(vocabulary=5000, width=64, batch=128, negatives=64):
    tf.set_random_seed(1)
    center, context = tf.placeholder(tf.int32, [batch]), tf.placeholder(tf.int64, [batch])
    vectors = tf.Variable(tf.random_uniform([vocabulary, width], -1, 1))
    weights = tf.Variable(tf.random_normal([vocabulary, width]) * .1)
    biases = tf.Variable(tf.zeros([vocabulary]))
    v = tf.gather(vectors, center)
    right = tf.reduce_sum(v * tf.gather(weights, context), 1) + tf.gather(biases, context)
    sampled, _, _ = tf.random.log_uniform_candidate_sampler(tf.expand_dims(context, 1), 1,
                                                            negatives, True, vocabulary)
    wrong = tf.matmul(v, tf.gather(weights, sampled), transpose_b=True) + tf.gather(biases, sampled)
    loss = tf.reduce_mean(tf.nn.softplus(-right) + tf.reduce_sum(tf.nn.softplus(wrong), 1))
    train = tf.train.AdagradOptimizer(.5).minimize(loss)
    return training_step(loss, train, [(center, scattered([batch], np.int32, vocabulary)),
                                       (context, scattered([batch], np.int64, vocabulary))], 500)


def frozen_probabilities(images):
    """What the network of frozen_network makes of images of [n, 784]."""
    h = tf.reshape(images, [-1, 28, 28, 1])
    *convolutions, first, last = frozen_network()
    for filters, bias in convolutions:
        h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(h, filters, 1, "SAME"), bias))
        h = tf.nn.max_pool(h, 2, 2, "VALID")
    h = tf.reshape(h, [-1, 7 * 7 * 64])
    h = tf.nn.relu(tf.nn.bias_add(tf.matmul(h, first[0]), first[1]))
    return tf.nn.softmax(tf.nn.bias_add(tf.matmul(h, last[0]), last[1]))


def inference(batch, steps):
    """The microseconds of a step on one thread."""
    images = tf.placeholder(tf.float32, [None, 784])
    with tf.Session(config=one_thread()) as session:
        step = session.make_callable(frozen_probabilities(images), feed_list=[images])
        pixels = mnist_batch(batch)[0]
        time_calls(20, lambda: step(pixels))
        return median_call(steps, lambda: step(pixels)) * 1e6


def free_hosts(count):
    held = [socket.socket() for _ in range(count)]
    for s in held:
        s.bind(("127.0.0.1", 0))
    hosts = ["127.0.0.1:%d" % s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return hosts


class Tasks:
    """This script again, as tasks of a cluster."""

    def __init__(self):
        self.processes = []

    def start(self, job, index, ps, workers, steps=0):
        process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), job, str(index), ",".join(ps),
             ",".join(workers), str(steps)], stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.send_signal(signal.SIGKILL)
            process.wait()


def run_task(job, index, ps, workers, steps):
    cluster = tf.train.ClusterSpec({"ps": ps.split(","), "worker": workers.split(",")})
    server = tf.train.Server(cluster, job_name=job, task_index=index)
    print("listening", flush=True)
    if job == "ps" or steps == 0:
        server.join()
    with tf.device(tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}",
                                                  cluster=cluster)):
        images, labels, loss, train, global_step = mnist_model()
    supervisor = tf.train.Supervisor(is_chief=index == 0, init_op=tf.global_variables_initializer(),
                                     recovery_wait_secs=1, saver=None, summary_op=None)
    batch = mnist_batch()
    with supervisor.prepare_or_wait_for_session(server.target) as session:
        def step():
            session.run([loss, train, global_step], {images: batch[0], labels: batch[1]})
        time_calls(WARM_UP, step)
        print(steps / time_calls(steps, step), flush=True)
        sys.stdin.readline()  # the other workers may still need this one's session


def asynchronous(workers):
    hosts = free_hosts(1 + workers)
    with Tasks() as tasks:
        tasks.start("ps", 0, hosts[:1], hosts[1:])
        running = [tasks.start("worker", i, hosts[:1], hosts[1:], 1000) for i in range(workers)]
        total = 0
        for process in running:
            process.stdout.readline()  # listening
            total += float(process.stdout.readline())
        return total


def with_pair(build, measure):
    """A parameter server in a process of its own, and this one as the worker."""
    hosts = free_hosts(2)
    with Tasks() as tasks:
        tasks.start("ps", 0, hosts[:1], hosts[1:]).stdout.readline()
        cluster = tf.train.ClusterSpec({"ps": hosts[:1], "worker": hosts[1:]})
        server = tf.train.Server(cluster, job_name="worker", task_index=0)
        prepare, fetch = build()
        with tf.Session(server.target) as session:
            session.run(prepare)
            return measure(session.make_callable(fetch))


def null_step():
    def build():
        with tf.device("/job:ps/task:0"):
            value = tf.Variable(1.0).value()
        return tf.global_variables_initializer(), value

    def measure(step):
        time_calls(200, step)
        return median_call(2000, step) * 1e6
    return with_pair(build, measure)


def sparse_updates():
    def measure(step):
        time_calls(5, step)
        return median_call(200, step) * 1e3
    return with_pair(lambda: load_graph("sparse_updates"), measure)


def read_variable(mebibytes):
    def build():
        with tf.device("/job:ps/task:0"):
            variable = tf.Variable(tf.zeros([mebibytes << 18]))
        with tf.device("/job:worker/task:0"):
            return tf.global_variables_initializer(), tf.identity(variable).op

    def measure(step):
        time_calls(3, step)
        return (mebibytes << 20) / median_call(15 if mebibytes > 16 else 100, step) / 1e9
    return with_pair(build, measure)


def idle_server(key):
    hosts = free_hosts(2)
    with Tasks() as tasks:
        process = tasks.start("ps", 0, hosts[:1], hosts[1:])
        process.stdout.readline()
        time.sleep(.5)
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
            return float(next(line for line in status if line.startswith(key)).split()[1])


def start_up():
    def start():
        with Tasks() as tasks:
            hosts = free_hosts(2)
            tasks.start("ps", 0, hosts[:1], hosts[1:]).stdout.readline()
    return time_calls(1, start)


ROWS = {
    "mnist_step": mnist_step,
    "smallest_run": smallest_run,
    "add_chain": add_chain,
    "noop_chain": noop_chain,
    "noop_fan": noop_fan,
    "large_graph": large_graph,
    "conv_step": conv_step,
    "char_lstm_step": char_lstm_step,
    "word2vec_step": word2vec_step,
    "inference_1": lambda: inference(1, 1000),
    "inference_100": lambda: inference(100, 100),
    "convolution": lambda: graph_step("convolution") * 1e3,
    "max_pooling": lambda: graph_step("max_pooling") * 1e3,
    "overlapping_pooling": lambda: graph_step("overlapping_pooling") * 1e3,
    "batch_norm": lambda: graph_step("batch_norm") * 1e3,
    "embedding": lambda: graph_step("embedding") * 1e3,
    "top_k": lambda: graph_step("top_k") * 1e3,
    "sort": lambda: graph_step("sort") * 1e3,
    "csv": lambda: graph_step("csv") * 1e6 / 10000,
    "queue": lambda: graph_step("queue") * 1e6 / 50,
    "pipeline": lambda: graph_step("pipeline") * 1e6 / 256,
    **tensorflow_readers.ROWS,
    "async_1": lambda: asynchronous(1),
    "async_2": lambda: asynchronous(2),
    "null_step": null_step,
    "sparse_updates": sparse_updates,
    "read_1": lambda: read_variable(1),
    "read_16": lambda: read_variable(16),
    "read_128": lambda: read_variable(128),
    "idle_memory": lambda: idle_server("VmRSS") / 1024,
    "idle_threads": lambda: idle_server("Threads"),
    "start_up": start_up,
}


def measure(row):
    with tf.Graph().as_default():
        return ROWS[row]() if row in ROWS else None


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run_task(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5]))
    else:
        peer_environment.answer(f"TensorFlow {tf.__version__}", measure)
