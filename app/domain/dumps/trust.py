"""Names that no dump of a server has: parts of Python and of libraries that would do something.

A dump names classes of SGLang, PyTorch, Transformers, or of a model's own code, and a few harmless
ones of the standard library. Of libraries, those are known here that attacks on readers of pickles
use. Nothing is ever looked up or called, so this is no gate: it tells that somebody made the file
to harm whoever loads it.
"""

import sys
from collections.abc import Iterable

_HARMLESS = frozenset(
    """
    collections.OrderedDict collections.defaultdict collections.deque collections.Counter
    copyreg._reconstructor copyreg.__newobj__ copyreg.__newobj_ex__ _codecs.encode
    builtins.object builtins.list builtins.dict builtins.tuple builtins.set builtins.frozenset
    builtins.int builtins.float builtins.bool builtins.complex builtins.str builtins.bytes
    builtins.bytearray builtins.slice builtins.range builtins.NoneType builtins.type
    __builtin__.object __builtin__.list __builtin__.dict __builtin__.tuple __builtin__.set
    __builtin__.frozenset __builtin__.int __builtin__.long __builtin__.float __builtin__.bool
    __builtin__.unicode __builtin__.str __builtin__.bytearray __builtin__.xrange
    copy_reg._reconstructor datetime.datetime datetime.date datetime.time datetime.timedelta
    datetime.timezone decimal.Decimal fractions.Fraction uuid.UUID array.array
    array._array_reconstructor pathlib.Path pathlib.PosixPath pathlib.PurePosixPath
    ipaddress.IPv4Address ipaddress.IPv6Address types.SimpleNamespace enum.Enum enum.IntEnum
    re._compile argparse.Namespace
    """.split()  # noqa: SIM905  (a word list reads best as words)
)
_PYTHON_2 = frozenset(("__builtin__", "copy_reg", "commands", "popen2", "urllib2"))
_PYTHON = sys.stdlib_module_names | _PYTHON_2
# Modules and functions of libraries that load code, files or pickles, or start programs.
_HARMFUL = frozenset(
    """
    numpy.f2py numpy.testing numpy.load numpy.distutils numpy.save numpy.savetxt numpy.fromfile
    torch.hub torch.load torch.save torch.jit torch.serialization torch.package torch._inductor
    torch._dynamo torch.utils.collect_env torch.utils.bottleneck torch.utils.cpp_extension
    torch.utils._config_module torch.utils.model_zoo
    pip setuptools pkg_resources distutils dill cloudpickle joblib pandas yaml ruamel requests
    urllib3 httpx aiohttp httplib webbrowser fsspec IPython nltk sympy lib2to3 keras tensorflow
    tensorflow_core sh fabric invoke paramiko pexpect
    """.split()  # noqa: SIM905
)


def not_of_a_server(paths: Iterable[str]) -> tuple[str, ...]:
    """Those of *paths* (``module.name``) that SGLang has no reason to write."""
    return tuple(
        path for path in paths if (_of_python(path) and path not in _HARMLESS) or _is_harmful(path)
    )


def _of_python(path: str) -> bool:
    return path.split(".", 1)[0] in _PYTHON


def _is_harmful(path: str) -> bool:
    """Whether *path*, or what it lies in, is among the harmful ones."""
    parts = path.split(".")
    return any(".".join(parts[:count]) in _HARMFUL for count in range(1, len(parts) + 1))
