# SPDX-License-Identifier: Apache-2.0
#
# Options a builder may set, and the compiler and linker flags every target of the project gets.

option(TENON_BUILD_TESTS "Build the tests" ON)
option(TENON_WERROR "Treat warnings as errors" ON)
set(TENON_MARCH "native" CACHE STRING "Value of -march; empty leaves the compiler's default")
set(TENON_SANITIZE "" CACHE STRING "Sanitizers for every target, as in -fsanitize=")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# ccache must give the same answer in every clone: paths below the source tree are hashed relative to
# it, and the working directory is left out of the hash.
find_program(TENON_CCACHE ccache)
if(TENON_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${TENON_CCACHE}")
endif()

find_program(TENON_MOLD mold)
if(TENON_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# For C++ only: nvcc has flags of its own (TenonCuda.cmake).
function(tenon_compile_options)
  foreach(option IN LISTS ARGN)
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${option}>")
  endforeach()
endfunction()

tenon_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}=." -fno-math-errno)
if(TENON_MARCH)
  tenon_compile_options("-march=${TENON_MARCH}")
  # clang 19 takes AVX10.1 of a processor for its half of 256 bits, and then warns that there is no such half.
  include(CheckCXXSourceCompiles)
  string(MAKE_C_IDENTIFIER "TENON_MARCH_${TENON_MARCH}" march)
  set(CMAKE_REQUIRED_FLAGS "-march=${TENON_MARCH} -Werror")
  check_cxx_source_compiles("int main() {}" ${march}_IS_CONSISTENT)
  if(NOT ${march}_IS_CONSISTENT)
    string(APPEND CMAKE_REQUIRED_FLAGS " -mno-avx10.1-256")
    check_cxx_source_compiles("int main() {}" ${march}_IS_CONSISTENT_WITHOUT_AVX10)
    if(${march}_IS_CONSISTENT_WITHOUT_AVX10)
      tenon_compile_options(-mno-avx10.1-256)
    endif()
  endif()
  unset(CMAKE_REQUIRED_FLAGS)
endif()

# Compiles the .cc files of a target together, about eight at a time: in most of them half of the compiler's time goes into
# the same headers. BY_FOLDER keeps the files of different folders apart.
function(tenon_unity TARGET)
  cmake_parse_arguments(ARG "BY_FOLDER" "" "" ${ARGN})
  get_target_property(sources ${TARGET} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  if(ARG_BY_FOLDER)
    tenon_unity_folders(8 ${sources})
  else()
    tenon_unity_groups(all 8 ${sources})
  endif()
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# Sets the property UNITY_GROUP of the files: those of a group are compiled together. The files are dealt out in the order
# of their paths to as few groups as have at most SIZE files each, in shares that differ by one at most.
function(tenon_unity_groups NAME SIZE)
  set(files ${ARGN})
  list(SORT files)
  list(LENGTH files count)
  math(EXPR units "(${count} + ${SIZE} - 1) / ${SIZE}")
  set(i 0)
  foreach(file IN LISTS files)
    math(EXPR unit "${i} * ${units} / ${count}")
    math(EXPR i "${i} + 1")
    set_source_files_properties("${file}" PROPERTIES UNITY_GROUP "${NAME}_${unit}")
  endforeach()
endfunction()

# The same, with groups of its own for each folder.
function(tenon_unity_folders SIZE)
  set(sources ${ARGN})
  set(folders ${sources})
  list(TRANSFORM folders REPLACE "/[^/]*$" "")
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    set(files "")
    foreach(file IN LISTS sources)
      cmake_path(GET file PARENT_PATH parent)
      if(parent STREQUAL folder)
        list(APPEND files "${file}")
      endif()
    endforeach()
    cmake_path(GET folder STEM name)
    tenon_unity_groups(${name} ${SIZE} ${files})
  endforeach()
endfunction()

if(TENON_SANITIZE)
  add_compile_options("-fsanitize=${TENON_SANITIZE}" -fno-omit-frame-pointer -g1)
  add_link_options("-fsanitize=${TENON_SANITIZE}")
  if(TENON_SANITIZE MATCHES "undefined")
    # By its old name, under which ccache knows that the file counts, and as seen from where the compiler
    # runs, so that ccache finds the same command in every clone.
    file(RELATIVE_PATH list "${PROJECT_BINARY_DIR}" "${PROJECT_SOURCE_DIR}/cmake/sanitizers.txt")
    add_compile_options(-fno-sanitize-recover=undefined "-fsanitize-blacklist=${list}")
  endif()
endif()

# Warnings apply to our own code only: generated code and system headers are not ours to clean.
add_library(tenon_warnings INTERFACE)
# -Wpass-failed tells of loops that were asked to vectorise and could not, which generic loops over
# many element types always have among them.
target_compile_options(tenon_warnings INTERFACE -Wall -Wextra
  $<$<BOOL:${TENON_WERROR}>:-Werror>
  "$<$<CXX_COMPILER_ID:Clang>:-Wthread-safety;-Wno-pass-failed>")
