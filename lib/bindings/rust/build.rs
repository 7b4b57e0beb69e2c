//! Builds libsluice.a with Sluice's own CMake project, and the C half of frames.
use std::path::{Path, PathBuf};

/// In a published crate the sources lie in it; in Sluice's repository it lies in them.
fn sources(manifest: &Path) -> PathBuf {
    [manifest.join("sluice"), manifest.join("../../..")]
        .into_iter()
        .find(|folder| folder.join("preload/CMakeLists.txt").is_file())
        .unwrap_or_else(|| panic!("{}: Sluice's sources are not there", manifest.display()))
}

fn main() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let (system, environment) = (variable("CARGO_CFG_TARGET_OS"), variable("CARGO_CFG_TARGET_ENV"));
    if system != "linux" || environment != "gnu" {
        panic!("sluice-malloc needs Linux with glibc, and this target has {system} {environment}");
    }
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let sources = sources(&manifest);
    let built = cmake::Config::new(manifest.join("cmake"))
        .define("SLUICE_SOURCE", &sources)
        .profile("Release")
        .build_target("sluice_static")
        .build();
    // All of it: a program's own references would leave out what its shared libraries call.
    println!("cargo:rustc-link-search=native={}", built.join("build/sluice/lib").display());
    println!("cargo:rustc-link-lib=static:+whole-archive=sluice");
    cc::Build::new().file("src/frame.c").include(sources.join("lib/include")).opt_level(2).compile("sluice_rust_frame");
    for path in ["CMakeLists.txt", "lib/CMakeLists.txt", "lib/cmake", "lib/include", "lib/src", "preload"] {
        println!("cargo:rerun-if-changed={}", sources.join(path).display());
    }
    println!("cargo:rerun-if-changed=src/frame.c");
    println!("cargo:rerun-if-changed=cmake/CMakeLists.txt");
}
