import { h, replace } from "../../../shared/src/elements.js";
import { say } from "../catalogue/languages.js";
import { type Order, type Review, server } from "../server.js";
import { inEnglish } from "./in_english.js";
import { OrderForm } from "./order_form.js";
import { PlanPanel } from "./plan_panel.js";
import { problem } from "./problem.js";
import { follow } from "./run.js";
import { sameAs } from "./same_as.js";
import { TableChoice } from "./table_choice.js";

/** From a table to a map: choose, plan, see the price, release. */
export function release(): HTMLElement {
  const below = h("div", { class: "review" });
  const plan = new PlanPanel();
  const choice = new TableChoice((source, preview) => form.chose(source, preview));
  const form: OrderForm = new OrderForm(choice.element, () => {
    replace(below);
    plan.follow(form.plan(), form.ofValues);
  });
  const ask = h(
    "form",
    {
      novalidate: true,
      onsubmit: (event) => {
        event.preventDefault();
        void look();
      },
    },
    form.element,
    h("button", { type: "submit", class: "main" }, say("look")),
  );

  async function look(): Promise<void> {
    const order = form.order();
    try {
      const review = await server.review(order);
      const buy = () => void spend(order, review);
      replace(
        below,
        reviewCard(review, buy, () => replace(below)),
      );
    } catch (error) {
      replace(below, problem(error));
    }
    below.querySelector<HTMLElement>("h2, [role=alert]")?.scrollIntoView({ block: "nearest" });
    below.querySelector<HTMLElement>("h2")?.focus();
  }

  async function spend(order: Order, review: Review): Promise<void> {
    below.querySelectorAll("button").forEach((button) => {
      button.disabled = true;
    });
    try {
      const run = await server.release(order, review.key);
      ask.hidden = true;
      replace(below, follow(run));
      below.querySelector<HTMLElement>("h2")?.focus();
    } catch (error) {
      replace(below, problem(error));
    }
  }

  void choice.open("");
  plan.follow(null, false);
  return h(
    "div",
    {},
    h("h1", { tabindex: -1 }, say("release")),
    h("div", { class: "columns" }, h("div", {}, ask, below), plan.element),
  );
}

function reviewCard(review: Review, buy: () => void, back: () => void): HTMLElement {
  const rows: [string, string][] = [
    [say("dataset"), review.dataset],
    [say("cap"), review.said === null ? say("noCap") : (review.said.cap ?? say("noCap"))],
    [say("spent"), review.said?.spent ?? say("nothingYet")],
    ...(review.left_then === null
      ? []
      : [
          [say("leftNow"), review.said?.left ?? ""] as [string, string],
          [say("leftThen"), review.left_then] as [string, string],
        ]),
  ];
  return h(
    "section",
    { class: "card cost", "aria-labelledby": "cost" },
    h("h2", { id: "cost", tabindex: -1 }, `${say("cost")}: ${review.price}`),
    h("dl", {}, ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    review.caution === null ? null : h("p", { class: "problem" }, inEnglish(review.caution)),
    h("p", {}, say("spentForGood")),
    h(
      "div",
      { class: "line" },
      h(
        "button",
        { type: "button", class: "main spend", onclick: buy },
        say("buy", { price: review.price, dataset: review.dataset }),
      ),
      h("button", { type: "button", class: "quiet", onclick: back }, say("goBack")),
    ),
    sameAs(review.same_as),
  );
}
