// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/device.hpp"
#include "tessera/core/dtype.hpp"
#include "tessera/core/progress.hpp"

/// Fitting what plans expect of kernels to the machine at hand: windows of many kinds are drawn,
/// the kernels of spmm, sddmm and attention timed on them, and for each a small regression says by
/// what its measured times differ from those that its cost model gives. Plans multiply by that
/// where such a file is found.
namespace tessera::ops {

/// What sets problems apart in a regression.
struct CostShape {
  double mean_degree = 0;  ///< edges per row that is summed
  double row_bytes = 0;    ///< of a row of features
  int element_bytes = 4;
};

/// How one kernel differs from its model: log2(measured / predicted) is
/// c[0] + c[1] (log2(mean degree) - 3) + c[2] (log2(row bytes) - 8) + c[3] (log2(predicted) - 5).
struct KernelCorrection {
  std::string kernel;
  int element_bytes = 4;
  std::array<double, 4> coefficients = {};
  std::int64_t cases = 0;  ///< that it was fitted to
  /// Root of the mean square of the logarithms before and after, over the cases of the fit.
  double error_before = 0, error_after = 0;

  /// By what a prediction is multiplied; between 1/4 and 4.
  double factor(const CostShape& shape, double predicted_us) const;
};

/// How well a choice by predictions does: the measured time of what it takes over the shortest.
struct ChoiceQuality {
  double mean_regret = 1;  ///< geometric mean
  double worst_regret = 1;
  std::int64_t cases = 0;
  /// Cases in which the slowest takes over a tenth longer than the fastest, and the share of them
  /// that get one which does not: 1 where there are none.
  std::int64_t clear = 0;
  double right = 1;
};

struct Calibration {
  std::string device;  ///< as the maker calls it
  std::string date;
  std::string commit;
  std::string version;       ///< of Tessera: plans of another do not use it
  std::int64_t windows = 0;  ///< of each batch
  std::int64_t batches = 0, held_out = 0;
  /// On batches and graphs that took no part in the fit: with the built-in costs, with these, and
  /// for always taking the kernel that is most often the fastest.
  ChoiceQuality built_in, fitted, majority;
  std::vector<KernelCorrection> kernels;

  /// Null for a kernel that was not fitted.
  const KernelCorrection* find(const std::string& kernel, int element_bytes) const;

  /// Throws `bad_data` where the text is none of these, `unsupported` where its format is another.
  static Calibration parse(std::string_view text, const std::string& where);
  static Calibration load(const std::string& path);
  std::string to_text() const;
  void save(const std::string& path) const;
};

struct CalibrationOptions {
  Device device = {};
  std::int64_t windows = 10000;  ///< of 16 rows, in each batch
  bool quick = false;            ///< fewer kinds of windows
  std::vector<std::string> ops = {"spmm", "sddmm", "attention"};
  std::vector<std::int64_t> features = {32, 128};
  std::vector<Precision> precisions = {Precision::fp32, Precision::bf16};
  std::uint64_t seed = 1;
  std::string date, commit;  ///< noted
  Progress progress = {};
};

/// Draws windows, times kernels and fits. Corrections of an op that would choose worse on what was
/// held out are left out, all of them.
Calibration calibrate(const CalibrationOptions& options);

/// Where plans look for the file of a device: TESSERA_CALIBRATION names it ("off": none), else it
/// is in the user's data folder ($XDG_DATA_HOME/tessera, or ~/.local/share/tessera). Empty:
/// nowhere.
std::string calibration_path(Device device);

/// What there is where plans look.
struct FoundCalibration {
  std::shared_ptr<const Calibration> used;  ///< null: plans take the built-in costs
  /// Of a file that TESSERA_CALIBRATION names or that is in the user's data folder: why plans do
  /// not use it. It is of another device, of another version of Tessera, or not there.
  std::string why_not;
};

/// Read at the first call for a device, and the same from then on. Throws `bad_data` for a file
/// that is damaged.
FoundCalibration find_calibration(Device device);

/// What plans of this process use on a device; null where that are the built-in costs.
std::shared_ptr<const Calibration> calibration_for(Device device);

}  // namespace tessera::ops
