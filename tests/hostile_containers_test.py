#!/usr/bin/python3
"""No part of a container goes unseen.

    hostile_containers_test.py POSTFLIGHT

Files that hide something where a scanner may not look: behind what is
compressed, in comments and extra fields of zip archives, in names, in headers
of formats that hold no pickles. None may be SAFE; beside each kind there is an
ordinary file that must be. Issue 16.
"""
import bz2
import gzip
import io
import json
import lzma
import pathlib
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib

EVIL = b'\x80\2cposix\nsystem\nX\2\0\0\0id\x85R.'
PLAIN = b'\x80\2}.'
TORCH = [('a/data.pkl', PLAIN), ('a/byteorder', b'little'),
         ('a/data/0', bytes(8)), ('a/version', b'3\n')]
SCRIPT = [('a/data.pkl', b'\x80\2c__torch__\nM\n)\x81}b.'),
          ('a/constants.pkl', b'\x80\2).'), ('a/version', b'3')]


def zipped(entries, comment=b'', extra=b'', entry_comment=b'',
           method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w', method) as archive:
        for name, contents in entries:
            info = zipfile.ZipInfo(name)
            info.extra, info.comment = extra, entry_comment
            info.compress_type = method
            archive.writestr(info, contents)
        archive.comment = comment
    return out.getvalue()


def tarred(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w') as archive:
        for name, contents in members:
            info = tarfile.TarInfo(name)
            if isinstance(contents, str):
                info.type, info.linkname = tarfile.SYMTYPE, contents
                archive.addfile(info)
            else:
                info.size = len(contents)
                archive.addfile(info, io.BytesIO(contents))
    return out.getvalue()


def array(descr, shape, body):
    header = ("{'descr': %s, 'fortran_order': False, 'shape': %s, }" % (
        descr, shape)).encode().ljust(117) + b'\n'
    return b'\x93NUMPY\1\0' + struct.pack('<H', len(header)) + header + body


def safetensors(header, body=b'x'):
    return struct.pack('<Q', len(header)) + header + body


def script(code):
    return zipped(SCRIPT + [('a/code/__torch__.py', code)])


def yaml_in_tar(text):
    return tarred([('model_config.yaml', text), ('w.ckpt', zipped(TORCH))])


def keras(config):
    return zipped([('config.json', json.dumps(config).encode()),
                   ('metadata.json', b'{}')])


def unicode_path(name, path):
    path = path.encode()
    return struct.pack('<HHBI', 0x7075, 5 + len(path), 1,
                       zlib.crc32(name.encode())) + path


TENSOR = b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
SAFE = {
    'zip': zipped(TORCH),
    'zip_deflated': zipped(TORCH, method=zipfile.ZIP_DEFLATED),
    'zip_line_of_comment': zipped(TORCH, comment=b'made by hand'),
    'zip_times': zipped(TORCH, extra=struct.pack('<HHBI', 0x5455, 5, 1, 0)),
    'tar': tarred([('a/b.pkl', PLAIN), ('a/link', 'b.pkl')]),
    'zlib': zlib.compress(PLAIN),
    'bz2_twice': bz2.compress(PLAIN) + bz2.compress(b''),
    'xz_zeros': lzma.compress(PLAIN) + bytes(4),
    'numpy': array("'<f4'", '(2,)', bytes(8)),
    'numpy_fields': array("[('a', '<f4'), ('b', '|u1', (3,)), ('c', [('d', "
                          "'<i2')])]", '(2,)', bytes(18)),
    'safetensors': safetensors(TENSOR),
    'script': script(b'class M(Module):\n  def forward(self: __torch__.M, '
                     b'x: Tensor) -> Tensor:\n    return torch.add(x, x)\n'),
    'yaml': yaml_in_tar(b'optim:\n  _target_: torch.optim.Adam\n'),
    'keras': keras({'module': 'keras.layers', 'class_name': 'Dense',
                    'config': {'units': 3}}),
}
HOSTILE = {
    'zlib_tail': zlib.compress(PLAIN) + EVIL,
    'zlib_gzip_tail': zlib.compress(PLAIN) + gzip.compress(EVIL),
    'gzip_tail': gzip.compress(PLAIN) + EVIL,
    'lzma_tail': lzma.compress(PLAIN, format=lzma.FORMAT_ALONE) + EVIL,
    'xz_tail': lzma.compress(PLAIN) + EVIL,
    'gzip_second_member': gzip.compress(PLAIN) + gzip.compress(EVIL),
    'gzip_split': gzip.compress(EVIL[:9]) + gzip.compress(EVIL[9:]),
    'chain': gzip.compress(bz2.compress(lzma.compress(EVIL))),
    'zip_comment': zipped(TORCH, comment=EVIL),
    'zip_entry_comment': zipped(TORCH, entry_comment=EVIL),
    'zip_extra': zipped(TORCH, extra=struct.pack('<HH', 0x4646, len(EVIL)) +
                        EVIL),
    'zip_padding': zipped(TORCH, extra=b'FB' + struct.pack('<H', len(EVIL)) +
                          EVIL),
    'zip_unicode_path': zipped(
        [('a/data.pkl', PLAIN), ('a/data/1', b'x')],
        extra=unicode_path('a/data/1', 'a/data.pkl')),
    'zip_zero_in_name': zipped(TORCH).replace(b'a/byteorder', b'a/data.pk\0l'),
    'zip_traversal': zipped(TORCH + [('../../a.txt', b'x')]),
    'zip_absolute': zipped(TORCH + [('/etc/a.txt', b'x')]),
    'zip_bytecode': zipped(TORCH + [('a/collections.pyc', b'\xcb\r\r\n')]),
    'tar_traversal': tarred([('../x', b'hello')]),
    'tar_link': tarred([('link', '/etc')]),
    'tar_link_up': tarred([('a/link', '../../b')]),
    'numpy_negative': array("'<f4'", '(-1,)', EVIL),
    'numpy_fields_tail': array("[('a','<f4')]", '()', EVIL),
    'numpy_fields_objects': array("[('a','<f4'),('b',[('c','|O')])]", '()',
                                  EVIL),
    'numpy_tail': array("'<f4'", '(1,)', bytes(4) + EVIL),
    'safetensors_twice': safetensors(TENSOR[:-1] + b',' + TENSOR[1:]),
    'safetensors_tail': safetensors(TENSOR, b'x' + EVIL),
    'script_saves': script(
        b'class M(Module):\n  def __setstate__(self: __torch__.M, state: int)'
        b' -> NoneType:\n    torch.save(state, "/tmp/x")\n    return None\n'),
    'script_reads': script(b'    _0 = torch.from_file("/etc/passwd")\n'),
    'script_bytecode': zipped(SCRIPT + [
        ('a/bytecode.pkl', b'\x80\2X\12\0\0\0aten::save.')]),
    'yaml_target': yaml_in_tar(b'model:\n  _target_: os.system\n'),
    'yaml_class': yaml_in_tar(b'model: {_target_: "mine.Model", a: 1}\n'),
    'keras_fetches': keras({'module': 'keras.utils', 'class_name': 'get_file',
                            'config': {}}),
    'keras_loads': keras({'module': 'keras.layers', 'config': {},
                          'class_name': 'TFSMLayer'}),
    'keras_reads': keras({'module': 'keras.layers', 'config': {
        'vocabulary': '/etc/passwd'}, 'class_name': 'StringLookup'}),
    'ndarray_over_bytes': b'\x80\4cnumpy\nndarray\n(K\1\x85cnumpy\ndtype\n'
                          b'(X\1\0\0\0O\x89\x88tRC\x08AAAAAAAAtR.',
    'module_of_module': b'\x80\4\x8c\4math\x8c\x16__loader__.load_module\x93'
                        b'(Vos\ntR.',
}


def verdict(program, path):
    run = subprocess.run([program, 'pickle', '--json', '--summary', str(path)],
                         capture_output=True, check=False)
    assert run.returncode in (0, 1), (path, run.returncode, run.stderr)
    answer = json.loads(run.stdout)['verdict']
    assert (answer['name'] == 'SAFE') == (run.returncode == 0), path
    reasons = [reason['message'] for reason in answer['reasons']]
    return answer['name'], reasons[0] if reasons else ''


def main():
    program = sys.argv[1]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for safe, files in ((True, SAFE), (False, HOSTILE)):
            for name, data in files.items():
                path = pathlib.Path(folder) / name
                path.write_bytes(data)
                said, reason = verdict(program, path)
                if (said == 'SAFE') != safe:
                    wrong += 1
                    print('FAILED', name, 'is', said, reason)
    print('%d safe and %d hostile files, %d wrong' % (
        len(SAFE), len(HOSTILE), wrong))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
