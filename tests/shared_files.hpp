// Files of others that tests read beside the project, in ../shared, and may not copy. A clone without them skips those
// tests; with ATTNSIM_NEEDS_SHARED in the environment, as in CI, they fail instead.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

/// Ends the test where the file is absent.
#define NEEDS_SHARED(file)                                                     \
  if (const std::string needed = (file); !std::filesystem::exists(needed)) {   \
    if (std::getenv("ATTNSIM_NEEDS_SHARED")) FAIL() << needed << " is absent"; \
    GTEST_SKIP() << needed << " is absent";                                    \
  }                                                                            \
  static_assert(true)
