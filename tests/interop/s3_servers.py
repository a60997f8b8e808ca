# SPDX-License-Identifier: Apache-2.0
"""Servers of S3's protocol on loopback: moto and rclone as they are, and a proxy that does harm before them."""
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from faulty_proxy import Faults

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from tenon_process import free_addresses  # noqa: E402

VENV = os.environ.get("TENON_S3_VENV", os.path.expanduser("~/.cache/tenon/s3-servers"))
SKIPPED = 77
KEY, SECRET = "a-key", "a-secret-of-some-length"
PATIENCE = 120  # seconds


def main_with_servers(main):
    """Runs `main` under the Python that has the servers and boto3; exits with what it returns, or with
    SKIPPED when there is none."""
    python = os.path.join(VENV, "bin", "python")
    if not os.path.exists(os.path.join(VENV, ".tenon-installed")):
        print(f"no servers of S3's protocol at {VENV}; tools/install_s3_servers.sh installs them")
        sys.exit(SKIPPED)
    if os.path.realpath(sys.prefix) == os.path.realpath(VENV):
        sys.exit(main())
    sys.exit(subprocess.run([python] + sys.argv, env=dict(os.environ, NO_PROXY="*")).returncode)


def free_port():
    return int(free_addresses(1)[0].split(":")[1])


def environment(endpoint, **more):
    """That of a client: nothing of this machine's own settings is left in it."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("AWS_", "S3_")) and not name.lower().endswith("_proxy")}
    return dict(kept, AWS_ENDPOINT_URL=endpoint, AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET,
                AWS_EC2_METADATA_DISABLED="true", HOME="/nonexistent", **more)


def client(endpoint, service="s3", key=KEY, secret=SECRET):
    """AWS' own client, whose copies of settings are not this machine's."""
    import boto3  # of VENV
    return boto3.session.Session(key, secret, region_name="us-east-1").client(service, endpoint_url=endpoint)


@contextlib.contextmanager
def server(command, port, env=None):
    """The server's endpoint, while its process listens there."""
    endpoint = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=dict(os.environ, **(env or {})))
        try:
            end = time.monotonic() + PATIENCE
            while True:
                with socket.socket() as s:
                    if s.connect_ex(("127.0.0.1", port)) == 0:
                        break
                output.seek(0)
                assert process.poll() is None and time.monotonic() < end, (command, output.read()[-2000:])
                time.sleep(0.05)
            yield endpoint
        finally:
            process.kill()
            process.wait()


def moto(**env):
    port = free_port()
    return server([os.path.join(VENV, "bin", "moto_server"), "-H", "127.0.0.1", "-p", str(port)], port, env)


@contextlib.contextmanager
def rclone(fill=None, flags=()):
    """rclone over a folder, which `fill` is given first, with the buckets in it; it checks every signature, and
    that it holds for every header of S3's."""
    folder, port = tempfile.mkdtemp(prefix="tenon_rclone_"), free_port()
    try:
        os.mkdir(os.path.join(folder, "bucket"))
        if fill:
            fill(folder)
        with server([os.path.join(VENV, "bin", "rclone"), "serve", "s3", "--config", "/dev/null", "--auth-key",
                     f"{KEY},{SECRET}", "--addr", f"127.0.0.1:{port}", *flags, folder], port) as endpoint:
            yield endpoint
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class S3Faults(Faults):
    """The proxy of faults before a server of S3's protocol."""

    def error(self, status):
        code = "InternalError" if status == "500" else "SlowDown"
        return "application/xml", f"<Error><Code>{code}</Code><Message>drawn</Message></Error>"
