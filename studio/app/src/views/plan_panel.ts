import { number, say } from "../catalogue/languages.ts";
import { h, replace, tableOf } from "../elements.ts";
import { Latest } from "../latest.ts";
import { server } from "../server.ts";
import { problem } from "./problem.ts";
import { sameAs } from "./same_as.ts";

const PICTURE = 200, FIGURES = 1500;

/** What a price buys: a made-up city beside the map of it, following the form; no data is touched. */
export class PlanPanel {
  readonly element: HTMLElement;
  private readonly status = h("p", { role: "status" });
  private readonly truth = h("img", { alt: say("truthAlt"), width: 240, height: 240 });
  private readonly shown = h("img", { alt: "", width: 240, height: 240 });
  private readonly name = h("figcaption", {});
  private readonly pictures = h(
    "div", { class: "pictures", hidden: true },
    h("figure", {}, this.truth, h("figcaption", {}, say("truth"))), h("figure", {}, this.shown, this.name),
  );
  private readonly figures = h("div", {});
  private readonly forPicture = new Latest();
  private readonly forFigures = new Latest();

  constructor() {
    this.element = h(
      "section", { class: "card plan", "aria-labelledby": "plan" },
      h("h2", { id: "plan" }, say("plan")), h("p", {}, say("planWhy")), this.pictures, this.status, this.figures,
    );
  }

  /** Follow a form: `null` where it has no box. */
  follow(form: object | null): void {
    if (form === null) {
      this.forPicture.stop();
      this.forFigures.stop();
      this.pictures.hidden = true;
      replace(this.figures);
      replace(this.status, say("planNeedsBox"));
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
          level.name + (level.name === found.recommended.flat ? " ◂" : ""),
          level.metres >= 1000 ? `${number(level.metres / 1000, 1)} km` : `${number(level.metres)} m`,
          number(level.cells), number(level.stddev, 1), percent(level.typical), percent(level.misplaced),
        ]);
        const heads = [
          say("level"), say("side"), say("cellsNumber"), say("perCell"), say("typical"), say("misplaced"),
        ];
        replace(
          this.figures,
          h("details", {}, h("summary", {}, say("figures")), tableOf(found.heading, heads, rows),
            ...found.advice.map((line) => h("p", { lang: "en" }, line))),
          sameAs(found.same_as),
        );
      } catch (error) {
        if (!signal.aborted) replace(this.figures);
      }
    });
  }
}

function percent(part: number): string {
  return `${number(100 * part, part < 0.1 ? 1 : 0)} %`;
}
