#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Paths of s3:// under load: processes that are killed at moments that are spread over a save, and
TensorBoard. With --all, 50 moments, a thousand faults on the way, and a checkpoint of 1 GiB beside rclone's own copies
on the same server: ctest -C Full -L slow runs that."""
import concurrent.futures
import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from s3_servers import KEY, SECRET, VENV, S3Faults, client, environment, main_with_servers, moto, rclone
from server_programs import FILES, TENON, VALUES, Saves, kill_while_saving, run

FAULTS = 1000
MEBIBYTES, ROUNDS = 1024, 3
LEAST = 0.8  # of rclone's speed
PATIENCE = 240  # seconds


def killed_at_moments_of_a_save(moments):
    """Two files of two parts each, an index, the graph and the state file."""
    with moto() as m:
        client(m).create_bucket(Bucket="bucket")
        steps = kill_while_saving(environment(m), "s3://bucket/killed", moments, mebibytes=34)
        keys = [o["Key"] for o in client(m).list_objects_v2(Bucket="bucket")["Contents"]]
    assert steps[-1] > steps[0] and "killed/checkpoint" in keys, (steps, keys)
    print(f"  steps: {steps}")


def a_thousand_faults_change_nothing():
    names = ("keys", "folders", "growing", "sizes", "keys", "folders", "keys", "growing_large")
    with moto() as m, S3Faults(m, part=0.4, seed=2) as faults:
        client(m).create_bucket(Bucket="bucket")
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            for turn in range(20):
                if sum(faults.counts.values()) >= FAULTS:
                    break
                for done in [pool.submit(run, environment(faults.endpoint), FILES, name, f"s3://bucket/{turn}/{i}")
                             for i, name in enumerate(names)]:
                    done.result()
        left = client(m).list_objects_v2(Bucket="bucket")
    print(f"  faults: {faults.counts}")
    assert sum(faults.counts.values()) >= FAULTS and min(faults.counts.values()) > FAULTS / 10, faults.counts
    assert left["KeyCount"] == 0, left


@contextlib.contextmanager
def tensorboard(logs, env):
    """The address of a TensorBoard, without a TensorFlow, that reads there."""
    command = [os.path.join(VENV, "bin", "tensorboard"), "--logdir", logs, "--port", "0", "--host", "127.0.0.1",
               "--load_fast=false", "--reload_interval", "1", "--samples_per_plugin", "scalars=1000"]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log, text=True)
        try:
            end = time.monotonic() + PATIENCE
            found = None
            while not found:
                log.seek(0)
                text = log.read()
                assert process.poll() is None and time.monotonic() < end, text[-2000:]
                found = re.search(r"at (http://127\.0\.0\.1:\d+)", text)
                time.sleep(0.1)
            yield found.group(1)
        finally:
            process.kill()
            process.wait()


def tensorboard_shows_what_is_there():
    """TensorBoard with boto3 beside it reads what Tenon writes to s3://."""
    with moto() as m:
        client(m).create_bucket(Bucket="bucket")
        env = environment(m)
        out = run(env, TENON, "train", "mnist", "--model", "classic", "--max_steps", 300, "--logs",
                  "s3://bucket/logs").stdout
        assert out, out
        with tensorboard("s3://bucket/logs", dict(env, S3_ENDPOINT=m)) as board:
            end = time.monotonic() + PATIENCE
            points = []
            while len(points) < 300:
                assert time.monotonic() < end, points[-3:]
                time.sleep(0.3)
                with contextlib.suppress(urllib.error.HTTPError):
                    with urllib.request.urlopen(board + "/data/plugin/scalars/tags") as answer:
                        runs = json.load(answer)
                    run_name = next((name for name, tags in runs.items() if "cost" in tags), None)
                    if run_name is None:
                        continue
                    url = f"{board}/data/plugin/scalars/scalars?run={run_name}&tag=cost"
                    with urllib.request.urlopen(url) as answer:
                        points = json.load(answer)
            steps = [p[1] for p in points]
            assert steps == sorted(set(steps)) and steps[-1] == 300, steps


def rclone_copy(endpoint, source, target):
    """Seconds that rclone takes for a copy; paths of the bucket begin with s3:."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "RCLONE_"))}
    for name, value in (("TYPE", "s3"), ("PROVIDER", "Rclone"), ("ENDPOINT", endpoint), ("ACCESS_KEY_ID", KEY),
                        ("SECRET_ACCESS_KEY", SECRET), ("USE_MULTIPART_UPLOADS", "true")):
        env["RCLONE_CONFIG_S3_" + name] = value
    command = [os.path.join(VENV, "bin", "rclone"), "--config", "/dev/null", "--ignore-times", "copyto", source, target]
    begin = time.monotonic()
    subprocess.run(command, env=env, check=True, timeout=300)
    return time.monotonic() - begin


def speed():
    """The seconds that each takes to write and to read, in turn: what else the machine does changes those of a round together,
    whose ratios have the median that counts."""
    seconds = {"tenon writes": [], "rclone writes": [], "tenon reads": [], "rclone reads": []}
    with rclone() as r, tempfile.TemporaryDirectory() as folder:
        local = os.path.join(folder, "values")
        with open(local, "wb") as file:
            for i in range(MEBIBYTES):
                file.write(os.urandom(1 << 20))
        for _ in range(ROUNDS):
            seconds["rclone writes"].append(rclone_copy(r, local, "s3:bucket/copy"))
            with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:  # where Tenon reads to
                seconds["rclone reads"].append(rclone_copy(r, "s3:bucket/copy", os.path.join(memory, "read")))
            saves = Saves(environment(r), "s3://bucket/values", MEBIBYTES, 1, 1)
            assert saves.process.wait(300) == 0, saves.process.stderr.read()
            saves.reader.join()
            seconds["tenon writes"] += saves.ended.values()
            done = run(environment(r), VALUES, "check", "s3://bucket/values", MEBIBYTES, 1).stdout
            seconds["tenon reads"].append(float(done.split()[2]))
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    for what in ("writes", "reads"):
        rounds = zip(seconds["rclone " + what], seconds["tenon " + what], strict=True)
        part = statistics.median(rclones / own for rclones, own in rounds)
        print(f"  {what}: {medians['tenon ' + what]:.2f} s, rclone {medians['rclone ' + what]:.2f} s: {part:.2f} of "
              f"its speed; {seconds}", flush=True)
        assert part >= LEAST, (what, seconds)


CASES = {"killed_at_12_moments": lambda: killed_at_moments_of_a_save(12),
         "tensorboard_shows_what_is_there": tensorboard_shows_what_is_there}
MORE_CASES = {"killed_at_50_moments": lambda: killed_at_moments_of_a_save(50),
              "a_thousand_faults_change_nothing": a_thousand_faults_change_nothing, "speed": speed}


def main():
    wanted, failed = sys.argv[1:], 0
    if wanted == ["--all"] and shutil.disk_usage(tempfile.gettempdir()).free >> 30 < 8:
        print("needs 8 GiB of disk")
        return 77
    cases = {**CASES, **MORE_CASES}
    for name in list(MORE_CASES) if wanted == ["--all"] else wanted or list(CASES):
        begin = time.monotonic()
        try:
            cases[name]()
            print(f"ok: {name}, {time.monotonic() - begin:.1f} s", flush=True)
        except Exception as e:  # pylint: disable=broad-except
            failed += 1
            print(f"FAILED: {name}\n  {type(e).__name__}: {e}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    main_with_servers(main)
