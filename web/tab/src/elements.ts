/** Elements from plain data: text is text, never markup. */
export type Child = Node | string;

type Properties = Readonly<Record<string, string | boolean | ((event: Event) => void)>>;

/** An element with attributes, listeners (`onclick` and such) and children. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

/** A field under its label, with a line of help that screen readers read with it. */
export function field(id: string, label: string, control: HTMLInputElement, help?: string): HTMLElement {
  control.id = id;
  const made = h("div", { class: "field" }, h("label", { for: id }, label), control);
  if (help !== undefined) {
    control.setAttribute("aria-describedby", `${id}-help`);
    made.append(h("small", { id: `${id}-help` }, help));
  }
  return made;
}

/** A part of the page under its heading. */
export function section(id: string, heading: string, ...children: Child[]): HTMLElement {
  return h("section", { "aria-labelledby": id }, h("h2", { id }, heading), ...children);
}
