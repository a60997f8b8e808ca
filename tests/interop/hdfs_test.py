#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Paths of hdfs://, webhdfs:// and swebhdfs:// on Hadoop's own namenode and datanode, beside another client of
WebHDFS: files of any name and size, faults on the way, tokens, messages, and trainings whose tables, checkpoints
and event files are there."""
import concurrent.futures
import gzip
import http.server
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

from hdfs_server import HdfsFaults, USER, environment, free_port, hdfs, main_with_hdfs, realm
from server_programs import FILES, FLIGHTS, SOURCE, TENON, kill_while_saving, run, web_server

sys.path.insert(0, os.path.join(SOURCE, "tests", "system"))
from small_graphs import FLOAT, node, placeholder, write_graph  # noqa: E402


def client(address):
    """PyPI's client of WebHDFS."""
    import hdfs as other  # of the virtual environment
    return other.InsecureClient(address, user=USER)


def content(h, path):
    with client(h).read(path) as reader:
        return reader.read()


def webhdfs(address):
    return address.replace("http:", "webhdfs:")


def names_below(h, folder="/"):
    return sorted(os.path.join(root, name) for root, _, names in client(h).walk(folder) for name in names)


def files_of_hadoop(h):
    root = webhdfs(h) + "/files"
    for name in ("keys", "sizes", "large", "folders", "growing", "growing_large"):
        run(environment(), FILES, name, f"{root}/{name}")
    assert client(h).list("/files") == [], client(h).list("/files")


def many_names(h):
    other = client(h)
    other.write("/many/first", b"")
    for i in range(300):
        other.write(f"/many/part {i:05}", b"")
    done = run(environment(h), FILES, "list", "hdfs://any/many")
    assert done.stdout == "301 names\n30 matches\n", done.stdout


def faults_change_nothing(h):
    with HdfsFaults(h, part=0.3) as faults:
        root = webhdfs(faults.endpoint)
        names, threads = ("keys", "folders", "growing", "sizes", "keys", "folders", "large", "growing_large"), []
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            for i, name in enumerate(names):
                threads.append(pool.submit(run, environment(), FILES, name, f"{root}/faults/{i}"))
            for thread in threads:
                thread.result()
    print(f"  faults: {faults.counts}")
    assert sum(faults.counts.values()) > 200 and min(faults.counts.values()) > 10, faults.counts
    left = names_below(h, "/faults")
    assert all(os.path.basename(name).startswith(".tenon.tempstate") for name in left), left


class LateAppends(HdfsFaults):
    """Every second request to append breaks, and half of it comes after the one that follows."""

    def draw(self, path):
        if not self.is_append(path):
            return None
        with self.lock:
            self.counts["cut"] += 1
            return "cut" if self.counts["cut"] % 2 else None


def late_requests_change_nothing(h):
    with LateAppends(h) as faults:
        for name in ("growing", "large"):
            run(environment(), FILES, name, f"{webhdfs(faults.endpoint)}/late/{name}")
    print(f"  requests to append: {faults.counts['cut']}")
    assert faults.counts["cut"] > 30, faults.counts


def other_clients_see_them(h):
    """What another client wrote is read, and the other way round."""
    other, env = client(h), environment(h)
    key = "/ein Ordner/ü.csv"
    other.write(key, "y,x\n" + "".join(f"{i * 3 % 7},{i}\n" for i in range(50)), encoding="utf-8")
    fit = run(env, TENON, "train", "linear", "y ~ x", f"hdfs://{key}", "--format", "csv", "--model_dir",
              "hdfs:///ein Ordner/modell").stdout
    assert "50" in fit, fit
    names = names_below(h, "/ein Ordner")
    assert "/ein Ordner/modell/coefficients.csv" in names and not [n for n in names if "temp" in n], names
    assert b"(Intercept)" in content(h, "/ein Ordner/modell/coefficients.csv")
    run(env, TENON, "predict", "hdfs:///ein Ordner/modell", f"hdfs://{key}", "--output", "hdfs:///p.csv")
    assert len(content(h, "/p.csv").splitlines()) == 51
    status = other.status("/p.csv")
    assert status["owner"] == USER, status


def tables_are_fitted_as_local_ones(h):
    env, other = environment(h), client(h)
    with tempfile.TemporaryDirectory() as folder:
        with gzip.open(FLIGHTS, "rt") as file:
            lines = file.readlines()
        for i in range(3):
            path = os.path.join(folder, f"flights {i}.csv")
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(lines[:1] + lines[1 + i * 20000:1 + (i + 1) * 20000])
            other.upload(f"/tables/flights {i}.csv", path)
        other.upload("/tables/all.gz", FLIGHTS)
        shutil.copy(FLIGHTS, os.path.join(folder, "all.gz"))
        for name in ("flights *.csv", "all.gz"):
            command = [TENON, "train", "linear", "late ~ carrier + distance", "--family", "binomial", "--threads", 2]
            run(env, *command, os.path.join(folder, name), "--model_dir", os.path.join(folder, "m"))
            run(env, *command, f"{webhdfs(h)}/tables/{name}", "--model_dir", "hdfs:///m")
            with open(os.path.join(folder, "m", "coefficients.csv"), "rb") as file:
                wanted = file.read()
            found = content(h, "/m/coefficients.csv")
            assert found == wanted and len(wanted) > 300, (found, wanted)


def trainings_go_on_from_there(h):
    env, other = environment(h), client(h)
    train = [TENON, "train", "mnist", "--checkpoint_dir", "hdfs:///run", "--logs", "hdfs:///logs"]
    run(env, *train, "--max_steps", 60)
    out = run(env, *train, "--max_steps", 90).stdout
    assert "went on from step 60" in out, out
    names = names_below(h)
    assert "/run/checkpoint" in names and any(n.endswith("-90.index") for n in names), names
    assert not [n for n in names if "temp" in n], names
    events = [n for n in names if n.startswith("/logs") and "tfevents" in n]
    assert len(events) == 2 and min(other.status(n)["length"] for n in events) > 1000, events
    steps = run(env, TENON, "inspect", "hdfs:///run").stdout
    assert "hdfs:///run/" in steps and "tensors" in steps, steps
    with tempfile.TemporaryDirectory() as folder:
        other.download("/run", os.path.join(folder, "run"))
        local = run(env, TENON, "inspect", os.path.join(folder, "run")).stdout
        assert local.splitlines()[:-1] == steps.splitlines()[:-1], (local, steps)
        same = run(env, TENON, "inspect", os.path.join(folder, "run"), "--compare", "hdfs:///run").stdout
        assert ", 0 differ" in same, same
        # A checkpoint that another client brings there is one.
        other.upload("/brought", os.path.join(folder, "run"))
        same = run(env, TENON, "inspect", "hdfs:///brought", "--compare", "hdfs:///run").stdout
        assert ", 0 differ" in same, same


def what_is_killed_leaves_a_checkpoint(h):
    steps = kill_while_saving(environment(h), "hdfs:///killed", moments=8, mebibytes=34)
    print(f"  steps: {steps}")
    other = client(h)
    # Files that were being written are there by names of their own.
    left = [n for n in names_below(h, "/killed") if ".tenon.tempstate" in n]
    assert all(other.status(n)["length"] <= 17 << 20 for n in left), left


def runs_feed_and_write(h):
    """`tenon run` reads arrays from there and writes its outputs there."""
    env, other = environment(h), client(h)
    with tempfile.TemporaryDirectory() as folder:
        graph = write_graph(folder, placeholder("x", FLOAT, [-1, 2]) + node("y", "Neg", "x", T=f"type: {FLOAT}"))
        other.upload("/g.pbtxt", graph)
    other.write("/in/x.csv", b"a,b\n1,2\n3,4\n5,6\n")
    for name in ("y.csv", "y.npy", "y.npz", "y.json"):
        run(env, TENON, "run", "hdfs:///g.pbtxt", "--feed", "x=hdfs:///in/x.csv", "--fetch", "y",
            "--batch", "2", "--output", f"hdfs:///out/{name}")
    written = content(h, "/out/y.csv").decode()
    assert written.splitlines()[1:] == ["-1,-2", "-3,-4", "-5,-6"], written
    again = run(env, TENON, "run", "hdfs:///g.pbtxt", "--feed", "x=hdfs:///out/*.npy", "--fetch", "y",
                "--batch", "2", "--output", "-").stdout
    assert again.splitlines()[1:] == ["1,2", "3,4", "5,6"], again


class Answers(http.server.BaseHTTPRequestHandler):
    """What a namenode says that waits for another one to fail, one that wants a ticket of Kerberos, and a server of
    something else; the first part of the path says which."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        what = self.path.split("/")[1]
        status, headers, body = {
            "standby": (403, [], {"RemoteException": {
                "exception": "StandbyException", "message": "Operation category READ is not supported in state standby"}}),
            "kerberos": (401, [("WWW-Authenticate", "Negotiate")], "Authentication required"),
            "elsewhere": (307, [("Location", "http://127.0.0.1:1/webhdfs/v1/x?op=OPEN")], ""),
            "nothing": (200, [], {"FileStatus": {}}), "strange": (200, [], "<html>log in</html>"),
        }.get(what, (404, [], "no such page"))
        text = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", len(text))
        self.end_headers()
        self.wfile.write(text)

    do_PUT = do_POST = do_DELETE = do_GET


def messages(h):
    other = client(h)
    other.write("/private/t.csv", b"y,x\n1,2\n2,1\n3,5\n")
    other.set_permission("/private", "700")
    env, web = environment(h), webhdfs(h)
    closed = f"webhdfs://127.0.0.1:{free_port()}"
    with web_server(Answers) as a:
        for with_env, where, wanted in (
                (env, "hdfs:///no/t.csv", ["'hdfs:///no/t.csv'", "404 FileNotFoundException: File does not exist: /no/t.csv"]),
                (env, "hdfs:///private", ["'hdfs:///private'", "folder"]),
                (dict(env, HADOOP_USER_NAME="nobody-else"), web + "/private/t.csv",
                 [web, "403 AccessControlException: Permission denied: user=nobody-else, access=EXECUTE",
                  "the user is 'nobody-else', which HADOOP_USER_NAME changes"]),
                (dict(env, HADOOP_USER_NAME="no name"), web + "/private/t.csv", ["400 IllegalArgumentException", "user.name"]),
                (dict(env, TENON_HDFS_TOKEN="wrong"), web + "/private/t.csv", ["the token is that of TENON_HDFS_TOKEN"]),
                (env, closed + "/t.csv", ["127.0.0.1", "after 4 tries"]),
                (environment("://"), "hdfs:///t.csv", ["TENON_HDFS_NAMENODES has '://'", "http://namenode:9870"]),
                (environment(), "hdfs:///t.csv", ["'hdfs:///t.csv' names no namenode", "TENON_HDFS_NAMENODES is not set"]),
                (environment(), "hdfs://127.0.0.1:8020/t.csv", ["127.0.0.1 port 9870"]),
                (env, "webhdfs:///t.csv", ["names no namenode", "webhdfs://HOST:PORT/PATH"]),
                (env, "hdfs:///a/../t.csv", ["HDFS has no '..' in paths"]),
                (environment(a + "/other"), "hdfs:///t.csv", ["404", "serves no WebHDFS", "dfs.namenode.http-address"]),
                (environment(a + "/kerberos"), "hdfs:///t.csv", ["401", "TENON_HDFS_TOKEN", "kinit"]),
                (environment(a + "/nothing"), "hdfs:///t.csv", ["the answer to GETFILESTATUS"]),
                (environment(a + "/strange"), "hdfs:///t.csv", ["the answer to GETFILESTATUS", "<html>log in"]),
                (environment(a + "/elsewhere"), "hdfs:///t.csv", ["the datanode http://127.0.0.1:1, to which " + a, "4 tries"]),
                (dict(env, TENON_HDFS_PLUGIN="/nonexistent/plugin.so"), "hdfs:///t.csv",
                 ["the plugin for hdfs:// is missing: TENON_HDFS_PLUGIN names /nonexistent/plugin.so"])):
            done = run(with_env, TENON, "train", "linear", "y ~ x", where, "--format", "csv", code=1)
            for text in wanted:
                assert text in done.stderr, (text, done.stderr)
            assert len(done.stderr.splitlines()) <= 2, done.stderr
        # The one of several namenodes that answers is asked; the others are passed over.
        run(environment(f"{a}/standby,http://127.0.0.1:{free_port()},{h}"), FILES, "folders", "hdfs://cluster/x")
        # Who may not write is told so, and nothing is left.
        done = run(dict(env, HADOOP_USER_NAME="nobody-else"), FILES, "folders", "hdfs:///private/x", code=None)
        assert done.returncode != 0 and "AccessControlException" in done.stderr, done.stderr


def kerberos_and_tokens(_):
    """In a realm a ticket, or a delegation token, says who asks, whatever name is in the environment."""
    with realm() as folder, hdfs(folder) as h:
        env = dict(environment(h, KRB5_CONFIG=f"{folder}/krb5.conf", KRB5CCNAME=f"{folder}/tickets"),
                   HADOOP_USER_NAME="nobody-else")
        done = run(env, TENON, "inspect", "hdfs:///model-1", code=1)
        assert "401" in done.stderr and "kinit gets a ticket" in done.stderr, done.stderr
        subprocess.run(["kinit", "-k", "-t", f"{folder}/keytab", USER], env=env, check=True)
        for name in ("keys", "growing", "large"):
            run(env, FILES, name, f"hdfs:///ticket/{name}")
        asked = ["curl", "-s", "--negotiate", "-u:", f"{h}/webhdfs/v1/?op="]

        def ask(what):
            return subprocess.run([*asked[:-1], asked[-1] + what], env=env, check=True, capture_output=True).stdout

        token = json.loads(ask(f"GETDELEGATIONTOKEN&renewer={USER}"))["Token"]["urlString"]
        env.update(KRB5CCNAME="/nonexistent", TENON_HDFS_TOKEN=token)
        run(env, FILES, "folders", "hdfs:///token/folders")
        run(env, FILES, "large", "hdfs:///token/large")
        done = run(dict(env, TENON_HDFS_TOKEN=token[:30] + "AAAA" + token[34:]), TENON, "inspect", "hdfs:///model-1", code=1)
        assert "the token is that of TENON_HDFS_TOKEN" in done.stderr, done.stderr


class SecureServers(HdfsFaults):
    """Both servers behind TLS."""

    def __init__(self, endpoint):
        super().__init__(endpoint, part=0)
        tls = os.path.join(SOURCE, "tests", "data", "tls")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.path.join(tls, "task.pem"), os.path.join(tls, "task.key"))
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.is_plain = False

    def header(self, name, value):
        found = super().header(name, value)
        return found if self.is_plain or name.lower() != "location" else found.replace("http:", "https:", 1)


def secure_servers(h):
    """Certificates are verified, and nothing goes from HTTPS to a server without."""
    with SecureServers(h) as servers:
        root = servers.endpoint.replace("http:", "swebhdfs:") + "/secure"
        env = dict(environment(), SSL_CERT_FILE=os.path.join(SOURCE, "tests", "data", "tls", "ca.pem"))
        run(env, FILES, "sizes", root)
        run(dict(env, TENON_HDFS_NAMENODES=servers.endpoint.replace("http:", "https:")), FILES, "growing", "hdfs:///s")
        done = run(environment(), FILES, "folders", root, code=None)
        assert done.returncode != 0 and "certificate" in done.stderr and "tries" not in done.stderr, done.stderr
        servers.is_plain = True
        done = run(env, FILES, "growing", root, code=None)
        assert done.returncode != 0 and "sends from HTTPS to" in done.stderr, done.stderr


CASES = (files_of_hadoop, many_names, faults_change_nothing, late_requests_change_nothing, other_clients_see_them,
         tables_are_fitted_as_local_ones, trainings_go_on_from_there, what_is_killed_leaves_a_checkpoint,
         runs_feed_and_write, messages, kerberos_and_tokens, secure_servers)


def main():
    wanted, failed = sys.argv[1:], 0
    with hdfs() as h:
        for case in CASES:
            if wanted and case.__name__ not in wanted:
                continue
            begin = time.monotonic()
            try:
                case(h)
                print(f"ok: {case.__name__}, {time.monotonic() - begin:.1f} s", flush=True)
            except Exception as e:  # pylint: disable=broad-except
                failed += 1
                print(f"FAILED: {case.__name__}\n  {type(e).__name__}: {e}", flush=True)
            # Nothing is left for the next case.
            for name in client(h).list("/"):
                client(h).delete("/" + name, recursive=True)
    return 1 if failed else 0


if __name__ == "__main__":
    main_with_hdfs(main)
