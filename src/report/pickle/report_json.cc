#include <fmt/format.h>

#include "report/finding_text.h"
#include "report/pickle/json.h"
#include "report/pickle/report.h"

namespace postflight {
namespace {

void write_audit_json(const Audit& audit, Output& out) {
  out += "\"globals\":[";
  for (std::size_t i = 0; i < audit.globals.size(); ++i) {
    const GlobalUse& use = audit.globals[i];
    out += i == 0 ? "{" : ",{";
    write_json_field("module", use.module, out);
    out += ",";
    write_json_field("name", use.name, out);
    out += fmt::format(",\"trust\":\"{}\",\"uses\":{}}}", trust_name(use.trust),
                       use.uses);
  }
  out += "],\"calls\":[";
  for (std::size_t i = 0; i < audit.calls.size(); ++i) {
    const CallUse& use = audit.calls[i];
    out += i == 0 ? "{" : ",{";
    write_json_field("callable", use.callable, out);
    out += ",";
    write_json_field("making", making_name(use.making), out);
    out += fmt::format(",\"trust\":\"{}\",", trust_name(use.trust));
    write_json_field("reason", use.reason, out);
    out += fmt::format(",\"uses\":{}}}", use.uses);
  }
  out += "]";
}

void write_place_json(const LoadedPickle& loaded, Output& out) {
  write_json_field("where", loaded.where, out);
  out += loaded.offset ? fmt::format(",\"offset\":{}", *loaded.offset)
                       : ",\"offset\":null";
  out += fmt::format(",\"size\":{},\"protocol\":{}", loaded.bytes.size(),
                     loaded.pickle.protocol);
}

}  // namespace

void write_pickle_report_json(std::string_view name, const PickleFile& file,
                              const PickleReportOptions& options, Output& out) {
  out += "{\"schema\":\"postflight.pickle/1\",";
  write_json_field("file", name, out);
  out += fmt::format(
      ",\"verdict\":{{\"runs_code\":{},\"trust\":\"{}\",\"intact\":{}}}",
      file.runs_code(), trust_name(file.worst()), file.intact());
  out += ",\"findings\":";
  write_findings_json(file.findings, out);
  out += ",\"pickles\":[";
  bool first = true;
  for (const LoadedPickle& loaded : file.pickles) {
    out += first ? "{" : ",{";
    first = false;
    write_place_json(loaded, out);
    out += ",";
    write_audit_json(loaded.audit, out);
    if (loaded.error) {
      out += ",";
      write_json_field("error", *loaded.error, out);
    } else if (options.tree) {
      out += ",\"value\":";
      write_pickle_json(loaded.pickle.root, out);
    }
    out += "}";
  }
  out += "]}\n";
}

}  // namespace postflight
