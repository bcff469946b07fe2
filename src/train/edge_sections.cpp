// SPDX-License-Identifier: Apache-2.0
#include "train/edge_sections.hpp"

#include <string_view>
#include <utility>

#include "tessera/core/error.hpp"

#include "io/dataset_arrays.hpp"
#include "io/sections.hpp"

namespace tessera::train {
namespace {

constexpr const char* normalise = "edge_normalise";
constexpr const char* means = "edge_feature_means";
constexpr const char* factors = "edge_feature_factors";
constexpr const char* name_bytes = "edge_feature_names";
constexpr const char* name_ends = "edge_feature_name_ends";
constexpr const char* prefixes = "edge_category_prefixes";
constexpr const char* fills = "edge_feature_fills";

std::vector<double> read_doubles(io::ArrayReader& array) {
  const auto numbers =
      io::read_exact<double>(array, "must be numbers of double precision in one dimension");
  return {numbers.begin(), numbers.end()};
}

Normalise read_normalise(io::ArrayReader& array) {
  const std::string text = io::read_text(array);
  for (const Normalise kind : {Normalise::off, Normalise::rows, Normalise::standard}) {
    if (text == to_string(kind)) return kind;
  }
  array.reject("names no way to normalise");
}

}  // namespace

bool EdgeSections::take(io::ArrayReader& array) {
  const std::string_view name = array.name();
  if (name == normalise) {
    normalisation_.kind = read_normalise(array);
  } else if (name == means) {
    normalisation_.means = read_doubles(array);
  } else if (name == factors) {
    normalisation_.factors = read_doubles(array);
  } else if (name == name_bytes) {
    name_bytes_ = io::read_text(array);
  } else if (name == name_ends) {
    name_ends_ = io::read_vector<std::int64_t>(array);
  } else if (name == prefixes) {
    input_.category_prefixes = io::read_vector<std::int32_t>(array);
  } else if (name == fills) {
    const SharedArray<float> values = io::read_vector<float>(array);
    input_.means.assign(values.begin(), values.end());
  } else {
    return false;
  }
  return true;
}

void EdgeSections::give(const std::string& path, Checkpoint& checkpoint) {
  io::naming_file(path, [&] {
    input_.feature_names =
        Names(name_ends_, std::vector<std::uint8_t>(name_bytes_.begin(), name_bytes_.end()));
  });
  checkpoint.edge_input = std::move(input_);
  checkpoint.edge_normalisation = std::move(normalisation_);
}

void add_edge_sections(const Checkpoint& checkpoint, std::vector<io::NamedArray>& arrays) {
  if (!nn::reads_edges(checkpoint.model)) return;
  const Normalisation& normalisation = checkpoint.edge_normalisation;
  arrays.emplace_back(normalise, io::stored_text(to_string(normalisation.kind)));
  if (normalisation.kind == Normalise::standard) {
    arrays.emplace_back(means, io::stored(SharedArray<double>(normalisation.means)));
    arrays.emplace_back(factors, io::stored(SharedArray<double>(normalisation.factors)));
  }
  const ModelInput& input = checkpoint.edge_input;
  if (input.feature_names.empty()) return;
  arrays.emplace_back(name_bytes, io::stored(input.feature_names.bytes()));
  arrays.emplace_back(name_ends, io::stored(input.feature_names.ends()));
  arrays.emplace_back(fills, io::stored(SharedArray<float>(input.means)));
  if (input.category_prefixes.empty()) return;
  arrays.emplace_back(prefixes, io::stored(input.category_prefixes));
}

}  // namespace tessera::train
