// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "picture/picture.hpp"
#include "tessera/train/report.hpp"

namespace tessera::app::picture {

/// Loss and metric of every run over its epochs, and where the best epoch was.
Picture training_plot(const std::string& title, const train::TrainReport& report);

}  // namespace tessera::app::picture
