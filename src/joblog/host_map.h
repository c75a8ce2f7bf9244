#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/limits.h"
#include "flight/model/id.h"

namespace postflight {

// Which rank ran on which host.
class HostMap {
 public:
  // Empty for a rank that is not listed. Valid while the HostMap lives.
  std::string_view host_of(Rank rank) const;
  // Sorted; empty for a host that is not listed.
  std::vector<Rank> ranks_on(std::string_view host) const;
  // The rank with local rank `local` on `host`. With only one host, its name
  // may be empty.
  std::optional<Rank> rank_at(std::string_view host, std::int32_t local) const;

  // In the order of the list, without duplicates.
  const std::vector<std::string>& hosts() const { return hosts_; }
  std::size_t size() const { return places_.size(); }

 private:
  friend class HostMapBuilder;
  struct Place {
    Rank rank;
    std::uint32_t host = 0;

    auto operator<=>(const Place&) const = default;
  };

  std::span<const Place> places_of(std::uint32_t host) const;

  std::vector<std::string> hosts_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::vector<Place> places_;   // by rank
  std::vector<Place> by_host_;  // by host, then rank
};

// Reads a list of hosts: the text of a file, or a Slurm node list.
//
//   node1 slots=8          a hostfile, as for mpirun and deepspeed; also
//   node2:8                "host:slots", or one host per line for each rank
//
//   5 node1                a rank and its host in either order, separated by
//   node2,8-15             spaces, commas or tabs; also ranges of ranks
//
//   node[001-004,007] x8   a Slurm node list with tasks per node: "x8",
//                          "ntasks-per-node=8", "8(x4),4", on the same line
//                          or the next; also the variables
//                          SLURM_JOB_NODELIST= and SLURM_TASKS_PER_NODE=
//
// A # starts a comment. If a list does not say how many ranks each host has,
// `world_size` ranks are divided evenly, if it is known.
Result<HostMap> read_host_map(std::string_view text,
                              std::optional<std::uint64_t> world_size = {},
                              const Limits& limits = {});

}  // namespace postflight
