#include "report/flight/entries_json.h"

#include <vector>

#include "report/finding_text.h"
#include "report/flight/entry_fields_json.h"

namespace postflight {

void write_entries_json(const Job& job, const EntryFilter& filter,
                        Output& out) {
  constexpr std::string_view kBegin = "{\"schema\":\"postflight.entries/1\",";
  EntryFieldsJson fields(job, true);
  for (const RankDump& dump : job.ranks) {
    if (!filter.takes(dump.rank))
      continue;
    for (std::uint32_t i = 0; i < dump.entries.size(); ++i) {
      if (!filter.takes(dump.entries[i]))
        continue;
      out += kBegin;
      fields.write(dump, i, out);
      out += "}\n";
    }
  }
  const std::vector<Finding> findings = job.all_findings();
  for (const Finding& finding : findings) {
    out += kBegin;
    out += "\"finding\":";
    write_finding_json(finding, out);
    out += "}\n";
  }
}

}  // namespace postflight
