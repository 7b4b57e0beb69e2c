// A hash table of keys to values as servers written in C keep it: chains of entries with a key and a value each, all
// from malloc. Open it to change what a command does to the heap.
#pragma once

#include <cstdint>
#include <string_view>

#include "hash.hpp"
#include "memory.hpp"

namespace scenario {

/// A block of malloc that changes hands: whoever has it frees it.
struct Text {
  char* letters = nullptr;
  std::uint32_t length = 0;

  std::string_view view() const { return {letters, length}; }
};

inline Text copy_of(std::string_view letters) {
  const Text text{static_cast<char*>(require_block(std::malloc(letters.size()), letters.size())),
                  static_cast<std::uint32_t>(letters.size())};
  std::memcpy(text.letters, letters.data(), letters.size());
  escape(text.letters);
  return text;
}

struct Entry {
  Entry* next;
  Text key;
  Text value;
  std::uint64_t hash;
  std::uint64_t expires;  // the first moment at which it is no longer there
};

/// A moment is the number of a command.
class KeyValueStore {
 public:
  KeyValueStore() : table_(make_table(first_size)), size_(first_size) {}
  KeyValueStore(const KeyValueStore&) = delete;
  KeyValueStore& operator=(const KeyValueStore&) = delete;
  ~KeyValueStore() { clear(); }

  std::size_t count() const { return count_; }

  /// The entry of this key that is there at this moment; null when there is none. One that has expired is freed.
  Entry* find(std::string_view key, std::uint64_t now) {
    Entry** const link = link_of(key, hash_of(key));
    if (*link == nullptr) return nullptr;
    if ((*link)->expires > now) return *link;
    remove(link);
    return nullptr;
  }

  /// Takes the key and the value. An old value is freed, and so is the key when the table has one like it.
  void set(Text key, Text value, std::uint64_t expires) {
    const std::uint64_t hash = hash_of(key.view());
    Entry** const link = link_of(key.view(), hash);
    if (Entry* const entry = *link; entry != nullptr) {
      std::free(key.letters);
      std::free(entry->value.letters);
      entry->value = value;
      entry->expires = expires;
      return;
    }
    auto* const entry = static_cast<Entry*>(require_block(std::malloc(sizeof(Entry)), sizeof(Entry)));
    *entry = {nullptr, key, value, hash, expires};
    *link = entry;
    if (++count_ > size_ && older_ == nullptr) grow();
  }

  /// Returns whether there was such a key.
  bool erase(std::string_view key, std::uint64_t now) {
    Entry** const link = link_of(key, hash_of(key));
    if (*link == nullptr) return false;
    const bool was_there = (*link)->expires > now;
    remove(link);
    return was_there;
  }

  /// The upkeep that goes along with every command: moves one chain of a table that grows, and frees what has expired
  /// in another chain.
  void tend(std::uint64_t now) {
    if (older_ != nullptr) move_chain();
    Entry** link = &table_[swept_++ & (size_ - 1)].first;
    while (*link != nullptr) {
      if ((*link)->expires <= now) {
        remove(link);
      } else {
        link = &(*link)->next;
      }
    }
  }

  /// Frees everything.
  void clear() {
    clear_table(older_, older_size_);
    clear_table(table_, size_);
    older_ = table_ = nullptr;
    older_size_ = size_ = count_ = 0;
  }

 private:
  static constexpr std::size_t first_size = 16;

  struct Chain {
    Entry* first;
  };

  static Chain* make_table(std::size_t size) {
    return static_cast<Chain*>(require_block(std::calloc(size, sizeof(Chain)), size * sizeof(Chain)));
  }

  static void release(Entry* entry) {
    std::free(entry->key.letters);
    std::free(entry->value.letters);
    std::free(entry);
  }

  static void clear_table(Chain* table, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      for (Entry* entry = table[i].first; entry != nullptr;) {
        Entry* const next = entry->next;
        release(entry);
        entry = next;
      }
    }
    std::free(table);
  }

  /// The pointer to the entry of this key, or the null pointer at which a new one goes in.
  Entry** link_of(std::string_view key, std::uint64_t hash) const {
    const bool is_moved = older_ == nullptr || (hash & (older_size_ - 1)) < moved_;
    Entry** link = is_moved ? &table_[hash & (size_ - 1)].first : &older_[hash & (older_size_ - 1)].first;
    while (*link != nullptr && ((*link)->hash != hash || (*link)->key.view() != key))
      link = &(*link)->next;
    return link;
  }

  void remove(Entry** link) {
    Entry* const entry = *link;
    *link = entry->next;
    release(entry);
    --count_;
  }

  void grow() {
    older_ = table_;
    older_size_ = size_;
    moved_ = 0;
    size_ *= 2;
    table_ = make_table(size_);
  }

  void move_chain() {
    for (Entry* entry = older_[moved_].first; entry != nullptr;) {
      Entry* const next = entry->next;
      Entry*& first = table_[entry->hash & (size_ - 1)].first;
      entry->next = first;
      first = entry;
      entry = next;
    }
    older_[moved_].first = nullptr;
    if (++moved_ < older_size_) return;
    std::free(older_);
    older_ = nullptr;
    older_size_ = 0;
  }

  Chain* table_;
  std::size_t size_;        // of the table: a power of two
  Chain* older_ = nullptr;  // while the table grows: the smaller one, whose first chains have moved
  std::size_t older_size_ = 0;
  std::size_t moved_ = 0;  // how many of its chains
  std::size_t swept_ = 0;
  std::size_t count_ = 0;
};

}  // namespace scenario
