// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tessera::train {

/// How features are scaled before a model sees them.
enum class Normalise {
  automatic,  ///< `standard` where features have names, else `rows` where none is negative
  off,        ///< as they are
  rows,       ///< every row is divided by the sum of its absolute values
  standard,   ///< every column has mean 0 and deviation 1
};

const char* to_string(Normalise choice) noexcept;
/// "on" is another word for "rows".
Normalise parse_normalise(const std::string& text);

/// What training did to features, with the numbers that do the same to others.
struct Normalisation {
  Normalise kind = Normalise::off;  ///< never `automatic`
  /// `standard`: x of column j becomes (x - means[j]) * factors[j]. Features that were sparse have
  /// means of 0 here, so that zeros stay zeros.
  std::vector<double> means, factors;

  friend bool operator==(const Normalisation&, const Normalisation&) = default;
};

}  // namespace tessera::train
