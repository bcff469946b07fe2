// SPDX-License-Identifier: Apache-2.0
#include "ops/dense_check.hpp"

#include <functional>

#include <fmt/format.h>

namespace tessera::ops {
namespace {

bool is_empty(const ConstOperand& operand) { return operand.rows == 0 || operand.cols == 0; }

bool same_place(const ConstOperand& a, const ConstOperand& b) {
  return a.data == b.data && a.precision == b.precision && a.rows == b.rows && a.cols == b.cols &&
         (a.stride == b.stride || a.rows == 1);
}

/// True when rows of both lie at the same distance and their columns never meet.
bool in_different_columns(const ConstOperand& a, const ConstOperand& b) {
  const auto size_a = static_cast<std::int64_t>(bytes_per_element(a.precision));
  const auto size_b = static_cast<std::int64_t>(bytes_per_element(b.precision));
  const std::int64_t pitch = a.stride * size_a;
  if (pitch <= 0 || pitch != b.stride * size_b) return false;
  const auto distance = static_cast<const char*>(b.data) - static_cast<const char*>(a.data);
  const std::int64_t offset = ((distance % pitch) + pitch) % pitch;
  return offset >= a.cols * size_a && offset + b.cols * size_b <= pitch;
}

bool overlap(const ConstOperand& a, const ConstOperand& b) {
  if (is_empty(a) || is_empty(b)) return false;
  const auto end = [](const ConstOperand& operand) {
    const std::int64_t elements = (operand.rows - 1) * operand.stride + operand.cols;
    return static_cast<const char*>(operand.data) +
           elements * static_cast<std::int64_t>(bytes_per_element(operand.precision));
  };
  const std::less<const char*> before;
  if (!before(static_cast<const char*>(a.data), end(b)) ||
      !before(static_cast<const char*>(b.data), end(a))) {
    return false;
  }
  return !in_different_columns(a, b);
}

}  // namespace

std::string shape_text(std::int64_t rows, std::int64_t cols) {
  return fmt::format("{} x {}", rows, cols);
}

void Checker::fail(const std::string& problem, const std::string& fix) const {
  throw Error(ErrorCode::invalid_argument, problem, op_, fix);
}

void Checker::readable(const ConstOperand& operand, const char* name) const {
  if (operand.rows < 0 || operand.cols < 0) {
    fail(fmt::format("{} has a negative shape, {}", name, shape_text(operand.rows, operand.cols)));
  }
  if (is_empty(operand)) return;
  if (operand.data == nullptr) {
    fail(fmt::format("{} is {} but has no memory", name, shape_text(operand.rows, operand.cols)));
  }
  if (operand.rows > 1 && operand.stride < operand.cols) {
    fail(fmt::format("{} has {} columns but its rows are {} elements apart", name, operand.cols,
                     operand.stride));
  }
}

void Checker::matrix(const ConstOperand& operand, const char* name, Precision precision,
                     std::int64_t rows, std::int64_t cols) const {
  readable(operand, name);
  if (operand.rows != rows || operand.cols != cols) {
    fail(fmt::format("{} is {}, expected {}", name, shape_text(operand.rows, operand.cols),
                     shape_text(rows, cols)));
  }
  if (operand.precision != precision) {
    fail(fmt::format("{} is {}, expected {}", name, to_string(operand.precision),
                     to_string(precision)));
  }
}

void Checker::optional_matrix(const ConstOperand& operand, const char* name, Precision precision,
                              std::int64_t rows, std::int64_t cols) const {
  if (!operand.absent()) matrix(operand, name, precision, rows, cols);
}

void Checker::floating(const ConstOperand& operand, const char* name, Device device) const {
  require_available(device);
  readable(operand, name);
  const bool on_cpu = device.kind == DeviceKind::cpu;
  const Precision precision = operand.precision;
  if (precision == Precision::fp32) return;
  if (on_cpu ? precision == Precision::fp64
             : precision == Precision::bf16 || precision == Precision::fp16) {
    return;
  }
  fail(fmt::format("{} is {}, expected {}", name, to_string(precision),
                   on_cpu ? "fp32 or fp64" : "fp32, bf16 or fp16 on a GPU"));
}

void Checker::apart(const ConstOperand& output, const char* output_name, const ConstOperand& other,
                    const char* other_name) const {
  if (overlap(output, other)) {
    fail(fmt::format("{} shares memory with {}", output_name, other_name),
         "give it memory of its own");
  }
}

void Checker::apart_or_same(const ConstOperand& output, const char* output_name,
                            const ConstOperand& other, const char* other_name) const {
  if (!same_place(output, other)) apart(output, output_name, other, other_name);
}

}  // namespace tessera::ops
