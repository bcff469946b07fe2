// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "picture/picture.hpp"
#include "tessera/train/class_report.hpp"

namespace tessera::app::picture {

/// Columns of confusion matrices are named by the letters of their rows, up to so many.
inline constexpr std::size_t most_letters = 26;
inline std::string letter_of(std::size_t k) { return std::string(1, static_cast<char>('a' + k)); }

/// The confusion matrix (of several labels: the F1 of each), and beside it how often predictions of
/// a certain probability were true.
Picture class_report_picture(const std::string& title, const train::ClassReport& report);

}  // namespace tessera::app::picture
