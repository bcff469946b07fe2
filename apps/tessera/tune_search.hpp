// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// The settings that `tune` tries.
namespace tessera::app {

/// An option of `train` and what it may be.
struct SearchedOption {
  std::string name;                  ///< "lr", of "--lr"
  std::vector<std::string> choices;  ///< one of these, or else a number of the range
  double lowest = 0, highest = 0;
  bool is_whole = false;

  /// `unit` is from 0 to below 1. A range of numbers above 0 whose end is ten times its beginning
  /// is drawn from by the logarithm. Numbers have three digits.
  std::string draw(double unit) const;
  /// All choices; of a range both ends, and a number between them where it has fractions.
  std::vector<std::string> outermost() const;
};

/// "lr=0.001..0.1,hidden=16|64|256,layers=2..4". Throws `invalid_argument` where it is none.
std::vector<SearchedOption> parse_search(const std::string& text);

/// What suits a model, where nothing is said.
const char* usual_search(const std::string& model);

using TrialSettings = std::vector<std::pair<std::string, std::string>>;

/// Of so many trials. The first has no settings of its own: it is as the command line says. More
/// trials begin with the same ones.
std::vector<TrialSettings> drawn_settings(const std::vector<SearchedOption>& search,
                                          std::int64_t trials, std::uint64_t seed);

/// How long trials are trained, and how many of them: at each stage the better third goes on, for
/// three times as many epochs, up to all.
struct HalvingStage {
  std::int64_t trials;
  std::int64_t divisor;  ///< of the epochs: 9, 3, 1
};
std::vector<HalvingStage> halving_stages(std::int64_t trials);

}  // namespace tessera::app
