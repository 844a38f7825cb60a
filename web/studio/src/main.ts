import "../../shared/src/look.css";
import "./style.css";
import { h, replace, select } from "../../shared/src/elements.js";
import { choose, language, names, say } from "./catalogue/languages.js";
import { Problem, server, type Who } from "./server.js";
import { campaign } from "./views/campaign.js";
import { campaignOrder } from "./views/campaign_order.js";
import { campaigns } from "./views/campaigns.js";
import { comparison } from "./views/comparison.js";
import { ledger } from "./views/ledger.js";
import { map, maps } from "./views/maps.js";
import { release } from "./views/release.js";
import { signIn } from "./views/sign_in.js";
import { studies } from "./views/studies.js";
import { study } from "./views/study.js";
import { studyOrder } from "./views/study_order.js";

const PARTS = ["release", "maps", "ledger", "comparison"] as const;
const OF_SERVER = ["campaigns", "studies"] as const;

const place = document.getElementById("studio")!;
const main = h("main", { id: "content", tabindex: -1 });
let who: Who | undefined;

function header(): HTMLElement {
  const chosen = select(
    "language",
    names.map(({ code, name }) => [code, name] as const),
    language(),
  );
  chosen.setAttribute("aria-label", say("language"));
  chosen.addEventListener("input", () => {
    choose(chosen.value);
    show();
  });
  const parts = who?.server ? [...PARTS, ...OF_SERVER] : PARTS;
  const links = parts.map((part) => {
    const here = at()[0] === part || (part === "maps" && at()[0] === "folder");
    return h("li", {}, h("a", { href: `#/${part}`, "aria-current": here ? "page" : null }, say(part)));
  });
  const out = h(
    "button",
    {
      type: "button",
      class: "quiet",
      onclick: () =>
        void server.signOut().then(() => {
          who = undefined;
          show();
        }),
    },
    say("signOut"),
  );
  return h(
    "header",
    {},
    h(
      "a",
      {
        class: "skip",
        href: "#content",
        onclick: (event) => {
          event.preventDefault();
          main.focus();
        },
      },
      say("skip"),
    ),
    h("strong", {}, say("studio")),
    who ? h("nav", { "aria-label": say("nav") }, h("ul", {}, ...links)) : null,
    h(
      "div",
      { class: "line end" },
      who ? h("small", {}, say("worksIn", { name: who.name, folder: who.root })) : null,
      names.length > 1 ? chosen : null,
      who ? out : null,
    ),
  );
}

function at(): string[] {
  const parts = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  return parts[0] === "" || !location.hash.startsWith("#/") ? ["release"] : parts;
}

function show(why?: unknown): void {
  document.documentElement.lang = language();
  const [part, name, rest] = at();
  let view: HTMLElement;
  if (who === undefined) view = signIn(() => void begin(), why);
  else if (part === "maps") view = name ? map(name) : maps();
  else if (part === "folder") view = maps(name ?? "");
  else if (part === "ledger") view = ledger();
  else if (part === "campaigns" && name === "new" && rest === "order") view = campaignOrder();
  else if (part === "comparison") view = comparison();
  else if (part === "studies" && name === "new" && rest === "order") view = studyOrder();
  else if (part === "studies") view = name ? study(name) : studies();
  else if (part === "campaigns") view = name ? campaign(name) : campaigns();
  else view = release();
  replace(main, view);
  replace(place, header(), main);
  const heading = main.querySelector<HTMLElement>("h1");
  document.title = `${heading?.textContent ?? ""} · ${say("studio")}`;
  heading?.focus({ preventScroll: true });
}

/** Sign in by the link's secret, which leaves the address at once; else go on with the session that is there. */
async function begin(): Promise<void> {
  const link = /^#link=(.+)$/.exec(location.hash)?.[1];
  if (link !== undefined) history.replaceState(null, "", "/");
  let why: unknown;
  try {
    if (link !== undefined) await server.signIn({ link });
  } catch (error) {
    why = error;
  }
  try {
    who = await server.who();
    why = undefined;
  } catch (error) {
    who = undefined;
    if (why === undefined && !(error instanceof Problem && error.status === 401)) why = error;
  }
  show(why);
}

window.addEventListener("hashchange", () => (location.hash.startsWith("#link=") ? void begin() : show()));
void begin();
