/** Elements of the page. Whatever is put into them is text: there is no way to hand markup over. */

type Child = Node | string | null | undefined;

/** An element with attributes and children; `on` listens to events. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: { readonly [name: string]: string | boolean | null } = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child): child is Node | string => child !== null && child !== undefined));
  return element;
}

export function button(
  text: string,
  press: () => void,
  attributes: { readonly [name: string]: string } = {},
): HTMLButtonElement {
  const element = make("button", { type: "button", ...attributes }, text);
  element.addEventListener("click", press);
  return element;
}

/** A choice among named values. */
export function choice(
  label: string,
  values: readonly (readonly [string, string])[],
  chosen: string,
  change: (value: string) => void,
): HTMLLabelElement {
  const select = make(
    "select",
    {},
    ...values.map(([value, name]) => make("option", { value, selected: value === chosen }, name)),
  );
  select.addEventListener("change", () => change(select.value));
  return make("label", { class: "choice" }, make("span", {}, label), select);
}

/** A choice of yes or no; `name` is a class to find it by. */
export function checkbox(
  name: string,
  label: string,
  checked: boolean,
  change: (checked: boolean) => void,
): HTMLLabelElement {
  const input = make("input", { type: "checkbox", checked });
  input.addEventListener("change", () => change(input.checked));
  return make("label", { class: `check ${name}` }, input, make("span", {}, label));
}
