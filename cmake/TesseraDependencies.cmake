# SPDX-License-Identifier: Apache-2.0
# What the library is built on. tools/install_dependencies.sh installs all of it.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(ZLIB REQUIRED)
find_package(fmt REQUIRED)

# OpenBLAS, in the variant whose threads are OpenMP's (or serial): it must not fight with our own.
set(BLA_VENDOR OpenBLAS)
find_package(BLAS REQUIRED)

# METIS has no package file of its own.
find_path(METIS_INCLUDE_DIR metis.h)
find_library(METIS_LIBRARY metis)
if(METIS_INCLUDE_DIR AND METIS_LIBRARY)
  set(TESSERA_WITH_METIS ON)
else()
  set(TESSERA_WITH_METIS OFF)
endif()
message(STATUS "METIS: ${TESSERA_WITH_METIS}")

if(TESSERA_CUDA)
  message(WARNING "There is no CUDA code yet: this is a CPU build.")
endif()
