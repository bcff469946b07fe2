// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tessera/core/error.hpp"

#include "bench/suite.hpp"
#include "ops/plan/check.hpp"

/// From a problem to a trial of its element type.
namespace tessera::bench {

/// For ops that know fp32 and fp64.
template <template <class> class TrialOf>
std::unique_ptr<Trial> prepare_floating(const Problem& problem) {
  return ops::visit_precision(problem.precision, [&]<class T>() -> std::unique_ptr<Trial> {
    return std::make_unique<TrialOf<T>>(problem);
  });
}

/// For sparse ops, which also store 16 bits. More arguments go to the trial's constructor.
template <template <class> class TrialOf, class... Arguments>
std::unique_ptr<Trial> prepare_stored(const Problem& problem, const Arguments&... arguments) {
  if (problem.precision == Precision::fp16) {
    return std::make_unique<TrialOf<Float16>>(problem, arguments...);
  }
  return ops::visit_precision(problem.precision, [&]<class T>() -> std::unique_ptr<Trial> {
    return std::make_unique<TrialOf<T>>(problem, arguments...);
  });
}

}  // namespace tessera::bench
