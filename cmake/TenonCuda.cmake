# SPDX-License-Identifier: Apache-2.0
#
# libtenon_cuda.so, the plugin for NVIDIA's GPUs: runtime/cuda, the .cu files of ops and ops/cuda, and
# plugins/cuda.cc. Built where the CUDA toolkit is (12.0 or newer, with a host compiler that it takes);
# programs need neither the toolkit nor the plugin.
#
#   TENON_CUDA                OFF leaves it out
#   TENON_CUDA_ARCHITECTURES  as CMAKE_CUDA_ARCHITECTURES: by default A100 and H100, and PTX for what
#                             comes after them
#
# Files named *_cudnn.cu need cuDNN's headers; where these are missing ops/cuda/without_cudnn.cc is built in
# their place.

find_package(CUDAToolkit 12.0 QUIET)
option(TENON_CUDA "Build the plugin for GPUs where the CUDA toolkit is" ON)
set(TENON_CUDA_ARCHITECTURES "80-real;90" CACHE STRING "GPUs to build for")
if(NOT TENON_CUDA OR NOT CUDAToolkit_FOUND)
  return()
endif()

# The driver and the devices, apart from the ops: tests link them with a runtime of their own.
file(GLOB runtime CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/runtime/cuda/*.cc")
add_library(tenon_cuda_runtime STATIC ${runtime})
tenon_plugin_sees(tenon_cuda_runtime runtime)
target_include_directories(tenon_cuda_runtime SYSTEM PUBLIC ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(tenon_cuda_runtime PUBLIC tenon_accelerator PRIVATE tenon_warnings)

# No sanitizer sees what runs on a GPU, and none is in what nvcc compiles.
if(TENON_SANITIZE OR NOT CUDAToolkit_NVCC_EXECUTABLE)
  return()
endif()

# nvcc is choosier about its host compiler than we are about ours. What both compile fits together: the
# standard library is the same.
if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER "${CUDAToolkit_NVCC_EXECUTABLE}")
endif()
if(NOT CMAKE_CUDA_HOST_COMPILER)
  find_program(TENON_CUDA_HOST_COMPILER NAMES g++-12 g++-13 g++-11 g++)
  set(CMAKE_CUDA_HOST_COMPILER "${TENON_CUDA_HOST_COMPILER}")
endif()
set(CMAKE_CUDA_ARCHITECTURES "${TENON_CUDA_ARCHITECTURES}")
if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
endif()
enable_language(CUDA)
# CMake 3.25 does not know that nvcc knows it.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)

find_path(TENON_CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
file(GLOB_RECURSE kernels CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/ops/*.cu")
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/ops/cuda/*.cc")
if(TENON_CUDNN_INCLUDE)
  list(FILTER sources EXCLUDE REGEX "/without_cudnn\\.cc$")
else()
  list(FILTER kernels EXCLUDE REGEX "_cudnn\\.cu$")
endif()

# What CMake's unity builds do, which know CUDA from 3.31 on only.
tenon_unity_folders(4 ${kernels})
set(units "")
set(declared "")
set(called "")
foreach(kernel IN LISTS kernels)
  # Each file says in functions of this form what it adds to a registry.
  file(STRINGS "${kernel}" functions REGEX "^void RegisterCuda[A-Za-z0-9]+\\(OpRegistry& ops\\) {")
  foreach(function IN LISTS functions)
    string(REGEX MATCH "RegisterCuda[A-Za-z0-9]+" function "${function}")
    string(APPEND declared "void ${function}(OpRegistry& ops);\n")
    string(APPEND called "  ${function}(ops);\n")
  endforeach()
  get_source_file_property(group "${kernel}" UNITY_GROUP)
  list(APPEND units "${group}")
  cmake_path(RELATIVE_PATH kernel BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
  string(APPEND content_of_${group} "#include \"${kernel}\"\n")
endforeach()
list(REMOVE_DUPLICATES units)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${kernels})
set(register "${PROJECT_BINARY_DIR}/gen/cuda/register.cc")
file(CONFIGURE OUTPUT "${register}" @ONLY CONTENT
"#include \"ops/cuda/register.h\"\n
namespace tenon {\n
${declared}
void RegisterCudaKernels(OpRegistry& ops) {
${called}}\n
}  // namespace tenon\n")
list(APPEND sources "${register}")
set(unit_files "")
foreach(unit IN LISTS units)
  set(file "${PROJECT_BINARY_DIR}/gen/cuda/unity_${unit}.cu")
  file(CONFIGURE OUTPUT "${file}" CONTENT "${content_of_${unit}}" @ONLY)
  list(APPEND unit_files "${file}")
endforeach()

add_library(tenon_cuda MODULE "${PROJECT_SOURCE_DIR}/plugins/cuda.cc" ${sources} ${unit_files})
set_target_properties(tenon_cuda PROPERTIES CUDA_ARCHITECTURES "${TENON_CUDA_ARCHITECTURES}"
  LINKER_LANGUAGE CXX CUDA_RUNTIME_LIBRARY None)
tenon_plugin_sees(tenon_cuda ops)
if(TENON_CUDNN_INCLUDE)
  target_include_directories(tenon_cuda SYSTEM PRIVATE "${TENON_CUDNN_INCLUDE}")
endif()
# Eigen has pragmas of an older nvcc.
target_compile_options(tenon_cuda PRIVATE
  "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-Xcompiler=-Wall,-Wextra,-Wno-unknown-pragmas>"
  "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${TENON_WERROR}>>:-Werror=all-warnings;-Xcompiler=-Werror>"
  "$<$<COMPILE_LANGUAGE:CXX>:$<TARGET_PROPERTY:tenon_warnings,INTERFACE_COMPILE_OPTIONS>>")
# The plugin links the runtime alone of the CUDA libraries, and nobody else sees it; the others are
# loaded when a kernel needs them (ops/cuda/libraries.h). Symbols of Tenon stay open: the program
# has them.
target_link_libraries(tenon_cuda PRIVATE tenon_cuda_runtime CUDA::cudart_static
  absl::status absl::statusor absl::strings absl::str_format absl::flat_hash_map absl::hash)
target_link_options(tenon_cuda PRIVATE "LINKER:--exclude-libs=libcudart_static.a,--as-needed")
# Programs do without it, and so may who installs them.
install(TARGETS tenon_cuda LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" OPTIONAL)
install(CODE "
  if(NOT EXISTS \"$<TARGET_FILE:tenon_cuda>\")
    message(STATUS \"Without the plugin for GPUs, which is not built: cmake --build --preset release --target tenon_cuda\")
  endif()")
