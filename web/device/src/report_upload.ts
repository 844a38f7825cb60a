import { hex, join, sha256 } from "../../shared/src/bytes.js";
import { reportsPath } from "./carried_round.js";
import { preferredKey, uploadError } from "./dap_messages.js";
import { CodecError, Refused, Unreachable } from "./errors.js";
import type { HpkeConfig } from "./hpke.js";
import { checkedAddress, HttpTransport } from "./http_transport.js";
import type { DueReport } from "./round_reports.js";

const KIND = "application/ppm-dap";
const PROBLEM = /"type" *: *"urn:ietf:params:ppm:dap:error:([A-Za-z]{1,40})"/;
const LONGEST_PROBLEM = 1 << 16;

/** What a content type says that a message of DAP is. */
function messageOf(kind: string): string | null {
  const [type, ...parameters] = kind
    .toLowerCase()
    .split(";")
    .map((part) => part.trim());
  const names = parameters
    .filter((part) => part.startsWith("message="))
    .map((part) => part.slice(8).replaceAll('"', ""));
  return type === KIND && names.length === 1 ? names[0]! : null;
}

/** An aggregator's key; `Refused` where the person's rules pin another (SHA-256). */
export async function fetchedKey(url: string, pin: string): Promise<HpkeConfig> {
  const { status, kind, content } = await new HttpTransport(checkedAddress(url)).send("GET", "/hpke_config", null);
  if (status !== 200) throw new Refused(`an aggregator does not say its keys (HTTP ${status})`);
  let found: HpkeConfig;
  try {
    if (messageOf(kind) !== "hpke-config-list") throw new CodecError("it says that it is something else");
    found = preferredKey(content);
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    throw new Refused(`what an aggregator offers is no list of keys: ${error.message}`);
  }
  if (pin && hex(await sha256(found.key)) !== pin)
    throw new Refused(`${url} shows another key than this device's rules pin`);
  return found;
}

/** Sends a report to the leader until it has it: it counts once. `Unreachable`: not now. `Refused`: never. */
export async function uploaded({ round, task, report }: DueReport): Promise<void> {
  if (report === null) return;
  const leader = new HttpTransport(checkedAddress(round.carrier.leader));
  const { status, kind, wait, content } = await leader.send(
    "POST",
    `/${reportsPath(task.id)}`,
    null,
    join(report),
    `${KIND};message=upload-req`,
  );
  let said: ReturnType<typeof uploadError> = "taken";
  if (status < 200 || status >= 300) {
    const text = new TextDecoder().decode(content.subarray(0, LONGEST_PROBLEM));
    const problem = PROBLEM.exec(text)?.[1];
    said = problem === "reportTooEarly" ? "early" : problem === "outdatedConfig" ? "outdated" : "refused";
    if (said === "refused")
      throw new Refused(`the leader does not take a report (HTTP ${status}${problem ? `, ${problem}` : ""})`);
  } else if (content.length) {
    try {
      if (messageOf(kind) !== "upload-errors") throw new CodecError("it is another message");
      said = uploadError(content, report);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      throw new Unreachable(`the leader's answer to a report cannot be read: ${error.message}`, wait);
    }
  }
  if (said === "early") throw new Unreachable("the leader's clock is behind this device's", wait);
  if (said === "outdated") {
    throw new Refused(
      "the leader does not know the key that a report was sealed for; a new report would be charged again, so none is made",
    );
  }
  if (said === "refused") throw new Refused("the leader does not take a report");
}
