# SPDX-License-Identifier: Apache-2.0
# Files in folders named inst/ do nothing but name kernels of templates to compile. Before its first kernel nvcc reads
# the headers of a file four times, four seconds of a core: where cores are few they are spared by reading several files as
# one. The compiler may then inline otherwise, so this is for checks of a change, and not for what is measured or released.
set(TESSERA_CUDA_FILES_AT_ONCE 1 CACHE STRING "How many files that instantiate kernels nvcc reads as one")

# Sets `result` to what is to be compiled in place of the sources: each op's instances, so many at once, and all others one
# by one. (Those of bits call shared memory of several types by one name.)
function(tessera_cuda_units result)
  set(instances ${ARGN})
  list(FILTER instances INCLUDE REGEX "/inst/[^/]+\\.cu$")
  list(FILTER instances EXCLUDE REGEX "/bits/")
  set(units ${ARGN})
  if(TESSERA_CUDA_FILES_AT_ONCE GREATER 1)
    list(REMOVE_ITEM units ${instances})
    list(SORT instances)
    tessera_files_at_once(together ${instances})
    list(PREPEND units ${together})  # they take longest, and ought not to come last
  endif()
  set(${result} ${units} PARENT_SCOPE)
endfunction()

# Sets `result` to files that include those given, up to TESSERA_CUDA_FILES_AT_ONCE of an op each.
function(tessera_files_at_once result)
  set(sources ${ARGN})
  list(TRANSFORM sources REPLACE "^${PROJECT_SOURCE_DIR}/src/" "")
  set(ops ${sources})
  list(TRANSFORM ops REPLACE "/cuda/.*" "")
  list(REMOVE_DUPLICATES ops)
  set(units "")
  foreach(op IN LISTS ops)
    set(rest ${sources})
    list(FILTER rest INCLUDE REGEX "^${op}/cuda/")
    while(rest)
      list(SUBLIST rest 0 ${TESSERA_CUDA_FILES_AT_ONCE} together)
      list(REMOVE_ITEM rest ${together})
      list(JOIN together " " names)
      string(SHA1 key "${names}")
      string(SUBSTRING "${key}" 0 8 key)
      list(GET together 0 first)
      string(REGEX REPLACE "\\.cu$" "_and_on_${key}.cu" unit "${PROJECT_BINARY_DIR}/units/${first}")
      list(TRANSFORM together REPLACE "(.+)" "#include \"\\1\"\n")
      list(JOIN together "" text)
      file(CONFIGURE OUTPUT "${unit}" CONTENT "${text}" @ONLY)
      list(PREPEND units "${unit}")
    endwhile()
  endforeach()
  # Kernels of several folders call shared memory of other alignments by one name.
  set_property(SOURCE ${units} APPEND PROPERTY COMPILE_OPTIONS -diag-suppress=1886)
  set(${result} ${units} PARENT_SCOPE)
endfunction()
