"""What package.py asks of Spack, for spack.sh: spack_stand_in.py PACKAGE ROOT [~VARIANT|+VARIANT]...

Loads the package, checks the archive and the resources that lie in ROOT/downloads, builds with the options that the package gives, installs
into ROOT/prefix and runs the package's tests. The machine's own packages stand for those that it depends on.
"""
import contextlib
import hashlib
import importlib.util
import pathlib
import subprocess
import sys
import types

PACKAGE, ROOT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
CHOSEN = {argument[1:]: argument[0] == "+" for argument in sys.argv[3:]}
versions, variants, resources, dependencies, conflicts = {}, {}, [], [], []
conditions = []


class SkipTest(Exception):
    pass


class Spec:
    def satisfies(self, text):
        known = {"platform=linux": True, "platform=darwin": False, "platform=windows": False}
        if text in known:
            return known[text]
        if text[0] not in "+~" or text[1:] not in variants:
            raise SystemExit(f"the package asks for {text}, and has no such variant")
        return value(text[1:]) == (text[0] == "+")


def value(name):
    default, when = variants[name]
    return CHOSEN.get(name, default) and (when is None or Spec().satisfies(when))


class Executable:
    def __init__(self, path):
        self.path, self.environment = str(path), {}

    def add_default_env(self, name, text):
        self.environment[name] = text

    def __call__(self, *arguments, output=None, error=None):
        done = subprocess.run(["env", *(f"{k}={v}" for k, v in self.environment.items()), self.path, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT if error else None, text=True, check=True)
        return done.stdout


class Prefix(pathlib.PosixPath):
    @property
    def bin(self):
        return self / "bin"


class CMakePackage:
    def __init__(self):
        self.spec, self.prefix, self.version = Spec(), Prefix(ROOT / "prefix"), next(iter(versions))
        self.stage = types.SimpleNamespace(source_path=str(ROOT / "source"))

    def define(self, name, setting):
        return f"-D{name}:STRING={setting}" if isinstance(setting, str) else f"-D{name}:BOOL={'ON' if setting else 'OFF'}"

    def define_from_variant(self, name, variant):
        if variant not in variants:
            raise SystemExit(f"no variant {variant}")
        return self.define(name, value(variant))


@contextlib.contextmanager
def when(condition):
    conditions.append(condition)
    yield
    conditions.pop()


def variant(name, default, description, when=None):
    variants[name] = (default, when)


def resource(**fields):
    resources.append((list(conditions), fields))


def find_libraries(name, root, shared, recursive):
    return sorted(str(path) for path in pathlib.Path(root).rglob(f"{name}.{'so' if shared else 'a'}"))


directives = types.ModuleType("spack.package")
directives.__dict__.update(
    version=lambda name, **fields: versions.update({name: fields}), variant=variant, resource=resource, when=when, license=lambda name: None,
    depends_on=lambda what, **fields: dependencies.append(what), conflicts=lambda what, **fields: conflicts.append(what),
    join_path=lambda *parts: str(pathlib.Path(*map(str, parts))), find_libraries=find_libraries, Executable=Executable, SkipTest=SkipTest)
for name in ("spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems", "spack_repo.builtin.build_systems.cmake"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["spack.package"] = directives
sys.modules["spack_repo.builtin.build_systems.cmake"].CMakePackage = CMakePackage

specification = importlib.util.spec_from_file_location("package", PACKAGE)
module = importlib.util.module_from_spec(specification)
sys.dont_write_bytecode = True
specification.loader.exec_module(module)
package = module.Sluice()


def unpack(url, sha256, target):
    file = pathlib.Path(url.removeprefix("file://")) if url.startswith("file://") else ROOT / "downloads" / url.rpartition("/")[2]
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != sha256:
        raise SystemExit(f"{file}: the checksum is {found}, not {sha256}")
    target.mkdir(parents=True)
    subprocess.run(["tar", "-xzf", file, "-C", target, "--strip-components=1"], check=True)


source = ROOT / "source"
unpack(package.url, versions[package.version]["sha256"], source)
for needed, fields in resources:
    if all(package.spec.satisfies(condition) for condition in needed):
        unpack(fields["url"], fields["sha256"], source / fields["placement"])
for command in (["cmake", "-G", "Ninja", "-S", source, "-B", ROOT / "build", f"-DCMAKE_INSTALL_PREFIX={package.prefix}", "-DCMAKE_BUILD_TYPE=Release",
                 "-DCMAKE_INSTALL_LIBDIR=lib", "-DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON", *package.cmake_args()],
                ["cmake", "--build", ROOT / "build"], ["cmake", "--install", ROOT / "build"]):
    subprocess.run(command, check=True)
for name in [name for name in dir(package) if name.startswith("test_")]:
    try:
        getattr(package, name)()
        print(f"{name} passed")
    except SkipTest as reason:
        print(f"{name} skipped: {reason}")
print(f"installed {package.version}; depends on {' '.join(dependencies)}")
