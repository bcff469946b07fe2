// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <stdexcept>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/sections.hpp"
#include "support/training_data.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/predict.hpp"

/// Checkpoints whose checksums are right and whose content is not.
namespace tessera::train {
namespace {

using test::learnable_graphs;
using test::learnable_vertices;
using test::short_training;
using test::small_model;
using test::TemporaryFolder;
using testing::expect_error;

struct Stop : std::runtime_error {
  Stop() : std::runtime_error("stop") {}
};

using Edit = std::function<void(std::vector<io::NamedArray>&)>;

Edit line(std::string section, std::string name, std::string value) {
  return [=](auto& arrays) { test::set_line(arrays, section, name, value); };
}

/// A run of two that was stopped in the middle of the second.
class HostileCheckpoint : public ::testing::Test {
 protected:
  void SetUp() override { make(learnable_vertices(), small_model(nn::ModelKind::gat)); }

  void make(const Dataset& dataset, const nn::ModelConfig& config) {
    dataset_ = dataset;
    config_ = config;
    std::filesystem::remove(path_);
    TrainOptions stopped = options();
    stopped.on_epoch = [](const EpochRecord& record) {
      if (record.run == 1 && record.epoch == 3) throw Stop();
    };
    EXPECT_THROW(fit(dataset_, config_, stopped), Stop);
    whole_ = test::read_sections(path_);
  }

  TrainOptions options() const {
    TrainOptions result = short_training(5);
    result.runs = 2;
    result.checkpoint = {path_, 1, true};
    return result;
  }

  /// Resuming and predicting both refuse the file, and neither asks for much memory.
  void expect_refused(const Edit& edit, ErrorCode code, const std::vector<std::string>& words) {
    std::vector<io::NamedArray> arrays = whole_;
    edit(arrays);
    io::write_sections(path_, arrays);
    const std::int64_t before = host_memory_use().current_bytes;
    reset_host_memory_peak();
    expect_error(code, words, [&] { predict(load_checkpoint(path_), dataset_); });
    expect_error(code, words, [&] { fit(dataset_, config_, options()); });
    EXPECT_LT(host_memory_use().peak_bytes - before, 8 << 20);
  }
  void expect_bad(const Edit& edit, const std::vector<std::string>& words = {}) {
    expect_refused(edit, ErrorCode::bad_data, words);
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "run.tsr";
  Dataset dataset_;
  nn::ModelConfig config_;
  std::vector<io::NamedArray> whole_;
};

TEST_F(HostileCheckpoint, an_edit_that_changes_nothing_is_taken) {
  io::write_sections(path_, whole_);
  EXPECT_EQ(load_checkpoint(path_).runs.size(), 2u);
  EXPECT_EQ(fit(dataset_, config_, options()).epochs, 2);
}

/// Files written before epochs could be left unevaluated.
TEST_F(HostileCheckpoint, one_without_the_setting_of_evaluations_is_taken) {
  std::vector<io::NamedArray> arrays = whole_;
  ExtraArray& array = test::find_section(arrays, "settings");
  std::string text = test::text_of(array);
  const std::string line = "training.evaluate_every = 1\n";
  const std::size_t place = text.find(line);
  ASSERT_NE(place, std::string::npos);
  array = io::stored_text(text.erase(place, line.size()));
  io::write_sections(path_, arrays);
  EXPECT_EQ(load_checkpoint(path_).runs.size(), 2u);
  EXPECT_EQ(fit(dataset_, config_, options()).epochs, 2);
}

TEST_F(HostileCheckpoint, counts_of_runs_epochs_and_steps) {
  for (const char* value : {"0", "1", "3", "-1", "4294967296", "9223372036854775807",
                            "-9223372036854775808", "9223372036854775808", "x", ""}) {
    SCOPED_TRACE(value);
    expect_bad(line("checkpoint", "runs", value));
    expect_bad(line("checkpoint", "run.0.epochs", value));
    if (std::string(value).size() < 2) continue;
    expect_bad(line("checkpoint", "run.0.steps", value));
    expect_bad(line("checkpoint", "run.1.steps", value));
  }
  for (const char* value : {"-9223372036854775808", "0", "2", "x"}) {
    SCOPED_TRACE(value);
    expect_bad(line("settings", "training.epochs", value));
  }
  expect_bad(line("settings", "training.runs", "1"), {"more runs"});
}

TEST_F(HostileCheckpoint, a_model_that_its_tensors_are_not_of) {
  for (const char* value : {"4294967296", "9223372036854775807", "0", "-1"}) {
    SCOPED_TRACE(value);
    expect_bad(line("checkpoint", "outputs", value));
    expect_bad(line("checkpoint", "features", value));
    for (const char* name : {"layers", "hidden", "heads", "output_heads"}) {
      SCOPED_TRACE(name);
      expect_bad(line("settings", std::string("model.") + name, value));
    }
  }
  expect_bad(line("settings", "model.hops", "9223372036854775807"), {"hops"});
  expect_bad(line("settings", "model.negative_slope", "nan"), {"negative_slope"});
  expect_bad(line("settings", "model.dropout", "1"), {"dropout"});
  expect_bad(line("settings", "model.kind", "transformer"), {"transformer"});
  expect_bad(line("settings", "model.residual", "perhaps"), {"residual"});
}

TEST_F(HostileCheckpoint, names_of_features) {
  Dataset named = learnable_vertices();
  std::vector<std::string> names;
  for (std::int64_t j = 0; j < named.num_features(); ++j) names.push_back("f=" + std::to_string(j));
  named.feature_names = Names(names);
  named.category_prefixes = std::vector<std::int32_t>(names.size(), 1);
  make(named, small_model(nn::ModelKind::gcn));
  const auto replaced = [](const char* section, const ExtraArray& array) {
    return [=](auto& arrays) { test::find_section(arrays, section) = array; };
  };
  const auto removed = [](const char* section) {
    return [=](std::vector<io::NamedArray>& arrays) {
      std::erase_if(arrays, [&](const io::NamedArray& array) { return array.first == section; });
    };
  };
  const auto integers = [](std::vector<std::int32_t> values) {
    return io::stored(SharedArray<std::int32_t>(std::move(values)));
  };
  const auto width = static_cast<std::size_t>(named.num_features());
  expect_bad(removed("feature_name_ends"), {"names"});
  expect_bad(removed("feature_names"), {"names"});
  expect_bad(removed("feature_fills"), {"means"});
  expect_bad(replaced("category_prefixes", integers({1})), {"category_prefix"});
  expect_bad(replaced("category_prefixes", integers(std::vector<std::int32_t>(width, 2))),
             {"category_prefix"});
  expect_bad(replaced("category_prefixes", integers(std::vector<std::int32_t>(width, -2))),
             {"category_prefix"});
  std::vector<float> fills(width, 0.0f);
  fills[1] = std::numeric_limits<float>::quiet_NaN();
  expect_bad(replaced("feature_fills", io::stored(SharedArray<float>(fills))), {"finite"});
  fills.pop_back();
  expect_bad(replaced("feature_fills", io::stored(SharedArray<float>(fills))), {"means"});
  expect_bad(line("checkpoint", "graph.directed", "2"), {"graph.directed"});
  expect_bad(line("checkpoint", "graph.weighted", "x"), {"graph.weighted"});
}

/// Files written before checkpoints kept names.
TEST_F(HostileCheckpoint, one_without_names_goes_by_position) {
  std::vector<io::NamedArray> arrays = whole_;
  ExtraArray& array = test::find_section(arrays, "checkpoint");
  std::string text = test::text_of(array);
  for (std::size_t at = text.find("graph."); at != std::string::npos; at = text.find("graph.")) {
    text.erase(at, text.find('\n', at) - at + 1);
  }
  array = io::stored_text(text);
  io::write_sections(path_, arrays);
  const Prediction prediction = predict(load_checkpoint(path_), dataset_);
  ASSERT_EQ(prediction.notes.size(), 1u);
  EXPECT_NE(prediction.notes[0].find("by their position"), std::string::npos);
  EXPECT_EQ(fit(dataset_, config_, options()).epochs, 2);
}

TEST_F(HostileCheckpoint, what_is_classified_and_how_it_is_judged) {
  expect_bad(line("checkpoint", "metric", "micro_f1"), {"metric"});
  expect_bad(line("checkpoint", "metric", "auto"), {"metric"});
  expect_bad(line("checkpoint", "metric", "luck"), {"luck"});
  expect_bad(line("checkpoint", "graph_task", "1"), {"readout"});
  expect_bad(line("checkpoint", "graph_task", "2"), {"graph_task"});
  expect_bad(line("checkpoint", "multi_label", "1"));
  expect_bad(line("settings", "model.readout", "sum"), {"readout"});
}

TEST_F(HostileCheckpoint, names_of_classes) {
  make(learnable_graphs(), small_model(nn::ModelKind::gin, true));
  const auto names = [](std::vector<std::int64_t> values) -> Edit {
    return [=](auto& arrays) {
      test::find_section(arrays, "class_values") =
          io::stored(SharedArray<std::int64_t>(std::vector<std::int64_t>(values)));
    };
  };
  expect_bad(names({1}), {"names of classes"});
  expect_bad(names({1, 2, 3}), {"names of classes"});
  expect_bad(names({2, 1}), {"names of classes"});
  expect_bad(names({-2, 1}), {"names of classes"});
}

TEST_F(HostileCheckpoint, curves) {
  const auto curve = [](std::vector<double> values) -> Edit {
    return [=](auto& arrays) {
      test::find_section(arrays, "curve:1") =
          io::stored(SharedArray<double>(std::vector<double>(values)));
    };
  };
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> three;
  for (int i = 0; i < 3; ++i) three.insert(three.end(), {1.0, 0.5, 0.5, 0.5, 1.0});
  const auto with = [&](std::size_t place, double value) {
    std::vector<double> changed = three;
    changed[place] = value;
    return curve(changed);
  };
  expect_bad(curve({}));
  expect_bad(curve({1, 2, 3}), {"curve"});
  expect_bad(curve({1, 0.5, 0.5, 0.5, 1}), {"curve of run 2 has 1"});
  for (const double value : {-0.1, 1.1, infinity, std::nan("")}) {
    for (const std::size_t place : {6u, 7u, 8u}) expect_bad(with(place, value), {"epoch 2"});
  }
  expect_bad(with(5, infinity), {"epoch 2"});
  std::vector<double> unevaluated = three;
  for (const std::size_t place : {6u, 7u, 8u, 9u}) unevaluated[place] = std::nan("");
  expect_bad(curve(unevaluated), {"epoch 2 was not evaluated"});
}

TEST_F(HostileCheckpoint, tensors) {
  for (auto& [name, array] : whole_) {
    if (array.shape.size() != 2) continue;
    SCOPED_TRACE(name);
    const std::string section = name;
    expect_bad([&](auto& arrays) {
      ExtraArray& changed = test::find_section(arrays, section);
      changed = {"<f4", {1, 1}, SharedArray<std::byte>(std::vector<std::byte>(4))};
    });
    expect_bad([&](auto& arrays) { test::find_section(arrays, section).type = "<i4"; });
    expect_bad([&](auto& arrays) {
      std::erase_if(arrays, [&](const auto& entry) { return entry.first == section; });
    });
    expect_bad([&](auto& arrays) {
      for (auto& entry : arrays) {
        if (entry.first == section) entry.first += "x";
      }
    });
  }
}

TEST_F(HostileCheckpoint, plans) {
  const auto plans = [](std::string text) -> Edit {
    return [=](auto& arrays) { test::find_section(arrays, "plans") = io::stored_text(text); };
  };
  expect_bad(plans("nonsense"), {"not a file of plans"});
  expect_bad(plans("tessera plans\t1\nchoice\n"), {"neither a choice"});
}

TEST_F(HostileCheckpoint, sections_of_no_run) {
  const auto renamed = [](std::string from, std::string to) -> Edit {
    return [=](auto& arrays) {
      for (auto& entry : arrays) {
        if (entry.first == from) entry.first = to;
      }
    };
  };
  expect_bad(renamed("curve:0", "curve:2"), {"belongs to no run"});
  expect_bad(renamed("curve:0", "curve:-1"), {"belongs to no run"});
  expect_bad(renamed("curve:0", "curve:99999999999999999999"), {"belongs to no run"});
  expect_bad(renamed("curve:0", "curve:"), {"belongs to no run"});
  expect_refused(renamed("curve:0", "other:0"), ErrorCode::unsupported, {"newer"});
}

TEST_F(HostileCheckpoint, settings_twice_missing_or_garbled) {
  const auto settings = [](std::function<std::string(std::string)> change) -> Edit {
    return [=](auto& arrays) {
      ExtraArray& array = test::find_section(arrays, "settings");
      array = io::stored_text(change(test::text_of(array)));
    };
  };
  expect_bad(settings([](const std::string& text) { return text + "model.layers = 2\n"; }),
             {"occurs twice"});
  expect_bad(settings([](const std::string& text) { return text + "nonsense\n"; }),
             {"is no setting"});
  expect_bad(settings([](const std::string&) { return std::string(); }), {"is missing"});
}

}  // namespace
}  // namespace tessera::train
