#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tenon run` gives TensorFlow's results on the sample graphs: in process, on one server, and with
the variables of the MNIST networks on a parameter server."""
import os
import sys
import tempfile

from tenon_process import GRAPHS, TENON, free_addresses, main, read_npz, run, serve

RELATIVE, ABSOLUTE = 1e-4, 1e-6
VARIABLES = "(W1|W2|b1|b2|global_step)"


def expect_near(what, found, wanted):
    assert found[0] == wanted[0], f"{what}: shape {found[0]}, wanted {wanted[0]}"
    for a, b in zip(found[1], wanted[1]):
        assert abs(a - b) <= ABSOLUTE + RELATIVE * abs(b), f"{what}: found {a}, wanted {b}"


def results(graph, *flags):
    """What `tenon run` writes."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "out.npz")
        done = run(TENON, "run", os.path.join(GRAPHS, graph + ".pb"), "--output", output, *flags)
        assert done.returncode == 0, done.stderr
        return read_npz(output)


def feed(graph, tensor, key):
    return ["--feed", f"{tensor}={os.path.join(GRAPHS, graph)}.npz:{key}"]


def fetch(names):
    return [word for name in names for word in ("--fetch", name + ":0")]


def cond(where):
    wanted = read_npz(os.path.join(GRAPHS, "cond_v1.npz"))
    for k in range(3):
        found = results("cond_v1", *feed("cond_v1", "p:0", f"p{k}"),
                        *feed("cond_v1", "x:0", f"x{k}"), *fetch(["result", "grad"]), *where)
        for name in ("result", "grad"):
            expect_near(f"{name}{k}", found[name + ":0"], wanted[f"{name}{k}"])


def loop(where):
    wanted = read_npz(os.path.join(GRAPHS, "while_v1.npz"))
    names = ["count", "result", "grad_x", "grad_w", "squares"]
    for k in range(3):
        found = results("while_v1", *feed("while_v1", "x:0", f"x{k}"),
                        *feed("while_v1", "n:0", f"n{k}"), *fetch(names), *where)
        for name in names:
            expect_near(f"{name}{k}", found[name + ":0"], wanted[f"{name}{k}"])


def summary(where):
    wanted = read_npz(os.path.join(GRAPHS, "summary.npz"))["merged"][1]
    found = results("summary", *feed("summary", "v:0", "v"), *fetch(["merged"]), *where)
    assert found["merged:0"][1].rstrip(b"\0") == wanted.rstrip(b"\0"), found["merged:0"]


def mnist(graph, where):
    wanted = read_npz(os.path.join(GRAPHS, graph + ".npz"))["loss"][1]
    found = results(graph, "--init", "init", *feed(graph, "x:0", "x"), *feed(graph, "y_:0", "y_"),
                    *fetch(["loss"]), "--target", "train", "--steps", str(len(wanted)), *where)
    for k, loss in enumerate(wanted):
        expect_near(f"loss {k}", found[f"loss:0/{k}"], ((), [loss]))


def all_graphs(where):
    cond(where)
    loop(where)
    summary(where)
    mnist("mnist_ref", where)


def one_server(graphs):
    address = free_addresses(1)[0]
    with serve("--port", address.split(":")[1]):
        graphs(["--master", "grpc://" + address])


def with_parameter_server(graph):
    ps, worker = free_addresses(2)
    cluster = ["--ps_hosts", ps, "--worker_hosts", worker]
    with serve(*cluster, "--job_name", "ps"), serve(*cluster, "--job_name", "worker"):
        mnist(graph, ["--master", "grpc://" + worker, "--place", f"{VARIABLES}=/job:ps/task:0",
                      "--place", "x|y_=/job:worker/task:0"])


def texts():
    """Whole and on one line, whatever their bytes are, as Python's repr shows them."""
    values = [b"plain", b"it's", b"zero\0after", b"", bytes(range(256))]
    escaped = [f'string_val: "{"".join(chr(92) + format(c, "03o") for c in v)}"' for v in values]
    with tempfile.TemporaryDirectory() as folder:
        graph = os.path.join(folder, "texts.pbtxt")
        with open(graph, "w", encoding="ascii") as file:
            file.write(f"""node {{ name: "t" op: "Const"
                attr {{ key: "dtype" value {{ type: DT_STRING }} }}
                attr {{ key: "value" value {{ tensor {{ dtype: DT_STRING
                    tensor_shape {{ dim {{ size: {len(values)} }} }} {" ".join(escaped)} }} }} }} }}""")
        done = run(TENON, "run", graph, "--fetch", "t")
    assert done.returncode == 0, done.stderr
    wanted = " ".join(repr(v)[1:] for v in values)
    assert done.stdout == f"t = string[{len(values)}] {wanted}\n", done.stdout


if __name__ == "__main__":
    sys.exit(main([
        ("in process", lambda: all_graphs([])),
        ("texts of any bytes", texts),
        ("in process, resource variables", lambda: mnist("mnist_resource", [])),
        ("one server", lambda: one_server(all_graphs)),
        ("one server, resource variables",
         lambda: one_server(lambda where: mnist("mnist_resource", where))),
        ("variables on a parameter server", lambda: with_parameter_server("mnist_ref")),
        ("resource variables on a parameter server",
         lambda: with_parameter_server("mnist_resource")),
    ]))
