# SPDX-License-Identifier: Apache-2.0
"""Slurm on this machine: its controller and three nodes, n1 to n3, each a daemon with an address of its own. All of it
lives in namespaces of mounts, processes, names and networks that end with the with block. Needs root."""
import os
import shutil
import subprocess
import tempfile
import time

NAMESPACES = ("--mount", "--uts", "--pid", "--net")
PROGRAMS = ("slurmctld", "slurmd", "srun", "munged", "unshare", "ip")
CONFIGURATION = """\
ClusterName=test
SlurmctldHost=n0({addresses}0)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/controller.log
SlurmdLogFile={folder}/%n.log
SlurmdParameters=config_overrides
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
KillWait=5
NodeName=n1 NodeHostname=n0 NodeAddr={addresses}1 Port={port1} CPUs=16 RealMemory=100
NodeName=n2 NodeHostname=n0 NodeAddr={addresses}2 Port={port2} CPUs=16 RealMemory=100
NodeName=n3 NodeHostname=n0 NodeAddr={addresses}3 Port={port3} CPUs=16 RealMemory=100
PartitionName=all Nodes=n1,n2,n3 Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
"""
START = """\
set -e
mount --bind {folder}/hosts /etc/hosts
hostname n0
ip link set lo up
for node in 0 1 2 3; do ip address add {addresses}$node/32 dev lo; done
munged --force --key-file={folder}/munge/key --socket={folder}/munge/socket --pid-file={folder}/munge/pid \\
  --log-file={folder}/munge/log --seed-file={folder}/munge/seed
slurmctld -c
for node in n1 n2 n3; do slurmd -N $node; done
echo started
exec sleep infinity
"""
FIRST_PORT = 17817


def missing():
    """What this host lacks of what the cluster needs, for people; "" when nothing."""
    if os.geteuid() != 0:
        return "root"
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    if lacking:
        return "Debian's slurmctld, slurmd, slurm-client, munge and iproute2: there is no " + ", ".join(lacking)
    alone = subprocess.run(["unshare", *NAMESPACES, "--fork", "true"], capture_output=True, check=False)
    return "" if alone.returncode == 0 else "namespaces: " + alone.stderr.decode().strip()


class SlurmNodes:
    """The cluster. It starts with the with block."""

    def __init__(self, addresses="127.0.0.1"):
        """The nodes' addresses begin so, and end with their numbers: on loopback, or beyond it."""
        self.addresses = addresses
        self.folder = tempfile.mkdtemp(prefix="slurm")
        self.environment = dict(os.environ, SLURM_CONF=os.path.join(self.folder, "slurm.conf"))

    def __enter__(self):
        os.chmod(self.folder, 0o755)
        for name in ("state", "munge"):
            os.mkdir(os.path.join(self.folder, name), 0o700)
        ports = {f"port{i or ''}": FIRST_PORT + i for i in range(4)}
        self.write("slurm.conf", CONFIGURATION.format(folder=self.folder, addresses=self.addresses, **ports))
        self.write("hosts", "127.0.0.1 localhost\n" + "".join(f"{self.addresses}{i} n{i}\n" for i in range(4)))
        with open(os.path.join(self.folder, "munge", "key"), "wb") as key:
            os.fchmod(key.fileno(), 0o400)
            key.write(os.urandom(1024))
        self.daemons = subprocess.Popen(
            ["unshare", *NAMESPACES, "--mount-proc", "--fork", "--kill-child", "bash", "-c",
             START.format(folder=self.folder, addresses=self.addresses)], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True)
        said = self.daemons.stdout.readline()
        assert said == "started\n", said + self.daemons.stdout.read()
        # The shell is the first process of its namespace; this one's child.
        self.shell = subprocess.run(["pgrep", "-P", str(self.daemons.pid)], capture_output=True, text=True,
                                    check=True).stdout.strip()
        deadline = time.monotonic() + 90
        while "3 idle" not in self.run("sinfo", "--noheader", "--format", "%D %T").stdout:
            assert time.monotonic() < deadline, self.run("sinfo").stdout + self.logs()
            time.sleep(0.2)
        return self

    def __exit__(self, *_):
        self.daemons.kill()
        self.daemons.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def logs(self):
        text = ""
        for name in ("controller.log", "n1.log"):
            path = os.path.join(self.folder, name)
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    text += name + ":\n" + file.read()[-2000:]
        return text

    def command(self, *words):
        """What runs the words as a user of the cluster."""
        return ["nsenter", "--target", self.shell, *NAMESPACES, *map(str, words)]

    def run(self, *words, timeout=60):
        return subprocess.run(self.command(*words), env=self.environment, cwd=os.getcwd(), capture_output=True,
                              text=True, timeout=timeout, check=False)
