// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/core/device.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/operand.hpp"

namespace tessera::ops {

/// What an operand must be.
struct Expected {
  ElementType type = ElementType::fp32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

/// What an op checks before any work. Every failure is an `invalid_argument` error that names the
/// op, the operand, what it is and what was expected.
class Checker {
 public:
  constexpr Checker(const char* op, Device device) noexcept : op_(op), device_(device) {}

  /// A matrix that can be read as it says: on the op's device, memory present, rows not overlapping
  /// each other.
  void readable(const ConstOperand& operand, const char* name) const;

  /// Readable, and what was expected.
  void matrix(const ConstOperand& operand, const char* name, const Expected& expected) const;

  /// As `matrix`, or absent.
  void optional_matrix(const ConstOperand& operand, const char* name,
                       const Expected& expected) const;

  /// Readable, and of a type that ops compute with: fp64, fp32 or bf16 on the CPU; fp32, bf16 or
  /// fp16 on a GPU. Throws `backend_unavailable` first where there is no such device.
  void floating(const ConstOperand& operand, const char* name) const;

  /// No byte of `output` is one of `other`. Different columns of one matrix are apart.
  void apart(const ConstOperand& output, const char* output_name, const ConstOperand& other,
             const char* other_name) const;

  /// Apart, or the very same matrix, element upon element.
  void apart_or_same(const ConstOperand& output, const char* output_name, const ConstOperand& other,
                     const char* other_name) const;

  /// Throws unless `condition` holds.
  void that(bool condition, const std::string& problem, const std::string& fix = {}) const {
    if (!condition) fail(problem, fix);
  }

  [[noreturn]] void fail(const std::string& problem, const std::string& fix = {}) const;

 private:
  const char* op_;
  Device device_;
};

/// "3 x 4".
std::string shape_text(std::int64_t rows, std::int64_t cols);

/// The precisions of CPU kernels of sparse ops: fp64, fp32, tf32 (computed as fp32) and bf16. Says
/// why not otherwise.
std::string why_not_cpu_precision(Precision precision);

/// Throws unless `features` is not negative.
void check_features(std::int64_t features);

/// Calls `visit.template operator()<T>()` with an element type that ops take on the CPU.
template <class Visit>
decltype(auto) visit_stored(ElementType type, Visit&& visit) {
  switch (type) {
    case ElementType::fp64: return visit.template operator()<double>();
    case ElementType::bf16: return visit.template operator()<Bfloat16>();
    default: return visit.template operator()<float>();
  }
}

/// The same for a plan's matrices.
template <class Visit>
decltype(auto) visit_precision(Precision precision, Visit&& visit) {
  return visit_stored(storage_of(precision), visit);
}

/// Calls `body` with a value of such a type. Check with `Checker::floating` first.
template <class Body>
decltype(auto) visit_floating(ElementType type, Body&& body) {
  return visit_stored(type, [&]<class T>() -> decltype(auto) { return body(T{}); });
}

/// The same for ops that take fp32 and fp64 alone.
template <class Body>
decltype(auto) visit_wide(ElementType type, Body&& body) {
  if (type == ElementType::fp64) return body(double{});
  return body(float{});
}

}  // namespace tessera::ops
