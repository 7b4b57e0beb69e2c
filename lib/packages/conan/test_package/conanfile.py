"""Builds the projects of tests/package with the Conan package and runs them, as with an installed Sluice; run by `conan create`."""
import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout


class SluiceTest(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires(self.tested_reference_str)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        toolchain.cache_variables["EXPECTED_PREFIX"] = self.generators_folder
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder="../../../../tests/package/consumer")
        cmake.build()

    def test(self):
        if not can_run(self):
            return
        package = self.dependencies[self.tested_reference_str]
        version = str(package.ref.version)
        programs = ["asks absent", f"asks_linked {version}", f"asks_static {version}", "news_static", "library_checked", "library_unchecked"]
        if package.options.arena:
            programs += ["arena_lib absent", "arena_preload present", "arena_static present"]
        for program in programs:
            self.run(os.path.join(self.cpp.build.bindir, program), env="conanrun")
