# SPDX-License-Identifier: Apache-2.0
#
# tenon_tests(): one test program a folder of tests/ (tests/core/**.cc -> core_tests), every case a
# ctest of its own; every *_test.py a ctest too. The folder decides the label:
#   tests/distributed -> dist, interop -> interop, system -> slow, cuda -> cuda, fuzz -> fuzz,
#   anything else -> fast.
# tests/data holds both the tests of data/ and, in its folders, the files that tests read.
# Sanitizer builds run the cases of a program together in a few processes.
# tests/runtime/cuda needs CUDA's headers, and no GPU: a fake of its runtime is part of the tests.
# tests/testing is the library tenon_testing, which every test program links; its folder plugin is the
# simulated device for programs. Tests run in the source
# tree, with TENON_SOURCE_DIR and TENON_BINARY_DIR set. A Python test skips with exit code 77, saying
# why on its last line.
#
# tests/fuzz/NAME_fuzz.cc is a fuzzing target: with TENON_SANITIZE=...,fuzzer-no-link it becomes the
# program fuzz_NAME (all of them: the target fuzz_programs), and otherwise a part of fuzz_tests, which
# runs it on the inputs that are kept. libfuzzer_main.cc belongs to the programs only.

function(tenon_test_label FOLDER OUT_LABEL OUT_TIMEOUT)
  set(labels_distributed dist 120)
  set(labels_interop interop 1200)
  set(labels_system slow 300)
  set(labels_cuda cuda 120)
  set(labels_fuzz fuzz 300)
  set(found fast 120)
  if(DEFINED labels_${FOLDER})
    set(found ${labels_${FOLDER}})
  endif()
  list(GET found 0 label)
  list(GET found 1 seconds)
  if(TENON_SANITIZE)
    math(EXPR seconds "${seconds} * 4")
  endif()
  set(${OUT_LABEL} ${label} PARENT_SCOPE)
  set(${OUT_TIMEOUT} ${seconds} PARENT_SCOPE)
endfunction()

# With the fuzzer's instrumentation, makes the programs and empties SOURCES, the files of tests/fuzz.
function(tenon_fuzz_programs SOURCES)
  if(NOT TENON_SANITIZE MATCHES "fuzzer")
    return()
  endif()
  add_custom_target(fuzz_programs)
  set(targets ${${SOURCES}})
  list(FILTER targets INCLUDE REGEX "_fuzz\\.cc$")
  set(shared ${${SOURCES}})
  list(FILTER shared EXCLUDE REGEX "(_fuzz|_test|/fuzz_target)\\.cc$")
  add_library(tenon_fuzzing STATIC ${shared} "${PROJECT_SOURCE_DIR}/tests/fuzz/libfuzzer_main.cc")
  target_link_libraries(tenon_fuzzing PUBLIC tenon_testing PRIVATE tenon_warnings)
  foreach(source IN LISTS targets)
    get_filename_component(name "${source}" NAME_WE)
    string(REGEX REPLACE "^(.*)_fuzz$" "fuzz_\\1" name "${name}")
    add_executable(${name} "${source}")
    target_link_libraries(${name} PRIVATE tenon_fuzzing tenon_warnings)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzz_programs ${name})
  endforeach()
  set(${SOURCES} "" PARENT_SCOPE)
endfunction()

# The cases of FOLDER's program again, on the simulated device: what no test puts elsewhere runs there. All
# tensors between tasks are sent.
# Those that have it in any case, or take long, are left out.
function(tenon_simulated_test FOLDER ENVIRONMENT)
  set(filter_ops "-DeviceConformance*:Extreme*")
  set(filter_runtime "-Differential*:*Interrupted*:Plan*:*PlantedFault*:*StreamDevice*:*Simulated*")
  set(filter_distributed "ServerTest*:PartialRunTest*:MnistSplitTest*:WorkerTest*:SessionMemoryTest*")
  set(filter_cuda "*")
  set(shards 2)
  math(EXPR last "${shards} - 1")
  set(folder "${PROJECT_BINARY_DIR}/simulated")
  foreach(shard RANGE ${last})
    set(name "${FOLDER}.simulated_shard_${shard}")
    add_test(NAME ${name} COMMAND ${FOLDER}_tests WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    set_tests_properties(${name} PROPERTIES LABELS fast TIMEOUT 300 COST 100
      ENVIRONMENT "${ENVIRONMENT};GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard};\
GTEST_FILTER=${filter_${FOLDER}};\
TENON_CUDA_PLUGIN=${folder}/libtenon_simulated.so;LD_LIBRARY_PATH=${folder};TENON_HOST_MEMORY=off")
  endforeach()
endfunction()

# The cases of FOLDER's program in a few processes, each every so manieth of them: under a sanitizer a
# process takes longer to start than most cases to run.
function(tenon_sharded_test FOLDER LABEL ENVIRONMENT)
  set(shards 8)
  math(EXPR last "${shards} - 1")
  foreach(shard RANGE ${last})
    set(name "${FOLDER}.shard_${shard}")
    add_test(NAME ${name} COMMAND ${FOLDER}_tests WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    set_tests_properties(${name} PROPERTIES LABELS ${LABEL} TIMEOUT 900 COST 900
      ENVIRONMENT "${ENVIRONMENT};GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()

# The folder simulated/ of the build: the simulated device as a plugin, and a driver's library beside it
# (tests/testing/plugin). Nothing of Tenon is linked, as in every plugin.
function(tenon_simulated_plugin)
  set(testing "${PROJECT_SOURCE_DIR}/tests/testing")
  add_library(tenon_simulated MODULE "${testing}/plugin/simulated_plugin.cc"
    "${testing}/simulated_driver.cc" "${testing}/simulated_kernels.cc" "${testing}/simulated_ranks.cc")
  tenon_plugin_sees(tenon_simulated ops)
  target_link_libraries(tenon_simulated PRIVATE tenon_accelerator tenon_warnings absl::status
    absl::statusor absl::strings absl::str_format absl::flat_hash_map absl::hash Tenon::openmp)
  add_library(tenon_simulated_driver MODULE "${testing}/plugin/driver.cc")
  target_link_libraries(tenon_simulated_driver PRIVATE tenon_warnings)
  set_target_properties(tenon_simulated_driver PROPERTIES OUTPUT_NAME cuda SUFFIX ".so.1")
  set_target_properties(tenon_simulated tenon_simulated_driver PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/simulated")
endfunction()

function(tenon_tests)
  # What the tests labelled fast and dist need, and no more: it is what sanitizer builds build.
  add_custom_target(test_programs)
  find_package(GTest CONFIG REQUIRED)
  find_package(nlohmann_json CONFIG REQUIRED)
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
  include(GoogleTest)
  set(root "${PROJECT_SOURCE_DIR}/tests")
  set(environment "TENON_SOURCE_DIR=${PROJECT_SOURCE_DIR}" "TENON_BINARY_DIR=${PROJECT_BINARY_DIR}"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp history_size=7 ignore_noninstrumented_modules=1")
  if(TENON_SANITIZE MATCHES "thread")
    # Tells ThreadSanitizer what OpenMP's teams wait for.
    get_filename_component(openmp "${TENON_LIBOMP}" REALPATH)
    get_filename_component(openmp "${openmp}" DIRECTORY)
    find_library(TENON_ARCHER archer REQUIRED HINTS /usr/lib/llvm-19/lib "${openmp}")
    list(APPEND environment "OMP_TOOL_LIBRARIES=${TENON_ARCHER}")
  endif()

  tenon_simulated_plugin()
  file(GLOB testing CONFIGURE_DEPENDS "${root}/testing/*.cc")
  if(testing)
    add_library(tenon_testing STATIC ${testing})
    target_link_libraries(tenon_testing PUBLIC tenon_accelerator tenon_train GTest::gtest GTest::gmock
      nlohmann_json::nlohmann_json PRIVATE tenon_warnings)
    tenon_unity(tenon_testing)
  else()
    add_library(tenon_testing INTERFACE)
    target_link_libraries(tenon_testing INTERFACE tenon_train GTest::gtest GTest::gmock
      nlohmann_json::nlohmann_json)
  endif()

  file(GLOB folders CONFIGURE_DEPENDS RELATIVE "${root}" "${root}/*")
  foreach(folder IN LISTS folders)
    if(folder STREQUAL "testing" OR NOT IS_DIRECTORY "${root}/${folder}")
      continue()
    endif()
    tenon_test_label(${folder} label seconds)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${root}/${folder}/*.cc")
    if(folder STREQUAL "system")
      set(sources "")  # programs that the scripts build outside the tree
    endif()
    if(folder STREQUAL "interop")
      foreach(source IN LISTS sources)  # programs that the scripts run
        get_filename_component(program "${source}" NAME_WE)
        add_executable(${program} "${source}")
        target_link_libraries(${program} PRIVATE tenon_train tenon_warnings)
      endforeach()
      set(sources "")
    endif()
    if(folder STREQUAL "fuzz")
      list(REMOVE_ITEM sources "${root}/fuzz/libfuzzer_main.cc")
      tenon_fuzz_programs(sources)
    endif()
    if(folder STREQUAL "ops")  # of the plugin for GPUs, what needs none
      list(APPEND sources "${PROJECT_SOURCE_DIR}/ops/cuda/libraries.cc")
    endif()
    if(NOT TARGET tenon_cuda_runtime)
      list(FILTER sources EXCLUDE REGEX "/runtime/cuda/")
    endif()
    if(sources)
      add_executable(${folder}_tests ${sources})
      target_link_libraries(${folder}_tests PRIVATE tenon_testing GTest::gtest_main tenon_warnings)
      if(TARGET tenon_cuda_runtime AND folder STREQUAL "runtime")
        target_link_libraries(runtime_tests PRIVATE tenon_cuda_runtime)
      endif()
      if(folder MATCHES "^(runtime|ops|train)$")
        target_link_libraries(${folder}_tests PRIVATE tenon_gloo_backend)
      endif()
      if(folder STREQUAL "data")
        target_link_libraries(data_tests PRIVATE tenon_s3_files tenon_hdfs_files)
      endif()
      if(folder STREQUAL "cuda")
        set_target_properties(cuda_tests PROPERTIES OUTPUT_NAME gpu_tests)
      endif()
      tenon_unity(${folder}_tests)
      # A third of the time to build; what they test is optimised, in its libraries.
      target_compile_options(${folder}_tests PRIVATE -O0)
      if(label MATCHES "^(fast|dist)$")
        add_dependencies(test_programs ${folder}_tests)
      endif()
      if(TENON_SANITIZE)
        tenon_sharded_test(${folder} ${label} "${environment}")
      else()
        gtest_discover_tests(${folder}_tests TEST_PREFIX "${folder}." DISCOVERY_MODE PRE_TEST
          DISCOVERY_TIMEOUT 60 WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
          PROPERTIES LABELS ${label} TIMEOUT ${seconds} COST ${seconds}
          ENVIRONMENT "${environment}")
        if(folder MATCHES "^(ops|runtime|distributed)$")
          tenon_simulated_test(${folder} "${environment}")
        elseif(folder STREQUAL "cuda")
          tenon_simulated_test(cuda "${environment};TENON_GPU_ROUNDS=0;TENON_GPU_GRAPHS=15")
        endif()
      endif()
    endif()
    file(GLOB_RECURSE scripts CONFIGURE_DEPENDS RELATIVE "${root}" "${root}/${folder}/*_test.py")
    foreach(script IN LISTS scripts)
      string(REGEX REPLACE "\\.py$" "" name "${script}")
      string(REPLACE "/" "." name "${name}")
      add_test(NAME ${name} COMMAND Python3::Interpreter "${root}/${script}"
        WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
      set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${seconds} COST ${seconds}
        SKIP_RETURN_CODE 77 ENVIRONMENT "${environment}")
    endforeach()
  endforeach()
  # What takes much time or memory is asked for: ctest -C Full -L slow.
  add_test(NAME interop.large_checkpoint CONFIGURATIONS Full
    COMMAND Python3::Interpreter "${root}/interop/large_checkpoint.py"
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(interop.large_checkpoint PROPERTIES LABELS slow TIMEOUT 900
    SKIP_RETURN_CODE 77 ENVIRONMENT "${environment}")
  foreach(long IN ITEMS "device_conformance op_conformance_test.py --simulated"
      "whole_conformance op_conformance_test.py --all" "ref_variables ref_variables_test.py --runs 20 --draw 40"
      "s3_load s3_load_test.py --all")
    separate_arguments(long)
    list(POP_FRONT long name script)
    add_test(NAME interop.${name} CONFIGURATIONS Full
      COMMAND Python3::Interpreter "${root}/interop/${script}" ${long}
      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    set_tests_properties(interop.${name} PROPERTIES LABELS slow TIMEOUT 1800
      SKIP_RETURN_CODE 77 ENVIRONMENT "${environment}")
  endforeach()
endfunction()
