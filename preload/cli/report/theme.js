// Light and dark: the system's wish until the button is pressed; print is light. Open it to change how a page
// chooses its colours. The colours themselves stand in report.css.
const prefers_dark = matchMedia("(prefers-color-scheme: dark)");
const theme_changes = [];
let chosen_theme = null;

const colour = (name) =>
  getComputedStyle(document.documentElement)
    .getPropertyValue("--" + name)
    .trim();

function show_theme(name) {
  if (document.documentElement.dataset.theme === name) return;
  document.documentElement.dataset.theme = name;
  for (const change of theme_changes) change();
}
const show_wanted_theme = () => show_theme(chosen_theme ?? (prefers_dark.matches ? "dark" : "light"));
show_wanted_theme();
prefers_dark.addEventListener("change", show_wanted_theme);

function theme_button() {
  const other = () => (document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  const press = () => {
    chosen_theme = other();
    show_wanted_theme();
  };
  const button = make("button", { type: "button", class: "small", id: "theme", click: press });
  const name = () => (button.textContent = other() === "dark" ? "Dark colours" : "Light colours");
  theme_changes.push(name);
  name();
  return button;
}
