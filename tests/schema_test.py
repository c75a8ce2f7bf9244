"""Validates real --json output against docs/schema.

usage: schema_test.py PROGRAM
"""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

import jsonschema

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(ROOT, "tests", "data")


def samples():
    for pattern in ("ckpt/*.pt", "ckpt_more/*.pt", "dcp_*/.metadata",
                    "dcp_plain/*.distcp", "flight/nccl_missing_rank/*_0"):
        yield from sorted(glob.glob(os.path.join(DATA, pattern)))


def checkpoints():
    for pattern in ("ckpt/*.pt", "ckpt_more/*.pt", "ckpt_made/*.pt",
                    "ckpt*/*.safetensors", "ckpt/ranks", "ckpt/hf",
                    "ckpt_made/shards", "dcp_plain", "dcp_hf",
                    "sharded/*/", "sharded/*.gguf"):
        yield from sorted(glob.glob(os.path.join(DATA, pattern)))


def answers(program, *arguments):
    done = subprocess.run([program, *arguments], stdout=subprocess.PIPE,
                          check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def validator(schema_name):
    name = schema_name.split("/")[0].removeprefix("postflight.")
    path = os.path.join(ROOT, "docs", "schema", name + ".json")
    with open(path, encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["title"] == schema_name, path
    return jsonschema.Draft202012Validator(schema)


def main():
    program = sys.argv[1]
    files = list(samples())
    collected = answers(program, "version", "--json")
    streams = answers(program, "stream", "list", "--json")
    with tempfile.TemporaryDirectory() as folder:
        encoded, decoded = (os.path.join(folder, name) for name in "ab")
        streams += answers(program, "stream", "encode", "--json", "--with",
                           "stream.zstd/1,stream.rot13/1", "-i", files[0],
                           "-o", encoded)
        streams += answers(program, "stream", "decode", "--json", "--with",
                           "stream.zstd/1,stream.rot13/1", "-i", encoded,
                           "-o", decoded)
        streams += answers(program, "stream", "decode", "--json", "--quiet",
                           "--with", "stream.zstd/1", "-i", files[0], "-o",
                           decoded, "--force")
    assert len(streams) == 4, streams
    assert streams[3]["damage"] is not None
    collected += answers(program, "pickle", "--json", *files)
    collected += answers(program, "pickle", "--json", "--disassemble", *files)
    collected += answers(program, "pickle", "--json", "--decompile", *files)
    collected += answers(program, "pickle", "--json", "--against-loaders",
                         *files)
    jobs = sorted(glob.glob(os.path.join(DATA, "flight*", "*")))
    for job in jobs:
        collected += answers(program, "trace", "--json", job)
    assert len(collected) == 1 + 4 * len(files) + len(jobs), len(collected)
    nodes = answers(program, "trace", "--nodes", "--json", "--hosts",
                    "node[1-2] x2",
                    os.path.join(DATA, "flight", "nccl_missing_rank"))
    assert nodes[0]["hosts"] == ["node2"], nodes
    collected += nodes
    collected += streams
    for path in checkpoints():
        collected += answers(program, "ckpt", "ls", "--all", "--json", path)
        collected += answers(program, "ckpt", "digest", "--json", path)
        collected += answers(program, "ckpt", "show", "--json", path)
        collected += answers(program, "ckpt", "verify", "--json", path)
        collected += answers(program, "ckpt", "read", "--json",
                             "--map-location", "meta", path)
    numbers = os.path.join(DATA, "ckpt_made", "numbers.safetensors")
    state = os.path.join(DATA, "ckpt", "train_state.pt")
    for path in (numbers, state):
        collected += answers(program, "ckpt", "stats", "--json", path)
        collected += answers(program, "ckpt", "diff", "--json", path, state)
    collected += answers(program, "ckpt", "scan", "--json",
                         os.path.join(DATA, "ckpt"))
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(state, os.path.join(folder, "step_1.pt"))
        for command in ("log", "latest"):
            collected += answers(program, "ckpt", command, "--json", folder)
        collected += answers(program, "ckpt", "bisect", "--json", folder,
                             "--until", "model.0* min<0")
        manifest = os.path.join(folder, "manifest.json")
        answers(program, "ckpt", "digest", "--json", state, "--manifest",
                manifest)
        with open(manifest, encoding="utf-8") as file:
            collected.append(json.load(file))
        for command, extra in (("convert", []), ("reshard", ["--ranks", "2"]),
                               ("salvage", [])):
            written = answers(program, "ckpt", command, "--json", state,
                              os.path.join(folder, command), "--to", "dcp",
                              *extra)
            assert len(written) == 1, command
            collected += written
        first = os.path.join(DATA, "ckpt", "basic.pt")
        deltas = [os.path.join(folder, name) for name in ("1.pfd", "2.pfd")]
        collected += answers(program, "ckpt", "delta", "--json", first, state,
                             "-o", deltas[0])
        collected += answers(program, "ckpt", "delta", "--json", state, first,
                             "-o", deltas[1])
        collected += answers(program, "ckpt", "fold", "--json", *deltas, "-o",
                             os.path.join(folder, "3.pfd"))
        written = answers(program, "ckpt", "apply", "--json", first, deltas[0],
                          os.path.join(folder, "applied.pt"))
        written += answers(program, "ckpt", "merge", "--json",
                           os.path.join(DATA, "sharded", "fsdp"),
                           os.path.join(folder, "merged.pt"))
        assert len(written) == 2, written
        collected += written
    for job in ("nccl_p2p_ring_coalesced", "nccl_coalesced_collectives",
                "nccl_mesh_hang", "nccl_wrapped"):
        whole = answers(program, "fr-trace", "--json", "-p", "nccl_trace_rank_",
                        os.path.join(DATA, "flight", job))
        assert len(whole) == 1, job
        collected += whole
    for job in ("flight/nccl_p2p_ring_coalesced", "flight/gloo_crashed_rank",
                "flight_json/nccl_straggler"):
        lines = answers(program, "entries", "--json", os.path.join(DATA, job))
        assert lines
        collected += lines
    for name in ("good.env", "train.sbatch"):
        collected += answers(
            program, "doctor", "--json", "--env",
            os.path.join(DATA, "doctor", name),
            os.path.join(DATA, "flight", "nccl_missing_rank"))
    collected += answers(program, "stacks", "--json", *sorted(glob.glob(
        os.path.join(DATA, "stacks", "*.[htj]*"))))
    for name in ("train-rank0", "train-rank1", "cut"):
        collected += answers(program, "profile", "report", "--json",
                             os.path.join(DATA, "profile", name + ".pflog"))
    validators = {}
    validated = {}
    for answer in collected:
        name = answer["schema"]
        validators.setdefault(name, validator(name)).validate(answer)
        validated[name] = answer
    # A schema that takes anything would pass the above.
    broken = dict(collected[1], verdict={"runs_code": "perhaps"})
    assert not validators["postflight.pickle/1"].is_valid(broken)
    broken = dict(validated["postflight.trace/1"], verdict={"kind": "perhaps"})
    assert not validators["postflight.trace/1"].is_valid(broken)
    broken = dict(validated["postflight.doctor/1"], settings=[{}])
    assert not validators["postflight.doctor/1"].is_valid(broken)
    broken = dict(validated["postflight.stacks/1"], processes=[{}])
    assert not validators["postflight.stacks/1"].is_valid(broken)
    broken = dict(validated["postflight.profile/1"], functions=[{}])
    assert not validators["postflight.profile/1"].is_valid(broken)
    line = next(line for line in collected if "record_id" in line)
    assert not validators["postflight.entries/1"].is_valid(
        dict(line, record_id=int(line["record_id"])))
    print("%d answers fit %s" % (len(collected), ", ".join(sorted(validators))))


if __name__ == "__main__":
    main()
