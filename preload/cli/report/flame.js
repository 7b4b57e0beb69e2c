// The flame graph of a heap profile: all stacks as one tree, the outermost functions on top, as wide as their part.
// Open it to change how it looks or what a key does; profile.js says what stands around it.
const flame_row = 21; // pixels

// The document has the nodes in the order of a walk, as columns. Returns: the root.
function flame_tree(report) {
  const tree = field(report, "tree");
  const functions = list(report, "functions");
  const open = [];
  for (const [index, depth] of list(tree, "depth").entries()) {
    const described = functions[list(tree, "function")[index]];
    const values = Object.fromEntries(flame_measures.map(({ key }) => [key, list(tree, key)[index] ?? 0]));
    const node = { described, values, children: [], parent: open[depth - 1] ?? null, depth };
    node.parent?.children.push(node);
    open[depth] = node;
    open.length = depth + 1;
  }
  return open[0] ?? null;
}

const node_name = (node) => (node.described ? String(node.described.name) : "all");
const node_place = (node) => [field(node.described, "file"), field(node.described, "module")].find(Boolean) ?? "";

// Functions of one file or library have colours that are alike.
function flame_hue(node) {
  let hash = 0;
  for (const letter of node_place(node)) hash = (hash * 31 + letter.codePointAt(0)) >>> 0;
  let shade = 0;
  for (const letter of node_name(node)) shade = (shade * 31 + letter.codePointAt(0)) >>> 0;
  return ((hash % 12) * 30 + (shade % 20)) % 360;
}

class FlameGraph {
  constructor(root) {
    this.root = this.zoomed = root;
    this.measure = flame_measures[0];
    this.pattern = "";
    this.graph = make("div", {
      class: "flame",
      role: "tree",
      "aria-label": "Flame graph: arrow keys move, Enter zooms in, Escape zooms out",
      keydown: (event) => this.press(event),
      mouseleave: () => this.tell(this.zoomed),
    });
    this.line = make("p", { class: "flame-line", role: "status" });
    this.elements = new Map();
  }

  value(node) {
    return node.values[this.measure.key];
  }

  show({ measure = this.measure, pattern = this.pattern, zoomed = this.zoomed, focus = null }) {
    Object.assign(this, { measure, pattern: pattern.toLowerCase(), zoomed });
    while (this.zoomed.parent && this.value(this.zoomed) <= 0) this.zoomed = this.zoomed.parent;
    this.elements.clear();
    const ancestors = [];
    for (let node = this.zoomed.parent; node; node = node.parent) ancestors.unshift(node);
    let deepest = ancestors.length;
    for (const [row, node] of ancestors.entries()) this.place(node, row, 0, 1, "above");
    const open = [[this.zoomed, 0, 1]];
    while (open.length > 0) {
      const [node, left, width] = open.pop();
      this.place(node, node.depth, left, width, "");
      deepest = Math.max(deepest, node.depth);
      let at = left;
      const order = [...node.children].sort((a, b) => this.value(b) - this.value(a));
      for (const child of order) {
        const part = (width * this.value(child)) / this.value(node);
        if (part >= 1 / 2500) open.push([child, at, part]);
        at += part;
      }
    }
    this.graph.style.height = (deepest + 1) * flame_row + "px";
    this.graph.replaceChildren(...this.elements.values());
    this.choose(this.elements.has(focus) ? focus : this.zoomed, focus !== null);
  }

  place(node, row, left, width, kind) {
    const is_found = this.pattern !== "" && this.name_of(node).toLowerCase().includes(this.pattern);
    const element = make(
      "div",
      {
        class: ["node", kind, is_found ? "found" : ""].filter(Boolean).join(" "),
        role: "treeitem",
        tabindex: "-1",
        "aria-level": node.depth + 1,
        "aria-label": this.words(node),
        style: `left:${left * 100}%;width:${width * 100}%;top:${row * flame_row}px;--hue:${flame_hue(node)}`,
        click: () => this.show({ zoomed: node, focus: node }),
        mouseenter: () => this.tell(node),
        focus: () => this.tell(node),
      },
      width > 0.012 ? node_name(node) : "",
    );
    this.elements.set(node, element);
  }

  name_of(node) {
    return (field(node.described, "full_name") || node_name(node)) + " " + node_place(node);
  }

  words(node) {
    const whole = this.value(this.root);
    const part = whole > 0 ? ` (${((100 * this.value(node)) / whole).toFixed(1)}${unit_space}%)` : "";
    return `${this.name_of(node).trim()}: ${this.measure.text(this.value(node))}${part}`;
  }

  // The line below the graph: a node, and what the search has found.
  tell(node) {
    this.line.textContent = this.words(node) + (this.pattern === "" ? "" : `; found: ${this.found_text()}`);
  }

  found_text() {
    let sum = 0;
    const open = [this.zoomed];
    while (open.length > 0) {
      const node = open.pop();
      if (this.name_of(node).toLowerCase().includes(this.pattern)) sum += this.value(node);
      else open.push(...node.children);
    }
    const whole = this.value(this.zoomed);
    return this.measure.text(sum) + (whole > 0 ? ` (${((100 * sum) / whole).toFixed(1)}${unit_space}%)` : "");
  }

  choose(node, has_focus = true) {
    for (const element of this.elements.values()) element.tabIndex = -1;
    const element = this.elements.get(node);
    element.tabIndex = 0;
    if (has_focus) element.focus({ preventScroll: true });
    this.tell(node);
  }

  focused() {
    for (const [node, element] of this.elements) if (element === document.activeElement) return node;
    return this.zoomed;
  }

  neighbour(node, step) {
    const order = (node.parent?.children ?? [node])
      .filter((each) => this.elements.has(each))
      .sort((a, b) => this.value(b) - this.value(a));
    return order[order.indexOf(node) + step];
  }

  press(event) {
    const node = this.focused();
    const to = {
      ArrowUp: () => node.parent,
      ArrowDown: () => [...node.children].sort((a, b) => this.value(b) - this.value(a))[0],
      ArrowLeft: () => this.neighbour(node, -1),
      ArrowRight: () => this.neighbour(node, 1),
      Home: () => this.root,
    }[event.key];
    if (to) {
      const target = to();
      if (target && this.elements.has(target)) this.choose(target);
    } else if (event.key === "Enter" || event.key === " ") {
      this.show({ zoomed: node, focus: node });
    } else if (event.key === "Escape") {
      this.show({ zoomed: this.root, focus: this.root });
    } else {
      return;
    }
    event.preventDefault();
  }
}

// Elements: which value, a search, the graph and the line below it.
function flame_parts(report) {
  const root = flame_tree(report);
  const measures = flame_measures.filter(({ key }) => root && root.values[key] > 0);
  if (measures.length === 0) return [note("", "No sample has anything to show.")];
  const graph = new FlameGraph(root);
  const first = measures.find(({ key }) => key === field(report, "order")) ?? measures[0];
  const radio = (measure) =>
    make(
      "label",
      { class: "choice" },
      make("input", {
        type: "radio",
        name: "measure",
        value: measure.key,
        checked: measure === first,
        change: () => graph.show({ measure }),
      }),
      " " + measure.title,
    );
  const search = make("input", {
    type: "search",
    id: "flame-search",
    input: () => graph.show({ pattern: search.value }),
  });
  const whole = make("button", { type: "button", click: () => graph.show({ zoomed: root }) }, "Whole graph");
  graph.show({ measure: first });
  return [
    make(
      "div",
      { class: "filter" },
      make("fieldset", { class: "choices" }, make("legend", {}, "Show"), measures.map(radio)),
      make("label", {}, "Find a function", search),
      whole,
    ),
    graph.graph,
    graph.line,
  ];
}
