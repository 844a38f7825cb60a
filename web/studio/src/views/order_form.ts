import { field, h, replace, select } from "../../../shared/src/elements.js";
import { say } from "../catalogue/languages.js";
import type { Order, Preview } from "../server.js";
import { GroundFields } from "./ground_fields.js";
import { ValueFields } from "./value_fields.js";

const FROM = 0.01,
  TO = 10;

/** The fields of a release, and the order that they make. */
export class OrderForm {
  readonly element: HTMLElement;
  private source = "";
  private preview: Preview | undefined;
  private readonly columns = h("div", { class: "fields" });
  private readonly roles = new Map<string, HTMLSelectElement>();
  private readonly ground = new GroundFields(true, say("boxHelp"), () => this.changed());
  private readonly told = select("kind", [
    ["", say("tellPeople")],
    ["statistics", say("tellValues")],
  ]);
  private readonly values = new ValueFields(() => this.changed());
  private readonly slider = h("input", { type: "range", name: "slider", min: 0, max: 100, step: 1 });
  private readonly epsilon = h("input", {
    type: "number",
    name: "epsilon",
    min: FROM / 10,
    step: "any",
    value: "1",
    required: true,
    inputmode: "decimal",
  });
  private readonly delta = h("input", { name: "delta", autocomplete: "off", placeholder: "0" });
  private readonly rho = h("input", { name: "rho", autocomplete: "off" });
  private readonly marks = h("input", { name: "mark", autocomplete: "off" });
  private readonly slots = h("input", { name: "slots", autocomplete: "off", placeholder: "hour-of-day" });
  private readonly zone = h("input", { name: "time_zone", autocomplete: "off", placeholder: "UTC" });
  private readonly people = h("input", { type: "number", name: "people", min: 100, step: 1, value: "100000" });
  private readonly dataset = h("input", { name: "dataset", autocomplete: "off" });
  private readonly output = h("input", { name: "output", autocomplete: "off", required: true });

  constructor(
    choice: HTMLElement,
    private readonly changed: () => void,
  ) {
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
    for (const each of [this.people, this.delta, this.rho, this.marks, this.slots, this.zone]) {
      each.addEventListener("input", () => this.changed());
    }
    const ofMarks = field(say("marks"), this.marks, say("campaignMarksHelp")),
      ofPeople = field(say("people"), this.people);
    this.told.addEventListener("input", () => {
      for (const each of [ofMarks, ofPeople]) each.hidden = this.ofValues;
      this.values.element.hidden = !this.ofValues;
      this.ground.tell(this.ofValues);
      this.changed();
    });
    this.values.element.hidden = true;
    this.element = h(
      "div",
      {},
      card(1, say("table"), h("p", {}, say("chooseTable")), choice),
      card(2, say("columns"), this.columns),
      card(
        3,
        say("map"),
        h("div", { class: "fields" }, field(say("whatIsTold"), this.told)),
        this.values.element,
        this.ground.element,
        h(
          "details",
          {},
          h("summary", {}, say("moreOfMap")),
          h(
            "div",
            { class: "fields" },
            ofMarks,
            field(say("slots"), this.slots, say("slotsHelp")),
            field(say("timeZone"), this.zone),
          ),
        ),
      ),
      card(
        4,
        say("price"),
        h(
          "div",
          { class: "fields price" },
          field(say("epsilon"), this.epsilon, say("epsilonHelp")),
          field(say("slider"), this.slider),
          ofPeople,
        ),
        h(
          "details",
          {},
          h("summary", {}, say("otherPrices")),
          h(
            "div",
            { class: "fields" },
            field(say("delta"), this.delta, say("deltaHelp")),
            field("ρ", this.rho, say("rhoHelp")),
          ),
        ),
      ),
      card(
        5,
        say("save"),
        h(
          "div",
          { class: "fields" },
          field(say("output"), this.output),
          field(say("dataset"), this.dataset, say("datasetHelp")),
        ),
      ),
    );
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
    const rows = !this.ofValues && this.ground.bounding.value === "rows are people";
    const marks = this.ofValues
      ? []
      : this.marks.value
          .split(",")
          .map((each) => each.trim())
          .filter((each) => each !== "");
    const all: Order = {
      source: this.source,
      ...Object.fromEntries(roles.filter(([name]) => !(rows && name === "person"))),
      ...this.mapped(),
      ...(this.ofValues ? this.values.order() : {}),
      ...(marks.length > 0 ? { mark: marks } : {}),
      ...this.timed(),
      dataset: this.dataset.value.trim(),
      output: this.output.value.trim(),
    };
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ""));
  }

  get ofValues(): boolean {
    return this.told.value !== "";
  }

  /** What a plan needs to know; `null` without a price, and of a map without a box. */
  plan(): object | null {
    if (this.ofValues) {
      const all = Object.entries({ ...this.mapped(), ...this.values.plan(), ...this.timed() });
      const asked = Object.fromEntries(all.filter(([, value]) => value !== ""));
      return asked["epsilon"] || asked["rho"] ? asked : null;
    }
    const people = Number(this.people.value);
    const mapped = Object.fromEntries(Object.entries(this.mapped()).filter(([, value]) => value !== ""));
    return mapped["box"] && (mapped["epsilon"] || mapped["rho"]) && Number.isInteger(people)
      ? { ...mapped, people }
      : null;
  }

  private mapped(): Order {
    const rho = this.rho.value.trim();
    const price: Order = rho === "" ? { epsilon: this.epsilon.value, delta: this.delta.value.trim() } : { rho };
    return { ...price, kind: this.told.value, ...this.ground.order() };
  }

  private timed(): Order {
    return { slots: this.slots.value.trim(), time_zone: this.zone.value.trim() };
  }

  private tellPrice(): void {
    this.slider.setAttribute("aria-valuetext", `ε = ${this.epsilon.value}`);
  }

  private showColumns(): void {
    this.roles.clear();
    const names = this.preview?.columns.map(({ name }) => [name, name] as const) ?? [];
    this.values.offer(names.map(([name]) => name));
    const asked = this.preview?.geometry ? ["person"] : ["person", "lon", "lat"];
    for (const role of asked) {
      const made = select(role, [["", say("guess")], ...names], this.preview?.guessed[role] ?? "");
      this.roles.set(role, made);
    }
    const labels = { person: say("person"), lon: say("longitude"), lat: say("latitude") } as Record<string, string>;
    replace(
      this.columns,
      ...[...this.roles].map(([role, made]) =>
        field(labels[role] ?? role, made, role === "person" ? say("personHelp") : undefined),
      ),
      this.preview?.geometry ? h("p", {}, say("geometry", { column: this.preview.geometry })) : null,
    );
  }
}

function card(step: number, title: string, ...children: (HTMLElement | null)[]): HTMLElement {
  const id = `step-${step}`;
  return h("section", { class: "card", "aria-labelledby": id }, h("h2", { id }, `${step}. ${title}`), ...children);
}

/** The ε of a place on the slider, in round numbers, evenly in logarithms. */
function price(at: number): number {
  return Number((FROM * (TO / FROM) ** (at / 100)).toPrecision(2));
}

function place(epsilon: number): number {
  return epsilon > 0 ? Math.round((100 * Math.log(epsilon / FROM)) / Math.log(TO / FROM)) : 0;
}
