// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "describe.hpp"
#include "tessera/train/checkpoint.hpp"

/// What `tessera info` says about a file that training wrote.
namespace tessera::app {

std::string checkpoint_text(const train::Checkpoint& checkpoint, const std::string& path);
Json checkpoint_json(const train::Checkpoint& checkpoint, const std::string& path);

}  // namespace tessera::app
