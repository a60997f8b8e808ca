# SPDX-License-Identifier: Apache-2.0
#
# Devices with memory of their own, and files of servers, come in plugins, which take what they use of core
# and runtime from the program that loads them. tenon_accelerator is what such devices have in common.


# The version by which they know each other: a header that both sides include.
set(plugin_version "${PROJECT_BINARY_DIR}/gen/core/device/plugin_version.h")
file(GLOB runtime_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/runtime/accelerator/*.h"
  "${PROJECT_SOURCE_DIR}/runtime/device/cpu_device.h"
  "${PROJECT_SOURCE_DIR}/runtime/device/session_device.h"
  "${PROJECT_SOURCE_DIR}/runtime/collectives/*.h" "${PROJECT_SOURCE_DIR}/data/files/*.h")
file(GLOB_RECURSE shared_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/core/*.h"
  "${PROJECT_SOURCE_DIR}/ops/*.h")
add_custom_command(OUTPUT "${plugin_version}"
  DEPENDS ${runtime_headers} ${shared_headers} "${PROJECT_SOURCE_DIR}/cmake/PluginVersion.cmake"
  COMMAND "${CMAKE_COMMAND}" -D "SOURCE=${PROJECT_SOURCE_DIR}" -D "VERSION=${PROJECT_VERSION}"
    -D "ABI=Abseil ${absl_VERSION}, sanitizers '${TENON_SANITIZE}'" -D "OUTPUT=${plugin_version}"
    -P "${PROJECT_SOURCE_DIR}/cmake/PluginVersion.cmake"
  COMMENT "Generating core/device/plugin_version.h" VERBATIM)
add_custom_target(tenon_plugin_version DEPENDS "${plugin_version}")
add_dependencies(tenon_core tenon_plugin_version)

# Every program shows plugins what they may use; symbols that are not listed stay its own.
set(exports "${PROJECT_SOURCE_DIR}/cmake/plugin_symbols.txt")
set(installed_exports "$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/cmake/Tenon/plugin_symbols.txt")
foreach(interface IN ITEMS "BUILD_INTERFACE:${exports}" "INSTALL_INTERFACE:${installed_exports}")
  string(REGEX MATCH "^[A-Z_]+" kind "${interface}")
  string(REGEX REPLACE "^[A-Z_]+:" "" file "${interface}")
  target_link_options(tenon_core INTERFACE
    "$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:$<${kind}:LINKER:--dynamic-list=${file}>>")
endforeach()
set_property(TARGET tenon_core APPEND PROPERTY
  INTERFACE_LINK_DEPENDS "$<BUILD_INTERFACE:${exports}>")

# Lets a part of a plugin see the headers of FOLDER; it links nothing of it.
function(tenon_plugin_sees TARGET FOLDER)
  foreach(property INCLUDE_DIRECTORIES COMPILE_DEFINITIONS)
    set_property(TARGET ${TARGET} APPEND PROPERTY ${property}
      "$<TARGET_PROPERTY:tenon_${FOLDER},INTERFACE_${property}>")
  endforeach()
  set_property(TARGET ${TARGET} APPEND PROPERTY COMPILE_OPTIONS
    "$<$<COMPILE_LANGUAGE:CXX>:$<TARGET_PROPERTY:tenon_${FOLDER},INTERFACE_COMPILE_OPTIONS>>")
  target_compile_features(${TARGET} PUBLIC cxx_std_20)
  add_dependencies(${TARGET} tenon_plugin_version)
endfunction()

# For plugins and for the tests.
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/runtime/accelerator/*.cc")
add_library(tenon_accelerator STATIC ${sources})
tenon_plugin_sees(tenon_accelerator runtime)
target_link_libraries(tenon_accelerator PRIVATE tenon_warnings)
