#include "sweep/shared_rows.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "model/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"

namespace attnsim::sweep {
namespace shared_rows_test {

struct shared_sweep : testing::Test {
  shared_rows join(std::size_t rows, const std::string& spec = "spec") const {
    return {path, spec, "key,value", rows, [](std::size_t i) { return std::to_string(i) + ","; }};
  }
  /// Each row is made by `row_of`; the progress that was told.
  static std::vector<std::size_t> run(shared_rows all, const worker& row_of, int threads = 1) {
    std::vector<std::size_t> progress;
    all.run(
        threads, [&] { return row_of; }, [&](std::size_t done) { progress.push_back(done); });
    return progress;
  }
  std::string file() const {
    std::ifstream stream(path);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
  }
  static std::string row(std::size_t i) {
    return std::to_string(i) + "," + std::string(i % 7, 'x');
  }
  static std::string whole(std::size_t rows) {
    std::string text = "key,value\n";
    for (std::size_t i = 0; i < rows; ++i) text += row(i) + "\n";
    return text;
  }
  bool has_folder() const { return std::filesystem::exists(path + ".parts"); }

  temporary_folder folder;
  std::string path = folder.file("out.csv");
};

TEST_F(shared_sweep, blocks_grow_with_the_rows) {
  EXPECT_EQ(shared_rows::block_of(1), 1u);
  EXPECT_EQ(shared_rows::block_of(1024), 1u);
  EXPECT_EQ(shared_rows::block_of(100'000), 98u);
}

TEST_F(shared_sweep, several_make_one_file) {
  constexpr std::size_t rows = 3000;
  std::atomic<std::size_t> made = 0;
  {
    std::vector<std::jthread> processes;
    for (int p = 0; p < 3; ++p) {
      processes.emplace_back([&] {
        run(
            join(rows), [&](std::size_t i) { return ++made, row(i); }, 2);
      });
    }
  }
  EXPECT_EQ(file(), whole(rows));
  EXPECT_GE(made, rows);
  EXPECT_FALSE(has_folder());
  EXPECT_EQ(std::distance(
                std::filesystem::directory_iterator(std::filesystem::path(path).parent_path()), {}),
            1);
}

TEST_F(shared_sweep, what_dead_ones_began_is_begun_again) {
  std::filesystem::create_directory(path + ".parts");
  for (const auto* claim : {"0.taken.1", "1.taken.1", "1.taken.2", "own.half"})
    std::ofstream(path + ".parts/" + claim);
  std::vector<std::size_t> order;
  run(join(3), [&](std::size_t i) { return order.push_back(i), row(i); });
  EXPECT_THAT(order, testing::ElementsAre(2, 0, 1));
  EXPECT_EQ(file(), whole(3));
}

TEST_F(shared_sweep, rows_that_are_there_are_kept) {
  EXPECT_THROW(
      run(join(4),
          [](std::size_t i) { return i < 2 ? row(i) : throw std::runtime_error("killed"); }),
      std::runtime_error);
  EXPECT_TRUE(has_folder());
  EXPECT_FALSE(std::filesystem::exists(path));
  std::vector<std::size_t> made;
  const auto progress = run(join(4), [&](std::size_t i) { return made.push_back(i), row(i); });
  EXPECT_THAT(made, testing::ElementsAre(3, 2)) << "2 had been begun";
  EXPECT_EQ(progress.front(), 2u);
  EXPECT_EQ(progress.back(), 4u);
  EXPECT_EQ(file(), whole(4));
}

TEST_F(shared_sweep, late_ones_have_nothing_to_do) {
  run(join(4), row);
  run(join(4), [](std::size_t) -> std::string { throw std::runtime_error("nothing to do"); });
  EXPECT_EQ(file(), whole(4));
  EXPECT_FALSE(has_folder());
}

TEST_F(shared_sweep, refuses_another_sweep) {
  EXPECT_THROW(run(join(4), [](std::size_t) -> std::string { throw std::runtime_error("killed"); }),
               std::runtime_error);
  EXPECT_ERROR(join(4, "other"), input_error,
               "--share: '" + path +
                   ".parts': expected the folder of this sweep; another SPEC's has to be removed");
  run(join(4), row);
  EXPECT_ERROR(join(5), input_error,
               "--share: '" + path + "': expected rows of this sweep, or no file");
  EXPECT_FALSE(has_folder());
}

}  // namespace shared_rows_test
}  // namespace attnsim::sweep
