#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `tenon run` makes of names: of nodes that are nearly right, of signatures, of words after a flag; and
what it and `tenon inspect` say of a graph that is not yet asked for anything."""
import os
import re
import sys

from small_graphs import FLOAT, INT32, ROWS, variable, write_graph
from tenon_process import GRAPHS, TENON, in_a_folder, main, run

X = ["--feed", "x=[[1, 2, 3]]"]


def expect(done, code, *wanted):
    assert done.returncode == code, (done.args, done.returncode, done.stdout, done.stderr)
    for text in wanted:
        assert text in done.stderr, f"no '{text}' in\n{done.stderr}"


def tensor_info(name, dtype, shape):
    dims = " ".join(f"dim {{ size: {d} }}" for d in shape)
    return f'name: "{name}" dtype: {dtype} tensor_shape {{ {dims} }}'


def signature(name, inputs, outputs):
    text = "".join(f'{kind} {{ key: "{key}" value {{ {info} }} }} '
                   for kind, infos in (("inputs", inputs), ("outputs", outputs))
                   for key, info in infos.items())
    return f'signature_def {{ key: "{name}" value {{ {text} method_name: "tensorflow/serving/predict" }} }}'


DOUBLE = signature("double", {"rows": tensor_info("x:0", FLOAT, [-1, 3])},
                   {"doubled": tensor_info("y:0", FLOAT, [-1, 3])})
COUNT = signature("count", {"numbers": tensor_info("n:0", INT32, [-1])},
                  {"twice": tensor_info("twice:0", INT32, [-1])})


def saved_model(folder, *signatures, tags="serve", others=""):
    with open(os.path.join(folder, "saved_model.pbtxt"), "w", encoding="utf-8") as out:
        out.write(f'saved_model_schema_version: 1 meta_graphs {{ meta_info_def {{ tags: "{tags}" }} '
                  f'graph_def {{ {ROWS} }} {" ".join(signatures)} }} {others}')
    return folder


def nodes_that_are_nearly_right(folder):
    graph = write_graph(folder)
    for arguments, wanted in (
            (["--fetch", "totl"],
             "NOT_FOUND: --fetch totl: the graph has no node 'totl'; did you mean total?"),
            (["--fetch", "y:3"], "--fetch y:3: node 'y' (AddV2) has no output 3; its only one is y:0"),
            (["--fetch", "init"],
             "--fetch init: node 'init' (NoOp) has no output; to run it, give --target init"),
            (["--target", "inti"], "--target inti: the graph has no node 'inti'; did you mean init?"),
            (["--init", "inti", "--fetch", "y"], "--init inti: the graph has no node 'inti'"),
            (["--fetch", "y", "--feed", "w/initail=1"],
             "--feed w/initail: the graph has no node 'w/initail'; did you mean w/initial?"),
            (["--fetch", "qqqqqqqqq"], "tenon inspect --nodes lists those that it has"),
            (["--fetch", "y", "--place", "nomatch=/device:CPU:0"],
             "no node's whole name matches 'nomatch'"),
            (["--fetch", "y", "--place", "ssig=/device:CPU:0"],
             "in part it matches 1, such as 'w/assign': '.*ssig.*' would take them")):
        done = run(TENON, "run", graph, *arguments)
        expect(done, 1, wanted)
        for word in ("target_node_names", "PruneForTargets", "FetchOutputs", "FeedInputs"):
            assert word not in done.stderr, done.stderr


def what_to_do(folder):
    graph = write_graph(folder)
    expect(run(TENON, "run", graph, "--fetch", "z", *X), 1, "uninitialized value w",
           "; variables get values by --init init, by --checkpoint PREFIX, or from the folder variables/ of a "
           "SavedModel")
    expect(run(TENON, "run", graph, "--fetch", "y"), 1, "; give --feed x=VALUE")


def words_after_a_flag(folder):
    graph = write_graph(folder)
    wanted = "y = float[1,3] 2 4 6\ntotal = float[] 12\n"
    for arguments in (["--fetch", "y,total", graph, *X], ["--fetch", "y", "--fetch", "total", *X, graph],
                      [graph, "--fetch", "y", "total", *X], [graph, *X, "--fetch", "y", "total"],
                      ["--fetch", "y", graph, "total", *X], [graph, *X, "--fetch=y", "total", "y"]):
        done = run(TENON, "run", *arguments)
        assert done.returncode == 0 and done.stdout == wanted, (arguments, done)
    # The graph is the first word that belongs to no flag.
    done = run(TENON, "run", *X, "--fetch", "y", "total", graph)
    expect(done, 2, f"there is no graph 'total', but a file '{graph}' where a node is wanted",
           "--fetch a,b")


def spellings(folder):
    """'-' and '_' are the same in all flags."""
    graph = write_graph(folder)
    for flags in (["--timeout-ms", "60000"], ["--timeout_ms=60000"], ["--disable_pass", "constant-folding"],
                  ["--disable-pass=constant-folding"], ["--start-up-deadline", "3"]):
        done = run(TENON, "run", graph, *X, "--fetch", "y", *flags)
        assert done.returncode == 0 and done.stdout == "y = float[1,3] 2 4 6\n", (flags, done)


def nothing_to_run(folder):
    graph = write_graph(folder)
    done = run(TENON, "run", graph)
    expect(done, 2, "tenon: nothing to run: give --fetch TENSOR or --target NODE (see tenon run --help)\n",
           "fed with\n  x  float[?,3]\n  n  int32[?]\n  t  string[?]\n", "\n  total  float[]  (Sum)\n",
           "\n  init  (NoOp)\n",
           f"for example\n  tenon run {graph} --init init --feed x=FILE.npy --feed n=FILE.npy ")
    assert done.stdout == "", done.stdout
    model = saved_model(folder, DOUBLE)
    expect(run(TENON, "run", model), 2, "signature double: rows float[?,3] -> doubled float[?,3]")
    done = run(TENON, "inspect", graph)
    assert done.returncode == 0 and "fed with\n  x  float[?,3]\n" in done.stdout, done
    assert "\n  init  (NoOp)\n" in done.stdout and "\n  total  float[]  (Sum)\n" in done.stdout, done
    # The ends of a training are neither what its gradients have left over, nor each variable.
    done = run(TENON, "run", os.path.join(GRAPHS, "mnist_ref.pb"))
    expect(done, 2, "ends in, to fetch\n  loss  ", "ends in, to run\n  train  (AssignAdd)\n  init  (NoOp)\n")
    assert "gradients" not in done.stderr and "/read" not in done.stderr, done.stderr
    # To initialise alone is something.
    done = run(TENON, "run", graph, "--init", "init")
    assert done.returncode == 0 and done.stdout == done.stderr == "", done


def graph_of_a_cluster(folder):
    """One that was saved by a task runs in this process, where its devices are not."""
    path = os.path.join(folder, "task.pbtxt")
    with open(path, "w", encoding="utf-8") as out:
        out.write(ROWS.replace("node {", 'node { device: "/job:worker/task:1/device:GPU:0"', 1) +
                  'library { function { signature { name: "F" } '
                  'node_def { name: "n" op: "NoOp" device: "/job:ps/task:0" } } }')
    done = run(TENON, "run", path, *X, "--fetch", "y")
    expect(done, 0, "the graph's devices of the job ps and worker are left out: without --master")
    assert done.stdout == "y = float[1,3] 2 4 6\n", done
    expect(run(TENON, "run", path, *X, "--fetch", "y", "--place", "y=/job:worker"), 1, "/job:worker")


def default_signature(folder):
    rows = ["--feed", "rows=[[1, 2, 3]]"]
    wanted = "doubled = float[1,3] 2 4 6\n"
    model = saved_model(folder, DOUBLE)
    done = run(TENON, "run", model, *rows)
    assert done.returncode == 0 and done.stdout == wanted, done
    saved_model(folder, DOUBLE, COUNT)
    expect(run(TENON, "run", model, "--feed", "none=1"), 2,
           "the graph has 2 signatures, 'count', 'double': choose one by --signature")
    # The one that has what is named, and no other, is meant.
    for chosen in ([], ["--fetch", "doubled"], ["--signature", "double"]):
        done = run(TENON, "run", model, *rows, *chosen)
        assert done.returncode == 0 and done.stdout == wanted, (chosen, done)
    saved_model(folder, DOUBLE.replace('"double"', '"serving_default"'), COUNT)
    done = run(TENON, "run", model, *rows)
    assert done.returncode == 0 and done.stdout == wanted, done
    expect(run(TENON, "run", model, "--feed", "row=1"), 1,
           "the signature has no input 'row', but 'rows'; did you mean rows?")
    expect(run(TENON, "run", model, "--signature", "cuont", *rows), 1, "did you mean count?")
    expect(run(TENON, "run", model, "--fetch", "doubled", *X), 1,
           "the graph has no node 'doubled'",
           "it is an output of the signature 'serving_default': give --signature serving_default")
    # What the graph has of its own is still meant by --fetch.
    done = run(TENON, "run", model, *X, "--fetch", "total")
    assert done.returncode == 0 and done.stdout == "total = float[] 12\n", done


def tags(folder):
    other = f'meta_graphs {{ meta_info_def {{ tags: "other" }} graph_def {{ {variable("q", [1], [7.0])} }} }}'
    model = saved_model(folder, DOUBLE, others=other)
    done = run(TENON, "run", model, "--tags", "other", "--init", "q/assign", "--fetch", "q")
    assert done.returncode == 0 and done.stdout == "q = float[1] 7\n", done
    expect(run(TENON, "run", model, "--tags", "none", "--fetch", "q"), 1, "none")
    done = run(TENON, "inspect", model, "--tags", "other", "--nodes")
    assert re.search("^q = VariableV2", done.stdout, re.M), done


if __name__ == "__main__":
    sys.exit(main([(name, in_a_folder(case)) for name, case in (
        ("nodes that are nearly right", nodes_that_are_nearly_right),
        ("what to do", what_to_do),
        ("words after a flag", words_after_a_flag),
        ("spellings of flags", spellings),
        ("nothing to run", nothing_to_run),
        ("a graph of a cluster", graph_of_a_cluster),
        ("the default signature", default_signature),
        ("tags", tags))]))
