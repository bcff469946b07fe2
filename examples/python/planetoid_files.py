# SPDX-License-Identifier: Apache-2.0
"""Opens Planetoid's files (ind.NAME.x and its siblings), for to_npz.py.

They are pickles, and a pickle may run any code. So nothing is opened but NumPy's arrays, plain containers and SciPy's
sparse matrices, in whose place stands a class that only keeps what it is given: no code of the files runs, and SciPy
need not be installed.
"""
import collections
import os
import pickle

import numpy as np
from torch_files import Kept, Refused

try:
    from numpy._core import multiarray
except ImportError:  # NumPy 1
    from numpy.core import multiarray


class SparseMatrix(Kept):
    """Rows of a matrix: what scipy.sparse.csr_matrix keeps."""

    def toarray(self):
        rows, columns = self._shape
        dense = np.zeros((rows, columns), dtype=np.float32)
        dense[np.repeat(np.arange(rows), np.diff(self.indptr)), self.indices] = self.data
        return dense


def encode(text, encoding):
    """Bytes, as Python 2 wrote them for Python 3: _codecs.encode for the one encoding that is needed."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes as {encoding}")
    return text.encode(encoding)


def reconstruct(kind, shape, dtype):
    """An array that is yet to be filled."""
    if kind is not np.ndarray:
        raise pickle.UnpicklingError(f"an array of {kind}")
    return multiarray._reconstruct(kind, shape, dtype)


def new_object(kind, base, state):
    """What copyreg makes of a sparse matrix under old protocols."""
    if kind is not SparseMatrix:
        raise pickle.UnpicklingError(f"an object of {kind}")
    return SparseMatrix()


ALLOWED = {
    **{f"scipy.sparse.{module}.csr_matrix": SparseMatrix for module in ("csr", "_csr")},
    **{f"numpy.{core}.multiarray._reconstruct": reconstruct for core in ("core", "_core")},
    **{f"numpy.{core}.multiarray.scalar": multiarray.scalar for core in ("core", "_core")},
    **{f"{module}._reconstructor": new_object for module in ("copy_reg", "copyreg")},
    **{f"{module}.{kind.__name__}": kind for module in ("__builtin__", "builtins") for kind in (list, object)},
    "collections.defaultdict": collections.defaultdict,
    "numpy.dtype": np.dtype,
    "numpy.ndarray": np.ndarray,
    "_codecs.encode": encode,
}


class Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        if f"{module}.{name}" not in ALLOWED:
            raise Refused(f"an object of {module}.{name}, which is not opened, since it could run code")
        return ALLOWED[f"{module}.{name}"]


def opened(folder, name, part):
    """The graph, a dictionary of lists of neighbours, or a matrix of two dimensions."""
    path = os.path.join(folder, f"ind.{name}.{part}")
    with open(path, "rb") as file:
        try:
            found = Unpickler(file, encoding="latin1").load()
            if isinstance(found, SparseMatrix):
                found = found.toarray()
        except Refused as problem:
            raise Refused(f"{path} holds {problem}") from None
        except Exception as problem:  # a damaged pickle may raise anything
            raise Refused(f"{path} is damaged: {(str(problem) or type(problem).__name__).splitlines()[0]}") from None
    if isinstance(found, dict) if part == "graph" else isinstance(found, np.ndarray) and found.ndim == 2:
        return found
    raise Refused(f"{path} holds no {'lists of neighbours' if part == 'graph' else 'matrix'}, but a {type(found).__name__}")
