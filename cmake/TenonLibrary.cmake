# SPDX-License-Identifier: Apache-2.0
#
# tenon_library(FOLDER DEPENDS FOLDERS... LINK TARGETS...): the static library tenon_<FOLDER> from
# every .cc below FOLDER. Tests never live there; runtime/accelerator, runtime/cuda, runtime/gloo, runtime/mpi,
# ops/cuda, data/hdfs, data/http, data/s3 and .cu files belong to plugins (TenonPlugins.cmake, TenonCuda.cmake,
# TenonFiles.cmake, TenonCollectives.cmake).
#
# tenon_programs(FOLDERS...): the command `tenon` from tools/, one program from each example; the target
# `programs` makes them all. The examples are installed by `cmake --install ... --component programs` only.

# Sets OUT to the .cc files below the folder, as seen from the source tree.
function(tenon_sources OUT FOLDER)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${FOLDER}/*.cc")
  list(FILTER found EXCLUDE REGEX "/runtime/(accelerator|cuda|gloo|mpi)/|/ops/cuda/|/data/(hdfs|http|s3)/|/core/generator/")
  set(${OUT} ${found} PARENT_SCOPE)
endfunction()

function(tenon_library FOLDER)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  tenon_sources(sources ${FOLDER})
  set(target tenon_${FOLDER})
  list(TRANSFORM ARG_DEPENDS PREPEND tenon_)
  # A folder that has headers only, or nothing yet, still has its target: dependants need not know.
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:tenon_warnings>)
    # What is declared (tenon_declared_ops) has more sources to come.
    if(NOT FOLDER STREQUAL "ops")
      tenon_unity(${target})
    endif()
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope}
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tenon>")
  target_compile_features(${target} ${scope} cxx_std_20)
  target_link_libraries(${target} ${scope} ${ARG_DEPENDS} ${ARG_LINK})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${FOLDER})
  set_property(GLOBAL APPEND PROPERTY TENON_LIBRARIES ${target})
endfunction()

# Adds what the generator makes of every .ops file below FOLDER to its library, and the function that registers
# all these families; those after BASIC have ops that others are composed of.
function(tenon_declared_ops FOLDER)
  cmake_parse_arguments(ARG "" "" "BASIC" ${ARGN})
  add_executable(tenon_generate_ops "${PROJECT_SOURCE_DIR}/core/generator/main.cc"
    "${PROJECT_SOURCE_DIR}/core/generator/functions.cc")
  add_executable(Tenon::generate_ops ALIAS tenon_generate_ops)
  set_target_properties(tenon_generate_ops PROPERTIES EXPORT_NAME generate_ops)
  target_link_libraries(tenon_generate_ops PRIVATE tenon_core tenon_warnings)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${FOLDER}/*.ops")
  set(includes "")
  set(calls "")
  foreach(declarations IN LISTS found)
    cmake_path(GET declarations STEM family)
    string(APPEND includes "#include \"${FOLDER}/${family}/${family}_ops.h\"\n")
    string(REPLACE "_" ";" words "${family}")
    set(name "")
    foreach(word IN LISTS words)
      string(SUBSTRING "${word}" 0 1 initial)
      string(SUBSTRING "${word}" 1 -1 rest)
      string(TOUPPER "${initial}" initial)
      string(APPEND name "${initial}${rest}")
    endforeach()
    string(APPEND calls "  Register${name}Ops(ops);\n")
    tenon_sources(sources "${FOLDER}/${family}")
    set(basic "")
    if(family IN_LIST ARG_BASIC)
      set(basic BASIC)
    endif()
    tenon_add_ops(tenon_${FOLDER} "${declarations}" "${PROJECT_BINARY_DIR}/gen/${FOLDER}/${family}"
      ${basic} REGISTER ${sources})
  endforeach()
  set(families "${PROJECT_BINARY_DIR}/gen/${FOLDER}/families.cc")
  file(CONFIGURE OUTPUT "${families}" @ONLY CONTENT
"#include \"${FOLDER}/register.h\"
#include \"${FOLDER}/variants.h\"\n
${includes}
namespace tenon {\n
void RegisterLibraryOps(OpRegistry& ops) {
  AddVariantDecoders();
${calls}}\n
}  // namespace tenon\n")
  target_sources(tenon_${FOLDER} PRIVATE "${families}")
  tenon_unity(tenon_${FOLDER} BY_FOLDER)
  # Two units of them would both instantiate Eigen's products and factors, which is most of what they cost.
  file(GLOB linalg CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${FOLDER}/linalg/*.cc")
  set_source_files_properties(${linalg} PROPERTIES UNITY_GROUP linalg)
  # Nobody waits for a single kernel where sanitizers watch, which triple what the optimizer has to do.
  if(TENON_SANITIZE)
    target_compile_options(tenon_${FOLDER} PRIVATE -O0)
  endif()
endfunction()

function(tenon_program NAME)
  add_executable(${NAME} ${ARGN})
  target_link_libraries(${NAME} PRIVATE tenon_train tenon_warnings CLI11::CLI11
    nlohmann_json::nlohmann_json spdlog::spdlog)
  # The loader looks for each symbol in the libraries in the order of their names here: those first that have the most.
  # This takes a quarter from the start of a program. OpenSSL's are gRPC's; by its need for them alone they would be the last of 70.
  target_link_options(${NAME} PRIVATE "LINKER:--push-state,--no-as-needed" -lstdc++ -lc "${TENON_grpc_LIBRARY}"
    "$<TARGET_FILE:OpenSSL::Crypto>" "$<TARGET_FILE:protobuf::libprotobuf>" "${TENON_grpc___LIBRARY}"
    "$<TARGET_FILE:OpenSSL::SSL>" "LINKER:--pop-state")
  # What takes their time stands in the libraries, which are optimised fully.
  target_compile_options(${NAME} PRIVATE $<$<CONFIG:Release>:-O1>)
  add_dependencies(programs ${NAME})
endfunction()

function(tenon_example NAME)
  tenon_program(${NAME} ${ARGN})
  install(TARGETS ${NAME} RUNTIME COMPONENT programs EXCLUDE_FROM_ALL)
endfunction()

# Writes to OUT, as initialisers of C++, each name of the page docs/training_reference.md with the heading that
# it is under: {"Dense", "Layers"}, ...
function(tenon_training_names OUT)
  set(page "${PROJECT_SOURCE_DIR}/docs/training_reference.md")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${page}")
  file(READ "${page}" text)
  string(REGEX MATCHALL "\n(## [A-Za-z ]+|\\| `[A-Za-z0-9]+)" found "${text}")
  set(names "")
  foreach(entry IN LISTS found)
    if(entry MATCHES "## (.*)")
      set(heading "${CMAKE_MATCH_1}")
    elseif(entry MATCHES "`(.*)")
      string(APPEND names "{\"${CMAKE_MATCH_1}\", \"${heading}\"},\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT "${OUT}" CONTENT "${names}" @ONLY)
endfunction()

function(tenon_programs TOOLS EXAMPLES)
  tenon_sources(sources ${TOOLS})
  file(GLOB_RECURSE examples CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${EXAMPLES}/*.cc")
  add_custom_target(programs)
  if(sources OR examples)
    find_package(CLI11 CONFIG REQUIRED)
    find_package(nlohmann_json CONFIG REQUIRED)
    find_package(spdlog CONFIG REQUIRED)
  endif()
  if(sources)
    tenon_program(tenon ${sources})
    tenon_training_names("${PROJECT_BINARY_DIR}/gen/tools/training_names.inc")
    target_include_directories(tenon PRIVATE "${PROJECT_BINARY_DIR}/gen")
    tenon_unity(tenon)  # most of the time goes into CLI11
    # Graphs are many small pieces of memory: with this malloc a large one takes half as long from file to first step.
    # It has to stand before libstdc++ and libc. The sanitizers have mallocs of their own.
    if(NOT TENON_SANITIZE)
      find_library(TENON_MIMALLOC_LIBRARY mimalloc REQUIRED)
      target_link_options(tenon BEFORE PRIVATE "LINKER:--push-state,--no-as-needed,${TENON_MIMALLOC_LIBRARY},--pop-state")
    endif()
    install(TARGETS tenon RUNTIME COMPONENT programs)
    # What the command prints of itself, where man and bash look for it.
    foreach(printed "manual:${CMAKE_INSTALL_MANDIR}/man1/tenon.1"
                    "completion:${CMAKE_INSTALL_DATADIR}/bash-completion/completions/tenon")
      string(REGEX MATCH "^([a-z]+):(.+)/([^/]+)$" _ "${printed}")
      install(CODE "
        execute_process(COMMAND \"$<TARGET_FILE:tenon>\" ${CMAKE_MATCH_1}
          OUTPUT_FILE \"${PROJECT_BINARY_DIR}/${CMAKE_MATCH_3}.${CMAKE_MATCH_1}\" COMMAND_ERROR_IS_FATAL ANY)"
        COMPONENT programs)
      install(FILES "${PROJECT_BINARY_DIR}/${CMAKE_MATCH_3}.${CMAKE_MATCH_1}"
        DESTINATION "${CMAKE_MATCH_2}" RENAME "${CMAKE_MATCH_3}" COMPONENT programs)
    endforeach()
  endif()
  # examples/NAME.cc is a program by itself; examples/NAME/ is one program of all its files.
  file(GLOB entries CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/${EXAMPLES}"
       "${PROJECT_SOURCE_DIR}/${EXAMPLES}/*")
  foreach(entry IN LISTS entries)
    set(path "${PROJECT_SOURCE_DIR}/${EXAMPLES}/${entry}")
    if(IS_DIRECTORY "${path}")
      tenon_sources(parts ${EXAMPLES}/${entry})
      # An example with its own CMakeLists.txt shows how an outside project uses an installed Tenon.
      if(parts AND NOT EXISTS "${path}/CMakeLists.txt")
        tenon_example(example_${entry} ${parts})
      endif()
    elseif(entry MATCHES "^(.*)\\.cc$")
      tenon_example(example_${CMAKE_MATCH_1} "${path}")
    endif()
  endforeach()
endfunction()
