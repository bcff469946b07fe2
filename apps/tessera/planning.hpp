// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "arguments.hpp"
#include "files.hpp"
#include "tessera/ops/kernels.hpp"
#include "tessera/ops/plan_store.hpp"

namespace tessera::app {

/// How a verb's plans are made, as given on the command line.
struct PlanningOptions {
  std::string tune = "predicted";
  std::string plans;  ///< a file of choices, read if it is there and written at the end
  bool strict = false;
  bool exact_nonfinite = false;
  bool allow_nondeterministic = false;
  std::shared_ptr<ops::PlanStore> store;  ///< what `plans` names, once opened

  ops::PlanOptions options() const;
};

void add_planning_options(Arguments& app, PlanningOptions& planning);

/// The file of plans as a use of a file.
FileUse plans_file(const PlanningOptions& planning);

/// Throws where an option has no meaning or the file is not one of plans.
void open_plans(PlanningOptions& planning);
/// Adds what the file does not have to it, if one was named; also what other processes have added
/// in the meantime stays.
void save_plans(const PlanningOptions& planning);

}  // namespace tessera::app
