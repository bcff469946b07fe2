// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "tessera/train/options.hpp"
#include "useless.hpp"

namespace tessera::app {

/// Options of `train --task links`.
struct LinkArguments {
  std::optional<std::string> decoder, loss, negatives;
  std::optional<std::int64_t> embedding, per_positive, pairs_per_batch, top;
  std::optional<double> supervision, margin;
  std::string time;
  bool avoids_held_out = false, variational = false;
};

void add_link_options(Arguments& app, LinkArguments& arguments);

/// `split`: what `--split` says of the links, if it was given.
void apply(const LinkArguments& arguments, const std::optional<train::SplitShares>& split,
           train::LinkOptions& options);

/// Those that mean nothing where classes are learned, and those of classes where links are.
std::vector<Useless> useless_beside(const train::TrainOptions& options);

}  // namespace tessera::app
