# SPDX-License-Identifier: Apache-2.0
# What the library is built on. tools/install_dependencies.sh installs all of it.
find_package(OpenMP REQUIRED COMPONENTS CXX)
if(TESSERA_SPARSE_ONLY)
  set(OPENBLAS_LIBRARY libopenblas.so)
else()
  find_package(ZLIB REQUIRED)
  find_package(fmt REQUIRED)

  # OpenBLAS, in the variant whose threads are OpenMP's (or serial): it must not fight with our own. It is
  # loaded at the first product and never linked, so the shared library without headers is enough.
  find_library(OPENBLAS_LIBRARY NAMES libopenblas.so.0 libopenblaso.so.0 libopenblas.so.3 libopenblas.so REQUIRED)

  # METIS has no package file of its own.
  find_path(METIS_INCLUDE_DIR metis.h)
  find_library(METIS_LIBRARY metis)
endif()
if(METIS_INCLUDE_DIR AND METIS_LIBRARY)
  set(TESSERA_WITH_METIS ON)
else()
  set(TESSERA_WITH_METIS OFF)
endif()
message(STATUS "METIS: ${TESSERA_WITH_METIS}")

# CUDA is built when asked for, or where a GPU and the toolkit are both there.
if(TESSERA_CUDA STREQUAL "AUTO")
  find_program(NVIDIA_SMI nvidia-smi)
  find_package(CUDAToolkit 13.0 QUIET)
  set(TESSERA_WITH_CUDA OFF)
  if(CUDAToolkit_FOUND AND NVIDIA_SMI)
    execute_process(COMMAND "${NVIDIA_SMI}" -L OUTPUT_VARIABLE gpus ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed AND gpus MATCHES "GPU 0")
      set(TESSERA_WITH_CUDA ON)
    endif()
  endif()
else()
  set(TESSERA_WITH_CUDA ${TESSERA_CUDA})
endif()
if(TESSERA_WITH_CUDA)
  find_package(CUDAToolkit 13.0 REQUIRED)
  # wgmma needs the architecture-specific 90a; plain 80 and the PTX of 90 serve every other GPU.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES "80-real;90a-real;90-virtual")
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25.1 does not know that nvcc speaks C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  # Policies are constexpr values with constexpr members, used on both sides.
  string(APPEND CMAKE_CUDA_FLAGS " --expt-relaxed-constexpr")
endif()
message(STATUS "CUDA: ${TESSERA_WITH_CUDA}")
