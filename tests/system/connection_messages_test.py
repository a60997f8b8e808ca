#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the command says of a server that it cannot talk to, what that server says of it, and which tasks
of a cluster `tenon status` misses."""
import http.server
import os
import signal
import socket
import sys
import tempfile
import threading
import time

from small_graphs import write_graph
from tenon_process import SOURCE, TENON, free_addresses, main, run, serve

TLS = os.path.join(SOURCE, "tests", "data", "tls")
CERTIFICATE = ["--tls_cert", os.path.join(TLS, "task.pem"), "--tls_key", os.path.join(TLS, "task.key"),
               "--tls_ca", os.path.join(TLS, "ca.pem")]


def said(code, *arguments):
    """The one line of a command that fails."""
    done = run(TENON, *arguments)
    assert done.returncode == code and done.stdout == "", done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def expect(text, *wanted):
    for part in wanted:
        assert part in text, f"no '{part}' in\n{text}"


def without_tls():
    address, = free_addresses(1)
    with tempfile.TemporaryDirectory() as folder, \
            serve("--port", address.split(":")[1], *CERTIFICATE) as server:
        wanted = "perhaps the server wants TLS (--tls_cert, --tls_key, --tls_ca)"
        expect(said(1, "status", "grpc://" + address), address, wanted)
        # It tries for three seconds, many times.
        expect(said(1, "run", write_graph(folder), "--init", "init", "--master", "grpc://" + address,
                    "--start_up_deadline", "3"), address, wanted)
        server.wait_for("a client was refused: it does not use TLS, as this server does")
        refusals = [line for line in server.lines if "a client was refused" in line]
        assert len(refusals) < 3, server.text()
        for raw in ("ssl_transport_security", "wrong version number", "WRONG_VERSION_NUMBER"):
            assert raw not in server.text(), server.text()
        assert run(TENON, "status", "grpc://" + address, *CERTIFICATE).returncode == 0


def ports_of_others():
    """A web server, a program that never answers, nobody, and a host that there is not."""
    web = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    web.RequestHandlerClass.log_message = lambda *_: None
    threading.Thread(target=web.serve_forever, daemon=True).start()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        for port, wanted in ((web.server_address[1], "it is no server of Tenon's or TensorFlow's"),
                             (silent.getsockname()[1], "takes connections but d")):
            expect(said(1, "status", f"grpc://127.0.0.1:{port}"), f"127.0.0.1:{port}", wanted)
    web.shutdown()
    address, = free_addresses(1)
    expect(said(1, "status", "grpc://" + address), address, "Connection refused")
    expect(said(1, "status", "grpc://nosuchhost.invalid:2222"), "nosuchhost.invalid:2222",
           "no address is known for that host")
    for target, wanted in (("grpc://127.0.0.1", "names no host and port; wanted grpc://host:port"),
                           ("127.0.0.1:2222", "wanted grpc://host:port; did you mean grpc://127.0.0.1:2222?"),
                           ("grpc://127.0.0.1:99999", "wanted grpc://host:port")):
        expect(said(1, "status", target), target, wanted)


def certificates_that_are_none():
    """One line, of ours."""
    done = run(TENON, "serve", "--port", "0", *CERTIFICATE[:3], os.path.join(TLS, "stranger.key"),
               *CERTIFICATE[4:])
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
    expect(done.stderr, "do not make a server")


def stop_is_said():
    address, = free_addresses(1)
    with serve("--port", address.split(":")[1]) as server:
        done = run(TENON, "stop", "grpc://" + address)
        assert done.returncode == 0 and done.stdout == f"grpc://{address} ends\n", done
        assert server.finish() == 0 and "ended: tenon stop" in server.text(), server.text()


def missing_tasks():
    ps, first, second = free_addresses(3)
    cluster = ["--ps_hosts", ps, "--worker_hosts", f"{first},{second}"]
    with serve(*cluster, "--job_name", "ps"), serve(*cluster, "--job_name", "worker"):
        done = run(TENON, "status", "grpc://" + ps)
        missing = [line for line in done.stdout.splitlines() if "no answer" in line]
        assert done.returncode == 0 and len(missing) == 1, done
        expect(missing[0], f"no answer from /job:worker/replica:0/task:1 at {second}: unavailable: ", "refused")
        with serve(*cluster, "--job_name", "worker", "--task_index", 1) as late:
            # The connection that was refused is tried again within a second.
            deadline = time.monotonic() + 60
            while "no answer" in (done := run(TENON, "status", "grpc://" + ps)).stdout:
                assert time.monotonic() < deadline, done
                time.sleep(.2)
            assert done.returncode == 0, done
            late.process.send_signal(signal.SIGSTOP)
            begin = time.monotonic()
            done = run(TENON, "status", "grpc://" + first)
            assert done.returncode == 0 and time.monotonic() - begin < 30, done
            expect(done.stdout, f"no answer from /job:worker/replica:0/task:1 at {second}: ")


if __name__ == "__main__":
    sys.exit(main([("a client without TLS", without_tls), ("ports of others", ports_of_others),
                   ("certificates that are none", certificates_that_are_none), ("tenon stop", stop_is_said), ("tasks that are missing", missing_tasks)], at_once=4))
