// SPDX-License-Identifier: Apache-2.0
#include "ops/plan/check.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <ostream>

#include <fmt/format.h>

namespace tessera::ops {
namespace {

bool is_empty(const ConstOperand& operand) { return operand.rows == 0 || operand.cols == 0; }

bool same_place(const ConstOperand& a, const ConstOperand& b) {
  return a.data == b.data && a.type == b.type && a.rows == b.rows && a.cols == b.cols &&
         (a.stride == b.stride || a.rows == 1);
}

/// The bytes from one row to the next.
std::int64_t pitch_of(const ConstOperand& operand) {
  return bytes_of(operand.type, operand.stride);
}

/// True when rows of both lie at the same distance and their columns never meet.
bool in_different_columns(const ConstOperand& a, const ConstOperand& b) {
  const std::int64_t pitch = pitch_of(a);
  if (pitch <= 0 || pitch != pitch_of(b)) return false;
  const auto distance = static_cast<const char*>(b.data) - static_cast<const char*>(a.data);
  const std::int64_t offset = ((distance % pitch) + pitch) % pitch;
  return offset >= bytes_of(a.type, a.cols) && offset + bytes_of(b.type, b.cols) <= pitch;
}

bool overlap(const ConstOperand& a, const ConstOperand& b) {
  if (is_empty(a) || is_empty(b) || a.device != b.device) return false;
  const auto end = [](const ConstOperand& operand) {
    return static_cast<const char*>(operand.data) + (operand.rows - 1) * pitch_of(operand) +
           bytes_of(operand.type, operand.cols);
  };
  const std::less<const char*> before;
  if (!before(static_cast<const char*>(a.data), end(b)) ||
      !before(static_cast<const char*>(b.data), end(a))) {
    return false;
  }
  return !in_different_columns(a, b);
}

bool is_among(ElementType type, std::initializer_list<ElementType> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
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
  if (operand.device != device_) {
    fail(fmt::format("{} is on {}, expected on {}", name, to_string(operand.device),
                     to_string(device_)),
         "copy it there, or say where its memory lies");
  }
  if (operand.rows > 1 && operand.stride < operand.cols) {
    fail(fmt::format("{} has stride {}, less than its {} columns", name, operand.stride,
                     operand.cols));
  }
  if (operand.type == ElementType::bits && operand.rows > 1 && operand.stride % 32 != 0) {
    fail(fmt::format("{} has stride {}, expected a multiple of 32 bits", name, operand.stride));
  }
}

void Checker::matrix(const ConstOperand& operand, const char* name,
                     const Expected& expected) const {
  if (operand.rows != expected.rows || operand.cols != expected.cols) {
    fail(fmt::format("{} is {}, expected {}", name, shape_text(operand.rows, operand.cols),
                     shape_text(expected.rows, expected.cols)));
  }
  readable(operand, name);
  if (operand.type != expected.type) {
    fail(fmt::format("{} is {}, expected {}", name, to_string(operand.type),
                     to_string(expected.type)));
  }
}

void Checker::optional_matrix(const ConstOperand& operand, const char* name,
                              const Expected& expected) const {
  if (!operand.absent()) matrix(operand, name, expected);
}

void Checker::part(const ConstOperand& operand, const char* name, bool planned,
                   const Expected& expected, const char* option) const {
  if (planned) return matrix(operand, name, expected);
  if (operand.absent()) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("the plan takes no {}", name), name,
              fmt::format("plan with {}", option));
}

void Checker::floating(const ConstOperand& operand, const char* name) const {
  require_available(device_);
  readable(operand, name);
  const bool on_cpu = device_.kind == DeviceKind::cpu;
  const bool taken =
      on_cpu ? is_among(operand.type, {ElementType::fp64, ElementType::fp32, ElementType::bf16})
             : is_among(operand.type, {ElementType::fp32, ElementType::bf16, ElementType::fp16});
  if (taken) return;
  fail(fmt::format("{} is {}, expected {}", name, to_string(operand.type),
                   on_cpu ? "fp64, fp32 or bf16 on the CPU" : "fp32, bf16 or fp16 on a GPU"));
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

void Checker::positive(double value, const char* name) const {
  if (std::isfinite(value) && value > 0) return;
  fail(fmt::format("{} is {}, expected a number above 0", name, value));
}

std::string why_not_cpu_precision(Precision precision) {
  switch (precision) {
    case Precision::fp64:
    case Precision::fp32:
    case Precision::tf32:
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

std::ostream& operator<<(std::ostream& out, const ConstOperand& operand) {
  describe_matrix(out, operand.type, operand.rows, operand.cols, operand.stride, operand.device);
  return out;
}

}  // namespace tessera::ops
