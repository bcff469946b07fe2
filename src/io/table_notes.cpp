// SPDX-License-Identifier: Apache-2.0
#include "io/table_notes.hpp"

#include <fmt/format.h>

#include "core/listing.hpp"

namespace tessera::io {
namespace {

std::string of_text(const ColumnReading& column) {
  const std::string line =
      column.text_line > 0 ? fmt::format(" on line {}", column.text_line) : std::string();
  return fmt::format("{} ({}, for {}{})", quoted(column.name), column.categories,
                     quoted(column.first_text), line);
}

}  // namespace

std::vector<std::string> notes_on_columns(const std::vector<ColumnReading>& columns) {
  std::vector<std::string> texts, mixed, truths, filled, without;
  for (const ColumnReading& column : columns) {
    const std::string name = quoted(column.name);
    if (!column.numeric && column.has_numbers) {
      mixed.push_back(of_text(column));
    } else if (!column.numeric) {
      texts.push_back(fmt::format("{} ({})", name, column.categories));
    } else if (column.has_truths) {
      truths.push_back(name);
    }
    if (column.missing == 0) continue;
    column.numeric
        ? filled.push_back(fmt::format("{} ({} with {})", name, column.missing, column.mean))
        : without.push_back(fmt::format("{} ({})", name, column.missing));
  }
  std::vector<std::string> notes;
  const auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) notes.push_back(what + listed(names));
  };
  add("columns of texts became one feature per category: ", texts);
  add("columns of numbers with a text among them became one feature per different value: ", mixed);
  add("true and false became 1 and 0: ", truths);
  add("missing numbers were filled in with the mean of their column: ", filled);
  add("missing texts belong to no category: ", without);
  return notes;
}

std::string note_on_unlabelled(std::int64_t unlabelled, std::int64_t vertices) {
  if (unlabelled == 0) return {};
  return fmt::format("{} of {} vertices {} no label", unlabelled, vertices,
                     unlabelled == 1 ? "has" : "have");
}

}  // namespace tessera::io
