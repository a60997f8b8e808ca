# SPDX-License-Identifier: Apache-2.0
#
# Finds every library the project links and gives each one target name. The installed package
# configuration includes this file too, so that a user's project finds the same libraries.

find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(leveldb CONFIG REQUIRED)
find_package(Snappy CONFIG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
find_package(Eigen3 CONFIG REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(re2 REQUIRED IMPORTED_TARGET re2)
pkg_check_modules(lbfgs REQUIRED IMPORTED_TARGET liblbfgs)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)

# Debian's gRPC has no CMake configuration, and its pkg-config file names a hundred libraries, which CMake
# takes ten seconds to look for; the shared ones need no others.
if(NOT TARGET Tenon::grpc)
  add_library(Tenon::grpc INTERFACE IMPORTED)
  foreach(library grpc++ grpc gpr)
    string(MAKE_C_IDENTIFIER "TENON_${library}_LIBRARY" variable)
    find_library(${variable} ${library} REQUIRED)
    target_link_libraries(Tenon::grpc INTERFACE "${${variable}}")
  endforeach()
endif()

# oneDNN's own configuration asks for the OpenCL headers, which a CPU build does not need.
if(NOT TARGET Tenon::dnnl)
  find_library(TENON_DNNL_LIBRARY dnnl REQUIRED)
  find_path(TENON_DNNL_INCLUDE dnnl.hpp REQUIRED)
  add_library(Tenon::dnnl UNKNOWN IMPORTED)
  set_target_properties(Tenon::dnnl PROPERTIES
    IMPORTED_LOCATION "${TENON_DNNL_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${TENON_DNNL_INCLUDE}")
endif()

# One OpenMP runtime in the process: LLVM's libomp, for Eigen and oneDNN.
#
# Debian's libdnnl.so was built by gcc and names libgomp.so.1 as needed, so the loader maps libgomp
# whatever we do short of a private directory with a false libgomp.so.1 in it, which would tie every
# program to that directory. It is enough that nothing calls it: libomp also defines the GOMP_* and
# omp_* entry points (with the same symbol versions), and the loader searches the libraries that the
# program itself names before those that its libraries name. So every program here must name libomp
# (--no-as-needed, even if its own code has no parallel loop) and must never name libgomp; hence
# libomp by path instead of the compiler's -fopenmp at link time, which under gcc would add libgomp.
# libgomp then stays an idle mapping: it starts no thread before its first call.
if(NOT TARGET Tenon::openmp)
  find_library(TENON_LIBOMP NAMES omp libomp.so.5 REQUIRED
    HINTS /usr/lib/llvm-19/lib PATHS /usr/lib/llvm-20/lib /usr/lib/llvm-18/lib)
  add_library(Tenon::openmp INTERFACE IMPORTED)
  set_target_properties(Tenon::openmp PROPERTIES
    INTERFACE_COMPILE_OPTIONS "-fopenmp"
    INTERFACE_LINK_OPTIONS "LINKER:--push-state,--no-as-needed;${TENON_LIBOMP};LINKER:--pop-state")
  # A gcc that compiles with -fopenmp finds omp.h by itself; clang has its own beside the compiler.
endif()
