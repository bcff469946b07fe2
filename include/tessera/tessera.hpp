// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Everything, for those who do not mind the compile time.
#include "tessera/core/version.hpp"
