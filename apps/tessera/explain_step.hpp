// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "session.hpp"
#include "tessera/nn/layer.hpp"

namespace tessera::app {

/// The operations of a training step before and after rewriting, and what each rewrite should save:
/// in time, too, where the training is for a GPU.
std::string explained_step_text(const nn::StepExplanation& step, Device device);
Json explained_step_json(const nn::StepExplanation& step, Device device);

}  // namespace tessera::app
