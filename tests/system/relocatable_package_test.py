#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/package.sh makes of this build tree: programs that run and train where there is nothing but
glibc, and that know nothing of the machine that they were made on."""
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

from outside_project import cached
from tenon_process import BINARY, SOURCE, main

SKIPPED = 77
MIB = 1 << 20
PACKAGE = os.path.join(SOURCE, "tools", "package.sh")
LINKS = os.path.join(SOURCE, "tools", "check_links.py")
VERSIONS = os.path.join(SOURCE, "tools", "glibc_versions.py")
GLIBC = ("ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libmvec.so.1", "libpthread.so.0", "libdl.so.2",
         "librt.so.1", "libresolv.so.2")


def run(*command, **options):
    return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=250, check=False, **options)


def succeed(*command, **options):
    """What the command prints."""
    done = run(*command, **options)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def files_of(folder):
    return [os.path.join(base, name) for base, _, names in os.walk(folder) for name in names]


class Package:
    """The package in a file, and unpacked in a root folder that has glibc's files besides, and /proc."""

    def __init__(self, work):
        self.archive, self.unshare = os.path.join(work, "package.tar.xz"), ()
        # It is much faster, and the archive only larger.
        succeed(PACKAGE, "--build", BINARY, self.archive,
                env={**os.environ, "XZ_OPT": "--lzma2=preset=1,dict=32MiB"})
        self.root = os.path.join(work, "root")
        with tarfile.open(self.archive) as archive:
            archive.extractall(self.root)
        (self.name,) = os.listdir(self.root)
        self.folder = os.path.join(self.root, self.name)
        libraries = os.path.dirname(re.search(r"libc\.so\.6 => (\S+)", succeed("ldd", sys.executable))[1])
        os.mkdir(os.path.join(self.root, "proc"))
        for place in ("/lib64", libraries):  # the first is where programs look for the loader
            os.makedirs(self.root + place, exist_ok=True)
        for name in GLIBC:
            shutil.copy(os.path.join(libraries, name), self.root + libraries)
        shutil.copy(os.path.join(libraries, GLIBC[0]), self.root + "/lib64")

    def elf_files(self):
        for path in files_of(self.folder):
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path

    def refused(self):
        """Why this machine lets nobody enter the root folder, or None."""
        if shutil.which("unshare") is None:
            return "there is no unshare"
        # As anybody, in a namespace of users; or as root, where those are refused.
        for self.unshare in (("unshare", "--map-root-user", "--mount"), ("unshare", "--mount")):
            done = run(*self.unshare, "mount", "--rbind", "/proc", self.root + "/proc")
            if done.returncode == 0:
                return None
        return done.stderr.strip()

    def run(self, program, *arguments):
        enter = 'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"'
        # Nothing of this machine, such as LD_LIBRARY_PATH, but where chroot is.
        return succeed(*self.unshare, "sh", "-c", enter, self.root, f"/{self.name}/bin/{program}", *arguments,
                       env={"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"})


def is_small(package):
    # By default it compresses to a twelfth less than here: to 44 MiB at most.
    size = os.path.getsize(package.archive)
    assert size < 48 * MIB, f"{size / MIB:.1f} MiB, and 48 are the limit"
    print(f"{size / MIB:.1f} MiB, less compressed than by default")


def needs_no_later_glibc(package):
    versions = succeed(VERSIONS, package.folder, "--at-most", "2.36")
    print(versions.splitlines()[-1])
    above = run(VERSIONS, package.folder, "--at-most", "2.3.4")
    assert above.returncode == 1, above.stdout
    assert re.search(r"^above 2\.3\.4: lib/libcrypto\.so\.3: GLIBC_2\.\d+ \(.*\bdlopen\b.*\)$", above.stderr,
                     re.M), above.stderr


def names_no_place_of_this_machine(package):
    for path in package.elf_files():
        found = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", succeed("readelf", "-d", path))
        wanted = "$ORIGIN/../lib" if os.path.dirname(path).endswith("/bin") else "$ORIGIN"
        assert found == [wanted] or "/glibc-hwcaps/" in path, f"{path} has the run paths {found}"
    places = {os.path.realpath(p) for p in (SOURCE, BINARY)} | {os.path.abspath(p) for p in (SOURCE, BINARY)}
    # Not as the end of another path.
    pattern = re.compile(rb"(?<![\w.-])(?:" + b"|".join(re.escape(p.encode()) for p in places) + rb")(?![\w-])")
    for path in files_of(package.folder):
        with open(path, "rb") as file:
            found = pattern.search(file.read())
        assert not found, f"{path} names {found[0]}"


def holds_what_its_readme_says(package):
    for name in ("LICENSE", "README", "bin/tenon", "bin/example_mnist_replica", "bin/gpu_check.sh",
                 "bin/gpu_timing_torch.py", "lib/libstdc++.so.6",
                 "lib/libgcc_s.so.1", "lib/libomp.so.5", "lib/libgomp.so.1", "share/tenon/mnist/README.md",
                 "share/tenon/bench/graphs", "share/doc/Tenon/README.md", "share/doc/licenses/libprotobuf32",
                 "share/doc/licenses/libeigen3-dev"):
        assert os.path.exists(os.path.join(package.folder, name)), name
    for name in os.listdir(os.path.join(package.folder, "lib")):
        assert name not in GLIBC, name
    for made, packed in (("libtenon_cuda.so", "lib/libtenon_cuda.so"), ("gpu_tests", "bin/gpu_tests")):
        assert (os.path.exists(os.path.join(BINARY, made)) ==
                os.path.exists(os.path.join(package.folder, packed))), packed


def pages_lead_to_what_is_in_it(package):
    succeed(LINKS, package.folder)
    page = os.path.join(package.folder, "share", "doc", "Tenon", "examples", "README.md")
    os.rename(page, page + "-hidden")
    done = run(LINKS, package.folder)
    os.rename(page + "-hidden", page)
    assert done.returncode == 1 and "'examples/README.md' leads nowhere" in done.stdout, done


def runs_where_there_is_only_glibc(package):
    assert re.fullmatch(r"tenon \d+\.\d+\.\d+\n", package.run("tenon", "--version"))
    assert "transpose_a" in package.run("tenon", "ops", "MatMul")


def trains_where_there_is_only_glibc(package):
    text = package.run("tenon", "train", "mnist", "--model", "classic", "--epochs", 1, "--learning_rate", 0.5)
    accuracy = float(re.search(r"test accuracy: (\S+)", text)[1])
    assert accuracy > 0.8, text
    text = package.run("tenon", "launch", "--ps", 1, "--workers", 1, "--", f"/{package.name}/bin/example_mnist_replica",
                       "--data", f"/{package.name}/share/tenon/mnist", "--training_epochs", 1, "--learning_rate", 0.5)
    accuracy = float(re.search(r"Test-Accuracy: (\S+)", text)[1])
    assert accuracy > 0.8, text


def a_lesser_host_is_told_in_one_line(package):
    # As on an older glibc or a lesser processor, where the loader does not look into this folder.
    hidden = os.path.join(package.folder, "lib", "glibc-hwcaps")
    os.rename(hidden, hidden + "-hidden")
    done = run(os.path.join(package.folder, "bin", "tenon"), "--version")
    os.rename(hidden + "-hidden", hidden)
    assert done.returncode == 127, done
    assert re.fullmatch(r".*: tenon-needs-glibc-2\.\d+-and-x86-64-v\d: cannot open shared object file.*\n",
                        done.stderr), done.stderr


def mistakes_are_named():
    done = run(PACKAGE, "--build", SOURCE)
    assert done.returncode == 1 and "has no CMakeCache.txt" in done.stderr, done
    with tempfile.TemporaryDirectory() as folder:
        loader = os.path.join(folder, "ldd")
        with open(loader, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho '\tlibm.so.6 => /lib/libm.so.6 (0x1)'\necho '\tlibgone.so.1 => not found'\n")
        os.chmod(loader, 0o755)
        done = run(PACKAGE, "--build", BINARY, folder, env={**os.environ, "PATH": folder + ":" + os.environ["PATH"]})
        assert done.returncode == 1, done
        assert "needs libgone.so.1, and the loader finds none on this machine" in done.stderr, done
        assert os.listdir(folder) == ["ldd"], os.listdir(folder)


def test():
    if cached("TENON_SANITIZE"):
        print("skipped: a build with sanitizers is not for packages")
        return SKIPPED
    with tempfile.TemporaryDirectory() as work:
        package = Package(work)
        cases = [is_small, needs_no_later_glibc, names_no_place_of_this_machine, holds_what_its_readme_says,
                 pages_lead_to_what_is_in_it, a_lesser_host_is_told_in_one_line]
        refused = package.refused()
        if refused is None:
            cases += [runs_where_there_is_only_glibc, trains_where_there_is_only_glibc]
        result = main([("mistakes are named", mistakes_are_named)] +
                      [(case.__name__.replace("_", " "), lambda case=case: case(package)) for case in cases])
    if result == 0 and refused is not None:
        print("skipped: the runs in an empty root folder, which nobody may enter here:", refused)
        return SKIPPED
    return result


if __name__ == "__main__":
    sys.exit(test())
