# SPDX-License-Identifier: Apache-2.0
"""Reads what the programs with labelled_graph.h write."""
import os
import subprocess
import tempfile

from tensorflow_environment import TENON


def labelled_graph(tf, program):
    """The graph of a program beside `tenon`, and its tensors and nodes by their labels."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.pb")
        run = subprocess.run([os.path.join(os.path.dirname(TENON), program), path],
                             capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise RuntimeError(f"{program}: {run.stderr}")
        graph = tf.Graph()
        with graph.as_default(), open(path, "rb") as file:
            tf.import_graph_def(tf.GraphDef.FromString(file.read()), name="")
    names = dict(line.rsplit(" ", 1) for line in run.stdout.splitlines())

    def value(name):
        element = graph.as_graph_element(name)
        return element.outputs[0] if hasattr(element, "outputs") and element.outputs else element

    return graph, {label: value(name) for label, name in names.items()}
