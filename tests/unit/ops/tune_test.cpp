// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "ops/plan/tune.hpp"
#include "support/kernel_names.hpp"
#include "support/odd_graphs.hpp"
#include "tessera/core/device.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/edge_softmax.hpp"
#include "tessera/ops/plan_store.hpp"
#include "tessera/ops/sddmm.hpp"
#include "tessera/ops/spmm.hpp"

/// Plans that measure, on every device there is: they choose something that can run, tell what they
/// saw, and choose the same again from a store. Which kernel is the fastest is not asked.
namespace tessera::ops {
namespace {

struct OnDevice {
  Device device;
  std::vector<Precision> precisions;
};

std::vector<OnDevice> devices() {
  std::vector<OnDevice> all = {{{}, {Precision::fp32, Precision::fp64, Precision::bf16}}};
  if (num_gpus() > 0) {
    all.push_back({{DeviceKind::cuda, 0}, {Precision::fp32, Precision::bf16, Precision::fp16}});
  }
  return all;
}

std::string chosen_in(const Explanation& explanation) {
  std::string chosen;
  double best = 0;
  bool timed = false;
  for (const Candidate& candidate : explanation.candidates) {
    timed = timed || candidate.measured_us > 0;
    if (candidate.verdict != "chosen") continue;
    chosen = candidate.kernel;
    best = candidate.measured_us;
  }
  EXPECT_FALSE(chosen.empty());
  for (const Candidate& candidate : explanation.candidates) {
    if (candidate.measured_us > 0) {
      EXPECT_LE(best, candidate.measured_us) << candidate.kernel;
    }
  }
  if (timed) {
    EXPECT_GT(best, 0);
  }
  return chosen;
}

/// Makes a plan twice, measuring and from the store that the first filled. `explain` takes options.
template <class Options, class Explain>
void expect_same_choice_again(Options options, const OnDevice& place, Explain&& explain) {
  for (const Precision precision : place.precisions) {
    SCOPED_TRACE(to_string(place.device) + ", " + to_string(precision));
    options.device = place.device;
    options.precision = precision;
    options.tune = Tune::measured;
    options.store = std::make_shared<PlanStore>();
    options.stored_only = false;
    try {
      const std::string kernel = chosen_in(explain(options));
      options.tune = Tune::predicted;
      options.stored_only = true;
      EXPECT_EQ(chosen_in(explain(options)), kernel);
    } catch (const Error& error) {
      // What a GPU does not have yet.
      EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
      EXPECT_EQ(place.device.kind, DeviceKind::cuda);
    }
  }
}

std::vector<Graph> graphs() {
  return {Graph(), testing::random_graph(33, 40, 300, 7, false), testing::hub_graph(3, 2500, 8)};
}

TEST(TuneOnDevice, MeasuredPlansOfSpmm) {
  for (const OnDevice& place : devices()) {
    for (const Graph& graph : graphs()) {
      for (const Reduction reduction : {Reduction::sum, Reduction::mean, Reduction::max}) {
        SpmmOptions options;
        options.reduction = reduction;
        options.features = 33;
        expect_same_choice_again(options, place, [&](const SpmmOptions& with) {
          return plan_spmm(graph, with).explain();
        });
        options.backward = true;
        expect_same_choice_again(options, place, [&](const SpmmOptions& with) {
          return *find_child(plan_spmm(graph, with).explain(), "backward");
        });
      }
    }
  }
}

TEST(TuneOnDevice, MeasuredPlansOfSddmm) {
  for (const OnDevice& place : devices()) {
    for (const Graph& graph : graphs()) {
      SddmmOptions options;
      options.features = 16;
      options.heads = 2;
      expect_same_choice_again(options, place, [&](const SddmmOptions& with) {
        return plan_sddmm(graph, with).explain();
      });
    }
  }
}

TEST(TuneOnDevice, MeasuredPlansOfEdgeSoftmax) {
  for (const OnDevice& place : devices()) {
    for (const Graph& graph : graphs()) {
      EdgeSoftmaxOptions options;
      options.heads = 3;
      expect_same_choice_again(options, place, [&](const EdgeSoftmaxOptions& with) {
        return plan_edge_softmax(graph, with).explain();
      });
    }
  }
}

TEST(TuneOnDevice, MeasuredPlansOfAttention) {
  for (const OnDevice& place : devices()) {
    for (const Graph& graph : graphs()) {
      for (const AttentionForm form :
           {AttentionForm::gat, AttentionForm::gatv2, AttentionForm::dot}) {
        AttentionOptions options;
        options.form = form;
        options.features = 16;
        options.heads = 2;
        options.backward = true;
        expect_same_choice_again(options, place, [&](const AttentionOptions& with) {
          return plan_attention(graph, with).explain();
        });
      }
    }
  }
}

/// A plan keeps what was prepared for the first of equals: it has to name the same.
TEST(Tune, OfEquallyFastOffersTheFirstTimedIsTheFastest) {
  const KernelInfo info{"toy/cpu/one", "", "toy", DeviceKind::cpu, true};
  std::vector<Offer> offers(3);
  for (Offer& offer : offers) offer.info = &info;
  offers[0].predicted_us = 3;
  offers[1].predicted_us = 2;
  offers[2].predicted_us = 1;
  std::vector<std::size_t> kept;
  const std::array<double, 3> measured_us = {5, 5, 6};
  const auto time = [&](std::size_t index, TimeLimit& limit) {
    if (measured_us[index] < limit.best_us) kept.push_back(index);
    return measured_us[index];
  };
  EXPECT_EQ(tune_offers(offers, {}, time), 1u);
  EXPECT_EQ(kept, (std::vector<std::size_t>{2, 1}));
}

TEST(Tune, ReturnsNoOfferWhereThereIsNoChoice) {
  const KernelInfo info{"toy/cpu/one", "", "toy", DeviceKind::cpu, true};
  std::vector<Offer> offers(1);
  offers[0].info = &info;
  EXPECT_EQ(tune_offers(offers, {}, [](std::size_t, TimeLimit&) { return 1.0; }), 1u);
}

TEST(Tune, NamesAreReadBack) {
  EXPECT_EQ(parse_tune("measured"), Tune::measured);
  EXPECT_EQ(parse_tune(to_string(Tune::predicted)), Tune::predicted);
  EXPECT_THROW(parse_tune("guessed"), Error);
}

}  // namespace
}  // namespace tessera::ops
