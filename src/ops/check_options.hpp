// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/core/dtype.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/kernels.hpp"

/// Checks of options that every planning function makes first. All throw `invalid_argument`.
namespace tessera::ops {

/// `last` is the enumerator with the highest value, of those that count from 0.
template <class Enum>
void check_enum(const char* name, Enum value, Enum last) {
  const auto number = static_cast<long long>(value);
  if (number >= 0 && number <= static_cast<long long>(last)) return;
  throw Error(ErrorCode::invalid_argument,
              "the value " + std::to_string(number) + " has no meaning", name,
              "use one of the enumeration's names");
}

/// What all ops have in common.
void check_plan_options(const PlanOptions& options, Precision precision);

}  // namespace tessera::ops
