// SPDX-License-Identifier: Apache-2.0
#include "verb.hpp"

#include <array>

#include <fmt/format.h>

#include "suggest.hpp"

namespace tessera::app {

#ifdef TESSERA_WITH_BENCH
std::span<const Verb* const> verbs() {
  static constexpr std::array all{
      &info_verb,  &generate_verb,  &convert_verb, &reorder_verb,    &prune_verb, &partition_verb,
      &tiles_verb, &train_verb,     &tune_verb,    &predict_verb,    &check_verb, &plan_verb,
      &bench_verb, &calibrate_verb, &doctor_verb,  &completion_verb, &man_verb};
  return all;
}
#else
std::span<const Verb* const> verbs() {
  static constexpr std::array all{&info_verb,   &generate_verb,   &convert_verb, &reorder_verb,
                                  &prune_verb,  &partition_verb,  &tiles_verb,   &train_verb,
                                  &tune_verb,   &predict_verb,    &plan_verb,    &calibrate_verb,
                                  &doctor_verb, &completion_verb, &man_verb};
  return all;
}
#endif

const Verb& find_verb(const std::string& name) {
  std::vector<std::string> names;
  for (const Verb* verb : verbs()) {
    if (name == verb->name) return *verb;
    names.emplace_back(verb->name);
  }
  if (name == "bench" || name == "check") {
    throw Error(ErrorCode::backend_unavailable, fmt::format("built without '{}'", name), "",
                "build all of the program with 'make program' (-DTESSERA_BUILD_BENCH=ON)");
  }
  const bool is_option = !name.empty() && name[0] == '-';
  const std::string near_name = suggestion(name, names);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} '{}'",
                          is_option ? "expected a verb before the option" : "unknown verb", name),
              "", near_name.empty() ? "see 'tessera help'" : near_name);
}

}  // namespace tessera::app
