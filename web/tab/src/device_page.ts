import { CodecError, InputError } from "../../device/src/errors.js";
import { systemRandom } from "../../shared/src/bytes.js";
import { field, h, section } from "../../shared/src/elements.js";
import { madeUpWalk } from "./made_up_walk.js";
import { placesOf } from "./places_file.js";
import { ALWAYS, looser, policyText, RULES, type Rule, written } from "./rules.js";
import type { TabDevice } from "./tab_device.js";
import type { LogLine } from "./tab_store.js";

const DAY = 86_400_000;

/** All that a person sees and does. */
export class DevicePage {
  readonly root = h("div", {});
  private readonly server = h("input", {
    id: "address",
    type: "url",
    autocomplete: "off",
    required: true,
    placeholder: "https://maps.example",
  });
  private readonly code = h("input", { id: "code", autocomplete: "off", spellcheck: "false" });
  private readonly file = h("input", {
    id: "file",
    type: "file",
    accept: ".gpx,.json,application/gpx+xml,application/json",
  });
  private readonly lon = h("input", { id: "lon", inputmode: "decimal" });
  private readonly lat = h("input", { id: "lat", inputmode: "decimal" });
  private readonly rules = Object.fromEntries(
    RULES.map(({ name }) => [name, h("input", { id: `rule-${name}` })]),
  ) as Record<Rule["name"], HTMLInputElement>;
  private readonly policyFile = h("input", { id: "policy-file", type: "file", accept: ".json,application/json" });
  private readonly policyKey = h("input", { id: "policy-key", autocomplete: "off", spellcheck: "false" });
  private readonly shipped = h("p", { class: "shipped" });
  private readonly day = h("input", { id: "day", autocomplete: "off", placeholder: "2026-11-23" });
  private readonly behind = h("div", { class: "behind", hidden: true });
  private readonly places = h("p", { class: "places" });
  private readonly warning = h("p", { class: "warning" });
  private readonly status = h("p", { role: "status", class: "status" });
  private readonly problem = h("p", { role: "alert", class: "problem", hidden: true });
  private readonly enrolled = h("p", { class: "enrolled" });
  private readonly settings = h("fieldset", {});
  private readonly lines = h("ol", {});
  private readonly log = h("div", { role: "log", tabindex: "0", "aria-labelledby": "log", class: "lines" }, this.lines);
  private readonly toggle = h("button", { type: "button", class: "main", onclick: () => void this.toggled() });

  constructor(
    private readonly device: TabDevice,
    link: URLSearchParams,
  ) {
    const [lon, lat] = (link.get("walk") ?? "13.4,52.5").split(",");
    this.server.value = device.store.record.server ?? link.get("server") ?? "";
    this.code.value = link.get("code") ?? "";
    [this.lon.value, this.lat.value] = [lon ?? "", lat ?? ""];
    this.file.addEventListener("change", () => void this.doing(() => this.chosen()));
    this.policyFile.addEventListener("change", () => void this.doing(() => this.accepted()));
    this.settings.append(
      h("legend", { class: "hidden" }, "Settings"),
      this.placesPart(),
      this.rulesPart(),
      this.recipesPart(),
      this.serverPart(),
    );
    this.root.append(
      h(
        "main",
        {},
        h("h1", {}, "A device in this tab"),
        this.introduction(),
        this.answeringPart(),
        this.settings,
        this.logPart(),
      ),
    );
    device.store.lines.forEach((line) => this.lines.append(lineOf(line)));
    device.store.heard = () => {
      this.lines.append(lineOf(device.store.lines.at(-1)!));
      this.log.scrollTop = this.log.scrollHeight;
      this.refresh();
    };
    this.showRules();
    this.refresh();
  }

  private introduction(): HTMLElement {
    return h(
      "div",
      {},
      h(
        "p",
        {},
        "Your places stay in this browser. A server asks many people at once how many of them were in each square of a map. ",
        "This tab answers with numbers that are masked, so that only the sum over all of you can be read, and with noise, so that the sum ",
        "does not tell whether you are in it.",
      ),
      h(
        "p",
        {},
        "Whoever served this page could have changed it. Before you give it your places, compare its SHA-256 with one that you ",
        "trust: hazemap's documentation says how, under “A device in a browser's tab”.",
      ),
    );
  }

  private placesPart(): HTMLElement {
    const button = (text: string, work: () => Promise<void>): HTMLElement =>
      h("button", { type: "button", onclick: () => void this.doing(work) }, text);
    return section(
      "places",
      "Your places",
      this.places,
      field(
        "A file of your own: GPX, or JSON of Google Takeout",
        this.file,
        "It is read here, with the times in it, and sent nowhere. It replaces the places that are kept.",
      ),
      h(
        "details",
        {},
        h("summary", {}, "A made-up walk, to try it"),
        h("div", { class: "fields" }, field("Near longitude", this.lon), field("Near latitude", this.lat)),
        button("Make a walk up", () => this.walked()),
      ),
      button("Forget my places", () => this.device.keepPlaces([], "because you said so")),
    );
  }

  private rulesPart(): HTMLElement {
    return section(
      "rules",
      "Your rules",
      h("ul", {}, ...ALWAYS.map((rule) => h("li", {}, rule))),
      h("div", { class: "fields" }, ...RULES.map(({ name, label, help }) => field(label, this.rules[name], help))),
      this.warning,
      h("button", { type: "button", onclick: () => void this.doing(() => this.ruled()) }, "Keep these rules"),
      this.behind,
    );
  }

  /** Where the account's time is behind the clock, for the page was closed: the date may be said. */
  private showDay(): void {
    const [account, clock] = [this.device.accountTime, Date.now()];
    this.behind.hidden = clock - account < DAY;
    if (this.behind.hidden || this.behind.childElementCount) return;
    this.behind.append(
      h(
        "p",
        {},
        "Days count for your budgets while this page is open. For a while it was closed, and only you know that its clock is right.",
      ),
      field("Today's date, if you want those days to count", this.day),
      h(
        "button",
        { type: "button", onclick: () => void this.doing(() => this.device.confirmDay(this.day.value)) },
        "It is that day",
      ),
    );
  }

  private recipesPart(): HTMLElement {
    return section(
      "recipes",
      "Recipes, if you want to answer them",
      h(
        "p",
        {},
        "A recipe asks a question in SQL of your places. Your answer is one of the bins that it names, randomised here before it is masked and ",
        "added to those of others. A signed policy says which questions may be asked, and what they may cost you. Without one, none is answered.",
      ),
      this.shipped,
      h(
        "div",
        { class: "fields" },
        field(
          "The key that the policy is to be signed by",
          this.policyKey,
          "64 hexadecimal digits, from whoever ships the policy. Later ones need no key again.",
        ),
        field("The signed policy", this.policyFile, "A file that `hazemap policy sign` made."),
      ),
    );
  }

  private async accepted(): Promise<void> {
    const file = this.policyFile.files?.[0];
    if (!file) return;
    this.policyFile.value = "";
    await this.device.acceptPolicy(await file.text(), this.policyKey.value);
  }

  private serverPart(): HTMLElement {
    return section(
      "server",
      "The server",
      this.enrolled,
      h(
        "div",
        { class: "fields" },
        field("Its address", this.server, "Once you start, your browser lets this page reach no other."),
        field("Your enrolment code", this.code, "From whoever runs the campaign. It works once."),
      ),
    );
  }

  private answeringPart(): HTMLElement {
    return section("answering", "Answering", this.status, this.problem, this.toggle);
  }

  private logPart(): HTMLElement {
    return section("log", "Everything that this device did", this.log);
  }

  /** What a button asks for; what goes wrong is said. */
  private async doing(work: () => void | Promise<void>): Promise<void> {
    this.problem.hidden = true;
    try {
      await work();
    } catch (error) {
      const ours = error instanceof InputError || error instanceof CodecError;
      this.complain(ours ? error.message : `that did not work (${error instanceof Error ? error.message : "unknown"})`);
    }
    this.refresh();
  }

  private complain(text: string): void {
    this.problem.textContent = text;
    this.problem.hidden = false;
  }

  private async toggled(): Promise<void> {
    await this.doing(async () => {
      if (this.device.answering) return this.device.stop();
      this.device.start(this.server.value, this.code.value, (reason) => {
        if (reason !== null) this.complain(reason);
        this.refresh();
      });
    });
  }

  private async chosen(): Promise<void> {
    const file = this.file.files?.[0];
    if (!file) return;
    await this.device.keepPlaces(placesOf(await file.text()), "of a file");
    this.file.value = "";
  }

  private async walked(): Promise<void> {
    const near = { lon: Number(this.lon.value || NaN), lat: Number(this.lat.value || NaN) };
    if (!(Math.abs(near.lon) <= 180 && Math.abs(near.lat) <= 85))
      throw new InputError("a walk is made up near a longitude and a latitude, in degrees");
    await this.device.keepPlaces(madeUpWalk(near, systemRandom, Date.now() / 1_000), "of a made-up walk");
  }

  private async ruled(): Promise<void> {
    await this.device.keepPolicy(
      policyText(
        Object.fromEntries(RULES.map(({ name }) => [name, this.rules[name].value])) as Record<Rule["name"], string>,
      ),
    );
    this.showRules();
  }

  private showRules(): void {
    const texts = written(this.device.policy);
    for (const { name } of RULES) this.rules[name].value = texts[name];
  }

  private refresh(): void {
    const { device } = this;
    const { policy, places, answering } = device;
    const { record } = device.store;
    this.places.textContent = places.length
      ? `${places.length} places are kept here, sealed. Of ${device.timed} the time is known.`
      : "No places are kept here: it would answer as somebody without any.";
    const loose = looser(policy).map(({ label }) => label.toLowerCase());
    this.warning.hidden = !loose.length;
    this.warning.textContent = loose.length ? `Looser than hazemap's own rules: ${loose.join("; ")}.` : "";
    const { shipped } = device;
    this.shipped.textContent = shipped
      ? `Goes by the policy ${shipped.name}, version ${shipped.version}: ${[...shipped.analyses.values()].map(({ name, purpose }) => `${name} (${purpose})`).join("; ")}.`
      : "No policy is accepted: no recipe is answered.";
    this.enrolled.textContent = record.name ? `Enrolled at ${record.server} as ${record.name}.` : "Not enrolled.";
    this.showDay();
    const paid = `${device.spent.toNumber()} of ε = ${policy.period.toNumber()} paid in ${policy.days} days.`;
    this.status.textContent = `${answering ? "Answering. Leave this tab open." : "Not answering. Nothing is asked or sent."} ${paid}`;
    this.toggle.textContent = answering ? "Stop answering" : "Start answering";
    this.settings.disabled = answering;
    this.code.disabled = record.ticket !== null;
    this.server.readOnly = record.server !== null;
  }
}

function lineOf([time, text]: LogLine): HTMLElement {
  const when = new Date(time);
  return h(
    "li",
    {},
    h("time", { datetime: when.toISOString() }, when.toISOString().slice(0, 19).replace("T", " ")),
    ` ${text}`,
  );
}
