#include "json/writer.h"
#include "report/finding_text.h"
#include "report/pickle/json.h"
#include "report/pickle/report.h"

namespace postflight {
namespace {

void write_audit(const Audit& audit, JsonWriter& json) {
  json.array("globals");
  for (const GlobalUse& use : audit.globals) {
    json.object();
    json.field("module", use.module);
    json.field("name", use.name);
    json.field("trust", trust_name(use.trust));
    json.field("uses", use.uses);
    json.end();
  }
  json.end();
  json.array("calls");
  for (const CallUse& use : audit.calls) {
    json.object();
    json.field("callable", use.callable);
    json.field("making", making_name(use.making));
    json.field("trust", trust_name(use.trust));
    json.field("reason", use.reason);
    json.field("uses", use.uses);
    json.end();
  }
  json.end();
}

}  // namespace

void write_pickle_report_json(std::string_view name, const PickleFile& file,
                              const PickleReportOptions& options, Output& out) {
  JsonWriter json(out);
  json.begin("postflight.pickle/1");
  json.field("file", name);
  json.object("verdict");
  json.field("runs_code", file.runs_code());
  json.field("trust", trust_name(file.worst()));
  json.field("intact", file.intact());
  json.end();
  write_findings(file.findings, json);
  json.array("pickles");
  for (const LoadedPickle& loaded : file.pickles) {
    json.object();
    json.field("where", loaded.where);
    json.field("offset", loaded.offset);
    json.field("size", loaded.bytes.size());
    json.field("protocol", loaded.pickle.protocol);
    write_audit(loaded.audit, json);
    if (loaded.error) {
      json.field("error", *loaded.error);
    } else if (options.tree) {
      json.key("value");
      write_pickle_json(loaded.pickle.root, json);
    }
    json.end();
  }
  json.end();
  json.finish();
}

}  // namespace postflight
