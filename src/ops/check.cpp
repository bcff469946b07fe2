// SPDX-License-Identifier: Apache-2.0
#include "ops/check.hpp"

#include <cstddef>
#include <functional>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::ops {
namespace {

[[noreturn]] void reject(const char* name, const std::string& problem) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{} {}", name, problem), name);
}

struct Extent {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
};

Extent extent_of(const ConstOperand& operand) {
  if (operand.rows == 0 || operand.cols == 0 || operand.data == nullptr) return {};
  const auto* const begin = static_cast<const std::byte*>(operand.data);
  const std::int64_t elements = (operand.rows - 1) * operand.stride + operand.cols;
  return {begin, begin + static_cast<std::size_t>(elements) * bytes_per_element(operand.precision)};
}

}  // namespace

ConstOperand as_const(const Operand& operand) noexcept {
  ConstOperand result;
  result.data = operand.data;
  result.precision = operand.precision;
  result.rows = operand.rows;
  result.cols = operand.cols;
  result.stride = operand.stride;
  return result;
}

void check_shape(const char* name, const void* data, std::int64_t rows, std::int64_t cols,
                 std::int64_t stride, std::int64_t expected_rows, std::int64_t expected_cols) {
  if (rows != expected_rows || cols != expected_cols) {
    reject(name,
           fmt::format("is {} x {} but must be {} x {}", rows, cols, expected_rows, expected_cols));
  }
  if (rows > 1 && stride < cols) {
    reject(name, fmt::format("has stride {}, less than its {} columns", stride, cols));
  }
  if (data == nullptr && rows > 0 && cols > 0) {
    reject(name, fmt::format("is {} x {} but has no memory", rows, cols));
  }
}

void check_operand(const char* name, const ConstOperand& operand, const Expected& expected) {
  check_shape(name, operand.data, operand.rows, operand.cols, operand.stride, expected.rows,
              expected.cols);
  if (operand.precision != expected.precision) {
    reject(name, fmt::format("is {} but the plan was made for {}", to_string(operand.precision),
                             to_string(expected.precision)));
  }
}

void check_operand(const char* name, const Operand& operand, const Expected& expected) {
  check_operand(name, as_const(operand), expected);
}

void check_apart(const char* output_name, const Operand& output, const char* input_name,
                 const ConstOperand& input) {
  const Extent written = extent_of(as_const(output));
  const Extent read = extent_of(input);
  const std::less<const std::byte*> before;
  if (before(written.begin, read.end) && before(read.begin, written.end)) {
    reject(output_name, fmt::format("shares memory with {}, which is still read while {} is "
                                    "written",
                                    input_name, output_name));
  }
}

std::string why_not_cpu_precision(Precision precision) {
  switch (precision) {
    case Precision::fp64:
    case Precision::fp32:
    case Precision::bf16: return {};
    default:
      return fmt::format("{} is not stored on the CPU, only fp64, fp32 and bf16",
                         to_string(precision));
  }
}

void check_features(std::int64_t features) {
  if (features < 0) {
    throw Error(ErrorCode::invalid_argument, fmt::format("negative width {}", features),
                "features");
  }
}

}  // namespace tessera::ops
