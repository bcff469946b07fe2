// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "tessera/core/dtype.hpp"

/// Instruction sets that kernels are compiled for, and the choice among them at run time.
///
/// A file named `<name>_simd.cpp` is compiled once per instruction set with TESSERA_ISA defined as
/// its name. It defines one function `const Table& <name>_table()` in namespace
/// `tessera::ops::TESSERA_ISA`, where Table holds pointers to its kernels. Everything else in it is
/// static or in that namespace, and it includes nothing that defines shared inline functions: the
/// linker keeps one copy of those, perhaps the one for a CPU that is not there.
namespace tessera::ops {

enum class Isa { baseline, avx2, avx512 };

const char* to_string(Isa isa) noexcept;

/// The best one that was compiled and that this CPU has; TESSERA_CPU=baseline|avx2|avx512 in the
/// environment asks for a lower one.
Isa best_isa();

/// What this build can choose from, on this CPU.
std::vector<Isa> available_isas();

/// Makes `best_isa` answer with one of the available ones for a scope, on all threads. For tests.
class ForcedIsa {
 public:
  explicit ForcedIsa(Isa isa) noexcept;
  ~ForcedIsa();
  ForcedIsa(const ForcedIsa&) = delete;
  ForcedIsa& operator=(const ForcedIsa&) = delete;
};

/// What elements stored as T are summed in.
template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Kernels for every way in which features are stored on a CPU.
template <template <class> class Functions>
struct ByStorage {
  Functions<double> fp64;
  Functions<float> fp32;
  Functions<Bfloat16> bf16;

  template <class T>
  const Functions<T>& of() const {
    if constexpr (std::is_same_v<T, double>) return fp64;
    if constexpr (std::is_same_v<T, float>) return fp32;
    if constexpr (std::is_same_v<T, Bfloat16>) return bf16;
  }
};

/// Kernels for both types that dense ops compute in.
template <template <class> class Functions>
struct ByArithmetic {
  Functions<double> fp64;
  Functions<float> fp32;

  template <class T>
  const Functions<T>& of() const {
    if constexpr (std::is_same_v<T, double>) return fp64;
    if constexpr (std::is_same_v<T, float>) return fp32;
  }
};

/// Picks a table by instruction set.
template <class Table>
const Table& choose([[maybe_unused]] Isa isa, const Table& baseline,
                    [[maybe_unused]] const Table& avx2, [[maybe_unused]] const Table& avx512) {
  if (isa == Isa::avx512) return avx512;
  if (isa == Isa::avx2) return avx2;
  return baseline;
}

}  // namespace tessera::ops

/// Declares the tables of one `_simd.cpp` file and `name()`, which returns the one for this CPU.
#ifdef TESSERA_ISA_X86
#define TESSERA_SIMD_TABLE(Table, name)                                                         \
  namespace tessera::ops::baseline {                                                            \
  const Table& name##_table();                                                                  \
  }                                                                                             \
  namespace tessera::ops::avx2 {                                                                \
  const Table& name##_table();                                                                  \
  }                                                                                             \
  namespace tessera::ops::avx512 {                                                              \
  const Table& name##_table();                                                                  \
  }                                                                                             \
  namespace tessera::ops {                                                                      \
  inline const Table& name(Isa isa = best_isa()) {                                              \
    return choose(isa, baseline::name##_table(), avx2::name##_table(), avx512::name##_table()); \
  }                                                                                             \
  }
#else
#define TESSERA_SIMD_TABLE(Table, name)                                           \
  namespace tessera::ops::baseline {                                              \
  const Table& name##_table();                                                    \
  }                                                                               \
  namespace tessera::ops {                                                        \
  inline const Table& name(Isa = best_isa()) { return baseline::name##_table(); } \
  }
#endif
