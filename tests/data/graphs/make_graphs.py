# SPDX-License-Identifier: Apache-2.0
"""Writes the sample graphs and files of this folder with TensorFlow 2.15.1 (graph mode, v1 behaviour)."""
import os, shutil, sys
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
HERE = os.path.dirname(os.path.abspath(__file__)); os.chdir(HERE)


def save(name, g):
    open(name, "wb").write(g.as_graph_def().SerializeToString(deterministic=True))


def fixed(shape, scale):
    """Fixed values without a generator: scale * sin(k) in row-major order, k = 1, 2, ..."""
    n = int(np.prod(shape))
    return (scale * np.sin(np.arange(1, n + 1, dtype=np.float64))).reshape(shape).astype(np.float32)


def batch(n=32):
    k = np.arange(n * 784, dtype=np.float64)
    x = (0.5 + 0.5 * np.sin(0.37 * k + 0.11 * (k // 784) ** 2)).reshape(n, 784).astype(np.float32)
    label = (np.arange(n) * 7 + 3) % 10
    for r, c in enumerate(label):
        x[r, 78 * c:78 * c + 78] *= 0.25                # something to learn
    return x, np.eye(10, dtype=np.float32)[label]


def mnist(name, resource):
    g = tf.Graph()
    with g.as_default(), tf.variable_scope("", use_resource=resource):
        x = tf.placeholder(tf.float32, [None, 784], name="x"); y_ = tf.placeholder(tf.float32, [None, 10], name="y_")
        W1 = tf.get_variable("W1", initializer=tf.constant(fixed([784, 100], .05))); b1 = tf.get_variable("b1", [100], initializer=tf.zeros_initializer())
        W2 = tf.get_variable("W2", initializer=tf.constant(fixed([100, 10], .2))); b2 = tf.get_variable("b2", [10], initializer=tf.zeros_initializer())
        h = tf.sigmoid(tf.matmul(x, W1) + b1, name="hidden")
        logits = tf.add(tf.matmul(h, W2), b2, name="logits")
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y_, logits=logits), name="loss")
        gs = tf.get_variable("global_step", [], tf.int64, initializer=tf.zeros_initializer(), trainable=False)
        tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=gs, name="train")
        tf.global_variables_initializer()
        save(name + ".pb", g)
        bx, by = batch(); out = {}
        with tf.Session() as s:
            s.run("init")
            out["logits_before"] = s.run("logits:0", {x: bx}); ls = []
            for _ in range(10):
                l, _ = s.run(["loss:0", "train"], {x: bx, y_: by}); ls.append(l)
            out["loss"] = np.array(ls, np.float32); out["loss_after"] = s.run("loss:0", {x: bx, y_: by})
            out["b1"], out["b2"], out["W2"], out["global_step"] = s.run([b1, b2, W2, gs])
        np.savez_compressed(name + ".npz", x=bx.astype(np.float32), y_=by, **out)
        print(name, len(g.as_graph_def().node), "nodes; losses", ls)


def cond():
    g = tf.Graph()
    with g.as_default():
        p = tf.placeholder(tf.bool, [], name="p"); x = tf.placeholder(tf.float32, [3], name="x"); w = tf.constant([1., 2., 3.], name="w")
        r = tf.cond(p, lambda: tf.reduce_sum(tf.square(x) * w), lambda: tf.reduce_sum(x) - tf.cond(tf.reduce_sum(x) > 0., lambda: w[0], lambda: tf.reduce_sum(w)), name="cond")
        tf.identity(r, name="result"); tf.identity(tf.gradients(r, x)[0], name="grad")
        save("cond_v1.pb", g); d = {}
        with tf.Session() as s:
            for i, (pv, xv) in enumerate([(True, [1., -2., 3.]), (False, [1., -2., 3.]), (False, [-1., -2., -3.])]):
                d["p%d" % i], d["x%d" % i] = np.bool_(pv), np.array(xv, "f"); d["result%d" % i], d["grad%d" % i] = s.run(["result:0", "grad:0"], {p: pv, x: xv})
        np.savez_compressed("cond_v1.npz", **d); print("cond", {k: v.tolist() for k, v in d.items()})


def loop():
    g = tf.Graph()
    with g.as_default():
        x = tf.placeholder(tf.float32, [2], name="x"); n = tf.placeholder(tf.int32, [], name="n"); w = tf.constant([[.5, .25], [-.75, 1.]], name="w")
        def body(i, a):
            def inner(j, b):
                return j + 1, tf.tanh(b * 1.5)
            _, c = tf.while_loop(lambda j, b: j < 2, inner, [tf.constant(0), a], name="inner")
            return i + 1, tf.squeeze(tf.matmul(tf.expand_dims(c, 0), w), [0]) + a * a
        i, r = tf.while_loop(lambda i, a: i < n, body, [tf.constant(0), x], name="outer", parallel_iterations=4)
        tf.identity(i, name="count"); tf.identity(r, name="result"); loss = tf.reduce_sum(r, name="loss")
        tf.identity(tf.gradients(loss, x)[0], name="grad_x"); tf.identity(tf.gradients(loss, w)[0], name="grad_w")
        ta = tf.TensorArray(tf.float32, size=n, name="ta")
        _, ta = tf.while_loop(lambda k, t: k < n, lambda k, t: (k + 1, t.write(k, tf.square(tf.cast(k, tf.float32)))), [tf.constant(0), ta], name="fill")
        tf.identity(ta.stack(), name="squares")
        save("while_v1.pb", g); d = {}
        with tf.Session() as s:
            for k, (xv, nv) in enumerate([([.3, -.2], 3), ([.3, -.2], 0), ([-.5, .4], 5)]):
                d["x%d" % k], d["n%d" % k] = np.array(xv, "f"), np.int32(nv)
                for o in ("count", "result", "grad_x", "grad_w", "squares"): d["%s%d" % (o, k)] = s.run(o + ":0", {x: xv, n: nv})
        np.savez_compressed("while_v1.npz", **d); print("while", sorted({m.op for m in g.as_graph_def().node}), {k: v.tolist() for k, v in d.items()})


def summary():
    g = tf.Graph()
    with g.as_default():
        v = tf.placeholder(tf.float32, [None], name="v")
        tf.summary.scalar("average", tf.reduce_mean(v)); tf.summary.histogram("values", v); tf.summary.scalar("peak", tf.reduce_max(v))
        tf.identity(tf.summary.merge_all(), name="merged")
        save("summary.pb", g); xv = np.array([-2., -.5, 0., .25, .25, 3., 1e3], "f")
        with tf.Session() as s: m = s.run("merged:0", {v: xv})
        np.savez_compressed("summary.npz", v=xv, merged=np.frombuffer(m, np.uint8))
        q = tf.Summary.FromString(m); print("summary", [(u.tag, u.WhichOneof("value")) for u in q.value])


def checkpoint():
    shutil.rmtree("checkpoint_small", ignore_errors=True); os.mkdir("checkpoint_small")
    g = tf.Graph()
    def part(shape, dtype=None, partition_info=None):
        return tf.constant(np.arange(20, dtype=np.float32).reshape(10, 2)[partition_info.var_offset[0]:][:shape[0]])
    with g.as_default():
        a = tf.get_variable("a", initializer=np.arange(6, dtype=np.float32).reshape(2, 3)); b = tf.get_variable("scope/b", initializer=np.array([1, -2, 3], np.int64), use_resource=True)
        c = tf.get_variable("c", initializer=np.array([b"", b"xyz", b"\x00\xff" * 100], dtype=object), dtype=tf.string)
        d = tf.get_variable("flag", initializer=True); e = tf.get_variable("half", initializer=np.array([1.5, -2.], np.float16))
        z = tf.get_variable("empty", initializer=np.zeros([0, 4], np.float64))
        p = tf.get_variable("part", [10, 2], initializer=part, partitioner=tf.fixed_size_partitioner(3))
        gs = tf.train.get_or_create_global_step()
        saver = tf.train.Saver()
        with tf.Session() as s:
            s.run(tf.global_variables_initializer()); s.run(gs.assign(42)); saver.save(s, "checkpoint_small/model.ckpt", global_step=42)
            np.savez_compressed("checkpoint_small.npz", **{"a": s.run(a), "scope__b": s.run(b), "flag": s.run(d), "half": s.run(e), "empty": s.run(z), "part": np.arange(20, dtype=np.float32).reshape(10, 2), "global_step": s.run(gs)})
        sharded = tf.train.Saver({"a": a, "scope/b": b}, sharded=True, name="sharded")
        with tf.Session() as s:
            s.run(tf.global_variables_initializer()); sharded.save(s, "checkpoint_small/sharded", write_meta_graph=False, write_state=False)
    print("checkpoint", os.listdir("checkpoint_small"))


def records():
    recs = [b"", b"abc", bytes(range(256)) * 3, tf.train.Example(features=tf.train.Features(feature={"label": tf.train.Feature(int64_list=tf.train.Int64List(value=[7])), "x": tf.train.Feature(float_list=tf.train.FloatList(value=[.5, -1.])), "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"n"]))})).SerializeToString(deterministic=True)]
    for f, o in (("records.tfrecord", ""), ("records_gzip.tfrecord", "GZIP"), ("records_zlib.tfrecord", "ZLIB")):
        with tf.io.TFRecordWriter(f, options=o) as w:
            for r in recs: w.write(r)
    shutil.rmtree("events", ignore_errors=True)
    w = tf.summary.FileWriter("events", filename_suffix=".sample"); g = tf.Graph()
    with g.as_default(): tf.constant(1., name="one")
    w.add_graph(g); w.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 0)
    for k in range(3): w.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=1. / (k + 1))]), k)
    w.add_run_metadata(tf.RunMetadata(), "step_2", 2); w.close()
    n = os.listdir("events")[0]; os.rename("events/" + n, "events/events.out.tfevents.1700000000.host.sample")
    print("events", [e.WhichOneof("what") for e in tf.train.summary_iterator("events/events.out.tfevents.1700000000.host.sample")])


if __name__ == "__main__":
    mnist("mnist_ref", False); mnist("mnist_resource", True); cond(); loop(); summary(); checkpoint(); records()
