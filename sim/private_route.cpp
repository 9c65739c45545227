#include "sim/private_route.hpp"

#include <algorithm>

namespace attnsim {

void private_route::start(picoseconds now, flow_tag tag, double bytes) {
  advance(now);
  flows_.push_back({tag, bytes, bytes});
  find_next();
}

void private_route::complete(picoseconds now, std::vector<flow_tag>& done) {
  if (flows_.size() == 1) {  // as mostly: it is the one that ends
    done.push_back(flows_.front().tag);
    moved_ += flows_.front().bytes;
    flows_.clear();
    since_ = now;
    next_ = never;
    return;
  }
  const auto first = done.size();
  for (const flow& f : flows_) {
    if (end(f) > now) continue;
    done.push_back(f.tag);
    moved_ += f.bytes;
  }
  advance(now);
  const auto is_done = [&](const flow& f) {
    return std::find(done.begin() + static_cast<std::ptrdiff_t>(first), done.end(), f.tag) !=
           done.end();
  };
  flows_.erase(std::remove_if(flows_.begin(), flows_.end(), is_done), flows_.end());
  find_next();
}

void private_route::advance(picoseconds now) {
  if (!flows_.empty()) {
    const double moved = to_seconds(now - since_) * rate_each();
    for (flow& f : flows_) f.left = std::max(0.0, f.left - moved);
  }
  since_ = now;
}

void private_route::find_next() {
  next_ = never;
  for (const flow& f : flows_) next_ = std::min(next_, end(f));
}

picoseconds private_route::end(const flow& f) const {
  return later(since_, to_picoseconds(f.left / rate_each()));
}

}  // namespace attnsim
