#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the folder with the HDFS that tests/interop/hdfs_test.py drives, Hadoop 2.7.3's namenode and datanode out
# of a package of PySpark, and another client of WebHDFS: in $TENON_HDFS_VENV, by default
# ~/.cache/tenon/hdfs-2.7.3. What Java they need besides is Debian's (tools/install_deps.sh). Says nothing when it
# is there already. It takes about half a minute, 220 MB of download and 60 MB of disk.
set -euo pipefail

venv=${TENON_HDFS_VENV:-$HOME/.cache/tenon/hdfs-2.7.3}
spark="pyspark==2.4.8" client="hdfs==2.7.3"
jars=(hadoop-{annotations,auth,common,hdfs} activation commons-{cli,codec,collections,configuration,io,lang,logging}
  guava htrace-core http{client,core} jackson-{core,jaxrs,mapper} javax.servlet-api jaxb-api jetty{,-util} log4j
  netty-all protobuf-java slf4j-{api,log4j12} xercesImpl)

# The stamp is written last, so an interrupted installation is begun again.
stamp=$venv/.tenon-installed
wanted="$spark $client ${jars[*]}"
[[ -f $stamp && $(<"$stamp") == "$wanted" ]] && exit 0

echo "installing Hadoop's HDFS into $venv"
mkdir -p "$(dirname "$venv")"
# Two test runs on one machine must not install into one folder at once.
exec 9>"$venv.lock"
flock 9
[[ -f $stamp && $(<"$stamp") == "$wanted" ]] && exit 0
python3 -m venv "$venv"
pip=("$venv/bin/python" -m pip --quiet --disable-pip-version-check)
"${pip[@]}" install "$client"
work=$(mktemp -d "$venv/download.XXXXXX")
trap 'rm -rf "$work"' EXIT
# PySpark's set-up wants a pypandoc that still has a function of old.
echo 'pypandoc<1.8' >"$work/constraints.txt"
PIP_CONSTRAINT=$work/constraints.txt "${pip[@]}" download --no-deps --no-binary :all: --dest "$work" "$spark"
patterns=()
for jar in "${jars[@]}"; do patterns+=("*/deps/jars/$jar-[0-9]*.jar" "*/deps/jars/$jar-asl-[0-9]*.jar"); done
tar -xzf "$work"/pyspark-*.tar.gz -C "$work" --wildcards --wildcards-match-slash '*/deps/jars/*.jar'
mkdir -p "$venv/jars"
for pattern in "${patterns[@]}"; do
  for jar in "$work"/$pattern; do
    if [[ -f $jar ]]; then mv "$jar" "$venv/jars/"; fi
  done
done
printf '%s\n' "$wanted" >"$stamp"
