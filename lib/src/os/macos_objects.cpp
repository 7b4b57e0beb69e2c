// The images that are loaded, and memory that may not be there, on macOS. See objects.hpp.
//
// dyld's functions take its locks, which the thread that asks may hold: it may be in a signal handler. So its list is
// read as debuggers read it, from where the kernel says that it is (mach-o/dyld_images.h). It has no entries while it
// is changed, and an image may be closed while it is read: nothing is read but by copies that may fail.
#include "os/objects.hpp"

#include <mach-o/dyld_images.h>
#include <mach-o/loader.h>
#include <mach/mach.h>

#include <cstring>

#include "os/memory.hpp"
#include "os/process.hpp"

namespace sluice::os {
namespace {

constinit uintptr_t image_list = 0;  // dyld_all_image_infos; 0: not known
constexpr unsigned patience_ms = 20;
constexpr uint32_t most_images = 8192;
constexpr size_t longest_path = 1024, most_command_bytes = size_t{64} << 10;

// Mapped, since a handler's stack may be small.
struct Buffers {
  char path[longest_path];
  char commands[most_command_bytes];
};

// The entries, while nobody changes them.
struct Images {
  uintptr_t entries, dyld, dyld_path;
  uint32_t count;
};
bool find_images(Images* images) noexcept {
  dyld_all_image_infos list;
  for (unsigned tries = 0; tries != patience_ms; ++tries) {
    if (image_list == 0 || !copy_if_readable(&list, image_list, sizeof list)) return false;
    *images = {reinterpret_cast<uintptr_t>(list.infoArray), reinterpret_cast<uintptr_t>(list.dyldImageLoadAddress),
               reinterpret_cast<uintptr_t>(list.dyldPath), list.infoArrayCount};
    if (images->entries != 0 && images->count <= most_images) return true;
    sleep_briefly();
  }
  return false;
}

// Copies a text that ends with a null, and is cut where it is longer; page by page, since the next one may not be
// there.
std::string_view copy_text(uintptr_t from, char (&text)[longest_path]) noexcept {
  size_t length = 0;
  while (length < sizeof text) {
    const size_t in_page = page_size() - (from + length) % page_size();
    const size_t part = in_page < sizeof text - length ? in_page : sizeof text - length;
    if (from == 0 || !copy_if_readable(text + length, from + length, part)) return {};
    const size_t found = strnlen(text + length, part);
    length += found;
    if (found < part) break;
  }
  return {text, length};
}

size_t write_id(const uint8_t (&id)[16], char* text) noexcept {
  for (size_t i = 0; i < sizeof id; ++i) {
    text[2 * i] = "0123456789abcdef"[id[i] >> 4];
    text[2 * i + 1] = "0123456789abcdef"[id[i] & 15];
  }
  return 2 * sizeof id;
}

// Its code lies in one segment, from the header on.
void tell_of(uintptr_t image, std::string_view path, Buffers& buffers, FoundMapping found, void* context) noexcept {
  mach_header_64 header;
  if (!copy_if_readable(&header, image, sizeof header) || header.magic != MH_MAGIC_64 ||
      header.sizeofcmds > sizeof buffers.commands ||
      !copy_if_readable(buffers.commands, image + sizeof header, header.sizeofcmds))
    return;
  CodeMapping mapping{image, image, 0, path, {}};
  char id[32];
  load_command command;
  for (size_t at = 0; at + sizeof command <= header.sizeofcmds; at += command.cmdsize) {
    memcpy(&command, buffers.commands + at, sizeof command);
    if (command.cmdsize < sizeof command || command.cmdsize > header.sizeofcmds - at) return;
    if (segment_command_64 segment; command.cmd == LC_SEGMENT_64 && command.cmdsize >= sizeof segment) {
      memcpy(&segment, buffers.commands + at, sizeof segment);
      if (strncmp(segment.segname, SEG_TEXT, sizeof segment.segname) == 0) mapping.end = image + segment.vmsize;
    }
    if (uuid_command uuid; command.cmd == LC_UUID && command.cmdsize >= sizeof uuid) {
      memcpy(&uuid, buffers.commands + at, sizeof uuid);
      mapping.build_id = {id, write_id(uuid.uuid, id)};
    }
  }
  if (mapping.end > mapping.start) found(context, mapping);
}

}  // namespace

void prepare_objects() noexcept {
  task_dyld_info info{};
  mach_msg_type_number_t words = TASK_DYLD_INFO_COUNT;
  if (task_info(mach_task_self(), TASK_DYLD_INFO, reinterpret_cast<task_info_t>(&info), &words) == KERN_SUCCESS)
    image_list = info.all_image_info_addr;
}

void for_each_code_mapping(FoundMapping found, void* context) noexcept {
  auto* const buffers = static_cast<Buffers*>(map_scratch(sizeof(Buffers)));
  if (buffers == nullptr) return;
  if (Images images; find_images(&images)) {
    for (uint32_t i = 0; i < images.count; ++i) {
      dyld_image_info image;
      if (!copy_if_readable(&image, images.entries + i * sizeof image, sizeof image)) break;
      const auto path = copy_text(reinterpret_cast<uintptr_t>(image.imageFilePath), buffers->path);
      tell_of(reinterpret_cast<uintptr_t>(image.imageLoadAddress), path, *buffers, found, context);
    }
    tell_of(images.dyld, copy_text(images.dyld_path, buffers->path), *buffers, found, context);
  }
  unmap_scratch(buffers, sizeof(Buffers));
}

// Of what was closed since it was in a stack, nothing is kept: to look for each new stack's images takes too long.
bool note_module(uintptr_t, NotedModule* module) noexcept {
  *module = {};
  return false;
}

bool is_still_there(const NotedModule&) noexcept {
  return false;
}

bool copy_if_readable(void* to, uintptr_t from, size_t bytes) noexcept {
  vm_size_t copied = 0;
  return vm_read_overwrite(mach_task_self(), from, bytes, reinterpret_cast<vm_address_t>(to), &copied) ==
             KERN_SUCCESS &&
         copied == bytes;
}

bool is_readable(uintptr_t address) noexcept {
  char byte = 0;
  return copy_if_readable(&byte, address, 1);
}

}  // namespace sluice::os
