#!/usr/bin/python3
"""Where fr-trace differs from torchfrtrace: a test for each of docs/
differences.md's classes B1 to B27.

    tests/fr_trace_differences_test.py build/dev/postflight
"""

import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
FLIGHT = HERE / "data/flight"
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE / "oracle"))
import fr_trace_test  # noqa: E402  for load()

PROGRAM = None
WORLD = ("0", "default_pg")
MEMBERS = {"0": ("default_pg", [0, 1, 2, 3])}
SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


def entry(name, sequence, *, group=WORLD, p2p=0, state="completed",
          retired=None, inputs=((8,),), outputs=None, dtype="Float", record=None,
          time=None, pg_id=0):
    """One entry of a rank; `record` and `time` are filled in by dump()."""
    outputs = inputs if outputs is None else outputs
    is_p2p = ":send" in name or ":recv" in name
    return {
        "record_id": record, "pg_id": pg_id, "process_group": group,
        "collective_seq_id": sequence, "p2p_seq_id": p2p, "op_id": sequence,
        "profiling_name": name, "time_created_ns": time,
        "input_sizes": [list(shape) for shape in inputs],
        "input_dtypes": [dtype] * len(inputs),
        "output_sizes": [list(shape) for shape in outputs],
        "output_dtypes": [dtype] * len(outputs), "state": state,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "retired": state == "completed" if retired is None else retired,
        "timeout_ms": 600000, "is_p2p": is_p2p,
        "frames": [{"name": "step", "filename": "train.py", "line": 7}]}


def closing(sequence, p2p, state="completed", group=WORLD):
    return entry("nccl:coalesced", sequence, p2p=p2p, state=state, inputs=(),
                 group=group)


def dump(entries, *, groups=None, version="2.10", first_record=0, status=None):
    groups = MEMBERS if groups is None else groups
    for i, one in enumerate(entries):
        if one["record_id"] is None:
            one["record_id"] = first_record + i
        if one["time_created_ns"] is None:
            one["time_created_ns"] = START + i * SECOND
    return {
        "version": version, "entries": entries, "pg_status": status or {},
        "pg_config": {name: {"name": name, "desc": description,
                             "ranks": str(ranks)}
                      for name, (description, ranks) in groups.items()}}


def reduces(last, **options):
    return [entry("nccl:all_reduce", i, **options) for i in range(1, last + 1)]


class Differences(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name) / "dumps"

    def run_on(self, folder, *flags, code=0):
        done = subprocess.run([PROGRAM, "fr-trace", str(folder), *flags],
                              capture_output=True, text=True, check=False,
                              timeout=120)
        self.assertEqual((done.stdout, done.returncode), ("", code),
                         done.stderr)
        return done.stderr

    def write(self, dumps):
        self.folder.mkdir(exist_ok=True)
        for rank, contents in dumps.items():
            if isinstance(contents, list):
                contents = dump(contents)
            if isinstance(contents, dict):
                contents = pickle.dumps(contents, protocol=2)
            (self.folder / f"nccl_trace_rank_{rank}").write_bytes(contents)

    def said(self, dumps, *flags, code=0):
        self.write(dumps)
        return self.run_on(self.folder, *flags, code=code)

    def heads(self, text):
        """The headlines, and whom they accuse."""
        return re.findall(
            r"^(?:Not all ranks|Collective sequence|Input/output|Too many|We "
            r"cannot|missing ranks|error msg).*", text, re.M)

    def test_b1_aligns_wrapped_rings_by_sequence_number(self):
        said = self.run_on(FLIGHT / "nccl_wrapped")
        self.assertEqual(self.heads(said), [
            "Not all ranks joining collective, sequence number: 21",
            "missing ranks: {3}"])

    def test_b1_keeps_entries_of_rings_that_wrapped_elsewhere(self):
        groups = {**MEMBERS, "1": ("pair", [0, 1])}
        pair = [entry("nccl:all_reduce", i, group=("1", "pair"))
                for i in range(90, 100)]
        last = entry("nccl:all_reduce", 100, state="scheduled")
        said = self.said({
            0: dump(pair + [last], groups=groups, first_record=189),
            1: dump([*pair, dict(last)], groups=groups, first_record=189),
            2: dump([*(entry("nccl:all_reduce", i) for i in range(95, 100)),
                     dict(last)], first_record=94),
            3: dump([entry("nccl:all_reduce", i) for i in range(95, 100)],
                    first_record=94)})
        self.assertEqual(self.heads(said), [
            "Not all ranks joining collective, sequence number: 100",
            "missing ranks: {3}"])

    def test_b2_the_majority_is_right_not_the_first_rank(self):
        said = self.run_on(FLIGHT / "nccl_type_mismatch_rank0")
        self.assertEqual(self.heads(said), [
            "Collective sequence number: 5 has errors",
            "error msg: Culprit rank 0; Error type: COLLECTIVE_TYPE_MISMATCH, "
            "Expected collective type: 'all_reduce' does not match found "
            "collective type: 'broadcast'"])

    def test_b3_takes_any_backend(self):
        for backend in ["gloo", "ncclx", "hccl", "nccl2", "mccl", "bccl", "ucc"]:
            with self.subTest(backend=backend):
                self.assertEqual(self.said({
                    rank: [entry(f"{backend}:all_reduce", 1)]
                    for rank in range(4)}), "")

    def test_b4_takes_any_operation(self):
        ranks = {rank: [entry("nccl:all_reduce_sparse", 1),
                        entry("nccl:brand_new", 2)] for rank in range(4)}
        self.assertEqual(self.said(ranks), "")
        self.assertIn("brand_new(input_sizes=[[8]], state=completed)",
                      self.said(ranks, "-j"))
        ranks[2][1] = entry("nccl:all_reduce", 2)
        self.assertIn("Culprit rank 2; Error type: COLLECTIVE_TYPE_MISMATCH",
                      self.said(ranks))

    def test_b5_only_two_ranks_take_part_in_a_send(self):
        self.assertEqual(self.said({
            0: [*reduces(1), entry("nccl:send 0->1", 1, p2p=1)],
            1: [*reduces(1), entry("nccl:recv 1<-0", 1, p2p=1)],
            2: reduces(1), 3: reduces(1)}), "")

    def test_b6_pairs_batches_that_go_both_ways(self):
        for version in ["2.6", "2.10"]:
            for order in [0, 1]:
                def batch(rank):
                    other = 1 - rank
                    pair = [entry(f"nccl:send {rank}->{other}", 0, p2p=1,
                                  state="scheduled"),
                            entry(f"nccl:recv {rank}<-{other}", 0, p2p=1,
                                  state="scheduled")]
                    return dump(pair[::1 - 2 * order] + [closing(0, 1)],
                                groups={"0": ("default_pg", [0, 1])},
                                version=version)
                with self.subTest(version=version, order=order):
                    self.assertEqual(self.said({0: batch(0), 1: batch(1)}), "")

    def test_b7_numbers_of_messages_are_not_those_of_collectives(self):
        def rank(name):
            return [*reduces(2), entry(name, 2, p2p=2, state="scheduled"),
                    closing(2, 2), entry("nccl:all_reduce", 3)]
        groups = {"0": ("default_pg", [0, 1])}
        self.assertEqual(self.said({
            0: dump(rank("nccl:send 0->1"), groups=groups),
            1: dump(rank("nccl:recv 1<-0"), groups=groups)}), "")

    def test_b8_reports_a_send_that_nobody_takes(self):
        groups = {"0": ("default_pg", [0, 1])}
        said = self.said({
            0: dump([entry("nccl:send 0->1", 0, p2p=1),
                     entry("nccl:send 0->1", 0, p2p=2, state="scheduled")],
                    groups=groups),
            1: dump([entry("nccl:recv 1<-0", 0, p2p=1)], groups=groups)})
        self.assertEqual(self.heads(said), [
            "Not all ranks joining collective, sequence number: 0",
            "missing ranks: {1}"])
        self.assertIn("internal record id: 1\n", said)
        self.assertIn("collective: nccl:send 0->1\n", said)
        self.assertIn("expected ranks: {0, 1}\n", said)

    def test_b8_reports_messages_of_other_sizes(self):
        groups = {"0": ("default_pg", [0, 1])}
        said = self.said({
            0: dump([entry("nccl:send 0->1", 0, p2p=1)], groups=groups),
            1: dump([entry("nccl:recv 1<-0", 0, p2p=1, inputs=((4,),))],
                    groups=groups)})
        self.assertIn("Culprit rank 1; Error type: SIZE_OR_SYNTAX_MISMATCH, "
                      "Expected input sizes: '[[8]]' does not match found "
                      "output sizes: '[[4]]'", said)

    def test_b9_batches_may_differ_in_length(self):
        def tail():
            return [entry("nccl:all_reduce", 1)]
        self.assertEqual(self.said({
            0: [entry("nccl:send 0->1", 0, p2p=1), entry("nccl:send 0->2", 0,
                p2p=1), entry("nccl:send 0->3", 0, p2p=1), closing(0, 1),
                *tail()],
            1: [entry("nccl:recv 1<-0", 0, p2p=1), closing(0, 1), *tail()],
            2: [entry("nccl:recv 2<-0", 0, p2p=1), *tail()],
            3: [entry("nccl:recv 3<-0", 0, p2p=1), closing(0, 1), *tail()],
        }), "")

    def test_b10_a_closing_entry_is_one(self):
        self.assertNotIn("coalesced end",
                         self.run_on(FLIGHT / "nccl_coalesced_collectives"))

    def test_b11_to_b13_the_database_keeps_their_columns(self):
        output = pathlib.Path(self.temporary.name) / "out.db"
        waits = [entry("nccl:all_reduce", 2, state="scheduled")]
        ranks = {rank: reduces(1) + waits for rank in range(4)}
        ranks[1] = [entry("nccl:all_reduce", 1),
                    entry("nccl:broadcast", 2, state="scheduled")]
        ranks[3] = reduces(1)
        self.said(ranks, "-o", str(output))
        _, tables = fr_trace_test.load(output)
        [first, second] = [row.fields for row in tables["collectives"]]
        self.assertEqual(second[15], {3})  # missing_ranks
        self.assertFalse(second[2])        # rank 1 differs as well
        self.assertEqual(first[1], "0")    # group_id: not Group.id
        self.assertEqual(tables["groups"][0].fields[0], "07327027465595056883")
        self.assertEqual({row.fields[5] for row in tables["ncclcalls"]},
                         {"nccl:all_reduce"})

    def test_b11_missing_ranks_pass_the_check(self):
        output = pathlib.Path(self.temporary.name) / "out.db"
        ranks = {rank: reduces(2) for rank in range(4)}
        ranks[3] = reduces(1)
        self.said(ranks, "-o", str(output))
        _, tables = fr_trace_test.load(output)
        self.assertTrue(tables["collectives"][1].fields[2])

    def test_b14_one_group_given_up_does_not_hide_others(self):
        groups = {"0": ("noisy", [0, 1]), "1": ("quiet", [0, 1])}
        def rank(other):
            noisy = [entry("nccl:all_reduce", i, group=("0", "noisy"),
                           inputs=((8 + other,),)) for i in range(1, 20)]
            return dump([*noisy, entry(
                "nccl:broadcast" if other else "nccl:all_reduce", 1,
                group=("1", "quiet"))], groups=groups)
        said = self.said({0: rank(0), 1: rank(1)}, "--mismatch_cap", "3")
        heads = [line for line in self.heads(said) if "error msg" not in line]
        self.assertEqual(heads, [
            *[f"Collective sequence number: {i} has errors"
              for i in range(1, 5)],
            f"Too many mismatches for process_group 0{hash(frozenset([0, 1]))}"
            ": noisy aborting",
            "Collective sequence number: 1 has errors"])

    def test_b15_says_nothing_of_what_matches_after_a_mismatch(self):
        ranks = {rank: reduces(3) for rank in range(4)}
        ranks[1][1] = entry("nccl:all_reduce", 2, inputs=((9,),))
        said = self.said(ranks)
        self.assertEqual(len(self.heads(said)), 2)
        self.assertNotIn("No errors found", said)

    def test_b16_checks_the_sizes_of_all_gather_base(self):
        said = self.said({rank: [entry("nccl:_all_gather_base", 1,
                                       inputs=((8,),), outputs=((31,),))]
                          for rank in range(4)})
        self.assertIn("Culprit rank 0; Error type: SIZE_OR_SYNTAX_MISMATCH, "
                      "Found input numel '8 * pg size 4' does not match output "
                      "numel '31'", said)
        self.assertEqual(self.said({
            rank: [entry("nccl:_all_gather_base", 1, inputs=((8,),),
                         outputs=((4, 8),))] for rank in range(4)}), "")

    def test_b17_prints_tables_by_itself(self):
        self.assertEqual(self.said({rank: reduces(1) for rank in range(2)} | {
            rank: [] for rank in (2, 3)}, "-j", "--selected-ranks", "0", "2"), """\
Rank 0                                          Rank 2
----------------------------------------------  --------
all_reduce(input_sizes=[[8]], state=completed)
""")

    def test_b18_runs_nothing_in_a_dump(self):
        mark = pathlib.Path(self.temporary.name) / "mark"
        contents = (b"\x80\x02cos\nsystem\n(X" +
                    len(f"touch {mark}").to_bytes(4, "little") +
                    f"touch {mark}".encode() + b"tR.")
        ranks = {rank: reduces(1) for rank in range(4)}
        ranks[2] = contents
        said = self.said(ranks, code=1)
        self.assertIn("Missing dump files from ranks {2}", said)
        self.assertFalse(mark.exists())

    def test_b19_missing_dumps_still_stop_it(self):
        ranks = {rank: reduces(1) for rank in range(3)}
        said = self.said(ranks, code=1)
        self.assertEqual(
            said, "AssertionError: Missing dump files from ranks {3}\n"
            "(--allow-incomplete-ranks continues without them; 'postflight trace "
            f"{self.folder}' shows who waits for them)\n")
        self.assertIn("we missed FR dumps from ranks ({3})",
                      self.said(ranks, "--allow-incomplete-ranks"))

    def test_b20_versions_may_differ(self):
        ranks = {rank: dump(reduces(1)) for rank in range(4)}
        ranks[2]["version"] = "2.9"
        self.assertEqual(
            self.said(ranks), "Rank 2 has different version 2.9 from the given "
            "version 2.10\n")

    def test_b20_members_may_be_unknown(self):
        self.assertEqual(self.said({
            rank: dump(reduces(2), groups={"0": ("default_pg", [])})
            for rank in range(4)}), "")

    def test_b21_names_the_first_operation_not_completed(self):
        said = self.run_on(FLIGHT / "nccl_missing_rank", "-v")
        self.assertIn("First collective not completed: nccl:all_reduce in "
                      "0:default_pg, sequence number: 6, state: scheduled on "
                      "ranks {0, 1, 3}\n", said)

    def test_b21_keeps_started_and_scheduled_ranks_apart(self):
        said = self.run_on(FLIGHT / "nccl_gpu_stall_timing", "-v")
        self.assertIn("sequence number: 5, state: scheduled on ranks {1}, "
                      "started on ranks {0, 2, 3}\n", said)
        self.assertNotIn("state: completed", said)

    def test_b21_accuses_nobody_who_waits_for_others(self):
        said = self.run_on(FLIGHT / "nccl_mesh_hang")
        self.assertEqual(re.findall("missing ranks: .*", said),
                         ["missing ranks: {1}"] * 2)

    def test_b22_rooted_operations_may_end_early(self):
        ranks = {rank: [*reduces(1), entry("nccl:broadcast", 2,
                                           state="scheduled")]
                 for rank in range(4)}
        ranks[0][1] = entry("nccl:broadcast", 2)
        self.assertEqual(self.said(ranks), "")

    def test_b22_dumps_are_taken_at_different_moments(self):
        self.assertEqual(self.run_on(FLIGHT / "nccl_long_run"), "")

    def test_b22_a_rank_that_never_finishes_is_named(self):
        status = {"0": {"last_enqueued_collective": 2,
                        "last_started_collective": -1,
                        "last_completed_collective": 2}}
        ranks = {}
        for rank in range(4):
            last = entry("nccl:all_reduce", 2)
            last["time_discovered_completed_ns"] = START + 2 * SECOND
            ranks[rank] = dump([*reduces(1), last], status=status)
        ranks[1] = dump([
            *reduces(1), entry("nccl:all_reduce", 2, state="scheduled"),
            entry("nccl:all_reduce", 3, state="scheduled",
                  time=START + 60 * SECOND)])
        said = self.said(ranks)
        self.assertIn("Culprit rank 1; Error type: COLLECTIVE_STATE_MISMATCH, "
                      "Expected state: 'completed' does not match found state: "
                      "'scheduled'", said)

    def test_b23_adds_all_tensors_of_all_to_all(self):
        ranks = {rank: [entry("nccl:all_to_all", 1, inputs=((4,), (4,)),
                              outputs=((4,), (4,)))] for rank in range(4)}
        self.assertEqual(self.said(ranks), "")
        ranks[2] = [entry("nccl:all_to_all", 1, inputs=((4,), (6,)),
                          outputs=((4,), (4,)))]
        said = self.said(ranks)
        self.assertIn("total input numel: 34\ntotal output numel: 32\n", said)

    def test_b24_groups_used_in_another_order_cost_nothing(self):
        groups = {"0": ("a", [0, 1]), "1": ("b", [0, 1])}
        count = 20_000
        first = [entry("nccl:all_reduce", i, group=("0", "a"))
                 for i in range(1, count + 1)]
        second = [entry("nccl:all_reduce", i, group=("1", "b"))
                  for i in range(1, count + 1)]
        self.assertEqual(self.said({
            0: dump([dict(one) for one in first + second], groups=groups),
            1: dump([dict(one) for one in second + first], groups=groups)}), "")

    def test_b25_descriptions_may_differ(self):
        ranks = {rank: dump(reduces(1)) for rank in range(4)}
        ranks[2]["pg_config"]["0"]["desc"] = "another"
        self.assertEqual(self.said(ranks),
                         "ranks describe group 0 differently: default_pg and "
                         "another\n")

    def test_b25_groups_need_not_be_configured(self):
        groups = {"0": ("default_pg", [0, 1, 2, 3])}
        ranks = {rank: dump([*reduces(1), entry("nccl:all_reduce", 1,
                                                group=("7", "late"))],
                            groups=groups) for rank in range(4)}
        self.assertEqual(self.said(ranks), "")

    def test_b25_two_files_may_be_of_one_rank(self):
        self.write({rank: reduces(1) for rank in range(4)})
        os.mkdir(self.folder / "again")
        (self.folder / "again/nccl_trace_rank_2").write_bytes(
            pickle.dumps(dump([]), protocol=2))
        said = self.run_on(self.folder)
        self.assertEqual(self.heads(said), [])
        self.assertIn("two files are dumps of rank 2", said)

    def test_b25_a_truncated_dump_counts_as_far_as_it_goes(self):
        ranks = {rank: reduces(3) for rank in range(4)}
        whole = pickle.dumps(dump(reduces(3)), protocol=2)
        ranks[2] = whole[:len(whole) * 3 // 4]
        said = self.said(ranks, "--allow-incomplete-ranks")
        self.assertIn("the dump is truncated or damaged", said)
        self.assertNotIn("missing ranks", said)
        ranks[2] = b""
        self.assertIn("Missing dump files from ranks {2}",
                      self.said(ranks, code=1))

    def test_b25_a_truncated_dump_is_told_once(self):
        ranks = {rank: dump(reduces(40)) for rank in range(4)}
        whole = pickle.dumps(dump(reduces(40)), protocol=2)
        ranks[2] = whole[:len(whole) // 3]
        said = self.said(ranks, "--allow-incomplete-ranks")
        self.assertEqual(said.count("We cannot decide"), 1, said)
        self.assertRegex(said, r"from sequence number \d+ on because the dumps "
                         r"of ranks \(\{2\}\) are cut there")
        self.assertNotIn("Too many mismatches", said)

    def test_b26_states_inside_a_batch_mean_nothing(self):
        def batch(state):
            return [entry("nccl:all_gather_into_tensor_coalesced", 1,
                          outputs=((32,),), state=state), closing(1, 0)]
        ranks = {rank: batch("scheduled") for rank in range(4)}
        ranks[1] = batch("completed")
        self.assertEqual(self.said(ranks), "")

    def test_b27_dumps_may_list_active_operations_only(self):
        def status(enqueued):
            return {"0": {"last_enqueued_collective": enqueued,
                          "last_started_collective": -1,
                          "last_completed_collective": 99}}
        def active(number, enqueued, record):
            return dump([entry("nccl:all_reduce", number, state="scheduled")]
                        if number else [], first_record=record,
                        status=status(enqueued))
        self.assertEqual(self.said({
            0: active(100, 100, 200), 1: active(100, 100, 300),
            2: active(100, 100, 150), 3: active(None, 100, 0)}), "")
        self.assertEqual(self.heads(self.said({
            0: active(100, 100, 200), 1: active(100, 100, 300),
            2: active(100, 100, 150), 3: active(None, 99, 0)})), [
                "Not all ranks joining collective, sequence number: 100",
                "missing ranks: {3}"])


class Arguments(unittest.TestCase):
    def run_with(self, *arguments, name=None):
        done = subprocess.run([name or PROGRAM, *arguments],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_sentences(self):
        dumps = str(FLIGHT / "nccl_healthy")
        with tempfile.TemporaryDirectory() as empty:
            for arguments, sentence in [
                    ([], "AssertionError: Trace directory trace_dir is "
                     "required\n"),
                    (["/nowhere"],
                     "AssertionError: folder /nowhere does not exist\n"),
                    ([empty], "ValueError: Unable to automatically determine "
                     "the common prefix for the trace file names. Please "
                     "specify --prefix argument manually\n"),
                    (["-p", "x_", dumps], "AssertionError: no files loaded "
                     f"from {dumps} with prefix x_\n"),
                    ([dumps, "--selected-ranks", "1"], "AssertionError: Not "
                     "support selecting ranks without printing entries\n"),
                    ([dumps, "--pg-filters", "a"], "AssertionError: Not "
                     "support selecting pg filters without printing "
                     "entries\n"),
                    ([dumps, "--transform-ft"], "AssertionError: World size "
                     "is required for transform_ft\n")]:
                with self.subTest(arguments=arguments):
                    self.assertEqual(self.run_with("fr-trace", *arguments),
                                     (1, "", sentence))
                    code, _, _ = self.run_with("fr-trace", "--exit-code",
                                               *arguments)
                    self.assertEqual(code, 2)

    def test_abbreviations(self):
        dumps = str(FLIGHT / "nccl_mesh_hang")
        full = self.run_with("fr-trace", dumps, "--just_print_entries",
                             "--selected-ranks", "0", "1", "--pg-filters",
                             "tp_0")
        self.assertEqual(full[0], 0)
        self.assertIn("Rank 1", full[2])
        self.assertNotIn("Rank 2", full[2])
        self.assertEqual(full, self.run_with(
            "fr-trace", dumps, "--just", "--sel", "0", "1", "--pg", "tp_0"))
        self.assertEqual(
            self.run_with("fr-trace", "-jv", dumps)[2].split("\n")[2:],
            self.run_with("fr-trace", "--j", "--v", dumps)[2].split("\n")[2:])
        self.assertEqual(self.run_with("fr-trace", "--p", dumps), (
            2, "", "postflight: ambiguous option: --p could match "
            "--pg-filters, --prefix, --print_stack_trace\n"))

    def test_other_name(self):
        with tempfile.TemporaryDirectory() as folder:
            link = pathlib.Path(folder) / "torchfrtrace"
            link.symlink_to(PROGRAM)
            dumps = str(FLIGHT / "nccl_missing_rank")
            self.assertEqual(self.run_with(dumps, name=link),
                             self.run_with("fr-trace", dumps))

    def test_exit_code_and_stdout(self):
        code, out, err = self.run_with("fr-trace", "--exit-code", "--stdout",
                                       str(FLIGHT / "nccl_missing_rank"))
        self.assertEqual((code, err), (1, ""))
        self.assertTrue(out.startswith("Not all ranks joining"))
        code, out, err = self.run_with("fr-trace", "--exit-code",
                                       str(FLIGHT / "nccl_healthy"))
        self.assertEqual((code, out, err), (0, "", ""))

    def test_transform_ft(self):
        with tempfile.TemporaryDirectory() as folder:
            waits = [entry("nccl:all_reduce", 2, state="scheduled")]
            for rank in range(4):
                path = pathlib.Path(folder) / f"nccl_trace_rank_{rank}"
                path.write_bytes(pickle.dumps(dump(
                    reduces(1) + (waits if rank != 3 else []),
                    groups={"0": ("default_pg", [0, 1]),
                            "1": ("other", [0, 1, 2, 3])}), protocol=2))
            code, _, err = self.run_with("fr-trace", folder, "--transform-ft",
                                         "--group-world-size", "2")
            self.assertEqual(code, 0)
            self.assertIn("missing ranks: {3}\n", err)
            self.assertIn("expected ranks: {2, 3}\n", err)

    def test_names_that_torchfrtrace_can_not_read(self):
        with tempfile.TemporaryDirectory() as folder:
            for rank in range(4):
                path = pathlib.Path(folder) / f"host{rank}_rank_{rank}.pkl"
                path.write_bytes(pickle.dumps(dump(reduces(1)), protocol=4))
            self.assertEqual(self.run_with("fr-trace", folder), (0, "", ""))


if __name__ == "__main__":
    PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
