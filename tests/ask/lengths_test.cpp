#include "ask/lengths.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>

#include "model/error.hpp"
#include "tests/expect_error.hpp"

namespace attnsim::ask {
namespace {

std::string file_of(const std::string& text) {
  const auto path = testing::TempDir() + "lengths.txt";
  std::ofstream(path) << text;
  return path;
}

TEST(lengths, are_a_line_each_of_a_file) {
  EXPECT_EQ(read_lengths(file_of("4096\n16K\n\n7\n")), (std::vector<std::int64_t>{4096, 16384, 7}));
}

TEST(lengths, of_a_file_name_the_wrong_line) {
  const auto path = file_of("4096\nlong\n");
  EXPECT_ERROR(read_lengths(path), input_error,
               path + ":2: 'long': expected a whole number of at least 1");
  const auto empty = file_of("\n");
  EXPECT_ERROR(read_lengths(empty), input_error,
               "lengths: '" + empty + "': expected a file with a length a line");
}

// The mean of 100,000 with sigma 1 is within four standard errors: 4 x 1.31 / sqrt(100,000).
TEST(lengths, of_a_distribution_have_its_mean) {
  const auto all = read_lengths("lognormal:mean=4096,sigma=1,max=1M,count=100000");
  EXPECT_EQ(all.size(), 100000u);
  const double mean = std::accumulate(all.begin(), all.end(), 0.0) / 1e5;
  EXPECT_NEAR(mean / 4096, 1, 0.017);
  EXPECT_EQ(all, read_lengths("lognormal:mean=4096,sigma=1,max=1M,count=100000,seed=1"));
  EXPECT_NE(all, read_lengths("lognormal:mean=4096,sigma=1,max=1M,count=100000,seed=2"));
}

TEST(lengths, of_a_distribution_are_cut) {
  const auto all = read_lengths("lognormal:mean=4096,sigma=2,max=8192,count=1000");
  EXPECT_EQ(*std::max_element(all.begin(), all.end()), 8192);
  EXPECT_GE(*std::min_element(all.begin(), all.end()), 1);
  const auto same = read_lengths("lognormal:mean=4096,sigma=0,max=8192,count=3");
  EXPECT_EQ(same, (std::vector<std::int64_t>{4096, 4096, 4096}));
}

TEST(lengths, of_a_distribution_say_what_is_wrong) {
  EXPECT_ERROR(read_lengths("lognormal:mean=4096,sigma=1,max=8192"), input_error,
               "lengths: 'mean=4096,sigma=1,max=8192': expected count= as well: "
               "lognormal:mean=N,sigma=X,max=N,count=N");
  EXPECT_ERROR(read_lengths("lognormal:median=1"), input_error,
               "lengths: 'median=1': expected mean=N, sigma=X, max=N, count=N or seed=N");
  EXPECT_ERROR(read_lengths("lognormal:mean=0,sigma=1,max=8192,count=1"), input_error,
               "lengths: '0': expected a whole number from 1 to 2147483648");
  EXPECT_ERROR(read_lengths("lognormal:mean=1,sigma=wide,max=8192,count=1"), input_error,
               "lengths: 'wide': expected sigma from 0 to 10");
}

}  // namespace
}  // namespace attnsim::ask
