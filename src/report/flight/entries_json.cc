#include "report/flight/entries_json.h"

#include <vector>

#include "report/finding_text.h"
#include "report/flight/entry_fields_json.h"

namespace postflight {

void write_entries_json(const Job& job, const EntryFilter& filter,
                        Output& out) {
  constexpr std::string_view kSchema = "postflight.entries/1";
  JsonWriter json(out);
  EntryFieldsJson fields(job, true);
  for (const RankDump& dump : job.ranks) {
    if (!filter.takes(dump.rank))
      continue;
    for (std::uint32_t i = 0; i < dump.entries.size(); ++i) {
      if (!filter.takes(dump.entries[i]))
        continue;
      json.begin(kSchema);
      fields.write(dump, i, json);
      json.finish();
    }
  }
  const std::vector<Finding> findings = job.all_findings();
  for (const Finding& finding : findings) {
    json.begin(kSchema);
    json.key("finding");
    write_finding(finding, json);
    json.finish();
  }
}

}  // namespace postflight
