// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/core/device.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/operand.hpp"

namespace tessera::ops {

/// What an op checks before any work. Every failure is an `invalid_argument` error that names the
/// op, the operand, what it is and what was expected.
class Checker {
 public:
  explicit constexpr Checker(const char* op) noexcept : op_(op) {}

  /// A matrix that can be read as it says: memory present, rows not overlapping each other.
  void readable(const ConstOperand& operand, const char* name) const;

  /// Readable, of this precision and shape.
  void matrix(const ConstOperand& operand, const char* name, Precision precision, std::int64_t rows,
              std::int64_t cols) const;

  /// As `matrix`, or absent.
  void optional_matrix(const ConstOperand& operand, const char* name, Precision precision,
                       std::int64_t rows, std::int64_t cols) const;

  /// Readable, and of a precision that dense ops compute in: fp32 or fp64 on the CPU; fp32, bf16 or
  /// fp16 on a GPU. Throws `backend_unavailable` first where there is no such device.
  void floating(const ConstOperand& operand, const char* name, Device device) const;

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
};

/// "3 x 4".
std::string shape_text(std::int64_t rows, std::int64_t cols);

/// Calls `body` with a value of the element type of `precision`: the one place where the CPU's
/// dense ops part into fp32 and fp64. Check with `Checker::floating` first.
template <class Body>
decltype(auto) visit_floating(Precision precision, Body&& body) {
  if (precision == Precision::fp64) return body(double{});
  return body(float{});
}

}  // namespace tessera::ops
