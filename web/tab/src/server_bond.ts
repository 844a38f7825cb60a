import { InputError } from "../../device/src/errors.js";
import { originOf } from "../../device/src/http_transport.js";

let bound: string | null = null;

/**
 * From now on the browser lets this page reach these servers and nobody else, until the page is loaded again. `InputError`
 * for others after that, and for a server that has sent this page: it could send one visitor another program.
 */
export function bindTo(...servers: readonly string[]): void {
  const origins = servers.map(originOf);
  if (origins.includes(originOf(location.origin))) {
    throw new InputError(
      "this page came from that very server, which could send you another program: take it from somebody else",
    );
  }
  const asked = [...new Set(origins)].sort().join(" ");
  if (bound === asked) return;
  if (bound !== null) throw new InputError("this page is bound to other servers: load it again");
  bound = asked;
  const policy = document.createElement("meta");
  policy.httpEquiv = "Content-Security-Policy";
  policy.content = `connect-src ${asked}`;
  document.head.append(policy);
}
