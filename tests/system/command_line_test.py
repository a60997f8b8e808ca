#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mistakes in flags have one dress, in the command and in the examples; --help names every default; output
comes before the error that follows it."""
import json
import os
import re
import subprocess
import sys
import tempfile

from small_graphs import ROWS, write_graph, write_npy
from tenon_process import BINARY, TENON, main, run

CONV = os.path.join(BINARY, "example_mnist_conv")
REPLICA = os.path.join(BINARY, "example_mnist_replica")
LSTM = os.path.join(BINARY, "example_char_lstm")


def one_dress():
    data = ["--data", "/nonexistent"]
    for program, arguments, wanted in (
            ([TENON, "serve"], ["--port", "99999"], "--port: found 99999, wanted 0 to 65535"),
            ([TENON, "serve"], [], "nothing says where to listen; give --port"),
            ([TENON, "serve"], ["--ps_hosts", "a:1", "--job_name", "ps", "--task_index", "3"], "3"),
            ([TENON, "launch"], ["--ps", "-1", "--", "x"], "--ps: found -1, wanted at least 0"),
            ([TENON, "run"], [], "graph is missing"),
            ([TENON, "run"], ["g", "--steps", "0"], "--steps: found 0, wanted 1 to 1000000000000"),
            ([TENON, "run"], ["g", "--steps", "x"], "--steps: found x, wanted a number 1 to"),
            ([TENON, "run"], ["g", "--steps", "1.5"], "--steps: found 1.5, wanted an integer that it can hold"),
            ([TENON, "run"], ["g", "--steps", "1", "--steps", "2"], "--steps: found 2 values, wanted one"),
            ([TENON, "run"], ["g", "--output", "--stats"], "--output: a value is missing"),
            ([TENON, "run"], ["g", "--feed", "x"], "--feed: found 'x', wanted NAME=VALUE"),
            ([TENON, "run"], ["g", "h"], "found 'h', which belongs to no flag"),
            ([TENON, "run"], ["g", "--fetchs", "y"], "there is no flag --fetchs; did you mean --fetch?"),
            ([TENON], [], "a subcommand is missing: run, serve, "),
            ([TENON, "train"], [], "a subcommand is missing: mnist"),
            ([TENON, "train", "mnist"], ["--model", "cnv"],
             "--model: found cnv, wanted one of mlp, conv, classic"),
            ([TENON, "train", "mnist"], ["--backup", "1"], "--backup needs --sync"),
            ([TENON, "inspect"], ["g", "--nodes", "--dot"], " exclude each other"),
            ([TENON, "devices"], ["--gpus", "-2"], "--gpus: found -2, wanted at least 0"),
            ([TENON, "train", "mnist"], ["--sync=maybe"], "--sync: found maybe, wanted true or false"),
            ([TENON, "train", "mnist"], ["--sync=2"], "--sync: found 2, wanted true or false"),
            ([TENON, "train", "mnist"], ["--sync="], "--sync: found nothing after '=', wanted true or false"),
            ([TENON, "train", "mnist"], ["--sync", "--sync=False", "--backup", "1"], "--backup needs --sync"),
            ([TENON, "inspect"], ["g", "--nodes=yes", "--dot=1"], " exclude each other"),
            ([REPLICA], ["--insecure=2"], "--insecure: found 2, wanted true or false"),
            ([REPLICA], ["--insecure=False"], "--data is missing"),
            ([CONV], [], "--data is missing"),
            ([CONV], [*data, "--steps", "0"], "--steps: found 0, wanted at least 1"),
            ([LSTM], ["--text", "t", "--learning_rate", "nan"], "--learning_rate: found nan, wanted a number above 0"),
            ([REPLICA], ["--ps_hosts", "a:1", "--worker_hosts", "b:1", "--job_name", "ps", *data,
                         "--learning_rate", "-1"], "--learning_rate: found -1, wanted above 0"),
            ([CONV], [*data, "--nosuch", "1"], "there is no flag --nosuch")):
        done = run(*program, *arguments)
        name = os.path.basename(program[0])
        see = " ".join([name, *program[1:]])
        assert done.returncode == 2 and done.stdout == "", (program, arguments, done)
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert done.stderr.startswith(f"{name}: ") and wanted in done.stderr, (wanted, done.stderr)
        assert done.stderr.endswith(f" (see {see} --help)\n"), done.stderr
    with tempfile.TemporaryDirectory() as folder:
        done = run(TENON, "run", write_graph(folder), "--batch", "2", "--fetch", "y")
        assert done.returncode == 2 and done.stderr.startswith("tenon: --batch cuts feeds "), done.stderr
        assert done.stderr.endswith(" (see tenon run --help)\n"), done.stderr
    for arguments in (["--help"], ["run", "--help"]):
        assert run(TENON, *arguments).returncode == 0
    assert run(CONV, "--help").returncode == 0


def switches():
    """As users of TensorFlow's flags write them."""
    with tempfile.TemporaryDirectory() as folder:
        run_it = [TENON, "run", write_graph(folder), "--feed", "x=[[1,2,3]]", "--fetch", "y"]
        for word, is_on in (("True", True), ("1", True), ("YES", True), ("true", True),
                            ("False", False), ("0", False), ("no", False), ("FALSE", False)):
            done = run(*run_it, f"--stats={word}")
            assert done.returncode == 0 and ("1 step: min" in done.stdout) == is_on, (word, done)
        for words, is_on in ((["--stats", "--stats=no"], False), (["--stats=no", "--stats"], True)):
            done = run(*run_it, *words)
            assert done.returncode == 0 and ("1 step: min" in done.stdout) == is_on, (words, done)
        # A switch that is off neither excludes nor needs another flag.
        done = run(TENON, "inspect", write_graph(folder), "--nodes=False", "--dot")
        assert done.returncode == 0 and done.stdout.startswith("digraph {"), done
        # What is a command's own stays as it is.
        done = run(TENON, "launch", "--ps", "0", "--workers", "1", "--", "echo", "--sync=maybe")
        assert done.returncode == 0 and "--sync=maybe" in done.stdout, done


def flags_in(text):
    """{flag: what stands beside it} of a help text."""
    found, name = {}, None
    for line in text.splitlines():
        flag = re.match(r"  (?:-\w,)?(--\w+)(?: |$)", line)
        if flag:
            name = flag[1]
            found[name] = line
        elif name and line.startswith(" " * 30):
            found[name] += " " + line.strip()
        elif not line.startswith(" "):
            name = None
    return found


def help_has_every_default():
    for command in (["run"], ["serve"], ["launch"], ["train", "mnist"], ["inspect"], ["devices"], ["bench"],
                    ["status"], ["stop"]):
        done = run(TENON, *command, "--help")
        assert done.returncode == 0, done
        lines = done.stdout.splitlines()
        assert max(map(len, lines)) <= 105, max(lines, key=len)
        flags = flags_in(done.stdout)
        assert "--help" in flags, done.stdout
        for flag, text in flags.items():
            if re.search(r"--\w+ (INT|NUMBER)", text):
                assert "default: " in text, f"{command}: {text}"
            assert "=" not in text.split()[1] if len(text.split()) > 1 else True, text
    flags = flags_in(run(TENON, "train", "mnist", "--help").stdout)
    for flag, wanted in (("--epochs", "default: 8, of classic 20"), ("--batch", "default: 100"),
                         ("--learning_rate", "default: 0.001"), ("--model", "default: mlp"),
                         ("--save_seconds", "default: 30"), ("--shards", "default: one batch a worker")):
        assert wanted in flags[flag], flags[flag]
    flags = flags_in(run(TENON, "serve", "--help").stdout)
    for flag, wanted in (("--start_up_deadline", "default: 60"), ("--worker_timeout", "default: 300"),
                         ("--max_sessions", "default: 1000"), ("--session_timeout", "default: 86400")):
        assert wanted in flags[flag], flags[flag]
    flags = flags_in(run(TENON, "launch", "--help").stdout)
    assert "default: 1" in flags["--ps"] and "default: 1" in flags["--workers"], flags
    # Names that differ in '-' and '_' are not listed twice.
    assert "--job-name" not in run(TENON, "serve", "--help").stdout


def help_begins_with_what_is_done():
    said = run(TENON, "launch", "--help").stdout.split("\n\n")[0]
    assert said.startswith("Run a program as every task of a job, here or on other hosts, until its workers end"), said


def peers_of_bench():
    def bench(peer, *flags):
        return [TENON, "bench", "--row", "smallest_run", "--runs", "1", "--peer", peer, *flags]

    with tempfile.TemporaryDirectory() as folder:
        def python_with(peer, *modules):
            """The errors of a bench beside a Python that has modules of these names, which do nothing."""
            place = os.path.join(folder, *modules)
            for module in modules:
                os.makedirs(os.path.join(place, module), exist_ok=True)
                open(os.path.join(place, module, "__init__.py"), "w", encoding="utf-8").close()
            python = os.path.join(place, "python")
            with open(python, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\nPYTHONPATH={place} exec {sys.executable} -S "$@"\n')
            os.chmod(python, 0o755)
            done = run(*bench(peer), "--peer_python", python)
            assert done.returncode == 1, done
            return done.stderr.replace(python, "PYTHON")
        for peer, release, modules in (
                ("tensorflow", "TensorFlow 2.15", {"tensorflow": "TensorFlow", "numpy": "NumPy"}),
                ("jax", "JAX 0.4", {"jax": "JAX", "jaxlib": "jaxlib", "numpy": "NumPy"}),
                ("onnxruntime", "ONNX Runtime 1.20", {"onnxruntime": "ONNX Runtime", "onnx": "ONNX", "numpy": "NumPy"})):
            for count, name in enumerate(modules.values()):
                said = python_with(peer, *list(modules)[:count])
                wanted = f"PYTHON has no {name}; --peer_python names one that has {release}\n"
                assert said == f"tenon: FAILED_PRECONDITION: {wanted}", said
            # Its traceback comes first.
            said = python_with(peer, *modules)
            assert "Traceback" in said and "ended before it began to measure; what it printed" in said, said
        for peer, advice in (("tensorflow", "; tools/install_tensorflow.sh makes one that has TensorFlow, or give"),
                             ("jax", "bench/jax_peer.py --install makes one that has JAX, or give --peer_python"),
                             ("onnxruntime", "bench/onnxruntime_peer.py --install makes one that has ONNX Runtime, or")):
            done = run("env", "-u", "TENON_TF_VENV", f"HOME={folder}", *bench(peer))
            assert done.returncode == 1 and advice in done.stderr and folder in done.stderr, done
    for python, why in (("/bin/false", "it prints nothing"), ("/bin/echo", "it prints '-c import"),
                        ("no_such_python", "it prints 'cannot run no_such_python: No such file or directory'")):
        done = run(*bench("tensorflow"), "--peer_python", python)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
        assert f"{python} is no Python that runs: {why}" in done.stderr, done
    done = run("env", "TENON_TF_VENV=/nonexistent", *bench("tensorflow"))
    assert done.returncode == 1 and "/nonexistent/bin/python is no Python" in done.stderr, done
    done = run(TENON, "bench", "--peer_python", sys.executable)
    assert done.returncode == 2 and "--peer_python needs --peer " in done.stderr, done


def rows_of_peers():
    """A row that both have, and one that the peer lacks, by a real peer's Python where it is."""
    for peer, name, environment in (("jax", "JAX", "jax-0.4.38"),
                                    ("onnxruntime", "ONNX Runtime", "onnxruntime-1.20.1")):
        if not os.path.exists(os.path.expanduser(f"~/.cache/tenon/{environment}/.tenon-installed")):
            print(f"skipped: there is no {environment}; share/bench/{peer}_peer.py --install makes it")
            continue
        with tempfile.TemporaryDirectory() as folder:
            figures = os.path.join(folder, "figures.json")
            done = run(TENON, "bench", "--runs", "1", "--peer", peer, "--row", "inference_1", "--row", "smallest_run",
                       "--output", figures)
            assert done.returncode == 0, done
            head, both, alone = done.stdout.splitlines()
            assert f" {name} " in head and re.search(r" [\d.]+x$", both) and alone.split()[-2:] == ["-", "-"], done
            with open(figures, encoding="utf-8") as file:
                both, alone = json.load(file)
            assert both[peer] > 0 and both["ratio"] > 0 and len(both[peer + "_runs"]) == 1, both
            assert alone["tenon"] > 0 and not {peer, peer + "_runs", "ratio"} & set(alone), alone


def rows_that_a_peer_lacks():
    """They are left out where no row is chosen."""
    with tempfile.TemporaryDirectory() as folder:
        # The program looks like a Python with all modules, and is a peer without any row.
        peer = os.path.join(folder, "peer")
        with open(peer, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nif [ "$1" = -c ]; then echo lacks; exit; fi\n'
                       'echo Peer 1.0\nwhile read -r row; do echo none; done\n')
        os.chmod(peer, 0o755)
        figures = os.path.join(folder, "figures.json")
        done = run(TENON, "bench", "--peer", "jax", "--peer_python", peer, "--output", figures)
        assert done.returncode == 0, done
        head, left_out = done.stdout.splitlines()
        assert " Peer 1.0 " in head and left_out.startswith("Peer 1.0 has no row for mnist_step, "), done
        with open(figures, encoding="utf-8") as file:
            assert json.load(file) == []


def output_before_errors():
    """In one file, as `>log 2>&1` has them: the steps that were, whole, then what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        graph = write_graph(folder, ROWS.replace('name: "twice" op: "AddV2" input: "n" input: "n"',
                                                 'name: "twice" op: "FloorDiv" input: "n" input: "n"'))
        n = write_npy(os.path.join(folder, "n.npy"), (3,), [1, 2, 0], descr="<i4")
        log = os.path.join(folder, "log")
        with open(log, "wb") as out:
            done = subprocess.run([TENON, "run", graph, "--feed", f"n={n}", "--batch", "1", "--fetch", "twice"],
                                  stdout=out, stderr=subprocess.STDOUT, timeout=60, check=False)
        with open(log, encoding="utf-8") as file:
            lines = file.read().splitlines()
    assert done.returncode == 1 and len(lines) == 3, lines
    assert lines[:2] == ["batch 0: twice = int32[1] 1", "batch 1: twice = int32[1] 1"], lines
    assert lines[2].startswith("tenon: INVALID_ARGUMENT: "), lines


def config_that_is_none():
    done = run(TENON, "devices", "--config", "gpu_options { nosuch: 1 }")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    assert "libprotobuf" not in done.stderr and "at character " in done.stderr, done.stderr
    assert "nosuch" in done.stderr, done.stderr
    # Found before anything else, also by commands that do more than list devices.
    for arguments in (["run", "g", "--fetch", "y"], ["serve", "--port", "0"]):
        for config, wanted in (("nosuch: 1", "--config 'nosuch: 1', at character 7: "),
                               ('device_count { key: "CPU" value: -1 }', "found -1 for device_count of CPU")):
            done = run(TENON, *arguments, "--config", config)
            assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done
            assert done.stderr.startswith("tenon: --config") and wanted in done.stderr, done.stderr
            assert done.stderr.endswith(f" (see tenon {arguments[0]} --help)\n"), done.stderr


def a_task_without_a_cluster():
    """Whoever gives a task's number alone wants a cluster, and must not get a training alone."""
    for arguments in (["--task_index", "1"], ["--job_name", "worker"]):
        done = run(TENON, "train", "mnist", *arguments)
        assert done.returncode == 2 and arguments[0] in done.stderr and "_hosts" in done.stderr, done


def ops_that_are_only_declared():
    done = run(TENON, "ops", "AnonymousIterator")
    assert done.returncode == 0 and "Only declared: graphs that have it load" in done.stdout, done.stdout
    lines = run(TENON, "ops").stdout.splitlines()
    assert all(re.fullmatch(r"\S+ +\S.*", line) for line in lines), \
        [line for line in lines if not re.fullmatch(r"\S+ +\S.*", line)][:3]


def unwritable_files():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "none", "g.pb")
        done = run(TENON, "inspect", write_graph(folder), "--output", path)
        assert done.returncode == 1 and f"--output: cannot write '{path}'" in done.stderr, done
        done = run(TENON, "inspect", write_graph(folder), "--output", "/dev/full")
        assert done.returncode == 1 and "No space left on device" in done.stderr, done


if __name__ == "__main__":
    sys.exit(main([
        ("one dress", one_dress),
        ("switches", switches),
        ("help has every default", help_has_every_default),
        ("help begins with what is done", help_begins_with_what_is_done),
        ("peers of bench", peers_of_bench),
        ("rows of peers", rows_of_peers),
        ("rows that a peer lacks", rows_that_a_peer_lacks),
        ("output before errors", output_before_errors),
        ("a --config that is none", config_that_is_none),
        ("a task without a cluster", a_task_without_a_cluster),
        ("ops that are only declared", ops_that_are_only_declared),
        ("files that cannot be written", unwritable_files),
    ]))
