// SPDX-License-Identifier: Apache-2.0
#include "io/reading_notes.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "tessera/core/grouped.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/data/classes.hpp"

namespace tessera::io {
namespace {

std::int64_t count_loops(const Graph& graph) {
  if (!graph.is_square()) return 0;
  return parallel_reduce(
      graph.num_rows(), std::int64_t{1} << 12, std::int64_t{0},
      [&](std::int64_t begin, std::int64_t end) {
        std::int64_t loops = 0;
        for (std::int64_t row = begin; row < end; ++row) {
          const VertexId* const first = graph.col_indices().begin() + graph.row_offsets()[row];
          const VertexId* const last = graph.col_indices().begin() + graph.row_offsets()[row + 1];
          loops += std::binary_search(first, last, static_cast<VertexId>(row)) ? 1 : 0;
        }
        return loops;
      },
      [](std::int64_t a, std::int64_t b) { return a + b; });
}

void add_once(std::string note, std::vector<std::string>& notes) {
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
}

void note_labels(std::span<const std::int64_t> labels, const char* items, Dataset& dataset) {
  const std::vector<std::int64_t> values = class_values(labels);
  if (values.empty()) return;
  if (values.front() < 0) {
    dataset.notes.push_back(
        fmt::format("all labels of {} are -1 or 1: two classes, none is without a label", items));
    return;
  }
  const auto without =
      std::count_if(labels.begin(), labels.end(), [](std::int64_t label) { return label < 0; });
  if (without == 0) return;
  add_once(note_without_label(without, std::ssize(labels), items), dataset.notes);
}

}  // namespace

Note parted(std::string_view note) {
  for (const std::string_view topic :
       {about::edge_list, about::node_table, about::labels, about::split, about::numbers,
        about::categories, about::filled_in, about::left_out}) {
    const std::string_view rest = note.substr(std::min(topic.size(), note.size()));
    if (note.starts_with(topic) && rest.starts_with(": ")) return {topic, rest.substr(2)};
  }
  return {{}, note};
}

std::string note_about(std::string_view topic, std::string_view text) {
  return fmt::format("{}: {}", topic, text);
}

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string counted(std::int64_t count, const char* one, const char* several) {
  return grouped(count) + ' ' + (count == 1 ? one : several);
}

std::string note_without_label(std::int64_t without, std::int64_t all, const char* items) {
  return fmt::format("{} of {} {} {} no label", grouped(without), grouped(all), items,
                     without == 1 ? "has" : "have");
}

void note_contents(Dataset& dataset) {
  if (const std::int64_t loops = count_loops(dataset.graph); loops > 0) {
    dataset.notes.push_back(
        fmt::format("{} from a vertex to itself", counted(loops, "edge leads", "edges lead")));
  }
  if (const auto* labels = std::get_if<ClassLabels>(&dataset.labels)) {
    note_labels(labels->span(), "vertices", dataset);
  }
  note_labels(dataset.graph_labels.span(), "graphs", dataset);
  if (dataset.extras.empty()) return;
  std::vector<std::string> names;
  for (const auto& [name, extra] : dataset.extras) names.push_back(name);
  dataset.notes.push_back(fmt::format("nothing uses the array{} {}", names.size() == 1 ? "" : "s",
                                      fmt::join(names, ", ")));
}

void note_merged_edges(EdgeOffset listed, Duplicates duplicates, Dataset& dataset) {
  const EdgeOffset merged = listed - dataset.graph.num_edges();
  if (merged <= 0) return;
  dataset.notes.push_back(fmt::format(
      "{} listed again: {}", counted(merged, "edge is", "edges are"),
      duplicates == Duplicates::sum ? "weights were added up" : "the first one was kept"));
}

}  // namespace tessera::io
