# SPDX-License-Identifier: Apache-2.0
"""Hosts in network namespaces, joined by a switch in this process that loses, delays and cuts what it is
told to. The kernel needs namespaces and tun devices, and this process root; netem is not needed."""
import ctypes
import fcntl
import heapq
import os
import random
import select
import shutil
import socket
import struct
import subprocess
import threading
import time

_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
# Large packets: Python looks at each one.
_MTU = 60000


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def can_make_networks():
    """Whether this process may make namespaces and tun devices."""
    if shutil.which("ip") is None or os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        return False
    try:
        with Network(["try"]):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def _tun_within(name):
    """A tun device in that namespace. On a thread of its own, since a thread enters a namespace for
    good."""
    found = []

    def enter():
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            with open(f"/run/netns/{name}", "rb") as namespace:
                if libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH22x", b"tun0", _IFF_TUN | _IFF_NO_PI))
            found.append(tun)
        except OSError as error:
            found.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if isinstance(found[0], OSError):
        raise found[0]
    return found[0]


class Network:
    """A namespace for each host, with an address; what goes from one to another passes this process."""

    _made = 0

    def __init__(self, hosts):
        Network._made += 1
        self.names = {h: f"tenon{os.getpid()}n{Network._made}h{i}" for i, h in enumerate(hosts)}
        self.addresses = {h: f"10.204.0.{i + 1}" for i, h in enumerate(hosts)}
        self.links = {}  # (from, to): {"loss": probability, "delay": seconds}
        self.tuns = {}
        self.lock = threading.Lock()
        self.ended = False
        self.thread = threading.Thread(target=self._carry, daemon=True)

    def __enter__(self):
        try:
            for host, name in self.names.items():
                ip("netns", "add", name)
                self.tuns[host] = _tun_within(name)
                ip("-n", name, "address", "add", self.addresses[host] + "/24", "dev", "tun0")
                ip("-n", name, "link", "set", "tun0", "mtu", str(_MTU), "up")
                ip("-n", name, "link", "set", "lo", "up")
        except BaseException:
            self.__exit__()
            raise
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        if self.thread.is_alive():
            self.thread.join()
        for tun in self.tuns.values():
            os.close(tun)
        for name in self.names.values():
            subprocess.run(["ip", "netns", "delete", name], check=False, stderr=subprocess.PIPE)

    def inside(self, host, command):
        """The command that runs `command` on that host, as the process that it becomes."""
        return ["nsenter", f"--net=/run/netns/{self.names[host]}", *command]

    def set_link(self, source, target, **how):
        """`loss`: a probability; `delay`: seconds. Without either the link is whole."""
        with self.lock:
            self.links[source, target] = how

    def _carry(self):
        generator = random.Random(1)
        hosts = {socket.inet_aton(a): h for h, a in self.addresses.items()}
        by_tun = {tun: host for host, tun in self.tuns.items()}
        poll = select.poll()
        for tun in by_tun:
            poll.register(tun, select.POLLIN)
        late = []  # (when, number, tun, packet)
        number = 0
        while not self.ended:
            wait = 50 if not late else max(0, min(50, (late[0][0] - time.monotonic()) * 1000))
            for tun, _ in poll.poll(wait):
                for _ in range(64):
                    try:
                        packet = os.read(tun, _MTU + 100)
                    except (BlockingIOError, OSError):
                        break
                    target = hosts.get(packet[16:20]) if packet[0] >> 4 == 4 else None
                    if target is None:
                        continue
                    with self.lock:
                        how = self.links.get((by_tun[tun], target), {})
                    if generator.random() < how.get("loss", 0):
                        continue
                    number += 1
                    heapq.heappush(late, (time.monotonic() + how.get("delay", 0), number,
                                          self.tuns[target], packet))
            while late and late[0][0] <= time.monotonic():
                _, _, tun, packet = heapq.heappop(late)
                try:
                    os.write(tun, packet)
                except OSError:
                    pass  # full: lost, as on any network
