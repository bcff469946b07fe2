// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <future>

#include "tessera/nn/layer.hpp"

namespace tessera::train {

/// Products of a model's weights with a few rows of zeros, on a thread and a stream of their own:
/// the first ones on a GPU load BLAS and its kernels for 200 ms, while features are still copied
/// there. Nothing depends on them. Only where training has very many rows: others need no BLAS.
class Rehearsal {
 public:
  Rehearsal(nn::Layer& model, const step::Placement& placement, std::int64_t rows);

  /// Before the first step.
  void wait() {
    if (done_.valid()) done_.get();
  }

 private:
  std::future<void> done_;
};

}  // namespace tessera::train
