// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/messages.hpp"

#include "bench/inputs.hpp"
#include "bench/ops.hpp"
#include "bench/placed.hpp"
#include "bench/prepare.hpp"
#include "bench/sample.hpp"
#include "ops/messages/reference.hpp"

namespace tessera::bench {
namespace {

/// The sums of GINE: what of the features of a source and an edge together is above 0.
template <class T>
class Messages : public Trial {
 public:
  explicit Messages(const Problem& problem)
      : plan_(ops::plan_messages(problem.graph, options_of(problem))),
        seed_(problem.seed),
        sample_size_(sample_size(problem)),
        x_(random_placed<T>(problem.graph.num_cols(), problem.features, problem.seed,
                            problem.device)),
        edges_(random_placed<T>(problem.graph.num_edges(), problem.features, problem.seed + 1,
                                problem.device)),
        y_(problem.graph.num_rows(), problem.features, problem.device) {}

  Gate check() override {
    run({});
    const RowSample sample = sample_rows(plan_.graph(), seed_, sample_size_);
    const Matrix<double> computed = y_.result_rows(sample.rows);
    Matrix<double> x = x_.input_rows(sample.cols), edges = edges_.input_rows(sample.edges);
    Matrix<double> expected(computed.rows(), computed.cols());
    Matrix<double> magnitude(computed.rows(), computed.cols());
    ops::reference::messages(sample.graph, ops::Message::relu, x, edges, expected);
    x = absolute(std::move(x));
    edges = absolute(std::move(edges));
    ops::reference::messages(sample.graph, ops::Message::sum, x, edges, magnitude);
    const ErrorMeasure measure({.stored = plan_.options().precision,
                                .strict = plan_.kernel().strict,
                                .terms = longest_row(sample.graph)});
    return {measure.largest_error(computed.view(), expected, magnitude), measure.bound(),
            sample.graph.num_rows(), plan_.graph().num_rows()};
  }
  void run(Stream stream) override { ops::run(plan_, {x_, edges_}, y_, stream); }
  std::int64_t bytes() const override {
    return structure_bytes(plan_.graph(), plan_.options().device) + x_.bytes() + edges_.bytes() +
           y_.bytes();
  }
  std::string kernel() const override { return plan_.kernel().name; }
  std::string plan() const override { return plan_.explain().summary; }

 private:
  static ops::MessagesOptions options_of(const Problem& problem) {
    ops::MessagesOptions options;
    set_run_options(problem, options);
    options.precision = problem.precision;
    options.features = problem.features;
    return options;
  }

  ops::MessagesPlan plan_;
  std::uint64_t seed_;
  SampleSize sample_size_;
  Placed<T> x_, edges_, y_;
};

}  // namespace

std::vector<Suite> messages_suites() {
  Suite suite{"messages",
              "sums of what of sources and edges together is above 0 (GINE)",
              {"messages"},
              {Precision::fp32, Precision::fp64, Precision::bf16},
              0,
              [](const Problem& problem) { return prepare_stored<Messages>(problem); }};
  return {suite};
}

}  // namespace tessera::bench
