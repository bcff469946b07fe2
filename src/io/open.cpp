// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/open.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/data/embedded.hpp"
#include "tessera/io/edge_list.hpp"
#include "tessera/io/relational.hpp"
#include "tessera/io/triples.hpp"

#include "io/deflate.hpp"
#include "io/file.hpp"
#include "io/formats.hpp"
#include "io/reading_notes.hpp"
#include "io/text.hpp"
#include "io/useless_options.hpp"

namespace tessera::io {
namespace {

/// Data that comes from no file.
struct Scheme {
  std::string_view prefix;
  std::vector<CatalogueEntry> (*names)();
  Dataset (*open)(const std::string& name, const Progress& progress);
};

constexpr Scheme schemes[] = {
    {"embedded:", embedded_datasets,
     [](const std::string& name, const Progress&) { return embedded_dataset(name); }},
    {"generate:", generator_kinds, generate_dataset},
    {"twin:", twins, twin},
};

/// "use embedded:karate" where the name is one of those, else a hint about what can be opened.
std::string hint_for_missing(const std::string& source) {
  const std::string word = source.substr(0, source.find('?'));
  for (const Scheme& scheme : schemes) {
    for (const CatalogueEntry& entry : scheme.names()) {
      if (entry.name == word || entry.name == stem_of(word)) {
        const std::string& name = entry.name == word ? source : entry.name;
        return scheme.prefix == "twin:"
                   ? fmt::format("for a random graph of that size, not the data, use twin:{}", name)
                   : fmt::format("for the data set of that name use {}{}", scheme.prefix, name);
      }
    }
  }
  return "give the name of a file, or embedded:NAME, generate:KIND or twin:NAME";
}

enum class For { reading, writing };

std::string list_of_formats(For purpose) {
  std::vector<std::string> lines;
  for (const FileFormat& format : file_formats()) {
    if (purpose == For::writing && format.write == nullptr) continue;
    lines.push_back(fmt::format("{} ({})", format.name, format.endings));
  }
  return fmt::format("{}", fmt::join(lines, ", "));
}

/// The begin of a file, unpacked if it is gzipped.
std::string first_bytes(const std::string& path) {
  const InputFile file(path);
  Buffer<std::byte> first(std::min(file.size(), bytes_to_recognise));
  file.read(0, first.span());
  const auto as_text = [](std::span<const std::byte> bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  if (!looks_gzipped(first.span())) return as_text(first.span());
  Buffer<std::byte> unpacked(bytes_to_recognise);
  const auto step = Inflater(DeflateFormat::gzip, path).advance(first.span(), unpacked.span());
  return as_text(unpacked.span().first(step.produced));
}

const FileFormat& format_called(const std::string& key) {
  for (const FileFormat& format : file_formats()) {
    if (format.key == key) return format;
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("there is no format '{}'", key), "--format",
              fmt::format("use one of {}", fmt::join(format_names(), ", ")));
}

const FileFormat& recognise(const std::string& path) {
  std::error_code ignored;  // What is not to be looked at is no folder, and opening it says why.
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  const std::string first = is_folder ? std::string() : first_bytes(path);
  for (const FileFormat& format : file_formats()) {
    if (format.recognises({path, is_folder, first})) return format;
  }
  if (is_folder) {
    if (holds_relational(path) || holds_triples(path)) {
      throw Error(ErrorCode::unsupported, "is a folder of relations, not of one graph", path,
                  "give it to info, train and predict alone (docs/relations.md)");
    }
    throw Error(ErrorCode::io, "is a folder, and none of a data set that is known", path,
                "give the name of a file, or of a folder of the Open Graph Benchmark "
                "(raw/edge.csv.gz) or of the TU collection (NAME_A.txt)");
  }
  throw Error(ErrorCode::unsupported, "the format of the file is not known", path,
              "give one of " + list_of_formats(For::reading));
}

bool has_ending(const std::string& path, const FileFormat& format) {
  LineScanner endings(format.endings);
  while (!endings.at_end()) {
    if (path.ends_with(endings.word())) return true;
  }
  return false;
}

const FileFormat& format_by_ending(const std::string& path) {
  for (const FileFormat& format : file_formats()) {
    if (format.write != nullptr && has_ending(path, format)) return format;
  }
  throw Error(ErrorCode::invalid_argument, "the ending does not say which format to write", path,
              "use one of " + list_of_formats(For::writing));
}

Dataset without_all_but_graph(const Dataset& dataset) {
  Dataset bare;
  bare.name = dataset.name;
  bare.graph = dataset.graph.with_edge_ids({});
  bare.edges_stored = dataset.edges_stored;
  return bare;
}

/// True for a data set that is its graph, where the graph is its entries.
bool is_graph_alone(const Dataset& dataset) {
  return !dataset.graph.has_edge_ids() &&
         std::holds_alternative<std::monostate>(dataset.features) &&
         std::holds_alternative<std::monostate>(dataset.labels) && dataset.train.empty() &&
         dataset.validation.empty() && dataset.test.empty() && dataset.graph_ids.empty() &&
         dataset.graph_labels.empty() && dataset.vertex_names.empty() &&
         dataset.class_names.empty() && dataset.feature_names.empty() && dataset.extras.empty() &&
         dataset.edge_features.matrix == nullptr && dataset.targets.empty() &&
         dataset.graph_targets.empty();
}

}  // namespace

Dataset open(const std::string& source, const ReadOptions& options) {
  for (const Scheme& scheme : schemes) {
    if (source.starts_with(scheme.prefix)) {
      reject_table_options(options, source, "no file");
      return scheme.open(source.substr(scheme.prefix.size()), options.progress);
    }
  }
  std::error_code problem;
  if (!source.empty() && source != "-" &&
      std::filesystem::status(source, problem).type() == std::filesystem::file_type::not_found) {
    throw Error(ErrorCode::io, "there is no such file", source, hint_for_missing(source));
  }
  const FileFormat& format =
      options.format.empty() ? recognise(source) : format_called(options.format);
  if (format.read != read_edge_list) {
    reject_table_options(options, source, fmt::format("a {}", format.name));
  }
  Dataset dataset = format.read(source, options);
  note_contents(dataset);
  return dataset;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const FileFormat& format : file_formats()) names.emplace_back(format.key);
  return names;
}

void require_known_ending(const std::string& path) { format_by_ending(path); }

void save(const Dataset& dataset, const std::string& path, bool graph_only,
          const Progress& progress) {
  const FileFormat& format = format_by_ending(path);
  if (!graph_only && !format.holds_everything && !is_graph_alone(dataset)) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{} files hold the graph alone, but there is more to save", format.name), path,
        "save as .npz or .tsr, or ask for the graph only (--graph-only)");
  }
  format.write(graph_only ? without_all_but_graph(dataset) : dataset, path, progress);
}

}  // namespace tessera::io
