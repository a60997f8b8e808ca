# SPDX-License-Identifier: Apache-2.0
#
# Devices with memory of their own come in plugins, which take what they use of core and runtime from
# the program that loads them. tenon_accelerator is what they have in common.

# A static library for plugins and for the tests: it sees the headers of FOLDER, and links nothing of it.
function(tenon_plugin_library TARGET FOLDER)
  add_library(${TARGET} STATIC ${ARGN})
  foreach(property INCLUDE_DIRECTORIES COMPILE_OPTIONS COMPILE_DEFINITIONS)
    set_property(TARGET ${TARGET} APPEND PROPERTY ${property}
      "$<TARGET_PROPERTY:tenon_${FOLDER},INTERFACE_${property}>")
  endforeach()
  target_link_libraries(${TARGET} PRIVATE $<BUILD_INTERFACE:tenon_warnings>)
  target_compile_features(${TARGET} PUBLIC cxx_std_20)
endfunction()

file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/runtime/accelerator/*.cc")
tenon_plugin_library(tenon_accelerator runtime ${sources})
