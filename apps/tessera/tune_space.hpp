// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tessera/core/error.hpp"
#include "train_options.hpp"
#include "tune_search.hpp"

/// Which of the settings that `tune` tries can stand together.
namespace tessera::app {

/// A setting that was left out, and why.
struct LeftOut {
  std::pair<std::string, std::string> setting;
  Error why;
  bool is_useless;  ///< beside the others it does nothing; else it is impossible
};

/// Those settings that make sense together.
struct FittingSettings {
  TrialSettings settings;
  TrainPlan plan;
  std::vector<LeftOut> left_out;
};

class TrialPlanner {
 public:
  /// `given` has what was given to `tune`. Keeps references.
  TrialPlanner(const Arguments& given, const TrainArguments& train, const Dataset& dataset,
               std::uint64_t seed)
      : given_(given), train_(train), dataset_(dataset), seed_(seed) {}

  /// The plan of a training with these settings, as if they stood on its command line, but for the
  /// path of its checkpoint. Throws `UselessOption` where one does nothing.
  TrainPlan plan(const TrialSettings& settings) const;

  /// Leaves out what does nothing beside the others, as heads of a model without attention, or
  /// cannot stand beside them.
  FittingSettings fitting(TrialSettings settings) const;

 private:
  bool can_plan(TrialSettings settings) const;
  std::size_t to_leave_out(const TrialSettings& settings, const Error& error) const;

  const Arguments& given_;
  const TrainArguments& train_;
  const Dataset& dataset_;
  std::uint64_t seed_;
};

/// Throws where one is no option that a search may change, or is given as well.
void require_searchable(const Arguments& given, const std::vector<SearchedOption>& search);

/// Throws where a value is impossible, or an option does nothing, beside whatever else there is in
/// the space.
void require_sense(const std::vector<SearchedOption>& search, const TrialPlanner& planner);

}  // namespace tessera::app
