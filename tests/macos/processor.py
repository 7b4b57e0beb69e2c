"""The two processors that a machine can have, each with how functions are called on it. Open it when an argument arrives
in the wrong register."""
import struct

from unicorn import UC_ARCH_ARM64, UC_ARCH_X86, UC_MODE_64, UC_MODE_ARM, Uc, arm64_const as arm, x86_const as x86


class Arm64:
    name = "aarch64"
    page_size = 16384
    return_instruction = bytes.fromhex("c0035fd6")
    argument_registers = [getattr(arm, f"UC_ARM64_REG_X{i}") for i in range(8)]
    result_register = arm.UC_ARM64_REG_X0
    instruction_register = arm.UC_ARM64_REG_PC
    stack_register = arm.UC_ARM64_REG_SP
    frame_register = arm.UC_ARM64_REG_FP

    @staticmethod
    def make():
        uc = Uc(UC_ARCH_ARM64, UC_MODE_ARM)
        uc.ctl_set_cpu_model(arm.UC_CPU_ARM64_MAX)  # the one with atomic instructions (LSE) and RCPC loads
        uc.reg_write(arm.UC_ARM64_REG_CPACR_EL1, 3 << 20)  # floating point allowed
        return uc

    @staticmethod
    def set_thread(uc, slots):
        # Older systems keep a number in the three lowest bits: what ignores them must go on doing so.
        uc.reg_write(arm.UC_ARM64_REG_TPIDRRO_EL0, slots | 5)

    @staticmethod
    def push_call(machine, stack, return_address):
        machine.uc.reg_write(arm.UC_ARM64_REG_SP, stack)
        machine.uc.reg_write(arm.UC_ARM64_REG_LR, return_address)

    @staticmethod
    def leave_function(machine):
        """Does what the return instruction does."""
        machine.uc.reg_write(arm.UC_ARM64_REG_PC, machine.uc.reg_read(arm.UC_ARM64_REG_LR))

    @staticmethod
    def return_address(machine):
        return machine.uc.reg_read(arm.UC_ARM64_REG_LR)

    @staticmethod
    def further_arguments(machine, _named, count):
        """Those behind the named ones of a function that takes any number: on the stack."""
        stack = machine.uc.reg_read(arm.UC_ARM64_REG_SP)
        return [machine.read_word(stack + 8 * i) for i in range(count)]


class X86:
    name = "x86_64"
    page_size = 4096
    return_instruction = b"\xc3"
    argument_registers = [x86.UC_X86_REG_RDI, x86.UC_X86_REG_RSI, x86.UC_X86_REG_RDX, x86.UC_X86_REG_RCX,
                          x86.UC_X86_REG_R8, x86.UC_X86_REG_R9]
    result_register = x86.UC_X86_REG_RAX
    instruction_register = x86.UC_X86_REG_RIP
    stack_register = x86.UC_X86_REG_RSP
    frame_register = x86.UC_X86_REG_RBP

    @staticmethod
    def make():
        return Uc(UC_ARCH_X86, UC_MODE_64)

    @staticmethod
    def set_thread(uc, slots):
        uc.reg_write(x86.UC_X86_REG_GS_BASE, slots)

    @staticmethod
    def push_call(machine, stack, return_address):
        machine.uc.mem_write(stack - 8, struct.pack("<Q", return_address))
        machine.uc.reg_write(x86.UC_X86_REG_RSP, stack - 8)

    @staticmethod
    def leave_function(machine):
        stack = machine.uc.reg_read(x86.UC_X86_REG_RSP)
        machine.uc.reg_write(x86.UC_X86_REG_RIP, struct.unpack("<Q", machine.uc.mem_read(stack, 8))[0])
        machine.uc.reg_write(x86.UC_X86_REG_RSP, stack + 8)

    @staticmethod
    def return_address(machine):
        return machine.read_word(machine.uc.reg_read(x86.UC_X86_REG_RSP))

    @classmethod
    def further_arguments(cls, machine, named, count):
        registers = cls.argument_registers[named:named + count]
        assert len(registers) == count, "some are on the stack"
        return [machine.uc.reg_read(register) for register in registers]


PROCESSORS = {"aarch64": Arm64, "x86_64": X86}
