// EXPECT_ERROR(statement, type, "message"): the statement throws `type` with exactly this text.
#pragma once

#include <gtest/gtest.h>

#include <string>

#define EXPECT_ERROR(statement, type, message)                                    \
  EXPECT_THROW(                                                                   \
      try { statement; } catch (const type& expect_error_caught) {                \
        EXPECT_EQ(std::string(expect_error_caught.what()), std::string(message)); \
        throw;                                                                    \
      },                                                                          \
      type)
