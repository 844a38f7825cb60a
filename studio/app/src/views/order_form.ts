import { say } from "../catalogue/languages.ts";
import { field, h, replace, select } from "../elements.ts";
import type { Order, Preview } from "../server.ts";

const SIDES = ["west", "south", "east", "north"] as const;
const FROM = 0.01, TO = 10;

/** The fields of a release, and the order that they make. */
export class OrderForm {
  readonly element: HTMLElement;
  private source = "";
  private preview: Preview | undefined;
  private readonly columns = h("div", { class: "fields" });
  private readonly roles = new Map<string, HTMLSelectElement>();
  private readonly box = SIDES.map((name) => h("input", {
    type: "number", name, step: "any", inputmode: "decimal", autocomplete: "off",
  }));
  private readonly cells = select("cells", [["quadtree", say("squares")], ["h3", say("hexagons")]], "quadtree");
  private readonly coarsest = select("coarsest", levels(0, 15), "7");
  private readonly finest = select("finest", [["", say("asSensible")], ...levels(1, 20)]);
  private readonly bounding = select("bounding", [
    ["", say("oneRow")], ["one vote", say("oneVote")],
    ...[5, 10, 50].map((count) => [`rows:${count}`, say("rowsOf", { count })] as const),
    ...[5, 10].map((count) => [`cells:${count}`, say("cellsOf", { count })] as const),
    ["rows are people", say("rowsArePeople")],
  ]);
  private readonly method = h("input", { name: "method", placeholder: "auto", autocomplete: "off" });
  private readonly slider = h("input", { type: "range", name: "slider", min: 0, max: 100, step: 1 });
  private readonly epsilon = h("input", {
    type: "number", name: "epsilon", min: FROM / 10, step: "any", value: "1", required: true, inputmode: "decimal",
  });
  private readonly people = h("input", { type: "number", name: "people", min: 100, step: 1, value: "100000" });
  private readonly dataset = h("input", { name: "dataset", autocomplete: "off" });
  private readonly output = h("input", { name: "output", autocomplete: "off", required: true });

  constructor(choice: HTMLElement, private readonly changed: () => void) {
    this.slider.value = String(place(1));
    this.slider.addEventListener("input", () => {
      this.epsilon.value = String(price(Number(this.slider.value)));
      this.tellPrice();
      this.changed();
    });
    this.epsilon.addEventListener("input", () => {
      this.slider.value = String(place(Number(this.epsilon.value)));
      this.tellPrice();
      this.changed();
    });
    this.tellPrice();
    for (const each of [...this.box, this.coarsest, this.finest, this.bounding, this.method, this.people]) {
      each.addEventListener("input", () => this.changed());
    }
    this.cells.addEventListener("input", () => {
      this.fitLevels();
      this.changed();
    });
    this.element = h(
      "div", {},
      card(1, say("table"), h("p", {}, say("chooseTable")), choice),
      card(2, say("columns"), this.columns),
      card(
        3, say("map"),
        h("fieldset", {}, h("legend", {}, say("box")), h("div", { class: "fields" },
          ...SIDES.map((name, at) => field(say(name), this.box[at]!))), h("small", {}, say("boxHelp"))),
        h("div", { class: "fields" }, field(say("cells"), this.cells), field(say("coarsest"), this.coarsest),
          field(say("finest"), this.finest), field(say("bounding"), this.bounding)),
        h("details", {}, h("summary", {}, say("more")), field(say("method"), this.method, say("methodHelp"))),
      ),
      card(
        4, say("price"),
        h("div", { class: "fields price" }, field(say("epsilon"), this.epsilon, say("epsilonHelp")),
          field(say("slider"), this.slider), field(say("people"), this.people)),
      ),
      card(
        5, say("save"),
        h("div", { class: "fields" }, field(say("output"), this.output),
          field(say("dataset"), this.dataset, say("datasetHelp"))),
      ),
    );
    this.fitLevels();
    this.showColumns();
  }

  chose(source: string, preview: Preview): void {
    this.source = source;
    this.preview = preview;
    const name = source.slice(source.lastIndexOf("/") + 1).split(".")[0] ?? "map";
    this.dataset.placeholder = name;
    this.output.value ||= `${name}-map.parquet`;
    this.showColumns();
  }

  /** What is asked for; what is left blank is left out. */
  order(): Order {
    const roles = [...this.roles].map(([name, chosen]) => [name, chosen.value] as const);
    const rows = this.bounding.value === "rows are people";
    const all: Order = {
      source: this.source, ...Object.fromEntries(roles.filter(([name]) => !(rows && name === "person"))),
      ...this.mapped(), dataset: this.dataset.value.trim(), output: this.output.value.trim(),
    };
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ""));
  }

  /** What a plan needs to know; `null` without a box or a price. */
  plan(): object | null {
    const people = Number(this.people.value);
    const mapped = Object.fromEntries(Object.entries(this.mapped()).filter(([, value]) => value !== ""));
    return mapped["box"] && mapped["epsilon"] && Number.isInteger(people) ? { ...mapped, people } : null;
  }

  private mapped(): Order {
    const sides = this.box.map((side) => side.value.trim());
    const hexagons = this.cells.value === "h3", finest = this.finest.value;
    const squares = finest === "" ? "" : `quadtree:${finest}`;
    return {
      epsilon: this.epsilon.value, bounding: this.bounding.value, method: this.method.value.trim(),
      box: sides.every((side) => side !== "") ? sides.join(",") : "",
      cells: hexagons ? `h3:${this.coarsest.value}-${finest || "10"}` : squares,
    };
  }

  private fitLevels(): void {
    const hexagons = this.cells.value === "h3";
    (this.coarsest.closest(".field") as HTMLElement | null)?.toggleAttribute("hidden", !hexagons);
    if (hexagons && (this.finest.value === "" || Number(this.finest.value) > 15)) this.finest.value = "10";
    if (!hexagons) this.finest.value = "";
  }

  private tellPrice(): void {
    this.slider.setAttribute("aria-valuetext", `ε = ${this.epsilon.value}`);
  }

  private showColumns(): void {
    this.roles.clear();
    const names = this.preview?.columns.map(({ name }) => [name, name] as const) ?? [];
    const asked = this.preview?.geometry ? ["person"] : ["person", "lon", "lat"];
    for (const role of asked) {
      const made = select(role, [["", say("guess")], ...names], this.preview?.guessed[role] ?? "");
      this.roles.set(role, made);
    }
    const labels = { person: say("person"), lon: say("longitude"), lat: say("latitude") } as Record<string, string>;
    replace(
      this.columns,
      ...[...this.roles].map(([role, made]) =>
        field(labels[role] ?? role, made, role === "person" ? say("personHelp") : undefined)),
      this.preview?.geometry ? h("p", {}, say("geometry", { column: this.preview.geometry })) : null,
    );
  }
}

function card(step: number, title: string, ...children: (HTMLElement | null)[]): HTMLElement {
  const id = `step-${step}`;
  return h("section", { class: "card", "aria-labelledby": id }, h("h2", { id }, `${step}. ${title}`), ...children);
}

function levels(from: number, to: number): (readonly [string, string])[] {
  return Array.from({ length: to - from + 1 }, (_, at) => [String(from + at), String(from + at)] as const);
}

/** The ε of a place on the slider, in round numbers, evenly in logarithms. */
function price(at: number): number {
  return Number((FROM * (TO / FROM) ** (at / 100)).toPrecision(2));
}

function place(epsilon: number): number {
  return epsilon > 0 ? Math.round((100 * Math.log(epsilon / FROM)) / Math.log(TO / FROM)) : 0;
}
