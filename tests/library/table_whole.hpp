// What must hold of a table's control bytes, checked by walking them. Open it when the invariants of table_area.hpp
// change.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "sluice/inline_map.hpp"
#include "sluice/inline_set.hpp"

namespace library_test {

// Whether the counts of displaced elements are those of the elements that are there, or may be more, as they are after
// something has thrown.
enum class Counts { exact, enough };

// For all that are derived from the same base.
template <class Base>
struct WholeTable : Base {
  static void check(const Base& table, Counts counts) {
    using group = sluice::detail::table_group;
    const auto& area = table.*&WholeTable::area_;
    using layout = typename std::remove_cvref_t<decltype(area)>::layout;
    const auto shape = area.shape();
    ASSERT_LE(table.size(), area.limit());
    std::vector<unsigned> passed(shape.groups), bits(shape.groups);
    std::size_t size = 0, displaced = 0;
    const std::size_t last_slots = area.limit() == 0 ? 0 : layout::slots_of_last(shape);
    for (std::size_t i = 0; i < shape.groups; ++i) {
      unsigned char* const control = area.groups() + i * layout::stride;
      const bool is_last = i + 1 == shape.groups;
      const std::size_t end = group::first_slot + (is_last ? last_slots : layout::slots);
      bool fresh_before = false;
      for (std::size_t slot = group::first_slot; slot < group::bytes; ++slot) {
        const unsigned char value = control[slot];
        if (slot >= end) {
          ASSERT_EQ(value, is_last ? group::closed : group::fresh) << "behind the slots";
          continue;
        }
        ASSERT_NE(value, group::closed);
        ASSERT_NE(value, is_last ? group::fresh : group::fresh_end);
        if (value == group::fresh || value == group::fresh_end) fresh_before = true;
        if (value < group::lowest_mark) continue;
        ASSERT_FALSE(fresh_before) << "an element behind a fresh slot";
        ++size;
        const sluice::detail::table_place<typename Base::value_type> place{control, slot};
        const std::uint64_t hash = hash_of(table, *place.element());
        ASSERT_EQ(value, group::mark_of(hash)) << "an element whose hash has changed";
        std::size_t home = (hash & 0xffffffff) * shape.homes >> 32;
        if (std::has_single_bit(shape.homes)) home = hash & (shape.homes - 1);
        if (home == i) continue;
        ++displaced;
        for (; home != i; home = (home + 1) % shape.groups) {
          ++passed[home];
          bits[home] |= 1u << (hash >> 61);
        }
      }
    }
    ASSERT_EQ(size, table.size());
    for (std::size_t i = 0; i < shape.groups; ++i) {
      const unsigned char* const control = area.groups() + i * layout::stride;
      ASSERT_EQ(control[group::beyond] & bits[i], bits[i]);
      if (control[group::count] == group::count_limit) continue;
      if (counts == Counts::exact) {
        ASSERT_EQ(control[group::count], passed[i]);
        if (passed[i] == 0) {
          ASSERT_EQ(control[group::beyond], 0);
        }
      } else {
        ASSERT_GE(control[group::count], passed[i]);
      }
    }
    if (counts == Counts::exact) {
      ASSERT_EQ(area.displaced(), displaced);
    } else {
      ASSERT_GE(area.displaced(), displaced);
    }
  }

 private:
  static std::uint64_t hash_of(const Base& table, const typename Base::value_type& element) {
    const std::uint64_t hash = [&] {
      if constexpr (requires { typename Base::mapped_type; })
        return table.hash_function()(element.first);
      else
        return table.hash_function()(element);
    }();
    if constexpr (requires { typename Base::hasher::is_avalanching; })
      return hash;
    else
      return sluice::detail::mix_hash(hash);
  }
};
template <class K, class V, class Hash, class Equal>
void expect_whole(const sluice::map_base<K, V, Hash, Equal>& map, Counts counts = Counts::exact) {
  WholeTable<sluice::map_base<K, V, Hash, Equal>>::check(map, counts);
}
template <class K, class Hash, class Equal>
void expect_whole(const sluice::set_base<K, Hash, Equal>& set, Counts counts = Counts::exact) {
  WholeTable<sluice::set_base<K, Hash, Equal>>::check(set, counts);
}

}  // namespace library_test
