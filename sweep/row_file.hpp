// The rows of a sweep on disk: they come in any order, outlive a kill, and end up as one file in the points' order.
//
// Until all are there they are kept in FILE.rows, a line "INDEX,ROW" each in the order in which they came; a last line
// without its end is what a kill cut off, and is not counted.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace attnsim::sweep {

/// `header` and rows: lines of CSV without their ends. Not for several threads at once.
class row_file {
 public:
  /// How a row must begin; of another sweep's file it does not.
  using prefix = std::function<std::string(std::size_t index)>;

  /// Begins anew, or with `resume` goes on with what `path`.rows, else `path` itself, has of this sweep. Throws
  /// input_error where that is another sweep's, or cannot be written.
  row_file(std::string path, std::string header, std::size_t rows, bool resume,
           const prefix& begins);

  std::vector<std::size_t> missing() const;
  void add(std::size_t index, const std::string& row);

  /// The whole file, once no row is missing.
  std::string text() const;
  /// Removes `path`.rows.
  void close();

 private:
  std::uintmax_t read_journal(const prefix&);  ///< bytes of its whole lines; cuts off the rest
  void read_finished(const prefix&);
  void keep(std::size_t index, std::string row, const std::string& file, const prefix&);
  std::string journal() const { return path_ + ".rows"; }
  void open_journal(bool goes_on);
  bool write(const std::string& line);

  std::string path_, header_;
  std::vector<std::string> rows_;  ///< empty where missing
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream_{nullptr, &std::fclose};
};

}  // namespace attnsim::sweep
