// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::io {

/// What became of a column of features, for people.
struct ColumnReading {
  std::string name;
  bool numeric = true;
  bool has_truths = false;      ///< some of its values are true or false
  bool has_numbers = false;     ///< some of its values are numbers
  std::int64_t categories = 0;  ///< of a column that is not numeric
  std::int64_t missing = 0;     ///< vertices without a value
  float mean = 0;               ///< what missing numbers became
  std::string first_text;       ///< the first value that is no number
  std::int64_t text_line = 0;   ///< the line it is on; 0: not known
};

/// Says which columns became categories, by which text, and what was filled in.
std::vector<std::string> notes_on_columns(const std::vector<ColumnReading>& columns);

/// Says how many vertices have no label; empty where all have one.
std::string note_on_unlabelled(std::int64_t unlabelled, std::int64_t vertices);

}  // namespace tessera::io
