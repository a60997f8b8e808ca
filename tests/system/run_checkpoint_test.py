#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tenon run --checkpoint` gives the variables the values that TensorFlow saved: by the saver of the
MetaGraph, and by their names; and says what a checkpoint lacks."""
import os
import re
import shutil
import sys
import tempfile

from small_graphs import FLOAT, constant, node, variable, write_graph
from tenon_process import SOURCE, TENON, free_addresses, main, read_npz, run, serve

CHECKPOINTS = os.path.join(SOURCE, "tests", "data", "checkpoints")
SMALL = os.path.join(CHECKPOINTS, "checkpoint_small", "model.ckpt-42")
VALUES = read_npz(os.path.join(CHECKPOINTS, "checkpoint_small.npz"))


def restored(graph, checkpoint, *names, where=()):
    """What variables have by name."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "o.npz")
        done = run(TENON, "run", graph, "--checkpoint", checkpoint, "--fetch", ",".join(names),
                   "--output", output, *where)
        assert done.returncode == 0, done.stderr
        return read_npz(output)


def mistake(*arguments, code=1):
    done = run(TENON, "run", *arguments)
    assert done.returncode == code and done.stdout == "", done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def floats_of(path):
    """The variables of floats that are whole in the checkpoint, by name."""
    done = run(TENON, "inspect", path)
    assert done.returncode == 0, done.stderr
    return re.findall(r"^(\S+)  float\[[\d,]*\], \d+ bytes$", done.stdout, re.M)


def by_the_saver():
    names = floats_of(SMALL)
    assert "a" in names, names
    for checkpoint in (SMALL, SMALL + ".index", SMALL + ".meta", os.path.dirname(SMALL)):
        found = restored(SMALL + ".meta", checkpoint, *names)
        for name in names:
            assert found[name] == VALUES[name], (name, found[name], VALUES[name])


def without_a_name():
    """The prefix is the folder, and the files begin with a dot."""
    names = floats_of(SMALL)
    with tempfile.TemporaryDirectory() as folder:
        for ending in (".index", ".data-00000-of-00001", ".meta"):
            shutil.copy(SMALL + ending, os.path.join(folder, ending))
        for checkpoint in (folder, folder + "/"):
            found = restored(os.path.join(folder, ".meta"), checkpoint, *names)
            assert all(found[name] == VALUES[name] for name in names), found
            assert floats_of(checkpoint) == names


def by_their_names():
    """A graph alone, which has no saver."""
    names = floats_of(SMALL)
    with tempfile.TemporaryDirectory() as folder:
        graph = os.path.join(folder, "graph.pb")
        done = run(TENON, "inspect", SMALL + ".meta", "--output", graph)
        assert done.returncode == 0, done.stderr
        found = restored(graph, SMALL, *names)
        for name in names:
            assert found[name] == VALUES[name], (name, found[name], VALUES[name])
        address = free_addresses(1)[0]
        with serve("--port", address.split(":")[1]):
            found = restored(graph, SMALL, "a", where=["--master", "grpc://" + address])
            assert found["a"] == VALUES["a"], found


def what_is_missing():
    a = variable("a", [2, 3], [0.0] * 6)
    b = variable("b2", [3], [1.0, 2.0, 3.0])
    both = node("both", "AddV2", "a", "b2", T=f"type: {FLOAT}")
    with tempfile.TemporaryDirectory() as folder:
        graph = write_graph(folder, a + b + both + node("init", "NoOp", "^b2/assign", "^a/assign"))
        # Only what the step needs must be there.
        assert restored(graph, SMALL, "a")["a"] == VALUES["a"]
        said = mistake(graph, "--checkpoint", SMALL, "--fetch", "both")
        assert f"--checkpoint: the checkpoint '{SMALL}' lacks 'b2'; it has a float[2,3], " in said, said
        assert "; --init NODE would initialise what is missing" in said, said
        # --init gives the rest its values, and the checkpoint what it has.
        done = run(TENON, "run", graph, "--checkpoint", SMALL, "--init", "init", "--fetch", "a,b2")
        assert done.returncode == 0 and "b2 = float[3] 1 2 3" in done.stdout, done
        other = write_graph(folder, variable("a", [3, 2], [0.0] * 6), "shape.pbtxt")
        said = mistake(other, "--checkpoint", SMALL, "--fetch", "a")
        assert f"variable 'a' of the graph is float[3,2], but the checkpoint '{SMALL}' has float[2,3]" \
            in said, said
        none = write_graph(folder, variable("prat", [1], [0.0]), "none.pbtxt")
        said = mistake(none, "--checkpoint", SMALL, "--fetch", "prat")
        assert "lacks 'prat'; it has " in said and "did you mean part?" in said, said
        bare = write_graph(folder, constant("c", FLOAT, [], [1.0]), "bare.pbtxt")
        said = mistake(bare, "--checkpoint", SMALL, "--fetch", "c")
        assert "the graph has no variables, to which the checkpoint" in said, said


def another_models_checkpoint():
    """What the saver of a MetaGraph wants, and the checkpoint lacks."""
    sharded = os.path.join(os.path.dirname(SMALL), "sharded")
    said = mistake(SMALL + ".meta", "--checkpoint", sharded, "--fetch", "a")
    assert re.search(rf"the checkpoint '{sharded}' lacks '\w+', .*; it has \w+ ", said), said
    assert "INTERNAL" not in said and "Key " not in said, said


def paths_that_are_none():
    with tempfile.TemporaryDirectory() as folder:
        graph = write_graph(folder, variable("a", [2, 3], [0.0] * 6))
        for suffix in (".index", ".data-00000-of-00001"):
            for step in (10, 9):
                shutil.copy(SMALL + suffix, os.path.join(folder, f"model-{step}{suffix}"))
        path = os.path.join(folder, "model-")
        said = mistake(graph, "--checkpoint", path + "11", "--fetch", "a")
        assert f"there is no checkpoint '{path}11', but {path}9, {path}10; did you mean model-10?" \
            in said, said
        # A name that was cut off is nearer than another one of its length.
        said = mistake(graph, "--checkpoint", path + "1", "--fetch", "a")
        assert "did you mean model-10?" in said, said
        said = mistake(graph, "--checkpoint", folder, "--fetch", "a")
        assert "it has no state file 'checkpoint'" in said and f"{path}9, {path}10" in said, said
        empty = os.path.join(folder, "empty")
        os.mkdir(empty)
        said = mistake(graph, "--checkpoint", empty, "--fetch", "a")
        assert f"there is no checkpoint in the folder '{empty}'" in said, said
        # A checkpoint in the place of the graph.
        said = mistake(path + "10", "--fetch", "a", code=2)
        assert f"'{path}10' is a checkpoint, not a graph; its variables are restored by: tenon run " \
            f"GRAPH --checkpoint {path}10" in said, said
        said = mistake(SMALL, "--fetch", "a", code=2)
        assert f"tenon run {SMALL}.meta --checkpoint {SMALL}" in said, said
        said = mistake(os.path.dirname(SMALL), "--fetch", "a", code=2)
        assert "is a folder of checkpoints, of which the latest is" in said, said
        said = mistake(folder, "--fetch", "a")
        assert "neither a SavedModel nor a folder of checkpoints" in said, said
        assert "graphs: " in said and "graph.pbtxt" in said and f"checkpoints: {path}9" in said, said


if __name__ == "__main__":
    sys.exit(main([
        ("by the saver of the MetaGraph", by_the_saver),
        ("a prefix that is a folder", without_a_name),
        ("by the names of variables", by_their_names),
        ("what is missing", what_is_missing),
        ("another model's checkpoint", another_models_checkpoint),
        ("paths that are no checkpoints", paths_that_are_none),
    ]))
