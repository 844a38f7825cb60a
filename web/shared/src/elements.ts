/** Elements from plain data: whatever is put into them is text, never markup. */
export type Child = Node | string | number | null | undefined | false;

type Properties = {
  readonly [name: string]: string | number | boolean | null | undefined | ((event: Event) => void);
};

/** An element with attributes, listeners (`onclick` and such) and children; what is null or false is left out. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  put(made, ...children);
  return made;
}

/** An element of a picture. */
export function svg<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: { readonly [name: string]: string | number },
): SVGElementTagNameMap[Tag] {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

export function put(parent: Element, ...children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(typeof child === "number" ? String(child) : child);
  }
}

export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  put(parent, ...children);
}

/** A label above a field, with a line of help that screen readers read with it. */
export function field(
  label: string,
  control: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement,
  help?: string,
): HTMLElement {
  control.id ||= fresh();
  const said = help ? h("small", { id: `${control.id}-help` }, help) : null;
  if (said) control.setAttribute("aria-describedby", said.id);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, said);
}

export function select(
  name: string,
  options: readonly (readonly [value: string, text: string])[],
  value = "",
): HTMLSelectElement {
  const made = h("select", { name }, ...options.map(([each, text]) => h("option", { value: each }, text)));
  made.value = value;
  return made;
}

/** A part of a page under its heading. */
export function section(id: string, heading: string, ...children: Child[]): HTMLElement {
  return h("section", { "aria-labelledby": id }, h("h2", { id }, heading), ...children);
}

/** A table under its caption, which scrolls where it is wider or longer than its room. */
export function tableOf(
  caption: string,
  heads: readonly string[],
  rows: readonly (readonly Child[])[],
  hidden = false,
): HTMLElement {
  return h(
    "div",
    { class: "scrolls", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", hidden ? { class: "hidden" } : {}, caption),
      h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((cell) => h("td", {}, cell))))),
    ),
  );
}

let count = 0;

export function fresh(): string {
  count += 1;
  return `part-${count}`;
}
