// Asks libdw. Open it with symbols.hpp.
#include "symbols.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>
#include <unordered_map>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>

#include <fmt/core.h>

namespace sluice::cli::profile {
namespace {

constexpr const char* debug_folder = "/usr/lib/debug";
constexpr const char* debug_path = ":.debug:/usr/lib/debug";  // beside the file, in .debug there, and below the folder
constexpr size_t most_inlined = 64;                           // a file that says more is damaged

char* debug_path_of_callbacks = const_cast<char*>(debug_path);
constexpr Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                      .find_debuginfo = dwfl_standard_find_debuginfo,
                                      .section_address = dwfl_offline_section_address,
                                      .debuginfo_path = &debug_path_of_callbacks};

struct Symbol {
  uint64_t start = 0, size = 0;
  const char* name = nullptr;
};

bool is_code(const GElf_Sym& symbol) {
  const int type = GELF_ST_TYPE(symbol.st_info);
  return (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) && symbol.st_shndx != SHN_UNDEF;
}

// The table for binary search in .eh_frame_hdr: pairs of the begin of a function and its entry, both relative to the
// table.
std::vector<uint64_t> begins_in(Elf* elf, const GElf_Phdr& segment) {
  constexpr unsigned char usual_head[] = {1, 0x1b, 0x03, 0x3b};  // version and encodings that all linkers write
  struct Pair {
    int32_t begin, entry;
  };
  Elf_Data* const data =
      elf_getdata_rawchunk(elf, static_cast<int64_t>(segment.p_offset), segment.p_filesz, ELF_T_BYTE);
  constexpr size_t head_size = sizeof usual_head + sizeof(int32_t) + sizeof(uint32_t);
  if (data == nullptr || data->d_size < head_size || std::memcmp(data->d_buf, usual_head, sizeof usual_head) != 0)
    return {};
  const char* const bytes = static_cast<const char*>(data->d_buf);
  uint32_t count = 0;
  std::memcpy(&count, bytes + head_size - sizeof count, sizeof count);
  count = static_cast<uint32_t>(std::min<size_t>(count, (data->d_size - head_size) / sizeof(Pair)));
  std::vector<uint64_t> begins(count);
  for (uint32_t i = 0; i < count; ++i) {
    Pair pair;
    std::memcpy(&pair, bytes + head_size + i * sizeof pair, sizeof pair);
    begins[i] = segment.p_vaddr + static_cast<uint64_t>(int64_t{pair.begin});
  }
  std::sort(begins.begin(), begins.end());
  return begins;
}

std::string build_id_of(Dwfl_Module* module) {
  const unsigned char* bits = nullptr;
  GElf_Addr ignored = 0;
  const int size = dwfl_module_build_id(module, &bits, &ignored);
  std::string text;
  for (int i = 0; i < size; ++i)
    text += fmt::format("{:02x}", bits[i]);
  return text;
}

const char* text_of(Dwarf_Die* die, unsigned attribute_name) {
  Dwarf_Attribute attribute;
  return dwarf_formstring(dwarf_attr_integrate(die, attribute_name, &attribute));
}

struct FreeScopes {
  void operator()(Dwarf_Die* scopes) const { std::free(scopes); }
};
using Scopes = std::unique_ptr<Dwarf_Die, FreeScopes>;

// Where a function is declared: what its code or a copy that is inlined refers to.
Dwarf_Die declaration_of(Dwarf_Die die) {
  constexpr int most_steps = 4;
  for (int i = 0; i < most_steps; ++i) {
    Dwarf_Attribute attribute;
    Dwarf_Die next;
    Dwarf_Attribute* found = dwarf_attr(&die, DW_AT_abstract_origin, &attribute);
    if (found == nullptr) found = dwarf_attr(&die, DW_AT_specification, &attribute);
    if (found == nullptr || dwarf_formref_die(found, &next) == nullptr) break;
    die = next;
  }
  return die;
}

// "ns::Type::" of a declaration.
std::string scopes_around(Dwarf_Die declaration) {
  Dwarf_Die* found = nullptr;
  const int count = dwarf_getscopes_die(&declaration, &found);
  const Scopes all(found);
  std::string text;
  for (int i = 1; i < count; ++i) {
    Dwarf_Die* const scope = all.get() + i;
    const int tag = dwarf_tag(scope);
    const bool is_named = tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type;
    if (!is_named) continue;
    const char* const name = dwarf_diename(scope);
    text = fmt::format("{}::{}", name != nullptr ? name : "(anonymous namespace)", text);
  }
  return text;
}

// Functions that take types without a name of their own, such as lambdas, have no name for the linker.
std::string name_of(Dwarf_Die* die) {
  for (const unsigned attribute : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name})
    if (const char* const text = text_of(die, attribute)) return text;
  const char* const name = text_of(die, DW_AT_name);
  return name == nullptr ? std::string() : scopes_around(declaration_of(*die)) + name;
}

// Where a function that is inlined is called from.
void set_call(Dwarf_Die* unit, Dwarf_Die* inlined, Place& caller) {
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0, line = 0;
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) == 0)
    caller.line = static_cast<int64_t>(line);
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) != 0) return;
  if (dwarf_getsrcfiles(unit, &files, &count) != 0 || file >= count) return;
  if (const char* const name = dwarf_filesrc(files, file, nullptr, nullptr)) caller.file = name;
}

// The functions around the innermost scope at an address, from the inside to the outside.
std::vector<Dwarf_Die> functions_around(Dwarf_Die* unit, Dwarf_Addr address) {
  Dwarf_Die* found = nullptr;
  const int at_address = dwarf_getscopes(unit, address, &found);
  const Scopes first(found);
  if (at_address <= 0) return {};
  Dwarf_Die innermost = *first;
  found = nullptr;
  const int count = dwarf_getscopes_die(&innermost, &found);
  const Scopes all(found);
  std::vector<Dwarf_Die> functions;
  for (int i = 0; i < count && functions.size() < most_inlined; ++i) {
    Dwarf_Die die = all.get()[i];
    const int tag = dwarf_tag(&die);
    if (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram) functions.push_back(die);
    if (tag == DW_TAG_subprogram) break;
  }
  return functions;
}

}  // namespace

struct ModuleSymbols::Module {
  Dwfl* session = nullptr;
  Dwfl_Module* handle = nullptr;
  GElf_Addr bias = 0;  // from addresses in the file to those in the session
  std::vector<GElf_Phdr> segments = {};
  std::vector<Symbol> symbols = {};   // by address
  std::vector<uint64_t> begins = {};  // of the functions that can be unwound, by address in the file
  std::unordered_map<const void*, std::string> names = {};  // by the place of the declaration in memory
  bool is_debug_file = false;

  // A stretch of a unit's code.
  struct UnitRange {
    Dwarf_Addr start, end;
    Dwarf_Die* unit;
    Dwarf_Addr bias;
  };
  std::optional<std::vector<UnitRange>> units = {};  // by address; read where the file has no index of them

  Module() = default;
  ~Module() {
    if (session != nullptr) dwfl_end(session);
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Returns: an empty text, or why the file cannot serve.
  std::string open(const std::string& path) {
    struct stat about {};
    if (stat(path.c_str(), &about) != 0) return std::strerror(errno);
    if (!S_ISREG(about.st_mode)) return "is no file";
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return std::strerror(errno);
    session = dwfl_begin(&callbacks);
    if (session == nullptr) return (close(file), dwfl_errmsg(-1));
    handle = dwfl_report_offline(session, path.c_str(), path.c_str(), file);
    if (handle == nullptr) return (close(file), dwfl_errmsg(-1));
    dwfl_report_end(session, nullptr, nullptr);
    Elf* const elf = dwfl_module_getelf(handle, &bias);
    if (elf == nullptr) return dwfl_errmsg(-1);
    read_segments(elf);
    return {};
  }

  void read_segments(Elf* elf) {
    size_t count = 0;
    if (elf_getphdrnum(elf, &count) != 0) return;
    for (size_t i = 0; i < count; ++i) {
      GElf_Phdr segment;
      if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) continue;
      if (segment.p_type == PT_LOAD) segments.push_back(segment);
      if (segment.p_type == PT_GNU_EH_FRAME) begins = begins_in(elf, segment);
    }
  }

  void read_symbols() {
    const int count = dwfl_module_getsymtab(handle);
    for (int i = 1; i < count; ++i) {
      GElf_Sym symbol;
      GElf_Addr address = 0;
      const char* const name = dwfl_module_getsym_info(handle, i, &symbol, &address, nullptr, nullptr, nullptr);
      if (name != nullptr && *name != '\0' && is_code(symbol)) symbols.push_back({address, symbol.st_size, name});
    }
    // Of several at one address the last one, the longest, is found.
    std::sort(symbols.begin(), symbols.end(), [](const Symbol& a, const Symbol& b) {
      return a.start != b.start ? a.start < b.start : a.size < b.size;
    });
  }

  // The unit whose code an address lies in. gcc writes an index of units by address, clang does not.
  Dwarf_Die* unit_at(GElf_Addr address, Dwarf_Addr* unit_bias) {
    if (Dwarf_Die* const found = dwfl_module_addrdie(handle, address, unit_bias)) return found;
    if (!units) units = unit_ranges();
    const auto after = std::upper_bound(units->begin(), units->end(), address,
                                        [](GElf_Addr value, const UnitRange& each) { return value < each.start; });
    if (after == units->begin() || address >= std::prev(after)->end) return nullptr;
    *unit_bias = std::prev(after)->bias;
    return std::prev(after)->unit;
  }

  std::vector<UnitRange> unit_ranges() {
    std::vector<UnitRange> ranges;
    Dwarf_Addr unit_bias = 0;
    for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(handle, unit, &unit_bias)) != nullptr;) {
      Dwarf_Addr base = 0, start = 0, end = 0;
      for (ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &start, &end)) > 0;)
        ranges.push_back({start + unit_bias, end + unit_bias, unit, unit_bias});
    }
    std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
    return ranges;
  }

  // Returns: the line of an address of that unit, or null.
  static Dwarf_Line* line_at(Dwarf_Die* unit, Dwarf_Addr address) {
    return unit != nullptr ? dwarf_getsrc_die(unit, address) : nullptr;
  }

  const Symbol* symbol_at(GElf_Addr address) const {
    const auto after = std::upper_bound(symbols.begin(), symbols.end(), address,
                                        [](GElf_Addr value, const Symbol& each) { return value < each.start; });
    constexpr int most_nested = 8;
    int looked_at = 0;
    for (auto each = after; each != symbols.begin() && looked_at < most_nested; ++looked_at) {
      --each;
      if (address - each->start < each->size || (each->size == 0 && looked_at == 0)) return &*each;
    }
    return nullptr;
  }

  // Finding the scopes around a declaration takes a walk through its unit.
  const std::string& name_of_function(Dwarf_Die* die) {
    Dwarf_Die declaration = declaration_of(*die);
    const auto [place, is_new] = names.try_emplace(declaration.addr);
    if (is_new) place->second = name_of(die);
    return place->second;
  }

  // Where the function begins that an address in the file lies in; the address itself where no table tells.
  uint64_t begin_of_function(uint64_t in_file) const {
    const auto after = std::upper_bound(begins.begin(), begins.end(), in_file);
    return after == begins.begin() ? in_file : *std::prev(after);
  }

  // The address in the file of a mapping's address: by the offset, or where the file's segments have moved (a file with
  // the debug information alone) by the order.
  std::optional<uint64_t> in_file(const Mapping& mapping, uint64_t address) const {
    const uint64_t offset = address - mapping.start + mapping.offset;
    for (const GElf_Phdr& each : segments)
      if (!is_debug_file && offset >= each.p_offset && offset - each.p_offset < each.p_memsz)
        return offset - each.p_offset + each.p_vaddr;
    constexpr uint64_t page = 4096;
    if (is_debug_file)
      for (const GElf_Phdr& each : segments)
        if ((each.p_flags & PF_X) != 0) return address - mapping.start + (each.p_vaddr & ~(page - 1));
    return std::nullopt;
  }
};

ModuleSymbols::ModuleSymbols(const Mapping& mapping) : module_(std::make_unique<Module>()) {
  problem_ = module_->open(mapping.file);
  if (problem_.empty()) {
    const std::string build_id = build_id_of(module_->handle);
    if (!mapping.build_id.empty() && !build_id.empty() && build_id != mapping.build_id)
      problem_ = "is another one now than the program had (its build id differs)";
  }
  if (!problem_.empty()) {
    module_ = std::make_unique<Module>();
    const std::string& id = mapping.build_id;
    const bool is_id = id.size() > 2 && id.find_first_not_of("0123456789abcdef") == std::string::npos;
    const bool is_found =
        is_id &&
        module_->open(fmt::format("{}/.build-id/{}/{}.debug", debug_folder, id.substr(0, 2), id.substr(2))).empty();
    module_->is_debug_file = is_found;
    if (is_found)
      problem_.clear();
    else
      module_.reset();
  }
  if (module_) module_->read_symbols();
}

ModuleSymbols::~ModuleSymbols() = default;

uint64_t ModuleSymbols::begin_in_file(const Mapping& mapping, uint64_t address) const {
  const uint64_t offset = address - mapping.start + mapping.offset;
  const std::optional<uint64_t> in_file = module_ ? module_->in_file(mapping, address) : std::nullopt;
  return in_file ? module_->begin_of_function(*in_file) : offset;
}

std::vector<Place> ModuleSymbols::at(const Mapping& mapping, uint64_t address) const {
  const std::optional<uint64_t> in_file = module_ ? module_->in_file(mapping, address) : std::nullopt;
  if (!in_file) return {};
  const GElf_Addr in_session = *in_file + module_->bias;
  std::vector<Place> places;
  Dwarf_Addr bias = 0;
  Dwarf_Die* const unit = module_->unit_at(in_session, &bias);
  if (unit != nullptr) {
    std::vector<Dwarf_Die> functions = functions_around(unit, in_session - bias);
    for (size_t i = 0; i < functions.size(); ++i) {
      places.push_back({module_->name_of_function(&functions[i])});
      if (i > 0) set_call(unit, &functions[i - 1], places.back());
    }
  }
  const Symbol* const symbol = module_->symbol_at(in_session);
  if (places.empty() && symbol != nullptr) places.push_back({symbol->name});
  if (places.empty()) return {};
  // Debug information may lack the linker's name, which tells more than that of the source alone.
  if (symbol != nullptr && (places.back().symbol.empty() || !places.back().symbol.starts_with("_")))
    places.back().symbol = symbol->name;
  if (Dwarf_Line* const line = Module::line_at(unit, in_session - bias)) {
    int number = 0;
    if (const char* const file = dwarf_linesrc(line, nullptr, nullptr)) {
      places.front().file = file;
      if (dwarf_lineno(line, &number) == 0) places.front().line = number;
    }
  }
  return places;
}

}  // namespace sluice::cli::profile
