# Phases with frame ids, as torch.compile has them.
from postflight_phase import phase

for name, frame_id in ("one", "1/0"), ("other", "1/01"), ("two", "2/0"):
    with phase(name, frame_id):
        for i in range(5_000_000):
            pass
