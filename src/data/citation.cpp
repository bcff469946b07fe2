// SPDX-License-Identifier: Apache-2.0
#include "data/citation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "tessera/graph/build.hpp"

#include "data/links.hpp"
#include "graph/index_shuffle.hpp"
#include "graph/random_use.hpp"

namespace tessera::data {
namespace {

using generate::DrawSequence;

constexpr std::uint64_t seed = 2708;
constexpr VertexId num_papers = 2708;
constexpr std::size_t num_links = 5278;
constexpr VertexId num_words = 1433;
constexpr VertexId num_topics = 7;
constexpr std::array<std::size_t, num_topics> topic_sizes = {818, 426, 418, 351, 298, 217, 180};

// Chosen so that a classifier that sees the words alone is right in a bit more than half of the
// cases, and one that also sees the links in four of five.
constexpr double same_topic_link = 0.66;
constexpr double topical_word = 0.34;

struct Papers {
  std::vector<std::int64_t> topic;              ///< of each paper
  std::vector<std::vector<VertexId>> by_topic;  ///< the papers of each, the most cited first
};

Papers draw_papers() {
  Papers papers{std::vector<std::int64_t>(num_papers), {}};
  const IndexShuffle order(num_papers, Random(seed, generate::draw_labels));
  std::uint64_t rank = 0;
  for (const std::size_t size : topic_sizes) {
    std::vector<VertexId>& members = papers.by_topic.emplace_back();
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint64_t paper = order(rank++);
      papers.topic[paper] = static_cast<std::int64_t>(papers.by_topic.size()) - 1;
      members.push_back(static_cast<VertexId>(paper));
    }
  }
  return papers;
}

/// Most links go to papers of the same topic, and to the much cited ones among them.
VertexId draw_cited(const Papers& papers, VertexId citing, DrawSequence& draws) {
  auto topic = static_cast<std::size_t>(papers.topic[static_cast<std::size_t>(citing)]);
  if (draws.uniform() >= same_topic_link) {
    const auto step = static_cast<std::size_t>(1 + draws.below(num_topics - 1));
    topic = (topic + step) % num_topics;
  }
  const std::vector<VertexId>& members = papers.by_topic[topic];
  const double popular = std::pow(draws.uniform(), 2.5);
  return members[static_cast<std::size_t>(popular * static_cast<double>(members.size()))];
}

Graph draw_links(const Papers& papers) {
  DrawSequence draws(Random(seed, generate::draw_edges), 0);
  std::set<std::pair<VertexId, VertexId>> links;
  for (VertexId next = 0; links.size() < num_links;) {
    // Every paper gets a link first; the rest go to papers drawn evenly.
    const VertexId citing = next < num_papers ? next : draws.below(num_papers);
    const VertexId cited = draw_cited(papers, citing, draws);
    if (cited == citing) continue;
    links.insert(std::minmax(citing, cited));
    ++next;
  }
  return graph_of_links(num_papers, links);
}

/// A word of the topic's own, or of the common stock; low numbers are the frequent words.
VertexId draw_word(VertexId topic, DrawSequence& draws) {
  constexpr VertexId words_per_topic = num_words / num_topics;
  const bool is_topical = draws.uniform() < topical_word;
  const double frequent = std::pow(draws.uniform(), 1.5);
  if (!is_topical) return static_cast<VertexId>(frequent * num_words);
  return static_cast<VertexId>(frequent * words_per_topic) * num_topics + topic;
}

SparseFeatures draw_words(const Papers& papers) {
  std::vector<VertexId> rows;
  std::vector<VertexId> words;
  const Random random(seed, generate::draw_words);
  for (VertexId paper = 0; paper < num_papers; ++paper) {
    const auto index = static_cast<std::size_t>(paper);
    DrawSequence draws(random, index);
    const VertexId count = 9 + draws.below(20);
    for (VertexId i = 0; i < count; ++i) {
      rows.push_back(paper);
      words.push_back(draw_word(static_cast<VertexId>(papers.topic[index]), draws));
    }
  }
  const Graph pattern =
      from_coo(num_papers, num_words, rows, words, {}, {.duplicates = Duplicates::first});
  return pattern.with_values(Buffer<float>(pattern.num_edges(), 1.0F));
}

/// Twenty papers of each topic to train, the next 500 to validate, the last 1,000 to test.
void split(Dataset& dataset, const Papers& papers) {
  constexpr int trained_per_topic = 20;
  constexpr std::size_t num_validated = 500;
  constexpr VertexId first_tested = num_papers - 1000;
  std::array<int, num_topics> trained{};
  std::vector<std::int64_t> train, validation, test;
  for (VertexId paper = 0; paper < num_papers; ++paper) {
    const auto topic = static_cast<std::size_t>(papers.topic[static_cast<std::size_t>(paper)]);
    if (paper >= first_tested) {
      test.push_back(paper);
    } else if (trained[topic] < trained_per_topic) {
      ++trained[topic];
      train.push_back(paper);
    } else if (validation.size() < num_validated) {
      validation.push_back(paper);
    }
  }
  dataset.train = std::move(train);
  dataset.validation = std::move(validation);
  dataset.test = std::move(test);
}

}  // namespace

Dataset citation() {
  const Papers papers = draw_papers();
  Dataset result;
  result.graph = draw_links(papers);
  result.features = draw_words(papers);
  result.labels = ClassLabels(papers.topic);
  split(result, papers);
  return result;
}

}  // namespace tessera::data
