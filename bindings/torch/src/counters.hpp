// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "tessera/ops/plan.hpp"

namespace tessera::torch_ops {

/// What happened so far, for tests and for `tessera.counters()`.
struct Counters {
  std::atomic<std::int64_t> runs{0};    ///< of kernels
  std::atomic<std::int64_t> graphs{0};  ///< built
  std::atomic<std::int64_t> plans{0};   ///< made
};

Counters& counters();

/// Counts a run of a plan, and notes its kernel where somebody wants to know.
void note_run(const ops::AnyPlan& plan, const char* pass);

}  // namespace tessera::torch_ops
