"""The same folder gives the same bytes, whatever the order and the threads."""
import pathlib
import random
import subprocess
import sys
import unittest

DATA = pathlib.Path(__file__).parent / 'data' / 'flight'
FOLDERS = ['nccl_tp_fsdp', 'gloo_mesh_hang', 'nccl_order_swap', 'nccl_wrapped',
           'nccl_p2p_unmatched', 'nccl_fsdp_skipped_layer']


class Determinism(unittest.TestCase):
    program = ''

    def output(self, *arguments):
        done = subprocess.run([self.program, *arguments], capture_output=True,
                              timeout=120, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_trace_says_the_same(self):
        for folder in FOLDERS:
            files = sorted(str(file) for file in (DATA / folder).iterdir()
                           if 'rank_' in file.name)
            for form in (['--json'], ['--all'], ['--rank', '0']):
                with self.subTest(folder=folder, form=form):
                    first = self.output('trace', *files, *form,
                                        '--threads', '1')
                    self.assertIn(first[0], (0, 1))
                    shuffled = random.Random(7).sample(files, len(files))
                    for threads in ('1', '2', '8'):
                        again = self.output('trace', *shuffled, *form,
                                            '--threads', threads)
                        # The text ends with the next command.
                        self.assertEqual(
                            [line for line in first[1].splitlines()
                             if not line.startswith((b'Next:', b'      '))],
                            [line for line in again[1].splitlines()
                             if not line.startswith((b'Next:', b'      '))])
                        self.assertEqual(first[0], again[0])
                        self.assertEqual(first[2], again[2])

    def test_entries_and_fr_trace_say_the_same(self):
        for folder in FOLDERS:
            for command in (['entries', '--json'], ['fr-trace', '--json']):
                path = str(DATA / folder)
                with self.subTest(folder=folder, command=command):
                    first = self.output(command[0], path, command[1],
                                        '--threads', '1')
                    again = self.output(command[0], path, command[1],
                                        '--threads', '8')
                    self.assertEqual(first, again)


if __name__ == '__main__':
    Determinism.program = sys.argv.pop(1)
    unittest.main()
