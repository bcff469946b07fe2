// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera::ops {

/// While one lives, ops that this thread calls check their operands and then do nothing. A pass of
/// a model under it makes every plan and every buffer that the pass needs, and computes nothing.
class PlanOnly {
 public:
  /// `only = false` lets a part of such a pass do its work: what it makes is kept.
  explicit PlanOnly(bool only = true) noexcept;
  PlanOnly(const PlanOnly&) = delete;
  PlanOnly& operator=(const PlanOnly&) = delete;
  ~PlanOnly();

 private:
  bool before_;
};

bool plans_only() noexcept;

}  // namespace tessera::ops
