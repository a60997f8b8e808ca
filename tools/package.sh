#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the package for hosts that do not have Debian's libraries, tenon-VERSION-linux-x86_64.tar.xz:
# the programs, the libraries that they need but glibc, and share/tenon (docs/package.md).
#
#   tools/package.sh                         of the preset portable, which it builds; into build/
#   tools/package.sh FILE.tar.xz | FOLDER    to this file, or into this folder
#   tools/package.sh --build FOLDER ...      of this build tree, as it is
#
# XZ_OPT changes how hard it compresses (by default -9).
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)

fail() {
  echo "tools/package.sh: $*" >&2
  exit 1
}

usage() {
  echo "usage: tools/package.sh [--build FOLDER] [FILE.tar.xz | FOLDER]" >&2
  exit 2
}

build='' output=$source/build
while (( $# )); do
  case $1 in
    --build) (( $# > 1 )) || usage; build=$2; shift ;;
    -*) usage ;;
    *) (( $# == 1 )) || usage; output=$1 ;;
  esac
  shift
done

for tool in patchelf xz; do
  [[ -n $(type -P "$tool") ]] || fail "there is no $tool; tools/install_deps.sh installs it"
done

if [[ -z $build ]]; then
  build=$source/build/portable
  mkdir -p "$build"
  echo "building the preset portable (log: $build/package.log)"
  if ! (cd "$source" && cmake --preset portable && cmake --build --preset portable --target packaged) \
      >"$build/package.log" 2>&1; then
    tail -n 50 "$build/package.log" >&2
    fail "could not build the preset portable; the last lines of the build are shown"
  fi
fi
[[ -f $build/CMakeCache.txt ]] || fail "$build is not a build tree: it has no CMakeCache.txt"
[[ -x $build/tenon ]] || fail "$build has no tenon; build it first: cmake --build $build --target packaged"

# cached NAME: its value in the build tree.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

version=$(cached CMAKE_PROJECT_VERSION)
march=$(cached TENON_MARCH)
# The least processor that the loader is asked for, of those that it tells apart.
case $march in
  x86-64-v[234]) level=$march processors="of the kind $march or better" ;;
  *) level=x86-64-v2 processors="like that of the machine that it was built on" ;;
esac
name=tenon-$version-linux-x86_64
[[ $output == *.tar.xz ]] || output=${output%/}/$name.tar.xz

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
package=$work/$name
cmake --install "$build" --component programs --prefix "$package" --strip >"$work/install.log" 2>&1 || {
  tail -n 20 "$work/install.log" >&2
  fail "could not install the programs of $build"
}
# Each program holds the whole library: one example shows a cluster, the others are read.
find "$package/bin" -name 'example_*' ! -name example_mnist_replica -delete
mkdir -p "$package/lib"
# The device library, in builds that make it.
if [[ -f $build/libtenon_cuda.so ]]; then
  cp "$build/libtenon_cuda.so" "$package/lib/"
  strip --strip-unneeded "$package/lib/libtenon_cuda.so"
fi

# What checks a host with GPUs, and the program with the tests where the build has it.
cp "$source/tools/gpu_check.sh" "$source/tools/gpu_timing_torch.py" "$package/bin/"
if [[ -x $build/gpu_tests ]]; then
  cp "$build/gpu_tests" "$package/bin/"
  strip "$package/bin/gpu_tests"
fi

# What is the host's own: glibc, whose parts fit each other only; NVIDIA's driver and libraries, which go with the host's
# GPU and are many times as large as all else; and MPI, which goes with the host's mpirun and network.
host_library() {
  case $1 in
    linux-vdso.so.*|*/ld-linux-*|ld-linux-*) ;;
    libc.so.*|libm.so.*|libmvec.so.*|libpthread.so.*|libdl.so.*|librt.so.*|libresolv.so.*|libutil.so.*) ;;
    libanl.so.*|libnsl.so.1|libnss_*.so.*|libBrokenLocale.so.*|libthread_db.so.*) ;;
    libcuda.so.*|libcudart.so.*|libcublas*.so.*|libcudnn*.so.*|libcufft.so.*|libcurand.so.*) ;;
    libmpi.so.*|libmpich.so.*) ;;
    libcusolver.so.*|libcusparse.so.*|libnccl.so.*|libnvrtc*.so.*|libnvJitLink.so.*|libnvidia-*.so.*) ;;
    *) return 1 ;;
  esac
}

# needs FILE: "LIBRARY PATH" of what the loader would load for the file, with what that needs; PATH is "not" if it
# finds none.
needs() { LC_ALL=C ldd "$1" | sed -nE 's/^\s*(\S+) => (\S+).*/\1 \2/p'; }

# The files looked at are the build tree's, whose run paths lead to the libraries that it was built with.
files=()
for file in "$package"/bin/* "$package"/lib/*; do
  if [[ -e $file && $file != *.sh && $file != *.py ]]; then files+=("$build/$(basename "$file")"); fi
done
origins=()
for file in "${files[@]}"; do
  libraries=$(needs "$file") || fail "ldd cannot read $file"
  # What MPI itself needs is the host's as well.
  case $file in
    */libtenon_openmpi.so|*/libtenon_mpich.so)
      libraries=$(grep -F -f <(patchelf --print-needed "$file" | sed 's/$/ /') <<<"$libraries") ;;
  esac
  while read -r library path; do
    if host_library "$library"; then continue; fi
    [[ $path != not ]] || fail "$file needs $library, and the loader finds none on this machine"
    if [[ -e $package/lib/$library ]]; then continue; fi
    cp --dereference "$path" "$package/lib/$library"
    chmod u+w "$package/lib/$library"
    origins+=("$(realpath "$path")")
  done <<<"$libraries"
done

# The path is a DT_RPATH and not a DT_RUNPATH: an LD_LIBRARY_PATH of the host, set for other programs, must not put a
# library of another version in the place of these.
for file in "$package"/bin/* "$package"/lib/*; do
  case $file in
    *.sh|*.py) continue ;;
    */bin/*) path="\$ORIGIN/../lib" ;;
    *) path="\$ORIGIN" ;;
  esac
  patchelf --force-rpath --set-rpath "$path" "$file"
done

# A library of nothing that the programs need, named by what the host needs. Since 2.33 glibc looks into this folder
# too, on such processors; where it does not, the loader ends the program with one line that has the name. Without it,
# an older glibc gets a line for every version that each of the libraries lacks (so those from 2.33 on still do, but
# they lack few), and a lesser processor stops somewhere with "Illegal instruction".
glibc=$("$source/tools/glibc_versions.py" "$package" | sed -n 's/^GLIBC_\([0-9.]*\) is the highest.*/\1/p')
[[ -n $glibc ]] || fail "tools/glibc_versions.py names no version for $package"
requirement=tenon-needs-glibc-$glibc-and-$level
mkdir -p "$package/lib/glibc-hwcaps/$level"
"$(cached CMAKE_CXX_COMPILER)" -shared -nostdlib -s "-Wl,-soname,$requirement" -x c++ /dev/null \
  -o "$package/lib/glibc-hwcaps/$level/$requirement" || fail "could not make the library that names what is needed"
for file in "$package"/bin/*; do
  if [[ $file != *.sh && $file != *.py ]]; then patchelf --add-needed "$requirement" "$file"; fi
done

# The licences of the libraries, which they want to have with them, and the texts that these refer to.
licenses=$package/share/doc/licenses
mkdir -p "$licenses"
# license OWNER WHAT: that of a Debian package, which may be "".
license() {
  local text=/usr/share/doc/$1/copyright
  if [[ -n $1 && -f $text ]]; then
    cp --dereference "$text" "$licenses/$1"
  else
    echo "tools/package.sh: found no licence of $2, so the package has none of it" >&2
  fi
}
# A path is known to Debian with or without /usr, which are one folder.
owners=$(dpkg-query --search "${origins[@]}" "${origins[@]#/usr}" 2>/dev/null || true)
for origin in "${origins[@]}"; do
  owner=$(awk -F ': ' -v a="$origin" -v b="${origin#/usr}" \
    '$2 == a || $2 == b { sub(/:.*/, "", $1); print $1; exit }' <<<"$owners")
  license "$owner" "$origin"
done
# Libraries of headers alone are within the programs.
for owner in libeigen3-dev libcli11-dev nlohmann-json3-dev libboost1.74-dev; do license "$owner" "$owner"; done
while read -r text; do
  if [[ -f $text ]]; then cp --dereference "$text" "$licenses/"; fi
done < <(grep -rhoE '/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]' "$licenses" | sort -u)

cp "$source/LICENSE" "$package/"
cat >"$package/README" <<END
Tenon $version: runs and trains dataflow graphs, in TensorFlow 1's dialect, here and on clusters.

    bin/tenon --help
    bin/tenon train mnist --epochs 2
    bin/tenon launch --ps 1 --workers 2 -- bin/example_mnist_replica --data share/tenon/mnist
    bin/gpu_check.sh all                     # whether this host's GPU computes what its CPU does

The folder works wherever it stands, and needs no installation: bin/ finds lib/ and share/ beside it. Move
it as a whole; a symbolic link to bin/tenon works too.

It needs Linux on x86-64 with glibc $glibc or later (ldd --version says which is there), and
a processor $processors. Where one of them is not there, the loader says so:
"$requirement: cannot open shared object file", or
"version \`GLIBC_$glibc' not found".

share/doc/Tenon/README.md leads to the pages of the documentation, and the sources of the examples.
LICENSE is Tenon's; those of the libraries in lib/ are in share/doc/licenses, that of the images in
share/tenon/mnist/README.md.
END

# Same files, same archive: no names, times and order of this machine.
mkdir -p "$(dirname "$output")"
time=${SOURCE_DATE_EPOCH:-$(git -C "$source" log -1 --format=%ct 2>/dev/null || date +%s)}
tar --create --directory "$work" --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r,go-w,a+X \
  --mtime="@$time" "$name" | XZ_OPT=${XZ_OPT--9} xz --threads=0 >"$output.partial"
mv "$output.partial" "$output"
echo "$output: $(du --apparent-size -m "$output" | cut -f 1) MiB, unpacked $(du -sm "$package" | cut -f 1) MiB"
if [[ $march == native ]]; then
  echo "it is for processors like this machine's; the preset portable makes one for any x86-64-v3"
fi
