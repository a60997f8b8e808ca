#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tenon train mnist`: numbers without meaning, what it says of its steps, the learning curve, and a folder with
another network's checkpoints."""
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import xml.etree.ElementTree

from processes_test import write_mnist
from tenon_process import TENON, Process, TooLate, in_time, main, run

SVG = "{http://www.w3.org/2000/svg}"


def train(data, *flags):
    return run(TENON, "train", "mnist", "--data", data, *flags)


def printed(data, *flags):
    done = train(data, *flags)
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers_without_meaning(_):
    for flag, value, wanted in (
            ("--learning_rate", "0", "above 0"), ("--learning_rate", "-5", "above 0"),
            ("--learning_rate", "nan", "a number above 0"), ("--learning_rate", "inf", "a number above 0"),
            ("--save_seconds", "nan", "a number 0 to 1000000000"),
            ("--save_seconds", "inf", "a number 0 to 1000000000"),
            ("--save_seconds", "-1", "0 to 1000000000"), ("--session_timeout", "nan", "a number 0 to"),
            ("--epochs", "0", "at least 1"), ("--memory_limit", "1e300", "1 to"),
            ("--max_message_bytes", "3000000000", "4194304 to 2147483647")):
        done = run(TENON, "train", "mnist", flag, value)
        assert done.returncode == 2 and done.stdout == "", (flag, value, done)
        assert done.stderr.startswith(f"tenon: {flag}: found {value}, wanted {wanted}"), done.stderr
        assert done.stderr.endswith("(see tenon train mnist --help)\n"), done.stderr
    for arguments in (["serve", "--port", "0", "--start_up_deadline", "nan"],
                      ["serve", "--port", "0", "--gpu_memory_fraction", "nan"],
                      ["serve", "--port", "0", "--gpu_memory_fraction", "0"],
                      ["run", "g", "--timeout_ms", "1e30"], ["run", "g", "--threads", "1000000"]):
        done = run(TENON, *arguments)
        assert done.returncode == 2 and f"found {arguments[-1]}, wanted " in done.stderr, (arguments, done)


def picture(path):
    """Texts, and the number of marks, of a learning curve."""
    root = xml.etree.ElementTree.parse(path).getroot()
    return [text.text for text in root.iter(SVG + "text")], len(list(root.iter(SVG + "circle")))


def curves(data):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "c.svg")
        # Fewer steps than a point is drawn for: what there is.
        out = printed(data, "--max_steps", 50, "--curve", path)
        assert f"learning curve: {path}" in out, out
        texts, marks = picture(path)
        assert marks == 2, marks
        assert "loss in training" in texts and "accuracy in validation" in texts, texts
        assert "50" in texts and "10" in texts, texts
        printed(data, "--max_steps", 437, "--curve", path)
        texts, marks = picture(path)
        assert marks == 10, marks
        for tick in ("100", "200", "300", "400"):
            assert tick in texts, texts
        # Round numbers: 1, 2 or 5 of a power of ten apart.
        numbers = sorted({float(t) for t in texts if re.fullmatch(r"[\d.]+", t or "")})
        assert all(re.fullmatch(r"\d*\.?\d{0,2}", f"{n:g}") for n in numbers), numbers
        assert "learning curve: " in printed(data, "--model", "classic", "--max_steps", 5, "--curve", path)
        nowhere = os.path.join(folder, "none", "c.svg")
        done = train(data, "--max_steps", 5, "--curve", nowhere)
        assert done.returncode == 1 and done.stdout == "", done
        assert f"--curve: cannot write '{nowhere}': there is no folder" in done.stderr, done.stderr


def curve_goes_on(data):
    """With the points of the training that it continues, but for those of steps that were lost."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as kept:
        def train_to(steps):
            out = printed(data, "--max_steps", steps, "--checkpoint_dir", folder)
            assert f"learning curve: {folder}/learning_curve.svg" in out, out
            texts, marks = picture(os.path.join(folder, "learning_curve.svg"))
            return texts, marks // 2
        assert train_to(200)[1] == 2
        for name in os.listdir(folder):
            if name == "checkpoint" or "model.ckpt-200" in name:
                shutil.copy(os.path.join(folder, name), kept)
        texts, points = train_to(450)  # 100, 200, 300, 400 and 450
        assert points == 5 and {"100", "200", "300", "400"} <= set(texts), (points, texts)
        assert any(re.search(r"450 steps, the last 250 in \d+ s$", text) for text in texts), texts
        # A file that its process did not come to end, and one of another kind.
        newest = max(name for name in os.listdir(folder) if name.startswith("events."))
        with open(os.path.join(folder, newest), "ab") as file:
            file.write(b"\x18\x00\x00")
        with open(os.path.join(folder, "events.out.tfevents.0"), "wb") as file:
            file.write(b"no events")
        for name in os.listdir(kept):
            shutil.copy(os.path.join(kept, name), folder)
        texts, points = train_to(330)  # 100, 200, 300 and 330
        assert points == 4 and "400" not in texts, (points, texts)


def curve_on_a_full_disk(data):
    """Its points are written when there is room again, and the training goes on meanwhile."""
    # Curves of more than 60 points have no marks, which are counted.
    in_time(lambda steps: points_after_a_full_disk(data, steps), 3000, 5900, 5900, 5900)


def points_after_a_full_disk(data, steps):
    with tempfile.TemporaryDirectory() as folder:
        flags = ["train", "mnist", "--data", data, "--checkpoint_dir", folder, "--max_steps"]
        # Who is told that a file gets too large must not end by a signal.
        with Process(TENON, *flags, steps, restore_signals=False) as process:
            process.wait_for("saved ")
            everything = resource.RLIM_INFINITY
            limits = [(50, everything), (everything, everything)]
            try:
                resource.prlimit(process.process.pid, resource.RLIMIT_FSIZE, limits[0])
                while "the learning curve is not kept" not in process.text():
                    process.strike(0)
                    time.sleep(0.01)
                resource.prlimit(process.process.pid, resource.RLIMIT_FSIZE, limits[1])
            except ProcessLookupError as e:
                raise TooLate(process.text()) from e
            # The last points are written before the checkpoint that ends a training.
            if f"model.ckpt-{steps}" in process.text():
                raise TooLate(process.text())
            assert process.finish() == 0, process.text()
            assert process.text().count("is not kept") == 1, process.text()
        sizes = [os.path.getsize(os.path.join(folder, n)) for n in os.listdir(folder) if n.startswith("events.")]
        assert sizes and min(sizes) > 0, sizes
        assert picture(os.path.join(folder, "learning_curve.svg"))[1] == 2 * (steps // 100)
        printed(data, "--checkpoint_dir", folder, "--max_steps", steps + 100)
        assert picture(os.path.join(folder, "learning_curve.svg"))[1] == 2 * (steps // 100 + 1)


def ended_already(data):
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--max_steps", 20, "--checkpoint_dir", folder]
        out = printed(data, *flags)
        assert f"saved {folder}/model.ckpt-20" in out and "went on" not in out, out
        path = os.path.join(folder, "other.svg")
        out = printed(data, *flags, "--curve", path)
        assert "training had ended already, at step 20" in out, out
        assert "went on from" not in out and "steps per second" not in out, out
        # The points of before are there.
        assert f"learning curve: {path}" in out and picture(path)[1] == 2, out
        assert "went on from step 20" in printed(data, "--max_steps", 30, "--checkpoint_dir", folder)


def stopped(data):
    """The step that is said is the one of the checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        with Process(TENON, "train", "mnist", "--data", data, "--epochs", 100000,
                     "--checkpoint_dir", folder) as process:
            process.wait_for("model.ckpt-0")
            time.sleep(1)  # of some hundred steps
            process.process.send_signal(signal.SIGINT)
            process.finish()
        step = re.search(r"stopped by a signal after step (\d+)", process.text())
        assert step, process.text()
        assert f"model.ckpt-{step[1]}.index" in os.listdir(folder), (step, os.listdir(folder))


def another_network(data):
    with tempfile.TemporaryDirectory() as folder:
        printed(data, "--max_steps", 3, "--checkpoint_dir", folder)
        done = train(data, "--model", "conv", "--max_steps", 3, "--checkpoint_dir", folder)
        assert done.returncode == 1, done
        for wanted in (f"the checkpoint '{folder}/model.ckpt-3' lacks 'conv2d/kernel', ",
                       "it has ", "dense/kernel float[784,128]",
                       "for --model conv give another --checkpoint_dir, or --model mlp"):
            assert wanted in done.stderr, (wanted, done.stderr)
        assert len(done.stderr.splitlines()) == 1, done.stderr


def a_worker_that_joins(data):
    done = run(TENON, "launch", "--ps", 1, "--workers", 2, "--", TENON, "train", "mnist", "--data", data,
               "--epochs", 60)
    assert done.returncode == 0, done
    assert "went on from" not in done.stdout, done.stdout
    done = run(TENON, "launch", "--ps", 1, "--workers", 1, "--", TENON, "train", "mnist", "--data", data,
               "--batch", 301)
    assert done.returncode == 1 and "this worker failed, which the parameter servers are told: " \
        "INVALID_ARGUMENT: --batch 301 is more than the 300 images" in done.stdout, done
    assert "tenon.usage" not in done.stdout, done.stdout
    for wrong in (["--backup", "2", "--sync"], ["--shards", "3", "--sync"]):
        done = run(TENON, "train", "mnist", "--ps_hosts", "127.0.0.1:1", "--worker_hosts",
                   "127.0.0.1:2,127.0.0.1:3", "--job_name", "worker", *wrong)
        assert done.returncode == 2 and wrong[0] + " " + wrong[1] in done.stderr, done


def with_data(case):
    def run_it():
        with tempfile.TemporaryDirectory() as folder:
            write_mnist(folder)
            case(folder)
    return run_it


if __name__ == "__main__":
    sys.exit(main([(name, with_data(case)) for name, case in (
        ("numbers without meaning", numbers_without_meaning),
        ("learning curves", curves),
        ("a learning curve that goes on", curve_goes_on),
        ("a learning curve on a full disk", curve_on_a_full_disk),
        ("a training that had ended", ended_already),
        ("a training that is stopped", stopped),
        ("another network's checkpoint", another_network),
        ("a worker that joins", a_worker_that_joins))]))
