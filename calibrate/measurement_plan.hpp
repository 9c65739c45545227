// What is worth measuring: the points that a profile is fitted to, and others in between and beyond, that check it.
#pragma once

#include <string>
#include <vector>

#include "calibrate/measurements.hpp"

namespace attnsim {

enum class effort_kind { quick, full };
enum class point_set {
  fit,       ///< sizes in powers of two; few rows against many keys, too
  held_out,  ///< none of them: sizes, head counts and head dimensions between and beyond
};

/// What is timed, in the order of measured_point.
enum class point_kind { kernel, memory, transfer, overlap, product, elementwise, sequence };
std::string_view name_of(point_kind);
point_kind parse_point_kind(std::string_view);

struct kernel_to_measure {
  std::string name;              ///< as a device profile has it
  bool on_host = false;          ///< small shapes alone
  bool prepares_shapes = false;  ///< the first call of a shape takes long: fewer rectangles
};

struct measurement_request {
  effort_kind effort = effort_kind::full;
  point_set set = point_set::fit;
  std::vector<point_kind> kinds{point_kind::kernel,  point_kind::memory,  point_kind::transfer,
                                point_kind::overlap, point_kind::product, point_kind::elementwise,
                                point_kind::sequence};
  std::vector<kernel_to_measure> kernels;  ///< empty: transfers only
  int ranks = 1;
  std::int64_t largest_transfer = std::int64_t{1} << 30;  ///< bytes of a slot
};

std::vector<measured_point> measurement_plan(const measurement_request&);

}  // namespace attnsim
