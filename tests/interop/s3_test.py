#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Paths of s3:// on real servers, moto and rclone: files of any name and size, faults on the way, credentials,
messages, and trainings whose tables, checkpoints and event files are there."""
import concurrent.futures
import glob
import gzip
import http.server
import json
import os
import re
import shutil
import sys
import tempfile
import time
import urllib.request

from s3_servers import KEY, SECRET, S3Faults, client, environment, free_port, main_with_servers, moto, rclone
from server_programs import BUILD, FILES, FLIGHTS, SOURCE, TENON, run, web_server

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from small_graphs import FLOAT, node, placeholder, write_graph  # noqa: E402

MANY = 10000


def scenarios(endpoint, *names):
    for name in names:
        run(environment(endpoint), FILES, name, f"s3://bucket/{name}")


def files_of_moto(m):
    scenarios(m, "keys", "folders", "growing", "growing_large")
    left = client(m).list_multipart_uploads(Bucket="bucket").get("Uploads", [])
    assert not left, left
    assert client(m).list_objects_v2(Bucket="bucket")["KeyCount"] == 0


def files_of_rclone(_):
    def fill(folder):
        many = os.path.join(folder, "bucket", "many")
        os.makedirs(many)
        first = os.path.join(many, "part 00000")
        with open(first, "wb"):
            pass
        for i in range(1, MANY):  # a name costs a hundredth of a file
            os.link(first, os.path.join(many, f"part {i:05}"))

    with rclone(fill) as r:
        scenarios(r, "keys", "sizes", "large", "folders", "growing", "growing_large")
        done = run(environment(r), FILES, "list", "s3://bucket/many")
        assert done.stdout == f"{MANY} names\n{MANY // 10} matches\n", done.stdout


def faults_change_nothing(m):
    with S3Faults(m, part=0.35) as faults:
        names, threads = ("keys", "folders", "growing", "sizes", "keys", "folders", "keys"), []
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            for i, name in enumerate(names):
                threads.append(pool.submit(run, environment(faults.endpoint), FILES, name, f"s3://bucket/{i}"))
            for thread in threads:
                thread.result()
    print(f"  faults: {faults.counts}")
    assert sum(faults.counts.values()) > 200 and min(faults.counts.values()) > 10, faults.counts
    left = client(m).list_objects_v2(Bucket="bucket")
    assert left["KeyCount"] == 0, left


def other_clients_see_them(m):
    """What AWS' own client wrote is read, and the other way round; what others call a folder is one."""
    other, env = client(m), environment(m)
    key = "ein Ordner/ü +%41.csv"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write("y,x\n" + "".join(f"{i * 3 % 7},{i}\n" for i in range(50)))
        other.upload_file(path, "bucket", key)
        other.put_object(Bucket="bucket", Key="ein Ordner/", Body=b"")
    fit = run(env, TENON, "train", "linear", "y ~ x", f"s3://bucket/{key}", "--format", "csv", "--model_dir",
              "s3://bucket/ein Ordner/modell").stdout
    assert "50" in fit, fit
    keys = {o["Key"] for o in other.list_objects_v2(Bucket="bucket")["Contents"]}
    assert "ein Ordner/modell/coefficients.csv" in keys, keys
    body = other.get_object(Bucket="bucket", Key="ein Ordner/modell/coefficients.csv")["Body"].read()
    assert b"(Intercept)" in body, body
    assert not [k for k in keys if "tempstate" in k], keys
    run(env, TENON, "predict", "s3://bucket/ein Ordner/modell", f"s3://bucket/{key}", "--output",
        "s3://bucket/p.csv")
    assert len(other.get_object(Bucket="bucket", Key="p.csv")["Body"].read().splitlines()) == 51


def tables_are_fitted_as_local_ones(m):
    env, other = environment(m), client(m)
    with tempfile.TemporaryDirectory() as folder:
        with gzip.open(FLIGHTS, "rt") as file:
            lines = file.readlines()
        for i in range(3):
            path = os.path.join(folder, f"flights {i}.csv")
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(lines[:1] + lines[1 + i * 20000:1 + (i + 1) * 20000])
            other.upload_file(path, "bucket", f"tables/flights {i}.csv")
        other.upload_file(FLIGHTS, "bucket", "tables/all.gz")
        for name in ("flights *.csv", "all.gz"):
            if name == "all.gz":
                shutil.copy(FLIGHTS, os.path.join(folder, name))
            command = [TENON, "train", "linear", "late ~ carrier + distance", "--family", "binomial", "--threads", 2]
            run(env, *command, os.path.join(folder, name), "--model_dir", os.path.join(folder, "m"))
            run(env, *command, f"s3://bucket/tables/{name}", "--model_dir", "s3://bucket/m")
            with open(os.path.join(folder, "m", "coefficients.csv"), "rb") as file:
                wanted = file.read()
            found = other.get_object(Bucket="bucket", Key="m/coefficients.csv")["Body"].read()
            assert found == wanted and len(wanted) > 300, (found, wanted)


def shards_are_read_by_ranks(m):
    """examples/tables_allreduce.cc with shards and checkpoints there: the losses are those of local ones."""
    env, other = environment(m), client(m)
    with tempfile.TemporaryDirectory() as parent:
        tables = os.path.join(parent, "tables")
        run(env, sys.executable, os.path.join(SOURCE, "share", "bench", "make_tables.py"), tables, "--rows", 600)
        for folder, _, names in os.walk(tables):
            for name in names:
                path = os.path.join(folder, name)
                other.upload_file(path, "bucket", os.path.relpath(path, parent))
        train = [TENON, "launch", "--allreduce", "--workers", 2, "--", os.path.join(BUILD, "example_tables_allreduce"),
                 "--restarts", 2, "--iterations", 50, "--data"]
        there = run(env, *train, "s3://bucket/tables", "--checkpoint_dir", "s3://bucket/run").stdout
        found, wanted = (re.findall("loss .*? rows", out) for out in (there, run(env, *train, tables).stdout))
        assert found == wanted and len(found) == 1, (there, found, wanted)
    assert ", in s3://bucket/run/restart_" in there, there
    keys = [o["Key"] for o in other.list_objects_v2(Bucket="bucket", Prefix="run/")["Contents"]]
    assert "run/restart_2/model.ckpt-50.index" in keys, keys


def trainings_go_on_from_there(m):
    env, other = environment(m), client(m)
    train = [TENON, "train", "mnist", "--checkpoint_dir", "s3://bucket/run", "--logs", "s3://bucket/logs"]
    run(env, *train, "--max_steps", 60)
    out = run(env, *train, "--max_steps", 90).stdout
    assert "went on from step 60" in out, out
    keys = [o["Key"] for o in other.list_objects_v2(Bucket="bucket")["Contents"]]
    assert "run/checkpoint" in keys and any(k.endswith("-90.index") for k in keys), keys
    assert not [k for k in keys if "temp" in k], keys
    events = [k for k in keys if "tfevents" in k]
    assert len(events) >= 2, keys
    steps = run(env, TENON, "inspect", "s3://bucket/run").stdout
    assert "s3://bucket/run/" in steps and "tensors" in steps, steps
    with tempfile.TemporaryDirectory() as folder:
        # The same bytes are a checkpoint and event files on this machine.
        for key in keys:
            if key.startswith(("run/", "logs/")):
                path = os.path.join(folder, key)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                other.download_file("bucket", key, path)
        local = run(env, TENON, "inspect", os.path.join(folder, "run")).stdout
        assert local.splitlines()[:-1] == steps.splitlines()[:-1], (local, steps)
        same = run(env, TENON, "inspect", os.path.join(folder, "run"), "--compare", "s3://bucket/run").stdout
        assert ", 0 differ" in same, same
        for name in glob.glob(os.path.join(folder, "logs", "**", "*tfevents*"), recursive=True):
            assert os.path.getsize(name) > 1000, name


def runs_feed_and_write(m):
    """`tenon run` reads arrays from there and writes its outputs there."""
    env, other = environment(m), client(m)
    with tempfile.TemporaryDirectory() as folder:
        graph = write_graph(folder, placeholder("x", FLOAT, [-1, 2]) + node("y", "Neg", "x", T=f"type: {FLOAT}"))
        other.upload_file(graph, "bucket", "g.pbtxt")
        other.put_object(Bucket="bucket", Key="in/x.csv", Body=b"a,b\n1,2\n3,4\n5,6\n")
        for name in ("y.csv", "y.npy", "y.npz", "y.json"):
            run(env, TENON, "run", "s3://bucket/g.pbtxt", "--feed", "x=s3://bucket/in/x.csv", "--fetch", "y",
                "--batch", "2", "--output", f"s3://bucket/out/{name}")
        written = other.get_object(Bucket="bucket", Key="out/y.csv")["Body"].read().decode()
        assert written.splitlines()[1:] == ["-1,-2", "-3,-4", "-5,-6"], written
        again = run(env, TENON, "run", "s3://bucket/g.pbtxt", "--feed", "x=s3://bucket/out/*.npy", "--fetch", "y",
                    "--batch", "2", "--output", "-").stdout
        assert again.splitlines()[1:] == ["1,2", "3,4", "5,6"], again


def c_library():
    """The path of a library that is no plugin."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        return next(line.split()[-1] for line in file if "/libc.so.6" in line)


def messages(m):
    env = environment(m)
    with rclone() as r:
        wrong = dict(environment(r), AWS_SECRET_ACCESS_KEY="wrong")
        unknown = dict(environment(r), AWS_ACCESS_KEY_ID="nobody")
        nobody = {k: v for k, v in environment(r).items() if not k.startswith("AWS_") or k.endswith("URL")}
        nobody["AWS_EC2_METADATA_DISABLED"] = "true"
        closed = environment(f"http://127.0.0.1:{free_port()}")
        path = "s3://bucket/model-1"
        for with_env, where, wanted in (
                (env, "s3://no-such-bucket/t.csv", ["'s3://no-such-bucket/t.csv'", "404", "NoSuchBucket",
                                                    "no bucket 'no-such-bucket' at " + m]),
                (env, "s3://bucket/t.csv", ["'s3://bucket/t.csv'", "no such object"]),
                (wrong, path, ["'s3://bucket/model-1'", "403", "SignatureDoesNotMatch",
                               "the secret key is not that of the key 'a-key'"]),
                (unknown, path, ["403", "'nobody'", "AWS_ACCESS_KEY_ID"]),
                (nobody, path, ["400", "anonymous", "/nonexistent/.aws/credentials"]),
                (closed, path, ["127.0.0.1", "after 4 tries"]),
                (dict(env, AWS_ENDPOINT_URL="://"), path, ["AWS_ENDPOINT_URL is '://'"]),
                (dict(env, AWS_PROFILE="prod"), path, ["AWS_PROFILE names 'prod'"]),
                (dict(env, TENON_S3_PLUGIN="/nonexistent/plugin.so"), path,
                 ["the plugin for s3:// is missing: TENON_S3_PLUGIN names /nonexistent/plugin.so"]),
                (dict(env, TENON_S3_PLUGIN=c_library()), path,
                 ["is none: it has no function TenonFilePlugin"]),
                (env, "s3://", ["names no bucket"]), (env, "s4://bucket/x", ["no file system for s4://", "s3://"])):
            done = run(with_env, TENON, "train", "linear", "y ~ x", where, "--format", "csv", code=1)
            for text in wanted:
                assert text in done.stderr, (text, done.stderr)
            assert len(done.stderr.splitlines()) <= 2, done.stderr


class Roles(http.server.BaseHTTPRequestHandler):
    """What an instance and a container are told of their roles."""
    asked, lasts = [], 3600

    def log_message(self, *_):
        pass

    def do_PUT(self):
        self.answer("the-token" if self.path == "/latest/api/token" else None)

    def do_GET(self):
        self.asked.append(self.path)
        good = self.headers.get("X-aws-ec2-metadata-token") == "the-token" or \
            self.headers.get("Authorization") == "container-token"
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.lasts))
        role = {"AccessKeyId": KEY, "SecretAccessKey": SECRET, "Token": "", "Expiration": end}
        listing = "/latest/meta-data/iam/security-credentials/"
        answers = {listing: "the-role", listing + "the-role": json.dumps(role), "/role": json.dumps(role)}
        self.answer(answers.get(self.path) if good else None)

    def answer(self, text):
        self.send_response(404 if text is None else 200)
        self.send_header("Content-Length", len(text or ""))
        self.end_headers()
        self.wfile.write((text or "").encode())


def credentials(_):
    """Each place that credentials may come from; rclone and moto check the signatures that are made with them."""
    with rclone() as r, web_server(Roles) as role, tempfile.TemporaryDirectory() as home:
        none = {k: v for k, v in environment(r).items() if not k.startswith("AWS_")}
        none.update(HOME=home, AWS_ENDPOINT_URL=r, AWS_EC2_METADATA_DISABLED="true")
        root = "s3://bucket/credentials"
        run(dict(none, AWS_EC2_METADATA_DISABLED="", AWS_EC2_METADATA_SERVICE_ENDPOINT=role), FILES, "keys", root)
        assert len([a for a in Roles.asked if a.endswith("the-role")]) == 1, Roles.asked
        run(dict(none, AWS_CONTAINER_CREDENTIALS_FULL_URI=role + "/role",
                 AWS_CONTAINER_AUTHORIZATION_TOKEN="container-token"), FILES, "folders", root)
        done = run(dict(none, AWS_CONTAINER_CREDENTIALS_FULL_URI=role + "/role"), FILES, "folders", root, code=None)
        assert done.returncode != 0 and "the role of this container at " + role in done.stderr, done.stderr
        os.mkdir(os.path.join(home, ".aws"))
        with open(os.path.join(home, ".aws", "credentials"), "w", encoding="utf-8") as file:
            file.write(f"[team]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
        run(dict(none, AWS_PROFILE="team"), FILES, "folders", root)
        run(dict(environment(r), AWS_SESSION_TOKEN="a+token/="), FILES, "folders", root)
    with moto(INITIAL_NO_AUTH_ACTION_COUNT="4") as m:
        iam, s3 = client(m, "iam"), client(m)
        s3.create_bucket(Bucket="bucket")
        iam.create_user(UserName="u")
        key = iam.create_access_key(UserName="u")["AccessKey"]
        policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
        iam.put_user_policy(UserName="u", PolicyName="p", PolicyDocument=json.dumps(policy))
        user = dict(environment(m), AWS_ACCESS_KEY_ID=key["AccessKeyId"], AWS_SECRET_ACCESS_KEY=key["SecretAccessKey"])
        run(user, FILES, "keys", "s3://bucket/user")
        done = run(dict(user, AWS_SECRET_ACCESS_KEY="x"), FILES, "keys", "s3://bucket/user", code=None)
        assert "SignatureDoesNotMatch" in done.stderr, done.stderr


def secure_servers(_):
    """Certificates are verified, unless somebody wants them not to be."""
    tls = os.path.join(SOURCE, "tests", "data", "tls")
    flags = ["--cert", os.path.join(tls, "task.pem"), "--key", os.path.join(tls, "task.key")]
    with rclone(flags=flags) as r:
        env = environment(r.replace("http:", "https:"))
        run(dict(env, AWS_CA_BUNDLE=os.path.join(tls, "ca.pem")), FILES, "keys", "s3://bucket/a")
        run(dict(env, S3_VERIFY_SSL="0"), FILES, "sizes", "s3://bucket/b")
        run(dict(env, AWS_ENDPOINT_URL="", S3_ENDPOINT=r[len("http://"):], S3_VERIFY_SSL="0"), FILES, "folders",
            "s3://bucket/c")
        done = run(env, TENON, "inspect", "s3://bucket/model-1", code=1)
        assert "certificate" in done.stderr and "tries" not in done.stderr, done.stderr


def web_identities(m):
    """A token of a file becomes the key, secret and session token of a role, by moto's token service."""
    with tempfile.NamedTemporaryFile("w") as token:
        token.write("a.web.token\n")
        token.flush()
        env = {k: v for k, v in environment(m).items() if "KEY" not in k}
        env.update(AWS_WEB_IDENTITY_TOKEN_FILE=token.name, AWS_ENDPOINT_URL_STS=m,
                   AWS_ROLE_ARN="arn:aws:iam::123456789012:role/r")
        run(env, FILES, "folders", "s3://bucket/web")


CASES = (files_of_moto, files_of_rclone, faults_change_nothing, other_clients_see_them,
         tables_are_fitted_as_local_ones, shards_are_read_by_ranks, trainings_go_on_from_there, runs_feed_and_write,
         messages, credentials, secure_servers, web_identities)


def main():
    wanted, failed = sys.argv[1:], 0
    with moto() as m:
        for case in CASES:
            if wanted and case.__name__ not in wanted:
                continue
            begin = time.monotonic()
            try:
                # Nothing is left from the case before.
                urllib.request.urlopen(urllib.request.Request(m + "/moto-api/reset", method="POST")).close()
                client(m).create_bucket(Bucket="bucket")
                case(m)
                print(f"ok: {case.__name__}, {time.monotonic() - begin:.1f} s", flush=True)
            except Exception as e:  # pylint: disable=broad-except
                failed += 1
                print(f"FAILED: {case.__name__}\n  {type(e).__name__}: {e}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    main_with_servers(main)
