// What ibnetdiscover prints of an InfiniBand fabric, and ibsim's files in the same grammar: records
//   Switch 65 "S-1"   # "description" ...       (also Ca, Hca, Rt)
//   [1] "H-3"[1](guid)  # "node-0001 mlx5_0" lid 647 4xNDR
// of a port each; every cable stands in the records of both its ends. An adapter belongs to the host
// that the first word of its description names; adapters without a host's name are left out, and so
// are the switches' aggregation nodes (SHARP).
#include <fmt/format.h>

#include <map>
#include <tuple>

#include "formats/fabric_parts.hpp"
#include "formats/importers/table.hpp"

namespace attnsim::formats {
namespace {

/// Gb/s of a lane after coding (InfiniBand Architecture Specification, volume 2).
constexpr std::pair<std::string_view, double> lane_rates[] = {
    {"SDR", 2},  {"DDR", 4},  {"QDR", 8},   {"FDR10", 10}, {"FDR", 13.64},
    {"EDR", 25}, {"HDR", 50}, {"NDR", 100}, {"XDR", 200}};
constexpr int most_ports = 1024;

struct end {
  std::string id;
  int port;
  bool operator<(const end& other) const {
    return std::tie(id, port) < std::tie(other.id, other.port);
  }
};

enum class record_kind { switch_, adapter, other };

record_kind kind_of(std::string_view word) {
  if (word == "Switch") return record_kind::switch_;
  if (word == "Ca" || word == "Hca") return record_kind::adapter;
  return record_kind::other;
}

/// The text between the next two quotes from `begin` on, and what follows; nothing without quotes.
std::string_view quoted(std::string_view& rest) {
  const auto open = rest.find('"');
  const auto close = open == std::string_view::npos ? open : rest.find('"', open + 1);
  if (close == std::string_view::npos) return {};
  const auto text = rest.substr(open + 1, close - open - 1);
  rest.remove_prefix(close + 1);
  return text;
}

/// The number between brackets at the beginning, and what follows.
int port(const source& from, const text_line& line, std::string_view& rest) {
  const auto close = rest.find(']');
  const auto text = rest.starts_with('[') && close != std::string_view::npos
                        ? rest.substr(1, close - 1)
                        : std::string_view{};
  const auto number = to_number<int>(text);
  if (!number || *number < 0 || *number > most_ports) {
    fail_at(from, line.number, "port", rest.substr(0, std::min<std::size_t>(close, 12)),
            fmt::format("expected [0] to [{}]", most_ports));
  }
  rest.remove_prefix(close + 1);
  return *number;
}

/// "4xNDR" anywhere among the words; zero without it.
bandwidth rate_of(std::string_view text) {
  for (const auto word : words_of(text)) {
    const auto x = word.find('x');
    if (x == std::string_view::npos) continue;
    const auto lanes = to_number<int>(word.substr(0, x));
    for (const auto& [name, gigabits] : lane_rates) {
      if (lanes && *lanes > 0 && *lanes <= 12 && word.substr(x + 1) == name)
        return bandwidth(*lanes * gigabits * 1e9 / 8);
    }
  }
  return {};
}

class ibnetdiscover_reader {
 public:
  explicit ibnetdiscover_reader(const source& from) : from_(from), parts_(result_) {}

  topology read() {
    result_.what = scope::fabric;
    for (const auto& line : lines_of(from_.text)) {
      auto text = trimmed(line.text);
      if (text.starts_with('#') || text.starts_with("DUPLICATE")) continue;
      if (text.starts_with('[')) {
        read_port(line, text);
      } else if (text.find('"') != std::string_view::npos) {
        read_header(line, text);
      } else if (text.find('=') == std::string_view::npos) {
        fail_at(from_, line.number, "record", text.substr(0, 24),
                "expected Switch, Ca, or a port in brackets");
      }
    }
    add_parts();
    return std::move(result_);
  }

 private:
  struct record {
    record_kind kind;
    std::string host;  ///< of an adapter; empty: not known
    std::size_t part = 0;
    bool used = false;
  };

  void read_header(const text_line& line, std::string_view text) {
    const auto kind = kind_of(words_of(text).front());
    const std::string id(quoted(text));
    const auto description = quoted(text);
    if (id.empty()) fail_at(from_, line.number, "expected a record's name in quotes");
    if (!records_.emplace(id, record{kind, host_of(id, description)}).second) {
      fail_at(from_, line.number, "record", id, "expected a name that no other record has");
    }
    current_ = id;
  }

  static std::string host_of(const std::string& id, std::string_view description) {
    const auto words = words_of(description);
    if (words.empty()) return id;
    return words.size() <= 2 ? std::string(words.front()) : "";
  }

  void read_port(const text_line& line, std::string_view text) {
    if (current_.empty()) fail_at(from_, line.number, "expected a record before its ports");
    end here{current_, port(from_, line, text)};
    const std::string id(quoted(text));
    if (id.empty()) fail_at(from_, line.number, "expected the other end's name in quotes");
    end there{id, port(from_, line, text)};
    if (there < here) std::swap(here, there);
    auto& rate = cables_[{here, there}];
    rate = std::max(rate, rate_of(text));
    mentioned_.emplace(id, line.number);
  }

  void add_parts() {
    for (const auto& [id, line] : mentioned_) {
      if (!records_.contains(id)) {
        fail_at(from_, line, "port", id, "expected the name of a record of this file");
      }
    }
    std::size_t nameless = 0, adapters = 0, joined = 0;
    for (auto& [id, r] : records_) {
      if (r.kind == record_kind::switch_) {
        r.part = parts_.find_switch(id);
        r.used = true;
      }
    }
    for (auto& [id, r] : records_) {
      if (r.kind != record_kind::adapter) continue;
      ++adapters;
      nameless += r.host.empty();
      r.used = !r.host.empty();
      if (r.used) r.part = parts_.find_host(r.host);
    }
    for (const auto& [ends, rate] : cables_) {
      const auto &a = records_.at(ends.first.id), &b = records_.at(ends.second.id);
      if (!a.used || !b.used || a.part == b.part) continue;
      result_.join(a.part, b.part, rate, {}, link_kind::network);
      ++joined;
    }
    result_.said.read = {
        fmt::format("{}, {} in {}, {}", counted(result_.count(part_kind::switch_), "switch"),
                    counted(adapters - nameless, "adapter"),
                    counted(result_.count(part_kind::host), "host"), counted(joined, "cable"))};
    if (nameless > 0) {
      result_.said.missing.push_back(
          fmt::format("the hosts of {}, whose description names none: left out, with the switches' "
                      "own aggregation nodes",
                      counted(nameless, "adapter")));
    }
    if (joined > 0) parts_.join_separate_parts();
  }

  const source& from_;
  topology result_;
  fabric_parts parts_;
  std::string current_;
  std::map<std::string, record> records_;
  std::map<std::pair<end, end>, bandwidth> cables_;
  std::map<std::string, std::size_t> mentioned_;  ///< first line that names a record
};

bool is_ibnetdiscover(std::string_view text) {
  for (const auto& line : lines_of(text.substr(0, 1 << 16))) {
    const auto words = words_of(line.text);
    if (words.size() >= 3 && kind_of(words[0]) != record_kind::other && to_number<int>(words[1]) &&
        words[2].starts_with('"'))
      return true;
  }
  return false;
}

topology read_ibnetdiscover(const source& from, const settings&) {
  return ibnetdiscover_reader(from).read();
}

}  // namespace

const importer importers::ibnetdiscover{
    .name = "ibnetdiscover",
    .what = "ibnetdiscover, ibsim",
    .reads =
        "switches, hosts by the first word of their description, every cable with its width and "
        "speed",
    .assumes =
        "what a host holds; SHARP's aggregation nodes and adapters without a host's name are left "
        "out",
    .refuses = "ports before a record, cables to records that are not in the file",
    .recognises = is_ibnetdiscover,
    .read = read_ibnetdiscover,
};

}  // namespace attnsim::formats
