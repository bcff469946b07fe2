// SPDX-License-Identifier: Apache-2.0
#include "suggest.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tessera::app {
namespace {

// Letters to insert, delete or replace to turn one word into the other.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

// What other programs call what is meant.
constexpr std::pair<const char*, const char*> other_words[] = {
    {"--learning-rate", "--lr"},   {"--num-layers", "--layers"}, {"--hidden-channels", "--hidden"},
    {"--hidden-size", "--hidden"}, {"--num-heads", "--heads"},   {"--num-epochs", "--epochs"},
    {"--dataset", "--data"},       {"--input", "--data"},        {"--graph", "--data"},
    {"--out", "--output"},         {"--gpu", "--device"},        {"--cuda", "--device"},
    {"--overwrite", "--force"},    {"--num-parts", "--parts"},   {"--patience", "--early-stopping"},
    {"--batch-size", "--batch"},   {"--repeats", "--runs"},      {"--aggr", "--aggregation"},
};

}  // namespace

std::string suggestion(const std::string& typed, const std::vector<std::string>& known) {
  constexpr std::size_t tolerated_errors = 2;
  for (const auto& [elsewhere, here] : other_words) {
    if (typed != elsewhere || std::find(known.begin(), known.end(), here) == known.end()) continue;
    return std::string("did you mean '") + here + "'?";
  }
  std::string nearest;
  std::size_t least = tolerated_errors + 1;
  for (const std::string& name : known) {
    const std::size_t distance = edit_distance(typed, name);
    if (distance < least && distance < name.size()) {
      least = distance;
      nearest = name;
    }
  }
  return nearest.empty() ? std::string() : "did you mean '" + nearest + "'?";
}

}  // namespace tessera::app
