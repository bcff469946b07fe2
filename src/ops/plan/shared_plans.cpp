// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/shared_plans.hpp"

#include <filesystem>
#include <system_error>

#include "io/file_lock.hpp"

namespace tessera::ops {

void merge_plans(const PlanStore& store, const std::string& path) {
  const io::FileLock lock(path);
  std::error_code problem;  // Where it cannot be looked at, opening it says why.
  const bool absent = !std::filesystem::exists(path, problem) && !problem;
  const PlanStore old = absent ? PlanStore() : PlanStore::load(path);
  PlanStore all;
  all.remember_all(store);
  all.remember_all(old);
  if (absent || all.size() > old.size()) all.save(path);
}

}  // namespace tessera::ops
