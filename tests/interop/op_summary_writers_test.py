#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Summary writers in graphs, as TensorFlow's summaries of version 2 make them, write the events that TensorFlow's write.

One graph is run on TensorFlow and, through its client, on a Tenon server; both event files are read by
TensorFlow and must be the same but for the times.
"""
import glob
import tempfile

from tensorflow_environment import Servers, main_with_tensorflow


def build(folder):
    """What opens the writer, the steps, and what closes it."""
    import numpy as np
    import tensorflow.compat.v1 as tf
    import tensorflow as tf2
    raw = tf.raw_ops
    step = tf.placeholder_with_default(tf.constant(3, tf.int64), [])
    writer = tf2.summary.create_file_writer(folder, filename_suffix=".v2")
    with writer.as_default(step=step):
        modern = [tf2.summary.scalar("loss", 0.25), tf2.summary.histogram("weights", tf.range(20.0)),
                  tf2.summary.text("words", ["one", "two"]), tf2.summary.write("plain", tf.constant([[1, 2], [3, 4]]))]
    one = raw.SummaryWriter(shared_name="raw writer")
    opened = raw.CreateSummaryFileWriter(writer=one, logdir=folder + "/raw", max_queue=1, flush_millis=10, filename_suffix=".x")
    images = tf.constant(np.random.default_rng(1).integers(0, 255, [2, 4, 5, 3]), tf.uint8)
    floats = tf.constant(np.random.default_rng(2).normal(size=[2, 4, 5, 1]), tf.float32)
    sounds = tf.constant(np.random.default_rng(3).uniform(-1, 1, [2, 50, 2]), tf.float32)
    summaries = tf.stack([tf.Summary(value=[tf.Summary.Value(tag=t, simple_value=v)]).SerializeToString()
                          for t, v in (("a", 1.0), ("b", 2.0))])
    event = tf.Event(step=11, wall_time=5.0, file_version="other").SerializeToString()
    graph = tf.GraphDef(node=[tf.NodeDef(name="n", op="NoOp")]).SerializeToString()
    old = [raw.WriteScalarSummary(writer=one, step=step, tag=t, value=v) for t, v in (
               ("float", tf.constant(0.5)), ("int", tf.constant(7)), ("half", tf.constant(0.1, tf.float16)))]
    old += [raw.WriteHistogramSummary(writer=one, step=step, tag="h", values=v) for v in (
                tf.constant([1.0, -2.0, 1e-20, 1e30]), tf.constant([1, 2, 2, -3]), tf.constant([True, False, True]),
                tf.zeros([0]))]
    old += [raw.WriteImageSummary(writer=one, step=step, tag="i", tensor=t, bad_color=tf.constant([255, 0, 0, 255], tf.uint8),
                                  max_images=n) for t, n in ((images, 3), (images, 1), (floats, 2))]
    old += [raw.WriteAudioSummary(writer=one, step=step, tag="s", tensor=sounds, sample_rate=800.0, max_outputs=n) for n in (1, 3)]
    old += [raw.WriteSummary(writer=one, step=step, tensor=t, tag="t", summary_metadata=m) for t, m in (
                (tf.constant([1.0, 2.0]), b""), (tf.constant(["x", "yz"]), b"\n\x03\n\x01p"))]
    old += [raw.WriteRawProtoSummary(writer=one, step=step, tensor=summaries), raw.WriteGraphSummary(writer=one, step=step, tensor=graph),
            raw.ImportEvent(writer=one, event=event), raw.FlushSummaryWriter(writer=one)]
    wrong = [raw.WriteHistogramSummary(writer=one, step=step, tag="h", values=[float("nan")]),
             raw.WriteRawProtoSummary(writer=one, step=step, tensor=["\xff"]), raw.ImportEvent(writer=one, event="\xff"),
             raw.WriteImageSummary(writer=one, step=step, tag="i", tensor=floats[0], bad_color=tf.constant([255], tf.uint8)),
             raw.FlushSummaryWriter(writer=raw.SummaryWriter(shared_name="nobody"))]
    return [writer.init(), opened], modern + old, wrong, [writer.close(), raw.CloseSummaryWriter(writer=one)]


def run(target, folder):
    """The codes of the steps that fail."""
    import tensorflow.compat.v1 as tf
    codes = []
    with tf.Graph().as_default(), tf.Session(target) as session:
        opened, right, wrong, closed = build(folder)
        session.run(opened)
        session.run(opened)
        for operation in right:
            session.run(operation)
        for operation in wrong:
            try:
                session.run(operation)
                codes.append(None)
            except tf.errors.OpError as e:
                codes.append(e.error_code)
        session.run(closed)
    return codes


def events(folder, pattern):
    """Those of the only file, without the times that differ."""
    import tensorflow.compat.v1 as tf
    found = glob.glob(f"{folder}/{pattern}")
    assert len(found) == 1, f"found {found}, wanted one file {pattern}"
    read = list(tf.train.summary_iterator(found[0]))
    for event in read:
        assert event.wall_time > 0, event
        if event.step != 11:
            event.wall_time = 0
        for value in event.summary.value:
            # Files of the same pixels may differ.
            if value.HasField("image"):
                value.image.encoded_image_string = tf.image.decode_png(value.image.encoded_image_string).numpy().tobytes()
    return read


def main():
    import tensorflow.compat.v1 as tf
    with tempfile.TemporaryDirectory() as theirs, tempfile.TemporaryDirectory() as ours:
        wanted_codes = run("", theirs)
        with Servers({"local": 1}) as servers:
            codes = run(servers.target("local"), ours)
        assert codes == wanted_codes, f"found {codes}, wanted {wanted_codes}"
        count = 0
        tf.enable_eager_execution()
        for pattern in ("*.v2", "raw/*.x"):
            wanted, found = events(theirs, pattern), events(ours, pattern)
            assert len(found) == len(wanted), f"found {len(found)} events, wanted {len(wanted)}"
            for w, f in zip(wanted, found):
                assert w == f, f"found {f}, wanted {w}"
            count += len(wanted)
    print(f"ok: {count} events as TensorFlow writes them")
    return 0


if __name__ == "__main__":
    main_with_tensorflow(main)
