# SPDX-License-Identifier: Apache-2.0
"""Hadoop's own HDFS on loopback, a namenode and a datanode, and the proxy of faults before both."""
import contextlib
import getpass
import glob
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from faulty_proxy import Faults

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from tenon_process import free_addresses  # noqa: E402

VENV = os.environ.get("TENON_HDFS_VENV", os.path.expanduser("~/.cache/tenon/hdfs-2.7.3"))
SKIPPED = 77
REALM = "TENON.TEST"
PATIENCE = 240  # seconds
USER = "hdfs-user"  # who starts the namenode may do all, whoever it is; this one may not
# Libraries of the namenode's web server, besides the folder's own.
DEBIAN_JARS = [f"/usr/share/java/{name}.jar" for name in
               ("jersey1-core", "jersey1-server", "jersey1-servlet", "jsr311-api")]
# Java hides from programs of that age what they use.
OPEN = [f"--add-opens={name}=ALL-UNNAMED" for name in
        ("java.base/java.lang", "java.base/java.nio", "java.base/sun.nio.ch", "java.security.jgss/sun.security.krb5")]
OPEN += [f"--add-exports=java.security.jgss/sun.security.{name}=ALL-UNNAMED" for name in ("krb5", "jgss")]
LOG = """log4j.rootLogger=WARN, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d %p %c{1}: %m%n
"""


def main_with_hdfs(main):
    """Runs `main` under the Python that has the other client; exits with what it returns, or with SKIPPED when
    there is no HDFS."""
    if not os.path.exists(os.path.join(VENV, ".tenon-installed")):
        print(f"no HDFS at {VENV}; tools/install_hdfs_server.sh installs it")
        sys.exit(SKIPPED)
    missing = [jar for jar in DEBIAN_JARS if not os.path.exists(jar)]
    if missing or not shutil.which("java"):
        print(f"no java, or not all of its libraries ({', '.join(missing)}); tools/install_deps.sh installs them")
        sys.exit(SKIPPED)
    if os.path.realpath(sys.prefix) == os.path.realpath(VENV):
        sys.exit(main())
    python = os.path.join(VENV, "bin", "python")
    sys.exit(subprocess.run([python] + sys.argv, env=dict(os.environ, NO_PROXY="*")).returncode)


def free_port():
    return int(free_addresses(1)[0].split(":")[1])


def environment(namenodes=None, **more):
    """That of a client: nothing of this machine's own settings is left in it. Paths of hdfs:// are at these
    namenodes, such as "http://127.0.0.1:9870"."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("HADOOP_", "TENON_HDFS_")) and not name.lower().endswith("_proxy")}
    if namenodes:
        kept["TENON_HDFS_NAMENODES"] = namenodes
    return dict(kept, HADOOP_USER_NAME=USER, **more)


def settings(values):
    inner = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in values.items())
    return f"<configuration>{inner}</configuration>"


@contextlib.contextmanager
def realm():
    """A folder with krb5.conf and a keytab of all that is in the realm, while its KDC runs: USER and the servers."""
    folder = tempfile.mkdtemp(prefix="tenon_realm_")
    port = free_port()
    files = {
        "krb5.conf": f"""[libdefaults]
 default_realm = {REALM}
 dns_lookup_kdc = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {REALM} = {{
  kdc = 127.0.0.1:{port}
 }}
""",
        "kdc.conf": f"""[kdcdefaults]
 kdc_tcp_listen = 127.0.0.1:{port}
 kdc_listen = 127.0.0.1:{port}
[realms]
 {REALM} = {{
  database_name = {folder}/principals
  key_stash_file = {folder}/stash
  supported_enctypes = aes256-cts:normal
 }}
"""}
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    env = dict(os.environ, KRB5_CONFIG=f"{folder}/krb5.conf", KRB5_KDC_PROFILE=f"{folder}/kdc.conf")
    kdc = None
    try:
        commands = [["/usr/sbin/kdb5_util", "create", "-s", "-P", "secret", "-r", REALM]]
        for name in (USER, "server/localhost", "HTTP/localhost"):
            commands.append(["/usr/sbin/kadmin.local", "-q", f"addprinc -randkey {name}"])
            commands.append(["/usr/sbin/kadmin.local", "-q", f"ktadd -k {folder}/keytab {name}"])
        for command in commands:
            subprocess.run(command, env=env, check=True, capture_output=True, timeout=PATIENCE)
        kdc = subprocess.Popen(["/usr/sbin/krb5kdc", "-n"], env=env, stdout=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE
        while True:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert kdc.poll() is None and time.monotonic() < end, "the KDC does not listen"
            time.sleep(0.05)
        yield folder
    finally:
        if kdc:
            kdc.kill()
            kdc.wait()
        shutil.rmtree(folder, ignore_errors=True)


def of_realm(folder):
    """Settings of Hadoop by which the servers are in the realm, and ask who somebody is."""
    keytab = f"{folder}/keytab"
    names = {"dfs.namenode.kerberos.principal": "server", "dfs.datanode.kerberos.principal": "server",
             "dfs.web.authentication.kerberos.principal": "HTTP"}
    return {"hadoop.security.authentication": "kerberos", "dfs.block.access.token.enable": "true",
            "ignore.secure.ports.for.testing": "true", "dfs.permissions.enabled": "false",
            "dfs.namenode.keytab.file": keytab,
            "dfs.datanode.keytab.file": keytab, "dfs.web.authentication.kerberos.keytab": keytab,
            **{name: f"{who}/localhost@{REALM}" for name, who in names.items()}}


@contextlib.contextmanager
def hdfs(folder_of_realm=None, **more):
    """The address of a namenode's web interface, while it and a datanode run, in the realm of realm() where that is
    given; USER may write everywhere."""
    folder = tempfile.mkdtemp(prefix="tenon_hdfs_")
    processes = []
    try:
        web, rpc = free_port(), free_port()
        conf = os.path.join(folder, "conf")
        for name in ("hdfs", "datanode", "static"):
            os.makedirs(os.path.join(folder, "web", "webapps", name))
        os.mkdir(conf)
        values = {
            "dfs.namenode.name.dir": f"{folder}/name", "dfs.datanode.data.dir": f"{folder}/data",
            "dfs.namenode.http-address": f"localhost:{web}", "dfs.datanode.address": "127.0.0.1:0",
            "dfs.datanode.http.address": "127.0.0.1:0", "dfs.datanode.ipc.address": "127.0.0.1:0",
            "dfs.replication": "1", "dfs.heartbeat.interval": "1", "dfs.namenode.safemode.extension": "0",
            "hadoop.tmp.dir": f"{folder}/tmp",
            "fs.defaultFS": f"hdfs://localhost:{rpc}", **more,
            **(of_realm(folder_of_realm) if folder_of_realm else {})}
        for name, text in (("core-site.xml", settings(values)), ("hdfs-site.xml", settings(values)),
                           ("log4j.properties", LOG)):
            with open(os.path.join(conf, name), "w", encoding="utf-8") as file:
                file.write(text)
        classes = [conf, os.path.join(folder, "web"), *glob.glob(os.path.join(VENV, "jars", "*.jar")), *DEBIAN_JARS]
        java = ["java", *OPEN, "-Xmx256m", f"-Djava.io.tmpdir={folder}", "-cp", ":".join(classes)]
        if folder_of_realm:
            java.insert(1, f"-Djava.security.krb5.conf={folder_of_realm}/krb5.conf")
        server = "org.apache.hadoop.hdfs.server."
        with open(os.path.join(folder, "log"), "a+", encoding="utf-8") as log:
            kept = {k: v for k, v in os.environ.items() if not k.startswith("HADOOP_")}
            command = [*java, server + "namenode.NameNode"]
            subprocess.run([*command, "-format", "-force", "-nonInteractive"], env=kept, stdout=log, stderr=log,
                           check=True, timeout=PATIENCE)
            for part in (command, [*java, server + "datanode.DataNode"]):
                processes.append(subprocess.Popen(part, env=kept, stdout=log, stderr=log, start_new_session=True))
            address = f"http://localhost:{web}"
            end = time.monotonic() + PATIENCE
            while not is_ready(address):
                log.seek(0)
                assert time.monotonic() < end and all(p.poll() is None for p in processes), log.read()[-3000:]
                time.sleep(0.1)
            if not folder_of_realm:
                url = f"{address}/webhdfs/v1/?op=SETPERMISSION&permission=777&user.name={getpass.getuser()}"
                urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=PATIENCE).close()
            yield address
    finally:
        for process in processes:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def is_ready(address):
    """Whether the namenode knows a datanode, and takes changes."""
    try:
        url = address + "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
        with urllib.request.urlopen(url, timeout=5) as answer:
            text = answer.read().decode()
        return '"NumLiveDataNodes" : 1' in text and '"FSState" : "Operational"' in text
    except OSError:
        return False


class HdfsFaults(Faults):
    """The proxy of faults before a namenode and the datanodes that it names."""
    KINDS = ("500", "503", "reset", "lost", "half", "slow", "cut")
    DATANODE = "/datanode/"

    def error(self, status):
        name = "RetriableException" if status == "503" else "IOException"
        return "application/json", f'{{"RemoteException": {{"exception": "{name}", "message": "drawn"}}}}'

    def is_append(self, path):
        """Whether the path is that of content which goes to a datanode."""
        return path.startswith(self.DATANODE) and "op=APPEND" in path

    def delay(self, handler):
        """What is appended may come after the try that follows it."""
        return 0.6 if self.is_append(handler.path) else 0

    def route(self, path):
        if not path.startswith(self.DATANODE):
            return self.upstream, path
        server, rest = path[len(self.DATANODE):].split("/", 1)
        return server, "/" + rest

    def header(self, name, value):
        if name.lower() != "location" or not value.startswith("http://"):
            return value
        return self.endpoint + self.DATANODE + value[len("http://"):]
