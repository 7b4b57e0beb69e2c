"""A malloc zone of the process, whose functions can be called by their names in <malloc/malloc.h>."""
FIELDS = ("reserved1 reserved2 size malloc calloc valloc free realloc destroy zone_name batch_malloc batch_free introspect "
          "version memalign free_definite_size pressure_relief claimed_address try_free_default malloc_with_options "
          "malloc_type_malloc malloc_type_calloc malloc_type_realloc malloc_type_memalign "
          "malloc_type_malloc_with_options").split()
INTROSPECTION = ("enumerator good_size check print log force_lock force_unlock statistics zone_locked "
                 "enable_discharge_checking disable_discharge_checking discharge enumerate_discharged_pointers reinit_lock "
                 "print_task task_statistics zone_type").split()


class Zone:
    def __init__(self, process, address):
        self.process, self.address = process, address

    def field(self, name):
        if name in FIELDS:
            return self.process.read_word(self.address + 8 * FIELDS.index(name))
        return self.process.read_word(self.field("introspect") + 8 * INTROSPECTION.index(name))

    @property
    def name(self):
        return self.process.read_text(self.field("zone_name"))

    def __getattr__(self, name):
        function = self.field(name)

        def call(*arguments, thread=None):
            return self.process.call(function, self.address, *arguments, thread=thread)

        self.__dict__[name] = call
        return call


def zones_of(process):
    """All zones, the one first that serves what names none."""
    out = process.array([0, 0])
    process.malloc_get_all_zones(0, 0, out, out + 8)
    first, count = process.read_word(out), process.read_word(out + 8) & 0xFFFFFFFF
    return [Zone(process, process.read_word(first + 8 * i)) for i in range(count)]
