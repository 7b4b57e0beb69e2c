// An SQL database in memory: orders of customers are inserted, asked for, changed and deleted, and the database closed.
// Open it for what SQLite, with its pages, statements and sorts, asks of malloc.
#include <optional>

#include "common.hpp"
#include "hash.hpp"
#include "phases.hpp"
#include "sqlite_database.hpp"
#include "texts.hpp"

namespace {

using scenario::Statement;

constexpr std::uint64_t orders_in_round = 40'000;
constexpr std::uint32_t orders_of_customer = 16;  // on average
constexpr std::uint32_t orders_of_transaction = 500;
constexpr std::uint32_t cities = 50;
constexpr std::int64_t surcharge = 25;
constexpr std::string_view before_item = " / ";
constexpr std::string_view remark = " (surcharge for express delivery)";

constexpr bool pays_surcharge(std::int64_t customer) {
  return customer % 2 == 0;
}
constexpr bool is_deleted(std::int64_t customer) {
  return customer % 3 == 0;
}
constexpr std::uint32_t city_of(std::int64_t customer) {
  return static_cast<std::uint32_t>(customer * 7) % cities;
}

struct Order {
  Order(std::uint64_t seed, std::uint32_t customers) {
    scenario::Random random(seed);
    customer = random.below(customers);
    amount = random.between(1, 10'000);
    item = scenario::text_piece(random.next(), random.between(6, 20));
    note = scenario::text_piece(random.next(), random.between(10, scenario::longest_text));
  }
  std::int64_t customer, amount;
  std::string_view item, note;
};

/// Adds up for orders in whatever order they are met.
std::uint64_t digest(std::string_view note, std::string_view item) {
  return scenario::mixed(scenario::hash_of(note), scenario::hash_of(item));
}

/// What a database should say of some of its orders.
struct Sums {
  std::int64_t orders, amount, letters;

  void add(const Order& order) {
    ++orders;
    amount += order.amount;
    letters += static_cast<std::int64_t>(order.note.size());
  }
  bool operator==(const Sums& other) const {
    return orders == other.orders && amount == other.amount && letters == other.letters;
  }
  static Sums from(const Statement& row, int column) {
    return {row.number(column), row.number(column + 1), row.number(column + 2)};
  }
};

/// One round's orders, by number.
struct Orders {
  std::uint64_t seed;
  std::uint64_t count;

  std::uint32_t customers() const { return static_cast<std::uint32_t>(count / orders_of_customer + 1); }
  Order operator[](std::uint64_t number) const { return {seed + number, customers()}; }
};

/// The sums of a round's orders, from their numbers alone.
class Expectation {
 public:
  explicit Expectation(std::uint64_t most_customers) : customers_(most_customers), cities_(cities) {}

  void compute(const Orders& orders) {
    all_ = left_ = {};
    texts_ = 0;
    std::memset(&customers_[0], 0, customers_.length() * sizeof(Sums));
    std::memset(&cities_[0], 0, cities_.length() * sizeof(Sums));
    for (std::uint64_t number = 0; number < orders.count; ++number) {
      const Order order = orders[number];
      all_.add(order);
      texts_ += digest(order.note, order.item);
      customers_[static_cast<std::size_t>(order.customer)].add(order);
      cities_[city_of(order.customer)].add(order);
      if (is_deleted(order.customer)) continue;
      left_.add(order);
      if (!pays_surcharge(order.customer)) continue;
      left_.amount += surcharge;
      left_.letters += static_cast<std::int64_t>(remark.size());
    }
  }

  const Sums& all() const { return all_; }
  std::uint64_t texts() const { return texts_; }
  const Sums& left() const { return left_; }  // after all changes
  const Sums& of_customer(std::int64_t customer) const { return customers_[static_cast<std::size_t>(customer)]; }
  const Sums& of_city(std::int64_t city) const { return cities_[static_cast<std::size_t>(city)]; }

 private:
  Sums all_{}, left_{};
  std::uint64_t texts_ = 0;
  scenario::Table<Sums> customers_, cities_;
};

void insert(scenario::Database& database, const Orders& orders) {
  database.run(
      "CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city INTEGER NOT NULL);"
      "CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER NOT NULL REFERENCES customers, item TEXT NOT NULL,"
      "                    amount INTEGER NOT NULL, note TEXT);"
      "CREATE INDEX orders_by_customer ON orders(customer);"
      "CREATE INDEX orders_by_item ON orders(item, amount);"
      "BEGIN");
  Statement customer(database, "INSERT INTO customers VALUES(?, 'customer ' || ?1, ?)");
  for (std::int64_t id = 0; id < orders.customers(); ++id)
    customer.bind(1, id).bind(2, std::int64_t{city_of(id)}).step();
  Statement statement(database, "INSERT INTO orders(customer, item, amount, note) VALUES(?, ?, ?, ?)");
  for (std::uint64_t number = 0; number < orders.count; ++number) {
    const Order order = orders[number];
    statement.bind(1, order.customer).bind(2, order.item).bind(3, order.amount).bind(4, order.note).step();
    if ((number + 1) % orders_of_transaction == 0) database.run("COMMIT; BEGIN");
  }
  database.run("COMMIT");
}

/// A statement for each customer, made anew as by programs that keep none; sums over a join; all notes in order.
/// Returns whether the answers are right.
bool select(const scenario::Database& database, const Orders& orders, const Expectation& expected) {
  bool is_right = true;
  for (std::int64_t id = 0; id < orders.customers(); ++id) {
    Statement statement(database,
                        "SELECT count(*), ifnull(sum(amount), 0), ifnull(sum(length(note)), 0), group_concat(item)"
                        " FROM orders WHERE customer = ?");
    is_right = is_right && statement.bind(1, id).step() && Sums::from(statement, 0) == expected.of_customer(id);
  }
  Statement by_city(database,
                    "SELECT city, count(*), sum(amount), sum(length(note)) FROM orders JOIN customers"
                    " ON customers.id = orders.customer GROUP BY city ORDER BY sum(amount) DESC");
  while (by_city.step())
    is_right = is_right && Sums::from(by_city, 1) == expected.of_city(by_city.number(0));
  Statement sorted(database, "SELECT amount, note, note || ' / ' || item AS line FROM orders ORDER BY line");
  Sums sums{};
  std::uint64_t texts = 0;
  while (sorted.step()) {
    const std::string_view note = sorted.text(1);
    const std::string_view line = sorted.text(2);
    ++sums.orders;
    sums.amount += sorted.number(0);
    sums.letters += static_cast<std::int64_t>(note.size());
    if (line.starts_with(note)) texts += digest(note, line.substr(note.size() + before_item.size()));
  }
  return is_right && sums == expected.all() && texts == expected.texts();
}

void update(scenario::Database& database, const Orders& orders) {
  Statement statement(database, "UPDATE orders SET amount = amount + ?, note = note || ? WHERE customer = ?");
  database.run("BEGIN");
  for (std::int64_t id = 0; id < orders.customers(); ++id) {
    if (pays_surcharge(id)) statement.bind(1, surcharge).bind(2, remark).bind(3, id).step();
  }
  database.run("COMMIT");
}

void delete_some(scenario::Database& database, const Orders& orders) {
  Statement statement(database, "DELETE FROM orders WHERE customer = ?");
  database.run("BEGIN");
  for (std::int64_t id = 0; id < orders.customers(); ++id) {
    if (is_deleted(id)) statement.bind(1, id).step();
  }
  database.run("COMMIT");
}

bool has_left(const scenario::Database& database, const Sums& expected) {
  Statement statement(database, "SELECT count(*), ifnull(sum(amount), 0), ifnull(sum(length(note)), 0) FROM orders");
  return statement.step() && Sums::from(statement, 0) == expected;
}

enum Phase : std::size_t { preparation, inserting, selecting, updating, deleting, checking, closing };

/// Returns whether every answer of the databases was right.
bool work(const scenario::Arguments& arguments, scenario::PhaseClock& clock, std::uint64_t worker) {
  const scenario::Rounds rounds(arguments, worker, orders_in_round);
  Expectation expected(orders_in_round / orders_of_customer + 2);
  std::uint64_t seed = scenario::Random(scenario::seed_of(arguments, worker)).next();
  bool is_right = true;
  for (std::uint64_t round = 0; round < rounds.count(); ++round) {
    const Orders orders{seed, rounds.operations(round)};
    expected.compute(orders);
    clock.end(preparation);
    std::optional<scenario::Database> database(std::in_place);
    insert(*database, orders);
    clock.end(inserting);
    is_right = select(*database, orders, expected) && is_right;
    clock.end(selecting);
    update(*database, orders);
    clock.end(updating);
    delete_some(*database, orders);
    clock.end(deleting);
    is_right = has_left(*database, expected.left()) && is_right;
    clock.end(checking);
    database.reset();
    clock.end(closing);
    seed += orders.count;
  }
  return is_right;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      scenario::parse_arguments(argc, argv, {.unit = "orders in the databases", .ops = 80'000, .threads = 1});
  scenario::set_up_sqlite();
  scenario::PhaseClock clock(arguments.threads);
  scenario::Report report("sqlite");
  report.require(
      scenario::are_all_right(arguments.threads, [&](std::uint64_t worker) { return work(arguments, clock, worker); }));
  report.add("sqlite_insert", arguments.ops, clock.nanoseconds(inserting));
  report.add("sqlite_select", arguments.ops, clock.nanoseconds(selecting));
  report.add("sqlite_update", arguments.ops, clock.nanoseconds(updating));
  report.add("sqlite_delete", arguments.ops, clock.nanoseconds(deleting));
  report.add("sqlite_close", arguments.ops, clock.nanoseconds(closing));
  return report.finish(arguments);
}
