// Entities of a simulation: each has a matrix and a body of its own, begins and ends in random order, and moves in each
// step. Open it for what pools of single types gain for objects that are many, of few sizes, and walked all the time.
#include <memory_resource>
#include <type_traits>
#include <utility>

#include "common.hpp"
#include "memory.hpp"
#include "sluice/pool.hpp"

namespace {

constexpr std::uint32_t entity_count = 16'384;
constexpr std::uint32_t replaced = 1'024;  // entities that end in a step, and as many others that begin
constexpr std::size_t expected = 4'096;    // entities that the pools have room for at first

struct Matrix {
  float cells[4][4];
};

struct Body {
  float place[3];
  float speed[3];
  float mass;
  std::uint32_t check;
};

struct Entity {
  Matrix* matrix;
  Body* body;
  std::uint32_t number;
  std::uint32_t born;
  std::uint32_t moved;
  std::uint32_t check;
};

/// Row by row: each row of the result is a sum of rows.
Matrix product(const Matrix& left, const Matrix& right) {
  Matrix result = {};
  for (int row = 0; row < 4; ++row) {
    for (int i = 0; i < 4; ++i)
      for (int column = 0; column < 4; ++column)
        result.cells[row][column] += left.cells[row][i] * right.cells[i][column];
  }
  return result;
}

constexpr Matrix identity = {{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}};
constexpr Matrix turn = {{{0.8F, 0.6F, 0, 0}, {-0.6F, 0.8F, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}};

/// One function for all kinds of memory, so that they differ in nothing but where the entities lie.
[[gnu::noinline]] void move(Entity* const* entities, std::uint32_t count) {
  for (std::uint32_t k = 0; k < count; ++k) {
    Entity& entity = *entities[k];
    *entity.matrix = product(*entity.matrix, turn);
    Body& body = *entity.body;
    body.speed[2] -= 0.16F / body.mass;
    for (int axis = 0; axis < 3; ++axis) {
      body.place[axis] += body.speed[axis] / 60;
      entity.matrix->cells[3][axis] = body.place[axis];
    }
    ++entity.moved;
  }
}

struct Plain : scenario::AlwaysInEffect<Plain> {
  static constexpr const char* name = "plain";
  template <class T>
  T* create(const T& value) {
    return new T(value);
  }
  template <class T>
  void destroy(T* object) {
    delete object;
  }
};

/// One pool for each type; they grow when more entities live than were expected.
class Pools : public scenario::AlwaysInEffect<Pools> {
 public:
  static constexpr const char* name = "pool";
  template <class T>
  T* create(const T& value) {
    return of<T>().create(value);
  }
  template <class T>
  void destroy(T* object) {
    of<T>().destroy(object);
  }

 private:
  template <class T>
  sluice::pool<T>& of() {
    if constexpr (std::is_same_v<T, Matrix>) {
      return matrices_;
    } else if constexpr (std::is_same_v<T, Body>) {
      return bodies_;
    } else {
      return entities_;
    }
  }

  sluice::pool<Matrix> matrices_{expected};
  sluice::pool<Body> bodies_{expected};
  sluice::pool<Entity> entities_{expected};
};

struct Pmr : scenario::AlwaysInEffect<Pmr> {
  static constexpr const char* name = "pmr";
  template <class T>
  T* create(const T& value) {
    return allocator.new_object<T>(value);
  }
  template <class T>
  void destroy(T* object) {
    allocator.delete_object(object);
  }

  std::pmr::unsynchronized_pool_resource resource;
  std::pmr::polymorphic_allocator<> allocator{&resource};
};

template <class Memory>
class Simulation {
 public:
  Simulation(Memory& memory, std::uint64_t seed)
      : memory_(memory), random_(seed), entities_(entity_count), ending_(replaced) {
    for (std::uint32_t i = 0; i < entity_count; ++i)
      entities_[i] = begin();
  }

  void run(std::uint64_t steps, scenario::Report& report) {
    for (std::uint64_t i = 0; i < steps; ++i) {
      for (std::uint32_t k = 0; k < replaced; ++k)
        ending_[k] = k * (entity_count / replaced) + random_.below(entity_count / replaced);
      for (std::uint32_t k = replaced; k > 1; --k)
        std::swap(ending_[k - 1], ending_[random_.below(k)]);
      turnover_watch_.start();
      for (std::uint32_t k = 0; k < replaced; ++k)
        end(entities_[ending_[k]]);
      for (std::uint32_t k = 0; k < replaced; ++k)
        entities_[ending_[k]] = begin();
      turnover_watch_.stop();
      move_watch_.start();
      move(&entities_[0], entity_count);
      move_watch_.stop();
      ++steps_;
    }
    for (std::uint32_t i = 0; i < entity_count; ++i)
      end(entities_[i]);
    report.require(damage_ == 0);
    report.add("entity_turnover", steps * replaced, turnover_watch_.nanoseconds());
    report.add("entity_move", steps * entity_count, move_watch_.nanoseconds());
  }

 private:
  Entity* begin() {
    const std::uint32_t number = begun_++;
    Matrix* const matrix = memory_.create(identity);
    scenario::escape(matrix);
    const auto speed = static_cast<float>(number % 64);
    Body* const body = memory_.create(Body{{0, 0, 0}, {speed, -speed, 1}, 2, ~number});
    scenario::escape(body);
    Entity* const entity = memory_.create(Entity{matrix, body, number, steps_, 0, ~number});
    scenario::escape(entity);
    return entity;
  }

  /// The z of an entity's matrix came from its body; the last column stays as it began.
  void end(Entity* entity) {
    const Matrix& matrix = *entity->matrix;
    damage_ |= (entity->number ^ ~entity->check) | (entity->number ^ ~entity->body->check);
    damage_ |= entity->born + entity->moved - steps_;
    damage_ |= static_cast<std::uint32_t>(matrix.cells[3][2] != entity->body->place[2] || matrix.cells[3][3] != 1);
    memory_.destroy(entity->matrix);
    memory_.destroy(entity->body);
    memory_.destroy(entity);
  }

  Memory& memory_;
  scenario::Random random_;
  scenario::Table<Entity*> entities_;
  scenario::Table<std::uint32_t> ending_;  // positions in entities_, each once
  std::uint32_t begun_ = 0;
  std::uint32_t steps_ = 0;
  std::uint32_t damage_ = 0;
  scenario::Stopwatch turnover_watch_;
  scenario::Stopwatch move_watch_;
};

}  // namespace

int main(int argc, char** argv) {
  scenario::Choice memory("--memory", "plain|pool|pmr");
  const auto arguments = scenario::parse_arguments(argc, argv, "steps", 600, 1, {&memory});
  scenario::Report report("entity_pool");
  scenario::with_memory<Plain, Pools, Pmr>(
      memory, report, [&](auto& kind) { Simulation(kind, arguments.seed).run(arguments.ops, report); });
  return report.finish(arguments);
}
