// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/embedded.hpp"

#include <array>
#include <cstdint>
#include <vector>

#include "core/names.hpp"
#include "data/citation.hpp"
#include "data/links.hpp"

namespace tessera {
namespace {

struct Friendship {
  std::int8_t a, b;
};

/// Who met whom outside the club (Zachary 1977), members numbered from 0.
constexpr std::array<Friendship, 78> karate_friendships = {
    {{0, 1},   {0, 2},   {0, 3},   {0, 4},   {0, 5},   {0, 6},   {0, 7},   {0, 8},   {0, 10},
     {0, 11},  {0, 12},  {0, 13},  {0, 17},  {0, 19},  {0, 21},  {0, 31},  {1, 2},   {1, 3},
     {1, 7},   {1, 13},  {1, 17},  {1, 19},  {1, 21},  {1, 30},  {2, 3},   {2, 7},   {2, 8},
     {2, 9},   {2, 13},  {2, 27},  {2, 28},  {2, 32},  {3, 7},   {3, 12},  {3, 13},  {4, 6},
     {4, 10},  {5, 6},   {5, 10},  {5, 16},  {6, 16},  {8, 30},  {8, 32},  {8, 33},  {9, 33},
     {13, 33}, {14, 32}, {14, 33}, {15, 32}, {15, 33}, {18, 32}, {18, 33}, {19, 33}, {20, 32},
     {20, 33}, {22, 32}, {22, 33}, {23, 25}, {23, 27}, {23, 29}, {23, 32}, {23, 33}, {24, 25},
     {24, 27}, {24, 31}, {25, 31}, {26, 29}, {26, 33}, {27, 33}, {28, 31}, {28, 33}, {29, 32},
     {29, 33}, {30, 32}, {30, 33}, {31, 32}, {31, 33}, {32, 33}}};

/// The four communities that modularity finds.
constexpr std::array<std::int64_t, 34> karate_communities = {0, 0, 0, 0, 1, 1, 1, 0, 2, 0, 1, 0,
                                                             0, 0, 2, 2, 1, 0, 2, 0, 2, 0, 2, 3,
                                                             3, 3, 2, 3, 3, 2, 2, 3, 2, 2};

Dataset karate() {
  constexpr auto members = static_cast<VertexId>(karate_communities.size());
  Dataset result;
  result.graph = data::graph_of_links(members, karate_friendships);
  result.labels =
      ClassLabels(std::vector<std::int64_t>(karate_communities.begin(), karate_communities.end()));
  return result;
}

struct Embedded {
  const char* name;
  const char* summary;
  Dataset (*build)();
};

constexpr std::array all_embedded = {
    Embedded{"karate", "Zachary's karate club: 34 vertices, 156 edges, 4 classes", karate},
    Embedded{"citation",
             "a made-up citation network of Cora's size: 2,708 vertices, 10,556 edges, 1,433 "
             "sparse features, 7 classes, split 140 / 500 / 1,000",
             data::citation},
};

}  // namespace

std::vector<CatalogueEntry> embedded_datasets() {
  std::vector<CatalogueEntry> entries;
  for (const Embedded& set : all_embedded) entries.push_back({set.name, set.summary});
  return entries;
}

Dataset embedded_dataset(const std::string& name) {
  Dataset result =
      find_named(all_embedded, name, "embedded data set", "embedded", "there are ").build();
  result.name = name;
  return result;
}

}  // namespace tessera
