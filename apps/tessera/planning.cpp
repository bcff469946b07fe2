// SPDX-License-Identifier: Apache-2.0
#include "planning.hpp"

#include <filesystem>
#include <system_error>

#include "options.hpp"
#include "tessera/ops/shared_plans.hpp"

namespace tessera::app {

ops::PlanOptions PlanningOptions::options() const {
  ops::PlanOptions options;
  options.tune = ops::parse_tune(tune);
  options.store = store;
  options.strict = strict;
  options.exact_nonfinite = exact_nonfinite;
  options.allow_nondeterministic = allow_nondeterministic;
  return options;
}

void add_planning_options(Arguments& app, PlanningOptions& planning) {
  const std::string group = "Plans";
  app.add_option("--tune", planning.tune,
                 "how kernels are chosen: predicted (by the cost model, the default) or measured "
                 "(by timing)")
      ->type_name("HOW")
      ->check(offers({"predicted", "measured"}))
      ->group(group);
  app.add_option("--plans", planning.plans,
                 "file of choices: those in it are used, new ones are added")
      ->type_name("FILE")
      ->group(group);
  app.add_flag("--strict", planning.strict, "only kernels that are as accurate as sums in fp32")
      ->group(group);
  app.add_flag("--exact-nonfinite", planning.exact_nonfinite,
               "only kernels in which an infinity or NaN reaches no rows but those that use it")
      ->group(group);
  app.add_flag("--allow-nondeterministic", planning.allow_nondeterministic,
               "also kernels whose last digits may differ from run to run")
      ->group(group);
}

FileUse plans_file(const PlanningOptions& planning) {
  return {"--plans", planning.plans, FileRole::state};
}

void open_plans(PlanningOptions& planning) {
  ops::parse_tune(planning.tune);
  if (planning.plans.empty()) return;
  std::error_code problem;  // Where it cannot be looked at, opening it says why.
  const bool absent = !std::filesystem::exists(planning.plans, problem) && !problem;
  planning.store = std::make_shared<ops::PlanStore>(absent ? ops::PlanStore()
                                                           : ops::PlanStore::load(planning.plans));
}

void save_plans(const PlanningOptions& planning) {
  if (planning.store != nullptr) ops::merge_plans(*planning.store, planning.plans);
}

}  // namespace tessera::app
