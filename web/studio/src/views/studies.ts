import { h, replace } from "../../../shared/src/elements.js";
import { say } from "../catalogue/languages.js";
import { server } from "../server.js";
import { problem } from "./problem.js";

/** Every study of the coordinator, to choose one. */
export function studies(): HTMLElement {
  const body = h("div", {}, h("p", {}, say("loading")));
  server.studies().then(
    (found) =>
      replace(
        body,
        h("p", {}, h("code", {}, found.server)),
        h("p", { class: "line" }, h("a", { class: "main", href: "#/studies/new/order" }, say("newStudy"))),
        found.studies.length === 0
          ? h("p", {}, say("noStudies"))
          : h(
              "ul",
              { class: "entries" },
              ...[...found.studies]
                .reverse()
                .map((name) =>
                  h("li", {}, h("a", { class: "entry", href: `#/studies/${encodeURIComponent(name)}` }, name)),
                ),
            ),
      ),
    (error: unknown) => replace(body, problem(error)),
  );
  return h("div", {}, h("h1", { tabindex: -1 }, say("studies")), body);
}
