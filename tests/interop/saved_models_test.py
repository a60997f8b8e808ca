#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SavedModels, both ways: TensorFlow loads and calls what ExportSavedModel wrote, as version 1 and 2;
LoadSavedModel and `tenon run` do it with what TensorFlow 1's and 2's exporters wrote."""
import os
import subprocess
import tempfile

from tensorflow_environment import TENON, main_with_tensorflow

PROGRAM = os.path.join(os.path.dirname(TENON), "saved_model_program")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stderr}")
    return done.stdout


def tenon_exports(tf, np, kind):
    x = np.array([[1, 2], [-1, 0.5]], np.float32)
    wanted = x @ np.array([[1, 2, 3], [4, 5, 6]]) + [10, 20, 30]
    with tempfile.TemporaryDirectory() as parent:
        folder = os.path.join(parent, "model")
        run(PROGRAM, "export", folder, kind)
        v1 = tf.compat.v1
        with v1.Graph().as_default(), v1.Session() as session:
            meta = v1.saved_model.load(session, ["serve"], folder)
            call = meta.signature_def["serving_default"]
            assert call.method_name == "tensorflow/serving/predict"
            found = session.run(call.outputs["scores"].name, {call.inputs["inputs"].name: x})
            assert np.array_equal(found, wanted), found
            call = meta.signature_def["lookup"]
            found = session.run(call.outputs["number"].name,
                                {call.inputs["word"].name: ["two", "none", "one"]})
            assert list(found) == [2, -1, 1], found
            assert len(v1.trainable_variables()) == 2
        model = tf.saved_model.load(folder)
        found = model.signatures["serving_default"](inputs=tf.constant(x))["scores"]
        assert np.array_equal(found, wanted), found
        found = model.signatures["lookup"](word=tf.constant(["one", "x"]))["number"]
        assert list(found.numpy()) == [1, -1], found


def tenon_exports_assets(tf, np):
    """The words of a table, whose file is deleted, and whose model is moved."""
    with tempfile.TemporaryDirectory() as parent:
        folder, words = os.path.join(parent, "exported"), os.path.join(parent, "words.txt")
        with open(words, "w", encoding="utf-8") as file:
            file.write("zero\none\ntwo\n")
        run(PROGRAM, "export_with_assets", folder, words)
        os.remove(words)
        folder = os.path.join(parent, "model")
        os.rename(os.path.join(parent, "exported"), folder)
        assert os.listdir(os.path.join(folder, "assets")) == ["words.txt"]
        asked, wanted = ["two", "none", "zero"], [12, 9, 10]
        v1 = tf.compat.v1
        with v1.Graph().as_default(), v1.Session() as session:
            meta = v1.saved_model.load(session, ["serve"], folder)
            call = meta.signature_def["serving_default"]
            found = session.run(call.outputs["id"].name, {call.inputs["word"].name: asked})
            assert list(found) == wanted, found
            assert len(v1.get_collection("saved_model_assets")) == 1
        model = tf.saved_model.load(folder)
        found = model.signatures["serving_default"](word=tf.constant(asked))["id"]
        assert list(found.numpy()) == wanted, found
        text = run(TENON, "run", folder, "--signature", "serving_default",
                   "--feed", 'word=["two", "none", "zero"]')
        assert text == "id = int64[3] 12 9 10\n", text


def tenon_loads(np, folder, signature, inputs, wanted):
    """LoadSavedModel and `tenon run` give what TensorFlow gave."""
    with tempfile.TemporaryDirectory() as other:
        given, found = os.path.join(other, "in.npz"), os.path.join(other, "out.npz")
        np.savez(given, **inputs)
        feeds = [word for name in inputs for word in ("--feed", f"{name}={given}:{name}")]
        for command in ([PROGRAM, "load", folder, signature, given, found],
                        [TENON, "run", folder, "--signature", signature, *feeds,
                         "--output", found]):
            run(*command)
            with np.load(found) as values:
                assert sorted(values) == sorted(wanted), (sorted(values), sorted(wanted))
                for name, value in wanted.items():
                    assert np.allclose(values[name], value, rtol=1e-5), (name, values[name], value)
            os.remove(found)


def version_1(tf, np, kind):
    """simple_save, with a partitioned variable."""
    v1 = tf.compat.v1
    x = np.array([[1, 2, 3, 4], [-1, 0.5, 0, 2]], np.float32)
    with tempfile.TemporaryDirectory() as parent, v1.Graph().as_default():
        folder = os.path.join(parent, "model")
        inputs = v1.placeholder(tf.float32, [None, 4])
        w = v1.get_variable("w", [4, 3], use_resource=kind == "resource",
                            initializer=v1.random_normal_initializer(seed=1),
                            partitioner=v1.fixed_size_partitioner(2))
        y = tf.tanh(tf.matmul(inputs, tf.convert_to_tensor(w)))
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            wanted = session.run(y, {inputs: x})
            v1.saved_model.simple_save(session, folder, {"a": inputs}, {"y": y, "z": 2 * y})
        tenon_loads(np, folder, "serving_default", {"a": x}, {"y": wanted, "z": 2 * wanted})


def version_1_with_assets(tf, np):
    """A table that an asset fills: the main op reads the file beside the model."""
    v1 = tf.compat.v1
    with tempfile.TemporaryDirectory() as parent, v1.Graph().as_default():
        folder, words = os.path.join(parent, "model"), os.path.join(parent, "words.txt")
        with open(words, "w", encoding="utf-8") as file:
            file.write("zero\none\ntwo\n")
        ids = v1.placeholder(tf.int64, [None])
        table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
            words, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1)
        lengths = tf.strings.length(["zero", "two"])
        number = table.lookup(tf.gather(tf.constant(["two", "zero", "x", "one"]), ids))
        with v1.Session() as session:
            session.run(v1.tables_initializer())
            builder = v1.saved_model.Builder(folder)
            signature = v1.saved_model.predict_signature_def(
                {"ids": ids}, {"number": number, "lengths": lengths})
            builder.add_meta_graph_and_variables(
                session, ["serve"], {"serving_default": signature},
                assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
                main_op=v1.tables_initializer())
            builder.save()
        os.remove(words)
        tenon_loads(np, folder, "serving_default", {"ids": np.array([0, 2, 3, 1], np.int64)},
                    {"number": [2, -1, 1, 0], "lengths": [4, 3]})


def version_2(tf, np):
    """tf.saved_model.save of a module whose functions call others, branch and loop."""
    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(tf.random.stateless_normal([3, 3], [1, 2]), name="w")
            self.b = tf.Variable([1., 2., 3.], name="b")

        @tf.function
        def layer(self, x):
            return tf.nn.relu(tf.matmul(x, self.w) + self.b)

        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, "x"),
                                      tf.TensorSpec([], tf.int32, "n")])
        def call(self, x, n):
            for _ in tf.range(n):
                x = self.layer(x)
            if tf.reduce_sum(x) > 10.:
                x = x / tf.reduce_sum(x)
            return {"y": x, "norm": tf.norm(x)}

    module = Module()
    x = np.array([[1, 2, 3], [-1, 0.5, 0]], np.float32)
    with tempfile.TemporaryDirectory() as parent:
        folder = os.path.join(parent, "model")
        tf.saved_model.save(module, folder, signatures={"serving_default": module.call})
        for n in (0, 3):
            wanted = {k: v.numpy() for k, v in module.call(x, n).items()}
            tenon_loads(np, folder, "serving_default", {"x": x, "n": np.int32(n)}, wanted)


def keras(tf, np):
    inputs = tf.keras.Input([8, 8, 1], name="image")
    h = tf.keras.layers.Conv2D(4, 3, activation="relu")(inputs)
    h = tf.keras.layers.BatchNormalization()(h)
    h = tf.keras.layers.GlobalAveragePooling2D()(h)
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(5, activation="softmax", name="class")(h))
    x = np.random.default_rng(1).random((3, 8, 8, 1), np.float32)
    with tempfile.TemporaryDirectory() as parent:
        folder = os.path.join(parent, "model")
        tf.saved_model.save(model, folder)
        loaded = tf.saved_model.load(folder).signatures
        call = loaded["serving_default"]
        name = list(call.structured_input_signature[1])[0]
        wanted = {k: v.numpy() for k, v in call(**{name: tf.constant(x)}).items()}
        tenon_loads(np, folder, "serving_default", {name: x}, wanted)


def main():
    import numpy as np
    import tensorflow as tf
    tf.get_logger().setLevel("ERROR")
    for kind in ("ref", "resource"):
        tenon_exports(tf, np, kind)
        version_1(tf, np, kind)
    tenon_exports_assets(tf, np)
    version_1_with_assets(tf, np)
    version_2(tf, np)
    keras(tf, np)
    return 0


if __name__ == "__main__":
    main_with_tensorflow(main)
