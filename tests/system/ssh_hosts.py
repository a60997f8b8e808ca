# SPDX-License-Identifier: Apache-2.0
"""Three hosts, h1 to h3, each with its own network, address, processes and OpenSSH server, and a fourth network
beside them, in which commands are run. All of it lives in namespaces that end with the with block. Needs root."""
import os
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("sshd", "ssh", "ssh-keygen", "ip", "unshare", "nsenter")
HOSTS = {"h1": "10.203.7.1", "h2": "10.203.7.2", "h3": "10.203.7.3"}
OWN_ADDRESS = "10.203.7.9"
SERVER = """\
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
"""
CLIENT = """\
IdentityFile {folder}/{key}
IdentitiesOnly yes
UserKnownHostsFile {folder}/known_hosts
GlobalKnownHostsFile /dev/null
"""
# A mount of this namespace alone hides the names of the machine.
ENTRANCE = """\
set -e
mount --bind {folder}/hosts /etc/hosts
mount -t tmpfs none /run
mkdir /run/sshd
ip link set lo up
ip link add bridge type bridge
ip address add {address}/24 dev bridge
ip link set bridge up
echo ready
read -r line
"""
SERVE = """\
set -e
hostname {host}
mount -t tmpfs none {folder}/here
echo ready
read -r line
exec {sshd} -D -f {folder}/{host}.conf -E {folder}/{host}.log
"""


def missing():
    """What this machine lacks of what the hosts need, for people; "" when nothing."""
    if os.geteuid() != 0:
        return "root"
    lacking = [name for name in PROGRAMS if find(name) is None]
    if lacking:
        return "Debian's openssh-server, openssh-client and iproute2: there is no " + ", ".join(lacking)
    alone = subprocess.run(["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "ip", "link", "add", "name", "b0",
                            "type", "bridge"], capture_output=True, check=False)
    return "" if alone.returncode == 0 else "namespaces with bridges: " + alone.stderr.decode().strip()


def find(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


class SshHosts:
    """The hosts. They start with the with block, and end with this process."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="ssh_hosts")
        self.started, self.entrance = [], None

    def __enter__(self):
        os.mkdir(self.path("here"))  # whose content no host sees
        for key in ("key", "other_key", "host_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path(key)], check=True)
        with open(self.path("host_key.pub"), encoding="utf-8") as key:
            line = key.read()
        self.write("known_hosts", "".join(f"{host} {line}" for host in HOSTS))
        self.write("hosts", "127.0.0.1 localhost\n" + "".join(f"{a} {host}\n" for host, a in HOSTS.items()))
        for name, key in (("client.conf", "key"), ("stranger.conf", "other_key")):
            self.write(name, CLIENT.format(folder=self.folder, key=key))
        self.entrance = self.start(["unshare", "--net", "--mount"],
                                   ENTRANCE.format(folder=self.folder, address=OWN_ADDRESS))
        for host, address in HOSTS.items():
            self.write(host + ".conf", SERVER.format(folder=self.folder, address=address))
            node = self.start(
                self.command("unshare", "--net", "--uts", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child"),
                SERVE.format(folder=self.folder, host=host, sshd=find("sshd")))
            self.ip("link", "add", host, "type", "veth", "peer", "name", "eth0", "netns", node.pid)
            self.ip("link", "set", host, "master", "bridge", "up")
            inside = ["nsenter", "--target", str(node.pid), "--net", "ip"]
            for words in ("link set lo up", f"address add {address}/24 dev eth0", "link set eth0 up"):
                subprocess.run([*inside, *words.split()], check=True)
            node.stdin.write("\n")
            node.stdin.flush()
        deadline = time.monotonic() + 60
        for host in HOSTS:
            while self.run(*self.ssh(), host, "true").returncode != 0:
                assert time.monotonic() < deadline, self.run(*self.ssh(), host, "true")
                time.sleep(0.1)
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, prefix, script):
        """A shell with the prefix before it, which has said that it is ready."""
        process = subprocess.Popen([*prefix, "bash", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True)
        self.started.append(process)
        said = process.stdout.readline()
        assert said == "ready\n", said + process.stdout.read()
        return process

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def ip(self, *words):
        subprocess.run(self.command("ip", *words), check=True)

    def ssh(self, *options):
        """ssh with the options, as who may use the hosts."""
        return ["ssh", "-F", self.path("client.conf"), "-o", "BatchMode=yes", *options]

    def command(self, *words, cwd=None):
        """What runs the words beside the hosts, in this folder or another one."""
        return ["nsenter", "--target", str(self.entrance.pid), "--net", "--mount", "env", "-C", cwd or os.getcwd(),
                "setpriv", "--pdeathsig", "KILL", *map(str, words)]

    def run(self, *words, timeout=60, cwd=None, **options):
        return subprocess.run(self.command(*words, cwd=cwd), capture_output=True, text=True, timeout=timeout,
                              check=False, **options)

    def processes(self, servers=False):
        """{process: its command} of the hosts' processes, with those of their ssh servers or without."""
        networks = [os.readlink(f"/proc/{node.pid}/ns/net") for node in self.started[1:]]
        found = {}
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{process}/ns/net") not in networks:
                    continue
                with open(f"/proc/{process}/cmdline", encoding="utf-8", errors="replace") as file:
                    words = file.read().split("\0")
            except OSError:  # it has ended
                continue
            if words[0] and words[0] != "unshare" and (servers or "sshd" not in words[0]):
                found[int(process)] = " ".join(words).strip()
        return found
