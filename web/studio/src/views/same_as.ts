import { h } from "../../../shared/src/elements.js";
import { say } from "../catalogue/languages.js";
import type { SameAs } from "../server.js";

/** The command and the Python that do the same, to be read and copied. */
export function sameAs(same: SameAs): HTMLElement {
  return h(
    "details",
    { class: "same" },
    h("summary", {}, say("sameAs")),
    ...[
      [say("command"), same.command],
      [say("python"), same.python],
    ].map(([name, text]) => {
      const said = h("span", { role: "status" });
      const copy = h(
        "button",
        {
          type: "button",
          class: "quiet",
          onclick: () => {
            void navigator.clipboard.writeText(text ?? "").then(() => {
              said.textContent = say("copied");
            });
          },
        },
        say("copy"),
        h("span", { class: "hidden" }, ` ${name}`),
      );
      return h(
        "div",
        {},
        h("div", { class: "line" }, h("strong", {}, name), copy, said),
        h("pre", { tabindex: 0 }, h("code", { lang: "en" }, text)),
      );
    }),
  );
}
