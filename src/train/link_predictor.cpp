// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/link_predictor.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/nn/link_model.hpp"
#include "tessera/train/predictor.hpp"

#include "train/link_lists.hpp"
#include "train/link_scores.hpp"

namespace tessera::train {
namespace {

using links::Pairs;

constexpr std::string_view encoder_prefix = "encoder.", decoder_prefix = "decoder.";
/// Pairs that are scored at a time.
constexpr std::int64_t pairs_at_once = std::int64_t{1} << 20;

[[noreturn]] void reject(const std::string& problem, const std::string& fix) {
  throw Error(ErrorCode::invalid_argument, problem, "link prediction", fix);
}

std::vector<StoredTensor> part_of(const std::vector<StoredTensor>& tensors,
                                  std::string_view prefix) {
  std::vector<StoredTensor> part;
  for (const StoredTensor& tensor : tensors) {
    if (!tensor.path.starts_with(prefix)) continue;
    part.push_back({tensor.path.substr(prefix.size()), tensor.array});
  }
  return part;
}

/// The encoder as a model of its own, whose outputs are the embeddings.
Checkpoint encoder_of(const Checkpoint& checkpoint) {
  if (!checkpoint.decoder) {
    reject("the checkpoint predicts classes, not links", "train it with --task links");
  }
  Checkpoint encoder = checkpoint;
  encoder.decoder.reset();
  encoder.variational = false;
  encoder.kinds = {};
  if (is_of_lists(encoder.metric)) encoder.metric = Metric::roc_auc;
  encoder.weights = part_of(checkpoint.weights, encoder_prefix);
  for (RunState& run : encoder.runs) {
    run.model = part_of(run.model, encoder_prefix);
    run.moments.clear();
  }
  return encoder;
}

bool is_directed(const Checkpoint& checkpoint) {
  return !checkpoint.input.graph || checkpoint.input.graph->directed;
}

void require_vertices(std::span<const VertexId> vertices, VertexId count) {
  for (const VertexId vertex : vertices) {
    if (vertex >= 0 && vertex < count) continue;
    reject(fmt::format("vertex {} of {}", vertex, count), "number vertices as the data does");
  }
}

}  // namespace

struct LinkPredictor::State {
  State(const Checkpoint& checkpoint, const Dataset& dataset, const PredictOptions& options)
      : graph(dataset.graph),
        candidates{checkpoint.kinds.given()
                       ? num_of_first_kind(dataset.vertex_names, checkpoint.kinds)
                       : VertexId{0},
                   dataset.graph.num_rows()},
        placement(options.placement),
        decoder(*checkpoint.decoder, embedding_width(checkpoint), options.placement),
        both_ways(!decoder.is_symmetric() && !is_directed(checkpoint)),
        on_device(options.placement),
        workspace(options.placement.place()) {
    restore(part_of(checkpoint.weights, decoder_prefix), decoder.state(), "checkpoint");
    decoder.round_parameters(placement.stream);
  }

  std::vector<float> scores(const Pairs& pairs) {
    const AskedPairs asked({pairs}, both_ways, placement.place());
    step::Context context;
    context.pairs = asked.pairs();
    context.stream = placement.stream;
    context.workspace = &workspace;
    return asked.scores(decoder.forward(on_device, context), placement.stream);
  }

  /// The best of all pairs of one source, where scores are no dot products.
  void rank_all(VertexId source, std::span<const VertexId> without, std::int64_t row,
                links::TopLists& lists) {
    std::vector<std::pair<float, VertexId>> found;
    for (std::int64_t first = 0; first < candidates.count(); first += pairs_at_once) {
      const std::int64_t last = std::min<std::int64_t>(candidates.count(), first + pairs_at_once);
      Pairs pairs;
      for (auto candidate = static_cast<VertexId>(first); candidate < last; ++candidate) {
        if (std::binary_search(without.begin(), without.end(), candidate)) continue;
        pairs.sources.push_back(source);
        pairs.targets.push_back(candidates.first + candidate);
      }
      const std::vector<float> scores = this->scores(pairs);
      for (std::size_t i = 0; i < scores.size(); ++i) {
        found.emplace_back(-scores[i], pairs.targets[i]);
      }
    }
    const std::int64_t count = std::min<std::int64_t>(std::ssize(found), lists.scores.cols());
    std::partial_sort(found.begin(), found.begin() + count, found.end());
    for (std::int64_t i = 0; i < count; ++i) {
      lists.scores(row, i) = -found[static_cast<std::size_t>(i)].first;
      lists.candidates(row, i) = found[static_cast<std::size_t>(i)].second;
    }
  }

  links::TopLists top(std::span<const VertexId> sources, std::int64_t count, bool keeps_known) {
    const Graph without = left_out_of_lists(sources, keeps_known ? nullptr : &graph, candidates);
    if (decoder.is_symmetric()) {
      links::TopLists lists =
          link_lists(embeddings, sources, decoder, candidates, without, count, placement.place());
      for (std::int64_t i = 0; i < lists.candidates.size(); ++i) {
        VertexId& vertex = lists.candidates.data()[i];
        if (vertex >= 0) vertex += candidates.first;
      }
      return lists;
    }
    if (count < 1) reject(fmt::format("lists of {}", count), "ask for one at least");
    links::TopLists lists{
        Matrix<VertexId>(std::ssize(sources), count, -1),
        Matrix<float>(std::ssize(sources), count, -std::numeric_limits<float>::infinity())};
    for (std::int64_t i = 0; i < std::ssize(sources); ++i) {
      rank_all(sources[static_cast<std::size_t>(i)], without.neighbours(static_cast<VertexId>(i)),
               i, lists);
    }
    return lists;
  }

  Graph graph;
  Candidates candidates;
  step::Placement placement;
  nn::LinkDecoder decoder;
  bool both_ways;  ///< each pair is asked for
  Matrix<float> embeddings;
  step::Tensor on_device;  ///< the same, as the decoder reads them
  ops::DenseWorkspace workspace;
  std::vector<std::string> notes;
};

LinkPredictor::LinkPredictor(const Checkpoint& checkpoint, const Dataset& dataset,
                             const PredictOptions& options) {
  Predictor encoder(encoder_of(checkpoint), dataset, options);
  state_ = std::make_unique<State>(checkpoint, dataset, options);
  Matrix<float> rows(encoder.num_items(), encoder.num_outputs());
  encoder.run(rows);
  state_->embeddings = checkpoint.variational ? means_of(rows) : std::move(rows);
  state_->on_device.upload(state_->embeddings, options.placement.stream);
  state_->notes = encoder.notes();
}
LinkPredictor::LinkPredictor(LinkPredictor&&) noexcept = default;
LinkPredictor& LinkPredictor::operator=(LinkPredictor&&) noexcept = default;
LinkPredictor::~LinkPredictor() = default;

const Matrix<float>& LinkPredictor::embeddings() const noexcept { return state_->embeddings; }
const std::vector<std::string>& LinkPredictor::notes() const noexcept { return state_->notes; }

std::vector<float> LinkPredictor::scores(const Pairs& pairs) {
  require_vertices(pairs.sources, state_->graph.num_rows());
  require_vertices(pairs.targets, state_->graph.num_rows());
  std::vector<float> scores;
  for (std::int64_t first = 0; first < pairs.size(); first += pairs_at_once) {
    const std::int64_t last = std::min(pairs.size(), first + pairs_at_once);
    const std::vector<float> block =
        state_->scores({{pairs.sources.begin() + first, pairs.sources.begin() + last},
                        {pairs.targets.begin() + first, pairs.targets.begin() + last}});
    scores.insert(scores.end(), block.begin(), block.end());
  }
  return scores;
}

links::TopLists LinkPredictor::top(std::span<const VertexId> sources, std::int64_t count,
                                   bool keeps_known) {
  require_vertices(sources, state_->graph.num_rows());
  return state_->top(sources, count, keeps_known);
}

}  // namespace tessera::train
