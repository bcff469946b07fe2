// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/train/link_predictor.hpp"

#include "io/array.hpp"
#include "io/csv_field.hpp"
#include "io/json_text.hpp"
#include "io/npz_arrays.hpp"
#include "io/text_array.hpp"
#include "train/prediction_files.hpp"
#include "train/softmax_row.hpp"
#include "train/write_rows.hpp"

namespace tessera::train {
namespace {

/// How one pair is written.
struct LinkRow {
  LinkRow(const LinkPrediction& prediction, std::int64_t k)
      : source(name(prediction, prediction.pairs.sources[static_cast<std::size_t>(k)],
                    prediction.kinds.source)),
        target(name(prediction, prediction.pairs.targets[static_cast<std::size_t>(k)],
                    prediction.kinds.target)),
        score(prediction.scores[static_cast<std::size_t>(k)]) {}

  static std::string name(const LinkPrediction& prediction, VertexId vertex,
                          const std::string& kind) {
    if (!prediction.names.empty()) {
      return std::string(name_within(kind, prediction.names[vertex]));
    }
    return fmt::to_string(vertex + prediction.first_number);
  }

  std::string source, target;
  float score;
};

/// What the ends are called: by their kinds, where these have some.
Kinds ends_of(const LinkPrediction& prediction) {
  return prediction.kinds.given() ? prediction.kinds : Kinds{"source", "target"};
}

void write_csv(const LinkPrediction& prediction, const std::string& path) {
  const Kinds ends = ends_of(prediction);
  std::string header;
  io::append_csv_field(header, ends.source);
  header.push_back(',');
  io::append_csv_field(header, ends.target);
  write_rows(path, header + ",score,probability\n", prediction.pairs.size(),
             [&](std::string& text, std::int64_t k) {
               const LinkRow row(prediction, k);
               io::append_csv_field(text, row.source);
               text.push_back(',');
               io::append_csv_field(text, row.target);
               text += fmt::format(",{:.6g},{:.6g}\n", row.score, sigmoid(row.score));
             });
}

void write_json(const LinkPrediction& prediction, const std::string& path) {
  const bool named = !prediction.names.empty();
  const Kinds ends = ends_of(prediction);
  const auto append_end = [&](std::string& text, const std::string& key, const std::string& name) {
    io::append_json_text(text, key);
    text += ": ";
    named ? io::append_json_text(text, name) : void(text += name);
    text += ", ";
  };
  write_rows(
      path, "{\n\"task\": \"links\",\n\"pairs\": [", prediction.pairs.size(),
      [&](std::string& text, std::int64_t k) {
        const LinkRow row(prediction, k);
        text += k == 0 ? "\n{" : ",\n{";
        append_end(text, ends.source, row.source);
        append_end(text, ends.target, row.target);
        text += fmt::format("\"score\": {:.6g}, \"probability\": {:.6g}}}", row.score,
                            sigmoid(row.score));
      },
      "\n]\n}\n");
}

void write_npz(const LinkPrediction& prediction, const std::string& path) {
  const Kinds ends = ends_of(prediction);
  const std::int64_t count = prediction.pairs.size();
  std::vector<std::string> sources, targets;
  std::vector<std::int64_t> source_numbers, target_numbers;
  std::vector<float> probabilities;
  for (std::int64_t k = 0; k < count; ++k) {
    const auto place = static_cast<std::size_t>(k);
    source_numbers.push_back(prediction.pairs.sources[place] + prediction.first_number);
    target_numbers.push_back(prediction.pairs.targets[place] + prediction.first_number);
    const LinkRow row(prediction, k);
    probabilities.push_back(static_cast<float>(sigmoid(row.score)));
    if (prediction.names.empty()) continue;
    sources.push_back(row.source);
    targets.push_back(row.target);
  }
  std::vector<io::NamedArray> arrays;
  if (prediction.names.empty()) {
    arrays.emplace_back("source", io::stored(SharedArray<std::int64_t>(source_numbers)));
    arrays.emplace_back("target", io::stored(SharedArray<std::int64_t>(target_numbers)));
  } else {
    arrays.push_back(io::text_array(ends.source, {sources.begin(), sources.end()}));
    arrays.push_back(io::text_array(ends.target, {targets.begin(), targets.end()}));
  }
  arrays.emplace_back("score", io::stored(SharedArray<float>(prediction.scores)));
  arrays.emplace_back("probability", io::stored(SharedArray<float>(probabilities)));
  io::write_npz_arrays(path, arrays);
}

}  // namespace

LinkPrediction listed_links(const Dataset& dataset, std::span<const VertexId> sources,
                            const links::TopLists& lists) {
  LinkPrediction prediction{dataset.vertex_names, 0, {}, {}, {}};
  for (std::int64_t i = 0; i < lists.candidates.rows(); ++i) {
    for (std::int64_t k = 0; k < lists.candidates.cols(); ++k) {
      if (lists.candidates(i, k) < 0) break;
      prediction.pairs.sources.push_back(sources[static_cast<std::size_t>(i)]);
      prediction.pairs.targets.push_back(lists.candidates(i, k));
      prediction.scores.push_back(lists.scores(i, k));
    }
  }
  return prediction;
}

void require_link_ending(const std::string& path) {
  if (path.ends_with(".csv") || path.ends_with(".json") || path.ends_with(".npz")) return;
  throw Error(ErrorCode::invalid_argument, "unknown ending of the file for links", path,
              "use .csv, .json or .npz");
}

void save(const LinkPrediction& prediction, const std::string& path) {
  require_link_ending(path);
  if (path.ends_with(".csv")) return write_csv(prediction, path);
  if (path.ends_with(".json")) return write_json(prediction, path);
  write_npz(prediction, path);
}

}  // namespace tessera::train
