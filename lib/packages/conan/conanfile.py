"""Makes a Conan 2 package of the libraries from this repository's sources: `conan create lib/packages/conan`.

The targets have the names of the CMake package that `cmake --install` makes: sluice::lib, sluice::static, sluice::preload;
sluice::secure_preload too. The command is not in it: it is a tool, and no library of those who link. Open it when an option or a
library of CMakeLists.txt is added.
"""
import os
import pathlib
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy, rmdir, save
from conan.tools.layout import basic_layout

required_conan_version = ">=2.0"
BUILD_MODULE = "lib/cmake/sluice-standard.cmake"


class Sluice(ConanFile):
    name = "sluice"
    description = "A drop-in malloc that tells what it did"
    license = "MIT"
    topics = ("malloc", "allocator", "memory", "profiling")
    package_type = "shared-library"  # libsluice.so is what those who run need; sluice::static is there, too
    settings = "os", "arch", "compiler"  # no build_type: always a release build; the option "checked" adds assertions
    options = {"arena": [True, False], "checked": [True, False]}
    default_options = {"arena": True, "checked": False}
    options_description = {
        "arena": "the stack arena (scopes and frames), as SLUICE_ARENA",
        "checked": "assertions and validation of the heap in every build, as SLUICE_CHECKED",
    }

    def _repository(self):
        return pathlib.Path(self.recipe_folder).parent.parent.parent

    def set_version(self):
        text = (self._repository() / "CMakeLists.txt").read_text(encoding="utf-8")
        self.version = re.search(r"^project\(sluice VERSION ([0-9.]+) ", text, re.MULTILINE).group(1)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "lib/CMakeLists.txt", "lib/cmake/*", "lib/include/*", "lib/src/*",
                        "preload/*", "tests/attacks/*"):
            copy(self, pattern, self._repository(), self.export_sources_folder)

    def configure(self):
        # The libraries have no C++ runtime, and their functions are C's: one package serves all dialects.
        self.settings.rm_safe("compiler.cppstd")
        self.settings.rm_safe("compiler.libcxx")
        self.settings.rm_safe("compiler.cstd")

    def layout(self):
        basic_layout(self, build_folder="build")

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration("this package is for Linux on x86_64 and armv8")

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update(
            CMAKE_BUILD_TYPE="Release", SLUICE_TESTS=False, SLUICE_COMMAND=False, SLUICE_SCENARIOS=False, SLUICE_WERROR=False,
            SLUICE_ARENA=bool(self.options.arena), SLUICE_CHECKED=bool(self.options.checked))
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        cmake = CMake(self)
        for component in ("runtime", "development"):
            cmake.install(build_type="Release", component=f"sluice_{component}")
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        library = os.path.join(self.package_folder, "lib")
        # Conan's generators write these for who uses the package; what they do not write is the standard that the headers need.
        rmdir(self, os.path.join(library, "pkgconfig"))
        rmdir(self, os.path.join(library, "cmake"))
        save(self, os.path.join(self.package_folder, BUILD_MODULE), "target_compile_features(sluice::lib INTERFACE cxx_std_20)\n")
        # By its name alone a linker would take libsluice.so.
        os.mkdir(os.path.join(library, "static"))
        os.rename(os.path.join(library, "libsluice.a"), os.path.join(library, "static", "libsluice.a"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "sluice")
        self.cpp_info.set_property("cmake_build_modules", [BUILD_MODULE])
        components = self.cpp_info.components
        for name, library, folder in (("lib", None, None), ("static", "sluice", "lib/static"), ("preload", "sluice", "lib"),
                                      ("secure_preload", "sluice-secure", "lib")):
            component = components[name]
            component.set_property("cmake_target_name", f"sluice::{name}")
            component.set_property("pkg_config_name", "sluice" if name == "preload" else f"sluice-{name}")
            component.bindirs = []
            component.libs = [library] if library else []
            component.libdirs = [folder] if folder else []
        # As in install.cmake: one symbol of each source file brings in all of them.
        components["static"].exelinkflags = [f"-Wl,-u,{name}" for name in ("malloc", "mallinfo", "_Znwm", "sluice_version")]
        components["static"].sharedlinkflags = components["static"].exelinkflags
        components["static"].system_libs = ["pthread"]
