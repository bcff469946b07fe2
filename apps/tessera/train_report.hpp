// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "session.hpp"
#include "tessera/data/dataset.hpp"
#include "tessera/train/memory.hpp"
#include "tessera/train/problem.hpp"
#include "tessera/train/report.hpp"
#include "train_options.hpp"

namespace tessera::app {

/// "81.52 %", or "81.52 ± 0.61 %"; of numbers without "%", in the units of the data.
std::string human_metric(const train::Summary& summary, std::size_t runs,
                         train::Metric metric = train::Metric::accuracy);

/// The settings of a training by their groups: "training", "plans", …
Json training_settings_json(const train::TrainOptions& options);

/// What every report of a training begins with.
std::string training_headline(const Dataset& dataset, const TrainPlan& plan);
Json training_beginning(const TrainArguments& arguments, const Dataset& dataset,
                        const TrainPlan& plan);

std::string train_text(const TrainArguments& arguments, const Dataset& dataset,
                       const TrainPlan& plan, const train::TrainReport& report);
Json train_json(const TrainArguments& arguments, const Dataset& dataset, const TrainPlan& plan,
                const train::TrainReport& report);

/// The same below another headline, and behind another beginning, of data of another kind.
std::string train_text(const TrainArguments& arguments, const std::string& headline,
                       const train::TrainOptions& options, const train::TrainReport& report);
Json train_json(const TrainArguments& arguments, Json beginning, const train::TrainReport& report);

std::string dry_run_text(const Dataset& dataset, const TrainPlan& plan,
                         const train::TrainingMemory& memory);
Json dry_run_json(const TrainArguments& arguments, const Dataset& dataset, const TrainPlan& plan,
                  const train::TrainingMemory& memory);

}  // namespace tessera::app
