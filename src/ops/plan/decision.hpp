// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/plan/tune.hpp"
#include "tessera/ops/kernels.hpp"

namespace tessera::ops {

/// What was decided for a plan, or for a part of it. It turns into words when somebody asks for
/// them: to write them takes as long as to decide.
class Decision {
 public:
  Decision() = default;
  /// Something that is in words already.
  explicit Decision(Explanation said) : said_(std::move(said)) {}
  /// One of several offers, as the options say.
  Decision(std::vector<Offer> offers, std::size_t chosen, const PlanOptions& options)
      : offers_(std::move(offers)), chosen_(chosen), options_(options) {}

  /// Something to add to the summary.
  void add_note(const std::string& note) { note_ += note; }
  /// What was decided for another part of the plan.
  void add_child(std::string name, Decision child) {
    children_.push_back(std::move(child));
    children_.back().name_ = std::move(name);
  }

  Explanation explain() const;

 private:
  std::optional<Explanation> said_;
  std::vector<Offer> offers_;
  std::size_t chosen_ = 0;
  PlanOptions options_;
  std::string note_;
  std::string name_;
  std::vector<Decision> children_;
};

}  // namespace tessera::ops
