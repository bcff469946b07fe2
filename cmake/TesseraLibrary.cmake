# SPDX-License-Identifier: Apache-2.0
# The library: every source file below src/.
file(GLOB_RECURSE TESSERA_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/*.cpp")
if(TESSERA_SPARSE_ONLY)
  list(FILTER TESSERA_SOURCES INCLUDE REGEX "/src/(core|cuda|graph|ops|quant|sample|tiles)/|/src/reorder/(bisection|communities|layout|loa|orders|permutation)\\.cpp$|/src/io/(device_profile|file|text|writing)\\.cpp$|/src/links/(curves|negatives|ranking|split)\\.cpp$")
  list(FILTER TESSERA_SOURCES EXCLUDE REGEX "/graph/generate[^/]*\\.cpp$")
  if(TESSERA_WITH_CUDA)  # some kernels of the GPU use dense ops
    list(FILTER TESSERA_SOURCES EXCLUDE REGEX "/dense_ops_absent\\.cpp$")
  else()
    list(FILTER TESSERA_SOURCES EXCLUDE REGEX
         "/ops/(batch_norm|elementwise|evaluation|gemm|heads|linear|loss|optimiser|rounding|dense/dense_ops\\.cpp|activation/(run|unit_rows|cpu))")
  endif()
else()
  list(FILTER TESSERA_SOURCES EXCLUDE REGEX "/dense_ops_absent\\.cpp$")
endif()
set(TESSERA_SIMD_SOURCES ${TESSERA_SOURCES})
list(FILTER TESSERA_SIMD_SOURCES INCLUDE REGEX "_simd\\.cpp$")
list(FILTER TESSERA_SOURCES EXCLUDE REGEX "_simd\\.cpp$")
# Cost models and schedules of CUDA kernels need no CUDA: with the traits of a GPU they work anywhere.
set(TESSERA_COST_SOURCES ${TESSERA_SOURCES})
list(FILTER TESSERA_COST_SOURCES INCLUDE REGEX "/cuda/(.*/)?((window_)?cost|lane_choice|schedule)\\.cpp$")
# What a backend has or lacks stands in a pair of files, of which a build takes one.
if(TESSERA_WITH_CUDA)
  list(FILTER TESSERA_SOURCES EXCLUDE REGEX "cuda_backend_absent\\.cpp$")
else()
  list(FILTER TESSERA_SOURCES EXCLUDE REGEX "cuda_backend_present\\.cpp$|/src/(.*/)?cuda/")
  list(APPEND TESSERA_SOURCES ${TESSERA_COST_SOURCES})
endif()

# What runs once for a file or an epoch, and not for every edge, element or plan, is compiled with less effort.
set(cold ${TESSERA_SOURCES})
list(FILTER cold INCLUDE REGEX
     "/src/(data|nn|step|train)/|/src/io/(container|container_layout|formats|index_file|npy_header|npz|ogb|open|writing|zip_directory)\\.cpp$")
list(FILTER cold EXCLUDE REGEX
     "/(batch|bit_batch_runner|bit_features|dataset|features|late_numbers|metrics|planted|predictor|standardise)\\.cpp$|/(nn/bit_[a-z]+|step/derivations|step/tensor)\\.cpp$")
set_source_files_properties(${cold} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O1>")

add_library(tessera ${TESSERA_SOURCES})
set(TESSERA_OBJECTS $<TARGET_OBJECTS:tessera>)
add_library(tessera::tessera ALIAS tessera)
target_include_directories(tessera
  PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
         "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
  PRIVATE "${PROJECT_SOURCE_DIR}/src")
set(headers_of_others ${TESSERA_STANDARD_HEADERS})
if(TESSERA_SPARSE_ONLY)  # what stands in for fmt is our own
  list(REMOVE_ITEM headers_of_others <fmt/format.h>)
endif()
tessera_precompile(tessera ${headers_of_others})
target_compile_features(tessera PUBLIC cxx_std_20)
target_compile_definitions(tessera PRIVATE TESSERA_VERSION="${PROJECT_VERSION}")
target_link_libraries(tessera PRIVATE $<BUILD_INTERFACE:tessera_options> OpenMP::OpenMP_CXX)
if(TESSERA_SPARSE_ONLY)
  target_include_directories(tessera PRIVATE "${PROJECT_SOURCE_DIR}/bindings/torch/stand_ins")
else()
  target_link_libraries(tessera PRIVATE ZLIB::ZLIB fmt::fmt)
endif()
target_link_libraries(tessera PRIVATE ${CMAKE_DL_LIBS})
set_property(SOURCE "${PROJECT_SOURCE_DIR}/src/ops/gemm/blas.cpp" APPEND PROPERTY
  COMPILE_DEFINITIONS TESSERA_OPENBLAS="${OPENBLAS_LIBRARY}")
set_target_properties(tessera PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})

if(TESSERA_WITH_CUDA)
  file(GLOB_RECURSE TESSERA_CUDA_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/*.cu")
  tessera_other_elements(TESSERA_CUDA_SOURCES)
  tessera_cuda_units(units ${TESSERA_CUDA_SOURCES})
  add_library(tessera_cuda OBJECT ${units})
  set(folders "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src" "${PROJECT_BINARY_DIR}/units")
  target_include_directories(tessera_cuda PRIVATE ${folders})
  target_link_libraries(tessera_cuda PRIVATE tessera_options)
  target_sources(tessera PRIVATE $<TARGET_OBJECTS:tessera_cuda>)
  list(APPEND TESSERA_OBJECTS $<TARGET_OBJECTS:tessera_cuda>)
  # Files without CUDA in them are compiled as in a build without it, so that a folder that was one keeps their objects.
  # (One that begins to ask for TESSERA_WITH_CUDA gets it when cmake runs again.)
  set(headers ${CUDAToolkit_INCLUDE_DIRS})
  list(TRANSFORM headers REPLACE "(.+)" "-isystem;\\1")
  set(may_use_cuda ${TESSERA_SOURCES})
  list(REMOVE_ITEM may_use_cuda ${TESSERA_COST_SOURCES})
  foreach(source IN LISTS may_use_cuda)
    file(STRINGS "${source}" mentions REGEX "TESSERA_WITH_CUDA" LIMIT_COUNT 1)
    if(mentions OR source MATCHES "/src/(.*/)?cuda/|cuda_backend_present\\.cpp$")
      set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_DEFINITIONS TESSERA_WITH_CUDA)
      set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_OPTIONS ${headers})
    endif()
  endforeach()
  target_link_libraries(tessera PRIVATE
    $<LINK_ONLY:CUDA::cudart> $<LINK_ONLY:CUDA::cublas>)

  # Compiles units for further GPUs, and nothing else with them: what the newest alone has shows here.
  function(tessera_cuda_sample target architectures expression but_not)
    set(sample ${TESSERA_CUDA_SOURCES})
    list(FILTER sample INCLUDE REGEX "${expression}")
    list(FILTER sample EXCLUDE REGEX "${but_not}")
    tessera_cuda_units(units ${sample})
    add_library(${target} OBJECT EXCLUDE_FROM_ALL ${units})
    target_include_directories(${target} PRIVATE ${folders})
    target_link_libraries(${target} PRIVATE tessera_options)
    target_compile_options(${target} PRIVATE --Ofast-compile=max)  # nobody runs it
    set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${architectures}")
  endfunction()
  # Units of every strategy for the oldest GPU of a release, and what replaces wgmma for others. Those left out
  # take the compiler longest, and have the code of others of their folder with other scores or sums.
  tessera_cuda_sample(tessera_cuda_sm80 80-real
    "/(inst/(.*_)?bf16(_aligned|_warps)?|heads/kernel|edge_terms|winner_gradients_kernel|translate_rows|arrange_quads)\\.cu$"
    "/attention/cuda/rows/inst/(gat|cosine_(forward|backward))|/spmm/cuda/rows/inst/sum")
  tessera_cuda_sample(tessera_cuda_sm89_sm120 "89-real;120-real" "/sddmm/cuda/short/inst/bf16\\.cu$" "^$")
endif()
if(TESSERA_WITH_METIS)
  target_compile_definitions(tessera PRIVATE TESSERA_WITH_METIS)
  target_include_directories(tessera SYSTEM PRIVATE "${METIS_INCLUDE_DIR}")
  target_link_libraries(tessera PRIVATE "${METIS_LIBRARY}")
endif()

# Files named *_simd.cpp are compiled once for each instruction set, each time into a namespace of its
# own (TESSERA_ISA), and src/ops/simd/isa.hpp chooses among them at run time. A portable build is fast.
set(TESSERA_ISAS baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND TESSERA_ISAS avx2 avx512)
  # For all of our own code, tests included: src/ops/simd/isa.hpp must read the same everywhere.
  target_compile_definitions(tessera_options INTERFACE TESSERA_ISA_X86)
endif()
set(TESSERA_FLAGS_baseline "")
if(TESSERA_SPARSE_ONLY AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(TESSERA_FLAGS_baseline -O1)  # users compile this themselves, and few of their CPUs have no AVX2
endif()
set(TESSERA_FLAGS_avx2 -mavx2 -mfma -mf16c -mtune=haswell)
# GCC's own AVX-512 header reads a variable it leaves undefined on purpose (GCC bug 105593).
set(TESSERA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512
                         -Wno-uninitialized)
set(TESSERA_SIMD_OPTIMISATION -O3)
if(TESSERA_SANITIZE OR TESSERA_FUZZ)
  # Unrolled loops full of checks for undefined behaviour take the compiler minutes. Options of a file
  # come after those of its target, so this switches them off again.
  set(TESSERA_SIMD_OPTIMISATION -O1)
  set_source_files_properties(${TESSERA_SIMD_SOURCES} PROPERTIES COMPILE_OPTIONS
                              "-fno-sanitize=undefined")
endif()
if(TESSERA_SIMD_SOURCES)
  foreach(isa IN LISTS TESSERA_ISAS)
    add_library(tessera_simd_${isa} OBJECT ${TESSERA_SIMD_SOURCES})
    target_include_directories(tessera_simd_${isa} PRIVATE "${PROJECT_SOURCE_DIR}/include"
                                                           "${PROJECT_SOURCE_DIR}/src")
    target_compile_definitions(tessera_simd_${isa} PRIVATE TESSERA_ISA=${isa})
    # Vectors wider than the baseline's registers are passed by inlined functions only.
    target_compile_options(tessera_simd_${isa} PRIVATE
      ${TESSERA_SIMD_OPTIMISATION} -ffp-contract=fast -fno-math-errno -fno-trapping-math -Wno-psabi ${TESSERA_FLAGS_${isa}})
    target_link_libraries(tessera_simd_${isa} PRIVATE tessera_options)
    target_sources(tessera PRIVATE $<TARGET_OBJECTS:tessera_simd_${isa}>)
    list(APPEND TESSERA_OBJECTS $<TARGET_OBJECTS:tessera_simd_${isa}>)
  endforeach()
endif()

# The same objects as a shared library, which knows what it needs itself: a plain `-ltessera` links.
if(NOT BUILD_SHARED_LIBS AND NOT TESSERA_SPARSE_ONLY)
  add_library(tessera_shared SHARED ${TESSERA_OBJECTS})
  add_library(tessera::shared ALIAS tessera_shared)
  set_target_properties(tessera_shared PROPERTIES OUTPUT_NAME tessera EXPORT_NAME shared
    LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  target_include_directories(tessera_shared INTERFACE
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_compile_features(tessera_shared INTERFACE cxx_std_20)
  get_target_property(needed tessera LINK_LIBRARIES)
  target_link_libraries(tessera_shared PRIVATE ${needed})
  # Its threads wait for work until the process ends, so the code must stay.
  target_link_options(tessera_shared PRIVATE LINKER:-z,nodelete)
endif()
