// SPDX-License-Identifier: Apache-2.0
#include "link_options.hpp"

#include <cmath>

#include <fmt/format.h>

#include "options.hpp"
#include "tessera/core/error.hpp"

namespace tessera::app {
namespace {

constexpr const char* link_flags[] = {
    "--decoder",        "--embedding",       "--variational", "--margin",
    "--supervision",    "--edge-time",       "--negatives",   "--negatives-per-link",
    "--avoid-held-out", "--pairs-per-batch", "--top-k"};

/// Where links are learned, there are no labels, and every step sees the whole graph.
constexpr const char* class_flags[] = {"--label",
                                       "--class-weights",
                                       "--split-index",
                                       "--folds",
                                       "--split-column",
                                       "--readout",
                                       "--bits",
                                       "--precompute",
                                       "--batch",
                                       "--parts",
                                       "--method",
                                       "--parts-per-batch",
                                       "--partition",
                                       "--pattern",
                                       "--graphs-per-batch",
                                       "--batch-size",
                                       "--fanout",
                                       "--walk-length",
                                       "--rows-at-a-time",
                                       "--replace",
                                       "--split-by-time",
                                       "--process-every-step",
                                       "--baseline",
                                       "--report"};

}  // namespace

void add_link_options(Arguments& app, LinkArguments& a) {
  const std::string group = "Links (--task links)";
  app.add_option("--decoder", a.decoder,
                 "how the score of a pair comes from the embeddings of its ends: dot (default), "
                 "distmult (dot with learned weights), or mlp, which tells directions apart")
      ->type_name("NAME")
      ->check(offers({"dot", "distmult", "mlp"}))
      ->group(group);
  app.add_option("--embedding", a.embedding, "numbers of an embedding (default 16)")
      ->type_name("N")
      ->group(group);
  app.add_flag("--variational", a.variational,
               "the encoder says a mean and a deviation for each number, of which training draws "
               "embeddings (a variational auto-encoder)")
      ->group(group);
  app.add_option("--loss", a.loss,
                 "links: bce (default), yes or no for each pair, bpr, links before pairs that are "
                 "none, or margin, the same until it is by --margin; numbers: squared (default), "
                 "absolute or huber")
      ->type_name("NAME")
      ->check(offers({"bce", "bpr", "margin", "squared", "absolute", "huber"}))
      ->group(group);
  app.add_option("--margin", a.margin, "how far links are to be before others (default 1)")
      ->type_name("NUMBER")
      ->group(group);
  app.add_option("--supervision", a.supervision,
                 "share of the training links that are asked for and carry no messages (default 0: "
                 "all of them do both)")
      ->type_name("SHARE")
      ->group(group);
  app.add_option("--edge-time", a.time,
                 "column of an edge list with numbers that grow with time: the latest links are "
                 "for the test, those before them for validation")
      ->type_name("COLUMN")
      ->group(group);
  app.add_option("--negatives", a.negatives,
                 "pairs without an edge that training draws: uniform (default), by-source (another "
                 "target of the same source) or by-degree (the same, by the targets' degrees)")
      ->type_name("KIND")
      ->check(offers({"uniform", "by-source", "by-degree"}))
      ->group(group);
  app.add_option("--negatives-per-link", a.per_positive, "how many of them (default 1)")
      ->type_name("N")
      ->group(group);
  app.add_option("--pairs-per-batch", a.pairs_per_batch,
                 "most links that a step asks for (default 0: all of them)")
      ->type_name("N")
      ->group(group);
  app.add_flag("--avoid-held-out", a.avoids_held_out,
               "draw none of them that is held out, as PyG's RandomLinkSplit does")
      ->group(group);
  app.add_option("--top-k", a.top,
                 "the length of the lists that recall and NDCG are measured on (default 20)")
      ->type_name("K")
      ->group(group);
}

void apply(const LinkArguments& a, const std::optional<train::SplitShares>& split,
           train::LinkOptions& options) {
  if (a.decoder) options.decoder = nn::parse_link_decoder(*a.decoder);
  if (a.loss) options.loss = train::parse_link_loss(*a.loss);
  if (a.negatives) options.negatives = train::parse_negatives(*a.negatives);
  options.embedding = a.embedding.value_or(options.embedding);
  options.per_positive = a.per_positive.value_or(options.per_positive);
  options.pairs_per_batch = a.pairs_per_batch.value_or(options.pairs_per_batch);
  options.margin = a.margin.value_or(options.margin);
  options.shares.supervision = a.supervision.value_or(options.shares.supervision);
  options.time = a.time;
  options.top = a.top.value_or(options.top);
  options.avoids_held_out = a.avoids_held_out;
  options.variational = a.variational;
  if (!split) return;
  if (std::abs(split->train + split->validation + split->test - 1) > 1e-9) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("shares of links sum to {:g}", split->train + split->validation + split->test),
        "--split", "give three that sum to 1, such as 0.85,0.05,0.1");
  }
  options.shares.validation = split->validation;
  options.shares.test = split->test;
}

std::vector<Useless> useless_beside(const train::TrainOptions& options) {
  std::vector<Useless> useless;
  const bool links = options.task == train::Task::links;
  const bool numbers = options.task == train::Task::numbers;
  const char* const of_links = numbers ? "where numbers are learned" : "where classes are learned";
  for (const char* flag : link_flags) {
    useless.push_back({flag, !links, of_links, "use --task links"});
  }
  if (links) {
    useless.push_back({"--margin", options.links.loss != train::LinkLoss::margin,
                       std::string("with the loss ") + train::to_string(options.links.loss),
                       "use --loss margin"});
  }
  for (const char* flag : class_flags) {
    useless.push_back({flag, links, "where links are learned", ""});
  }
  useless.push_back(
      {"--loss", !links && !numbers, "where classes are learned", "use --task links or numbers"});
  for (const char* flag : {"--huber-delta", "--raw-targets"}) {
    useless.push_back({flag, !numbers, "where no numbers are learned", "use --task numbers"});
  }
  for (const char* flag :
       {"--class-weights", "--label-smoothing", "--bits", "--baseline", "--report"}) {
    useless.push_back({flag, numbers, "where numbers are learned", ""});
  }
  return useless;
}

}  // namespace tessera::app
