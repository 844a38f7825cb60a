import { h, replace, tableOf } from "../../../shared/src/elements.js";
import { language, number, say } from "../catalogue/languages.js";
import { Latest } from "../latest.js";
import { server } from "../server.js";
import { englishList } from "./in_english.js";
import { problem } from "./problem.js";
import { sameAs } from "./same_as.js";

const PICTURE = 200,
  FIGURES = 1500;

/** What a price buys: a made-up city beside the map of it, following the form; no data is touched. */
export class PlanPanel {
  readonly element: HTMLElement;
  private readonly status = h("p", { role: "status" });
  private readonly truth = h("img", { alt: say("truthAlt"), width: 240, height: 240 });
  private readonly shown = h("img", { alt: "", width: 240, height: 240 });
  private readonly why = h("p", {}, say("planWhy"));
  private readonly name = h("figcaption", {});
  private readonly pictures = h(
    "div",
    { class: "pictures", hidden: true },
    h("figure", {}, this.truth, h("figcaption", {}, say("truth"))),
    h("figure", {}, this.shown, this.name),
  );
  private readonly figures = h("div", {});
  private readonly forPicture = new Latest();
  private readonly forFigures = new Latest();

  constructor() {
    this.element = h(
      "section",
      { class: "card plan", "aria-labelledby": "plan" },
      h("h2", { id: "plan" }, say("plan")),
      this.why,
      this.pictures,
      this.status,
      this.figures,
    );
  }

  /** Follow a form: `null` where it has no box or no price. */
  follow(form: object | null, ofValues: boolean): void {
    replace(this.why, say(ofValues ? "planOfValues" : "planWhy"));
    if (form === null || ofValues) {
      this.forPicture.stop();
      this.forFigures.stop();
      this.pictures.hidden = true;
      replace(this.figures);
      replace(this.status, form === null ? say(ofValues ? "planNeedsPrice" : "planNeedsBox") : "");
      if (form !== null) this.followValues(form);
      return;
    }
    this.forPicture.after(PICTURE, async (signal) => {
      replace(this.status, say("planning"));
      try {
        const found = await server.planPicture(form, signal);
        this.truth.src = found.truth;
        this.shown.src = found.shown;
        this.shown.alt = say("shownAlt", { cells: number(found.cells) });
        replace(this.name, say("shown", { price: found.price }));
        this.pictures.hidden = false;
        replace(this.status, say("planned", { cells: number(found.cells), price: found.price }));
      } catch (error) {
        if (!signal.aborted) replace(this.status, problem(error));
      }
    });
    this.forFigures.after(FIGURES, async (signal) => {
      try {
        const found = await server.plan(form, signal);
        const rows = found.levels.map((level) => [
          h("span", { lang: "en" }, level.name + (level.name === found.recommended.flat ? " ◂" : "")),
          level.metres >= 1000 ? `${number(level.metres / 1000, 1)} km` : `${number(level.metres)} m`,
          number(level.cells),
          number(level.stddev, 1),
          percent(level.typical),
          percent(level.misplaced),
        ]);
        const heads = [say("level"), say("side"), say("cellsNumber"), say("perCell"), say("typical"), say("misplaced")];
        replace(
          this.figures,
          h(
            "details",
            {},
            h("summary", {}, say("figures")),
            tableOf(say("figures"), heads, rows, true),
            englishList([found.heading, ...found.advice]),
          ),
          sameAs(found.same_as),
        );
      } catch {
        if (!signal.aborted) replace(this.figures);
      }
    });
  }

  /** How sure means are with so many people in a place, for some caps on the places that a person counts in. */
  private followValues(form: object): void {
    this.forFigures.after(PICTURE, async (signal) => {
      try {
        const found = await server.planValues(form, signal);
        const places = found.places === null ? say("manyPlaces") : number(found.places);
        const width = (each: number | null): string =>
          each === null
            ? say("tooFew")
            : found.of_range
              ? percent(each)
              : `± ${each.toLocaleString(language(), { maximumSignificantDigits: 3 })}`;
        const rows = found.reaches.map((reach) => [
          number(reach.max_cells_per_person) + (reach.max_cells_per_person === found.cap ? " ◂" : ""),
          number(reach.stddev, 1),
          number(reach.threshold),
          ...reach.widths.map(width),
        ]);
        const heads = [
          say("placesAPerson"),
          say("perPlace"),
          say("neededPeople"),
          ...found.people.map((people) => say("meanWith", { people: number(people) })),
        ];
        replace(
          this.figures,
          tableOf(say("placesPlanned", { places, price: found.price }), heads, rows),
          sameAs(found.same_as),
        );
      } catch (error) {
        if (!signal.aborted) replace(this.figures, problem(error));
      }
    });
  }
}

function percent(part: number): string {
  return `${number(100 * part, part < 0.1 ? 1 : 0)} %`;
}
