import { field, h, replace } from "../../../shared/src/elements.js";
import { say } from "../catalogue/languages.js";
import { server } from "../server.js";
import { problem } from "./problem.js";

/** For whoever has no session: a token, or a new link. */
export function signIn(entered: () => void, why?: unknown): HTMLElement {
  const said = h("div", {});
  if (why) replace(said, problem(why));
  const token = h("input", { type: "password", name: "token", autocomplete: "off", required: true });
  const form = h(
    "form",
    {
      class: "card",
      onsubmit: (event) => {
        event.preventDefault();
        server.signIn({ token: token.value.trim() }).then(entered, (error: unknown) => replace(said, problem(error)));
      },
    },
    h("h1", { tabindex: -1 }, say("signIn")),
    h("p", {}, say("signInWhy")),
    field(say("token"), token),
    h("button", { type: "submit" }, say("enter")),
    h(
      "button",
      {
        type: "button",
        class: "quiet",
        onclick: () => {
          server.newLink().then(
            () => replace(said, h("p", { role: "status" }, say("linkPrinted"))),
            (error: unknown) => replace(said, problem(error)),
          );
        },
      },
      say("newLink"),
    ),
    said,
  );
  return h("div", { class: "narrow" }, form);
}
