"""Policies in Python: classes that decide for a slot of the drive.

A file with policies is imported only where a command names it with `--policy FILE`; a program or a notebook declares
its classes by running. A spec names a policy as it names a built-in one, and never names code.

The identity of a policy is a hash of everything that its decisions can depend on beside its parameters: the text of the
class, of its bases and of the functions that it uses, the values of the globals and closures in them, the files that it
declares, and the versions of Python and of the packages that it uses. A run is found again only if the identity is the
same. If a part has no text or value, the identity is a new one in each process, and `unknown` says why.
"""

from __future__ import annotations

import builtins
import difflib
import dis
import hashlib
import importlib.metadata
import importlib.util
import inspect
import json
import os
import pickle
import re
import sys
import sysconfig
import traceback
import types
import uuid
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from nandlab import _core
from nandlab.errors import OutputError, os_error_text, shown

#: The folder of this package.
_PACKAGE = Path(__file__).parent


#: A class that decides for a slot.
_Class = TypeVar("_Class", bound=type)

#: The methods without which a class cannot decide for a slot.
_NEEDED = {
    "ftl.streams": ("stream",),
    "gc.victim": ("pick",),
    "ecc.start": ("start",),
    "cache.eviction": ("pick",),
    "cache.sync": (),
    "migration.policy": ("copies_back",),
    "ftl.map.demand.eviction": ("evict",),
}


#: By slot, the methods that are called with the events of the drive; `on_events` takes them in batches.
_HOOKS = {
    "ftl.streams": ("on_events", "on_written", "on_opened", "on_erased"),
    "gc.victim": ("on_events", "on_closed"),
    "ecc.start": ("on_events", "on_decoded", "on_erased"),
    "cache.eviction": ("on_events", "on_insert", "on_hit", "on_remove"),
    "cache.sync": (),
    "migration.policy": (),
    "ftl.map.demand.eviction": ("on_events", "on_insert", "on_hit", "on_level"),
}


class Param(NamedTuple):
    """A parameter of a policy."""

    default: float | None
    low: float
    high: float
    help: str


def param(default: float | None = None, *, low: float, high: float, help: str) -> Any:
    """A parameter of a policy: `k: int = nandlab.param(8, low=1, high=64, help="blocks drawn")`.

    The annotation of the attribute, `int` or `float`, is the type of the values. Without a default the spec must set
    the parameter. `low` and `high` are the lowest and the highest value allowed; `help` is a line with the unit.
    """
    return Param(default, low, high, help)


def policy(
    slot: str, name: str | None = None, *, files: Iterable[str | os.PathLike[str]] = (), copies: bool = True
) -> Callable[[_Class], _Class]:
    """Declare a class as a policy of `slot`, such as `gc.victim`.

    A spec names it by `name`, by default the name of the class in small letters with hyphens. `files` are files that
    the class reads; their content is part of the identity. `copies`: whether an object can be copied with the state of
    its drive, by its method `copy()` or else by `copy.deepcopy`; if not, runs share no preconditioned drive.

    Raises `ValueError` for a slot that takes no policies, a name that is taken or cannot be one, a parameter whose
    range or default cannot be, and a class without the method that decides.
    """

    def declare(cls: _Class) -> _Class:
        kebab = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+", "-", cls.__name__).strip("-").lower()
        place = _place(cls)
        named_files: list[str | os.PathLike[str]] = [files] if isinstance(files, (str, os.PathLike)) else list(files)
        try:
            about = (inspect.getdoc(cls) or "a policy in Python").splitlines()[0]
            identity = _Identity(cls, named_files)
            digest = identity.digest()
            declared = _core.Policy(slot, name or kebab, about, _params(cls), cls, digest, place, copies)
            for method in _NEEDED.get(slot, ()):
                if not callable(getattr(cls, method, None)):
                    raise ValueError(f"a policy of {slot} needs the method {method}")
            _check_hooks(cls, slot)
        except ValueError as error:
            raise ValueError(f"{place[0]}:{place[1]}: {cls.__name__}: {error}") from None
        _core.declare_policy(declared)
        # What is not known has no second identity.
        _files[slot, declared.name] = None if identity.unknown else named_files
        return cls

    return declare


#: By slot and name, the files that a declared class reads; `None` if its identity is not known.
_files: dict[tuple[str, str], list[str | os.PathLike[str]] | None] = {}


def refresh(text: str, sets: Iterable[str]) -> None:
    """Give the classes that a spec may name their present identities: values of globals may have changed.

    `text` and `sets` are those of the spec.
    """
    words = "\n".join((text, *sets))
    for policy in _core.declared_policies():
        files = _files.get((policy.slot, policy.name))
        if files is None or policy.name not in words:
            continue
        try:
            identity = _Identity(policy.class_, files).digest()
        except ValueError as error:
            raise OutputError(f'{policy.slot} = "{policy.name}": {error}') from None
        slot, name, about, params, cls, before, place, copies = policy.arguments
        if identity != before:
            _core.declare_policy(_core.Policy(slot, name, about, params, cls, identity, place, copies))


def _check_hooks(cls: type, slot: str) -> None:
    """Raise `ValueError` for a method with the name of a hook that the slot does not have: it would never be called."""
    hooks = _HOOKS.get(slot, ())
    for method in dir(cls):
        if method.startswith("on_") and method not in hooks:
            near = difflib.get_close_matches(method, hooks, 1)
            mean = f"did you mean {near[0]}? " if near else ""
            there = f"hooks of the slot: {', '.join(hooks)}" if hooks else "the slot has no hooks"
            text = f"a policy of {slot} has no hook {method}"
            raise ValueError(f"{text}\n  remedy: {mean}{there}; a method of your own needs another name")


def _place(cls: type) -> tuple[str, int]:
    """File and line of a class."""
    try:
        return inspect.getsourcefile(cls) or "?", inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        return getattr(sys.modules.get(cls.__module__), "__file__", None) or f"<{cls.__module__}>", 1


def _params(cls: type) -> list[tuple[str, float | None, float, float, bool, str]]:
    """The parameters of a class, those of its bases first."""
    found: dict[str, tuple[str, float | None, float, float, bool, str]] = {}
    for base in reversed(cls.__mro__):
        types_of = {key: str(getattr(kind, "__name__", kind)) for key, kind in inspect.get_annotations(base).items()}
        for key, value in vars(base).items():
            if not isinstance(value, Param):
                continue
            kind = types_of.get(key)
            if kind not in ("int", "float"):
                raise ValueError(f"the parameter {key} needs the annotation int or float")
            default, low, high, help = value
            if not low <= high:
                raise ValueError(f"the parameter {key}: expected low <= high, found {low} and {high}")
            if default is not None and not low <= default <= high:
                raise ValueError(f"the parameter {key}: the default {default} is not from {low} to {high}")
            numbers = [number for number in (default, low, high) if number is not None]
            if kind == "int" and (low < 0 or any(number != int(number) for number in numbers)):
                raise ValueError(f"the parameter {key} is an int: expected whole numbers from 0")
            found[key] = (key, default, low, high, kind == "int", help)
    return list(found.values())


# ------------------------------------------------------------------------------------------------------------ identity

_STANDARD = tuple(os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))
_INSTALLED = tuple({os.path.realpath(sysconfig.get_path(name)) for name in ("purelib", "platlib")})
#: Attributes of a class that Python sets.
_SET_BY_PYTHON = {"__dict__", "__weakref__", "__module__", "__doc__", "__annotations__", "__qualname__"}


#: The source texts of classes and functions.
_sources: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def _is_below(file: str, folders: tuple[str, ...]) -> bool:
    path = os.path.realpath(file)
    return any(path.startswith(folder + os.sep) for folder in folders)


def _is_installed(file: str) -> bool:
    """Whether a file belongs to an installed package, whose version stands for its content."""
    return _is_below(file, _INSTALLED)


class _Identity:
    """Collects what the decisions of a class depend on."""

    def __init__(self, cls: type, files: Iterable[str | os.PathLike[str]]) -> None:
        self._parts: dict[str, Any] = {}
        self._seen: set[int] = set()
        #: Why the identity is not known.
        self.unknown: list[str] = []
        self._packages = {"numpy"}
        self._class(cls, cls.__name__)
        for file in files:
            path = Path(file)
            if not path.is_absolute():
                path = Path(_place(cls)[0]).parent / path
            try:
                self._parts[f"file {os.fspath(file)}"] = hashlib.sha256(path.read_bytes()).hexdigest()
            except OSError as error:
                raise ValueError(os_error_text("read", path, error)) from None

    def digest(self) -> str:
        """The identity, in hexadecimal digits."""
        versions = {name: _version(name) for name in sorted(self._packages)}
        if self.unknown:
            self._parts["unknown"] = uuid.uuid4().hex
            print(f"nandlab: runs of this policy are not kept for another process: {self.unknown[0]}", file=sys.stderr)
        content = {"python": sys.version, "packages": versions, "parts": self._parts}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def _class(self, cls: type, where: str) -> None:
        if id(cls) in self._seen or self._is_foreign(cls):
            return
        self._seen.add(id(cls))
        self._source(cls, where)
        for base in cls.__mro__[1:]:
            self._class(base, f"{where} base {base.__qualname__}")
        for name, value in vars(cls).items():
            if name not in _SET_BY_PYTHON:
                self._value(value, f"{where}.{name}")

    def _source(self, thing: Any, where: str) -> None:
        try:
            # The text on disk may have changed since.
            if thing not in _sources:
                _sources[thing] = inspect.getsource(thing)
            self._parts[f"source {where}"] = _sources[thing]
        except (OSError, TypeError):
            self.unknown.append(f"there is no source text of {where}")

    def _is_foreign(self, thing: Any) -> bool:
        """Whether a class or function belongs to Python or to an installed package, whose version counts."""
        module = sys.modules.get(getattr(thing, "__module__", None) or "")
        file = getattr(module, "__file__", None)
        if module is None or file is None:
            return getattr(module, "__name__", "") in sys.builtin_module_names or module is builtins
        package = module.__name__.split(".")[0]
        if _is_installed(file) or package == "nandlab":
            self._packages.add(package)
            return True
        return _is_below(file, _STANDARD)

    def _function(self, function: types.FunctionType, where: str) -> None:
        if id(function) in self._seen or self._is_foreign(function):
            return
        self._seen.add(id(function))
        self._source(function, where)
        for value in (function.__defaults__ or (), function.__kwdefaults__ or {}):
            self._value(value, f"{where} defaults")
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                self._value(cell.cell_contents, f"{where} {name}")
            except ValueError:
                continue  # the cell of a name without a value yet, such as that of the class itself
        for name in _globals_of(function.__code__):
            if name in function.__globals__:
                self._value(function.__globals__[name], f"global {name}")

    def _value(self, value: Any, where: str) -> None:
        """Add a value that code uses."""
        if isinstance(value, types.ModuleType):
            package = value.__name__.split(".")[0]
            file = getattr(value, "__file__", None)
            if package in sys.stdlib_module_names:
                return
            if file is not None and not _is_installed(file) and package != "nandlab":
                try:
                    self._parts[f"module {value.__name__}"] = hashlib.sha256(Path(file).read_bytes()).hexdigest()
                except OSError:
                    self.unknown.append(f"the module {value.__name__} cannot be read")
                return
            self._packages.add(package)
            return
        # A function compiled by numba has the function that it was made from.
        made_from = getattr(value, "py_func", None)
        if isinstance(made_from, types.FunctionType):
            self._packages.add(type(value).__module__.split(".")[0])
            self._function(made_from, where)
        elif isinstance(value, types.FunctionType):
            self._function(value, where)
        elif isinstance(value, (staticmethod, classmethod)):
            self._value(value.__func__, where)
        elif isinstance(value, property):
            for part in (value.fget, value.fset):
                if part is not None:
                    self._value(part, where)
        elif isinstance(value, type):
            self._class(value, where)
        else:
            self._plain(value, where)

    def _plain(self, value: Any, where: str) -> None:
        """Add a value that is not code."""
        if isinstance(value, (types.BuiltinFunctionType, types.MemberDescriptorType, types.GetSetDescriptorType)):
            self._parts[where] = getattr(value, "__qualname__", "")
        elif value is None or value is Ellipsis or isinstance(value, (bool, int, float, complex, str, bytes)):
            self._parts[where] = f"{type(value).__name__} {value!r}"
        elif isinstance(value, (tuple, list)):
            self._parts[where] = f"{type(value).__name__} of {len(value)}"
            for number, item in enumerate(value):
                self._value(item, f"{where}[{number}]")
        elif isinstance(value, (set, frozenset)):
            self._plain(sorted(value, key=repr), where)
        elif isinstance(value, dict):
            self._parts[where] = f"dict of {len(value)}"
            for key, item in value.items():
                self._value(item, f"{where}[{key!r}]")
        elif type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
            about = f"{getattr(value, 'dtype', '')} {getattr(value, 'shape', '')}"
            self._parts[where] = f"{about} {hashlib.sha256(value.tobytes()).hexdigest()}"
        elif type(value).__module__ == "numpy":
            self._parts[where] = repr(value)
        else:
            self.unknown.append(f"{where} is a {type(value).__name__}, whose value is not known")


def _globals_of(code: types.CodeType) -> set[str]:
    """The names of globals that a function uses, in the functions in it too."""
    names = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _globals_of(constant)
    return names


def _version(package: str) -> str:
    if package == "nandlab":
        return _core.version()
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(sys.modules.get(package), "__version__", "unknown"))


# ------------------------------------------------------------------------------------------------------- files, pickles


def load_files(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Import files with policies; the classes in them are declared. Raises `OutputError`."""
    for number, path in enumerate(map(Path, paths)):
        before = {id(policy) for policy in _core.declared_policies()}
        if not path.is_file():
            raise OutputError(f"--policy: no file {shown(path)}\n  remedy: check the path")
        module_name = f"nandlab_policy_{number}_{re.sub(r'[^A-Za-z0-9_]', '_', path.stem)}"
        spec = importlib.util.spec_from_file_location(module_name, path.resolve())
        if spec is None or spec.loader is None:
            raise OutputError(f"--policy: {shown(path)} is not a file of Python\n  remedy: name a file NAME.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        # Modules beside the file can be imported, as by a program.
        sys.path.insert(0, str(path.resolve().parent))
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise OutputError(_import_error(path, error)) from error
        finally:
            sys.path.pop(0)
        # A policy that is declared again is another object.
        if before >= {id(policy) for policy in _core.declared_policies()}:
            raise OutputError(
                f"--policy: {shown(path)} declares no policy\n"
                '  remedy: write @nandlab.policy("gc.victim") above a class, or another slot'
            )


def _import_error(path: Path, error: Exception) -> str:
    """The text of an error of a file with policies, with the file and the line in the file."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path.resolve())]
    line = frames[-1].lineno if frames else getattr(error, "lineno", None)
    where = f"{path}:{line}" if line else str(path)
    text = f"{where}: {type(error).__name__}: {error}"
    return text if "\n  remedy: " in text else f"{text}\n  remedy: correct the file"


def packed(policies: list[_core.Policy]) -> bytes | None:
    """Policies by value, for another process, with the versions that it needs; `None` for no policies."""
    if not policies:
        return None
    import cloudpickle

    # The other process has neither the file of a class nor the modules beside the file.
    folders = {os.path.dirname(os.path.realpath(policy.file)) for policy in policies}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file is None or module.__name__ == "__main__" or _is_installed(file):
            continue
        if os.path.dirname(os.path.realpath(file)) in folders:
            cloudpickle.register_pickle_by_value(module)
    # The versions are apart, because code of another version may not be readable.
    packages = [name for name in ("numpy", "numba") if name in sys.modules]
    return pickle.dumps((_versions(packages), cloudpickle.dumps([policy.arguments for policy in policies])))


def unpack(data: bytes) -> list[_core.Policy]:
    """The policies that `packed` has packed; raises `OutputError` where the versions of Python or packages differ."""
    theirs, arguments = pickle.loads(data)
    ours = _versions(theirs)
    if theirs != ours:
        raise OutputError(
            f"the policies need {_shown_versions(theirs)}, and this process has {_shown_versions(ours)}\n"
            "  remedy: install the same versions on every worker"
        )
    return [_core.Policy(*one) for one in pickle.loads(arguments)]


def load_packed(data: bytes, text: str, name: str, directory: str, sets: list[str], unloaded: bool) -> _core.Spec:
    """A spec with the policies that it names, in another process."""
    return _core.Spec.load(text, name, directory, sets, unpack(data), unloaded)


def is_of_policy(error: BaseException) -> bool:
    """Whether a policy in Python has raised an exception in a run."""
    return getattr(error, "nandlab_policy", None) is not None


def traceback_in_policy(error: BaseException) -> str:
    """The traceback of an exception that a policy has raised, without the frames before the policy's.

    Those frames are of this package and of Python's threads, and the same for each exception of a policy.
    """
    found = traceback.TracebackException.from_exception(error)
    # Installed packages, of which a policy may be one, are within the folder of the standard library.
    library, installed = Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib"))

    def is_before(path: Path) -> bool:
        return path.is_relative_to(_PACKAGE) or (path.is_relative_to(library) and not path.is_relative_to(installed))

    of_policy = (n for n, frame in enumerate(found.stack) if not is_before(Path(frame.filename)))
    del found.stack[: next(of_policy, 0)]
    return "".join(found.format()).rstrip()


def _versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of Python and of packages in this environment."""
    found = {name: _version(name) for name in packages if name != "python"}
    return {"python": ".".join(map(str, sys.version_info[:3])), **found}


def _shown_versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
