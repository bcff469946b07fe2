// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Dot products of four bytes at once, which some CPUs of Arm have (FEAT_DotProd). Functions that
/// use them are compiled for those alone, and `has_dot_product` says whether this CPU is one.
/// Everything is static: see ops/simd/isa.hpp.
#if defined(__aarch64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define TESSERA_DOT_PRODUCT __attribute__((target("arch=armv8.2-a+dotprod")))

#include <arm_neon.h>
#include <sys/auxv.h>

namespace tessera::ops::TESSERA_ISA {
namespace {

inline bool has_dot_product() {
  constexpr unsigned long flag = 1ul << 20;  // HWCAP_ASIMDDP
  return (getauxval(AT_HWCAP) & flag) != 0;
}

}  // namespace
}  // namespace tessera::ops::TESSERA_ISA
#endif
