import { field, h, replace } from "../../../shared/src/elements.js";
import { number, say } from "../catalogue/languages.js";
import { type RecipeCheck, server } from "../server.js";
import { englishList, partlyEnglish } from "./in_english.js";
import { problem } from "./problem.js";
import { sameAs } from "./same_as.js";

/** Where a recipe is written, checked without asking anybody, and asked at its price. */
export class RecipeDesk {
  readonly element: HTMLElement;
  private readonly text = h("textarea", { name: "recipe", spellcheck: "false", maxlength: 60000, rows: 20 });
  private readonly file = h("input", { name: "file", value: "recipe.toml", autocomplete: "off" });
  private readonly policy = h("input", { name: "policy", placeholder: "policy.toml", autocomplete: "off" });
  private readonly people = h("input", { name: "people", type: "number", min: 1, step: 1 });
  private readonly below = h("div", { class: "review" });
  private readonly status = h("div", { "aria-live": "polite" });

  constructor(
    private readonly study: string,
    private readonly asked: (round: number) => void,
  ) {
    for (const each of [this.text, this.policy, this.people]) each.addEventListener("input", () => replace(this.below));
    const act = (label: string, work: () => Promise<void>): HTMLElement =>
      h(
        "button",
        {
          type: "button",
          class: "quiet",
          onclick: () => {
            replace(this.status);
            work().catch((error: unknown) => replace(this.status, problem(error)));
          },
        },
        label,
      );
    const put = (text: string): void => {
      this.text.value = text;
      replace(this.below);
    };
    this.element = h(
      "form",
      {
        class: "card",
        novalidate: true,
        "aria-labelledby": "recipe",
        onsubmit: (event) => {
          event.preventDefault();
          void this.check();
        },
      },
      h("h2", { id: "recipe" }, say("recipe")),
      field(say("recipeText"), this.text, say("recipeTextHelp")),
      h(
        "div",
        { class: "fields" },
        field(say("recipeFile"), this.file, say("recipeFileHelp")),
        field(say("policyFile"), this.policy, say("policyFileHelp")),
        field(say("recipePeople"), this.people),
      ),
      h(
        "div",
        { class: "line" },
        h("button", { type: "submit", class: "main" }, say("checkRecipe")),
        act(say("exampleRecipe"), async () => put(await server.exampleRecipe())),
        act(say("openRecipe"), async () => put(await server.openRecipe(this.file.value.trim()))),
        act(say("saveRecipe"), async () => {
          const made = await server.saveRecipe(this.file.value.trim(), this.text.value);
          replace(this.status, h("p", {}, say("isThere", { file: made.file })));
        }),
      ),
      this.status,
      this.below,
    );
  }

  private async check(): Promise<void> {
    const text = this.text.value,
      file = this.file.value.trim(),
      people = Number(this.people.value);
    replace(this.below, h("p", { role: "status" }, say("checking")));
    try {
      const found = await server.checkRecipe({
        text,
        file,
        policy: this.policy.value.trim(),
        ...(people > 0 ? { people } : {}),
      });
      replace(this.below, this.checked(found, text, file));
      this.below.querySelector<HTMLElement>("h3")?.focus();
    } catch (error) {
      replace(this.below, problem(error));
    }
  }

  private checked(found: RecipeCheck, text: string, file: string): HTMLElement {
    const place = h("div", {});
    const ask = h(
      "button",
      {
        type: "button",
        class: "main spend",
        onclick: () => {
          ask.disabled = true;
          server.askStudy(this.study, text, file).then(
            (begun) => {
              replace(
                this.below,
                h("p", { role: "status" }, say("askedRound", { round: begun.round })),
                sameAs(begun.same_as),
              );
              this.asked(begun.round);
            },
            (error: unknown) => {
              ask.disabled = false;
              replace(place, problem(error));
            },
          );
        },
      },
      say("askRecipe", { id: found.id, price: found.price }),
    );
    return h(
      "section",
      { class: "card cost", "aria-labelledby": "checked" },
      h(
        "h3",
        { id: "checked", tabindex: -1 },
        `${found.id}: ${found.price}, ${say("binsOf", { count: number(found.bins) })}`,
      ),
      found.kept ? null : h("p", { class: "problem" }, say("priceNotKept")),
      found.answered === null
        ? null
        : found.answered
          ? h("p", {}, say("wouldAnswer"))
          : h("p", { class: "problem" }, say("wouldRefuse")),
      h("p", {}, h("strong", {}, say("toldOnDevice"))),
      englishList(found.words),
      h(
        "details",
        {},
        h("summary", {}, say("recipeFacts")),
        partlyEnglish(),
        h("pre", { tabindex: 0, lang: "en" }, found.lines.join("\n")),
      ),
      h("p", {}, say("askForGood")),
      h("div", { class: "line" }, ask),
      place,
      sameAs(found.same_as),
    );
  }
}
