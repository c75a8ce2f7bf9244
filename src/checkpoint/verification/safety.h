#pragma once

#include "checkpoint/model/checkpoint.h"
#include "pickle/audit/safety.h"

namespace postflight {

// What loading a checkpoint in Python would do at worst: the verdicts that
// postflight pickle gives on its files, merged. Items that went through
// transforms are judged as they are after decoding; with `quickly` they are not
// decoded, which would read all of them, and so are unknown.
SafetyVerdict safety_of(const Checkpoint& checkpoint, bool quickly = false);

// Only of what the metadata says to be items and is not found in their files
// without it.
SafetyVerdict safety_of_items(const Checkpoint& checkpoint);

}  // namespace postflight
