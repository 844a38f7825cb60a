import { InputError } from "../../device/src/errors.js";
import { originOf } from "../../device/src/http_transport.js";

let bound: string | null = null;

/**
 * From now on the browser lets this page reach one server and nobody else, until the page is loaded again. `InputError`
 * for a second one, and for a server that has sent this page: it could send one visitor another program.
 */
export function bindTo(server: string): void {
  const origin = originOf(server);
  if (origin === originOf(location.origin)) {
    throw new InputError("this page came from that very server, which could send you another program: take it from somebody else");
  }
  if (bound === origin) return;
  if (bound !== null) throw new InputError("this page is bound to another server: load it again");
  bound = origin;
  const policy = document.createElement("meta");
  policy.httpEquiv = "Content-Security-Policy";
  policy.content = `connect-src ${origin}`;
  document.head.append(policy);
}
