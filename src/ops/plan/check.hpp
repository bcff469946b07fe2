// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/device.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/kernels.hpp"
#include "tessera/ops/operand.hpp"

namespace tessera::ops {

/// What an operand must be.
struct Expected {
  ElementType type = ElementType::fp32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

/// An operand as messages call it.
struct Named {
  ConstOperand operand;
  const char* name;
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

  void matrices(std::initializer_list<Named> all, const Expected& expected) const {
    for (const auto& [operand, name] : all) matrix(operand, name, expected);
  }

  /// As `matrix`, or absent.
  void optional_matrix(const ConstOperand& operand, const char* name,
                       const Expected& expected) const;
  void optional_matrices(std::initializer_list<Named> all, const Expected& expected) const {
    for (const auto& [operand, name] : all) optional_matrix(operand, name, expected);
  }

  /// As `matrix` if it was planned, else absent: plans take it with `option`.
  void part(const ConstOperand& operand, const char* name, bool planned, const Expected& expected,
            const char* option) const;

  /// Readable, and of a type that ops compute with: fp64, fp32 or bf16 on the CPU; fp32, bf16 or
  /// fp16 on a GPU. Throws `backend_unavailable` first where there is no such device.
  void floating(const ConstOperand& operand, const char* name) const;

  /// No byte of `output` is one of `other`. Different columns of one matrix are apart.
  void apart(const ConstOperand& output, const char* output_name, const ConstOperand& other,
             const char* other_name) const;

  void apart(const ConstOperand& output, const char* output_name,
             std::initializer_list<Named> others) const {
    for (const auto& [other, name] : others) apart(output, output_name, other, name);
  }

  /// Apart, or the very same matrix, element upon element.
  void apart_or_same(const ConstOperand& output, const char* output_name, const ConstOperand& other,
                     const char* other_name) const;

  /// Throws unless `condition` holds.
  void that(bool condition, const std::string& problem, const std::string& fix = {}) const {
    if (!condition) fail(problem, fix);
  }

  /// Throws unless `value` is a number above 0.
  void positive(double value, const char* name) const;

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

// Checks of options that every planning function makes first. All throw `invalid_argument`.

[[noreturn]] inline void refuse(const std::string& what, const char* where,
                                const std::string& how = {}) {
  throw Error(ErrorCode::invalid_argument, what, where, how);
}

/// `last` is the enumerator with the highest value, of those that count from 0.
template <class Enum>
void check_enum(const char* name, Enum value, Enum last) {
  const auto number = static_cast<long long>(value);
  if (number >= 0 && number <= static_cast<long long>(last)) return;
  refuse("the value " + std::to_string(number) + " has no meaning", name,
         "use one of the enumeration's names");
}

/// Of the numbers of an activation and its dropout.
template <class Options>
void check_activation(const Options& options, const char* where) {
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    refuse(fmt::format("dropout is {}", options.dropout), where, "use a share from 0 to 1");
  }
  if (!std::isfinite(options.slope) || !std::isfinite(options.alpha)) {
    refuse(fmt::format("slope is {}, alpha is {}", options.slope, options.alpha), where,
           "use finite numbers");
  }
}

/// What all ops have in common.
void check_plan_options(const PlanOptions& options, Precision precision);

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

/// What `Prepared` promises, by a class over the type of those matrices.
template <class Prepared, template <class> class Of, class... Arguments>
std::unique_ptr<const Prepared> prepare_as(Precision precision, Arguments&&... arguments) {
  return visit_precision(precision, [&]<class T>() -> std::unique_ptr<const Prepared> {
    return std::make_unique<Of<T>>(std::forward<Arguments>(arguments)...);
  });
}

/// Calls `body` with a value of the type for ops that take fp32 and fp64 alone.
template <class Body>
decltype(auto) visit_wide(ElementType type, Body&& body) {
  return type == ElementType::fp64 ? body(double{}) : body(float{});
}

}  // namespace tessera::ops
