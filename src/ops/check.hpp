// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/graph/graph.hpp"
#include "tessera/ops/operand.hpp"

/// Checks of operands that every op makes before any work. All throw `invalid_argument` with the
/// operand's name and, where shapes differ, both shapes.
namespace tessera::ops {

/// A shape that an operand must have.
struct Expected {
  Precision precision = Precision::fp32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

/// Present, of this shape and precision, with a stride that holds its columns, and with memory
/// unless it has no elements.
void check_operand(const char* name, const ConstOperand& operand, const Expected& expected);
void check_operand(const char* name, const Operand& operand, const Expected& expected);

/// The shape alone, for matrices whose type is fixed at compile time.
void check_shape(const char* name, const void* data, std::int64_t rows, std::int64_t cols,
                 std::int64_t stride, std::int64_t expected_rows, std::int64_t expected_cols);

/// Throws if the memory of an output overlaps that of an input that it may not replace.
void check_apart(const char* output_name, const Operand& output, const char* input_name,
                 const ConstOperand& input);

/// A view of an output as something to read.
ConstOperand as_const(const Operand& operand) noexcept;

/// The precisions CPU kernels of sparse ops store: fp64, fp32 and bf16. Says why not otherwise.
std::string why_not_cpu_precision(Precision precision);

/// Throws unless `features` is not negative.
void check_features(std::int64_t features);

/// Calls `visit.template operator()<T>()` with the element type of a precision that the CPU stores.
template <class Visit>
decltype(auto) visit_precision(Precision precision, Visit&& visit) {
  switch (precision) {
    case Precision::fp64: return visit.template operator()<double>();
    case Precision::bf16: return visit.template operator()<Bfloat16>();
    default: return visit.template operator()<float>();
  }
}

}  // namespace tessera::ops
