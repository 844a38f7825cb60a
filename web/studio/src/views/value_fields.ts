import { field, h, replace, select } from "../../../shared/src/elements.js";
import { say } from "../catalogue/languages.js";
import type { Order } from "../server.js";

/** What is told of a value: its column and bounds, in how many places a person counts, which statistics. */
export class ValueFields {
  readonly element: HTMLElement;
  private readonly value = select("value", [["", ""]]);
  private readonly low = number("low");
  private readonly high = number("high");
  private readonly cap = h("input", { type: "number", name: "max_cells_per_person", min: 1, step: 1 });
  private readonly quantiles = h("input", { name: "quantiles", autocomplete: "off" });
  private readonly meanOf = select("mean_of", [
    ["", say("meanOfUsual")],
    ["people", say("meanOfPeople")],
    ["records", say("meanOfRecords")],
  ]);
  private readonly variance = h("input", { type: "checkbox", name: "variance" });
  private readonly selected = h("input", { type: "checkbox", name: "select" });

  constructor(changed: () => void) {
    const all = [this.value, this.low, this.high, this.cap, this.quantiles, this.meanOf, this.variance, this.selected];
    for (const each of all) each.addEventListener("input", changed);
    this.element = h(
      "div",
      {},
      h(
        "div",
        { class: "fields" },
        field(say("valueColumn"), this.value, say("valueColumnHelp")),
        field(say("leastValue"), this.low),
        field(say("mostValue"), this.high),
      ),
      h("p", {}, h("small", {}, say("boundsHelp"))),
      h(
        "div",
        { class: "fields" },
        field(say("placesAPerson"), this.cap, say("placesAPersonHelp")),
        field(say("quantiles"), this.quantiles, say("quantilesHelp")),
        field(say("meanOf"), this.meanOf, say("meanOfHelp")),
      ),
      h("label", { class: "choice" }, this.variance, " ", say("variance")),
      h("label", { class: "choice" }, this.selected, " ", say("selectCells")),
    );
  }

  /** The columns of a table, to choose the value from. */
  offer(columns: readonly string[]): void {
    const before = this.value.value;
    replace(this.value, ...["", ...columns].map((each) => h("option", { value: each }, each)));
    if (columns.includes(before)) this.value.value = before;
  }

  /** Names of a specification without the column, as a plan needs them. */
  plan(): Order {
    const bounds = { low: this.low.value.trim(), high: this.high.value.trim() };
    const known = Object.entries(bounds)
      .filter(([, text]) => text !== "")
      .map(([name, text]) => [name, Number(text)]);
    const ranks = this.quantiles.value
      .split(",")
      .map((each) => each.trim())
      .filter((each) => each !== "")
      .map(Number);
    return {
      ...(Object.fromEntries(known) as Order),
      ...(known.length < 2 ? { bounds: "private" } : {}),
      ...(this.cap.value === "" ? {} : { max_cells_per_person: Number(this.cap.value) }),
      ...(ranks.length === 0 ? {} : { quantiles: ranks }),
      mean_of: this.meanOf.value,
      variance: this.variance.checked,
      select: this.selected.checked,
    };
  }

  order(): Order {
    return { ...this.plan(), value: this.value.value };
  }
}

function number(name: string): HTMLInputElement {
  return h("input", { type: "number", name, step: "any", inputmode: "decimal", autocomplete: "off" });
}
