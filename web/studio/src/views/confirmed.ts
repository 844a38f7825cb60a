import { h, replace } from "../../../shared/src/elements.js";
import { say } from "../catalogue/languages.js";
import { problem } from "./problem.js";

/** A button that asks once more, in words, before it does what cannot be undone. */
export function confirmed(label: string, why: string, act: () => Promise<void>): HTMLElement {
  const place = h("div", { class: "confirmed" });
  const first = (): void => {
    replace(
      place,
      h(
        "button",
        {
          type: "button",
          onclick: () => {
            const sure = h(
              "button",
              {
                type: "button",
                class: "main",
                onclick: () => {
                  sure.disabled = true;
                  act().catch((error: unknown) => {
                    first();
                    place.append(problem(error));
                  });
                },
              },
              say("yes", { what: label }),
            );
            replace(
              place,
              h("p", { role: "status" }, why),
              h(
                "div",
                { class: "line" },
                sure,
                h(
                  "button",
                  {
                    type: "button",
                    class: "quiet",
                    onclick: () => {
                      first();
                      place.querySelector("button")?.focus();
                    },
                  },
                  say("goBack"),
                ),
              ),
            );
            sure.focus();
          },
        },
        label,
      ),
    );
  };
  first();
  return place;
}
