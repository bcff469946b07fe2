// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "io/csv_field.hpp"
#include "io/json_text.hpp"
#include "io/npz_arrays.hpp"
#include "io/text_array.hpp"
#include "train/prediction_files.hpp"
#include "train/write_rows.hpp"

namespace tessera::train {
namespace {

std::vector<std::string> names_of(const Prediction& prediction) {
  std::vector<std::string> names;
  for (std::int64_t k = 0; k < prediction.numbers->count(); ++k) {
    names.push_back(prediction.numbers->name(k));
  }
  return names;
}

/// The shortest text that gives the number again; `none` where it is not a number.
void append_value(std::string& text, float value, const char* none) {
  if (std::isnan(value)) {
    text += none;
  } else {
    fmt::format_to(std::back_inserter(text), "{}", value);
  }
}

const char* part_of(const Prediction& prediction, std::int64_t item) {
  return to_string(prediction.parts[static_cast<std::size_t>(item)]);
}

void write_csv(const Prediction& p, bool has_truth, bool has_parts, const std::string& path) {
  std::string head = "id";
  for (const std::string& name : names_of(p)) {
    head.push_back(',');
    io::append_csv_field(head, name);
    if (!has_truth) continue;
    head.push_back(',');
    io::append_csv_field(head, "true(" + name + ")");
  }
  if (has_parts) head += ",split";
  write_rows(path, head + '\n', p.logits.rows(), [&](std::string& text, std::int64_t item) {
    io::append_csv_field(text, item_name(p, item));
    for (std::int64_t k = 0; k < p.logits.cols(); ++k) {
      text.push_back(',');
      append_value(text, p.logits(item, k), "");
      if (!has_truth) continue;
      text.push_back(',');
      append_value(text, (*p.true_numbers)(item, k), "");
    }
    if (has_parts) text += std::string(",") + part_of(p, item);
    text.push_back('\n');
  });
}

/// {"price": 1.5, "area": null}
void append_values(std::string& text, const std::vector<std::string>& names, const float* values) {
  text.push_back('{');
  for (std::size_t k = 0; k < names.size(); ++k) {
    if (k > 0) text += ", ";
    io::append_json_text(text, names[k]);
    text += ": ";
    append_value(text, values[k], "null");
  }
  text.push_back('}');
}

void write_json(const Prediction& p, bool has_truth, bool has_parts, const std::string& path) {
  const std::vector<std::string> names = names_of(p);
  std::string head = std::string("{\n\"task\": \"numbers\",\n\"of\": \"") +
                     (p.graph_task ? "graph" : "node") + "\",\n\"targets\": [";
  for (std::size_t k = 0; k < names.size(); ++k) {
    if (k > 0) head += ", ";
    io::append_json_text(head, names[k]);
  }
  write_rows(
      path, head + "],\n\"items\": [", p.logits.rows(),
      [&](std::string& text, std::int64_t item) {
        text += item == 0 ? "\n{\"id\": " : ",\n{\"id\": ";
        if (p.item_names.empty()) {
          text += std::to_string(item);
        } else {
          io::append_json_text(text, item_name(p, item));
        }
        text += ", \"values\": ";
        append_values(text, names, p.logits.row(item));
        if (has_truth) {
          text += ", \"true_values\": ";
          append_values(text, names, p.true_numbers->row(item));
        }
        if (has_parts) {
          const std::string part = part_of(p, item);
          text += ", \"split\": " + (part.empty() ? "null" : '"' + part + '"');
        }
        text.push_back('}');
      },
      "\n]\n}\n");
}

void write_npz(const Prediction& p, const std::string& path) {
  std::vector<io::NamedArray> arrays;
  arrays.push_back(borrowed("prediction", p.logits));
  if (p.true_numbers != nullptr) arrays.emplace_back("true_value", io::stored(p.true_numbers));
  const std::vector<std::string> names = names_of(p);
  arrays.push_back(io::text_array("target_names", {names.begin(), names.end()}));
  add_item_names(p, arrays);
  if (!p.parts.empty()) {
    std::vector<std::string_view> parts;
    for (std::int64_t item = 0; item < p.logits.rows(); ++item) parts.push_back(part_of(p, item));
    arrays.push_back(io::text_array("split", parts));
  }
  io::write_npz_arrays(path, arrays);
}

}  // namespace

void write_number_predictions(const Prediction& prediction, PredictionForm form,
                              const std::string& path) {
  const bool is_full = form == PredictionForm::full;
  const bool has_truth = is_full && prediction.true_numbers != nullptr;
  const bool has_parts = is_full && !prediction.parts.empty();
  if (path.ends_with(".csv")) return write_csv(prediction, has_truth, has_parts, path);
  if (path.ends_with(".json")) return write_json(prediction, has_truth, has_parts, path);
  write_npz(prediction, path);
}

}  // namespace tessera::train
