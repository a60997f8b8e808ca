# SPDX-License-Identifier: Apache-2.0
"""What the scripts of `tenon bench --peer` do alike, without a package: making their Python environment, and answering."""
import fcntl
import os
import pathlib
import subprocess
import sys
import venv


def install(name, packages):
    """Makes the virtual environment ~/.cache/tenon/NAME with the packages; says nothing when it is there already."""
    folder = pathlib.Path("~/.cache/tenon", name).expanduser()
    stamp, wanted = folder / ".tenon-installed", " ".join(packages) + "\n"

    def installed():
        return stamp.exists() and stamp.read_text(encoding="utf-8") == wanted

    if installed():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Two processes must not install into one folder at once.
    with open(f"{folder}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if installed():
            return
        print(f"installing {' '.join(packages)} into {folder}", flush=True)
        venv.create(folder, with_pip=True, symlinks=True)
        subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                        *packages], check=True)
        # The stamp is written last, so an interrupted installation is begun again.
        stamp.write_text(wanted, encoding="utf-8")


def answer(name, measure):
    """Prints the name; then, for each line of the standard input, what `measure` makes of it: "none" for None."""
    print(name, flush=True)
    for line in sys.stdin:
        figure = measure(line.strip())
        print("none" if figure is None else figure, flush=True)


def install_if_asked(name, packages):
    """With --install as the only argument makes the environment, and ends the process. It is called before the script
    imports what it installs."""
    if sys.argv[1:] != ["--install"]:
        return
    try:
        install(name, packages)
    except subprocess.CalledProcessError as error:
        sys.exit(f"{os.path.basename(sys.argv[0])}: pip ended with {error.returncode}")
    sys.exit(0)
