// SPDX-License-Identifier: Apache-2.0
#include "train/same_task.hpp"

#include <string_view>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::train {
namespace {

std::string_view task_of(const Checkpoint& checkpoint) {
  if (checkpoint.decoder) return "links";
  return checkpoint.numbers ? "numbers" : "classes";
}

std::string_view task_of(const Problem& problem) {
  if (problem.link_task()) return "links";
  return problem.number_task() ? "numbers" : "classes";
}

}  // namespace

void require_same_task(const Checkpoint& checkpoint, const Problem& problem,
                       const std::string& path) {
  const std::string_view then = task_of(checkpoint), now = task_of(problem);
  if (then == now) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the checkpoint predicts {}, not {}", then, now), path,
              "name another file for --checkpoint, or change --task");
}

}  // namespace tessera::train
