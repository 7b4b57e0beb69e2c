// What the measured g++ compiles: many instances of templates, of the standard library's and of its own. Open it to
// change what the compiler is given to do. It needs the standard headers of C++17 only, and is never run.
#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <iomanip>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace {

// A type of its own for each number, so that no two instances are shared.
template <int N>
struct Key {
  std::string name;
  int number = N;
  bool operator<(const Key& other) const { return std::tie(number, name) < std::tie(other.number, other.name); }
  bool operator==(const Key& other) const { return number == other.number && name == other.name; }
};

template <int N>
struct HashOfKey {
  std::size_t operator()(const Key<N>& key) const { return std::hash<std::string>()(key.name) * 31 + N; }
};

// Expression templates.
template <typename Left, typename Right, typename Operation>
struct Binary {
  Left left;
  Right right;
  constexpr double at(std::size_t i) const { return Operation()(left.at(i), right.at(i)); }
};
template <int N>
struct Column {
  std::array<double, N + 8> values{};
  constexpr double at(std::size_t i) const { return values[i % values.size()]; }
};
template <typename T>
struct IsExpression : std::false_type {};
template <int N>
struct IsExpression<Column<N>> : std::true_type {};
template <typename L, typename R, typename O>
struct IsExpression<Binary<L, R, O>> : std::true_type {};

template <typename L, typename R, std::enable_if_t<IsExpression<L>::value && IsExpression<R>::value, int> = 0>
constexpr Binary<L, R, std::plus<>> operator+(const L& left, const R& right) {
  return {left, right};
}
template <typename L, typename R, std::enable_if_t<IsExpression<L>::value && IsExpression<R>::value, int> = 0>
constexpr Binary<L, R, std::multiplies<>> operator*(const L& left, const R& right) {
  return {left, right};
}

template <int... Numbers>
double sum_of_columns(std::size_t rows, std::integer_sequence<int, Numbers...>) {
  const auto expression = (Column<Numbers>() + ... + (Column<1>() * Column<2>()));
  double sum = 0;
  for (std::size_t i = 0; i < rows; ++i)
    sum += expression.at(i);
  return sum;
}

// Lists of types, sorted while compiling.
template <int... Numbers>
struct Integers {};
template <int First, typename List>
struct Prepend;
template <int First, int... Rest>
struct Prepend<First, Integers<Rest...>> {
  using type = Integers<First, Rest...>;
};
template <int Value, typename List>
struct Insert;
template <int Value>
struct Insert<Value, Integers<>> {
  using type = Integers<Value>;
};
template <int Value, int First, int... Rest>
struct Insert<Value, Integers<First, Rest...>> {
  using type = typename std::conditional_t<(Value < First), Prepend<Value, Integers<First, Rest...>>,
                                           Prepend<First, typename Insert<Value, Integers<Rest...>>::type>>::type;
};
template <typename List>
struct Sort;
template <>
struct Sort<Integers<>> {
  using type = Integers<>;
};
template <int First, int... Rest>
struct Sort<Integers<First, Rest...>> {
  using type = typename Insert<First, typename Sort<Integers<Rest...>>::type>::type;
};
using Sorted = Sort<Integers<23, 5, 17, 2, 29, 11, 31, 3, 19, 7, 13, 37, 41, 1, 43, 6, 4, 12, 9, 8, 22, 15>>::type;
static_assert(
    std::is_same_v<Sorted, Integers<1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 17, 19, 22, 23, 29, 31, 37, 41, 43>>);

// Each instance makes instances of most containers and of many algorithms.
template <int N>
std::size_t containers(const std::string& text) {
  std::map<Key<N>, std::vector<std::string>> ordered;
  std::unordered_map<Key<N>, std::set<Key<N>>, HashOfKey<N>> grouped;
  std::deque<std::pair<Key<N>, double>> queue;
  std::list<std::shared_ptr<Key<N>>> shared;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    Key<N> key{word, N};
    ordered[key].push_back(word);
    grouped[key].insert(key);
    queue.emplace_back(key, word.size() * 1.5);
    shared.push_back(std::make_shared<Key<N>>(std::move(key)));
  }
  std::sort(queue.begin(), queue.end(), [](const auto& a, const auto& b) { return b.first < a.first; });
  std::stable_sort(queue.begin(), queue.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  shared.sort([](const auto& a, const auto& b) { return *a < *b; });
  shared.unique([](const auto& a, const auto& b) { return *a == *b; });
  const auto longest = std::max_element(queue.begin(), queue.end(), [](const auto& a, const auto& b) {
    return a.first.name.size() < b.first.name.size();
  });
  const double total = std::accumulate(queue.begin(), queue.end(), 0.0,
                                       [](double sum, const auto& entry) { return sum + entry.second; });
  std::function<std::optional<std::size_t>(const Key<N>&)> find = [&ordered](const Key<N>& key) {
    const auto found = ordered.find(key);
    return found == ordered.end() ? std::nullopt : std::optional<std::size_t>(found->second.size());
  };
  std::ostringstream out;
  out << std::setw(N) << std::fixed << total;
  return out.str().size() + grouped.size() + (longest == queue.end() ? 0 : find(longest->first).value_or(N));
}

template <int N>
struct Node;
template <int N>
using Tree = std::variant<std::monostate, int, std::string, std::array<short, N + 1>, std::unique_ptr<Node<N>>>;
template <int N>
struct Node {
  Tree<N> left, right;
};
template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

template <int N>
std::size_t weight(const Tree<N>& tree) {
  return std::visit(
      Overloaded{[](std::monostate) -> std::size_t { return 0; },
                 [](int value) { return static_cast<std::size_t>(value); },
                 [](const std::string& text) { return text.size(); },
                 [](const std::array<short, N + 1>& values) { return values.size(); },
                 [](const std::unique_ptr<Node<N>>& node) { return weight<N>(node->left) + weight<N>(node->right); }},
      tree);
}

template <int N>
std::size_t one(const std::string& text) {
  auto node = std::make_unique<Node<N>>();
  node->left = text;
  node->right = N;
  const auto parts = std::make_tuple(N, text, std::array<char, N + 1>(), Key<N>{text, N});
  return containers<N>(text) + weight<N>(Tree<N>(std::move(node))) +
         std::apply([](const auto&... part) { return (sizeof(part) + ...); }, parts);
}

template <int... Numbers>
std::size_t all(const std::string& text, std::integer_sequence<int, Numbers...>) {
  return (one<Numbers>(text) + ...);
}

}  // namespace

int main(int count, char** arguments) {
  const std::string text = count > 1 ? arguments[1] : "";
  const std::size_t sum = all(text, std::make_integer_sequence<int, 3>());
  return static_cast<int>(sum +
                          static_cast<std::size_t>(sum_of_columns(text.size(), std::make_integer_sequence<int, 24>())));
}
