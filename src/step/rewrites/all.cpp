// SPDX-License-Identifier: Apache-2.0
#include "step/rewrites/all.hpp"

#include <algorithm>
#include <array>

#include "tessera/step/rewrites.hpp"

namespace tessera::step {
namespace {

constexpr std::array<Rewrite, 8> all = {{
    {"merge-finishes", "bias, activation and dropout in one pass", false, merge_finishes},
    {"update-with-aggregate", "a sum over neighbours and the product behind it may be one kernel",
     false, update_with_aggregate},
    {"sum-in-aggregate", "a matrix is added to a sum over neighbours by its kernel", false,
     sum_in_aggregate},
    {"finish-in-aggregate", "what follows a sum over neighbours is done by its kernel", false,
     finish_in_aggregate},
    {"bias-in-linear", "a dense product adds its bias", false, bias_in_linear},
    {"sum-in-linear", "a dense product is added to a matrix as it is written", false,
     sum_in_linear},
    {"scale-in-sum", "a scaled matrix is scaled as it is added", true, scale_in_sum},
    {"sum-in-linear-gradient", "the same of a product's gradient", true, sum_in_linear_gradient},
}};

}  // namespace

std::span<const Rewrite> rewrites() { return all; }

bool has_one_reader(const Program& program, Value value, std::span<const Value> kept) {
  return std::ranges::find(kept, value) == kept.end() &&
         program.info(value).gradient_of == nullptr && program.num_readers(value) == 1;
}

std::vector<Fired> rewrite(Program& program, std::span<const Value> kept, bool after_gradients,
                           std::span<const std::string> off) {
  std::vector<Fired> fired;
  for (const Rewrite& one : all) {
    if (one.after_gradients != after_gradients) continue;
    if (std::ranges::find(off, one.name) != off.end()) continue;
    const std::int64_t times = one.apply(program, kept);
    if (times > 0) fired.push_back({one.name, times});
  }
  return fired;
}

}  // namespace tessera::step
