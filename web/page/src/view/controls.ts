/** Controls of the page: a button, a choice, a box to tick. */

import { h } from "../../../shared/src/elements.js";

export function button(
  text: string,
  press: () => void,
  attributes: { readonly [name: string]: string } = {},
): HTMLButtonElement {
  const element = h("button", { type: "button", ...attributes }, text);
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
  const select = h(
    "select",
    {},
    ...values.map(([value, name]) => h("option", { value, selected: value === chosen }, name)),
  );
  select.addEventListener("change", () => change(select.value));
  return h("label", { class: "choice" }, h("span", {}, label), select);
}

/** A choice of yes or no; `name` is a class to find it by. */
export function checkbox(
  name: string,
  label: string,
  checked: boolean,
  change: (checked: boolean) => void,
): HTMLLabelElement {
  const input = h("input", { type: "checkbox", checked });
  input.addEventListener("change", () => change(input.checked));
  return h("label", { class: `check ${name}` }, input, h("span", {}, label));
}
