#include "report/flight/schema.h"

namespace postflight {

const char* const kFlightTables = R"(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE ranks(
  rank INTEGER PRIMARY KEY, host TEXT, file TEXT, format TEXT, version TEXT,
  library TEXT, complete INTEGER, ring_start INTEGER, entries INTEGER NOT NULL,
  first_created_ns INTEGER, last_created_ns INTEGER);
CREATE TABLE dump_extras(
  rank INTEGER NOT NULL REFERENCES ranks, key TEXT NOT NULL,
  value TEXT NOT NULL);
CREATE TABLE skipped_files(
  file TEXT NOT NULL, reason TEXT NOT NULL, empty INTEGER NOT NULL,
  rank INTEGER);
CREATE TABLE groups(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, description TEXT NOT NULL,
  size INTEGER NOT NULL, configured INTEGER NOT NULL);
CREATE TABLE memberships(
  group_id INTEGER NOT NULL REFERENCES groups, rank INTEGER NOT NULL
  REFERENCES ranks, group_rank INTEGER NOT NULL,
  PRIMARY KEY(group_id, rank)) WITHOUT ROWID;
CREATE TABLE statuses(
  rank INTEGER NOT NULL REFERENCES ranks, local_group INTEGER NOT NULL,
  group_id INTEGER REFERENCES groups, last_enqueued INTEGER,
  last_started INTEGER, last_completed INTEGER);
CREATE TABLE frames(
  id INTEGER PRIMARY KEY, function TEXT NOT NULL, file TEXT NOT NULL,
  line INTEGER NOT NULL);
CREATE TABLE stacks(id INTEGER PRIMARY KEY, depth INTEGER NOT NULL);
CREATE TABLE stack_frames(
  stack_id INTEGER NOT NULL REFERENCES stacks, position INTEGER NOT NULL,
  frame_id INTEGER NOT NULL REFERENCES frames,
  PRIMARY KEY(stack_id, position)) WITHOUT ROWID;
CREATE TABLE threads(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, thread TEXT NOT NULL);
CREATE TABLE shapes(
  id INTEGER PRIMARY KEY, sizes TEXT NOT NULL, tensors INTEGER NOT NULL,
  elements REAL NOT NULL);
CREATE TABLE dtypes(id INTEGER PRIMARY KEY, names TEXT NOT NULL);
CREATE TABLE calls(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, backend TEXT NOT NULL,
  operation TEXT NOT NULL, group_id INTEGER NOT NULL REFERENCES groups,
  group_name TEXT NOT NULL, group_description TEXT NOT NULL,
  local_group INTEGER NOT NULL, timeout_ms INTEGER NOT NULL,
  point_to_point INTEGER NOT NULL,
  input_shapes INTEGER NOT NULL REFERENCES shapes,
  output_shapes INTEGER NOT NULL REFERENCES shapes,
  input_dtypes INTEGER NOT NULL REFERENCES dtypes,
  output_dtypes INTEGER NOT NULL REFERENCES dtypes);
CREATE TABLE collectives(
  id INTEGER PRIMARY KEY, group_id INTEGER NOT NULL REFERENCES groups,
  kind TEXT NOT NULL, sequence INTEGER NOT NULL, source INTEGER,
  destination INTEGER, call_id INTEGER NOT NULL REFERENCES calls,
  difference TEXT, majority INTEGER NOT NULL, expected INTEGER NOT NULL,
  joined INTEGER NOT NULL, absent INTEGER NOT NULL, no_dump INTEGER NOT NULL,
  unknown INTEGER NOT NULL, scheduled INTEGER NOT NULL,
  started INTEGER NOT NULL, completed INTEGER NOT NULL,
  pending INTEGER NOT NULL, first_created_ns INTEGER, last_created_ns INTEGER,
  blocks INTEGER NOT NULL, earlier INTEGER NOT NULL);
CREATE TABLE lanes(
  group_id INTEGER NOT NULL REFERENCES groups, rank INTEGER NOT NULL
  REFERENCES ranks, first_listed INTEGER, last_enqueued INTEGER,
  first_pending INTEGER, tells_absence INTEGER NOT NULL,
  stale INTEGER NOT NULL, PRIMARY KEY(group_id, rank)) WITHOUT ROWID;
CREATE TABLE entries(
  id INTEGER PRIMARY KEY, rank INTEGER NOT NULL REFERENCES ranks,
  position INTEGER NOT NULL, record_id INTEGER NOT NULL,
  call_id INTEGER NOT NULL REFERENCES calls,
  group_id INTEGER NOT NULL REFERENCES groups, sequence INTEGER NOT NULL,
  p2p_sequence INTEGER NOT NULL, operation_id INTEGER NOT NULL,
  state TEXT NOT NULL, retired INTEGER NOT NULL, created_ns INTEGER,
  started_ns INTEGER, completed_ns INTEGER, duration_ms REAL,
  thread_id INTEGER NOT NULL REFERENCES threads,
  stack_id INTEGER NOT NULL REFERENCES stacks, role TEXT NOT NULL,
  collective_id INTEGER REFERENCES collectives, agrees INTEGER,
  batch_end INTEGER REFERENCES entries, done INTEGER);
CREATE TABLE entry_extras(
  entry_id INTEGER NOT NULL REFERENCES entries, key TEXT NOT NULL,
  value TEXT NOT NULL);
CREATE TABLE findings(
  id INTEGER PRIMARY KEY, kind TEXT NOT NULL, severity TEXT NOT NULL,
  message TEXT NOT NULL, place TEXT NOT NULL);
PRAGMA application_id = 1886350438;
PRAGMA user_version = 1;
)";

const char* const kFlightIndexes = R"(
CREATE INDEX memberships_by_rank ON memberships(rank);
CREATE INDEX collectives_by_group ON collectives(group_id, sequence);
CREATE INDEX collectives_with_difference ON collectives(difference)
  WHERE difference IS NOT NULL;
CREATE INDEX collectives_pending ON collectives(group_id, sequence)
  WHERE pending > 0;
CREATE INDEX entries_by_rank ON entries(rank, group_id, sequence);
CREATE INDEX entries_by_collective ON entries(collective_id, rank);
CREATE INDEX entries_not_completed ON entries(rank, group_id, sequence)
  WHERE state <> 'completed';
CREATE INDEX entry_extras_by_entry ON entry_extras(entry_id);
)";

const char* const kFlightViews = R"(
CREATE VIEW matches AS
  SELECT collective_id, id AS entry_id, rank, agrees
  FROM entries WHERE collective_id IS NOT NULL;

CREATE VIEW entry_details AS
  SELECT e.id, e.rank, r.host, e.position, e.record_id, g.name AS "group",
    g.description, e.sequence, e.p2p_sequence, e.operation_id, c.name,
    c.backend, c.operation, ins.sizes AS input_sizes,
    ind.names AS input_dtypes, outs.sizes AS output_sizes,
    outd.names AS output_dtypes, e.state, e.retired,
    coalesce(b.state, e.state) AS batch_state, e.created_ns, e.started_ns,
    e.completed_ns, e.duration_ms, c.timeout_ms, c.point_to_point,
    c.local_group, t.name AS thread_name, t.thread, e.role, e.group_id,
    e.call_id, e.stack_id, e.collective_id, e.agrees, e.batch_end,
    e.done
  FROM entries e JOIN ranks r ON r.rank = e.rank
    JOIN groups g ON g.id = e.group_id JOIN calls c ON c.id = e.call_id
    JOIN shapes ins ON ins.id = c.input_shapes
    JOIN shapes outs ON outs.id = c.output_shapes
    JOIN dtypes ind ON ind.id = c.input_dtypes
    JOIN dtypes outd ON outd.id = c.output_dtypes
    JOIN threads t ON t.id = e.thread_id
    LEFT JOIN entries b ON b.id = e.batch_end;

CREATE VIEW collective_details AS
  SELECT c.id, g.name AS "group", g.description, c.kind, c.sequence, c.source,
    c.destination, k.name, k.operation, ins.sizes AS input_sizes,
    outs.sizes AS output_sizes, c.difference, c.majority, c.expected, c.joined,
    c.absent, c.no_dump, c.unknown, c.scheduled, c.started, c.completed,
    c.pending, c.first_created_ns, c.last_created_ns, c.group_id, c.call_id,
    c.blocks, c.earlier
  FROM collectives c JOIN groups g ON g.id = c.group_id
    JOIN calls k ON k.id = c.call_id
    JOIN shapes ins ON ins.id = k.input_shapes
    JOIN shapes outs ON outs.id = k.output_shapes;

CREATE VIEW missing_ranks AS
  SELECT c.id AS collective_id, c.group_id, c.sequence, m.rank,
    CASE WHEN r.file IS NULL THEN 'no dump'
         WHEN c.earlier THEN 'not in dump'
         WHEN l.tells_absence AND c.sequence > l.last_enqueued THEN 'absent'
         WHEN r.complete = 0 AND NOT coalesce(
           c.sequence <= l.last_enqueued, 0) THEN 'dump cut off'
         ELSE 'not in dump' END AS reason
  FROM collectives c JOIN memberships m ON m.group_id = c.group_id
    JOIN ranks r ON r.rank = m.rank
    LEFT JOIN lanes l ON l.group_id = c.group_id AND l.rank = m.rank
  WHERE c.kind = 'collective' AND c.joined < c.expected
    AND NOT EXISTS (SELECT 1 FROM entries e
      WHERE e.collective_id = c.id AND e.rank = m.rank);

CREATE VIEW first_pending AS
  SELECT group_id, min(sequence) AS sequence, id AS collective_id
  FROM collectives WHERE kind = 'collective' AND pending > 0 AND NOT earlier
  GROUP BY group_id;

CREATE VIEW rank_progress AS
  SELECT e.rank, e.group_id, count(*) AS entries,
    max(e.sequence) AS last_sequence,
    max(CASE WHEN e.done THEN e.sequence END) AS last_done,
    max(e.created_ns) AS last_created_ns
  FROM entries e
  WHERE e.role IN ('collective', 'collective_end')
  GROUP BY e.rank, e.group_id;

CREATE VIEW stack_texts AS
  SELECT stack_id, group_concat(line, char(10)) AS text FROM (
    SELECT s.stack_id, f.function || ' at ' || f.file || ':' || f.line AS line
    FROM stack_frames s JOIN frames f ON f.id = s.frame_id
    ORDER BY s.stack_id, s.position)
  GROUP BY stack_id;
)";

}  // namespace postflight
