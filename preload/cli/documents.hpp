// The command's options in other forms than its help: parts of the manual page, and completion for shells. All come
// from the description that the arguments are parsed by. Open it to add a form.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace sluice::cli {

enum class DocumentKind {
  synopsis,
  run,
  compare,
  bench,
  profile,
  leaks,
  advise,
  attach,
  top,
  bash,
  zsh,
  fish,
  statistics
};

// Effects: prints the document of the command that `app` describes: for the manual page the synopsis, or the options of
// a subcommand; else the completion script of a shell, or the tables of statistics.
void print_document(const CLI::App& app, DocumentKind kind);

// Effects: prints a table in Markdown of each section of a statistics dump, between comments that name it.
void print_statistics_tables();

// Returns: what stands for an option's value in texts, as "FILE"; empty when it takes none.
std::string value_name(const CLI::Option& option);

// Returns: what it does, and its default.
std::string option_text(const CLI::Option& option);

}  // namespace sluice::cli
