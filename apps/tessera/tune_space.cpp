// SPDX-License-Identifier: Apache-2.0
#include "tune_space.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "option_errors.hpp"
#include "suggest.hpp"
#include "tessera/core/random.hpp"
#include "tessera/train/trainer.hpp"
#include "useless.hpp"

namespace tessera::app {
namespace {

/// Options whose values cannot differ from trial to trial.
bool is_fixed(const std::string& name) { return name == "epochs" || name == "partition"; }

bool is_setting(const Option& option) {
  return option.group() == model_group || option.group() == training_group;
}

[[noreturn]] void reject(const std::string& problem, const std::string& fix) {
  throw Error(ErrorCode::invalid_argument, problem, "--search", fix);
}

/// How to mend the name of what cannot be searched.
std::string fix_for(const Arguments& given, const std::string& name) {
  if (is_fixed(name)) {
    return fmt::format("leave it out and give --{0}, which all trials share", name);
  }
  std::vector<std::string> names;
  for (const auto& option : given.options()) {
    const std::string known = option->names().empty() ? "" : option->names().back();
    if (!known.starts_with("--") || !is_setting(*option)) continue;
    if (!is_fixed(known.substr(2))) names.push_back(known.substr(2));
  }
  const std::string near_name = suggestion(name, names);
  return near_name.empty() ? "use options of the model and of the training, as lr or hidden"
                           : near_name;
}

std::optional<std::size_t> place_of(const TrialSettings& settings, const std::string& option) {
  for (std::size_t i = 0; i < settings.size(); ++i) {
    if ("--" + settings[i].first == option) return i;
  }
  return {};
}

/// Whether an error is about an option, "--lr".
bool is_about(const Error& error, const std::string& option) {
  const std::string text = error.where() + ": " + problem_of(error);
  const std::size_t begin = text.find(option);
  if (begin == std::string::npos) return false;
  const std::size_t end = begin + option.size();
  return end == text.size() || (text[end] != '-' && !(text[end] >= 'a' && text[end] <= 'z'));
}

TrialSettings without(TrialSettings settings, std::size_t place) {
  settings.erase(settings.begin() + static_cast<std::ptrdiff_t>(place));
  return settings;
}

/// The rest goes with the model.
std::vector<std::size_t> from_last_to_model(const TrialSettings& settings) {
  std::vector<std::size_t> places;
  for (std::size_t i = settings.size(); i-- > 0;) {
    if (settings[i].first != "model") places.push_back(i);
  }
  if (const auto model = place_of(settings, "--model")) places.push_back(*model);
  return places;
}

/// The corners of a space: first those that show each value once, then all the others, or some
/// where they are many.
struct Corners {
  std::vector<TrialSettings> settings;
  bool are_all = true;
};

Corners corners_of(const std::vector<SearchedOption>& search) {
  constexpr std::size_t most = 400;  // which take a fraction of a second
  std::size_t widest = 0, all = 1;
  std::vector<std::vector<std::string>> values;
  for (const SearchedOption& option : search) {
    values.push_back(option.outermost());
    widest = std::max(widest, values.back().size());
    all = std::min(all * values.back().size(), most + 1);
  }
  Corners corners{std::vector<TrialSettings>(widest + std::min(all, most)), all <= most};
  for (std::size_t corner = 0; corner < corners.settings.size(); ++corner) {
    const Random random(0, 0x636f726e, static_cast<std::uint32_t>(corner));
    std::size_t rest = corner < widest ? 0 : corner - widest;
    for (std::size_t i = 0; i < search.size(); ++i) {
      const std::size_t count = values[i].size();
      const auto drawn = static_cast<std::size_t>(random.uniform(i) * static_cast<double>(count));
      const std::size_t value = corner < widest   ? corner % count
                                : corners.are_all ? rest % count
                                                  : drawn;
      corners.settings[corner].emplace_back(search[i].name, values[i][value]);
      rest /= count;
    }
  }
  return corners;
}

/// What is wrong with a setting, or with all of an option.
[[noreturn]] void reject_searched(const LeftOut& left_out) {
  const auto& [name, value] = left_out.setting;
  const std::string option = "--" + name;
  std::string problem = problem_of(left_out.why);
  if (left_out.is_useless) reject(fmt::format("{} {}", name, problem), left_out.why.fix());
  const std::string begin = option + ": ";
  if (problem.starts_with(begin)) problem.erase(0, begin.size());
  const std::string& where = left_out.why.where();
  if (where.starts_with("--") && where != option) problem = where + " " + problem;
  const bool goes_on = problem.starts_with("is ");  // of the option, which is not in the text
  throw Error(left_out.why.code(),
              goes_on ? fmt::format("{} {}", name, problem)
                      : fmt::format("{}={}: {}", name, value, problem),
              "--search", left_out.why.fix());
}

/// Which values have been of use in some corner, and why others have not.
class ValuesInUse {
 public:
  explicit ValuesInUse(const std::vector<SearchedOption>& search) {
    for (const SearchedOption& option : search) {
      for (const std::string& value : option.outermost()) {
        if (unused_.try_emplace({option.name, value}).second)
          values_.emplace_back(option.name, value);
      }
    }
  }

  void add(const FittingSettings& fitting) {
    for (const auto& setting : fitting.settings) {
      unused_.erase(setting);
      useful_.insert(setting.first);
    }
    for (const LeftOut& left_out : fitting.left_out) {
      const auto known = unused_.find(left_out.setting);
      if (known == unused_.end()) continue;
      std::optional<LeftOut>& why = known->second;
      if (!why || (why->is_useless && !left_out.is_useless)) why.emplace(left_out);
    }
  }

  bool are_all_used() const { return unused_.empty(); }

  /// A value that only does nothing is no mistake where others of its option do something, or
  /// where not all corners were seen.
  void reject_what_has_none(bool are_all_corners) const {
    for (const auto& setting : values_) {
      const auto found = unused_.find(setting);
      if (found == unused_.end() || !found->second) continue;
      const LeftOut& why = *found->second;
      const bool may_be_useful = !are_all_corners || useful_.count(setting.first) > 0;
      if (!why.is_useless || !may_be_useful) reject_searched(why);
    }
  }

 private:
  TrialSettings values_;  ///< all, in the order of the search
  std::map<std::pair<std::string, std::string>, std::optional<LeftOut>> unused_;
  std::set<std::string> useful_;
};

}  // namespace

TrainPlan TrialPlanner::plan(const TrialSettings& settings) const {
  TrainArguments train = train_;
  Arguments app("", "train");
  add_training_settings(app, train);
  std::vector<std::string> words = {"train"};
  for (const auto& [name, value] : settings) words.push_back(fmt::format("--{}={}", name, value));
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  try {
    app.parse(static_cast<int>(pointers.size()), pointers.data());
    train.checkpoint = "trial.tsr";
    train.resume = true;
    TrainPlan plan = plan_training(train, dataset_, seed_);
    // What does nothing is left out, whatever its value beside the others would be called.
    reject_useless_options(app, train, dataset_, plan);
    reject_useless_options(given_, train, dataset_, plan);
    require_sense(train);
    nn::validate(plan.config);
    train::validate(plan.options);
    return plan;
  } catch (const UselessOption&) {
    throw;
  } catch (const Error& error) {
    throw naming_option(app, error);
  }
}

bool TrialPlanner::can_plan(TrialSettings settings) const {
  while (true) {
    try {
      plan(settings);
      return true;
    } catch (const UselessOption& error) {
      const auto place = place_of(settings, error.where());
      if (!place) return false;
      settings = without(settings, *place);
    } catch (const Error&) {
      return false;
    }
  }
}

std::size_t TrialPlanner::to_leave_out(const TrialSettings& settings, const Error& error) const {
  for (std::size_t i = 0; i < settings.size(); ++i) {
    if (is_about(error, "--" + settings[i].first)) return i;
  }
  const std::vector<std::size_t> places = from_last_to_model(settings);
  for (const std::size_t place : places) {
    if (can_plan(without(settings, place))) return place;
  }
  return places.front();
}

FittingSettings TrialPlanner::fitting(TrialSettings settings) const {
  std::vector<LeftOut> left_out;
  while (true) {
    try {
      TrainPlan possible = plan(settings);
      return {std::move(settings), std::move(possible), std::move(left_out)};
    } catch (const Error& error) {
      if (settings.empty()) throw;
      const std::size_t place = to_leave_out(settings, error);
      const bool is_useless = dynamic_cast<const UselessOption*>(&error) != nullptr &&
                              place_of(settings, error.where()) == place;
      left_out.push_back({settings[place], error, is_useless});
      settings = without(settings, place);
    }
  }
}

void require_searchable(const Arguments& given, const std::vector<SearchedOption>& search) {
  for (const auto& [name, choices, lowest, highest, is_whole] : search) {
    const Option* const option = given.find("--" + name);
    if (option == nullptr || !is_setting(*option) || is_fixed(name)) {
      reject(fmt::format("'{}' is no setting that can be searched", name), fix_for(given, name));
    }
    if (option->is_given()) {
      reject(fmt::format("'{}' is given and searched for", name),
             fmt::format("leave out --{}, or its part of --search", name));
    }
  }
}

void require_sense(const std::vector<SearchedOption>& search, const TrialPlanner& planner) {
  ValuesInUse values(search);
  Corners corners = corners_of(search);
  for (TrialSettings& corner : corners.settings) {
    values.add(planner.fitting(std::move(corner)));
    if (values.are_all_used()) return;
  }
  values.reject_what_has_none(corners.are_all);
}

}  // namespace tessera::app
