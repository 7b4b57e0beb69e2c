"""Programs of macOS made up for tests: a header, load commands, a signature, and no code. As macho_files.hpp of
tests/preload/cli makes them. Open it to make another one."""
import struct

PROCESSORS = {"x86_64": 0x1000007, "aarch64": 0x100000C}
ARM64E = 2
RUNTIME, LIBRARY_VALIDATION, RESTRICT = 0x10000, 0x2000, 0x800
ALLOWS_VARIABLES = "com.apple.security.cs.allow-dyld-environment-variables"
ALLOWS_OTHERS = "com.apple.security.cs.disable-library-validation"


def high(*words):
    return struct.pack(f">{len(words)}I", *words)


def low(*words):
    return struct.pack(f"<{len(words)}I", *words)


def signature(flags, entitlements):
    directory = high(0x20400, flags) + bytes(32) + high(0)
    directory = high(0xFADE0C02, 8 + len(directory)) + directory
    keys = "".join(f"<key>{name}</key><true/>" for name in entitlements)
    keys = f'<?xml version="1.0"?><plist version="1.0"><dict>{keys}</dict></plist>'.encode()
    keys = high(0xFADE7171, 8 + len(keys)) + keys
    head = 12 + 2 * 8
    return high(0xFADE0CC0, head + len(directory) + len(keys), 2, 0, head, 5, head + len(directory)) + directory + keys


def program(processor, variant=0, flags=0, entitlements=()):
    signed = signature(flags, entitlements)
    commands = low(0x1D, 16, 32 + 16, len(signed))
    return low(0xFEEDFACF, PROCESSORS[processor], variant, 2, 1, len(commands), 0, 0) + commands + signed
