"""Checkpoints of DeepSpeed's ZeRO, made after its public layout (the files that
its own zero_to_fp32.py reads) from the parameters they are to hold."""

import os
import struct

import torch_maker as torch


def flat(values):
    return torch.tensor("float32", [len(values)], values)


def elements(shape):
    count = 1
    for length in shape:
        count *= length
    return count


def padded(values, multiple):
    return values + [0.0] * (-len(values) % multiple)


def bits_of_bfloat16(values):
    return [struct.unpack("<I", struct.pack("<f", v))[0] >> 16 for v in values]


def model_states(stage, groups, ranks, **more):
    """`groups` are lists of (name, shape, values)."""
    module = {}
    for group in groups:
        for name, shape, values in group:
            module[name] = (torch.tensor("bfloat16", [0], []) if stage == 3 else
                            torch.tensor("bfloat16", shape,
                                         bits_of_bfloat16(values)))
    module["norm.running_mean"] = torch.tensor("float32", [2], [0.25, 0.5])
    shapes = [{name: torch.size(shape) for name, shape, _ in group}
              for group in groups]
    return {"module": module, "buffer_names": ["norm.running_mean"],
            "optimizer": None, "param_shapes": shapes,
            "frozen_param_shapes": {}, "frozen_param_fragments": {},
            "shared_params": {}, "lr_scheduler": None, "global_steps": 100,
            "dp_world_size": ranks, "mp_world_size": 1,
            "ds_version": "0.14.0", **more}


def stretches(stage, groups, ranks, sub_groups=1):
    """For each rank the flat tensors of a quantity, by group; in stage 3 by
    sub-group."""
    result = [[] for _ in range(ranks)]
    if stage < 3:
        for group in groups:
            values = [v for _, _, part in group for v in part]
            values = padded(values, 2 * ranks)
            length = len(values) // ranks
            for rank in range(ranks):
                result[rank].append(values[rank * length:(rank + 1) * length])
        return result
    everything = [item for group in groups for item in group]
    for i in range(sub_groups):
        for rank in range(ranks):
            mine = []
            for _, _, values in everything[i::1] if sub_groups == 1 else (
                    everything[i * len(everything) // sub_groups:
                               (i + 1) * len(everything) // sub_groups]):
                share = -(-len(values) // ranks)
                whole = values + [0.0] * (share * ranks - len(values))
                mine += whole[rank * share:(rank + 1) * share]
            result[rank].append(mine)
    return result


def scaled(groups, factor):
    return [[(name, shape, [v * factor for v in values])
             for name, shape, values in group] for group in groups]


def write(folder, stage, groups, ranks, lean=False, elastic=False,
          sub_groups=1, prefix="", frozen=(), **more):
    """A checkpoint of `ranks` ranks. The moments are the parameters times 2 and
    times 4. `lean`: without the padding, as newer versions save it; `elastic`:
    the moments as a list."""
    if frozen:
        more["frozen_param_shapes"] = {name: torch.size(shape)
                                       for name, shape, _ in frozen}
    weights = stretches(stage, groups, ranks, sub_groups)
    moments = {"exp_avg": stretches(stage, scaled(groups, 2), ranks,
                                    sub_groups),
               "exp_avg_sq": stretches(stage, scaled(groups, 4), ranks,
                                       sub_groups)}
    if lean:
        for parts in [weights] + list(moments.values()):
            for g, group in enumerate(groups):
                total = sum(len(values) for _, _, values in group)
                for rank in range(ranks):
                    left = total - sum(len(parts[r][g]) for r in range(rank))
                    parts[rank][g] = parts[rank][g][:max(0, left)]
    for rank in range(ranks):
        state = {i: {"step": 100, **{name: flat(parts[rank][i])
                                     for name, parts in moments.items()}}
                 for i in range(len(weights[rank]))}
        base = ([state[i] for i in state] if elastic else
                {"state": state, "param_groups": [{"lr": 1e-4}]})
        partitions = [flat(values) for values in weights[rank]]
        if stage == 3:
            optimizer = {"zero_stage": 3, "partition_count": ranks,
                         "optimizer_state_dict": base,
                         "fp32_flat_groups": partitions}
        else:
            optimizer = {"zero_stage": stage,
                         "partition_count": [ranks] * len(groups),
                         "base_optimizer_state": base,
                         "single_partition_of_fp32_groups": partitions,
                         "ds_version": "0.14.0"}
        torch.save(os.path.join(
            folder, "%szero_pp_rank_%d_mp_rank_00_optim_states.pt"
            % (prefix, rank)), {"optimizer_state_dict": optimizer})
        if stage == 3 or rank == 0:
            if frozen:
                more["frozen_param_fragments"] = {
                    name: frozen_part(stage, shape, values, rank, ranks)
                    for name, shape, values in frozen}
            name = ("zero_pp_rank_%d_mp_rank_00_model_states.pt" % rank
                    if stage == 3 else "mp_rank_00_model_states.pt")
            torch.save(os.path.join(folder, name),
                       model_states(stage, groups, ranks, **more))


def frozen_part(stage, shape, values, rank, ranks):
    if stage < 3:
        return torch.tensor("float32", shape, values)
    share = -(-len(values) // ranks)
    whole = values + [0.0] * (share * ranks - len(values))
    return flat(whole[rank * share:(rank + 1) * share])


def write_universal(folder, parameters):
    for name, shape, values in parameters:
        for kind, factor in (("fp32", 1), ("exp_avg", 2), ("exp_avg_sq", 4)):
            torch.save(os.path.join(folder, "zero", name, kind + ".pt"), {
                "param": torch.tensor("float32", shape,
                                      [v * factor for v in values]),
                "cat_dim": 0})
    torch.save(os.path.join(folder, "mp_rank_00_model_states.pt"),
               {"global_steps": 100, "module": {}})
